#!/usr/bin/env python3
"""What each version of dtf has written and said, today's programs read: tests/versions/<version>/ is kept for ever.

Usage: versions_test.py BUILD_FOLDER            for each version: its checkpoint is evaluated and trained on; a ps of today
                                                takes its worker's first bytes, a worker of today the ps's answer to them
       versions_test.py BUILD_FOLDER --record   writes the folder of this version, which must not be there: before a release
"""
import json
import math
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

VERSIONS = pathlib.Path(__file__).resolve().parents[1] / "versions"
STEPS, MORE_STEPS = 60, 30
WORKER = "localhost:40017"  # its address is in its hello; nobody listens there
SOON = 60  # seconds
JOB = f"""job: recorded
run_dir: run
cluster: {{ps: ['localhost:auto', 'localhost:auto'], worker: ['localhost:auto']}}
train:
  model: {{input: {{shape: [16]}}, layers: [dense: {{units: 8, activation: relu}}, batch_norm: , dense: {{units: 3}}],
    loss: softmax_cross_entropy}}
  data:
    train: {{format: synthetic, problem: centres, classes: 3, count: 300}}
    eval: {{format: synthetic, problem: centres, classes: 3, count: 100}}
    batch_size: 10
    seed: 3
  optimizer: {{adam: {{learning_rate: 0.01, moving_average: {{decay: 0.9}}}}}}
  replication: {{mode: sync}}
  placement: {{partition: {{min_bytes: 64}}}}
  checkpoint: {{every_steps: {STEPS}, keep: 1}}
  steps: {STEPS}
"""
HANDSHAKE = f"""job: recorded
run_dir: run
cluster: {{ps: ['localhost:1'], worker: ['{WORKER}']}}
timeouts: {{start_seconds: 20}}
train:
  model: {{input: {{shape: [28, 28, 1]}}, layers: [flatten: , dense: {{units: 10}}], loss: softmax_cross_entropy}}
  data: {{train: {{format: digits, count: 100}}, batch_size: 10}}
  steps: 10
"""


