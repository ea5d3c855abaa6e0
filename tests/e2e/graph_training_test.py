#!/usr/bin/env python3
"""dtf-launch graph with files that train: minimize, checkpoints, summaries, towers. Usage: graph_training_test.py BUILD

The batch follows from the global step, so a run that loses its tasks with the client ends with the
bytes of an undisturbed one.
"""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from serving_tasks import free_ports  # noqa: E402  the path is set above

BUILD = pathlib.Path(sys.argv[1])
LAUNCH = BUILD / "launcher/dtf-launch"
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "configs/graphs/digits_towers.yaml"
WITHIN = 120

# Read by the tower {0}, as the placeholders or as a part of the joined batch.
OWN = """
        - Placeholder: {{name: images, dtype: uint8, shape: [20, 28, 28, 1]}}
        - Placeholder: {{name: labels, dtype: uint8, shape: [20]}}"""
PART = """
        - Slice: {{name: part, inputs: [all_images], begin: [{begin}, 0, 0, 0], size: [20, 28, 28, 1]}}
        - Cast: {{name: images, inputs: [tower{index}/part], dtype: uint8}}
        - Slice: {{name: labels_part, inputs: [all_labels], begin: [{begin}], size: [20]}}
        - Cast: {{name: labels, inputs: [tower{index}/labels_part], dtype: uint8}}"""
JOINED = """
  - Placeholder: {name: images, dtype: uint8, shape: [40, 28, 28, 1]}
  - Placeholder: {name: labels, dtype: uint8, shape: [40]}
  - Cast: {name: all_images, inputs: [images], dtype: float32}
  - Cast: {name: float_labels, inputs: [labels], dtype: float32}
  - Identity: {name: all_labels, inputs: [float_labels]}"""
TOWER = """
  - scope:
      name: tower{index}
      device: /job:worker/task:{index}
      ops:{inputs}
        - Normalise: {{name: pixels, inputs: [tower{index}/images], scale: 0.0039}}
        - Reshape: {{name: x, inputs: [tower{index}/pixels], shape: [-1, 784]}}
        - MatMul: {{name: product, inputs: [tower{index}/x, w]}}
        - BiasAdd: {{name: logits, inputs: [tower{index}/product, b]}}
        - SparseSoftmaxCrossEntropyWithLogits: {{name: losses, inputs: [tower{index}/logits, tower{index}/labels]}}
        - Mean: {{name: loss, inputs: [tower{index}/losses]}}"""
OWN_FEEDS = """
    tower0/images: features
    tower0/labels: labels
    tower1/images: {data: features, tower: 1}
    tower1/labels: {data: labels, tower: 1}"""
JOINED_FEEDS = """
    images: features
    labels: labels"""
GRAPH = """ops:
  - Variable: {{name: w, shape: [784, 10], initializer: glorot_uniform, device: /job:PS/task:0}}
  - Variable: {{name: b, shape: [10], initializer: zeros, device: /job:ps/task:1/cpu:0}}{ops}
  - AddN: {{name: sum, inputs: [tower0/loss, tower1/loss]}}
  - Scale: {{name: loss, inputs: [sum], factor: 0.5}}
  - minimize: {{loss: loss, optimizer: {{adam: {{learning_rate: 0.01}}}}}}
run:
  targets: [train]
  fetches: [loss]
  steps: {steps}
  data: {{format: digits, count: 600}}
  log_dir: {name}
  checkpoint: {{every_steps: 50, keep: 3}}
  summaries: {{scalars: [tower1/loss], every_steps: 10}}
  feeds:{feeds}
"""
IDLE = """ops:
  - Variable: {name: global_step, dtype: int64, shape: [], initializer: zeros}
  - Variable: {name: w, shape: [2], initializer: ones}
  - Mul: {name: twice, inputs: [w, w]}
run:
  fetches: [twice]
  log_dir: idle
  checkpoint: {}
"""


