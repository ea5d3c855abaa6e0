"""The same work by dtf, TensorFlow and PyTorch on the same cores, in turns: medians and ratios, as
one Markdown table.

scripts/bench-peers.sh starts it, and describes the comparison. It needs nothing but Python's own
library; the peers run in the environment that --python names.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RUN_SECONDS_MAX = 300
RATE, MICROSECONDS, MILLISECONDS = "steps/s", "us", "ms"
# Each row: its name, its unit, and the path of its figure in the result of a run.
ROWS = [
    ("softmax, async", RATE, ("softmax", "async", "steps_per_second")),
    ("softmax, sync", RATE, ("softmax", "sync", "steps_per_second")),
    ("784-300-100-10, sync", RATE, ("mlp", "sync", "steps_per_second")),
    ("LeNet, batch 128, sync", RATE, ("lenet", "sync", "steps_per_second")),
    ("Criteo's shape, three layers of 400, async", RATE, ("clicks", "async", "steps_per_second")),
    ("Criteo's shape, a layer of 32, async", RATE, ("rows", "async", "steps_per_second")),
    ("null step, scalar", MICROSECONDS, ("null", "sync", "scalar_us")),
    ("null step, 100 MB", MILLISECONDS, ("null", "sync", "dense_ms")),
]
DTF_STEPS = {("softmax", "async"): 30000, ("softmax", "sync"): 12000, ("mlp", "sync"): 1500, ("lenet", "sync"): 100,
             ("clicks", "async"): 400, ("rows", "async"): 1500}
PEER_STEPS = {("softmax", "async"): 1000, ("softmax", "sync"): 500, ("mlp", "sync"): 200, ("lenet", "sync"): 30,
              ("clicks", "async"): 200, ("rows", "async"): 400, ("null", "sync"): 500}
BATCH = {"lenet": 128, "clicks": 1000, "rows": 1000}  # of a worker; else 100
# The shape of Criteo's data in a model, and its layers.
HIDDEN = {"clicks": [400, 400, 400], "rows": [32]}
NUMBERS, SLOTS, ROWS_OF_TABLE = 13, 26, 1_000_001
# The allocator keeps its memory.
TUNED = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296",
         "MALLOC_TOP_PAD_": "268435456"}
PS = 'ps: ["localhost:auto", "localhost:auto"], '
DTF_LAYERS = {"softmax": "[flatten: , dense: {units: 10}]",
              "mlp": "[flatten: , dense: {units: 300, activation: relu}, dense: {units: 100, activation: relu}, "
                     "dense: {units: 10}]",
              "lenet": "[conv2d: {filters: 32, kernel_size: 5, padding: same, activation: relu}, max_pooling2d: {pool_size: 2}, "
                       "conv2d: {filters: 64, kernel_size: 5, padding: same, activation: relu}, max_pooling2d: {pool_size: 2}, "
                       "flatten: , dense: {units: 1024, activation: relu}, dense: {units: 10}]"}


class Failed(Exception):
    pass


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def run_together(commands, folder, environment=None):
    """Starts all commands, waits for the last one, returns its last line as JSON, ends the others."""
    processes, logs = [], []
    try:
        for i, command in enumerate(commands):
            logs.append(folder / f"{i}.log")
            with logs[-1].open("wb") as log:
                last = i + 1 == len(commands)
                processes.append(subprocess.Popen(command, stdout=subprocess.PIPE if last else log, stderr=log,
                                                  stdin=subprocess.DEVNULL, start_new_session=True,
                                                  env={**os.environ, **(environment or {})}))
        try:
            out, _ = processes[-1].communicate(timeout=RUN_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Failed(f"not ready after {RUN_SECONDS_MAX} s") from None
        if processes[-1].returncode != 0 or not out.strip():
            raise Failed(f"exit code {processes[-1].returncode}: {last_lines(logs[-1])}")
        return json.loads(out.decode().strip().splitlines()[-1])
    finally:
        for process in processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def last_lines(path, count=5):
    return " | ".join(path.read_text(errors="replace").strip().splitlines()[-count:])


class Dtf:
    name = "dtf"

    def __init__(self, build, has_ps):
        self.build = build
        self.has_ps = has_ps
        self.version = "" if has_ps else "without ps"

    def run(self, work, mode, folder):
        if not self.has_ps and (mode != "sync" or work == "null"):
            return None
        if work == "null":
            return {"scalar_us": self.null_step("scalar, 1 worker, 1 ps", folder),
                    "dense_ms": self.null_step("100 MB, 1 worker, 1 ps, memory", folder)}
        file = folder / "job.yaml"
        if work in HIDDEN:
            file.write_text(clicks_job(folder, work, mode))
            self.call([self.build / "launcher/dtf-launch", file], folder)
            return json.loads((folder / "runs/summary.json").read_text())
        file.write_text(f"""
