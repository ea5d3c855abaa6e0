"""Each op of the catalogue against PyTorch's: its outputs, and the gradients of its inputs.

Usage: ops_torch_test.py LIBDTF [WORD]          libdtf.so; WORD: only ops whose name has it

Ops run in this process, through the C interface. An op that is in neither of the lists below
fails the test, so that every new op is compared. Exit 77 (skipped, with the reason) where Python
lacks torch.
"""
import ctypes
import sys

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as missing:
    print(f"SKIPPED: {sys.executable} has no {missing.name}: run scripts/python-env.sh build/python-env --torch", file=sys.stderr)
    sys.exit(77)

SEED = 20261126
random = np.random.default_rng(SEED)

# - Gradient ops are compared with the op they belong to.
# - Ops that hold a state, move tensors, draw numbers or call functions have tests of their own.
# - The rest exists in no other framework.
NOT_COMPARED = {
    "Placeholder", "Const", "Variable", "NoOp", "ReadVariable", "Assign", "AssignAdd", "AssignSub", "ScatterAdd",
    "ScatterUpdate", "If", "While", "Dropout", "StatelessRandomUniform", "StatelessRandomNormal", "MulRows",
    "UnsortedSegmentSum", "Accuracy", "Conv2DBackpropInput", "Conv2DBackpropFilter", "FIFOQueue", "QueueEnqueue",
    "QueueEnqueueMany", "QueueDequeue", "QueueDequeueMany", "QueueSize", "QueueClose", "ApplyOptimizer",
    "ApplySparseOptimizer", "InitializeVariable", "IsVariableInitialized", "ClipByGlobalNorm",
    "SyncReplicasTicket", "AccumulatorApplyGradient", "SparseAccumulatorApplyGradient", "SyncReplicasArrive",
    "ApplyAccumulated", "SyncReplicasFinish", "SyncReplicasPause", "SyncReplicasResume",
}


class Output(ctypes.Structure):
    _fields_ = [("node", ctypes.c_int32), ("index", ctypes.c_int32)]


class Feed(ctypes.Structure):
    _fields_ = [("tensor", ctypes.c_char_p), ("value", ctypes.c_void_p)]


