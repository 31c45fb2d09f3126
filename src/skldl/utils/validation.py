"""Validation of features, distributions, weights and groups, for NumPy arrays, tables, sparse matrices and devices.

All error messages about bad input are written here. Valid data need one pass and, where the dtype fits, no copy; only
invalid data are scanned again, for the row and column that the message names. Arrays on a device (torch, CuPy and the
like) are checked there: a check ends in a few numbers, which go to the host in one copy. Such arrays are never
converted silently; one of another library, device or precision than float32 or float64 is an error.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from skldl._algorithms import names_with
from skldl.exceptions import (
    DataError,
    DeviceError,
    DimensionError,
    EmptyDataError,
    FeatureMismatchError,
    LengthMismatchError,
    NegativeDegreeError,
    NonFiniteError,
    NotNumericError,
    Parameter,
    RowSumError,
    SampleWeightError,
    SingleLabelError,
    SparseDistributionError,
    ZeroRowError,
)
from skldl.utils.arrays import (
    Space,
    as_double,
    count_true,
    first_true,
    is_device_array,
    is_foreign,
    library_name,
    namespace,
    space,
    space_of,
    sum_in_double,
    to_numpy,
)
from skldl.utils.column_names import (
    check_integer_columns,
    column_names,
    given_names,
    label_names,
    order_of_labels,
)
from skldl.utils.typing import AnyArray, BoolArray, FloatArray, IntArray

Hint = str | Callable[[], str]
FEATURE_HINT = "Impute missing features (sklearn.impute.SimpleImputer) or remove these rows."
DEGREE_HINT = "Remove such rows or fill in the degree before fitting or scoring."

SUM_TOLERANCE = 1e-3
"""How far the sum of a row of degrees may be from one: rows rounded to three digits pass, and are divided by it."""
ROUNDING = 8.0
"""Sums of rows that differ from one by at most so many units of rounding are one: a division would not improve them."""
MAX_FEATURE = 1e150
"""Largest absolute value of a feature: squares of larger ones overflow, those of numbers below 1/MAX_FEATURE vanish."""
MAX_WEIGHT_RATIO = 1e100
"""Largest ratio between a weight and the mean weight: squares of smaller ones would vanish beside those of others."""
TOTAL_WEIGHTS_ON = 1e-3, 1e15
"""Smallest and largest sum of weights that are handed on. scikit-learn's naive Bayes ignores classes of less weight
than 1e-8, and beside a sum of more than 1e15 a penalty of order 1 is rounding error."""
_MAX_EXPONENT = 100  # of two, chosen by hand: weights beyond it are scaled long before a sum of them could overflow

# Row numbers in messages

_FIRST_ROW: ContextVar[int] = ContextVar("first_row", default=0)


@contextmanager
def rows_from(first: int) -> Iterator[None]:
    """Add an offset to the row numbers in messages, for rows that are a part of something larger."""
    token = _FIRST_ROW.set(first)
    try:
        yield
    finally:
        _FIRST_ROW.reset(token)


def _row(row: int) -> int:
    return int(row) + _FIRST_ROW.get()


# Real numbers

_UNREAL = np.datetime64 | np.timedelta64 | np.complexfloating | complex
_DATES = ("datetime", "date", "duration", "timedelta", "time", "period")


def as_real_array(values: Any, *, name: str, error: type[DataError] = NotNumericError) -> FloatArray:
    """Return an array of float64, or raise for values that are not real numbers; NaN and infinity pass."""
    _reject_unreal(values, name=name, error=error)
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as cause:
        raise error(f"{name} must hold real numbers ({cause}).") from cause


def row_sums(rows: Any) -> Any:
    """Sum over the last axis, in double precision."""
    if isinstance(rows, np.ndarray):  # for few columns four times as fast as rows.sum(axis=-1), and without warnings
        return np.einsum("...j->...", rows)
    return sum_in_double(rows, axis=-1)


def reject_masked(values: Any, *, name: str, error: type[DataError] = NonFiniteError) -> None:
    """Raise for masked cells, which `numpy.asarray` would read as if they were not masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return
    masked = np.argwhere(np.ma.getmaskarray(values))
    if len(masked):
        cell = tuple(int(i) for i in masked[0])
        raise error(
            f"{name} is a masked array with {len(masked)} masked cells, the first at {cell}. "
            "Fill them in (values.filled(...)) or remove these rows.",
            row=_row(cell[0]) if cell else None,
        )


def reject_lazy(values: Any, *, name: str) -> None:
    """Raise for a LazyFrame of polars, which holds no data yet."""
    if type(values).__name__ == "LazyFrame" and type(values).__module__.startswith("polars"):
        raise DataError(f"{name} is a LazyFrame, a query without data. Pass the result of its method collect().")


