"""TensorBoard's own reader opens the summaries of a job. Usage: summaries_test.py DTF_LAUNCH

Exit 77 (skipped, with the reason) where Python lacks tensorboard; scripts/python-env.sh installs
it.
"""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    from tensorboard.backend.event_processing import event_file_loader
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.compat.proto.event_pb2 import SessionLog
    from tensorboard.compat.proto.graph_pb2 import GraphDef
except ImportError as missing:
    print(f"SKIPPED: {sys.executable} has no {missing.name}: run scripts/python-env.sh", file=sys.stderr)
    sys.exit(77)

STEPS = 60
EVERY = 20
JOB = """job: summaries
run_dir: {folder}/run
cluster:
  ps: [localhost:auto, localhost:auto]
  worker: [localhost:auto, localhost:auto]
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: [flatten: , dense: {{units: 10, name: softmax}}]
    loss: sparse_categorical_crossentropy
    metrics: [accuracy, auc]
  data:
    train: {{format: digits, count: 600}}
    eval: {{format: digits, count: 200}}
    batch_size: 20
    seed: 7
  optimizer: {{gradient_descent: {{learning_rate: 0.5}}}}
  replication: {{mode: {mode}}}
  steps: {steps}
  eval: {{every_steps: {every}}}
  {more}
"""
TASKS = ["ps/0", "ps/1", "worker/0", "worker/1"]


