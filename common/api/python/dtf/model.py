"""Models trained by `dtf-launch`, applied to arrays and rows, or added to a graph."""
from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Mapping, NamedTuple, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _preparation, errors
from ._calls import Handle, interruptible
from ._library import COutput, lib, text, texts, whole
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
            # The meaning of the training data (common/data/data_signature.h); None if unknown.
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
                          len(variable_devices), whole("batch", batch), ctypes.byref(made))
        signature = Signature({}, {}, {}, graph.prefix)
        by_role = signature.inputs, signature.outputs, signature.variables
        try:
            role, tensor = ctypes.c_int(), COutput()
            for index in range(lib.signature_count(made)):
                tensor_name = lib.signature_tensor(made, index, ctypes.byref(role), ctypes.byref(tensor)).decode()
                by_role[role.value][tensor_name] = Output(graph, tensor.node, tensor.index)
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
        dict of equally long columns, or a DataFrame. Other columns are ignored. A text is read as a table's field is; a
        missing value is None or NaN. An array is fed as it is: of a table that was prepared, give rows.
        """
        feeds = self._features(examples)
        count = len(next(iter(feeds.values())))
        parts = [self._applied({name: array[begin:begin + _EXAMPLES_MAX] for name, array in feeds.items()})
                 for begin in range(0, count, _EXAMPLES_MAX)]
        return np.concatenate(parts) if parts else np.empty((0,), np.float32)

    def _features(self, examples: Any) -> dict[str, np.ndarray[Any, Any]]:
        rows = _preparation.rows_of(examples)
        if rows is None:
            array = np.asarray(examples)
            if array.ndim == 0:
                raise errors.InvalidArgumentError(f"predict() takes rows, as {{column: value}}, or an array of examples, not {examples!r}")
            return {"features": array}
        if self.data is None or not self.data.get("table_columns"):
            raise errors.InvalidArgumentError("the model was not trained on a table: predict() takes an array of examples")
        return _preparation.inputs_of(rows, self.data)

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