def _reject_unreal(values: Any, *, name: str, error: type[DataError] = NotNumericError) -> None:
    """Raise for lazy tables, and for masked cells, dates, durations and complex numbers, which NumPy turns into floats.

    Takes arrays, DataFrames, Series and nested lists.
    """
    if type(values) is np.ndarray and values.dtype.kind in "fiub":
        return
    reject_lazy(values, name=name)
    reject_masked(values, name=name, error=NonFiniteError if error is NotNumericError else error)
    if type(values).__module__.startswith("pyarrow") and hasattr(values, "schema"):
        for column, dtype in zip(values.schema.names, values.schema.types, strict=True):
            _reject_dtype(dtype, f"column {column!r} of {name}", error)
        return
    columns = getattr(values, "columns", None)
    if columns is not None and hasattr(values, "dtypes") and not isinstance(values, np.ndarray):
        for column, dtype in zip(columns, values.dtypes, strict=True):
            _reject_dtype(dtype, f"column {str(column)!r} of {name}", error)
        return
    if hasattr(values, "dtype"):
        _reject_dtype(values.dtype, name, error)
        entries = np.asarray(values) if str(values.dtype) == "object" else None
    else:
        try:
            entries = np.asarray(values)
        except (ValueError, TypeError):  # rows of different length: a later check reports them
            return
        _reject_dtype(entries.dtype, name, error)
    if entries is not None and entries.dtype == object:
        for entry in entries.ravel():
            if isinstance(entry, _UNREAL):
                raise error(f"{name} holds {entry!r}, where a real number belongs. Turn it into a number first.")


def _reject_dtype(dtype: Any, name: str, error: type[DataError]) -> None:
    kind = getattr(dtype, "kind", "")
    if kind in ("m", "M") or str(dtype).lower().startswith(_DATES):
        raise error(
            f"{name} holds dates or durations ({dtype}), where real numbers belong. "
            "Turn them into numbers first, such as days since a fixed date, or leave them out."
        )
    if kind == "c":
        raise error(f"Complex data not supported: {name} must hold real numbers.")


# Devices


def _follow(values: Any, where: Space | None, *, name: str, leader: str = "X") -> None:
    """Require that an array lives where the leading array does; None stands for NumPy and all that it can convert."""
    own = space_of(values, name=name)
    if own == where:
        return
    if where is None:
        raise DeviceError(
            f"{name} is an array of {own}, but {leader} is a NumPy array, a table or a list: everything follows "
            f"{leader}. Pass both in the same library and on the same device."
        )
    if own is None:
        what = "a NumPy array, a table or a list"
    elif own.xp != where.xp:
        what = f"an array of {own}"
    else:
        what = f"on the device {own.device}"
    raise DeviceError(
        f"{name} is {what}, but {leader} is an array of {where}: everything follows {leader}. Move {name} there first, "
        f"for example by {library_name(where.xp)}.asarray({name}, device={leader}.device)."
    )


def _device_floats(values: Any, where: Space, *, name: str, error: type[DataError] = NotNumericError) -> Any:
    """Require float32 or float64; return the array without its graph of gradients."""
    xp = where.xp
    if values.dtype not in (xp.float32, xp.float64):
        cast = f"{name}.float()" if library_name(xp) == "torch" else f"{name}.astype('float32')"
        raise error(
            f"{name} holds numbers of type {values.dtype}. Arrays on a device must be float32 or float64, and are not "
            f"converted silently: pass {cast}."
        )
    return values.detach() if getattr(values, "requires_grad", False) else values


def _on_host(*scalars: Any) -> list[float]:
    """Arrays of one number as floats; those on a device go to the host in one copy."""
    if isinstance(scalars[0], np.generic):
        return [float(scalar) for scalar in scalars]
    stacked = namespace(scalars[0]).stack([as_double(scalar) for scalar in scalars])
    values = stacked.tolist() if hasattr(stacked, "tolist") else [stacked[i] for i in range(len(scalars))]
    return [float(value) for value in values]


def reject_device_arrays(estimator: Any, X: Any) -> None:
    """Raise if X would be computed on a device, for an estimator that computes with NumPy alone."""
    where = space_of(X)
    if where is not None:
        raise DeviceError(
            f"{type(estimator).__name__} computes with NumPy alone, and X is an array of {where}: pass X and y as "
            f"NumPy arrays, or use {names_with('device')}."
        )


def check_same_space(estimator: Any, X: Any, fitted: Any) -> None:
    """Require that new rows live where a model keeps its training rows."""
    if is_foreign(X) or is_foreign(fitted):
        ours, theirs = space(fitted), space(X)
        if ours != theirs:
            raise DeviceError(
                f"X is an array of {theirs}, but {type(estimator).__name__} was fitted on arrays of {ours} and keeps "
                "its training rows there: move X there, or fit where X is."
            )


# Features


