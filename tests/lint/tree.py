"""Shared by the checks: the files of a tree, their includes, their code without comments, their tags, the table of floors."""
import collections
import functools
import json
import pathlib
import re
import subprocess
import sys

TOPS = ("common", "daemons", "launcher", "gpu", "tests")

# Which third party an include belongs to. Checked in order; first match wins.
THIRD_PARTIES = [
    (r"boost/program_options", "Boost.Program_options"),
    (r"boost/", "Asio"),
    (r"capnp/(rpc|ez-rpc|rpc-twoparty|serialize-async)", "capnp-rpc"),
    (r"capnp/", "capnp"),
    (r"kj/", "kj"),
    (r"yaml-cpp/", "yaml-cpp"),
    (r"spdlog/", "spdlog"),
    (r"fmt/", "fmt"),
    (r"nlohmann/", "nlohmann-json"),
    (r"(oneapi/dnnl/|dnnl)", "oneDNN"),
    (r"zlib", "zlib"),
    (r"png\.h", "libpng"),
    (r"jpeglib\.h|jerror\.h", "libjpeg-turbo"),
    (r"webp/", "libwebp"),
    (r"xxh", "xxHash"),
    (r"protozero/", "protozero"),
    (r"openssl/", "OpenSSL"),
    (r"uc[pst]/", "UCX"),
    (r"cuda|cudnn|cublas", "CUDA"),
]
# A library that may use the first may use the second: one package.
IMPLIED = {"capnp-rpc": {"capnp", "kj"}, "capnp": {"kj", "capnp-rpc"}}


def sources_of(root):
    return sorted(p.relative_to(root) for top in TOPS
                  for p in (root / top).rglob("*") if p.suffix in (".h", ".cc", ".cu"))


@functools.lru_cache(maxsize=None)
def includes(path):
    """(line number, name) of each include of a file; `path` is absolute, and read once."""
    found = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if match:
            found.append((number, match.group(1)))
    return found


def included_file(root, path, name):
    """The file of the tree that `path` includes as `name`, from the root or from its own folder; or None."""
    for candidate in (pathlib.Path(name), path.parent / name):
        if (root / candidate).is_file():
            return candidate
    return None


def include_graph(root, files):
    """{file: [(line number, file of the tree that it includes)]}"""
    graph = collections.defaultdict(list)
    for path in files:
        for number, name in includes(root / path):
            target = included_file(root, path, name)
            if target is not None:
                graph[path].append((number, target))
    return graph


class Closures:
    """Every include of a header, direct or not, and the header: files of the tree by path, others by name."""

    def __init__(self, root):
        self.root = root
        self.known = {}

    def of(self, path):
        if path not in self.known:
            self.known[path] = {str(path)}  # also ends a circle
            for _, name in includes(self.root / path):
                target = included_file(self.root, path, name)
                self.known[path] = self.known[path] | (self.of(target) if target else {name})
        return self.known[path]


def reach(starts, edges_of):
    """All that can be reached from `starts`, themselves among it."""
    found, waiting = set(starts), list(starts)
    while waiting:
        for each in edges_of(waiting.pop()):
            if each not in found:
                found.add(each)
                waiting.append(each)
    return found


def cycle_in(graph):
    """A cycle of {node: set of nodes} as a list that ends with its first node; or None."""
    done = set()

    def visit(node, path):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        for each in sorted(graph.get(node, ())):
            cycle = visit(each, path + [node])
            if cycle:
                return cycle
        done.add(node)
        return None

    for node in sorted(graph):
        cycle = visit(node, [])
        if cycle:
            return cycle
    return None


CHARACTERS = r"'(?:\\.|[^'\\])'"
TEXT = r'"(?:\\.|[^"\\\n])*"'


def code_of(text):
    """C++ without its comments, and with empty texts; lines keep their numbers."""
    def replace(match):
        found = match.group(0)
        if found.startswith(('"', "'")):
            return found[0] * 2
        return "\n" * found.count("\n")

    return re.sub(rf"//[^\n]*|/\*.*?\*/|{CHARACTERS}|{TEXT}", replace, text, flags=re.S)


def tags_of(root, headers, kinds, *options):
    """The tags that universal-ctags finds in headers, as dictionaries."""
    command = ["ctags", "-L", "-", "--languages=C++", "--language-force=C++", f"--kinds-C++={kinds}", "--output-format=json",
               "-f", "-", *options]
    listed = "".join(f"{path}\n" for path in headers)
    try:
        done = subprocess.run(command, cwd=root, input=listed, stdout=subprocess.PIPE, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        sys.exit("error: no universal-ctags here: scripts/install-deps.sh --tests installs it")
    return [json.loads(line) for line in done.stdout.splitlines()]


def git(root, *arguments):
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def has_history(root):
    """Whether `root` is the top of a checkout of its own, not a folder within another one."""
    try:
        return git(root, "rev-parse", "--show-prefix") == "" and git(root, "rev-parse", "HEAD") is not None
    except FileNotFoundError:  # no git here
        return False


def floors(readme):
    """{library folder: (floor, allowed third parties)} from the table in common/README.md."""
    table = {}
    for line in readme.read_text().splitlines():
        match = re.match(r"\|\s*(\d+)\s*\|\s*`([^`]+)`\s*\|[^|]*\|([^|]*)\|", line)
        if match:
            allowed = {name.strip() for name in match.group(3).split(",")}
            for name in list(allowed):
                allowed |= IMPLIED.get(name, set())
            table[match.group(2)] = (int(match.group(1)), allowed)
    return table


def library_of(path, table):
    """The library that a path belongs to: the longest folder of the table that holds it."""
    holders = [lib for lib in table if str(path).startswith(lib + "/")]
    return max(holders, key=len) if holders else None
