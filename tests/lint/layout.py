"""How files and commits are laid out.

1. A meson.build names one source a line, so that two branches that add sources seldom conflict.
2. Lines of comments fit within 100 columns, in C++, CUDA, Cap'n Proto's schemas, Python, shell and Meson.
3. Subjects of commits since BASE have 72 characters at most.
"""
import re

from tree import git, has_history

COLUMNS_MAX = 100
SUBJECT_MAX = 72
BASE = "06bfe64e"  # subjects of earlier commits are history
TOPS = ("common", "daemons", "launcher", "gpu", "tests", "scripts", "configs")
SLASHES = {".cc", ".h", ".cu"}
HASHES = {".capnp", ".py", ".sh"}
MESON = {"meson.build", "meson_options.txt"}


def texts_of(root):
    """Files with comments, in the tops and directly in the root."""
    found = [p for p in root.iterdir() if p.is_file()] + [p for top in TOPS for p in (root / top).rglob("*")]
    return sorted(p.relative_to(root) for p in found
                  if p.is_file() and (p.suffix in SLASHES | HASHES or p.name in MESON))


def check_meson(root, files):
    for path in files:
        if path.name != "meson.build":
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            sources = re.findall(r"'[^']*\.(?:cc|cu|c)'", re.sub(r"#.*", "", line))
            if len(sources) > 1:
                yield f"{path}:{number}: error: {len(sources)} sources in a line: one source a line"


def check_comments(root, files):
    for path in files:
        in_block = False
        for number, line in enumerate((root / path).read_text(errors="replace").splitlines(), 1):
            text = line.strip()
            if path.suffix in SLASHES:
                is_comment = in_block or text.startswith(("//", "/*"))
                if is_comment and (in_block or text.startswith("/*")):
                    in_block = "*/" not in text
            else:
                is_comment = text.startswith("#")
            # One word that is longer, such as an address, can't be wrapped.
            if is_comment and len(line) > COLUMNS_MAX and len(text.split()) > 2:
                yield f"{path}:{number}: error: a comment of {len(line)} columns, {COLUMNS_MAX} at most"


def check_subjects(root, base=BASE):
    if not has_history(root):
        print("subjects of commits: not checked, there is no git history here")
        return
    if git(root, "merge-base", "--is-ancestor", base, "HEAD") is None:
        print(f"subjects of commits: not checked, this history doesn't reach back to {base}")
        return
    for line in git(root, "log", "--format=%h %s", f"{base}..HEAD").splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > SUBJECT_MAX:
            yield f"commit {commit}: error: a subject of {len(subject)} characters, {SUBJECT_MAX} at most: {subject}"


def check(root):
    files = texts_of(root)
    yield from check_meson(root, files)
    yield from check_comments(root, files)
    yield from check_subjects(root)