def check_features(
    estimator: BaseEstimator,
    X: Any,
    *,
    reset: bool,
    accept_sparse: bool | str | Sequence[str] = False,
    is_part: bool = False,
) -> Any:
    """Return X as a finite float array (float32 stays float32) or CSR matrix, and record or compare its features.

    NaN passes, as a missing value, if the estimator's class says ``_allow_nan = True``; infinity never does. Numbers
    beyond ±1e150 are rejected, and so is in ``fit`` a table whose numbers are all so small that their squares vanish.

    Parameters
    ----------
    estimator : BaseEstimator
        Receives ``n_features_in_`` and ``feature_names_in_`` when ``reset`` is true; otherwise X must have the same.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        The features. With scikit-learn's setting ``array_api_dispatch``, an array of torch, CuPy or another library of
        the array API is returned as it is, if the class says ``_array_api = True``.
    reset : bool
        True in ``fit``, False in ``predict``.
    accept_sparse : bool, str or list of str, default=False
        Sparse formats that the estimator takes, as in scikit-learn.
    is_part : bool, default=False
        Whether X is a part of the training rows, all of whose numbers may be tiny.
    """
    where = space_of(X)
    if where is None and _is_plain(estimator, X, reset=reset):
        if reset:
            estimator.n_features_in_ = X.shape[1]
            estimator.__dict__.pop("feature_names_in_", None)
        check_integer_columns(estimator, [], reset=reset)
        return X
    columns = column_names(X)
    if where is not None:
        X = _check_on_device(estimator, X, where, reset=reset)
    else:
        X = _check_with_scikit_learn(estimator, X, reset=reset, accept_sparse=accept_sparse)
    check_integer_columns(estimator, columns, reset=reset)
    check_sizes(X, columns, may_vanish=is_part or not reset)
    return X


def _is_plain(estimator: BaseEstimator, X: Any, *, reset: bool) -> bool:
    """Whether X is a NumPy array of ordinary numbers, in which no check would find anything to change or to reject.

    Those of scikit-learn take some 80 microseconds a call, mostly to find out what X is: as long as a fit of few rows.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or not X.size or X.dtype not in (np.float64, np.float32):
        return False
    if not reset and (hasattr(estimator, "feature_names_in_") or getattr(estimator, "n_features_in_", 0) != X.shape[1]):
        return False
    if X.dtype == np.float32:
        return bool(np.isfinite(np.einsum("ij->", X)))  # unlike X.sum(), einsum does not warn of an overflow
    return MAX_FEATURE**-2 <= float(np.einsum("ij,ij->", X, X)) <= MAX_FEATURE**2  # NaN is neither


def _check_with_scikit_learn(
    estimator: BaseEstimator, X: Any, *, reset: bool, accept_sparse: bool | str | Sequence[str]
) -> Any:
    if sparse.issparse(X):
        X = _canonical(X)
    else:
        _reject_unreal(X, name="X")
    try:
        return validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if accept_sparse is True else accept_sparse,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan" if getattr(estimator, "_allow_nan", False) else True,
        )
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        raise _explain_features(estimator, X, str(error), reset=reset) from error


def _canonical(X: Any) -> Any:
    """A sparse matrix whose cells are stored once and in order, with indices of 32 bits where these suffice.

    Arithmetic on the stored numbers sees each of them as a cell, SciPy puts others in order in the caller's own matrix,
    and some compiled code takes no other indices.
    """
    if X.format not in ("csr", "csc"):  # the others become such a matrix when they are converted
        return X
    if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) <= np.iinfo(np.int32).max:
        X = type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _explain_features(estimator: BaseEstimator, X: Any, message: str, *, reset: bool) -> Exception:
    """Find out what is wrong with X, given scikit-learn's message, and say where and what to do."""
    is_sparse = sparse.issparse(X)
    if is_sparse and "parse" in message and "dense" in message:
        return TypeError(f"{message} {type(estimator).__name__} needs dense features.")
    if not reset and hasattr(estimator, "n_features_in_") and ("features" in message or "feature names" in message):
        return FeatureMismatchError(f"{message.rstrip()}\nPass the columns that fit saw, in the same order.")
    if "omplex data" in message:
        return NotNumericError(f"{message} Features must be real numbers.")
    columns = [] if is_sparse else column_names(X)
    cell = None if is_sparse else _first_text_cell(X)
    if cell is not None:
        row, column, value = cell
        return NotNumericError(
            f"X holds {value!r} in row {_row(row)}, {_shown('column', columns, column)}, where a number belongs "
            f"({message}). Encode such columns (for example with sklearn.preprocessing.OneHotEncoder) or leave them "
            "out.",
            row=_row(row),
        )
    if "NaN" in message or "infinity" in message or "too large" in message:
        _check_cells_finite(X if is_sparse else np.asarray(X, dtype=np.float64), columns, "X", hint=FEATURE_HINT)
    if "0 sample" in message or "0 feature" in message:
        return EmptyDataError(f"{message} X needs at least one row and one column.")
    if "Expected 2D" in message or "with dim" in message:
        return DimensionError(f"{message} X needs one row per instance and one column per feature.")
    return DataError(message)


