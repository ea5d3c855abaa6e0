"""Graphs of ops, which a Session runs."""
from __future__ import annotations

import contextlib
import ctypes
import math
import numbers
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NamedTuple, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _tensors, errors
from ._calls import Handle
from ._library import CMinimizeOptions, COutput, dims, lib, text, whole

if TYPE_CHECKING:
    from .optimizers import Optimizer

Shape = Sequence[int]


class NodeInfo(NamedTuple):
    """The argument of a device function: an op that is being added."""
    type: str  # "Variable", "MatMul"
    name: str  # may be empty or end in "/": then the graph names it
    bytes: int = 0  # of a Variable's value


# Ops that act on a variable or a queue, where that is: a device function isn't asked.
_WHERE_THE_STATE_IS = ("ReadVariable", "Assign", "Scatter", "Apply", "IsVariable", "Initialize", "Queue")
Device = Union[str, None, Callable[[NodeInfo], Union[str, None]]]


class Output:
    """A tensor of a graph: an output of an op. Has the operators of arithmetic; a number becomes a constant.

    `==` compares which tensor it is; dtf.equal() compares the values.
    """

    __slots__ = ("graph", "node", "index")
    __array_ufunc__ = None  # array * output is no array of outputs

    def __init__(self, graph: Graph, node: int, index: int = 0):
        self.graph, self.node, self.index = graph, node, index

    @property
    def name(self) -> str:
        """The name that a session uses: "layer/Relu:0"."""
        return f"{self.graph.node_name(self.node)}:{self.index}"

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.graph.spec(self)[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.graph.spec(self)[1]

    def __repr__(self) -> str:
        try:
            return f"<dtf.Output {self.name} {self.dtype}{list(self.shape)}>"
        except errors.InvalidArgumentError:
            return f"<dtf.Output {self.graph.node_name(self.node)} without a value>"

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Output) and self.graph is other.graph and self.node == other.node
                and self.index == other.index)

    def __hash__(self) -> int:
        return hash((id(self.graph), self.node, self.index))

    def __bool__(self) -> bool:
        raise TypeError(f"{self.name} has no value before a session runs it: use dtf.cond() in a graph, or fetch it")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self.name} is one tensor, not a sequence")

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> None:
            from ._habits import remedy
            raise AttributeError(f"a dtf.Output has no '{name}'{remedy('Output.' + name)}")

    def _with(self, op: str, other: Output | float, swapped: bool = False) -> Output:
        if not isinstance(other, Output):
            if isinstance(other, np.ndarray):
                raise errors.InvalidArgumentError(f"{self.name} and an array have no operator: feed the array through a placeholder, or "
                                                  "make it a variable")
            if not isinstance(other, numbers.Real):
                return NotImplemented  # type: ignore[no-any-return]
            other = self.graph.constant(other, dtype=self.dtype)
        return self.graph.op(op, [other, self] if swapped else [self, other])

    def __add__(self, other: Output | float) -> Output: return self._with("Add", other)
    def __radd__(self, other: float) -> Output: return self._with("Add", other, True)
    def __sub__(self, other: Output | float) -> Output: return self._with("Sub", other)
    def __rsub__(self, other: float) -> Output: return self._with("Sub", other, True)
    def __mul__(self, other: Output | float) -> Output: return self._with("Mul", other)
    def __rmul__(self, other: float) -> Output: return self._with("Mul", other, True)
    def __truediv__(self, other: Output | float) -> Output: return self._with("Div", other)
    def __rtruediv__(self, other: float) -> Output: return self._with("Div", other, True)
    def __pow__(self, other: Output | float) -> Output: return self._with("Pow", other)
    def __matmul__(self, other: Output) -> Output: return self._with("MatMul", other)
    def __rmatmul__(self, other: Output) -> Output: return self._with("MatMul", other, True)
    def __lt__(self, other: Output | float) -> Output: return self._with("Less", other)
    def __le__(self, other: Output | float) -> Output: return self._with("LessEqual", other)
    def __gt__(self, other: Output | float) -> Output: return self._with("Less", other, True)
    def __ge__(self, other: Output | float) -> Output: return self._with("LessEqual", other, True)
    def __neg__(self) -> Output: return self.graph.op("Scale", [self], factor=-1.0)


class Function(NamedTuple):
    """A graph that an If or a While calls: from all its placeholders, in order, to results."""
    graph: Graph
    parameters: Sequence[Output]
    results: Sequence[Output]


