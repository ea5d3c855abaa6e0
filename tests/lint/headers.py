"""Each header compiles alone; a .cc includes its own header first.

The .cc of a header in common/, daemons/ or launcher/ proves the header wherever it is compiled by itself: clang-tidy
does that, in a build that is no unity build. All other headers have no such proof and are compiled here, each by itself:
an eighth of them in turn, chosen by the hash of the newest commit, and all headers touched by the newest 40 commits or
the working tree; with --all every header, even with a .cc. A header that compiled once is remembered in
~/.cache/dtf/headers ($XDG_CACHE_HOME) for every checkout, by its content and the content of all its includes.

So a change elsewhere can break a header that no .cc proves, and this check may find it some commits later. names.py finds
the usual case, a name without an include of its declaration, at once and in all headers.
"""
import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import tempfile

from tree import Closures, git, has_history, includes

TURNS = 8
COMMITS_NEW = 40
PROVEN_BY_SOURCE = ("common", "daemons", "launcher")  # compiled by scripts/tidy.sh
# Headers that are made for being compiled several times, under a define of their own.
NOT_ALONE = {"common/runtime/vector.h"}
# And headers that read CUDA's, which few hosts have: the plug-in's own build compiles them.
NOT_ALONE |= {"gpu/convolution_graph.h", "gpu/cuda_error.h", "gpu/cudnn_graph.h", "gpu/libraries.h"}


def check_own_header_first(root, files):
    for path in files:
        if path.suffix != ".cc" or str(path).startswith("tests/"):
            continue
        own = path.with_suffix(".h")
        if (root / own).exists():
            first = next((name for _, name in includes(root / path)), None)
            if first != str(own):
                yield f"{path}:1: error: includes {first} before its own header {own}"


def digest_of(root, headers):
    """Stands for the commit where there is no history."""
    digest = hashlib.sha256()
    for path in headers:
        digest.update((root / path).read_bytes())
    return digest.hexdigest()


def touched(root):
    """Files that the newest commits, or nobody's commit yet, have touched."""
    new = git(root, "log", f"-{COMMITS_NEW}", "--format=", "--name-only") or ""
    changed = git(root, "diff", "HEAD", "--name-only") or ""
    untracked = git(root, "ls-files", "--others", "--exclude-standard") or ""
    return set("\n".join((new, changed, untracked)).splitlines())


def selected(root, headers, everything):
    """Headers that are compiled in this run."""
    alone = [path for path in headers if str(path) not in NOT_ALONE]
    if everything:
        return alone
    rest = [path for path in alone
            if path.parts[0] not in PROVEN_BY_SOURCE or not (root / path.with_suffix(".cc")).exists()]
    if has_history(root):
        commit, new = git(root, "rev-parse", "HEAD"), touched(root)
    else:
        print("headers: no git history here, so none counts as new; the turn is drawn by their content")
        commit, new = digest_of(root, headers), set()
    turn = int(commit, 16) % TURNS
    return [path for path in rest
            if str(path) in new or int(hashlib.sha256(str(path).encode()).hexdigest(), 16) % TURNS == turn]


def check_alone(root, headers):
    """Compiles each of `headers` by itself."""
    if not headers:
        return
    with tempfile.TemporaryDirectory() as schemas:  # of its own: a fresh clone has no build folder yet
        texts = b""
        for schema in sorted(p for top in ("common", "tests") for p in (root / top).rglob("*.capnp")):
            subprocess.run(["capnp", "compile", f"-oc++:{schemas}", f"--src-prefix={root}", str(schema)], check=True)
            texts += schema.read_bytes()
        yield from check_each_alone(root, headers, schemas, texts)


def check_each_alone(root, headers, schemas, schema_texts):
    command = ["g++", "-std=c++20", "-fsyntax-only", "-DBOOST_ERROR_CODE_HEADER_ONLY", '-DDTF_SOURCE_ROOT="."']
    version = subprocess.run(["g++", "--version"], capture_output=True, check=True).stdout
    proven = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dtf/headers"
    proven.mkdir(parents=True, exist_ok=True)
    closures = Closures(root)

    def compiles(path):
        digest = hashlib.sha256(" ".join(command).encode() + version + schema_texts)
        for name in sorted(closures.of(path)):
            digest.update(name.encode() + b"\0" + ((root / name).read_bytes() if (root / name).is_file() else b""))
        stamp = proven / digest.hexdigest()
        if stamp.exists():
            return None
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as source:
            source.write(f'#include "{path}"\n')
            source.flush()
            result = subprocess.run([*command, f"-I{root}", f"-I{schemas}", source.name], capture_output=True, text=True)
        if result.returncode == 0:
            stamp.touch()
            return None
        first = result.stderr.splitlines()[:3]
        return f"{path}:1: error: does not compile alone: {' '.join(first)}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from (problem for problem in pool.map(compiles, headers) if problem)


def check(root, files, everything=False):
    headers = [path for path in files if path.suffix == ".h"]
    chosen = selected(root, headers, everything)
    print(f"headers: {len(chosen)} of {len(headers)} in this run's turn, the others in that of another commit, or with --all")
    yield from check_own_header_first(root, files)
    yield from check_alone(root, chosen)
