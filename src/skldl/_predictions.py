"""Predictions that sum to one, and tables of them."""

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl._array_api import as_double, is_device_array, namespace, to_numpy
from skldl._typing import FloatArray


def data_frame(distributions: FloatArray, names: list[str], output: str, index: Any) -> Any:
    """Make a DataFrame of distributions; pandas and polars are imported only here, where one was asked for."""
    try:
        frames = import_module(output)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"set_output(predict={output!r}) needs {output}: pip install {output}", name=error.name
        ) from error
    if output == "polars":
        return frames.DataFrame(distributions, schema=names)
    return frames.DataFrame(distributions, columns=names, index=index)


def sum_to_one(distributions: npt.ArrayLike, name: str) -> FloatArray:
    """Take out the last rounding error, in double precision; what is no distribution at all is an error, never nan."""
    if is_device_array(distributions):
        return _sum_to_one_on_device(distributions, name)
    rows = np.asarray(distributions, dtype=np.float64)
    sums = rows.sum(axis=1, keepdims=True)
    if not (rows.min(initial=0.0) >= 0 and sums.min(initial=1.0) > 0 and sums.max(initial=1.0) < np.inf):
        bad = ~((rows >= 0).all(axis=1) & (sums[:, 0] > 0) & (sums[:, 0] < np.inf))
        row = int(np.argmax(bad))
        raise ValueError(
            f"{name} predicted {np.array2string(rows[row], threshold=6)} for row {row} ({int(bad.sum())} such rows), "
            "which is no distribution: degrees are finite, at least zero, and not all zero. Scale the features, or "
            f"check {name}._predict if you wrote it."
        )
    return np.asarray(rows / sums)


def _sum_to_one_on_device(rows: Any, name: str) -> Any:
    """The same for an array on a device, in its own precision."""
    xp = namespace(rows)
    sums = xp.sum(rows, axis=1, keepdims=True)
    right = (xp.min(rows) >= 0) & (xp.min(sums) > 0) & (xp.max(sums) < float("inf"))
    if not bool(right):
        bad = ~(xp.all(rows >= 0, axis=1) & (sums[:, 0] > 0) & (sums[:, 0] < float("inf")))
        row = int(xp.argmax(xp.astype(bad, xp.int32)))
        raise ValueError(
            f"{name} predicted {np.array2string(to_numpy(as_double(rows[row, ...])), threshold=6)} for row {row} "
            f"({int(xp.sum(xp.astype(bad, xp.int64)))} such rows), which is no distribution: degrees are finite, at "
            "least zero, and not all zero. Scale the features."
        )
    return rows / sums
