"""NumPy, safetensors and onnxruntime open the files that `dtf-launch export` writes, and
onnxruntime computes the same numbers as dtf. So do the programs of common/model_files/USING.md.
Usage: export_python_test.py DTF_LAUNCH

Exit 77 (skipped, with the reason) where Python lacks one of them; scripts/python-env.sh installs
them.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

try:
    import numpy
    import onnxruntime
    import PIL  # noqa: F401: a program of the chapter reads images with it
    from safetensors import safe_open
except ImportError as missing:
    print(f"SKIPPED: {sys.executable} has no {missing.name}: run scripts/python-env.sh", file=sys.stderr)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lint"))
import chapters  # noqa: E402

CHAPTER = ROOT / "common/model_files/USING.md"
JOB = """job: exported
run_dir: {folder}/run
cluster:
  ps: [localhost:auto, localhost:auto]
  worker: [localhost:auto]
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers: {layers}
    loss: {loss}
  data:
    train: {{format: digits, count: 100}}
    eval: {{format: digits, count: 61}}
    batch_size: 20
  optimizer: {{adam: {{learning_rate: 0.003}}}}
  replication: {{mode: sync}}
  placement: {{partition: {{min_bytes: 4096}}}}
  steps: 20
  checkpoint: {{every_steps: 100}}
"""
ACTIVATIONS = ["relu", "relu6", "leaky_relu", "elu", "gelu", "silu", "softplus", "sigmoid", "tanh", "softmax"]
# Together with TABLE_JOB and CATEGORIES_JOB they hold every layer but `lstm`, and norms with and
# without trained factors.
MODELS = {
    "perceptron": ("[flatten: , " + ", ".join(f"dense: {{units: 20, activation: {name}}}" for name in ACTIVATIONS[:4]) +
                   ", layer_normalization: , batch_normalization: , " + ", ".join(f"{name}: " for name in ACTIVATIONS[4:9]) +
                   ", dropout: {rate: 0.3}, dense: {units: 10, use_bias: false}]", "sparse_categorical_crossentropy"),
    "lenet": ("[conv2d: {filters: 6, kernel_size: 5, padding: same, activation: relu}, max_pooling2d: {pool_size: 2}, "
              "conv2d: {filters: 8, kernel_size: [5, 3], strides: [2, 1], activation: tanh}, "
              "average_pooling2d: {pool_size: 3, strides: 2, padding: same}, flatten: , dense: {units: 10}]", "binary_crossentropy"),
    "separable": ("[conv2d: {filters: 8, kernel_size: 3, dilation_rate: 2, activation: gelu}, "
                  "depthwise_conv2d: {kernel_size: 3, depth_multiplier: 2, padding: same}, layer_normalization: , "
                  "batch_normalization: , conv2d: {filters: 8, kernel_size: 1, groups: 4, use_bias: false}, softmax: , global_average_pooling2d: , "
                  "dense: {units: 10}]", "mse"),
    "residual": ("[conv2d: {filters: 4, kernel_size: 3, padding: same, activation: relu, name: stem}, "
                 "block: {name: stage, repeat: 2, layers: [residual: {activation: relu, layers: ["
                 "conv2d: {filters: 4, kernel_size: 3, padding: same, activation: silu}, "
                 "conv2d: {filters: 4, kernel_size: 3, padding: same}]}]}, add: {with: [stem]}, concatenate: {with: [stem]}, "
                 "residual: {layers: [conv2d: {filters: 6, kernel_size: 3, strides: 2, padding: same}], "
                 "shortcut: [conv2d: {filters: 6, kernel_size: 1, strides: 2}]}, "
                 "reshape: {target_shape: [14, 84]}, layer_normalization: , flatten: , dense: {units: 10}]", "hinge"),
    "steps": ("[reshape: {target_shape: [28, 28]}, dense: {units: 12, activation: relu}, dense: {units: 8, bias_initializer: {constant: 0.1}}, "
              "reshape: {target_shape: [4, 7, 8]}, global_max_pooling2d: , dense: {units: 10}]", "sparse_categorical_crossentropy"),
    "normalized": ("[normalization: {mean: [0.13], std: [0.31]}, conv2d: {filters: 6, kernel_size: 3, use_bias: false}, batch_normalization: , "
                   "relu: , conv2d: {filters: 8, kernel_size: 3, use_bias: false}, batch_normalization: {scale: false}, relu: , flatten: , "
                   "dense: {units: 20}, batch_normalization: {scale: false, center: false}, dense: {units: 10}]",
                   "sparse_categorical_crossentropy"),
}
TABLE_JOB = """job: table
run_dir: {folder}/run
cluster:
  worker: [localhost:auto]
