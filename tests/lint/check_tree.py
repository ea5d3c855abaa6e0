"""Checks of the whole tree that no compiler makes. Usage: check_tree.py [--all] [ROOT]

README.md beside this file lists the rules; each lives in a file of its own. --all compiles every header by itself.
"""
import pathlib
import sys

import classes
import counts
import floors
import headers
import layout
import names
import parts
import readme
import sinks
import sizes
import texts
import units
import unity
import words
from tree import floors as table_of_floors
from tree import sources_of


def check_tree(root, everything=False):
    """The problems of a tree, without the problems of its counts."""
    root = pathlib.Path(root).resolve()
    table = table_of_floors(root / "common/README.md")
    if not table:
        return ["common/README.md:1: error: no table of floors found"]
    files = sources_of(root)
    checks = [
        floors.check(root, files, table),
        parts.check(root, files),
        names.check(root, files),
        headers.check(root, files, everything),
        units.check(root, files, table),
        units.check_examples(root, files, table),
        units.check_excuses(files, table),
        unity.check(root, files),
        sizes.check(root, files),
        classes.check(root, files),
        texts.check(root, files),
        sinks.check(root, files),
        layout.check(root),
        readme.check(root),
        words.check(root),
    ]
    return [problem for found in checks for problem in found]


def report(root):
    """Prints counts of the tree; returns the problems in them."""
    root = pathlib.Path(root)
    return list(counts.report(root, sources_of(root), table_of_floors(root / "common/README.md")))


if __name__ == "__main__":
    roots = [argument for argument in sys.argv[1:] if argument != "--all"]
    tree = roots[0] if roots else pathlib.Path(__file__).parents[2]
    problems = check_tree(tree, "--all" in sys.argv[1:]) + report(tree)
    print("\n".join(problems) if problems else "the tree keeps its rules")
    sys.exit(1 if problems else 0)
