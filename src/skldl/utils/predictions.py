"""Predictions that sum to one, and tables of them."""

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.utils.arrays import as_double, count_true, first_true, is_device_array, namespace, to_numpy
from skldl.utils.real_numbers import row_sums
from skldl.utils.typing import FloatArray


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
    """Take out the last rounding error; what is no distribution is an error, never nan.

    NumPy's rows in double precision, those of a device in their own.
    """
    rows: Any = distributions if is_device_array(distributions) else np.asarray(distributions, dtype=np.float64)
    xp = namespace(rows)
    if xp is np:
        sums = row_sums(rows)[:, None]
        if (rows >= 0).all() and (sums > 0).all() and (sums < np.inf).all():
            return np.asarray(rows / sums)
    else:
        sums = xp.sum(rows, axis=1, keepdims=True)
    if not bool(xp.all(rows >= 0) & xp.all((sums > 0) & (sums < float("inf")))):
        wrong = ~(xp.all(rows >= 0, axis=1) & (sums[:, 0] > 0) & (sums[:, 0] < float("inf")))
        row = first_true(wrong)
        raise ValueError(
            f"{name} predicted {np.array2string(to_numpy(as_double(rows[row, ...])), threshold=6)} for row {row} "
            f"({count_true(wrong)} such rows), which is no distribution: degrees are finite, at least zero, and not "
            f"all zero. Scale the features, or check {name}._predict if you wrote it."
        )
    return rows / sums
