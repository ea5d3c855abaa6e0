"""Models trained by `dtf-launch`, applied to arrays and rows, or added to a graph."""
from __future__ import annotations

import bisect
import ctypes
import json
import os
from typing import Any, Mapping, NamedTuple, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike

from . import errors
from ._calls import Handle, interruptible
from ._library import COutput, lib, text, texts
from .graph import Graph, Output
from .session import Session

Rows = Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]
_EXAMPLES_MAX = 1024  # of one step of predict()


class Signature(NamedTuple):
    """A signature of a model in a graph: its tensors by the names of dtf_model_add() in dtf.h."""
    inputs: dict[str, Output]
    outputs: dict[str, Output]
    variables: dict[str, Output]
    prefix: str  # of the variables' names in the graph


class Model:
    """A loaded checkpoint of a job.

    `cluster_file`: the job's file. `checkpoint`: empty for the newest in its run_dir; a step; a checkpoint's folder; or
    "initial" for the job's initial values.
    Threads: one at a time. Errors: InvalidArgumentError for the file; BadDataError if there is no such checkpoint.
    """

    def __init__(self, cluster_file: str | os.PathLike[str], checkpoint: str | int | os.PathLike[str] = ""):
        which = str(checkpoint) if isinstance(checkpoint, int) else os.fspath(checkpoint)

        def loaded() -> Handle:
            made = ctypes.c_void_p()
            lib.model_load(text(os.fspath(cluster_file)), text(which), ctypes.byref(made))
            return Handle(made, lib.model_free, "model")
        self._handle = interruptible(loaded)
        with self._handle as model:
            self.step: int = lib.model_step(model)
            data = lib.model_data(model)
            # The meaning of the training data, as common/data/data_signature.h describes it; None if unknown.
            self.data: dict[str, Any] | None = json.loads(data) if data else None
            self.classes: list[str] = []  # the names of the classes, from class 0
            while (name := lib.model_class(model, len(self.classes))) is not None:
                self.classes.append(name.decode())
        self._ready: tuple[int, Signature, Session] | None = None

    def columns(self, part: str = "features") -> list[str]:
        """Returns the columns of the table that feed an input or a target, in order; empty without a table."""
        names: list[str] = []
        with self._handle as model:
            while (name := lib.model_column(model, text(part), len(names))) is not None:
                names.append(name.decode())
        return names

    def add_to(self, graph: Graph, batch: int, name: str = "predict", *, device: str = "",
               variable_devices: Sequence[str] = ()) -> Signature:
        """Adds the signature "predict", "evaluate" or "train" for `batch` examples, under the graph's name scope. Variable
        i is on variable_devices[i % count]."""
        made = ctypes.c_void_p()
        with graph.lock, graph.use() as pointer, self._handle as model:
            lib.model_add(model, text(name), pointer, text(graph.prefix), text(device), texts(list(variable_devices)),
                          len(variable_devices), batch, ctypes.byref(made))
        signature = Signature({}, {}, {}, graph.prefix)
        try:
            role, tensor = ctypes.c_int(), COutput()
            for index in range(lib.signature_count(made)):
                tensor_name = lib.signature_tensor(made, index, ctypes.byref(role), ctypes.byref(tensor)).decode()
                signature[role.value][tensor_name] = Output(graph, tensor.node, tensor.index)
        finally:
            lib.signature_free(made)
        return signature

    def restore(self, added: Signature, session: Session) -> None:
        """Sets the variables of a signature in a session on its graph."""
        def restored() -> None:
            with self._handle as model, session.use() as pointer:
                lib.model_restore(model, text(added.prefix), pointer)
        interruptible(restored)

    # ---- predictions, in this process
    def predict(self, examples: Rows | ArrayLike) -> np.ndarray[Any, Any]:
        """Returns the outputs for each example: probabilities of the classes, or numbers.

        `examples`: an array [n, the input's shape]; or, of a table, rows: one dict {column: value}, a list of them, or a
        dict of equally long columns. Other columns are ignored. A missing number is None, "" or NaN.
        """
        feeds = self._features(examples)
        count = len(next(iter(feeds.values())))
        parts = [self._applied({name: array[begin:begin + _EXAMPLES_MAX] for name, array in feeds.items()})
                 for begin in range(0, count, _EXAMPLES_MAX)]
        return np.concatenate(parts) if parts else np.empty((0,), np.float32)

    def _features(self, examples: Any) -> dict[str, np.ndarray[Any, Any]]:
        rows = _rows_of(examples)
        if rows is None:
            return {"features": np.asarray(examples)}
        if self.data is None or not self.data.get("table_columns"):
            raise errors.InvalidArgumentError("the model was not trained on a table: predict() takes an array of examples")
        feeds = {}
        for part in self.data["inputs"]:
            fields = [[_field(row, column, part["columns"]) for column in part["columns"]] for row in rows]
            if part["name"] == "features":
                feeds["features"] = np.array([[_number(field, column) for field, column in zip(line, part["columns"])]
                                              for line in fields], np.float32).reshape(len(rows), len(part["columns"]))
            else:
                feeds["categories/" + part["name"]] = np.array(
                    [[_category(field, part["preparation"], part["name"]) for field in line] for line in fields], np.int32)
        return feeds

    def _applied(self, feeds: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        batch = len(next(iter(feeds.values())))
        if self._ready is None or self._ready[0] != batch:
            graph = Graph()
            signature = self.add_to(graph, batch)
            session = Session(graph)
            self.restore(signature, session)
            self._ready = batch, signature, session
        _, signature, session = self._ready
        lacking = sorted(set(signature.inputs) - set(feeds))
        if lacking:
            raise errors.InvalidArgumentError(f"the model also has the inputs {', '.join(lacking)}: give rows by the names of columns")
        return session.run(  # type: ignore[no-any-return]
            signature.outputs["outputs"], {signature.inputs[name]: array for name, array in feeds.items()})


def _rows_of(examples: Any) -> list[Mapping[str, Any]] | None:
    """Returns rows; None if the examples are an array."""
    if isinstance(examples, Mapping):
        columns = {name: [values] if isinstance(values, (str, bytes)) or np.ndim(values) == 0 else list(values)
                   for name, values in examples.items()}
        if len({len(values) for values in columns.values()}) > 1:
            raise errors.InvalidArgumentError("the columns of the rows have different lengths")
        return [dict(zip(columns, row)) for row in zip(*columns.values())]
    if isinstance(examples, (list, tuple)) and examples and all(isinstance(row, Mapping) for row in examples):
        return list(examples)
    return None


def _field(row: Mapping[str, Any], column: str, columns: Sequence[str]) -> Any:
    if column not in row:
        raise errors.InvalidArgumentError(f"the row lacks the column {column}; the model was trained on {', '.join(columns)}")
    value = row[column]
    return value.strip() if isinstance(value, str) else value


def _number(field: Any, column: str) -> float:
    if field is None or field == "":
        return float("nan")
    try:
        return float(field)
    except (TypeError, ValueError):
        raise errors.InvalidArgumentError(f"column '{column}': {field!r} is no number") from None


def _category(field: Any, preparation: list[dict[str, Any]], name: str) -> int:
    """Returns the number of a word, as common/model_files/USING.md explains it."""
    if not preparation:
        return int(field)
    step = preparation[0]
    if len(preparation) > 1 or step.get("split") or step["op"] not in ("vocabulary", "hash", "bucketize"):
        raise errors.InvalidArgumentError(f"predict() can't prepare the words of '{name}' yet: use `dtf-launch predict`, or feed "
                                          "add_to()'s inputs")
    if step["op"] == "bucketize":
        return bisect.bisect_right(step["boundaries"], _number(field, name))
    word, words = "" if field is None else str(field), step.get("words", [])
    if word in words:
        return int(words.index(word))
    buckets = step.get("buckets") or step.get("num_oov_buckets")
    if not buckets:
        raise errors.InvalidArgumentError(f"the model doesn't know the word '{word}' of '{name}'; it has {', '.join(words)}")
    if buckets == 1:
        return len(words)
    try:
        import xxhash  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise errors.InvalidArgumentError(f"the words of '{name}' are hashed: install the package xxhash, or use `dtf-launch "
                                          "predict`") from None
    return int(len(words) + xxhash.xxh3_64_intdigest(word.encode()) % buckets)