def _first_text_cell(X: Any) -> tuple[int, int, Any] | None:
    """Row, column and content of the first cell that cannot be converted to a float, column by column."""
    try:
        cells = np.asarray(X, dtype=object)
    except (ValueError, TypeError):
        return None
    if cells.ndim != 2:
        return None
    for column in range(cells.shape[1]):
        try:
            cells[:, column].astype(np.float64)
        except (ValueError, TypeError):
            row = next(row for row, value in enumerate(cells[:, column]) if not _is_number(value))
            return row, column, cells[row, column]
    return None


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (ValueError, TypeError):
        return False
    return True


def _check_on_device(estimator: Any, X: Any, where: Space, *, reset: bool) -> Any:
    if not getattr(estimator, "_array_api", False):
        reject_device_arrays(estimator, X)
    X = _device_floats(X, where, name="X")
    _check_two_dimensions(X, "X", column="feature")
    if reset:
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
    elif X.shape[1] != estimator.n_features_in_:
        raise FeatureMismatchError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input.\nPass the columns that fit saw, in the same order."
        )
    if not math.isfinite(float(sum_in_double(X))):  # so is the sum of huge numbers
        _check_cells_finite(X, [], "X", hint=FEATURE_HINT)
    return X


def _first_cell(X: Any, is_wrong: Callable[[Any, Any], Any]) -> tuple[int, int, float, int] | None:
    """Row, column and value of the first wrong cell of a dense, sparse or device table, and the number of such cells.

    ``is_wrong(xp, values)`` says it of an array of numbers. Cells that a sparse matrix does not store are right.
    """
    if sparse.issparse(X):
        cells = X.tocoo()
        wrong = np.flatnonzero(is_wrong(np, cells.data))
        if not len(wrong):
            return None
        first = wrong[np.lexsort((cells.col[wrong], cells.row[wrong]))[0]]
        return int(cells.row[first]), int(cells.col[first]), float(cells.data[first]), len(wrong)
    truth = is_wrong(namespace(X), X)
    count = count_true(truth)
    if not count:
        return None
    row = first_true(namespace(truth).any(truth, axis=1))
    column = first_true(truth[row, ...])
    return row, column, float(X[row, column]), count


def _check_cells_finite(
    table: Any, columns: list[Any], name: str, *, hint: Hint, column: str = "column", allow_nan: bool = False
) -> None:
    """Raise for the first cell that is not finite; ``hint`` says what to do about it."""
    found = _first_cell(table, lambda xp, values: xp.isinf(values) if allow_nan else ~xp.isfinite(values))
    if found is None:
        return
    row, position, value, count = found
    kind = "NaN" if math.isnan(value) else "infinity"
    in_all = f" ({count} cells)" if count > 1 else ""
    on_device = " Arrays on a device take no missing values." if is_device_array(table) else ""
    raise NonFiniteError(
        f"Input {name} contains {kind}{in_all}: row {_row(row)}, {_shown(column, columns, position)}. ",
        DEGREE_HINT if kind == "infinity" and column == "label" else _text(hint),
        on_device,
        row=_row(row),
    )


def _text(hint: Hint) -> str:
    return hint() if callable(hint) else hint


def _shown(kind: str, names: list[Any], position: int) -> str:
    """A column as messages show it, such as "label 'joy'" or "column 3"."""
    name = str(names[position]) if names and kind == "label" else names[position] if names else position
    return f"{kind} {name!r}"


def check_sizes(X: Any, columns: list[Any], *, may_vanish: bool) -> None:
    """Reject numbers whose squares overflow, and tables all of whose squares vanish.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The features.
    columns : list
        Names of the columns for the message; empty for positions.
    may_vanish : bool
        Whether all squares may vanish.
    """
    stored = X.data if sparse.issparse(X) else X
    if stored.dtype != (np if sparse.issparse(X) else namespace(X)).float64 or 0 in stored.shape:
        return  # squares of float32 fit into double precision
    if isinstance(stored, np.ndarray):
        low, high = np.fmin.reduce(stored, axis=None), np.fmax.reduce(stored, axis=None)  # NaN may be a missing value
    else:
        low, high = namespace(X).min(X), namespace(X).max(X)
    low, high = _on_host(low, high)
    largest = max(high, -low)
    if largest > MAX_FEATURE:
        row, column, *_ = _first_cell(X, lambda xp, values: xp.abs(values) == largest) or (0, 0)
        check_feature_size(largest, where=f" (row {_row(row)}, {_shown('column', columns, column)})")
    if not may_vanish:
        check_feature_size(largest)