class Cluster:
    """Two ps and two workers that serve, and a client at a time. All are killed at its end."""

    def __init__(self, folder):
        self.folder = folder
        ports = [f"localhost:{port}" for port in free_ports(4)]
        self.file = folder / "cluster.yaml"
        self.file.write_text(f"cluster:\n  ps: [{', '.join(ports[:2])}]\n  worker: [{', '.join(ports[2:])}]\n")
        self.started = []

    def start(self):
        """Starts the tasks, or starts them anew, without variables."""
        self.__exit__()
        for program, index in (("psd", 0), ("psd", 1), ("workerd", 0), ("workerd", 1)):
            command = [BUILD / "daemons" / program / program, "--cluster", self.file, "--task", str(index), "--serve"]
            self.spawn(command)
        for task in self.started[-4:]:
            wait_for(task, "event=serving")

    def spawn(self, command):
        path = self.folder / f"{len(self.started)}.log"
        with path.open("w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        process.log = path
        self.started.append(process)
        return process

    def client(self, graph, *more):
        return self.spawn([LAUNCH, "graph", self.file, "--graph", graph, *more])

    def run(self, graph, *more, code=0):
        process = self.client(graph, *more)
        ended = process.wait(WITHIN)
        text = process.log.read_text()
        assert ended == code, f"ended with {ended}, not {code}:\n{text}"
        return text

    def write(self, name, steps, joined=False):
        towers = "".join(TOWER.format(index=i, inputs=(PART if joined else OWN).format(index=i, begin=20 * i)) for i in range(2))
        file = self.folder / f"{name}.yaml"
        file.write_text(GRAPH.format(ops=(JOINED if joined else "") + towers, steps=steps, name=name,
                                     feeds=JOINED_FEEDS if joined else OWN_FEEDS))
        return file

    def weights(self, name, step):
        files = sorted((self.folder / name / f"checkpoints/step-{step}").glob("*.safetensors"))
        assert files, name
        return b"".join(file.read_bytes() for file in files)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()


def wait_for(process, text):
    deadline = time.monotonic() + WITHIN
    while text not in process.log.read_text():
        assert process.poll() is None, f"{process.args} ended without '{text}':\n{process.log.read_text()}"
        assert time.monotonic() < deadline, f"no '{text}' in {WITHIN} s:\n{process.log.read_text()}"
        time.sleep(0.02)


def a_killed_run_ends_with_the_same_bytes(cluster):
    steps = 400
    cluster.start()
    whole = cluster.run(cluster.write("whole", steps))
    assert "step 400  loss " in whole and "goes on" not in whole, whole
    events = b"".join(file.read_bytes() for file in (cluster.folder / "whole").glob("events.*"))
    assert b"tower1/loss" in events and b"global_step/sec" in events, len(events)
    graph = cluster.write("killed", steps)
    for reached in (70, 150):
        client = cluster.client(graph, "--json")
        wait_for(client, f'"step":{reached},')
        client.kill()
        assert client.wait() == -signal.SIGKILL, client.log.read_text()
        cluster.start()  # without variables: a kill inside a step may have left half of it
    rest = cluster.run(graph)
    resumed = re.search(r"goes on after step (\d+) ", rest)
    assert resumed and int(resumed[1]) >= 150 and int(resumed[1]) % 50 == 0 and "step 400  loss " in rest, rest
    assert cluster.weights("killed", steps) == cluster.weights("whole", steps)
    done = cluster.run(graph)
    assert "all steps are done; raise 'steps', or start anew with --fresh" in done, done
    kept = sorted(each.name for each in (cluster.folder / "whole/checkpoints").glob("step-*"))
    assert kept == ["step-300", "step-350", "step-400"], kept


def a_client_killed_alone_goes_on_with_the_variables_of_the_tasks(cluster):
    """At least from the last step that it printed, without the checkpoint. A step may be half taken, so no bytes are compared."""
    cluster.start()
    graph = cluster.write("alone", 400)
    client = cluster.client(graph, "--json")
    wait_for(client, '"step":70,')
    client.kill()
    assert client.wait() == -signal.SIGKILL, client.log.read_text()
    timeline = cluster.folder / "timeline.json"
    goes_on = [json.loads(line) for line in cluster.run(graph, "--json", "--timeline", timeline).splitlines()]
    resumed = goes_on[0]
    assert resumed["event"] == "resumed" and resumed["step"] >= 70, resumed
    assert goes_on[-1]["step"] == 400, goes_on[-1]
    recorded = json.loads(timeline.read_text())["otherData"]["step"]
    assert recorded == min(resumed["step"] + 2, 400), (recorded, resumed)
    text = cluster.run(graph, "--timeline", timeline, code=2)
    assert "timeline.json: error: no step was recorded: the run has ended before step 401, and 'steps' is 400" in text, text


def a_signal_while_no_task_replies_ends_the_wait(cluster):
    graph = cluster.write("nobody", 20)
    for more, stop in (([], signal.SIGTERM), (["--fresh"], signal.SIGINT)):
        client = cluster.client(graph, *more)
        deadline = time.monotonic() + WITHIN
        while not (cluster.folder / "nobody/checkpoints").is_dir():  # made with the handlers in place, before the wait
            assert client.poll() is None and time.monotonic() < deadline, client.log.read_text()
            time.sleep(0.02)
        client.send_signal(stop)
        assert client.wait(WITHIN) == 69, f"ended with {client.returncode}:\n{client.log.read_text()}"
        shutil.rmtree(cluster.folder / "nobody")


def a_signal_saves_and_the_same_command_goes_on(cluster):
    cluster.start()
    client = cluster.client(cluster.write("stopped", 1_000_000), "--json")
    wait_for(client, '"step":20,')
    client.send_signal(signal.SIGTERM)
    assert client.wait(WITHIN) == 0, client.log.read_text()
    last = json.loads(client.log.read_text().splitlines()[-1])
    assert last["event"] == "stopped" and "goes on from there" in last["text"], last
    assert (cluster.folder / f"stopped/checkpoints/step-{last['step']}").is_dir(), last
    fresh = cluster.run(cluster.write("stopped", 20), "--fresh")
    assert "the old checkpoints are in " in fresh and "step 20 " in fresh and "goes on" not in fresh, fresh
    assert (cluster.folder / "stopped/checkpoints.old-1").is_dir()


def towers_with_their_own_batches_are_one_session_with_the_batches_joined(cluster):
    cluster.start()
    own = cluster.run(cluster.write("own", 60))
    cluster.start()
    joined = cluster.run(cluster.write("joined", 60, joined=True))
    assert own == joined, own + joined
    assert cluster.weights("own", 60) == cluster.weights("joined", 60)


def a_step_that_does_not_count_itself_is_refused(cluster):
    cluster.start()
    graph = cluster.folder / "idle.yaml"
    graph.write_text(IDLE)
    text = cluster.run(graph, code=78)
    assert "idle.yaml:8:3: error: the step has not counted itself" in text, text
    assert "name the op of 'minimize'" in text, text


def the_example_is_placed_and_fed(cluster):
    text = cluster.run(EXAMPLE, "--dry-run")
    assert "ApplyOptimizer" in text and "w/Adam" in text and "worker/1: " in text, text


for test in (a_killed_run_ends_with_the_same_bytes, a_client_killed_alone_goes_on_with_the_variables_of_the_tasks,
             a_signal_while_no_task_replies_ends_the_wait, a_signal_saves_and_the_same_command_goes_on,
             towers_with_their_own_batches_are_one_session_with_the_batches_joined,
             a_step_that_does_not_count_itself_is_refused, the_example_is_placed_and_fed):
    with tempfile.TemporaryDirectory() as made, Cluster(pathlib.Path(made)) as each:
        test(each)
    print(f"{test.__name__.replace('_', ' ')}: ok", flush=True)
