#!/usr/bin/env python3
"""Today's programs read the files and messages of each version of dtf: tests/versions/<version>/ is
kept for ever.

Usage: versions_test.py BUILD_FOLDER            tests each version
       versions_test.py BUILD_FOLDER --record   writes the folder of this version, which must not
                                                be there: before a release

For each version, its checkpoint is evaluated and trained on. A ps of today takes its worker's
first bytes, and a worker of today the ps's answer to them.
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
# Layers, keys and a loss under names of version 0.1.0 that Keras's have replaced since.
NAMES = f"""job: recorded
run_dir: run
cluster: {{ps: ['localhost:auto', 'localhost:auto'], worker: ['localhost:auto']}}
train:
  model:
    input: {{shape: [4]}}
    layers:
      - dense: {{units: 4, activation: relu, name: numbers}}
      - batch_norm:
      - embedding: {{categories: user, vocabulary: 1000, dimension: 1, combiner: sum}}
      - embedding: {{categories: item, vocabulary: 500, dimension: 1, combiner: sum}}
      - concat: {{with: [batch_norm, embedding]}}
      - batch_norm:
      - dense: {{units: 1}}
    loss: sigmoid_cross_entropy
  data:
    train: {{format: synthetic, problem: clicks, count: 600}}
    eval: {{format: synthetic, problem: clicks, count: 100}}
    batch_size: 10
    seed: 3
  optimizer: {{adagrad: {{learning_rate: 0.05}}}}
  replication: {{mode: sync}}
  checkpoint: {{every_steps: {STEPS}, keep: 1}}
  steps: {STEPS}
"""
TODAYS = {"batch_norm": "batch_normalization", "concat": "concatenate", "vocabulary": "input_dim", "dimension": "output_dim",
          "sigmoid_cross_entropy": "binary_crossentropy"}
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

    def run(self, folder, *words):
        """The last line of dtf-launch on stdout, and its stderr; it must end well."""
        done = subprocess.run([self.launch, *words, "--json"], cwd=folder, capture_output=True, text=True, timeout=SOON, check=False)
        assert done.returncode == 0, f"{words}: {done.returncode}: {done.stderr}"
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    def json(self, folder, *words):
        return self.run(folder, *words)[0]

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
    """At least `count` bytes, and all others that arrive with them."""
    connection.settimeout(SOON)
    data = b""
    while len(data) < count:
        more = connection.recv(65536)
        assert more, f"closed after {len(data)} of {count} bytes"
        data += more
    return data


def everything(connection, silence=1.0):
    """All bytes until the peer falls silent."""
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


def record_checkpoint(programs, folder, job):
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(job)
    with tempfile.TemporaryDirectory() as work:
        shutil.copy(folder / "cluster.yaml", work)
        programs.json(work, "cluster.yaml")
        (folder / "eval.json").write_text(json.dumps(programs.json(work, "eval", "cluster.yaml"), indent=1) + "\n")
        shutil.copytree(pathlib.Path(work) / f"run/checkpoints/step-{STEPS}", folder / f"step-{STEPS}")


def record(programs, folder):
    record_checkpoint(programs, folder, JOB)
    record_checkpoint(programs, folder / "names", NAMES)
    (folder / "handshake.yaml").write_text(HANDSHAKE)
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


def same_numbers(then, now):
    numbers = {key: value for key, value in then.items() if isinstance(value, float)}
    assert numbers, then
    for key, value in numbers.items():  # the last bits are the instruction set's
        assert math.isclose(now[key], value, rel_tol=1e-5), f"{key}: {now[key]}, and {value} then"


def its_checkpoint_is_evaluated_as_then(programs, kept, work):
    same_numbers(json.loads((kept / "eval.json").read_text()), programs.json(work, "eval", "cluster.yaml"))


def trained_on(programs, work):
    summary, said = programs.run(work, "cluster.yaml", "--set", f"train.steps={STEPS + MORE_STEPS}")
    assert summary["outcome"] == "done" and summary["global_step"] == STEPS + MORE_STEPS, summary
    log = next((work / "run/logs").glob("worker-0.*.log")).read_text()
    assert re.search(rf"event=restored .*global_step={STEPS}\b", log), log
    return summary, said, re.findall(r'event=settings_changed .*changes="([^"]*)"', log)


def its_checkpoint_is_trained_on(programs, _kept, work):
    trained_on(programs, work)


def its_names_and_todays_go_on_to_the_same_bits(programs, kept, work):
    """The same file, and with each old name replaced: variables have other names, and the same values."""
    old = (kept / "names/cluster.yaml").read_text()
    todays = old
    for was, now in TODAYS.items():
        todays = re.sub(rf"\b{was}\b", now, todays)
    todays = todays.replace("combiner: sum", "combiner: sum, embeddings_initializer: glorot_uniform")  # as the warning advises
    digests = []
    for spelling, text in (("old", old), ("todays", todays)):
        folder = work / spelling
        shutil.copytree(kept / f"names/step-{STEPS}", folder / f"run/checkpoints/step-{STEPS}")
        (folder / "cluster.yaml").write_text(text)
        same_numbers(json.loads((kept / "names/eval.json").read_text()), programs.json(folder, "eval", "cluster.yaml"))
        summary, said, changes = trained_on(programs, folder)
        assert changes == [f"steps {STEPS} -> {STEPS + MORE_STEPS}"], changes
        digests.append(summary["parameters_digest"])
        for was, now in TODAYS.items():
            warned = re.findall(rf"^cluster.yaml:\d+:\d+: warning: '{was}' is called '{now}' now", said, re.MULTILINE)
            assert len(warned) == (spelling == "old"), (was, said)
    assert digests[0] == digests[1], digests


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


CASES = [its_checkpoint_is_evaluated_as_then, its_checkpoint_is_trained_on, its_names_and_todays_go_on_to_the_same_bits, a_ps_takes_its_workers_hello,
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
        record(programs, folder)
        return 0
    kept = sorted(VERSIONS.glob("*.*.*"))
    assert kept, f"no version in {VERSIONS}"
    return 1 if sum(check(programs, folder) for folder in kept) else 0


if __name__ == "__main__":
    sys.exit(main())
