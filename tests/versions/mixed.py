#!/usr/bin/env python3
"""Trains one synchronous job by tasks of two builds, each task in turn the other build's, and compares the parameters.

Usage: tests/versions/mixed.py BUILD OTHER_BUILD
  BUILD, OTHER_BUILD  folders that scripts/build.sh has made, of two versions

Prints a line for each mixture. Ends with 0 if every job is done with the same parameters.
"""
import json
import pathlib
import socket
import subprocess
import sys
import tempfile

TASKS = ("psd", 0), ("psd", 1), ("workerd", 0), ("workerd", 1)
JOB_SECONDS_MAX = 300
JOB = """job: mixed
run_dir: {folder}/run
cluster:
  ps: [{addresses[0]}, {addresses[1]}]
  worker: [{addresses[2]}, {addresses[3]}]
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: 10, name: softmax}}]
    loss: softmax_cross_entropy
  data: {{train: {{format: digits, count: 600}}, batch_size: 20, seed: 7}}
  optimizer: {{adam: {{learning_rate: 0.001}}}}
  replication: {{mode: sync}}
  steps: 200
"""


def free_addresses():
    listeners = [socket.create_server(("localhost", 0)) for _ in TASKS]
    addresses = [f"localhost:{listener.getsockname()[1]}" for listener in listeners]
    for listener in listeners:
        listener.close()
    return addresses


def train(builds):
    """Returns the digest of the parameters; None: the job is not done. `builds`: of each task."""
    with tempfile.TemporaryDirectory(prefix="dtf-mixed-") as folder:
        file = pathlib.Path(folder, "job.yaml")
        file.write_text(JOB.format(folder=folder, addresses=free_addresses()))
        processes = [
            subprocess.Popen([f"{build}/daemons/{program}/{program}", "--cluster", file, "--task", str(task)],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for build, (program, task) in zip(builds, TASKS)]
        try:
            statuses = [process.wait(JOB_SECONDS_MAX) for process in processes]
        finally:
            for process in processes:
                process.kill()
        if any(statuses):
            return None
        return json.loads(pathlib.Path(folder, "run/summary.json").read_text()).get("parameters_digest")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, other = (pathlib.Path(folder).resolve() for folder in sys.argv[1:])
    expected = train([build] * len(TASKS))
    print(f"all of {build}: {expected}")
    are_equal = expected is not None
    mixtures = [("each ps", (0, 1)), ("each worker", (2, 3))] + [(f"{p}/{i}", (k,)) for k, (p, i) in enumerate(TASKS)]
    for name, others in mixtures:
        digest = train([other if task in others else build for task in range(len(TASKS))])
        print(f"{name} of {other}: {digest}{'' if digest == expected else ', NOT the same'}", flush=True)
        are_equal = are_equal and digest == expected
    sys.exit(0 if are_equal else 1)


if __name__ == "__main__":
    main()
