"""libdtf as ctypes sees it: found and loaded, its functions with their types."""
from __future__ import annotations

import ctypes
import operator
import os
import pathlib
import re
import subprocess
import sys
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Iterator

from . import errors

VERSION = "0.1.0"
_SONAME = "libdtf.so." + VERSION.rsplit(".", 1)[0]  # each 0.x has its own


class COutput(ctypes.Structure):
    _fields_ = [("node", c_int32), ("index", c_int32)]


class CFeed(ctypes.Structure):
    _fields_ = [("tensor", c_char_p), ("value", c_void_p)]


class CSized(ctypes.Structure):
    """A struct of options, whose first field is its size."""

    def __init__(self, **values: Any):
        super().__init__(size=ctypes.sizeof(self), **values)


class CMinimizeOptions(CSized):
    _fields_ = [("size", c_size_t), ("variables", POINTER(COutput)), ("variables_count", c_size_t), ("prefix", c_char_p),
                ("global_step", c_char_p)]


class CSessionOptions(CSized):
    _fields_ = [("size", c_size_t), ("connect_seconds", c_double), ("register_seconds", c_double),
                ("step_seconds", c_double), ("abort_seconds", c_double), ("soft_placement", c_int), ("keys", c_char_p),
                ("insecure", c_int64)]


class CSaverOptions(CSized):
    _fields_ = [("size", c_size_t), ("job", c_char_p), ("global_step", c_char_p), ("max_to_keep", c_int64)]


class CSyncReplicasOptions(CSized):
    _fields_ = [("size", c_size_t), ("replicas_to_aggregate", c_int64), ("total_num_replicas", c_int64), ("rank", c_int64)]


class CSupervisorOptions(CSized):
    _fields_ = [("size", c_size_t), ("is_chief", c_int64), ("task", c_char_p), ("log_dir", c_char_p), ("seed", c_uint64),
                ("save_seconds", c_double), ("summary_seconds", c_double), ("wait_seconds", c_double), ("poll_seconds", c_double),
                ("summaries", POINTER(c_char_p)), ("summaries_count", c_size_t), ("global_step", c_char_p), ("job", c_char_p),
                ("max_to_keep", c_int64), ("handle_signals", c_int64)]


_OUTPUTS, _TEXTS, _DIMS, _SIZE = POINTER(COutput), POINTER(c_char_p), POINTER(c_int64), POINTER(c_size_t)

