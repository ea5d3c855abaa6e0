"""Includes point to lower floors only, and third parties are used where the table of common/README.md allows them.

The table is the rule; this check parses it. Siblings on one floor never include each other.
"""
import re

from tree import THIRD_PARTIES, includes, library_of


def check(root, files, table):
    for path in files:
        library = library_of(path, table)
        if library is None:
            continue
        floor, allowed = table[library]
        for number, name in includes(root / path):
            where = f"{path}:{number}"
            target = library_of(name, table)
            if target == library:
                continue
            if target is not None:
                if table[target][0] >= floor:
                    yield f"{where}: error: {library} (floor {floor}) includes {name} of {target} (floor {table[target][0]})"
                continue
            party = next((p for pattern, p in THIRD_PARTIES if re.match(pattern, name)), None)
            base_allowed = table.get("common/base", (0, set()))[1] & {"fmt"}
            if party and party not in allowed and party not in base_allowed:
                yield f"{where}: error: {library} may not use {party} ({name}); see common/README.md"