def check_feature_size(largest: float, *, where: str = "") -> None:
    """Reject features whose largest absolute value is so large or so small that squares overflow or vanish.

    Parameters
    ----------
    largest : float
        The largest absolute value of all features; 0 passes.
    where : str, default=""
        Where it stands, for the message.
    """
    if largest > MAX_FEATURE or 0 < largest < 1 / MAX_FEATURE:
        raise DataError(
            f"X holds numbers up to {largest:.3g}{where}, whose squares are too "
            f"{'large' if largest > 1 else 'small'} for double precision. Multiply X by a power of ten, so that its "
            "features are of the order of 1."
        )


# Distributions


def check_distributions(
    D: Any,
    *,
    name: str = "y",
    renormalize: bool = True,
    leave_rounding: bool = False,
    nan_hint: Hint = "",
    like: Any = None,
) -> FloatArray:
    """Return D as rows that sum to one, in float64; the argument itself is never changed, but may be what is returned.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Finite, non-negative, each row summing to one within 1e-3.
    name : str, default="y"
        What the messages call it.
    renormalize : bool, default=True
        Divide each row by its sum, so that it sums to one exactly.
    leave_rounding : bool, default=False
        Leave D as it is, without a copy, if all sums are one up to rounding: a division would only put one rounding
        error in the place of another. Not for datasets, whose digits are the fingerprint that records carry. Arrays on
        a device are always left.
    nan_hint : str or callable, default=""
        What the error about NaN says instead of "remove or fill in"; a function that returns it is called for the error
        alone.
    like : array, default=None
        Checked features. If they are on a device, D must be there too, and takes their precision.
    """
    if like is None or not is_device_array(like):
        return _check_rows(D, None, name, renormalize, leave_rounding, nan_hint)
    rows = _check_rows(D, space_of(like), name, renormalize, True, nan_hint)
    return namespace(rows).astype(rows, like.dtype, copy=False)


def _check_rows(
    D: Any, where: Space | None, name: str, renormalize: bool, leave_rounding: bool, nan_hint: Hint, leader: str = "X"
) -> Any:
    _follow(D, where, name=name, leader=leader)
    rows = _as_floats(D, name=name, nan_hint=nan_hint) if where is None else _device_floats(D, where, name=name)
    _check_two_dimensions(rows, name)
    _check_labels(rows, D, name)
    xp, sums = namespace(rows), row_sums(rows)
    # maxima and minima propagate NaN, so that one comparison finds whatever is wrong
    worst, least = _on_host(xp.max(xp.abs(sums - 1.0)), xp.min(rows))
    if not (worst <= SUM_TOLERANCE and least >= 0):
        _check_cells_finite(rows, column_names(D), name, hint=nan_hint or DEGREE_HINT, column="label")
        _check_not_negative(rows, D, name)
        check_row_sums(sums, name=name)
    if not renormalize or (leave_rounding and worst <= ROUNDING * float(xp.finfo(rows.dtype).eps)):
        return rows
    if where is not None:
        return rows / xp.astype(sums, rows.dtype, copy=False)[:, None]
    sums = rows.sum(axis=1)  # not those of einsum, whose last digit may differ: the digits of datasets are fingerprints
    return rows / sums[:, None] if np.any(sums != 1.0) else rows


def check_numbers(values: Any, *, name: str, allow_nan: bool = False, nan_hint: Hint = "") -> FloatArray:
    """Return a two-dimensional, non-empty, finite float64 array of NumPy, or raise an error that names the cell.

    With ``allow_nan``, cells may be missing (NaN, None, ``pandas.NA``); ``nan_hint`` is what the error says otherwise.
    """
    _follow(values, None, name=name)
    array = _as_floats(values, name=name, allow_nan=allow_nan, nan_hint=nan_hint)
    _check_two_dimensions(array, name)
    if not np.isfinite(np.einsum("ij->", array)):  # faster than each number; huge ones may sum to infinity, too
        _check_cells_finite(
            array, column_names(values), name, hint=nan_hint or DEGREE_HINT, column="label", allow_nan=allow_nan
        )
    return array


def _as_floats(values: Any, *, name: str, allow_nan: bool = False, nan_hint: Hint = "") -> FloatArray:
    """An array of float64 of any shape and content."""
    if sparse.issparse(values):
        raise SparseDistributionError(f"{name} is a sparse matrix. Distributions are dense: pass {name}.toarray().")
    _reject_unreal(values, name=name)
    try:
        array = np.asarray(values)
        if array.dtype == object or array.dtype.kind in "US":
            raise ValueError
        return array.astype(np.float64, copy=False)
    except (ValueError, TypeError):
        return _from_objects(values, name, allow_nan=allow_nan, nan_hint=nan_hint)


