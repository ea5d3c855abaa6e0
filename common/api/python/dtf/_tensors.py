"""Tensors of libdtf as numpy arrays, and arrays as tensors."""
from __future__ import annotations

import ctypes
import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import errors
from ._library import dims, lib

_BY_NUMBER: dict[int, np.dtype[Any]] = {1: np.dtype(np.float32), 2: np.dtype(np.uint8), 3: np.dtype(np.int32), 4: np.dtype(np.int64)}
_NUMBERS = {dtype: number for number, dtype in _BY_NUMBER.items()}
_KINDS = "float32, uint8, int32 or int64"


def number_of(dtype: DTypeLike) -> int:
    """Returns libdtf's number of a dtype."""
    try:
        return _NUMBERS[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise errors.InvalidArgumentError(f"{dtype!r} is no type of dtf's tensors: use {_KINDS}") from None


def dtype_of(number: int) -> np.dtype[Any]:
    return _BY_NUMBER[number]


class Memory:
    """A tensor of libdtf, owned. numpy arrays on its elements keep it alive."""

    def __init__(self, handle: Any):
        self.handle = handle
        self.dtype = dtype_of(lib.tensor_dtype(handle))
        self.shape = tuple(lib.tensor_dim(handle, axis) for axis in range(lib.tensor_rank(handle)))
        self.nbytes = lib.tensor_bytes(handle)
        self.address = lib.tensor_data(handle) or 0

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False)}

    def array(self) -> np.ndarray[Any, Any]:
        """Returns an array on the elements, not a copy."""
        return np.asarray(self) if self.nbytes else np.empty(self.shape, self.dtype)

    def __del__(self, free: Any = lib.tensor_free) -> None:
        free(self.handle)


def new(shape: tuple[int, ...], dtype: DTypeLike) -> Memory:
    made = ctypes.c_void_p()
    lib.tensor_new(number_of(dtype), *dims(shape), ctypes.byref(made))
    return Memory(made)


def empty(shape: int | tuple[int, ...] | list[int], dtype: DTypeLike = np.float32) -> np.ndarray[Any, Any]:
    """Returns an array of zeros in memory of libdtf: such an array is fed without a copy. So is a fetched one."""
    return new((int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape), dtype).array()


def memory_of(array: np.ndarray[Any, Any]) -> Memory:
    """Returns a tensor with the array's elements: its own memory if that is a whole tensor, else a copy."""
    owner = array.base
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if (isinstance(owner, Memory) and owner.shape == array.shape and owner.dtype == array.dtype
            and array.flags.c_contiguous and array.ctypes.data == owner.address):
        return owner
    made = new(array.shape, array.dtype)
    if made.nbytes:
        np.copyto(made.array(), array)
    return made


def fed_array(name: str, value: ArrayLike, dtype: np.dtype[Any] | None, shape: tuple[int, ...] | None) -> np.ndarray[Any, Any]:
    """Returns a value as an array of that dtype. Floats may be rounded; a number never changes its kind or wraps."""
    if isinstance(value, np.ma.MaskedArray):
        raise errors.InvalidArgumentError(f"{name}: the value is a masked array: feed array.filled(number), or array.data")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise errors.InvalidArgumentError(f"{name}: the value is no array: {error}") from None
    if dtype is not None and array.dtype != dtype:
        array = _converted(name, array, dtype)
    number_of(array.dtype)
    if shape is not None and array.shape != shape:
        raise errors.InvalidArgumentError(f"{name} has the shape {list(shape)}, the value {list(array.shape)}: feed an array of "
                                          "that shape, or make the placeholder with another")
    return array


def _converted(name: str, array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    kind = array.dtype.kind
    if kind not in "buif" or (kind == "f" and dtype.kind != "f"):
        raise errors.InvalidArgumentError(f"{name} is {dtype}, the value {array.dtype}: feed an array of {dtype}, as by "
                                          f"array.astype(numpy.{dtype})")
    if kind in "ui" and dtype.kind in "ui" and array.size:
        limits = np.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise errors.InvalidArgumentError(f"{name} is {dtype}, which holds {limits.min} to {limits.max}; the value has "
                                              f"{array.min()} to {array.max()}")
    with np.errstate(over="ignore", invalid="ignore"):
        made = array.astype(dtype)
        if kind in "ui" and dtype.kind == "f":
            back = (made.astype(array.dtype) == array) & (made.astype(np.float64) < float(np.iinfo(array.dtype).max))
            if not back.all():
                raise errors.InvalidArgumentError(f"{name} is {dtype}, which can't hold {array[~back].flat[0]}: feed floats, which are "
                                                  f"rounded, as by array.astype(numpy.{dtype})")
        if kind == "f" and (np.isinf(made) & ~np.isinf(array)).any():
            raise errors.InvalidArgumentError(f"{name} is {dtype}, in which {np.abs(array).max()} of the value is infinite")
    return made


def constant_of(name: str, value: Any, dtype: DTypeLike) -> float:
    """Returns a number as the double of a constant. Floats may be rounded; a whole number must stay the same."""
    number_of(dtype)
    is_whole = isinstance(value, numbers.Integral)
    try:
        with np.errstate(over="ignore"):
            number = float(value)
            held = float(np.float32(number)) if np.dtype(dtype) == np.float32 else number
    except OverflowError:
        number, held = 0.0, math.inf
    if math.isinf(held) and not math.isinf(number) or is_whole and int(held) != value:
        raise errors.InvalidArgumentError(f"{name} is {value!r}, which a constant of {np.dtype(dtype)} can't hold: feed it through a "
                                          "placeholder of a type that can, or name a float, which is rounded")
    return number