train:
  model:
    input: {{shape: [3]}}
    layers:
      - normalization: {{mean: [1, 1, -5], std: [2, 2, 0.25]}}
      - dense: {{units: 4, activation: tanh}}
      - dense: {{units: 1}}
    loss: binary_crossentropy
  data:
    train: {{format: csv, files: [{folder}/table.csv], label_column: kind}}
    batch_size: 20
  optimizer: {{adam: {{learning_rate: 0.01}}}}
  steps: 20
  checkpoint: {{every_steps: 100}}
"""
CATEGORIES_JOB = """job: categories
run_dir: {folder}/run
cluster:
  ps: [localhost:auto]
  worker: [localhost:auto]
train:
  model:
    input: {{shape: [2]}}
    layers:
      - dense: {{units: 4, activation: relu, name: numbers}}
      - embedding: {{categories: user, input_dim: 50, output_dim: 4, combiner: sum, name: users}}
      - embedding: {{categories: tags, input_dim: 9, output_dim: 4, combiner: mean, name: tags}}
      - multiply: {{with: [users]}}
      - concatenate: {{with: [numbers, users]}}
      - dense: {{units: 3}}
    loss: sparse_categorical_crossentropy
  data:
    train: {{{data}}}
    batch_size: 20
  optimizer: {{adam: {{learning_rate: 0.03}}}}
  steps: 40
  checkpoint: {{every_steps: 100}}
