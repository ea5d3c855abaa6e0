#!/usr/bin/env python3
"""The classic program mnist_dist (common/api/examples), started as in four terminals, again and again on the same ports: two ps, two
workers, in any order, in C++, in Python and in both, in async and in sync. Each program ends with 0.

Usage: many_starts_test.py LIBDTF MNIST_DIST         MNIST_DIST: the program in C++; needs DTF_SOURCE_ROOT

4 starts, or as many as DTF_STARTS says. Python without numpy fails the test: the package needs it.
"""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["DTF_SOURCE_ROOT"]).resolve()
sys.path.insert(0, str(SOURCE / "tests/support"))
from serving_tasks import PATIENCE, free_ports  # noqa: E402  the path is set above

SEED, STEPS, FAILURES_MAX = 20261206, 60, 3


class Start:
    """Four processes on the ports."""

    def __init__(self, number, programs, ports, folder):
        of_ps, of_workers = programs[number % 2], programs[number // 2 % 2]
        is_sync = (number + number // 4) % 2
        self.name = f"start {number}: ps in {of_ps[0]}, workers in {of_workers[0]}, {'sync' if is_sync else 'async'}"
        self.log_dir = folder / f"run-{number}"
        hosts = [",".join(f"localhost:{port}" for port in half) for half in (ports[:2], ports[2:])]
        common = [f"--ps_hosts={hosts[0]}", f"--worker_hosts={hosts[1]}", f"--train_steps={STEPS}", f"--log_dir={self.log_dir}",
                  f"--issync={is_sync}"]
        tasks = [(job, index) for job in ("ps", "worker") for index in (0, 1)]
        random.Random(SEED + number).shuffle(tasks)
        self.processes = {}
        for job, index in tasks:
            program = (of_ps if job == "ps" else of_workers)[1]
            self.processes[f"{job}/{index}"] = subprocess.Popen(
                [*program, *common, f"--job_name={job}", f"--task_index={index}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True)

    def kill(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def failure(self):
        """Waits for the ends. Returns the mistakes with all output; empty: there is none."""
        outputs, wrong = {}, []
        for name in ("worker/0", "worker/1", "ps/0", "ps/1"):
            process = self.processes[name]
            if name.startswith("ps/"):
                process.send_signal(signal.SIGTERM)
            try:
                outputs[name], _ = process.communicate(timeout=PATIENCE)
                if process.returncode != 0:
                    wrong.append(f"{name} ended with {process.returncode}")
            except subprocess.TimeoutExpired:
                wrong.append(f"{name} has not ended within {PATIENCE} s")
                process.kill()
                outputs[name], _ = process.communicate()
        if not re.search(r"^accuracy on 2000 digits: ", outputs["worker/0"], re.M):
            wrong.append("worker/0 printed no accuracy")
        if not list((self.log_dir / "checkpoints").glob("step-*")):
            wrong.append("there is no checkpoint")
        shutil.rmtree(self.log_dir, ignore_errors=True)
        texts = "".join(f"---- {name}\n{output}" for name, output in outputs.items())
        return f"{self.name}: {'; '.join(wrong)}\n{texts}" if wrong else ""


def main(library, cpp):
    starts = int(os.environ.get("DTF_STARTS", "4"))
    os.environ.update(DTF_LIBRARY=str(pathlib.Path(library).resolve()), PYTHONPATH=str(SOURCE / "common/api/python"))
    programs = [("Python", [sys.executable, str(SOURCE / "common/api/examples/mnist_dist.py")]), ("C++", [str(pathlib.Path(cpp).resolve())])]
    ports, failures, seconds = free_ports(4), [], []
    print(f"seed {SEED}, ports {ports}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(starts):
            begin = time.monotonic()
            start = Start(number, programs, ports, pathlib.Path(folder))
            try:
                failure = start.failure()
            finally:
                start.kill()
            seconds.append(time.monotonic() - begin)
            print(f"{start.name}: {seconds[-1]:.1f} s{', FAILED' if failure else ''}", flush=True)
            failures += [failure] if failure else []
            if len(failures) == FAILURES_MAX:
                break
    seconds.sort()
    print(f"{len(seconds)} starts, {len(failures)} failures; seconds: median {seconds[len(seconds) // 2]:.1f}, most {seconds[-1]:.1f}, "
          f"in all {sum(seconds):.0f}")
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
