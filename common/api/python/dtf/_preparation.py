"""Rows of a table as the inputs of a model, by its data signature (common/data/data_signature.h).

A text is read as the reader of a table reads its field (common/data/csv_fields.cc, csv_numbers.h); a number is a number, and
None, NaN and pandas' NA are a field without a value. The formulae are those of prepared_columns.cc and csv_categories.cc, in
float64.
"""
from __future__ import annotations

import bisect
import decimal
import math
import numbers
import re
from typing import Any, Mapping, Sequence

import numpy as np

from . import errors

Array = np.ndarray[Any, Any]
Step = dict[str, Any]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-", "--")
_BOOLEANS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_ROW_MAX = 2**31 - 1


def rows_of(examples: Any) -> list[Mapping[str, Any]] | None:
    """Returns rows of {column: value}; None if the examples are an array."""
    if hasattr(examples, "columns") and hasattr(examples, "iloc"):  # a DataFrame of pandas
        examples = {name: list(examples[name]) for name in examples.columns}
    if isinstance(examples, Mapping):
        columns = {name: [values] if isinstance(values, (str, bytes)) or np.ndim(values) == 0 else list(values)
                   for name, values in examples.items()}
        if len({len(values) for values in columns.values()}) > 1:
            raise errors.InvalidArgumentError("the columns of the rows have different lengths")
        return [dict(zip(columns, row)) for row in zip(*columns.values())]
    if isinstance(examples, (list, tuple)) and examples and all(isinstance(row, Mapping) for row in examples):
        return list(examples)
    return None


def inputs_of(rows: Sequence[Mapping[str, Any]], signature: Mapping[str, Any]) -> dict[str, Array]:
    """Returns an array for each input of the model. Columns that it doesn't know are ignored."""
    feeds = {}
    for part in signature["inputs"]:
        columns, steps = part["columns"], part["preparation"]
        fields = [[_field(row, column, columns) for column in columns] for row in rows]
        if part["name"] == "features":
            feeds["features"] = _features(fields, columns, steps)
        else:
            feeds["categories/" + part["name"]] = np.array(
                [[_category(field, steps, part["name"]) for field in line] for line in fields], np.int32)
    return feeds


def _field(row: Mapping[str, Any], column: str, columns: Sequence[str]) -> Any:
    if column not in row:
        raise errors.InvalidArgumentError(f"the row lacks the column {column}; the model was trained on {', '.join(columns)}")
    return _plain(row[column], column)