class Dtf:
    TYPES = {"float32": 1, "uint8": 2, "int32": 3, "int64": 4}

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name, result in (("error_message", ctypes.c_char_p), ("op_names", ctypes.c_char_p),
                             ("graph_node_name", ctypes.c_char_p), ("tensor_data", ctypes.c_void_p),
                             ("tensor_rank", ctypes.c_size_t), ("tensor_dim", ctypes.c_int64)):
            getattr(self.library, "dtf_" + name).restype = result
        self.library.dtf_node_double.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double]
        self.library.dtf_node_int.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64]

    def op_names(self):
        return [line.split("(")[0] for line in self.library.dtf_op_names().decode().splitlines()]

    def call(self, name, *arguments):
        if getattr(self.library, "dtf_" + name)(*arguments) != 0:
            raise RuntimeError(f"{name}: {self.library.dtf_error_message().decode()}")

    def make(self, name, *arguments):
        made = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(made))
        return made

    def dims(self, numbers):
        return (ctypes.c_int64 * len(numbers))(*numbers), ctypes.c_size_t(len(numbers))

    def node(self, graph, op, inputs, attributes, name=""):
        node = self.make("node_new", graph, op.encode(), name.encode())
        for one in inputs:
            self.library.dtf_node_input(node, one)
        for key, value in attributes.items():
            key = key.encode()
            if isinstance(value, bool):
                self.library.dtf_node_bool(node, key, int(value))
            elif isinstance(value, int):
                self.library.dtf_node_int(node, key, value)
            elif isinstance(value, float):
                self.library.dtf_node_double(node, key, value)
            elif isinstance(value, str):
                self.call("node_dtype", node, key, self.TYPES[value])
            else:
                self.call("node_shape", node, key, *self.dims(value))
        output = Output(0, 0)
        self.call("node_add", node, ctypes.byref(output))
        return output

    def tensor(self, array):
        tensor = self.make("tensor_new", self.TYPES[array.dtype.name], *self.dims(array.shape))
        array = np.ascontiguousarray(array)
        ctypes.memmove(self.library.dtf_tensor_data(tensor), array.ctypes.data, array.nbytes)
        return tensor

    def array(self, tensor):
        kind = {number: name for name, number in self.TYPES.items()}[self.library.dtf_tensor_dtype(tensor)]
        shape = [self.library.dtf_tensor_dim(tensor, ctypes.c_size_t(axis))
                 for axis in range(self.library.dtf_tensor_rank(tensor))]
        made = np.empty(shape, kind)
        ctypes.memmove(made.ctypes.data, self.library.dtf_tensor_data(tensor), made.nbytes)
        return made

    def run(self, graph, feeds, outputs):
        """`feeds`: name -> array."""
        session = self.make("session_open", graph, None, ctypes.c_size_t(0), None)
        tensors = {name: self.tensor(array) for name, array in feeds.items()}
        fed = (Feed * len(tensors))(*[Feed(name.encode(), tensor) for name, tensor in tensors.items()])
        names = [self.library.dtf_graph_node_name(graph, one.node) + b":%d" % one.index for one in outputs]
        values = (ctypes.c_void_p * len(names))()
        self.call("session_run", session, fed, ctypes.c_size_t(len(fed)), (ctypes.c_char_p * len(names))(*names),
                  ctypes.c_size_t(len(names)), values, None, ctypes.c_size_t(0))
        arrays = [self.array(ctypes.c_void_p(value)) for value in values]
        for tensor in [*tensors.values(), *(ctypes.c_void_p(value) for value in values)]:
            self.library.dtf_tensor_free(tensor)
        self.library.dtf_session_free(session)
        return arrays


def of(*shape, low=-2.0, high=2.0):
    return random.uniform(low, high, shape).astype(np.float32)


def whole(*shape, below, kind=np.int32):
    return random.integers(0, below, shape).astype(kind)


class Case:
    """`theirs`: maps PyTorch's tensors, float64 where ours are float32, to the expected output 0.
    """

    def __init__(self, op, inputs, theirs, attributes=None, gradients=True):
        self.op, self.inputs, self.theirs, self.attributes = op, inputs, theirs, attributes or {}
        self.gradients = gradients

    def check(self, dtf):
        graph = dtf.make("graph_new")
        names = [f"x{i}" for i in range(len(self.inputs))]
        given = [dtf.node(graph, "Placeholder", [], {"dtype": array.dtype.name, "shape": list(array.shape)}, name)
                 for name, array in zip(names, self.inputs)]
        made = dtf.node(graph, self.op, given, self.attributes)
        floats = [i for i, array in enumerate(self.inputs) if array.dtype == np.float32]
        theirs_in = [torch.tensor(array, dtype=torch.float64 if i in floats else None,
                                  requires_grad=self.gradients and i in floats)
                     for i, array in enumerate(self.inputs)]
        theirs = self.theirs(*theirs_in)
        wanted, feeds, outputs = [theirs.detach().numpy()], dict(zip(names, self.inputs)), [made]
        if self.gradients and floats:
            weights = of(*theirs.shape)
            feeds["weights"] = weights
            weight = dtf.node(graph, "Placeholder", [], {"dtype": "float32", "shape": list(weights.shape)}, "weights")
            loss = dtf.node(graph, "Mean", [dtf.node(graph, "Mul", [made, weight], {})], {})
            gradients = (Output * len(floats))()
            dtf.call("graph_gradients", graph, loss, (Output * len(floats))(*[given[i] for i in floats]),
                     ctypes.c_size_t(len(floats)), gradients)
            outputs += list(gradients)
            (theirs * torch.tensor(weights, dtype=torch.float64)).mean().backward()
            wanted += [theirs_in[i].grad.numpy() for i in floats]
        ours = dtf.run(graph, feeds, outputs)
        dtf.library.dtf_graph_free(graph)
        for number, (got, want) in enumerate(zip(ours, wanted)):
            what = "its output" if number == 0 else f"the gradient of its input {floats[number - 1]}"
            assert got.shape == want.shape, f"{self}: {what} has the shape {got.shape}, PyTorch's {want.shape}"
            scale = max(1e-3, float(np.abs(want).max(initial=0)))
            error = float(np.abs(got - want).max(initial=0)) / scale
            assert error < 2e-5, f"{self}: {what} is off by {error:.2g} of {scale:.3g}"

    def __str__(self):
        shapes = ", ".join(f"{array.dtype.name}{list(array.shape)}" for array in self.inputs)
        return f"{self.op}({shapes}) {self.attributes}"


