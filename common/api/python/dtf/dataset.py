"""The data of a job in this process, by the job's readers."""
from __future__ import annotations

import ctypes
import json
import os
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint64
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from . import _tensors
from ._calls import Handle, interruptible
from ._library import UINT64_MAX, CSized, H, dims, lib, text, whole

class CDatasetOptions(CSized):
    _fields_ = [("size", c_size_t), ("folder", c_char_p), ("input_shape", POINTER(c_int64)), ("input_rank", c_size_t),
                ("rank", c_int64), ("of", c_int64), ("epochs", c_int64), ("evaluation", c_int64)]


lib.declare({
    "dataset_open": [c_char_p, POINTER(CDatasetOptions), POINTER(H)],
    "dataset_batch": [H, c_uint64, POINTER(H)],
    "dataset_next_batch": [H, c_int64, POINTER(H)],
    "dataset_slice": [H, c_int64, c_int64, POINTER(H)],
}, {
    "dataset_free": (None, [H]),
    "dataset_examples": (c_int64, [H]),
    "dataset_batch_size": (c_int64, [H]),
    "dataset_parts": (c_size_t, [H]),
    "dataset_part": (c_char_p, [H, c_size_t, POINTER(c_int), POINTER(c_int64), c_size_t, POINTER(c_size_t)]),
    "dataset_steps": (c_uint64, [H]),
    "dataset_epochs_completed": (c_uint64, [H]),
    "dataset_class": (c_char_p, [H, c_size_t]),
})

Batch = tuple["np.ndarray[Any, Any]", ...]


class Dataset:
    """Examples in batches: features, labels, then each part of categories, as arrays.

    `settings`: the keys of `data` in a job's file, as a dict or YAML: {"train": {"format": "idx", "images": "a.gz", "labels":
    "b.gz"}, "batch_size": 64, "seed": 1}. `folder`: where relative paths start. `input_shape`: of one example, for folders of
    images and libsvm. `rank`, `of`: this shard, and their number. `epochs`: 0: without end. `evaluation`: the examples of
    `eval`, or that side of `eval_split`.
    Threads: one at a time. Errors: InvalidArgumentError for a key; BadDataError for a file; OutOfRangeError at the end.
    """

    def __init__(self, settings: Mapping[str, Any] | str, *, folder: str | os.PathLike[str] = ".", input_shape: Sequence[int] = (),
                 rank: int = 0, of: int = 1, epochs: int = 0, evaluation: bool = False):
        shape, shape_rank = dims(input_shape)
        options = CDatasetOptions(folder=text(os.fspath(folder)), input_shape=shape, input_rank=shape_rank,
                                  rank=whole("rank", rank), of=whole("of", of), epochs=whole("epochs", epochs), evaluation=int(evaluation))
        yaml = settings if isinstance(settings, str) else json.dumps(settings, default=os.fspath)

        def opened() -> Handle:
            made = ctypes.c_void_p()
            lib.dataset_open(text(yaml), ctypes.byref(options), ctypes.byref(made))
            return Handle(made, lib.dataset_free, "data set")
        self._handle = interruptible(opened)
        with self._handle as pointer:
            self.batch_size: int = lib.dataset_batch_size(pointer)
            self.steps: int = lib.dataset_steps(pointer)  # of all epochs; 0: without end
            self.parts = self._parts(pointer)  # {"features": (dtype, shape of one example), ...}
            self.classes: list[str] = []  # the words of the classes; empty: they are numbers
            while (word := lib.dataset_class(pointer, len(self.classes))) is not None:
                self.classes.append(word.decode())

    @staticmethod
    def _parts(pointer: Any) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        parts, room = {}, 64  # far above the rank of an example
        for index in range(lib.dataset_parts(pointer)):
            dtype, rank, shape = ctypes.c_int(), ctypes.c_size_t(), (ctypes.c_int64 * room)()
            name = lib.dataset_part(pointer, index, ctypes.byref(dtype), shape, room, ctypes.byref(rank))
            parts[name.decode()] = _tensors.dtype_of(dtype.value), tuple(shape[:rank.value])
        return parts

    def __len__(self) -> int:
        """The number of examples, of all shards."""
        with self._handle as pointer:
            return int(lib.dataset_examples(pointer))

    def batch(self, global_step: int) -> Batch:
        """Returns this shard's batch of a step, a function of the step alone: a run that goes on sees the same ones."""
        step = whole("global_step", global_step, 0, UINT64_MAX)
        return self._taken(lambda pointer, values: lib.dataset_batch(pointer, step, values))

    def next_batch(self, n: int) -> Batch:
        """Returns the next n examples of this shard. An epoch has each example once, in a new order."""
        count = whole("n", n)
        return self._taken(lambda pointer, values: lib.dataset_next_batch(pointer, count, values))

    def slice(self, first: int, count: int) -> Batch:
        """Returns examples in their own order, unchanged: for an evaluation."""
        begin, size = whole("first", first), whole("count", count)
        return self._taken(lambda pointer, values: lib.dataset_slice(pointer, begin, size, values))

    @property
    def epochs_completed(self) -> int:
        with self._handle as pointer:
            return int(lib.dataset_epochs_completed(pointer))

    def _taken(self, read: Callable[[Any, Any], Any]) -> Batch:
        def taken() -> Batch:
            values = (ctypes.c_void_p * len(self.parts))()
            with self._handle as pointer:
                read(pointer, values)
            return tuple(_tensors.Memory(ctypes.c_void_p(value)).array() for value in values)
        return interruptible(taken)