def _from_objects(values: Any, name: str, *, allow_nan: bool, nan_hint: Hint) -> FloatArray:
    """Convert numbers stored as objects (Decimal, pandas.NA), or raise an error that names the cell."""
    try:
        cells = np.array(values, dtype=object)
    except ValueError:
        cells = np.empty(0, dtype=object)
    if cells.ndim != 2:
        entries = values if cells.ndim else ()  # None has no rows to inspect
        lengths = [len(row) for row in entries if hasattr(row, "__len__") and not isinstance(row, str)]
        if len(set(lengths)) > 1:
            raise DimensionError(
                f"The rows of {name} have different lengths (from {min(lengths)} to {max(lengths)}). "
                "Every row needs one number per label."
            )
        _check_two_dimensions(cells, name)
    columns = column_names(values)
    for row, column in np.ndindex(cells.shape):
        cell = cells[row, column]
        if cell is None or type(cell).__name__ == "NAType":
            if not allow_nan:
                raise NonFiniteError(
                    f"Input {name} contains NaN: row {_row(row)}, {_shown('label', columns, column)} is missing. "
                    f"{_text(nan_hint)}".rstrip(),
                    row=_row(row),
                )
            cells[row, column] = np.nan
        elif isinstance(cell, str | bytes) or not _is_number(cell):
            raise NotNumericError(
                f"{name} holds {cell!r} in row {_row(row)}, {_shown('label', columns, column)}, where a number "
                "belongs. For single labels or label sets use skldl.distributions.from_labels or from_label_sets.",
                row=_row(row),
            )
    return cells.astype(np.float64)


def _check_two_dimensions(table: Any, name: str, *, column: str = "label") -> None:
    if table.ndim != 2:
        others = "For single labels use skldl.distributions.from_labels; for a single row pass a list of one row."
        raise DimensionError(
            f"{name} has {table.ndim} dimension{'s' * (table.ndim != 1)} (shape {tuple(table.shape)}), but needs two: "
            f"one row per instance, one column per {column}.{' ' + others if column == 'label' else ''}"
        )
    if 0 in table.shape:
        raise EmptyDataError(
            f"{name} is empty (shape {tuple(table.shape)}): at least one row and one {column} are needed."
        )


def _check_labels(rows: Any, D: Any, name: str) -> None:
    """Require at least two labels, and names that differ."""
    if rows.shape[1] < 2:
        raise SingleLabelError(
            f"{name} has {rows.shape[1]} label (shape {tuple(rows.shape)}). A distribution needs at least two labels: "
            "for a yes/no degree d pass the columns d and 1 - d."
        )
    if column_names(D):
        label_names(D, rows.shape[1])


def _check_not_negative(rows: Any, D: Any, name: str) -> None:
    found = _first_cell(rows, lambda xp, values: values < 0)
    if found is not None:
        row, column, value, _ = found
        raise NegativeDegreeError(
            f"Row {_row(row)} of {name} holds the negative degree {value:g} "
            f"({_shown('label', column_names(D), column)}). Degrees are at least zero: use skldl.simplex.project for "
            "predictions of a regression, or skldl.distributions.from_scores for scores.",
            row=_row(row),
        )


def check_degrees(array: FloatArray, D: Any, *, name: str) -> None:
    """Require at least two labels, names that differ, and no negative degree."""
    _check_labels(array, D, name)
    if array.min() < 0:
        _check_not_negative(array, D, name)


def check_row_sums(sums: Any, *, name: str) -> None:
    """Require sums of one within the tolerance."""
    wrong = ~(namespace(sums).abs(sums - 1.0) <= SUM_TOLERANCE)
    count = count_true(wrong)
    if not count:
        return
    row = first_true(wrong)
    total, more = float(sums[row]), f" ({count} rows in all)" if count > 1 else ""
    if total == 0:
        raise ZeroRowError(
            f"Row {_row(row)} of {name} is all zero{more}. A row without mass is not a distribution: remove it, or say "
            "how it shall be filled with skldl.distributions.from_counts(y, smoothing=...).",
            row=_row(row),
        )
    normalize = f"skldl.simplex.normalize({name})"
    if is_device_array(sums):
        normalize = f"{name} / {name}.sum(1)[:, None]"
    raise RowSumError(
        f"Row {_row(row)} of {name} sums to {total:.6g}, not 1{more}. "
        f"If these are counts, use skldl.distributions.from_counts({name}); for intensities, from_scores; "
        f"to divide each row by its sum, {normalize}.",
        row=_row(row),
    )


