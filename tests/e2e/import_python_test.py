"""A network as PyTorch writes it predicts the same after `dtf-launch import`, from safetensors, npz
and ONNX, whatever prefix its names have, and with data in another file or in nodes.
Usage: import_python_test.py DTF_LAUNCH

The network is written by hand with PyTorch's names and orders (images channels first, Linear
[out, in], the state of its batch norms); onnxruntime computes the expected predictions. Exit 77
(skipped, with the reason) where Python lacks a package; scripts/python-env.sh installs them.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
    from safetensors.numpy import save_file
except ImportError as missing:
    print(f"SKIPPED: {sys.executable} has no {missing.name}: run scripts/python-env.sh", file=sys.stderr)
    sys.exit(77)

JOB = """job: imported
run_dir: {folder}/{run}
cluster: {{worker: [localhost:auto]}}
train:
  model:
    input: {{shape: [10, 8, 3]}}
    layers:
      - conv2d: {{name: conv1, filters: 6, kernel_size: [3, 5], padding: same, use_bias: false}}
      - batch_normalization: {{name: bn1, epsilon: 0.00001}}
      - relu:
      - max_pooling2d: {{pool_size: 2}}
      - block:
          name: layer1
          repeat: 2
          layers:
            - residual:
                name: body
                activation: relu
                layers:
                  - depthwise_conv2d: {{name: conv2, kernel_size: 3, padding: same}}
                  - conv2d: {{name: conv3, filters: 6, kernel_size: 3, padding: same, groups: 2}}
      - flatten:
      - batch_normalization: {{name: bn2, epsilon: 0.00001}}
      - dense: {{name: fc1, units: 12, activation: relu}}
      - dense: {{name: fc2, units: 12, activation: relu}}
      - dense: {{name: fc3, units: 4}}
    loss: sparse_categorical_crossentropy
  data:
    train: {{format: npy, features: {folder}/x.npy, labels: {folder}/y.npy}}
    batch_size: 10
  optimizer: {{gradient_descent: {{learning_rate: 0.01}}}}
  steps: 20
  checkpoint: {{every_steps: 100}}
