#!/usr/bin/env python3
"""Prints where the time of a build and of the tests goes, as the tables of tests/README.md.

Usage: where-time-goes.py build [FOLDER]      compile seconds by library, and the slowest objects, from FOLDER's last whole
                                              build (default: build); seconds of a core, if the machine did nothing else
       where-time-goes.py headers [FOLDER]    builds FOLDER (default: build-trace) with clang's -ftime-trace, in minutes, and
                                              prints the seconds of each kind of work and of each header
       where-time-goes.py tests FOLDER...     seconds of each test in the newest run of each suite in these folders, and,
                                              where the test prints it, of its processes
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
ROWS = 25


def table(head, rows):
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |")
    print()


def seconds_of_objects(folder):
    """{object file: seconds} of the newest build of each, from ninja's log: start, end, time, output, hash."""
    seconds = {}
    for line in (folder / ".ninja_log").read_text().splitlines()[1:]:
        begin, end, _, output, _ = line.split("\t")
        if output.endswith(".o"):
            seconds[output] = (int(end) - int(begin)) / 1000
    return seconds


def library_of(output):
    return re.sub(r"/[^/]*\.p/.*", "", re.sub(r"/lib[^/]*\.(a|so)[^/]*\.p/.*", "", output))


def print_build(folder):
    seconds = seconds_of_objects(folder)
    libraries = collections.Counter()
    for output, each in seconds.items():
        libraries[library_of(output)] += each
    print(f"{sum(seconds.values()):.0f} s in {len(seconds)} objects of {folder.name}\n")
    table(["library", "seconds"], [(name, f"{each:.1f}") for name, each in libraries.most_common(ROWS)])
    slowest = sorted(seconds.items(), key=lambda item: -item[1])[:10]
    table(["object", "seconds"], [(re.sub(r"[^/]*\.p/(meson-generated_)?", "", name), f"{each:.1f}") for name, each in slowest])


def header_name(path):
    path = re.sub(r"^.*/include/c\+\+/[0-9.]+/", "", path)
    for prefix in (str(ROOT) + "/", "/usr/include/", "../"):
        path = path.removeprefix(prefix)
    return path


def add_trace(events, kinds, headers, counts):
    """Adds one compiler run. A header's seconds include all headers that it includes; a header below another
    one of the same origin (dtf, or others) isn't listed."""
    stack = []
    for event in sorted((e for e in events if e.get("name") == "Source"), key=lambda e: (e["ts"], -e["dur"])):
        while stack and stack[-1][0] <= event["ts"]:
            stack.pop()
        path = event["args"]["detail"]
        is_foreign = path.startswith("/usr/")
        if is_foreign and not any(foreign for _, foreign in stack):
            headers[header_name(path)] += event["dur"] / 1e6
            counts[header_name(path)] += 1
        stack.append((event["ts"] + event["dur"], is_foreign))
    for event in events:
        if event.get("name", "").startswith("Total "):
            kinds[event["name"].removeprefix("Total ")] += event["dur"] / 1e6


KINDS = {"Source": "reading headers", "ParseClass": "parsing classes", "InstantiateClass": "instantiating classes",
         "InstantiateFunction": "instantiating functions", "Frontend": "front end, all of it", "OptFunction": "optimising functions",
         "CodeGenPasses": "generating code", "Backend": "back end, all of it", "ExecuteCompiler": "whole compiler"}


def print_headers(folder):
    environment = {**os.environ, "CC": "clang-14", "CXX": "clang++-14", "CXXFLAGS": "-ftime-trace", "CCACHE_DISABLE": "1"}
    subprocess.run([ROOT / "scripts/build.sh", "--unity", folder, "-Dcuda=disabled", "--", "launcher/dtf-launch", "daemons/psd/psd",
                    "daemons/workerd/workerd"], check=True, env=environment, stdout=subprocess.DEVNULL)
    kinds, headers, counts = collections.Counter(), collections.Counter(), collections.Counter()
    for file in sorted((ROOT / folder).rglob("*.json")):
        if ".p/" not in str(file):
            continue
        add_trace(json.loads(file.read_text())["traceEvents"], kinds, headers, counts)
    table(["work of the compiler", "seconds"], [(text, f"{kinds[kind]:.1f}") for kind, text in KINDS.items()])
    table(["header of others", "read", "seconds"],
          [(f"`{name}`", counts[name], f"{each:.1f}") for name, each in headers.most_common(ROWS)])


def print_tests(folders):
    rows = []
    for folder in folders:
        for log in sorted((folder / "meson-logs").glob("*.json")):
            for line in log.read_text().splitlines():
                if line.strip():
                    test = json.loads(line)
                    cores = re.findall(r"^([0-9.]+) s of a core$", test.get("stdout", ""), re.MULTILINE)
                    rows.append((folder.name, test["name"].split(" / ")[-1], test["duration"], cores[-1] if cores else ""))
    suites = collections.Counter()
    for name, _, seconds, _ in rows:
        suites[name] += seconds
    table(["folder", "tests", "seconds"], [(name, sum(row[0] == name for row in rows), f"{each:.0f}") for name, each in suites.items()])
    table(["folder", "test", "seconds", "of a core"],
          [(name, test, f"{each:.1f}", cores) for name, test, each, cores in sorted(rows, key=lambda row: -row[2])[:40]])


def main(arguments):
    verb, folders = arguments[0] if arguments else "", arguments[1:]
    if verb == "build" and len(folders) <= 1:
        print_build(ROOT / (folders or ["build"])[0])
    elif verb == "headers" and len(folders) <= 1:
        print_headers((folders or ["build-trace"])[0])
    elif verb == "tests" and folders:
        print_tests([ROOT / folder for folder in folders])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