def sum_to_one(distributions: npt.ArrayLike, name: str) -> FloatArray:
    """Divide predicted rows by their sums; rows that are not distributions are an error.

    NumPy's rows in double precision, those of a device in their own. ``name`` is the class that predicted them.
    """
    rows: Any = distributions if is_device_array(distributions) else np.asarray(distributions, dtype=np.float64)
    xp = namespace(rows)
    sums = row_sums(rows) if xp is np else xp.sum(rows, axis=1)
    if 0 in rows.shape:
        return np.asarray(rows)
    least, low, high = _on_host(xp.min(rows), xp.min(sums), xp.max(sums))
    if not (least >= 0 and low > 0 and high < math.inf):  # also for NaN
        wrong = ~(xp.all(rows >= 0, axis=1) & (sums > 0) & (sums < math.inf))
        row = first_true(wrong)
        raise ValueError(
            f"{name} predicted {np.array2string(to_numpy(as_double(rows[row, ...])), threshold=6)} for row {row} "
            f"({count_true(wrong)} such rows), which is not a distribution: degrees are finite, at least zero, and not "
            f"all zero. Scale the features, or check {name}._predict if you wrote it."
        )
    return rows / sums[:, None]


# Weights


def check_weights(
    sample_weight: Any, n_samples: int, like: Any = None, *, is_part: bool = False, hand_on: bool = False
) -> FloatArray | None:
    """Return the weights as float64, or None where every row counts the same.

    Only ratios of weights count. So weights of an unusual size, whose sums and products could overflow or underflow,
    are multiplied by a power of two; others stay as they are, since an estimator may compare their sum with a penalty.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), float or None
        Non-negative weights, each zero or within a factor of 1e100 of their mean.
    n_samples : int
        Number of rows.
    like : array, default=None
        Checked features: the weights must be where these are, and stay there.
    is_part : bool, default=False
        Whether these are a part of the rows, of whose other weights nothing is known: all may be zero, each must be
        within a factor of 1e100 of one, and no power of two is multiplied.
    hand_on : bool, default=False
        Whether the weights are for a learner of another package, whose penalty counts beside their sum: they stay as
        they are, and must sum to a number between 1e-3 and 1e15.
    """
    if sample_weight is None:
        return None
    where = space_of(like) if like is not None and is_device_array(like) else None
    if where is not None and isinstance(sample_weight, int | float):
        sample_weight = where.xp.full((n_samples,), float(sample_weight), dtype=where.xp.float64, device=where.device)
    _follow(sample_weight, where, name="sample_weight")
    if where is None:
        weight = np.array(as_real_array(sample_weight, name="sample_weight", error=SampleWeightError))
        weight = np.full(n_samples, weight) if weight.ndim == 0 else weight
    else:
        weight = as_double(_device_floats(sample_weight, where, name="sample_weight", error=SampleWeightError))
    if weight.ndim != 1:
        raise SampleWeightError(
            f"Sample weights must be 1D array or scalar: sample_weight has shape {tuple(weight.shape)}. "
            "Pass one number per row."
        )
    if weight.shape[0] != n_samples:
        raise SampleWeightError(f"sample_weight has {weight.shape[0]} entries, but there are {n_samples} rows.")
    xp = namespace(weight)
    least, largest = _on_host(xp.min(weight), xp.max(weight))
    if not (least >= 0 and largest < math.inf):  # also for NaN
        row = first_true(~(xp.isfinite(weight) & (weight >= 0)))
        raise SampleWeightError(
            f"sample_weight of row {_row(row)} is {float(weight[row]):g}. Weights are finite and at least zero: give "
            "such rows weight 0 or remove them.",
            row=_row(row),
        )
    if largest == 0:
        if is_part:
            return weight
        raise SampleWeightError("sample_weight is zero for every row, so nothing is left to learn from.")
    if is_part or least * MAX_WEIGHT_RATIO < largest:  # else all are near their mean
        mean = 1.0 if is_part else largest * float(xp.mean(weight / largest))  # a plain sum could overflow
        _check_weight_ratios(weight, mean, "1" if is_part else "their mean")
    if hand_on:
        with np.errstate(over="ignore"):
            (total,) = _on_host(xp.sum(weight))
        low, high = TOTAL_WEIGHTS_ON
        if not low <= total <= high:
            raise SampleWeightError(
                f"sample_weight sums to {total:.3g}. The weights are handed on to a learner whose settings, such as "
                f"penalties, count beside their sum, which must be between {low:g} and {high:g}: use weights of the "
                "order of 1."
            )
        return weight
    exponent = 0 if is_part else math.frexp(largest)[1]
    if abs(exponent) > _MAX_EXPONENT:
        half = exponent // 2  # 2 to the power of the whole exponent may overflow
        weight = weight * 2.0**-half * 2.0 ** (half - exponent)
    return weight


def _check_weight_ratios(weight: Any, mean: float, of: str) -> None:
    wrong = (weight > 0) & ((weight < mean / MAX_WEIGHT_RATIO) | (weight > mean * MAX_WEIGHT_RATIO))
    if count_true(wrong):
        row = first_true(wrong)
        raise SampleWeightError(
            f"sample_weight of row {_row(row)} is {float(weight[row]):.3g}, more than a factor of "
            f"{MAX_WEIGHT_RATIO:.0e} from {of}. Use weights of the order of 1, and weight 0 for rows to be left out.",
            row=_row(row),
        )