"""
TOLERANCE = 1e-5
HEIGHT, WIDTH, CHANNELS = 10, 8, 3
FLAT = 6 * 5 * 4  # channels, height, width before fc1


def run(*words, code=0):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def state_of(rng):
    """The state_dict of the network."""
    state = {}

    def draw(name, *shape):
        state[name] = (rng.normal(size=shape) / numpy.sqrt(numpy.prod(shape[1:]))).astype(numpy.float32)

    def norm(name, size):
        for word, low, high in (("weight", 0.5, 1.5), ("bias", -0.5, 0.5), ("running_mean", -0.5, 0.5),
                                ("running_var", 0.5, 2)):
            state[f"{name}.{word}"] = rng.uniform(low, high, size).astype(numpy.float32)

    draw("conv1.weight", 6, CHANNELS, 3, 5)
    norm("bn1", 6)
    for block in range(2):
        draw(f"layer1.{block}.body.conv2.weight", 6, 1, 3, 3)
        draw(f"layer1.{block}.body.conv2.bias", 6)
        draw(f"layer1.{block}.body.conv3.weight", 6, 3, 3, 3)
        draw(f"layer1.{block}.body.conv3.bias", 6)
    norm("bn2", FLAT)
    for name, units, inputs in (("fc1", 12, FLAT), ("fc2", 12, 12), ("fc3", 4, 12)):
        draw(f"{name}.weight", units, inputs)
        draw(f"{name}.bias", units)
    return state


class Network:
    """Its ONNX, with the nodes and names that torch.onnx.export() gives."""

    def __init__(self, state):
        self.state, self.nodes = state, []

    def add(self, op, inputs, **settings):
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **settings))
        return f"v{len(self.nodes) - 1}"

    def norm(self, x, name):
        return self.add("BatchNormalization", [x, f"{name}.weight", f"{name}.bias", f"{name}.running_mean",
                                               f"{name}.running_var"], epsilon=1e-5)

    def conv(self, x, name, pads, groups=1):
        inputs = [x, f"{name}.weight"] + ([f"{name}.bias"] if f"{name}.bias" in self.state else [])
        return self.add("Conv", inputs, pads=pads, group=groups)

    def build(self, as_nodes=False):
        """`as_nodes`: the weights are the values of Constant nodes, not initializers."""
        x = self.norm(self.conv("x", "conv1", [1, 2, 1, 2]), "bn1")
        x = self.add("MaxPool", [self.add("Relu", [x])], kernel_shape=[2, 2], strides=[2, 2])
        for block in range(2):
            y = self.conv(x, f"layer1.{block}.body.conv2", [1, 1, 1, 1], 6)
            y = self.conv(y, f"layer1.{block}.body.conv3", [1, 1, 1, 1], 2)
            x = self.add("Relu", [self.add("Add", [y, x])])
        x = self.norm(self.add("Flatten", [x], axis=1), "bn2")
        x = self.add("Relu", [self.add("Gemm", [x, "fc1.weight", "fc1.bias"], transB=1)])
        # PyTorch exports a Linear on more dimensions so: the matrix transposed, its name a number.
        x = self.add("Add", ["fc2.bias", self.add("MatMul", [x, "onnx::MatMul_77"])])
        x = self.add("Gemm", [self.add("Relu", [x]), "fc3.weight", "fc3.bias"], transB=1)
        self.nodes.append(helper.make_node("Softmax", [x], ["y"], axis=1))
        weights = dict(self.state)
        weights["onnx::MatMul_77"] = numpy.ascontiguousarray(weights.pop("fc2.weight").T)
        constants = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
                     for name, array in weights.items()] if as_nodes else []
        graph = helper.make_graph(
            constants + self.nodes, "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", CHANNELS, HEIGHT, WIDTH])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
            [] if as_nodes else [numpy_helper.from_array(array, name) for name, array in weights.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        return model


def job_in(folder, name):
    job = folder / f"{name}.yaml"
    job.write_text(JOB.format(folder=folder, run=name))
    return job


def check_refusals(launch, folder):
    """Nothing is guessed, and nothing is left behind."""
    job = job_in(folder, "refused")
    for ending in ("safetensors", "npz"):
        said = run(launch, "import", job, "--from", folder / f"state.{ending}", code=2)
        assert "Add --layout pytorch" in said, said
    run(launch, "import", job, "--from", folder / "network.onnx", "--layout", "dtf", code=2)
    run(launch, "import", job, "--from", folder / "state.npz", "--layout", "keras", code=2)
    for option, word in (("--prefix", "encoder"), ("--rename", "fc9.=fc1.")):
        said = run(launch, "import", job, "--from", folder / "state.npz", "--layout", "pytorch", option, word, code=2)
        assert "no tensor's name begins with" in said and "'bn1.bias'" in said, said
    (folder / "other").mkdir()
    (folder / "other" / "outside.onnx").write_bytes((folder / "outside.onnx").read_bytes())
    (folder / "other" / "outside.data").symlink_to(folder / "outside.data")
    said = run(launch, "import", job, "--from", folder / "other" / "outside.onnx", code=65)
    assert "a link to a file outside the model's folder" in said, said
    assert not (folder / "refused" / "checkpoints").exists()


def main(launch):
    rng = numpy.random.default_rng(5)
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root)
        images = rng.uniform(-1, 1, (40, HEIGHT, WIDTH, CHANNELS)).astype(numpy.float32)
        numpy.save(folder / "x.npy", images)
        numpy.save(folder / "y.npy", rng.integers(0, 4, 40).astype(numpy.int32))
        state = state_of(rng)
        model = Network(state).build()
        (folder / "network.onnx").write_bytes(model.SerializeToString())
        (folder / "nodes.onnx").write_bytes(Network(state).build(as_nodes=True).SerializeToString())
        onnx.save_model(model, folder / "outside.onnx", save_as_external_data=True, location="outside.data",
                        size_threshold=0)
        session = onnxruntime.InferenceSession(folder / "network.onnx", providers=["CPUExecutionProvider"])
        theirs = session.run(None, {"x": numpy.ascontiguousarray(images.transpose(0, 3, 1, 2))})[0]
        assert float(numpy.ptp(theirs, axis=0).min()) > 1e-2, "the outputs depend on the input"
        state["bn1.num_batches_tracked"] = numpy.array(7, dtype=numpy.int64)
        save_file(state, folder / "state.safetensors", metadata={"format": "pt"})
        numpy.savez(folder / "state.npz", **state)
        save_file({f"module.{name}": array.astype(numpy.float64) if array.dtype == numpy.float32 else array
                   for name, array in state.items()}, folder / "parallel.safetensors")
        # A network in a larger one, whose last layer has another name.
        inner = {f"module.net.{name.replace('fc3.', 'head.')}": array for name, array in state.items()}
        numpy.savez(folder / "inner.npz", **inner, **{"projector.weight": numpy.zeros((2, 2), numpy.float32)})
        check_refusals(launch, folder)
        pytorch = ["--layout", "pytorch"]
        inside = ["--prefix", "net", "--rename", "head.=fc3."]
        for source, options, unused in (
                ("state.safetensors", pytorch, None), ("state.npz", pytorch, None), ("network.onnx", [], None),
                ("nodes.onnx", [], None), ("outside.onnx", [], None), ("parallel.safetensors", pytorch, None),
                ("inner.npz", pytorch + inside, "projector.weight: its name doesn't begin with net")):
            job = job_in(folder, source.replace(".", "_"))
            said = run(launch, "import", job, "--from", folder / source, *options)
            assert "drawn anew" not in said and ("not used" in said) == (unused is not None), said
            assert unused is None or unused in said and "from module.net.head.weight, transposed" in said, said
            run(launch, "predict", job, "--input", folder / "x.npy", "--output", folder / "ours.npy")
            ours = numpy.load(folder / "ours.npy")
            assert ours.shape == theirs.shape == (40, 4)
            difference = float(numpy.abs(ours - theirs).max())
            assert difference <= TOLERANCE, (source, difference)
            print(f"{source}: predictions differ by {difference:.1e}")
            run(launch, job)  # and it trains from there


if __name__ == "__main__":
    main(sys.argv[1])
