"""The common ops as functions, with TensorFlow's names; Graph.op() and dtf.raw_ops have all."""
from __future__ import annotations

import math
from typing import Any, Iterable, Sequence, Union

import numpy as np
from numpy.typing import DTypeLike

from . import errors
from ._library import whole
from .graph import OPS, Function, Graph, Output, Shape

Axis = Union[int, Sequence[int], None]


def _graph_of(*inputs: Any) -> Graph:
    for one in inputs:
        if isinstance(one, Output):
            return one.graph
    raise errors.InvalidArgumentError(f"{inputs!r} has no dtf.Output: begin with graph.placeholder(), .variable() or .constant()")


def _one(op: str, *inputs: Output, **attributes: Any) -> Output:
    return _graph_of(*inputs).op(op, inputs, **attributes)


def _pair(op: str, a: Output | float, b: Output | float, name: str | None) -> Output:
    """Of two operands of which one may be a number."""
    graph = _graph_of(a, b)
    like = a if isinstance(a, Output) else b
    both = [one if isinstance(one, Output) else graph.constant(one, dtype=like.dtype) for one in (a, b)]  # type: ignore[union-attr]
    return graph.op(op, both, name=name)


def add(a: Output | float, b: Output | float, name: str | None = None) -> Output: return _pair("Add", a, b, name)
def subtract(a: Output | float, b: Output | float, name: str | None = None) -> Output: return _pair("Sub", a, b, name)
def multiply(a: Output | float, b: Output | float, name: str | None = None) -> Output: return _pair("Mul", a, b, name)
def divide(a: Output | float, b: Output | float, name: str | None = None) -> Output: return _pair("Div", a, b, name)
def maximum(a: Output | float, b: Output | float, name: str | None = None) -> Output: return _pair("Maximum", a, b, name)
def minimum(a: Output | float, b: Output | float, name: str | None = None) -> Output: return _pair("Minimum", a, b, name)
def squared_difference(a: Output | float, b: Output | float, name: str | None = None) -> Output: return _pair("SquaredDifference", a, b, name)
def less(a: Output | float, b: Output | float, name: str | None = None) -> Output: return _pair("Less", a, b, name)


def equal(a: Output | float, b: Output | float, name: str | None = None) -> Output:
    """uint8: 1 where the values are equal."""
    return _pair("Equal", a, b, name)


def square(x: Output, name: str | None = None) -> Output: return _one("Mul", x, x, name=name)
def exp(x: Output, name: str | None = None) -> Output: return _one("Exp", x, name=name)
def log(x: Output, name: str | None = None) -> Output: return _one("Log", x, name=name)
def sqrt(x: Output, name: str | None = None) -> Output: return _one("Sqrt", x, name=name)
def identity(x: Output, name: str | None = None) -> Output: return _one("Identity", x, name=name)
def stop_gradient(x: Output, name: str | None = None) -> Output: return _one("StopGradient", x, name=name)
def relu(x: Output, name: str | None = None) -> Output: return _one("Relu", x, name=name)
def sigmoid(x: Output, name: str | None = None) -> Output: return _one("Sigmoid", x, name=name)
def tanh(x: Output, name: str | None = None) -> Output: return _one("Tanh", x, name=name)
def softmax(x: Output, name: str | None = None) -> Output: return _one("Softmax", x, name=name)
def bias_add(x: Output, bias: Output, name: str | None = None) -> Output: return _one("BiasAdd", x, bias, name=name)


def matmul(a: Output, b: Output, transpose_a: bool = False, transpose_b: bool = False, name: str | None = None) -> Output:
    return _one("MatMul", a, b, name=name, transpose_a=transpose_a, transpose_b=transpose_b)


def cast(x: Output, dtype: DTypeLike, name: str | None = None) -> Output: return _one("Cast", x, name=name, dtype=dtype)


def reshape(x: Output, shape: Shape, name: str | None = None) -> Output:
    """One dimension may be -1: as many as are left."""
    return _one("Reshape", x, name=name, shape=_filled(x, shape))


