"""Rows of a table as the inputs of a model, by its data signature (common/data/data_signature.h).

The formulae of common/data/prepared_columns.cc and csv_categories.cc, in float64.
"""
from __future__ import annotations

import bisect
from typing import Any, Mapping, Sequence

import numpy as np

from . import errors

Array = np.ndarray[Any, Any]
Step = dict[str, Any]


def rows_of(examples: Any) -> list[Mapping[str, Any]] | None:
    """Returns rows of {column: value}; None if the examples are an array."""
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
    value = row[column]
    return value.strip() if isinstance(value, str) else value


def _number(field: Any, column: str) -> float:
    if field is None or field == "":
        return float("nan")
    try:
        return float(field)
    except (TypeError, ValueError):
        raise errors.InvalidArgumentError(f"column '{column}': {field!r} is no number") from None


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
        return int(field)  # neither words nor hashes: the field is the number
    step = steps[0]
    if len(steps) > 1 or step.get("split"):
        raise errors.InvalidArgumentError(f"predict() can't split the words of '{name}': use `dtf-launch predict`")
    if step["op"] == "bucketize":
        return _bucket(_number(field, name), step, name)
    if step["op"] not in ("vocabulary", "hash"):
        raise _unknown(step, name)
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


def _bucket(number: float, step: Step, name: str) -> int:
    bounds = np.asarray(step["boundaries"], np.float32)
    if not np.isnan(number):
        return bisect.bisect_right(bounds.tolist(), float(np.float32(number)))
    if step.get("num_oov_buckets"):
        return len(bounds) + 1
    raise errors.InvalidArgumentError(f"'{name}' is missing in a row, and the model has no bucket for such")