# Functions that return a code, by their arguments; H: a handle.
H = c_void_p
CHECKED: dict[str, list[Any]] = {
    "tensor_new": [c_int, _DIMS, c_size_t, POINTER(H)],
    "graph_new": [POINTER(H)],
    "graph_copy": [H, POINTER(H)],
    "node_new": [H, c_char_p, c_char_p, POINTER(H)],
    "node_dtype": [H, c_char_p, c_int],
    "node_shape": [H, c_char_p, _DIMS, c_size_t],
    "node_function": [H, c_char_p, H, _OUTPUTS, c_size_t, _OUTPUTS, c_size_t],
    "node_add": [H, POINTER(c_int32)],
    "graph_output": [H, COutput, POINTER(c_int), _DIMS, c_size_t, _SIZE],
    "graph_gradients": [H, COutput, _OUTPUTS, c_size_t, _OUTPUTS],
    "graph_minimize": [H, COutput, c_char_p, POINTER(CMinimizeOptions), _OUTPUTS, _OUTPUTS, _OUTPUTS],
    "session_open": [H, _TEXTS, c_size_t, POINTER(CSessionOptions), POINTER(H)],
    "session_reset": [H, c_char_p],
    "session_set_variable": [H, c_char_p, H],
    "session_initialize": [H, c_uint64],
    "session_uninitialized": [H, c_char_p, c_size_t, _SIZE],
    "session_run": [H, POINTER(CFeed), c_size_t, _TEXTS, c_size_t, POINTER(H), _TEXTS, c_size_t],
    "session_abort": [H, c_char_p],
    "graph_sync_replicas": [H, COutput, c_char_p, POINTER(CMinimizeOptions), POINTER(CSyncReplicasOptions), _OUTPUTS, _OUTPUTS,
                            _OUTPUTS, _OUTPUTS, POINTER(c_int32)],
    "supervisor_new": [POINTER(CSupervisorOptions), POINTER(H)],
    "supervisor_prepare": [H, H, _TEXTS, c_size_t, POINTER(CSessionOptions)],
    "supervisor_run": [H, POINTER(CFeed), c_size_t, _TEXTS, c_size_t, POINTER(H), _TEXTS, c_size_t, POINTER(c_int)],
    "supervisor_global_step": [H, _DIMS],
    "supervisor_save": [H],
    "supervisor_abort": [H, c_char_p],
    "supervisor_stop": [H],
    "saver_new": [POINTER(CSaverOptions), POINTER(H)],
    "saver_save": [H, H, c_char_p, c_uint64, c_char_p, c_size_t, _SIZE],
    "saver_restore": [H, H, c_char_p, POINTER(c_uint64)],
    "saver_latest": [H, c_char_p, c_char_p, c_size_t, _SIZE],
    "checkpoint_open": [c_char_p, POINTER(H)],
    "checkpoint_read": [H, c_char_p, POINTER(H)],
    "model_load": [c_char_p, c_char_p, POINTER(H)],
    "model_add": [H, c_char_p, H, c_char_p, c_char_p, _TEXTS, c_size_t, c_int64, POINTER(H)],
    "model_restore": [H, c_char_p, H],
}
# Other functions: result, then arguments.
PLAIN: dict[str, tuple[Any, list[Any]]] = {
    "error_message": (c_char_p, []),
    "version": (c_char_p, []),
    "op_names": (c_char_p, []),
    "tensor_free": (None, [H]),
    "tensor_dtype": (c_int, [H]),
    "tensor_rank": (c_size_t, [H]),
    "tensor_dim": (c_int64, [H, c_size_t]),
    "tensor_bytes": (c_size_t, [H]),
    "tensor_data": (c_void_p, [H]),
    "graph_free": (None, [H]),
    "graph_node_name": (c_char_p, [H, c_int32]),
    "node_input": (None, [H, COutput]),
    "node_control_input": (None, [H, c_int32]),
    "node_device": (None, [H, c_char_p]),
    "node_bool": (None, [H, c_char_p, c_int]),
    "node_int": (None, [H, c_char_p, c_int64]),
    "node_double": (None, [H, c_char_p, c_double]),
    "node_text": (None, [H, c_char_p, c_char_p]),
    "node_free": (None, [H]),
    "session_free": (None, [H]),
    "supervisor_free": (None, [H]),
    "supervisor_request_stop": (None, [H]),
    "supervisor_should_stop": (c_int, [H]),
    "saver_free": (None, [H]),
    "checkpoint_free": (None, [H]),
    "checkpoint_path": (c_char_p, [H]),
    "checkpoint_job": (c_char_p, [H]),
    "checkpoint_step": (c_uint64, [H]),
    "checkpoint_tensor": (c_char_p, [H, c_size_t]),
    "model_free": (None, [H]),
    "model_step": (c_uint64, [H]),
    "model_data": (c_char_p, [H]),
    "model_column": (c_char_p, [H, c_char_p, c_size_t]),
    "model_class": (c_char_p, [H, c_size_t]),
    "signature_free": (None, [H]),
    "signature_count": (c_size_t, [H]),
    "signature_tensor": (c_char_p, [H, c_size_t, POINTER(c_int), _OUTPUTS]),
}


def _beside() -> Iterator[str]:
    """Yields libraries of the prefix in which meson installed this package."""
    for parent in list(pathlib.Path(__file__).resolve().parents)[2:6]:
        for folder in ("", "lib", "lib64"):
            for found in sorted((parent / folder).glob(f"{_SONAME}")) + sorted((parent / folder).glob(f"*-linux-gnu/{_SONAME}")):
                yield str(found)


