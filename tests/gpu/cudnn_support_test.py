#!/usr/bin/env python3
"""Asks cuDNN, where no GPU is, whether an H200 could run the convolutions of the networks that people train.

Usage: cudnn_support_test.py PROGRAM TABLE [--write]
A line of the table: a name, the convolution (see cudnn_support_main.cc), and for each pass how many engine configurations keep
float32's precision and give the same bits each time, how many do with TF32, and how many in bfloat16. The numbers are of one version of cuDNN,
which the table names; with another one it is enough that there is one of each. Each question has a process of its own.
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

PASSES = ("forward", "backprop_input", "backprop_filter")


def ask(program, properties, which, shape):
    done = subprocess.run([program, properties, which, *shape], capture_output=True, text=True, timeout=120)
    found = re.fullmatch(r"(\d+) float32, (\d+) TF32, (\d+) bfloat16\n", done.stdout)
    if done.returncode == 0 and found:
        return "/".join(found.groups()), ""
    return "0/0/0", f"exit {done.returncode}: {done.stderr.strip() or done.stdout.strip()}"


def main(program, table, write):
    table = pathlib.Path(table)
    properties = str(table.parent / "h200.json")
    lines = table.read_text().splitlines()
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    same_version = f"# cudnn {version}" in lines
    print(f"cuDNN {version}; the table is of {'the same' if same_version else 'another'} version")
    made, problems, asked = [], [], 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for line in lines:
            if line.startswith("#") or not line.strip():
                made.append(f"# cudnn {version}" if line.startswith("# cudnn") else line)
                continue
            name, *words = line.split()
            shape, expected = words[:10], words[10:]
            answers = list(pool.map(lambda which, shape=shape: ask(program, properties, which, shape), PASSES))
            asked += len(answers)
            made.append(f"{name:15}{' '.join(shape):32}{' '.join(answer for answer, _ in answers)}")
            for which, (answer, error), wanted in zip(PASSES, answers, expected + [""] * 3):
                if error or "0" in answer.split("/"):
                    problems.append(f"{name} {which}: {answer} {error}")
                elif same_version and answer != wanted and not write:
                    problems.append(f"{name} {which}: {answer}, the table has {wanted or 'nothing'}")
    if write:
        table.write_text("\n".join(made) + "\n")
    for problem in problems:
        print("error: " + problem)
    print(f"{asked} convolutions asked for, {len(problems)} problems")
    return 1 if problems or asked == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "--write" in sys.argv[3:]))