def argmax(x: Output, axis: int, name: str | None = None) -> Output:
    """`axis`: -1 is the last."""
    return _one("ArgMax", x, name=name, axis=_from_0("argmax", axis, len(_shape(x))))


def _shape(x: Output) -> tuple[int, ...]:
    return _graph_of(x).spec(x)[1]


def _from_0(op: str, axis: Any, rank: int) -> int:
    """Returns an axis of a tensor, which may count from the last one, -1."""
    number = whole(f"{op}(): the axis", axis, -rank, rank - 1)
    return number + rank if number < 0 else number


def _filled(x: Output, shape: Shape) -> list[int]:
    """Returns the shape with a number for its -1."""
    if any(dim is None for dim in shape):
        raise errors.InvalidArgumentError(f"reshape(): {list(shape)} has None; write -1 for the dimension that is left")
    filled = [whole("reshape(): a dimension", dim, -1) for dim in shape]
    if filled.count(-1) != 1:
        return filled  # the op names other mistakes
    elements, others = math.prod(_shape(x)), math.prod(dim for dim in filled if dim != -1)
    if others == 0 or elements % others:
        raise errors.InvalidArgumentError(f"reshape(): {list(_shape(x))} has {elements} elements, which {list(shape)} doesn't divide")
    filled[filled.index(-1)] = elements // others
    return filled


def one_hot(indices: Output, depth: int, name: str | None = None) -> Output: return _one("OneHot", indices, name=name, depth=depth)


def gather(table: Output, indices: Output, name: str | None = None) -> Output:
    """Returns rows of a table."""
    return _one("Gather", table, indices, name=name)


def concat(values: Sequence[Output], axis: int, name: str | None = None) -> Output:
    """`axis`: -1 is the last."""
    if not values:
        raise errors.InvalidArgumentError("concat() of no tensors")
    return _one("Concat", *values, name=name, axis=_from_0("concat", axis, len(_shape(values[0]))))


def _reduced(op: str, x: Output, axis: Axis, keepdims: bool, name: str | None) -> Output:
    axes = [] if axis is None else list(axis) if isinstance(axis, Iterable) else [axis]
    return _one(op, x, name=name, axes=[_from_0(f"reduce_{op.lower()}", one, len(_shape(x))) for one in axes], keep_dims=keepdims)


