#!/usr/bin/env python3
"""Counts the results of a run of `meson test`, case by case: gtest exits with 0 even if all its cases were skipped.

Usage: count_tests.py BUILD_FOLDER [LOG]    LOG: the value of `meson test --logbase`, or testlog
Prints "PASSED FAILED SKIPPED", then a line for each skipped case with its reason, then a line for each failed case with
its output.
"""
import json
import pathlib
import re
import sys

RAN = re.compile(r"^\[       OK \] (\S+)", re.M)
FAILED = re.compile(r"^\[  FAILED  \] ([^\s,]+).* \(\d+ ms\)$", re.M)
SKIPPED = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)$", re.M)
STARTED = re.compile(r"^\[ RUN      \] (\S+)$", re.M)
SAID_MAX = 500  # characters of a failed case's output


def reason_of(output, case):
    """The text of GTEST_SKIP(): between the case's start and its end, below the line that names the source."""
    begin = output.index(f"[ RUN      ] {case}\n")
    lines = output[begin:output.index(f"[  SKIPPED ] {case} ", begin)].splitlines()[1:]
    said = [line for line in lines if line.strip() and not line.endswith(": Skipped")]
    return " ".join(said) or "no reason given"


def said_by(output, case):
    """The start of a failed case's output, on one line; without an end, all following output belongs to the case."""
    begin = output.find(f"[ RUN      ] {case}\n")
    end = output.find(f"[  FAILED  ] {case}", begin)
    lines = output[begin:end if end >= 0 else len(output)].splitlines()[1:]
    return " | ".join(line.strip() for line in lines if line.strip())[:SAID_MAX] or "it said nothing"


def failures_of(test, name, output):
    """A line for each failed case; if the process died, a line for its current case."""
    cases = list(dict.fromkeys(FAILED.findall(output)))
    started = STARTED.findall(output)
    if not cases and started and f"[       OK ] {started[-1]} " not in output:
        cases = started[-1:]
    if cases:
        return [f"{name}: {case}: {said_by(output, case)}" for case in cases]
    tail = " | ".join(line.strip() for line in output.splitlines() if line.strip())
    return [f"{name}: {test['result']}: {tail[-SAID_MAX:] or 'it said nothing'}"]


def count_one(test):
    """(passed, failed, [reason of each skipped], [a line for each failed]) of one line of testlog.json."""
    name = test["name"].split(" / ")[-1]
    output = test.get("stdout", "") + test.get("stderr", "")
    if test["result"] == "SKIP":
        reasons = [line.split("SKIPPED: ", 1)[1] for line in output.splitlines() if "SKIPPED: " in line]
        return 0, 0, [f"{name}: {reasons[-1] if reasons else 'no reason given'}"], []
    passed, failed = len(RAN.findall(output)), len(set(FAILED.findall(output)))
    skipped = [f"{name}: {case}: {reason_of(output, case)}" for case in SKIPPED.findall(output)]
    if test["result"] not in ("OK", "EXPECTEDFAIL"):
        return passed, max(1, failed), skipped, failures_of(test, name, output)
    return passed if passed + len(skipped) else 1, failed, skipped, failures_of(test, name, output) if failed else []


def count(log):
    counts = [count_one(json.loads(line)) for line in log.splitlines() if line.strip()]
    return (sum(c[0] for c in counts), sum(c[1] for c in counts), [reason for c in counts for reason in c[2]],
            [line for c in counts for line in c[3]])


if __name__ == "__main__":
    log = pathlib.Path(sys.argv[1]) / "meson-logs" / f"{(sys.argv[2:] or ['testlog'])[0]}.json"
    passed, failed, skipped, failures = count(log.read_text())
    print(passed, failed, len(skipped))
    print("\n".join(skipped + failures))
