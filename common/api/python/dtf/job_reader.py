"""The parameters of a job of `dtf-launch`, read while it trains."""
from __future__ import annotations

import ctypes
import json
import os
import threading
from ctypes import POINTER, c_char_p, c_double, c_size_t, c_uint64
from typing import Any

import numpy as np

from . import _tensors
from ._calls import Handle, interruptible
from ._library import H, grown, lib, text

lib.declare({
    "job_reader_open": [c_char_p, c_char_p, POINTER(H)],
    "job_reader_take": [H, c_double, POINTER(c_uint64)],
    "job_reader_read": [H, c_char_p, POINTER(H)],
    "job_reader_status": [H, c_char_p, c_size_t, POINTER(c_size_t)],
}, {
    "job_reader_free": (None, [H]),
    "job_reader_count": (c_size_t, [H]),
    "job_reader_variable": (c_char_p, [H, c_size_t]),
})


class JobReader:
    """take() keeps one version of all parameters on the tasks that hold them; read() fetches variables of that version, however far
    the training is by then. The training never waits for a reader. A context manager.

        with dtf.JobReader("cluster.yaml") as job:
            while job.take() < 1000:
                evaluate(job.read("dense/kernel"))

    `cluster_file`: the file of the job, which has a ps or several workers. `keys`: the folder of the job's keys; empty: the one that
    the file names. Threads: any; a call waits for the end of the one before, also of one that Ctrl-C has left. Errors: InvalidArgumentError for the file, and for tasks that run another job;
    UnavailableError for a task that isn't there, or a version that is no longer kept; DeadlineExceededError.
    """

    def __init__(self, cluster_file: str | os.PathLike[str], keys: str | os.PathLike[str] = ""):
        made = ctypes.c_void_p()
        lib.job_reader_open(text(os.fspath(cluster_file)), text(os.fspath(keys)), ctypes.byref(made))
        self._handle = Handle(made, lib.job_reader_free, "job reader")
        self._calls = threading.Lock()  # after Ctrl-C a call goes on in its thread

    def take(self, seconds: float = 10) -> int:
        """Takes the newest version, which replaces the one before, and returns its step. Waits at most `seconds` for tasks that
        aren't there. In async training each task has its own newest version; the step is the lowest."""
        def taken() -> int:
            step = c_uint64()
            with self._handle as reader, self._calls:
                lib.job_reader_take(reader, seconds, ctypes.byref(step))
            return step.value
        return interruptible(taken)

    def variables(self) -> list[str]:
        """Returns the names of the variables; none before the first take()."""
        with self._handle as reader, self._calls:
            return [lib.job_reader_variable(reader, index).decode() for index in range(lib.job_reader_count(reader))]

    def read(self, variable: str) -> np.ndarray[Any, Any]:
        """Returns a variable of the version that take() took."""
        def array() -> np.ndarray[Any, Any]:
            value = ctypes.c_void_p()
            with self._handle as reader, self._calls:
                lib.job_reader_read(reader, text(variable), ctypes.byref(value))
            return _tensors.Memory(value).array()
        return interruptible(array)

    def status(self) -> dict[str, Any]:
        """Returns the state of each task: {"ps/0": {...}, "worker/0": None}; None: it has not replied within two seconds."""
        def answers() -> bytes:
            with self._handle as reader, self._calls:
                return grown(lambda buffer, room, size: lib.job_reader_status(reader, buffer, room, size))
        states: dict[str, Any] = json.loads(interruptible(answers))
        return states

    def close(self) -> None:
        """The tasks drop the version."""
        self._handle.close()

    def __enter__(self) -> JobReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
