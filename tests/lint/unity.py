"""Names in unnamed namespaces are different in all sources of a target: a unity build compiles them as one file.

A build that compiles each source alone accepts equal names, so only the whole test command would find them. Functions of one
name and other parameters are accepted, and so are aliases of types, which may be repeated. universal-ctags finds the names.
"""
import collections
import re

from tree import tags_of

TARGET = re.compile(r"\b(?:static_library|shared_library|executable)\(\s*'?([\w.+ ]+)'?.*?(?=\n\w|\Z)", re.S)
SOURCE = re.compile(r"'([^'@\n]+\.cc)'")
UNNAMED = "__anon"


def targets_of(root):
    """(meson.build, name of the target, its sources) for each target of the tree."""
    for build in sorted(path for top in ("common", "daemons", "launcher", "gpu", "tests") for path in (root / top).rglob("meson.build")):
        text = re.sub(r"#[^\n]*", "", build.read_text())
        for match in TARGET.finditer(text):
            sources = [(build.parent / name).resolve() for name in SOURCE.findall(match.group(0))]
            yield build.relative_to(root), match.group(1), [path.relative_to(root) for path in sources if path.is_file()]


def unnamed_names(root, files):
    """{file: [(line, name, parameters; None: it is no function)]}"""
    found = collections.defaultdict(list)
    for tag in tags_of(root, files, "vcsguf", "--fields=+Sn"):
        scope = tag.get("scope", "")
        inside_type = tag.get("scopeKind") != "namespace"
        if UNNAMED in scope.rsplit("::", 1)[-1] and not inside_type:
            found[tag["path"]].append((tag["line"], tag["name"], tag.get("signature") if tag["kind"] == "function" else None))
    return found


def check(root, files):
    del files  # meson says which sources belong together
    root = root.resolve()
    targets = list(targets_of(root))
    names = unnamed_names(root, sorted({path for _, _, sources in targets for path in sources}))
    reported = set()
    for build, target, sources in targets:
        first = {}  # name -> (file, parameters)
        for path in sources:
            mine = names.get(str(path), [])
            for line, name, parameters in mine:
                other = first.get(name)
                clashes = other and (parameters is None or other[1] is None or other[1] == parameters)
                if clashes and other[0] != path and (path, line) not in reported:
                    reported.add((path, line))
                    yield (f"{path}:{line}: error: {name} is in an unnamed namespace of {other[0]}, too, and both are sources of "
                           f"{target} ({build}): give one of them another name")
                first.setdefault(name, (path, parameters))
