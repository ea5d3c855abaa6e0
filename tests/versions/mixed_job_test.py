#!/usr/bin/env python3
"""Jobs whose tasks are of two versions: each task in turn is of the other one, and a job whose tasks are replaced one after the
other, as in an upgrade.

Usage: mixed_job_test.py BUILD_FOLDER PREVIOUS_BUILD_FOLDER      scripts/previous-version.sh makes the second

Each job must end with the outcome and the parameters of a job of one version.
"""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

TASKS = ("ps/0", "ps/1", "worker/0", "worker/1")
STEPS, LONG_STEPS = 300, 40000
PATIENCE = 300  # seconds: a hang


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Cluster:
    """Tasks by hand, each of a version of its own. Owns their processes."""

    def __init__(self, folder, steps):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        ports = free_ports(4)
        self.file = self.folder / "job.yaml"
        self.file.write_text(f"""job: mixed
run_dir: {self.folder}/run
cluster:
  ps: ['127.0.0.1:{ports[0]}', '127.0.0.1:{ports[1]}']
  worker: ['127.0.0.1:{ports[2]}', '127.0.0.1:{ports[3]}']
durability: replica
timeouts: {{rejoin_seconds: 120}}
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: 32, name: first}}, dense: {{units: 10, name: softmax}}]
    loss: softmax_cross_entropy
  data: {{train: {{format: digits, count: 600}}, batch_size: 20, seed: 7}}
  optimizer: {{adam: {{learning_rate: 0.001}}}}
  replication: {{mode: sync}}
  steps: {steps}
  report: {{every_steps: 50}}
  checkpoint: {{every_seconds: 3600}}
""")
        self.processes = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def log(self, task):
        return self.folder / (task.replace("/", "-") + ".log")

    def start(self, task, build):
        kind, _, index = task.partition("/")
        program = {"ps": "psd/psd", "worker": "workerd/workerd"}[kind]
        with open(self.log(task), "ab") as log:
            self.processes[task] = subprocess.Popen([f"{build}/daemons/{program}", "--cluster", self.file, "--task", index],
                                                    stdout=log, stderr=log)

    def replace(self, task, build):
        """As a service manager does in an upgrade: the old process is ended, the next one is of the new version."""
        self.processes[task].send_signal(signal.SIGKILL)
        self.processes[task].wait()
        self.start(task, build)

    def wait_for(self, task, text, times=1):
        end = time.monotonic() + PATIENCE
        while self.log(task).read_text(errors="replace").count(text) < times:
            assert time.monotonic() < end, f"{task} has not logged '{text}'\n{self.tail()}"
            assert self.processes[task].poll() is None, f"{task} has ended\n{self.tail()}"
            time.sleep(0.02)

    def tail(self):
        return "".join(f"--- {task}\n{self.log(task).read_text(errors='replace')[-1500:]}" for task in TASKS if self.log(task).exists())

    def digest(self):
        end = time.monotonic() + PATIENCE
        for task, process in self.processes.items():
            code = process.wait(max(1, end - time.monotonic()))
            assert code == 0, f"{task} has ended with {code}\n{self.tail()}"
        summary = json.loads((self.folder / "run/summary.json").read_text())
        assert summary["outcome"] == "done", summary
        return summary["parameters_digest"]


def digest_of(folder, builds, steps=STEPS):
    with Cluster(folder, steps) as cluster:
        for task, build in builds.items():
            cluster.start(task, build)
        return cluster.digest()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    new, old = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="dtf-mixed-") as name:
        folder = pathlib.Path(name)
        wanted = digest_of(folder / "new", dict.fromkeys(TASKS, new))
        assert digest_of(folder / "old", dict.fromkeys(TASKS, old)) == wanted, "the two versions compute otherwise"
        for task in TASKS:
            for mine, others in ((old, new), (new, old)):
                kind = "previous" if mine == old else "new"
                place = folder / f"{task.replace('/', '-')}-{kind}"
                assert digest_of(place, {**dict.fromkeys(TASKS, others), task: mine}) == wanted, f"{task} of the {kind} version"
                print(f"{task} of the {kind} version among the others: done, the same parameters", flush=True)
        long = digest_of(folder / "long", dict.fromkeys(TASKS, new), LONG_STEPS)
        with Cluster(folder / "upgrade", LONG_STEPS) as cluster:
            for task in TASKS:
                cluster.start(task, old)
            cluster.wait_for("worker/0", "event=joined")
            for count, task in enumerate(("worker/1", "ps/1", "ps/0", "worker/0")):
                before = cluster.log("worker/0").read_text(errors="replace").count("event=progress")
                cluster.wait_for("worker/0", "event=progress", before + 2)
                cluster.replace(task, new)
            assert cluster.digest() == long, "a job that is upgraded while it trains"
        print("each task replaced by one of the new version while it trains: done, the same parameters")


if __name__ == "__main__":
    main()