job: peers
run_dir: {folder}/runs
cluster: {{{PS if self.has_ps else ""}worker: ["localhost:auto", "localhost:auto"]}}
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: {DTF_LAYERS[work]}
    loss: sparse_categorical_crossentropy
  data: {{train: {{{data_text()}}}, batch_size: {BATCH.get(work, 100)}}}
  optimizer: {{gradient_descent: {{learning_rate: 0.1}}}}
  replication: {{mode: {mode}}}
  steps: {DTF_STEPS[work, mode]}
  checkpoint: none
""")
        self.call([self.build / "launcher/dtf-launch", file], folder)
        return json.loads((folder / "runs/summary.json").read_text())

    def null_step(self, row, folder):
        out = self.call([self.build / "tests/bench/dtf-bench", "--json", "--repetitions", "1", "--only", row, "null-step"],
                        folder)
        return json.loads(out)["null-step"][0]["rows"][0]["p50"]

    @staticmethod
    def call(command, folder):
        log = folder / "dtf.log"
        with log.open("wb") as errors:
            result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=errors,
                                    stdin=subprocess.DEVNULL, timeout=RUN_SECONDS_MAX, check=False)
        if result.returncode != 0:
            raise Failed(f"{command[0].name}: exit code {result.returncode}: {last_lines(log)}")
        return result.stdout


class TensorFlow:
    name = "TensorFlow"

    def __init__(self, python):
        self.python = python
        self.version = ""

    def run(self, work, mode, folder):
        if work == "lenet":
            return None  # tensorflow_task.py has no convolutions
        tasks = 1 if work == "null" else 2
        addresses = [f"127.0.0.1:{port}" for port in free_ports(2 * tasks)]
        common = ["--ps", ",".join(addresses[:tasks]), "--workers", ",".join(addresses[tasks:]), "--work", work,
                  "--mode", mode, "--steps", str(PEER_STEPS[work, mode]), "--batch", str(BATCH.get(work, 100))]
        program = [self.python, HERE / "tensorflow_task.py"]
        tasks_of = [("ps", i) for i in range(tasks)] + [("worker", i) for i in reversed(range(tasks))]  # the chief last
        return run_together([program + ["--job", job, "--task", str(i)] + common for job, i in tasks_of], folder)


class PyTorch:
    name = "PyTorch"

    def __init__(self, python):
        self.python = python
        self.version = ""

    def run(self, work, mode, folder):
        if mode != "sync":
            return None  # DistributedDataParallel has no other mode
        port = free_ports(1)[0]
        program = [self.python, HERE / "torch_rank.py", "--port", str(port), "--work", work,
                   "--steps", str(PEER_STEPS[work, mode]), "--warm", str(PEER_STEPS[work, mode] // 5),
                   "--batch", str(BATCH.get(work, 100))]
        return run_together([program + ["--rank", str(rank)] for rank in (1, 0)], folder, TUNED)


def data_text():
    folder = ROOT / "data/mnist"
    if (folder / "train-images-idx3-ubyte.gz").exists():
        return (f"format: idx, images: {folder}/train-images-idx3-ubyte.gz, "
                f"labels: {folder}/train-labels-idx1-ubyte.gz")
    return "format: digits, count: 10000"


def clicks_job(folder, work, mode):
    """A table of rows for 26 slots, 13 numbers, and layers: with three of 400 PaddleRec's DNN. On drawn records."""
    draw = random.Random(1)
    with (folder / "clicks.csv").open("w") as table:
        table.write(",".join([f"I{i}" for i in range(NUMBERS)] + [f"C{i}" for i in range(SLOTS)]) + ",click\n")
        for _ in range(20_000):
            numbers = [f"{draw.random():.4f}" for _ in range(NUMBERS)]
            slots = [str(draw.randrange(ROWS_OF_TABLE)) for _ in range(SLOTS)]
            table.write(",".join(numbers + slots) + f",{draw.randrange(2)}\n")
    slots = ", ".join(f"C{i}" for i in range(SLOTS))
    hidden = "\n".join(f"      - dense: {{units: {units}, activation: relu}}" for units in HIDDEN[work])
    return f"""
job: peers
run_dir: {folder}/runs
cluster: {{ps: ["localhost:auto", "localhost:auto"], worker: ["localhost:auto", "localhost:auto"]}}
train:
  model:
    input: {{shape: [{NUMBERS}]}}
    layers:
      - normalization: {{mean: [0], std: [1], name: numbers}}
      - embedding: {{categories: slots, input_dim: {ROWS_OF_TABLE}, output_dim: 10, name: table}}
      - flatten:
      - concatenate: {{with: [numbers]}}
{hidden}
      - dense: {{units: 1}}
    loss: binary_crossentropy
  data:
    batch_size: {BATCH[work]}
    train: {{format: csv, files: [{folder}/clicks.csv], label_column: click,
             categorical_columns: {{slots: {{columns: [{slots}]}}}}}}
  optimizer: {{adagrad: {{learning_rate: 0.01}}}}
  replication: {{mode: {mode}}}
  steps: {DTF_STEPS[work, mode]}
"""


