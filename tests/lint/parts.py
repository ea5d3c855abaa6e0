"""Floors inside launcher/ and daemons/, with sub-folders that common/README.md doesn't list; and cycles of headers.

1. Sub-folders never include each other in a cycle, directly or through a third one.
2. A file directly in launcher/ that a sub-folder needs doesn't include that sub-folder.
3. psd and workerd never include each other; a file directly in daemons/ includes neither.
4. No header includes itself through others, anywhere.

The lists below are the exceptions of today. They only get shorter: an entry that names no exception any more is an error.
"""
import collections
import pathlib

from tree import cycle_in, include_graph, reach

HERE = "tests/lint/parts.py"
TOPS = ("launcher", "daemons")
# (sub-folder, sub-folder that it should not include): ssh is the lowest sub-folder of the launcher.
FOLDER_CYCLES = {
    ("launcher/ssh", "launcher/network"),
    ("launcher/ssh", "launcher/slurm"),
    ("launcher/ssh", "launcher/systemd"),
}
# Files directly in launcher/ that include a sub-folder which needs them.
ROOT_CYCLES = {
    ("launcher/task_host.cc", "launcher/ssh/ssh_hosts.h"),
}
# Includes between psd and workerd, or from daemons/ into them.
DAEMON_INCLUDES = set()


def part_of(path):
    """The sub-folder below a top folder, such as launcher/ssh; the top folder itself for a file directly in it."""
    return "/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0]


def folder_edges(graph, top):
    """{(sub-folder, sub-folder): "file:line" of the first include}"""
    edges = {}
    for path, targets in graph.items():
        for number, target in targets:
            a, b = part_of(path), part_of(target)
            if a != b and top not in (a, b) and path.parts[0] == target.parts[0] == top:
                edges.setdefault((a, b), f"{path}:{number}")
    return edges


def check_folder_cycles(graph, allowed):
    edges = {edge: where for top in TOPS for edge, where in folder_edges(graph, top).items()}
    rest = collections.defaultdict(set)
    for a, b in set(edges) - allowed:
        rest[a].add(b)
    cycle = cycle_in(rest)
    if cycle:
        lines = "; ".join(f"{a} to {b} in {edges[a, b]}" for a, b in zip(cycle, cycle[1:]))
        yield f"{edges[cycle[0], cycle[1]]}: error: sub-folders include each other in a cycle: {lines}"
    every = collections.defaultdict(set)
    for a, b in edges:
        every[a].add(b)
    for a, b in sorted(allowed):
        if (a, b) not in edges or a not in reach([b], lambda each: every[each]):
            yield f"{HERE}:1: error: {a} and {b} include each other no more: take them off FOLDER_CYCLES"


def check_root_cycles(graph, allowed):
    """Follows includes from unit to unit: a unit is a header with its source."""
    units = collections.defaultdict(set)
    for path, targets in graph.items():
        if path.parts[0] == "launcher":
            units[path.with_suffix("")] |= {target.with_suffix("") for _, target in targets if target.parts[0] == "launcher"}
    found = set()
    for path, targets in graph.items():
        if part_of(path) != "launcher":
            continue
        for number, target in targets:
            folder = part_of(target)
            if target.parts[0] != "launcher" or folder == "launcher":
                continue
            members = [unit for unit in list(units) if part_of(unit) == folder]
            if path.with_suffix("") not in reach(members, lambda unit: units.get(unit, ())):
                continue
            found.add((str(path), str(target)))
            if (str(path), str(target)) not in allowed:
                yield f"{path}:{number}: error: includes {target}, and {folder} needs {path.with_suffix('')} itself: a cycle"
    for path, target in sorted(allowed - found):
        yield f"{HERE}:1: error: {path} and {target} make no cycle any more: take them off ROOT_CYCLES"


def check_daemons(graph, allowed):
    programs = ("daemons/psd", "daemons/workerd")
    found = set()
    for path, targets in graph.items():
        if path.parts[0] != "daemons":
            continue
        for number, target in targets:
            if part_of(target) not in programs or part_of(target) == part_of(path):
                continue
            found.add((str(path), str(target)))
            if (str(path), str(target)) not in allowed:
                yield f"{path}:{number}: error: {part_of(path)} may not include {target}: shared code is directly in daemons/"
    for path, target in sorted(allowed - found):
        yield f"{HERE}:1: error: {path} does not include {target} any more: take it off DAEMON_INCLUDES"


def check_header_cycles(graph):
    headers = {path: {target for _, target in targets if target.suffix == ".h"}
               for path, targets in graph.items() if path.suffix == ".h"}
    cycle = cycle_in(headers)
    if cycle:
        yield f"{cycle[0]}:1: error: headers include each other in a cycle: {', '.join(map(str, cycle))}"


def check(root, files, folder_cycles=frozenset(FOLDER_CYCLES), root_cycles=frozenset(ROOT_CYCLES),
          daemon_includes=frozenset(DAEMON_INCLUDES)):
    graph = include_graph(root, [pathlib.Path(path) for path in files])
    yield from check_folder_cycles(graph, folder_cycles)
    yield from check_root_cycles(graph, root_cycles)
    yield from check_daemons(graph, daemon_includes)
    yield from check_header_cycles(graph)