class Minimized(NamedTuple):
    """The training step of Graph.minimize()."""
    train: Output  # runs a step; its value, int64, is the global step after it
    global_step: Output  # the counter, a variable
    norm: Output | None  # with clip_by_global_norm, the norm before


def _op_table() -> dict[str, dict[str, str]]:
    """Returns the attributes of each op with their kinds: {"MatMul": {"transpose_a": "bool?"}}."""
    table = {}
    for line in lib.op_names().decode().splitlines():
        op, _, attributes = line.partition("(")
        words = attributes.partition(")")[2].split()
        table[op] = {name: kind.rstrip("?") for name, _, kind in (word.partition(":") for word in words)}
    return table


OPS = _op_table()


class Graph:
    """Ops, added and never removed. Threads: any, one after another (it has a lock).

    Errors: InvalidArgumentError, with the op's name, for an op, an attribute, a shape or a name that doesn't fit.
    """

    def __init__(self) -> None:
        made = ctypes.c_void_p()
        lib.graph_new(ctypes.byref(made))
        self._handle = Handle(made, lib.graph_free, "graph", forks=True)
        self._lock = threading.RLock()
        self._device: Device = None
        self._prefix = ""
        self._names: dict[str, int] = {}  # of the nodes that count_nodes() has seen
        self.initial_values: dict[str, np.ndarray[Any, Any]] = {}  # of variables that have an array

    # ---- devices and names of the ops that are added in a `with`
    @contextlib.contextmanager
    def device(self, device: Device) -> Iterator[None]:
        """`with graph.device("/job:ps/task:0"):`; or a function from a NodeInfo to a device, as replica_device_setter()
        returns. An inner device takes the place of the outer one."""
        before, self._device = self._device, device
        try:
            yield
        finally:
            self._device = before

    @contextlib.contextmanager
    def name_scope(self, name: str) -> Iterator[None]:
        """`with graph.name_scope("layer"):` names the ops within "layer/...".
        """
        before, self._prefix = self._prefix, f"{self._prefix}{name}/"
        try:
            yield
        finally:
            self._prefix = before

    @property
    def prefix(self) -> str:
        return self._prefix

    # ---- ops
    def op(self, op: str, inputs: Sequence[Output] = (), name: str | None = None, after: Iterable[Output] = (),
           **attributes: Any) -> Output:
        """Adds any op, with its attributes by name; dtf.op_names() lists all. Returns its first output; outputs() returns all.
        `after`: control inputs: it runs after them."""
        if op not in OPS:
            raise errors.InvalidArgumentError(f"unknown op '{op}': dtf.op_names() lists all")
        full = self._prefix + (name or "")
        inputs, after = list(inputs), list(after)
        for one in (*inputs, *after):
            self._own(one)
        with self._lock, self._handle as graph:
            made = ctypes.c_void_p()
            lib.node_new(graph, text(op), text(full), ctypes.byref(made))
            try:
                self._describe(made, NodeInfo(op, full, _bytes_of(op, attributes)), inputs, after, attributes)
            except BaseException:
                lib.node_free(made)
                raise
            node = ctypes.c_int32()
            lib.node_add(made, ctypes.byref(node))  # frees the description, even if it fails
            return Output(self, node.value)

    def _describe(self, made: Any, info: NodeInfo, inputs: Sequence[Output], after: Iterable[Output],
                  attributes: dict[str, Any]) -> None:
        for one in inputs:
            lib.node_input(made, COutput(one.node, one.index))
        for one in after:
            lib.node_control_input(made, one.node)
        device = self._device_of(info)
        if device:
            lib.node_device(made, text(device))
        for key, value in attributes.items():
            if value is not None:
                _set_attribute(made, info.type, key, value)

    def _device_of(self, info: NodeInfo) -> str | None:
        if not callable(self._device):
            return self._device
        return None if info.type.startswith(_WHERE_THE_STATE_IS) else self._device(info)

    def outputs(self, one: Output) -> list[Output]:
        """Returns all outputs of the op that has this one."""
        found: list[Output] = []
        while True:
            try:
                self.spec(Output(self, one.node, len(found)))
            except errors.InvalidArgumentError:
                return found
            found.append(Output(self, one.node, len(found)))

    def placeholder(self, dtype: DTypeLike, shape: Shape, name: str | None = None) -> Output:
        """A tensor that each run feeds. Its shape is fixed: a step is compiled for one size of the batch."""
        if shape is None or any(dim is None for dim in shape):
            raise errors.InvalidArgumentError(f"the placeholder {name or ''} has an unknown dimension: a step is compiled for one size of "
                                              "the batch; make a second graph for another")
        return self.op("Placeholder", name=name, dtype=dtype, shape=shape)

    def constant(self, value: float, shape: Shape = (), dtype: DTypeLike = np.float32, name: str | None = None) -> Output:
        """A tensor of one number. For an array, feed a placeholder."""
        if not isinstance(value, numbers.Real):
            raise errors.InvalidArgumentError("a constant is one number, which fills its shape: feed an array through a placeholder")
        number = _tensors.constant_of(name or "the constant", value, dtype)
        return self.op("Const", name=name, value=number, shape=shape, dtype=dtype)

    def variable(self, name: str, shape: Shape | None = None, initializer: str | float | ArrayLike = "zeros") -> Output:
        """A float32 variable, shared by all sessions that name it. `initializer`, for Session.initialize(): "zeros", "ones",
        "random_normal=0.1", "glorot_uniform" and so on; a number; or an array, which gives the shape as well."""
        if isinstance(initializer, str):
            described = initializer
        elif isinstance(initializer, numbers.Real):
            described = f"constant={_tensors.constant_of(name, initializer, np.float32)!r}"
        else:
            array = np.array(_tensors.fed_array(name, initializer, np.dtype(np.float32), None if shape is None else tuple(shape)))
            made = self._variable(name, array.shape, "zeros")
            self.initial_values[self.node_name(made.node)] = array
            return made
        return self._variable(name, _wanted(name, shape), described)

    def _variable(self, name: str, shape: Shape, initializer: str) -> Output:
        return self.op("Variable", name=name, shape=shape, initializer=initializer)

    def counter(self, name: str = "global_step") -> Output:
        """An int64 scalar variable, 0 at first."""
        return self.op("Variable", name=name, shape=(), dtype=np.int64, initializer="zeros")

    def initial_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the arrays with which variables begin; a moving average begins as its variable."""
        arrays = dict(self.initial_values)
        for name, array in self.initial_values.items():
            average = f"{name}/ExponentialMovingAverage"
            if average not in arrays and self.named(average) is not None:
                arrays[average] = array
        return arrays

    # ---- training
    def gradients(self, loss: Output, with_respect_to: Sequence[Output]) -> list[Output]:
        """Adds d(loss) / d(x) for each x."""
        count = len(with_respect_to)
        made = (COutput * count)()
        with self._lock, self._handle as graph:
            lib.graph_gradients(graph, self._own(loss), self.several(with_respect_to), count, made)
        return [Output(self, one.node, one.index) for one in made]

    def minimize(self, loss: Output, optimizer: Optimizer | str, *, var_list: Sequence[Output] = (),
                 clip_by_global_norm: float | None = None, clip_by_value: float | None = None,
                 moving_average_decay: float | None = None, global_step: str | Output = "global_step") -> Minimized:
        """Adds one step of an optimizer that makes the loss smaller: gradients, clipping, the updates on the tasks of the
        variables, and the count of the step. `var_list`: the variables; none: all that the loss depends on."""
        from .optimizers import settings_text
        words = settings_text(optimizer if isinstance(optimizer, str) else optimizer.text(),
                              {"clip_by_global_norm": clip_by_global_norm, "clip_by_value": clip_by_value,
                               "moving_average.decay": moving_average_decay})
        counter = self.node_name(global_step.node) if isinstance(global_step, Output) else global_step
        options = CMinimizeOptions(variables=self.several(var_list), variables_count=len(var_list), prefix=text(self._prefix),
                                   global_step=text(counter))
        train, count, norm = COutput(), COutput(), COutput()
        with self._lock, self._handle as graph:
            lib.graph_minimize(graph, self._own(loss), text(words), ctypes.byref(options), ctypes.byref(train),
                               ctypes.byref(count), ctypes.byref(norm))
        return Minimized(Output(self, train.node, train.index), Output(self, count.node, count.index),
                         Output(self, norm.node, norm.index) if norm.node >= 0 else None)

    # ---- what is there
    def node_name(self, node: int) -> str:
        with self._lock, self._handle as graph:
            name = lib.graph_node_name(graph, whole("node", node, -2**31, 2**31 - 1))
        if name is None:
            raise errors.InvalidArgumentError(f"the graph has no node {node}")
        return str(name.decode())

    def spec(self, output: Output) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Returns dtype and shape."""
        dtype, rank, room = ctypes.c_int(), ctypes.c_size_t(), 16
        with self._lock, self._handle as graph:
            while True:
                shape = (ctypes.c_int64 * room)()
                lib.graph_output(graph, self._own(output), ctypes.byref(dtype), shape, room, ctypes.byref(rank))
                if rank.value <= room:
                    return _tensors.dtype_of(dtype.value), tuple(shape[:rank.value])
                room = rank.value

    def count_nodes(self) -> int:
        """Returns the number of nodes; finds the names of new ones for named()."""
        with self._lock, self._handle as graph:
            while (name := lib.graph_node_name(graph, len(self._names))) is not None:
                self._names[name.decode()] = len(self._names)
        return len(self._names)

    def named(self, name: str) -> Output | None:
        """Returns the tensor of a name, "x" or "x:0"; None if there is none."""
        node_name, _, index = name.partition(":")
        if node_name not in self._names:
            self.count_nodes()
        if node_name not in self._names:
            return None
        if index and not (index.isascii() and index.isdigit() and len(index) < 10):
            return None
        output = Output(self, self._names[node_name], int(index or 0))
        try:
            self.spec(output)
        except errors.InvalidArgumentError:
            return None
        return output

    def copied(self) -> Handle:
        """Returns a copy for the C interface, to be used without the lock: a session may take long to open."""
        made = ctypes.c_void_p()
        with self._lock, self._handle as graph:
            lib.graph_copy(graph, ctypes.byref(made))
        return Handle(made, lib.graph_free, "graph", forks=True)

    def use(self) -> Handle:
        """The graph of the C interface, for other modules: `with graph.use() as pointer`."""
        return self._handle

    @property
    def lock(self) -> threading.RLock:
        return self._lock

    def _own(self, output: Output) -> COutput:
        if not isinstance(output, Output):
            raise errors.InvalidArgumentError(f"{output!r} is no dtf.Output: use graph.constant(), or feed a placeholder")
        if output.graph is not self:
            raise errors.InvalidArgumentError("an output of another graph")
        return COutput(output.node, output.index)

    def several(self, outputs: Sequence[Output]) -> Any:
        return (COutput * len(outputs))(*[self._own(one) for one in outputs])