class Programs:
    def __init__(self, build):
        self.psd, self.workerd = build / "daemons/psd/psd", build / "daemons/workerd/workerd"
        self.launch = build / "launcher/dtf-launch"

    def version(self):
        return subprocess.run([self.psd, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]

    def json(self, folder, *words):
        """The last line that dtf-launch says on stdout, which must end well."""
        done = subprocess.run([self.launch, *words, "--json"], cwd=folder, capture_output=True, text=True, timeout=SOON, check=False)
        assert done.returncode == 0, f"{words}: {done.returncode}: {done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    def task(self, program, folder, port):
        with open(pathlib.Path(folder) / "said", "w") as said:
            return subprocess.Popen([program, "--cluster", "handshake.yaml", "--task", "0", "--set", f"cluster.ps.0=localhost:{port}"],
                                    cwd=folder, stdin=subprocess.DEVNULL, stderr=said)


def until(what, asked):
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        answer = asked()
        if answer:
            return answer
        time.sleep(0.02)
    raise AssertionError(f"no {what} within {SOON} s")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def received(connection, count):
    """At least so many bytes, and what comes with them."""
    connection.settimeout(SOON)
    data = b""
    while len(data) < count:
        more = connection.recv(65536)
        assert more, f"closed after {len(data)} of {count} bytes"
        data += more
    return data


def everything(connection, silence=1.0):
    """Until nothing more comes."""
    data = received(connection, 1)
    connection.settimeout(silence)
    try:
        while more := connection.recv(65536):
            data += more
    except TimeoutError:
        pass
    return data


def greet(port, hello):
    """A connection to a ps that has been sent `hello`."""
    def connected():
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            return None
    connection = until("ps that listens", connected)
    connection.sendall(hello)
    return connection


def end(process):
    process.kill()
    process.wait()


def record(programs, folder):
    (folder / "cluster.yaml").write_text(JOB)
    (folder / "handshake.yaml").write_text(HANDSHAKE)
    with tempfile.TemporaryDirectory() as work:
        shutil.copy(folder / "cluster.yaml", work)
        programs.json(work, "cluster.yaml")
        (folder / "eval.json").write_text(json.dumps(programs.json(work, "eval", "cluster.yaml"), indent=1) + "\n")
        shutil.copytree(pathlib.Path(work) / f"run/checkpoints/step-{STEPS}", folder / f"step-{STEPS}")
    with tempfile.TemporaryDirectory() as work, socket.create_server(("127.0.0.1", 0)) as listening:
        shutil.copy(folder / "handshake.yaml", work)
        worker = programs.task(programs.workerd, work, listening.getsockname()[1])
        with listening.accept()[0] as connection:
            hello = everything(connection)
        end(worker)
        port = free_port()
        ps = programs.task(programs.psd, work, port)
        with greet(port, hello) as connection:
            answer = everything(connection)
        end(ps)
    (folder / "hello.bin").write_bytes(hello)
    (folder / "answer.bin").write_bytes(answer)
    print(f"recorded {folder}: {len(hello)} and {len(answer)} bytes; add it to the repository")


def its_checkpoint_is_evaluated_as_then(programs, kept, work):
    then = json.loads((kept / "eval.json").read_text())
    now = programs.json(work, "eval", "cluster.yaml")
    numbers = {key: value for key, value in then.items() if isinstance(value, float)}
    assert numbers, then
    for key, value in numbers.items():  # the last bits are the instruction set's
        assert math.isclose(now[key], value, rel_tol=1e-5), f"{key}: {now[key]}, and {value} then"


def its_checkpoint_is_trained_on(programs, _kept, work):
    summary = programs.json(work, "cluster.yaml", "--set", f"train.steps={STEPS + MORE_STEPS}")
    assert summary["outcome"] == "done" and summary["global_step"] == STEPS + MORE_STEPS, summary
    log = next((work / "run/logs").glob("worker-0.*.log")).read_text()
    assert re.search(rf"event=restored .*global_step={STEPS}\b", log), log


def a_ps_takes_its_workers_hello(programs, kept, work):
    port = free_port()
    ps = programs.task(programs.psd, work, port)
    with greet(port, (kept / "hello.bin").read_bytes()) as connection:
        received(connection, len((kept / "answer.bin").read_bytes()) // 2)
        until("worker that joined", lambda: "event=joined worker=worker/0" in (work / "said").read_text())
    end(ps)


def a_worker_takes_its_ps_answer(programs, kept, work):
    """It goes on, and declares the model."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        worker = programs.task(programs.workerd, work, listening.getsockname()[1])
        with listening.accept()[0] as connection:
            received(connection, len((kept / "hello.bin").read_bytes()) // 2)
            connection.sendall((kept / "answer.bin").read_bytes())
            data = b""
            while b"dense/weights" not in data:
                data = data[-16:] + received(connection, 1)
    end(worker)


CASES = [its_checkpoint_is_evaluated_as_then, its_checkpoint_is_trained_on, a_ps_takes_its_workers_hello,
         a_worker_takes_its_ps_answer]


def check(programs, kept):
    failed = 0
    for case in CASES:
        name, begin = f"Versions.{kept.name}.{case.__name__}", time.monotonic()
        print(f"[ RUN      ] {name}", flush=True)
        verdict = "[       OK ]"
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            (work / "run/checkpoints").mkdir(parents=True)
            shutil.copytree(kept / f"step-{STEPS}", work / f"run/checkpoints/step-{STEPS}")
            for file in ("cluster.yaml", "handshake.yaml"):
                shutil.copy(kept / file, work)
            try:
                case(programs, kept, work)
            except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
                print(f"{type(error).__name__}: {error}")
                verdict, failed = "[  FAILED  ]", failed + 1
        print(f"{verdict} {name} ({1000 * (time.monotonic() - begin):.0f} ms)", flush=True)
    return failed


def main():
    programs = Programs(pathlib.Path(sys.argv[1]).resolve())
    if sys.argv[2:] == ["--record"]:
        folder = VERSIONS / programs.version()
        folder.mkdir(parents=True)
        record(programs, folder)
        return 0
    kept = sorted(VERSIONS.glob("*.*.*"))
    assert kept, f"no version in {VERSIONS}"
    return 1 if sum(check(programs, folder) for folder in kept) else 0


if __name__ == "__main__":
    sys.exit(main())