# Groups: rows of one group are held out together


def group_codes(groups: Any, n_samples: int) -> IntArray:
    """Number the groups of all rows from 0, in the order of their names; every row needs a group."""
    labels = check_row_labels(groups, n_samples, name="groups")
    return np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)[1].astype(np.intp)


def check_row_labels(values: Any, n_samples: int, *, name: str) -> AnyArray:
    """Require one value for each row, such as its group or stratum, and none missing."""
    labels: AnyArray = np.asarray(values)
    if labels.shape != (n_samples,):
        raise LengthMismatchError(
            f"{name} has shape {labels.shape}, but there are {n_samples} rows. Pass one for each row of X."
        )
    missing = _missing(labels) | np.ma.getmaskarray(values) if np.ma.isMaskedArray(values) else _missing(labels)
    if missing.any():
        row = int(missing.argmax())
        raise DataError(
            f"{name} holds missing values, the first in row {row} ({int(missing.sum())} in all). "
            "Every row needs one: fill them in, or remove these rows.",
            row=row,
        )
    return labels


def _missing(labels: AnyArray) -> BoolArray:
    """Whether each label is NaN, infinity, NaT, None or pandas.NA."""
    if labels.dtype.kind in "fc":
        return ~np.isfinite(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype != object:
        return np.zeros(labels.shape, dtype=bool)
    # NaN and NaT differ from themselves; pandas.NA, without a truth value, is known by the name of its type
    return np.array(
        [label is None or type(label).__name__ == "NAType" or bool(label != label) for label in labels], dtype=bool
    )


def check_groups(groups: Any, rows: IntArray, n_samples: int) -> IntArray | None:
    """Number the groups of some rows from 0; at least two are needed, since a single group cannot be held out.

    ``groups`` are those of all ``n_samples`` rows given to ``fit``, and ``rows`` the positions of those wanted. None
    stays None.
    """
    if groups is None:
        return None
    present, codes = np.unique(group_codes(groups, n_samples)[rows], return_inverse=True)
    if len(present) < 2:
        raise DataError(
            "All rows belong to one group, so none can be held out. Pass ",
            Parameter("groups", None),
            ", or two groups or more.",
        )
    return codes.astype(np.intp)


# Pairs


def check_pair(D_true: Any, D_pred: Any) -> tuple[FloatArray, FloatArray]:
    """Return true and predicted distributions as they are, checked, of one shape and with the labels in one order.

    Those on a device have sums of one, which NumPy's get later.
    """
    where = space_of(D_true, name="D_true")
    true = _check_rows(D_true, where, "D_true", where is not None, True, "")
    pred = _check_rows(D_pred, where, "D_pred", where is not None, True, "", leader="D_true")
    if tuple(true.shape) != tuple(pred.shape):
        what = "rows" if true.shape[0] != pred.shape[0] else "labels"
        raise LengthMismatchError(
            f"D_true has shape {tuple(true.shape)} and D_pred {tuple(pred.shape)}: the number of {what} differs. "
            "Compare each true row with the prediction for the same instance over the same labels."
        )
    order = order_of_labels(column_names(D_true), column_names(D_pred), name="D_pred")
    return true, pred if order is None else pred[:, order]


def check_truth(D: Any, label_names: Collection[Any], n_rows: int, *, name: str = "y") -> FloatArray:
    """Return distributions to compare with predictions: one for each row, with the labels in the order of a model.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        The distributions. Columns with the names of the model's labels may be in another order.
    label_names : sequence
        Names of the model's labels.
    n_rows : int
        Number of predictions.
    name : str, default="y"
        What the messages call the distributions.
    """
    return in_label_order(check_distributions(D, name=name), D, label_names, n_rows, name=name)


def in_label_order(rows: FloatArray, table: Any, label_names: Collection[Any], n_rows: int, *, name: str) -> FloatArray:
    """Require one row for each prediction and one column for each label; return the columns in the model's order.

    ``table`` is what the numbers were read from, and ``name`` what the messages call it.
    """
    if rows.shape != (n_rows, len(label_names)):
        raise LengthMismatchError(
            f"{name} has shape {rows.shape}, but needs {(n_rows, len(label_names))}: one row for each instance and one "
            "column for each label."
        )
    order = order_of_labels(given_names(label_names), column_names(table), name=name)
    return rows if order is None else rows[:, order]


def check_same_length(X: Any, D: FloatArray) -> None:
    """Require one row of D for each row of X, which may be a list."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != D.shape[0]:
        raise LengthMismatchError(
            f"X has {n_rows} rows and y has {D.shape[0]}: found input variables with inconsistent numbers of "
            "samples. Pass one distribution per row of X."
        )
