"""Checkpoints: of a session's variables, written and read; and of any job, read as arrays."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Iterator, Mapping, Union

import numpy as np

from . import _tensors
from ._calls import Handle, interruptible
from ._library import UINT64_MAX, CSaverOptions, grown, lib, text, whole
from .session import Session

Path = Union[str, "os.PathLike[str]"]


class Saver:
    """Saves and restores all variables of a session's graph, with slots, counters and the global step, in the format of
    jobs: `dtf-launch export`, `eval` and `predict` read it.

    `job`: the name in the checkpoint, by which a job goes on from it. `max_to_keep`: newest checkpoints in a folder; -1: all.
    Threads: one at a time. Errors: as dtf_saver_save() and dtf_saver_restore() of dtf.h.
    """

    def __init__(self, max_to_keep: int = 5, *, job: str = "graph", global_step: str = "global_step"):
        made = ctypes.c_void_p()
        options = CSaverOptions(job=text(job), global_step=text(global_step), max_to_keep=whole("max_to_keep", max_to_keep))
        lib.saver_new(ctypes.byref(options), ctypes.byref(made))
        self._handle = Handle(made, lib.saver_free, "saver")

    def save(self, session: Session, folder: Path, step: int = 0) -> str:
        """Saves as folder/step-N and returns that path. N is the global step; `step`: for a graph without one. No other step
        may run meanwhile, of this client or another."""
        number = whole("step", step, 0, UINT64_MAX)

        def saved() -> str:
            # The path is no longer than that, so the call saves once.
            buffer, size = ctypes.create_string_buffer(1 << 16), ctypes.c_size_t()
            with self._handle as saver, session.use() as pointer:
                lib.saver_save(saver, pointer, text(os.fspath(folder)), number, buffer, len(buffer), ctypes.byref(size))
            return os.fsdecode(buffer.value)
        return interruptible(saved)

    def restore(self, session: Session, path: Path) -> int:
        """Sets all variables from folder/step-N, or from the newest whole checkpoint in a folder; returns its global step."""
        def restored() -> int:
            step = ctypes.c_uint64()
            with self._handle as saver, session.use() as pointer:
                lib.saver_restore(saver, pointer, text(os.fspath(path)), ctypes.byref(step))
            return step.value
        return interruptible(restored)

    def latest_checkpoint(self, folder: Path) -> str | None:
        """Returns the path of the newest whole checkpoint in a folder; None if there is none."""
        def found() -> str | None:
            with self._handle as saver:
                path = grown(lambda buffer, room, size: lib.saver_latest(saver, text(os.fspath(folder)), buffer, room, size))
            return os.fsdecode(path) or None
        return interruptible(found)


def latest_checkpoint(folder: Path) -> str | None:
    """TensorFlow's function: Saver().latest_checkpoint(folder)."""
    return Saver().latest_checkpoint(folder)


class Checkpoint(Mapping[str, "np.ndarray[Any, Any]"]):
    """A checkpoint of a Saver or a job: a mapping from names to arrays, each read when it is asked for. First come the
    variables, each with its slots behind it ("w", "w/Adam", "w/Adam_1"), then the counters, the last the global step.

    `path`: FOLDER/step-N, or a folder for its newest whole checkpoint. Reads and verifies every byte.
    Threads: any number at once. Errors: BadDataError if there is none, or it is damaged.
    """

    def __init__(self, path: Path):
        def opened() -> Handle:
            made = ctypes.c_void_p()
            lib.checkpoint_open(text(os.fspath(path)), ctypes.byref(made))
            return Handle(made, lib.checkpoint_free, "checkpoint")
        self._handle = interruptible(opened)
        with self._handle as checkpoint:
            self.path: str = os.fsdecode(lib.checkpoint_path(checkpoint))
            self.job: str = lib.checkpoint_job(checkpoint).decode()
            self.step: int = lib.checkpoint_step(checkpoint)
            names: list[str] = []
            while (name := lib.checkpoint_tensor(checkpoint, len(names))) is not None:
                names.append(name.decode())
        self._names = dict.fromkeys(names)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._names:
            raise KeyError(name)

        def read() -> np.ndarray[Any, Any]:
            value = ctypes.c_void_p()
            with self._handle as checkpoint:
                lib.checkpoint_read(checkpoint, text(name), ctypes.byref(value))
            return _tensors.Memory(value).array()
        return interruptible(read)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<dtf.Checkpoint {self.path}: {len(self)} tensors>"


def load_checkpoint(path: Path) -> Checkpoint:
    """TensorFlow's name: Checkpoint(path). `dict(dtf.load_checkpoint(path))` reads all arrays."""
    return Checkpoint(path)