def run(launch, folder, mode, more, steps=STEPS):
    folder.mkdir(exist_ok=True)
    file = folder / "job.yaml"
    file.write_text(JOB.format(folder=folder, mode=mode, steps=steps, every=EVERY, more=more))
    done = subprocess.run([launch, file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    return folder / "run", json.loads((folder / "run/summary.json").read_text())


def raw_events(folder):
    for file in sorted(folder.iterdir()):
        yield from event_file_loader.EventFileLoader(str(file)).Load()


def check_scalars(events, result, exact):
    tags = events.Tags()
    for tag in ["loss", "learning_rate", "global_step/sec", "examples/sec", "eval/accuracy", "eval/loss"]:
        values = events.Scalars(tag) if tag in tags["scalars"] else []
        steps = [value.step for value in values]
        assert len(steps) >= 2, (tag, tags)
        assert steps == sorted(set(steps)), (tag, steps)
        assert all(math.isfinite(value.value) for value in values), tag
        assert not exact or steps == list(range(EVERY, STEPS + 1, EVERY)), (tag, steps)
    assert events.Scalars("learning_rate")[0].value == 0.5
    losses = events.Scalars("loss")
    if exact:  # the loss of one batch: async may write any, and in any order
        assert losses[-1].value < losses[0].value, "it learns"
        assert abs(losses[-1].value - result["final_loss"]) < 1e-6, (losses, result)
    assert abs(events.Scalars("eval/accuracy")[-1].value - result["eval"]["accuracy"]) < 1e-6, result


def check_training_metrics(events, last):
    """The metrics of the chief's batch after each measured step but the last."""
    for tag in ["accuracy", "auc"]:
        values = events.Scalars(tag)
        assert [value.step for value in values] == list(range(EVERY, last, EVERY)), (tag, values)
        assert all(0 < value.value <= 1 for value in values), (tag, values)
        eval_values = events.Scalars("eval/" + tag)
        assert len(eval_values) == len(values) + 1, (tag, eval_values)
    for value in events.Scalars("accuracy"):
        hits = value.value * 20
        assert abs(hits - round(hits)) < 1e-4, f"of 20 examples: {value}"


def check_images(events, count):
    tags = events.Tags()["images"]
    assert sorted(tags) == [f"features/image/{i}" for i in range(count)], tags
    shown = events.Images(tags[0])[0]
    assert (shown.width, shown.height) == (28, 28), shown
    png = shown.encoded_image_string
    assert png.startswith(b"\x89PNG\r\n\x1a\n"), png[:16]
    # 28 rows of a filter's number and 28 grey pixels, inflated: a digit is neither black nor white.
    data, at = b"", 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        data += png[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    rows = zlib.decompress(data)
    assert len(rows) == 28 * 29 and len(set(rows)) > 2, (len(rows), set(rows))


def check_histograms(events):
    for name, count in {"softmax/weights": 7840, "softmax/biases": 10}.items():
        values = events.Histograms(name)
        assert values[0].step == 0 and values[-1].step == STEPS, values
        assert all(sum(value.histogram_value.bucket) == count for value in values), name
        assert all(value.histogram_value.num == count for value in values), name
        gradients = events.Histograms(name + "/gradient")
        assert all(sum(value.histogram_value.bucket) == count for value in gradients), name
        assert any(value.histogram_value.max > 0 for value in gradients), name
    first, last = events.Histograms("softmax/biases")[0], events.Histograms("softmax/biases")[-1]
    assert first.histogram_value.min == first.histogram_value.max == 0, "biases begin as zeros"
    assert last.histogram_value.max > 0, "and are trained"


def check_graph(events):
    graph = GraphDef.FromString(events.Graph().SerializeToString())
    nodes = {node.name: node for node in graph.node}
    assert nodes["softmax/weights"].device.startswith("/job:ps/"), nodes["softmax/weights"]
    assert any(node.device.startswith("/job:worker/") for node in graph.node)
    for node in graph.node:
        for read in node.input:
            assert read.lstrip("^").split(":")[0] in nodes, (node.name, read)
    dims = nodes["softmax/weights"].attr["_output_shapes"].list.shape[0].dim
    assert [dim.size for dim in dims] == [784, 10], dims


def check_timeline(run_dir, step):
    timeline = json.loads((run_dir / "timeline.json").read_text())
    names = {event["pid"]: event["args"]["name"] for event in timeline["traceEvents"]
             if event["ph"] == "M" and event["name"] == "process_name"}
    assert sorted(names.values()) == TASKS, names
    spans = {task: [] for task in TASKS}
    for event in timeline["traceEvents"]:
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["args"]["step"] == step, event
            spans[names[event["pid"]]].append(event)
    for task in TASKS:
        found = {span["name"] for span in spans[task]}
        wanted = {"take gradient", "apply", "wait for the answer", "reply"} if task.startswith("ps/") else \
            {"batch", "read batch", "compute", "push, wait, receive"}
        assert wanted <= found, (task, found)
    # One clock: the spans of a ps for this step lie between the first begin and the last end of the
    # workers' spans.
    workers = [span for task in TASKS[2:] for span in spans[task] if span["name"] == "batch"]
    begin, end = min(span["ts"] for span in workers), max(span["ts"] + span["dur"] for span in workers)
    for task in TASKS[:2]:
        for span in spans[task]:
            assert begin <= span["ts"] <= end, (task, span, begin, end)


def main(launch):
    with tempfile.TemporaryDirectory() as root:
        root = pathlib.Path(root)
        more = "checkpoint: {every_steps: 30}\n  summaries: {every_steps: %d, timeline_step: 30, images: 3}" % EVERY
        run_dir, result = run(launch, root / "sync", "sync", more)
        events = EventAccumulator(str(run_dir / "events"), size_guidance={"histograms": 0, "scalars": 0})
        events.Reload()
        check_scalars(events, result, exact=True)
        check_histograms(events)
        check_training_metrics(events, STEPS)
        check_images(events, 3)
        check_graph(events)
        assert events.file_version == 2, events.file_version
        sessions = [(event.session_log.status, event.step) for event in raw_events(run_dir / "events")
                    if event.HasField("session_log")]
        assert sessions[0] == (SessionLog.START, 0) and sessions[-1] == (SessionLog.STOP, STEPS), sessions
        assert (SessionLog.CHECKPOINT, STEPS) in sessions, sessions
        assert result["summaries"]["failed"] == result["summaries"]["dropped"] == 0, result
        check_timeline(run_dir, 30)

        # The chief alone writes, once more into a file of its own, and async is read as well.
        run_dir, result = run(launch, root / "async", "async", "summaries: {every_steps: %d, graph: false}" % EVERY, steps=2000)
        assert len(list((run_dir / "events").iterdir())) == 1
        assert not (run_dir / "timeline.json").exists()
        events = EventAccumulator(str(run_dir / "events"), size_guidance={"histograms": 0, "scalars": 0})
        events.Reload()
        check_scalars(events, result, exact=False)
        assert not events.Tags()["graph"], "graph: false"
        assert not events.Tags()["images"], "nobody asked"

        # A job that goes on from step 40 loses no point that was measured up to there.
        more = "checkpoint: {every_steps: 40}\n  summaries: {every_steps: %d, graph: false}" % EVERY
        run(launch, root / "resumed", "sync", more, steps=40)
        run_dir, result = run(launch, root / "resumed", "sync", more)
        events = EventAccumulator(str(run_dir / "events"), size_guidance={"histograms": 0, "scalars": 0})
        events.Reload()
        assert [point.step for point in events.Scalars("loss")] == [20, 40, 60], events.Scalars("loss")
        assert [point.step for point in events.Scalars("eval/accuracy")] == [20, 40, 60]

        run_dir, result = run(launch, root / "none", "sync", "")
        assert not (run_dir / "events").exists() and "summaries" not in result
    print("TensorBoard reads the scalars, histograms, graph and session; the timeline has all four tasks")


if __name__ == "__main__":
    main(sys.argv[1])