def convolution(batch, height, width, channels, kernel, out, stride=1, dilation=1, pad=(0, 0, 0, 0), groups=1):
    top, bottom, left, right = pad
    attributes = {"stride_height": stride, "stride_width": stride, "dilation_height": dilation,
                  "dilation_width": dilation, "padding_top": top, "padding_bottom": bottom, "padding_left": left,
                  "padding_right": right, "groups": groups}

    def theirs(x, filters):
        padded = F.pad(x.permute(0, 3, 1, 2), (left, right, top, bottom))
        return F.conv2d(padded, filters.permute(3, 2, 0, 1), stride=stride, dilation=dilation,
                        groups=groups).permute(0, 2, 3, 1)
    return Case("Conv2D", [of(batch, height, width, channels), of(kernel, kernel, channels // groups, out)], theirs,
                attributes)


def pooling(op, theirs, window, stride, pad=0):
    attributes = {"window_height": window, "window_width": window, "stride_height": stride, "stride_width": stride,
                  "padding_top": pad, "padding_bottom": pad, "padding_left": pad, "padding_right": pad}
    return Case(op, [of(2, 9, 8, 3)],
                lambda x: theirs(x.permute(0, 3, 1, 2), window, stride, pad).permute(0, 2, 3, 1), attributes)


def batch_norm(x, scale, offset):
    return F.batch_norm(x.reshape(-1, x.shape[-1]), None, None, scale, offset, True, 0, 1e-3).reshape(x.shape)


def away_from(edges, array):
    """Moved from where a function has two derivatives."""
    for edge in edges:
        near = np.abs(array - edge) < 1e-2
        array = np.where(near, np.float32(edge + 0.05), array)
    return array


def cases():
    def plain(op, theirs, low=-2.0, high=2.0, edges=(), **attributes):
        return Case(op, [away_from(edges, of(3, 5, 7, low=low, high=high))], theirs, attributes)

    binary = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Maximum": torch.maximum,
              "Minimum": torch.minimum, "SquaredDifference": lambda a, b: (a - b) ** 2}
    for op, theirs in binary.items():
        for a, b in (((4, 5), (4, 5)), ((4, 5), (5,)), ((3, 1, 5), (4, 1)), ((), (2, 3))):
            yield Case(op, [of(*a), of(*b, low=0.5)], theirs)
    for a, b in (((4, 5), (4, 5)), ((4, 5), (5,)), ((3, 1, 5), (4, 1)), ((), (2, 3))):
        yield Case("Pow", [of(*a, low=0.2), of(*b)], torch.pow)
    for op, theirs in (("Less", torch.lt), ("LessEqual", torch.le), ("Equal", torch.eq)):
        yield Case(op, [whole(4, 5, below=3), whole(5, below=3)], lambda a, b, f=theirs: f(a, b).to(torch.uint8))
        yield Case(op, [of(4, 5), of(5)], lambda a, b, f=theirs: f(a, b).to(torch.uint8), gradients=False)
    yield plain("Exp", torch.exp)
    yield plain("Log", torch.log, low=0.1)
    yield plain("Sqrt", torch.sqrt, low=0.1)
    yield plain("Rsqrt", torch.rsqrt, low=0.1)
    yield plain("Abs", torch.abs, edges=(0,))
    yield plain("Scale", lambda x: x * -1.5, factor=-1.5)
    yield plain("Identity", lambda x: x)
    yield Case("StopGradient", [of(3, 4)], lambda x: x, gradients=False)
    yield Case("ZerosLike", [of(3, 4)], torch.zeros_like, gradients=False)
    yield plain("Reshape", lambda x: x.reshape(7, 15), shape=[7, 15])
    yield Case("Normalise", [whole(4, 6, below=256, kind=np.uint8)], lambda x: x.double() * 0.25, {"scale": 0.25})
    yield Case("Select", [whole(4, 5, below=2, kind=np.uint8), of(4, 5), of(4, 5)],
               lambda c, a, b: torch.where(c.bool(), a, b))
    yield Case("Cast", [of(4, 5, low=-9, high=9)], lambda x: x.to(torch.int32), {"dtype": "int32"}, gradients=False)
    yield Case("Cast", [whole(4, 5, below=9)], lambda x: x.double(), {"dtype": "float32"})
    yield Case("AddN", [of(3, 4), of(3, 4), of(3, 4)], lambda *all: sum(all))
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        yield Case("MatMul", [of(*((6, 4) if a else (4, 6))), of(*((5, 6) if b else (6, 5)))],
                   lambda x, y, a=a, b=b: (x.T if a else x) @ (y.T if b else y),
                   {"transpose_a": a, "transpose_b": b})
    yield Case("BiasAdd", [of(3, 4, 5), of(5)], torch.add)
    for op, theirs in (("Sum", torch.sum), ("Mean", torch.mean)):
        yield plain(op, lambda x, f=theirs: f(x))
        for axes, keep in (([0], False), ([1, 2], True), ([0, 2], False)):
            yield plain(op, lambda x, f=theirs, a=axes, k=keep: f(x, dim=a, keepdim=k), axes=axes, keep_dims=keep)
    for op, theirs in (("Max", torch.amax), ("Min", torch.amin)):  # equal ones share the gradient, as TensorFlow's do
        yield Case(op, [of(3, 5, 7)], theirs)
        yield Case(op, [whole(4, 6, below=3).astype(np.float32)], lambda x, f=theirs: f(x, 1), {"axes": [1]})
        yield Case(op, [of(3, 5, 7)], lambda x, f=theirs: f(x, (0, 2), keepdim=True),
                   {"axes": [0, 2], "keep_dims": True})
    yield Case("ArgMax", [of(3, 5, 4)], lambda x: x.argmax(1), {"axis": 1}, gradients=False)
    yield Case("BroadcastTo", [of(3, 1, 4)], lambda x: x.expand(2, 3, 5, 4), {"shape": [2, 3, 5, 4]})

    yield plain("Relu", F.relu, edges=(0,))
    yield plain("Relu6", F.relu6, low=-3.0, high=9.0, edges=(0, 6))
    yield plain("LeakyRelu", lambda x: F.leaky_relu(x, 0.2), edges=(0,), alpha=0.2)
    yield plain("Elu", F.elu)
    yield plain("Gelu", F.gelu)
    yield plain("Gelu", lambda x: F.gelu(x, approximate="tanh"), approximate=True)
    yield plain("Silu", F.silu)
    yield plain("Softplus", F.softplus)
    yield plain("Sigmoid", torch.sigmoid)
    yield plain("Tanh", torch.tanh)
    yield plain("Softmax", lambda x: F.softmax(x, -1))
    yield plain("Huber", lambda x: F.huber_loss(x, torch.zeros_like(x), reduction="none", delta=0.75), delta=0.75)
    for kind in (np.uint8, np.int32, np.int64):
        yield Case("SparseSoftmaxCrossEntropyWithLogits", [of(6, 5), whole(6, below=5, kind=kind)],
                   lambda x, labels: F.cross_entropy(x, labels.long(), reduction="none"))
    targets = np.abs(of(6, 5)) + np.float32(0.1)
    targets /= targets.sum(1, keepdims=True)
    yield Case("SoftmaxCrossEntropyWithLogits", [of(6, 5), targets],
               lambda x, t: F.cross_entropy(x, t, reduction="none"), gradients=False)
    yield Case("SigmoidCrossEntropyWithLogits", [of(6, 5), targets],
               lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none"), gradients=False)
    yield Case("OneHot", [whole(6, below=5)], lambda labels: F.one_hot(labels.long(), 5).double(), {"depth": 5})

    yield convolution(2, 7, 6, 3, 3, 4, pad=(1, 1, 1, 1))
    yield convolution(2, 9, 8, 4, 3, 6, stride=2, pad=(0, 1, 1, 0))
    yield convolution(1, 11, 10, 4, 3, 4, dilation=2, pad=(2, 2, 2, 2))
    yield convolution(2, 8, 8, 6, 3, 4, pad=(1, 1, 1, 1), groups=2)
    yield convolution(2, 8, 8, 16, 3, 16, pad=(1, 1, 1, 1))
    yield convolution(2, 10, 9, 16, 5, 32, pad=(2, 2, 2, 2))
    yield convolution(3, 6, 5, 8, 1, 16)
    yield convolution(2, 9, 9, 4, 3, 4, pad=(1, 1, 1, 1), groups=4)
    yield pooling("MaxPool", lambda x, w, s, p: F.max_pool2d(x, w, s, p), 2, 2)
    yield pooling("MaxPool", lambda x, w, s, p: F.max_pool2d(x, w, s, p), 3, 2, 1)
    yield pooling("AvgPool", lambda x, w, s, p: F.avg_pool2d(x, w, s, p, count_include_pad=False), 3, 2, 1)
    yield Case("FusedBatchNorm", [of(4, 3, 2, 5), of(5), of(5)], batch_norm, {"epsilon": 1e-3})
    yield Case("FusedBatchNormInference", [of(4, 3, 5), of(5), of(5), of(5), of(5, low=0.5)],
               lambda x, s, o, mean, variance: (x - mean) / torch.sqrt(variance + 1e-3) * s + o, {"epsilon": 1e-3},
               gradients=False)
    yield Case("LayerNorm", [of(4, 3, 6), of(6), of(6)], lambda x, s, o: F.layer_norm(x, (6,), s, o, 1e-3),
               {"epsilon": 1e-3})

    yield Case("Concat", [of(2, 3, 4), of(2, 1, 4), of(2, 2, 4)], lambda *all: torch.cat(all, 1), {"axis": 1})
    yield plain("Slice", lambda x: x[1:3, 0:4, 2:7], begin=[1, 0, 2], size=[2, 4, 5])
    yield plain("Pad", lambda x: F.pad(x, (0, 2, 1, 0, 2, 1)), before=[2, 1, 0], after=[1, 0, 2])
    yield plain("Transpose", lambda x: x.permute(2, 0, 1), permutation=[2, 0, 1])
    for kind in (np.uint8, np.int32, np.int64):
        yield Case("Gather", [of(6, 3), whole(2, 5, below=6, kind=kind)], lambda table, at: table[at.long()])


def main(library, word=""):
    dtf = Dtf(library)
    compared, count = set(), 0
    for case in cases():
        compared.add(case.op)
        if word in case.op:
            case.check(dtf)
            count += 1
    ops = {name for name in dtf.op_names() if not name.endswith("Grad")}
    missing = ops - compared - NOT_COMPARED
    assert not missing, f"nobody compares {', '.join(sorted(missing))} with PyTorch: add a case, or say why not"
    gone = (compared | NOT_COMPARED) - ops
    assert not gone, f"there is no op {', '.join(sorted(gone))}"
    print(f"{count} cases of {len(compared)} ops are as PyTorch {torch.__version__} has them (seed {SEED})")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    torch.manual_seed(SEED)
    main(*sys.argv[1:])
