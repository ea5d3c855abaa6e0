#!/usr/bin/env python3
"""Prints the files that scripts/tidy.sh checks at this commit, a line each: "all FILE" or "changed FILE".

"all" stands before one of 64 shares of the sources, chosen by the commit's hash; "changed" before the others with code,
in them or in their header, that differs from 40 commits ago. A change of comments is no change of code. Without git's
history, or with a truncated one, and with --all, each source is in that share.

Usage: tidy-files.py [--all]
"""
import hashlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
COMMITS = 40
SHARES = 64


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, errors="replace", check=True).stdout


def code_of(text):
    """The text without its // comments and white space, since comments move the latter; a // in quotes is no comment."""
    code = re.sub(r'("(?:\\.|[^"\\\n])*")|//[^\n]*', lambda match: match.group(1) or "", text)
    return re.sub(r"\s+", "", code)


def sources():
    return sorted(str(path.relative_to(ROOT)) for top in ("common", "daemons", "launcher")
                  for path in (ROOT / top).rglob("*.cc"))


def changed_since(commit):
    """Sources and headers, by name without suffix, with other code than at `commit`."""
    changed = set()
    for name in git("diff", "--name-only", "--no-renames", commit, "--", "*.cc", "*.h").splitlines():
        path = ROOT / name
        if not path.exists():
            continue
        before = subprocess.run(["git", "show", f"{commit}:{name}"], cwd=ROOT, capture_output=True, text=True, errors="replace")
        if before.returncode != 0 or code_of(before.stdout) != code_of(path.read_text(errors="replace")):
            changed.add(name.rsplit(".", 1)[0])
    return changed


def is_in_share(name, share):
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % SHARES == share


def chosen(everything):
    try:
        head = git("rev-parse", "HEAD").strip()
        commits = git("rev-list", f"--max-count={COMMITS + 1}", "HEAD").split()
        is_cut_off = len(commits) <= COMMITS and git("rev-parse", "--is-shallow-repository").strip() == "true"
    except (subprocess.CalledProcessError, FileNotFoundError):
        is_cut_off = True
    if is_cut_off:
        return [f"all {name}" for name in everything]
    changed = changed_since(commits[-1])
    share = int(head, 16) % SHARES
    return [f"all {name}" for name in everything if is_in_share(name, share)] + [
        f"changed {name}" for name in everything if name.rsplit(".", 1)[0] in changed and not is_in_share(name, share)]


if __name__ == "__main__":
    names = sources()
    print("\n".join([f"all {name}" for name in names] if sys.argv[1:] == ["--all"] else chosen(names)))