def _bytes_of(op: str, attributes: dict[str, Any]) -> int:
    """Returns the bytes of a Variable; the op checks the attributes later."""
    if op != "Variable":
        return 0
    shape, dtype = attributes.get("shape") or (), attributes.get("dtype")
    elements = math.prod(dim for dim in ([shape] if isinstance(shape, numbers.Integral) else shape) if isinstance(dim, numbers.Integral))
    return int(elements) * (8 if dtype is not None and _tensors.number_of(dtype) == _tensors.number_of(np.int64) else 4)


def _wanted(name: str, shape: Shape | None) -> Shape:
    if shape is None:
        raise errors.InvalidArgumentError(f"the variable '{name}' has no shape: give it, or an array as its initializer")
    return shape


def _set_attribute(made: Any, op: str, key: str, value: Any) -> None:
    kind = OPS[op].get(key)
    if kind is None:
        known = ", ".join(OPS[op]) or "none"
        raise errors.InvalidArgumentError(f"{op} has no attribute '{key}'; it has {known}")
    name = text(key)
    try:
        if kind == "bool":
            lib.node_bool(made, name, int(bool(value)))
        elif kind == "int":
            lib.node_int(made, name, whole(f"{op}: the attribute '{key}'", _whole(value)))
        elif kind == "double":
            lib.node_double(made, name, float(value))
        elif kind == "text":
            lib.node_text(made, name, text(value))
        elif kind == "dtype":
            lib.node_dtype(made, name, _tensors.number_of(value))
        elif kind == "shape":
            lib.node_shape(made, name, *dims([_whole(dim) for dim in ([value] if isinstance(value, numbers.Integral) else value)]))
        else:
            _set_function(made, name, value)
    except errors.Error:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise errors.InvalidArgumentError(f"{op}: the attribute '{key}' is of the kind {kind}, not {value!r}") from error


def _whole(value: Any) -> int:
    if isinstance(value, numbers.Integral):
        return int(value)
    raise TypeError(f"{value!r} is no whole number")


def _set_function(made: Any, name: bytes, function: Function) -> None:
    body = function.graph
    with body.lock, body.use() as pointer:
        lib.node_function(made, name, pointer, body.several(function.parameters), len(function.parameters),
                          body.several(function.results), len(function.results))
