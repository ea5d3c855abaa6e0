#!/usr/bin/env python3
"""A job whose model computes its own loss and scalars, by the names of tensors. Usage: own_loss_test.py BUILD

It has the bytes of the job with the same loss by its name.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1])
WITHIN = 120
JOB = """job: own
run_dir: {name}
cluster:
  ps: [localhost:auto, localhost:auto]
  worker: [localhost:auto, localhost:auto]
train:
  model:
    input: {{shape: [28, 28, 1]}}
    graph:
      ops:
        - Reshape: {{name: x, inputs: [input], shape: [batch, 784], device: /cpu:0}}
        - Variable: {{name: w, shape: [784, 10], initializer: glorot_uniform, device: /job:PS/task:1/cpu:0}}
        - Variable: {{name: b, shape: [10], initializer: zeros, device: /job:ps/task:0}}
        - MatMul: {{name: product, inputs: [x, w]}}
        - BiasAdd: {{name: logits, inputs: [product, b]}}{ops}
      output: logits
    {loss}
    metrics: [accuracy]
  data:
    train: {{format: digits, count: 600}}
    eval: {{format: digits, count: 210}}
    batch_size: 20
  optimizer: {{adam: {{learning_rate: 0.01}}}}
  replication: {{mode: sync}}
  steps: 60
  eval: {{every_steps: 30}}
  summaries: {{every_steps: 20}}
"""
OWN = """
        - SparseSoftmaxCrossEntropyWithLogits: {name: losses, inputs: [logits, labels]}
        - Mean: {name: own, inputs: [losses]}
        - Max: {name: worst, inputs: [losses]}"""


def run(folder, name, ops, loss, code=0):
    file = folder / f"{name}.yaml"
    file.write_text(JOB.format(name=folder / name, ops=ops, loss=loss))
    return launch(file, code=code)


def launch(*arguments, code=0):
    done = subprocess.run([BUILD / "launcher/dtf-launch", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=WITHIN)
    assert done.returncode == code, f"ended with {done.returncode}, not {code}:\n{done.stdout}"
    return done.stdout


def weights(folder, name):
    files = sorted((folder / name / "checkpoints/step-60").glob("*.safetensors"))
    assert files, name
    return b"".join(file.read_bytes() for file in files)


with tempfile.TemporaryDirectory() as made:
    root = pathlib.Path(made)
    run(root, "named", "", "loss: sparse_categorical_crossentropy")
    run(root, "own", OWN, "loss: {tensor: {name: own}}\n    scalars: [worst]")
    assert weights(root, "named") == weights(root, "own")
    named, own = (json.loads((root / name / "summary.json").read_text())["eval"] for name in ("named", "own"))
    assert named["loss"] == own["loss"] and named["accuracy"] == own["accuracy"], (named, own)
    assert own["worst"] > own["loss"], own
    events = b"".join(file.read_bytes() for file in (root / "own/events").glob("events.*"))
    assert b"worst" in events, len(events)
    # A prediction has no labels: the ops of the loss are left out.
    for verb, option, ending in (("predict", "--output", "csv"), ("export", "--to", "safetensors"), ("export", "--to", "onnx")):
        for name in ("named", "own"):
            launch(verb, root / f"{name}.yaml", option, root / f"{name}.{ending}")
    tables = [(root / f"{name}.csv").read_text().splitlines() for name in ("named", "own")]
    classes = [[line.split(",")[:3] for line in table] for table in tables]
    assert classes[0] == classes[1] and len(classes[0]) == 211, tables
    assert "probability_0" in tables[0][0] and "output_0" in tables[1][0], tables  # dtf doesn't know what an own loss reads
    wrong = run(root, "wrong", OWN, "loss: {tensor: {name: losses}}", code=78)
    assert "error: 'losses' is float32[" in wrong and "name its Mean" in wrong, wrong
print("a loss by tensor name: ok")
