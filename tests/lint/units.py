"""Every unit (a .cc in a library) has its test: in tests/unit under the same name, or where tested_in.py has it.

A program in a folder `examples` is no unit: a test in tests/e2e names it, and runs it as a reader would.

x_isa.cc, which is compiled for each instruction set, belongs to x: its test is x_test.cc, unless x_isa_test.cc is there.
"""
import pathlib
import re

from tested_in import EXCUSED, EXCUSED_GOAL, TESTED_IN, WITHOUT_REASON
from tree import library_of

HERE = "tests/lint/tested_in.py"


def sources_of(files, table):
    return [path for path in files if path.suffix == ".cc" and library_of(path, table) is not None]


def is_example(path):
    return path.parent.name == "examples"


def units_of(files, table):
    return [path for path in sources_of(files, table) if not is_example(path)]


def check_examples(root, files, table):
    tests = "".join(path.read_text() for path in sorted((root / "tests/e2e").rglob("*")) if path.suffix in (".cc", ".py", ".build"))
    for path in sources_of(files, table):
        if is_example(path) and not re.search(rf'["/]{path.stem}["./]', tests):
            yield f"{path}:1: error: no test in tests/e2e runs it: name '{path.stem}' in one"


def entry_of(path, tested_in):
    return next((entry for entry in tested_in if re.fullmatch(entry[0], str(path))), None)


def mirror_of(root, path):
    folder = pathlib.Path("tests/unit") / path.parent.relative_to("common" if str(path).startswith("common/") else ".")
    own = folder / f"{path.stem}_test.cc"
    return own if (root / own).exists() else folder / f"{path.stem.removesuffix('_isa')}_test.cc"


def check(root, files, table, tested_in=tuple(TESTED_IN)):
    for path in units_of(files, table):
        entry = entry_of(path, tested_in)
        mirror = pathlib.Path(entry[1]) if entry else mirror_of(root, path)
        if not (root / mirror).exists():
            yield f"{path}:1: error: has no test: {mirror} is missing"


def check_excuses(files, table, tested_in=tuple(TESTED_IN), excused=EXCUSED, without_reason=WITHOUT_REASON):
    """Units that the list excuses are counted, and only get fewer; so do entries without a reason."""
    units = units_of(files, table)
    entries = [entry_of(path, tested_in) for path in units]
    count = sum(entry is not None for entry in entries)
    if count > excused:
        yield f"{HERE}:1: error: {count} units are tested under another name, {excused} at most: write NAME_test.cc"
    if count < excused:
        yield f"{HERE}:1: error: {count} units are tested under another name: lower EXCUSED to {count}"
    unexplained = sum(len(entry) < 3 or not entry[2].strip() for entry in tested_in)
    if unexplained > without_reason:
        yield f"{HERE}:1: error: {unexplained} entries have no reason, {without_reason} at most: (pattern, test, reason)"
    if unexplained < without_reason:
        yield f"{HERE}:1: error: {unexplained} entries have no reason: lower WITHOUT_REASON to {unexplained}"
    if excused < EXCUSED_GOAL and without_reason:
        yield f"{HERE}:1: error: fewer than {EXCUSED_GOAL} units are excused now: give each entry its reason"
    for entry in tested_in:
        if not any(re.fullmatch(entry[0], str(path)) for path in units):
            yield f"{HERE}:1: error: {entry[0]} matches no unit: take it off the list"