"""
# The same numbers as a table and as arrays.
CATEGORIES = {
    "table.csv": "format: csv, files: [{folder}/table.csv], label_column: kind, "
                 "categorical_columns: {{user: {{columns: [user]}}, tags: {{columns: [t1, t2, t3]}}}}",
    "arrays.npz": "format: npz, archive: {folder}/arrays.npz, features: numbers, labels: kinds, "
                  "categorical_arrays: {{user: {{array: users}}, tags: {{array: tags, count: 3}}}}",
}
TOLERANCE = 1e-5


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def write_idx(path, images):
    path.write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, *images.shape) + images.tobytes())


def check_weights(launch, job, folder):
    """Both hold the same arrays, whole, with the same metadata."""
    for ending in ("safetensors", "npz"):
        run(launch, "export", job, "--to", folder / f"model.{ending}")
    with safe_open(folder / "model.safetensors", framework="numpy") as opened:
        weights = {name: opened.get_tensor(name) for name in opened.keys()}
        metadata = opened.metadata()
    assert zipfile.ZipFile(folder / "model.npz").testzip() is None
    archive = numpy.load(folder / "model.npz")
    assert json.loads(archive["metadata.json"]) == metadata
    assert set(archive.files) == set(weights) | {"metadata.json"}
    for name, array in weights.items():
        assert array.dtype == numpy.float32 and array.tobytes() == archive[name].tobytes(), name
        assert array.shape == archive[name].shape and numpy.isfinite(array).all(), name
    assert metadata["scaling"].startswith("features / 255"), metadata
    assert metadata["step"] == "20", metadata
    return weights


def check_onnx(launch, job, folder, weights, loss):
    run(launch, "export", job, "--to", folder / "model.onnx")
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    (features,) = session.get_inputs()
    assert (features.name, features.type, features.shape) == ("features", "tensor(uint8)", ["batch", 28, 28, 1])
    title = "probabilities" if "entropy" in loss else "outputs"
    assert [output.name for output in session.get_outputs()] == [title, "logits"]
    images = numpy.random.default_rng(7).integers(0, 256, (301, 28, 28), dtype=numpy.uint8)
    write_idx(folder / "images", images)
    run(launch, "predict", job, "--input", folder / "images", "--output", folder / "ours.npy")
    ours = numpy.load(folder / "ours.npy")
    theirs, logits = session.run(None, {"features": images.reshape(-1, 28, 28, 1)})
    assert ours.shape == theirs.shape == logits.shape == (301, 10), (ours.shape, theirs.shape)
    difference = float((numpy.abs(ours - theirs) / (1 + numpy.abs(ours))).max())
    assert difference <= TOLERANCE, difference
    assert float(numpy.ptp(ours, axis=0).max()) > 1e-3, "the outputs depend on the input"
    held_out = run(launch, "predict", job, "--json").splitlines()
    assert len(held_out) == 61 and json.loads(held_out[60])["example"] == 60
    return difference


def check_table(launch, folder):
    """Features of float32 and a model of one unit."""
    job = folder / "job.yaml"
    job.write_text(TABLE_JOB.format(folder=folder))
    drawn = numpy.random.default_rng(11).normal([1, 1, -5], [2, 2, 0.25], (200, 3)).astype(numpy.float32)
    lines = [f"{a},{b},{c},{int(a > b)}" for a, b, c in drawn]
    (folder / "table.csv").write_text("\n".join(["a,b,c,kind", *lines]) + "\n")
    run(launch, job)
    run(launch, "export", job, "--to", folder / "model.onnx")
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    (features,) = session.get_inputs()
    assert (features.name, features.type, features.shape) == ("features", "tensor(float)", ["batch", 3])
    numpy.save(folder / "features.npy", drawn)
    run(launch, "predict", job, "--input", folder / "features.npy", "--output", folder / "ours.npy")
    ours = numpy.load(folder / "ours.npy")
    theirs, logits = session.run(None, {"features": drawn})
    assert ours.shape == theirs.shape == logits.shape == (200, 1), (ours.shape, theirs.shape)
    difference = float(numpy.abs(ours - theirs).max())
    assert difference <= TOLERANCE, difference
    assert float(numpy.ptp(ours)) > 1e-3, "the outputs depend on the input"
    print(f"table: onnxruntime {onnxruntime.__version__} differs by {difference:.1e}")


def check_categories(launch, folder, name):
    """Numbers that name rows of tables, as inputs of their own."""
    job = folder / "job.yaml"
    job.write_text(CATEGORIES_JOB.format(folder=folder, data=CATEGORIES[name].format(folder=folder)))
    generator = numpy.random.default_rng(13)
    numbers = generator.normal(0, 1, (200, 2)).astype(numpy.float32)
    users = generator.integers(0, 50, (200, 1), dtype=numpy.int32)
    tags = generator.integers(0, 9, (200, 3), dtype=numpy.int32)
    rows = [f"{user[0]},{a},{t[0]},{t[1]},{t[2]},{b},{user[0] % 3}" for (a, b), user, t in zip(numbers, users, tags)]
    (folder / "table.csv").write_text("\n".join(["user,a,t1,t2,t3,b,kind", *rows]) + "\n")
    kinds = (users[:, 0] % 3).astype(numpy.int64)
    numpy.savez(folder / "arrays.npz", numbers=numbers, users=users[:, 0], tags=tags.astype(numpy.int64), kinds=kinds)
    run(launch, job)
    run(launch, "export", job, "--to", folder / "model.onnx")
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    assert [(fed.name, fed.type, fed.shape) for fed in session.get_inputs()] == [
        ("features", "tensor(float)", ["batch", 2]), ("categories/tags", "tensor(int32)", ["batch", 3]),
        ("categories/user", "tensor(int32)", ["batch", 1])]
    run(launch, "predict", job, "--input", folder / name, "--output", folder / "ours.npy")
    ours = numpy.load(folder / "ours.npy")
    theirs, _ = session.run(None, {"features": numbers, "categories/user": users, "categories/tags": tags})
    assert ours.shape == theirs.shape == (200, 3), (ours.shape, theirs.shape)
    difference = float(numpy.abs(ours - theirs).max())
    assert difference <= TOLERANCE, difference
    assert float(numpy.ptp(ours)) > 1e-3, "the outputs depend on the input"
    print(f"categories of {name}: onnxruntime {onnxruntime.__version__} differs by {difference:.1e}")


def check_chapter(launch, folder):
    """The programs of the chapter, run as it says, find the classes and the numbers of dtf."""
    shutil.copytree(ROOT / "configs/jobs/small", folder / "configs/jobs/small")
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), str(pathlib.Path(launch).resolve().parent), os.environ["PATH"]])
    printed = []
    for block in chapters.blocks(CHAPTER.read_text()):
        if block.mark == "file":
            (folder / block.words).write_text(block.text)
        elif (block.mark, block.words) == ("run by", "tests/e2e/export_python_test.py"):
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=folder, env={**os.environ, "PATH": path},
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240)
            assert done.returncode == 0, (block.line, done.stdout, done.stderr)
            printed.append(done.stdout.splitlines())
    images, table = printed
    named = [line.split() for line in images if line.startswith("configs/jobs/small/shapes/")]
    assert len(named) == 9 and all(file.split("/")[4] == word for file, word, _ in named), named
    start = next(number for number, line in enumerate(table) if line.startswith("# example"))
    theirs, ours = ([[float(field) for field in line.split()[-3:]] for line in lines]
                    for lines in (table[start - 2:start], table[start + 1:start + 3]))
    difference = float(numpy.abs(numpy.array(ours) - numpy.array(theirs)).max())
    assert difference <= 1e-4, (ours, theirs)  # the digits that are printed
    print(f"chapter: {len(named)} images; the table differs by {difference:.1e}")


def main(launch):
    with tempfile.TemporaryDirectory() as root:
        check_chapter(launch, pathlib.Path(root))
    with tempfile.TemporaryDirectory() as root:
        check_table(launch, pathlib.Path(root))
    for name in CATEGORIES:
        with tempfile.TemporaryDirectory() as root:
            check_categories(launch, pathlib.Path(root), name)
    for name, (layers, loss) in MODELS.items():
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root)
            job = folder / "job.yaml"
            job.write_text(JOB.format(folder=folder, layers=layers, loss=loss))
            run(launch, job)
            weights = check_weights(launch, job, folder)
            difference = check_onnx(launch, job, folder, weights, loss)
            print(f"{name}: {len(weights)} variables; onnxruntime {onnxruntime.__version__} differs by {difference:.1e}")


if __name__ == "__main__":
    main(sys.argv[1])
