#!/usr/bin/env python3
"""Prints the ninja targets that the tests of some suites need.

Usage: suite-targets.py BUILD_FOLDER SUITE...
"""
import json
import os
import subprocess
import sys


def introspect(folder, what):
    return json.loads(subprocess.run(["meson", "introspect", folder, f"--{what}"], check=True, capture_output=True, text=True).stdout)


def without_tests(tests, suites):
    """The suites without tests: misspelt, or emptied."""
    return sorted(suites - {suite.rsplit(":", 1)[-1] for test in tests for suite in test["suite"]})


def targets_of(tests, targets, suites):
    """The files of every target that a test of `suites` starts or depends on, in the order of the tests."""
    files = {target["id"]: target["filename"] for target in targets}
    built = {name for names in files.values() for name in names}
    wanted = {}
    for test in tests:
        if not suites & {suite.rsplit(":", 1)[-1] for suite in test["suite"]}:
            continue
        for name in test["cmd"]:
            if name in built:
                wanted[name] = True
        for target in test["depends"]:
            wanted.update((name, True) for name in files[target])
    return list(wanted)


if __name__ == "__main__":
    folder, suites = sys.argv[1], set(sys.argv[2:])
    tests = introspect(folder, "tests")
    if missing := without_tests(tests, suites):
        sys.exit(f"suite-targets.py: error: {folder} has no test of the suite {', '.join(missing)}")
    found = targets_of(tests, introspect(folder, "targets"), suites)
    print("\n".join(os.path.relpath(name, folder) for name in found))