def measure(systems, repetitions):
    """{(system, work, mode): [results]} and {system: why it failed}; the systems take turns."""
    found, failures = {}, {}
    for repetition in range(repetitions):
        for work, mode in dict.fromkeys(where[:2] for _, _, where in ROWS):
            for system in systems:
                if system.name in failures:
                    continue
                start = time.monotonic()
                try:
                    with tempfile.TemporaryDirectory(prefix="dtf-peers-") as folder:
                        result = system.run(work, mode, pathlib.Path(folder))
                except (Failed, subprocess.TimeoutExpired) as error:
                    failures[system.name] = f"{work} {mode}: {error}"
                    continue
                if result is None:
                    continue
                system.version = result.get("version", system.version)
                found.setdefault((system.name, work, mode), []).append(result)
                print(f"  {repetition + 1}/{repetitions} {work} {mode}: {system.name} ({time.monotonic() - start:.0f} s)",
                      file=sys.stderr, flush=True)
    return found, failures


def figure(value):
    return "-" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def table(systems, found):
    peers = systems[1:]
    names = [f"{system.name} {system.version}".strip() for system in systems]
    lines = ["| | unit | " + " | ".join(names + [f"dtf / {peer.name}" for peer in peers]) + " |",
             "|---" * (2 + len(systems) + len(peers)) + "|"]
    for row, unit, (work, mode, key) in ROWS:
        values = [statistics.median(result[key] for result in found[system.name, work, mode])
                  if (system.name, work, mode) in found else None for system in systems]
        ratios = [None if None in (values[0], value) else values[0] / value if unit == RATE else value / values[0]
                  for value in values[1:]]
        cells = [figure(value) for value in values] + [f"{ratio:.2g} x" if ratio else "-" for ratio in ratios]
        lines.append(f"| {row} | {unit} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python", required=True, help="of the environment with the peers")
    parser.add_argument("--without", action="append", default=[], help="a peer to leave out: TensorFlow or PyTorch")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--without-ps", action="store_true", help="dtf's workers host the parameters; rows of sync")
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    args = parser.parse_args()
    ROWS[:] = [row for row in ROWS if args.only in row[0]]
    systems = [Dtf(args.build.resolve(), not args.without_ps)]
    systems += [peer(args.python) for peer in (TensorFlow, PyTorch) if peer.name not in args.without]
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} before the start; dtf trains on "
          f"{'MNIST' if 'idx' in data_text() else 'its embedded digits'}", file=sys.stderr)
    found, failures = measure(systems, args.repetitions)
    print(table(systems, found))
    for name, why in failures.items():
        print(f"error: {name} stopped at {why}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
