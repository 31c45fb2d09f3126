"""Checks for real numbers: masked cells, dates, durations and complex numbers are refused."""

from typing import Any

import numpy as np

from skldl.exceptions import DataError, NonFiniteError, NotNumericError
from skldl.utils.typing import AnyArray, FloatArray

_UNREAL = np.datetime64 | np.timedelta64 | np.complexfloating | complex
_DATES = ("datetime", "date", "duration", "timedelta", "time", "period")


def refuse_unreal(values: Any, *, name: str, error: type[DataError] = NotNumericError) -> None:
    """Raise for masked cells, dates, durations and complex numbers, which NumPy would turn into floats silently.

    Takes arrays, DataFrames, Series and nested lists; sparse matrices hold none of these but complex numbers.
    """
    if type(values) is np.ndarray and values.dtype.kind in "fiub":
        return
    if isinstance(values, np.ma.MaskedArray):
        masked = np.argwhere(np.ma.getmaskarray(values))
        if len(masked):
            place = tuple(int(i) for i in masked[0])
            raise (NonFiniteError if error is NotNumericError else error)(
                f"{name} is a masked array with {len(masked)} masked cells, the first at {place}. "
                "Fill them in (values.filled(...)) or drop these rows."
            )
    columns = getattr(values, "columns", None)
    if columns is not None and hasattr(values, "dtypes") and not isinstance(values, np.ndarray):
        for column, dtype in zip(columns, values.dtypes, strict=True):
            _refuse_dtype(dtype, f"column {str(column)!r} of {name}", error)
        return
    if hasattr(values, "dtype"):
        _refuse_dtype(values.dtype, name, error)
        entries = np.asarray(values) if str(values.dtype) == "object" else None
    else:
        try:
            entries = np.asarray(values)
        except (ValueError, TypeError):  # rows of different length: a later check reports them
            return
        _refuse_dtype(entries.dtype, name, error)
    if entries is not None and entries.dtype == object:
        _refuse_objects(entries, name, error)


def _refuse_dtype(dtype: Any, name: str, error: type[DataError]) -> None:
    kind = getattr(dtype, "kind", "")
    if kind in ("m", "M") or str(dtype).lower().startswith(_DATES):
        raise error(
            f"{name} holds dates or durations ({dtype}), where real numbers belong. "
            "Turn them into numbers first, such as days since a fixed date, or leave them out."
        )
    if kind == "c":
        raise error(f"Complex data not supported: {name} must hold real numbers.")


def _refuse_objects(entries: AnyArray, name: str, error: type[DataError]) -> None:
    for entry in entries.ravel():
        if isinstance(entry, _UNREAL):
            raise error(f"{name} holds {entry!r}, where a real number belongs. Turn it into a number first.")


def row_sums(rows: FloatArray) -> FloatArray:
    """Sum over the last axis; for few columns four times as fast as ``rows.sum(axis=-1)``, and without warnings."""
    return np.asarray(np.einsum("...j->...", rows))


def as_real_array(values: Any, *, name: str, error: type[DataError] = NotNumericError) -> FloatArray:
    """Return an array of float64, or raise for values that are not real numbers; NaN and infinity pass."""
    refuse_unreal(values, name=name, error=error)
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as cause:
        raise error(f"{name} must hold real numbers ({cause}).") from cause


def as_finite_array(values: Any, *, name: str) -> FloatArray:
    """Return an array of finite float64; the error names the first cell that is not a finite number."""
    array = as_real_array(values, name=name)
    sums = row_sums(array) if array.ndim else array
    if not np.isfinite(sums).all() and not np.isfinite(array).all():  # sums of huge numbers can be infinite, too
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NonFiniteError(
            f"{name} holds {array[place]} in cell {place}, where a finite number belongs. Drop or fill in such cells."
        )
    return array
