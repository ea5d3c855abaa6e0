#!/usr/bin/env python3
"""Whether the tests have reached every RPC method and every error code.

Tests that ran with DTF_CALL_LOG=FOLDER/anything in their environment have logged there which
methods were served, with which outcome, and which errors ended a program
(common/base/call_log.h). Only dtf's own servers may log: those of real processes and of the
conformance suites. A unit test's fake proves nothing about the real server.

This merges the files of the folder. Every method of the schemas must have been answered "ok"
once. Every error code of common/base/error.cc but "internal", which only a bug of dtf raises,
must have answered a call or ended a program. Without UCX here, PsData.openRemote need not. Prints the missing ones and fails.

Usage: tests/calls.py FOLDER
"""

import ctypes
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
SCHEMAS = ("parts", "probe", "ps", "worker")
# Their answer is an error: the reason why the callee ends.
ANSWERED_BY_ERRORS = {"PsControl.awaitEnd"}
# Only a build with UCX, on a host with its library, serves it.
SERVED_WITH_UCX = {"PsData.openRemote"}


def methods_of(schema_text):
    """Parses `capnp compile -ocapnp`: {(interface id, method number): "Interface.method"}."""
    methods, interface = {}, None
    for line in schema_text.splitlines():
        opened = re.match(r"interface (\w+) @(0x[0-9a-f]+)", line)
        if opened:
            interface = (opened.group(1), int(opened.group(2), 16))
        elif re.match(r"(struct|enum|const|annotation) ", line):
            interface = None
        method = re.match(r"  (\w+) @(\d+) \(", line)
        if method and interface:
            methods[interface[1], int(method.group(2))] = f"{interface[0]}.{method.group(1)}"
    return methods


def all_methods(root):
    methods = {}
    for name in SCHEMAS:
        command = ["capnp", "compile", "-ocapnp", "-I/usr/include", str(root / f"common/wire/{name}.capnp")]
        methods.update(methods_of(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return methods


def all_codes(root):
    text = (root / "common/base/error.cc").read_text()
    codes = re.findall(r'case ErrorCode::\w+:\s*return \{\d+, "(\w+)"\}', text)
    return [code for code in codes if code != "internal"]


def merged(folder):
    """Returns {(interface id, method number): outcomes}, and the codes that ended a program."""
    outcomes, exits = {}, set()
    for file in sorted(p for p in folder.iterdir() if p.is_file()):
        for line in file.read_text().splitlines():
            word, *rest = line.split()
            if word == "call":
                outcomes.setdefault((int(rest[0], 16), int(rest[1])), set()).add(rest[2])
            elif word == "exit":
                exits.add(rest[0])
            else:
                sys.exit(f"{file}: no line of a call log: {line}")
    return outcomes, exits


def has_ucx():
    try:
        ctypes.CDLL("libucp.so.0")
    except OSError:
        return False
    return pathlib.Path("/usr/include/ucp/api/ucp.h").exists()


def missing(methods, codes, outcomes, exits, unserved=frozenset()):
    for key, name in sorted(methods.items(), key=lambda item: item[1]):
        seen = outcomes.get(key, set())
        if "ok" not in seen and name not in unserved and not (seen and name in ANSWERED_BY_ERRORS):
            yield f"no test has had an answer from {name}"
    reached = exits.union(*(outcomes[key] for key in outcomes if key in methods))
    for code in codes:
        if code not in reached:
            yield f"no test has met the error code {code}"


def main(arguments):
    if len(arguments) != 1 or not pathlib.Path(arguments[0]).is_dir():
        sys.exit(__doc__)
    methods, codes = all_methods(ROOT), all_codes(ROOT)
    if not methods or not codes:
        sys.exit("found no methods in the schemas, or no codes in common/base/error.cc: this script must follow them")
    outcomes, exits = merged(pathlib.Path(arguments[0]))
    for key, name in sorted(methods.items(), key=lambda item: item[1]):
        print(f"{name:28} {' '.join(sorted(outcomes.get(key, [])))}")
    print(f"{'ended a program':28} {' '.join(sorted(exits))}")
    unserved = frozenset() if has_ucx() else SERVED_WITH_UCX
    if unserved:
        print(f"not required, since UCX is missing here (libucx-dev): {' '.join(sorted(unserved))}")
    problems = list(missing(methods, codes, outcomes, exits, unserved))
    print("\n".join(problems) if problems else f"{len(methods)} methods and {len(codes)} error codes reached")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