def reduce_mean(x: Output, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Output:
    """Over all dimensions, or over the dimensions in `axis`; so the three below."""
    return _reduced("Mean", x, axis, keepdims, name)


def reduce_sum(x: Output, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Output:
    return _reduced("Sum", x, axis, keepdims, name)


def reduce_max(x: Output, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Output:
    return _reduced("Max", x, axis, keepdims, name)


def reduce_min(x: Output, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Output:
    return _reduced("Min", x, axis, keepdims, name)


# ---- losses and metrics
def sparse_softmax_cross_entropy_with_logits(*, labels: Output, logits: Output, name: str | None = None) -> Output:
    """One number for each example. `labels`: classes, uint8, int32 or int64."""
    return _one("SparseSoftmaxCrossEntropyWithLogits", logits, labels, name=name)


def softmax_cross_entropy_with_logits(*, labels: Output, logits: Output, name: str | None = None) -> Output:
    return _one("SoftmaxCrossEntropyWithLogits", logits, labels, name=name)


def sigmoid_cross_entropy_with_logits(*, labels: Output, logits: Output, name: str | None = None) -> Output:
    return _one("SigmoidCrossEntropyWithLogits", logits, labels, name=name)


def accuracy(*, labels: Output, logits: Output, name: str | None = None) -> Output:
    """The share of examples whose greatest logit belongs to the label."""
    return _one("Accuracy", logits, labels, name=name)


# ---- changes of variables, on their tasks: each is atomic; each returns the value after it
def assign(variable: Output, value: Output, name: str | None = None) -> Output: return _one("Assign", variable, value, name=name)
def assign_add(variable: Output, by: Output, name: str | None = None) -> Output: return _one("AssignAdd", variable, by, name=name)
def assign_sub(variable: Output, by: Output, name: str | None = None) -> Output: return _one("AssignSub", variable, by, name=name)


def group(*outputs: Output, name: str | None = None) -> Output:
    """An op that runs after all of them. It has no value: a session takes it as a target."""
    return _graph_of(*outputs).op("NoOp", after=outputs, name=name)


# ---- branches and loops
def cond(condition: Output, arguments: Sequence[Output], true_fn: Function, false_fn: Function) -> list[Output]:
    """Returns the results of `true_fn` if the scalar is not 0, else the results of `false_fn`."""
    return condition.graph.outputs(
        condition.graph.op("If", [condition, *arguments], then_branch=true_fn, else_branch=false_fn))


def while_loop(loop_vars: Sequence[Output], body: Function, max_iterations: int, cond: Function | None = None,
               captured: Sequence[Output] = ()) -> list[Output]:
    """Returns the loop's variables at its end, then the number of iterations. `body` and `cond` take the variables and then
    `captured`; the loop goes on while the scalar of `cond` is not 0, at most `max_iterations` times."""
    graph = _graph_of(*loop_vars)
    made = graph.op("While", [*loop_vars, *captured], body=body, cond=cond, max_iterations=max_iterations,
                    carried=len(loop_vars), sequences=0, stacked=0, summed=0)
    return graph.outputs(made)[:len(loop_vars) + 1]


class FIFOQueue:
    """A queue on a task, shared by all clients that name it: first in, first out, bounded. A step waits for room or for
    elements; on a closed queue it raises OutOfRangeError."""

    def __init__(self, graph: Graph, capacity: int, dtypes: Sequence[DTypeLike], shapes: Sequence[Shape], name: str):
        if len(dtypes) != len(shapes):
            raise errors.InvalidArgumentError(f"the queue '{name}' has {len(dtypes)} dtypes and {len(shapes)} shapes")
        self.queue = graph.op("FIFOQueue", name=name, capacity=capacity,
                              component_types=", ".join(np.dtype(dtype).name for dtype in dtypes),
                              shapes=", ".join(str([int(dim) for dim in shape]) for shape in shapes))

    def _op(self, op: str, values: Sequence[Output] = (), **attributes: Any) -> Output:
        return self.queue.graph.op(op, [self.queue, *values], **attributes)

    def enqueue(self, values: Sequence[Output]) -> Output: return self._op("QueueEnqueue", values)
    def enqueue_many(self, values: Sequence[Output]) -> Output: return self._op("QueueEnqueueMany", values)

    def dequeue(self) -> list[Output]:
        """One tensor for each component."""
        return self.queue.graph.outputs(self._op("QueueDequeue"))

    def dequeue_many(self, n: int) -> list[Output]:
        return self.queue.graph.outputs(self._op("QueueDequeueMany", n=n))

    def size(self) -> Output: return self._op("QueueSize")

    def close(self, cancel_pending_enqueues: bool = False) -> Output:
        return self._op("QueueClose", cancel_pending_enqueues=cancel_pending_enqueues)


class RawOps:
    """Every op with an input by its name: `dtf.raw_ops.Conv2D(x, filters, stride_height=1, ...)`."""

    def __getattr__(self, op: str) -> Any:
        if op not in OPS:
            raise AttributeError(f"dtf has no op '{op}': dtf.op_names() lists all")

        def add_op(*inputs: Output, name: str | None = None, after: Sequence[Output] = (), **attributes: Any) -> Output:
            return _graph_of(*inputs).op(op, inputs, name=name, after=after, **attributes)
        add_op.__name__ = op
        return add_op

    def __dir__(self) -> list[str]:
        return sorted(OPS)


raw_ops = RawOps()


def op_names() -> dict[str, dict[str, str]]:
    """Returns all ops with their attributes: {"MatMul": {"transpose_a": "bool", ...}, ...}."""
    return {op: dict(attributes) for op, attributes in OPS.items()}