def _plain(value: Any, column: str) -> Any:
    """Returns a text without spaces around it, a number, or None: no value."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (bytes, bytearray)):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise errors.InvalidArgumentError(f"column '{column}': {bytes(value)!r} is no text in UTF-8") from None
    if isinstance(value, str):
        return value.strip(" \t")
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if not isinstance(value, (numbers.Real, decimal.Decimal, np.bool_)):
        raise errors.InvalidArgumentError(f"column '{column}': {value!r} is neither a text nor a number")
    return None if not isinstance(value, numbers.Integral) and math.isnan(value) else value


def _number(field: Any, column: str) -> float:
    """Returns NaN for a missing one."""
    if field is None or (isinstance(field, str) and field.lower() in _MISSING):
        return math.nan
    if isinstance(field, str) and field.lower() in _BOOLEANS:
        return _BOOLEANS[field.lower()]
    if isinstance(field, str) and not _NUMBER.fullmatch(field):
        raise errors.InvalidArgumentError(f"column '{column}': {field!r} is no number")
    try:
        number = float(field)
    except OverflowError:
        number = math.inf
    with np.errstate(over="ignore"):
        if not np.isfinite(np.float32(number)):
            raise errors.InvalidArgumentError(f"column '{column}': {field!r} is no number that float32 can hold")
    return number


def _features(fields: list[list[Any]], columns: Sequence[str], steps: list[Step]) -> Array:
    raw = np.array([[_number(field, column) for field, column in zip(line, columns)] for line in fields],
                   np.float32).reshape(len(fields), len(columns)).astype(np.float64)
    missing, values, indicators = np.isnan(raw), raw.copy(), []
    for step in steps:
        places = [columns.index(name) for name in step["columns"]]
        if step["op"] == "fill":
            for place, fill in zip(places, step["values"]):
                values[missing[:, place], place] = fill
        elif step["op"] == "missing_indicator":
            indicators = places
        elif step["op"] == "log1p":
            beyond = np.argwhere(values[:, places] <= -1)
            if len(beyond):
                raise errors.InvalidArgumentError(f"column '{step['columns'][beyond[0][1]]}' has {values[:, places][tuple(beyond[0])]:g} in row "
                                                  f"{beyond[0][0]}, which has no log1p, log(1 + x): its numbers are above -1")
            values[:, places] = np.log1p(values[:, places])
        elif step["op"] == "standardize":
            values[:, places] = (values[:, places] - step["mean"]) / step["stddev"]
        else:
            raise _unknown(step, "features")
    bad = np.argwhere(np.isnan(values))
    if len(bad):
        raise errors.InvalidArgumentError(f"column '{columns[bad[0][1]]}' is missing in row {bad[0][0]}, and the training filled none")
    return np.concatenate([values, missing[:, indicators]], axis=1).astype(np.float32)


def _unknown(step: Step, name: str) -> errors.Error:
    return errors.InvalidArgumentError(f"predict() doesn't know the preparation '{step['op']}' of '{name}': use `dtf-launch predict`")


def _category(field: Any, steps: list[Step], name: str) -> int:
    if not steps:
        return _row_number(field, name)
    step = steps[0]
    if len(steps) > 1 or step.get("split"):
        raise errors.InvalidArgumentError(f"predict() can't split the words of '{name}': use `dtf-launch predict`")
    if step["op"] == "bucketize":
        return _bucket(_number(field, name), step, name)
    if step["op"] not in ("vocabulary", "hash"):
        raise _unknown(step, name)
    words = step.get("words", [])
    word = _word(field, words, name)
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


def _is_whole(number: Any) -> bool:
    return isinstance(number, numbers.Integral) or bool(math.isfinite(number) and number == math.floor(number))


def _row_number(field: Any, name: str) -> int:
    """Returns a field that is the number of a row, neither a word nor hashed."""
    is_whole = bool(_WHOLE.fullmatch(field)) if isinstance(field, str) else (
        field is not None and not isinstance(field, (bool, np.bool_)) and _is_whole(field))
    if not is_whole or not 0 <= int(field) <= _ROW_MAX:
        raise errors.InvalidArgumentError(f"'{name}': {field!r} is no whole number from 0 to {_ROW_MAX}")
    return int(field)


def _word(field: Any, words: Sequence[str], name: str) -> str:
    """Returns a field as the table has it. The spelling of a number is known only from the words."""
    if isinstance(field, str):
        return field
    if field is None:
        markers = [word for word in words if word.lower() in _MISSING]
        if markers and "" not in markers:
            raise errors.InvalidArgumentError(f"'{name}' has no value in a row, which the training data write as '{markers[0]}': give that")
        return ""
    if isinstance(field, (bool, np.bool_, numbers.Integral)):
        return str(field)
    spelled = [str(field), *([str(int(field))] if _is_whole(field) else [])]
    known = [word for word in spelled if word in words]
    if len(known) != 1:
        raise errors.InvalidArgumentError(f"'{name}' has words, and {field!r} can be written in several ways: give a text, as the training data "
                                          "have it")
    return known[0]


def _bucket(number: float, step: Step, name: str) -> int:
    bounds = np.asarray(step["boundaries"], np.float32)
    if not np.isnan(number):
        return bisect.bisect_right(bounds.tolist(), float(np.float32(number)))
    if step.get("num_oov_buckets"):
        return len(bounds) + 1
    raise errors.InvalidArgumentError(f"'{name}' is missing in a row, and the model has no bucket for such")