def _of_pkg_config() -> Iterator[str]:
    try:
        words = subprocess.run(["pkg-config", "--libs-only-L", "--keep-system-libs", "dtf"], capture_output=True, text=True,
                               timeout=20, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return
    for word in words:
        path = os.path.join(word[2:], _SONAME)
        if word.startswith("-L") and os.path.exists(path):
            yield path


def _places() -> Iterator[str]:
    named = os.environ.get("DTF_LIBRARY")
    if named:
        yield named  # this one or none
        return
    yield from _beside()
    yield _SONAME
    yield from _of_pkg_config()


def _load() -> tuple[ctypes.CDLL, str]:
    problems = []
    for place in _places():
        try:
            return ctypes.CDLL(place), place
        except OSError as error:
            problems.append(str(error))
    tried = "".join(f"\n  {problem}" for problem in problems)
    raise ImportError(f"libdtf is not here:{tried}\nInstall dtf (meson install -C build, or its Debian package), or set DTF_LIBRARY to the "
                      "path of libdtf.so, as build/common/api/libdtf.so; `pkg-config --libs dtf` must find it elsewhere")


class Library:
    """The functions by their names without `dtf_`. Those that return a code raise the exception of it."""

    def __init__(self, loaded: ctypes.CDLL, path: str):
        self.path = path
        self._loaded = loaded
        self._plain(PLAIN)
        self.version = self.version_text().decode()
        if self.version.split(".")[:2] != VERSION.split(".")[:2]:
            raise ImportError(f"{path} is dtf {self.version}, this package is of dtf {VERSION}: install both of one version")
        self._checked(CHECKED)

    def declare(self, checked: dict[str, list[Any]], plain: dict[str, tuple[Any, list[Any]]]) -> None:
        """Adds functions of a module, in the form of the tables above."""
        self._plain(plain)
        self._checked(checked)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"libdtf has no function dtf_{name}")

    def _function(self, name: str) -> Any:
        try:
            return getattr(self._loaded, "dtf_" + name)
        except AttributeError:
            raise ImportError(f"{self.path} lacks dtf_{name}: it is another version than this package, {VERSION}; install both of "
                              "one version") from None

    def _plain(self, table: dict[str, tuple[Any, list[Any]]]) -> None:
        for name, (result, arguments) in table.items():
            function = self._function(name)
            function.restype, function.argtypes = result, arguments
            setattr(self, "version_text" if name == "version" else name, function)

    def _checked(self, table: dict[str, list[Any]]) -> None:
        for name, arguments in table.items():
            function = self._function(name)
            function.restype, function.argtypes = c_int, arguments
            function.errcheck = self._raise
            setattr(self, name, function)

    def _raise(self, code: int, _function: Any, _arguments: Any) -> int:
        if code:  # the message is of this thread
            raise errors.of_code(code, self.error_message().decode(errors="replace"))
        return code


def texts(words: list[str]) -> Any:
    """Returns an array of C strings, which keeps them alive."""
    return (c_char_p * len(words))(*[text(word) for word in words])


def text(word: str) -> bytes:
    """Returns a C string."""
    encoded = os.fspath(word).encode() if not isinstance(word, bytes) else word
    if b"\0" in encoded:
        raise errors.UsageError(f"{word!r} has a 0 character")
    return encoded


INT64_MIN, INT64_MAX, UINT64_MAX = -2**63, 2**63 - 1, 2**64 - 1


def whole(name: str, value: Any, low: int = INT64_MIN, high: int = INT64_MAX) -> int:
    """Returns a whole number for C, where ctypes would wrap it in silence."""
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise errors.UsageError(f"{name} is {value!r}, but must be a whole number from {low} to {high}")
    return number


def dims(shape: Any) -> tuple[Any, int]:
    """Returns the arguments of a shape."""
    whole_ones = [whole("a dimension", dim) for dim in shape]
    return (c_int64 * len(whole_ones))(*whole_ones), len(whole_ones)


def grown(call: Any) -> bytes:
    """Returns the text of a function that writes up to `room` bytes and tells the size: call(buffer, room, byref(size))."""
    size, room = c_size_t(), 4096
    while True:
        buffer = ctypes.create_string_buffer(room)
        call(buffer, room, ctypes.byref(size))
        if size.value <= room:
            return buffer.raw[:max(size.value - 1, 0)]
        room = size.value


if sys.platform != "linux":
    raise ImportError("dtf runs on Linux")
lib = Library(*_load())
