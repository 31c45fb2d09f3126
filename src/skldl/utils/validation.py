"""Validation of X, D and weights: all error messages about bad input are written here.

Valid data need one scan and, where the dtype fits, no copy. Only invalid data are scanned a second time, for the place
that the message names.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from skldl.exceptions import (
    DataError,
    DimensionError,
    EmptyDataError,
    FeatureMismatchError,
    LengthMismatchError,
    NegativeDegreeError,
    NonFiniteError,
    NotNumericError,
    RowSumError,
    SparseDistributionError,
    ZeroRowError,
)
from skldl.utils.arrays import is_device_array, space_of
from skldl.utils.column_names import check_integer_columns, column_names, label_names, order_of_labels
from skldl.utils.device_validation import (
    ROUNDING,
    check_device_distributions,
    check_device_features,
    check_device_pair,
    check_same_shape,
    check_same_space,
    check_two_labels,
    follow,
    refuse_device_arrays,
)
from skldl.utils.real_numbers import refuse_unreal, row_sums
from skldl.utils.row_numbers import row_number as _row
from skldl.utils.row_numbers import rows_from
from skldl.utils.typing import AnyArray, BoolArray, FloatArray, IntArray
from skldl.utils.weights import check_weights

SUM_TOLERANCE = 1e-3
SUM_ROUNDING = ROUNDING * float(np.finfo(np.float64).eps)
DEFAULT_NAN_HINT = "Drop such rows or fill in the degree before fitting or scoring."

__all__ = [
    "check_degrees",
    "check_distributions",
    "check_features",
    "check_groups",
    "check_numbers",
    "check_pair",
    "check_row_sums",
    "check_same_length",
    "check_same_shape",
    "check_same_space",
    "check_weights",
    "column_names",
    "group_codes",
    "label_names",
    "order_of_labels",
    "refuse_device_arrays",
    "rows_from",
]


def check_features(
    estimator: BaseEstimator, X: Any, *, reset: bool, accept_sparse: bool | str | Sequence[str] = False
) -> Any:
    """Return X as a finite float array (float32 stays float32) or CSR matrix, and record or compare its features.

    NaN passes, as a missing value, if the estimator's class says ``_allow_nan = True``; infinity never does.

    Parameters
    ----------
    estimator : BaseEstimator
        Receives ``n_features_in_`` and ``feature_names_in_`` when ``reset`` is true; otherwise X must fit them.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        The features. With scikit-learn's setting ``array_api_dispatch``, an array of torch, CuPy or another library of
        the array API comes back as it is, if the class says ``_array_api = True``.
    reset : bool
        True in ``fit``, False in ``predict``.
    accept_sparse : bool, str or list of str, default=False
        Sparse formats that the estimator takes, as in scikit-learn.
    """
    if _is_plain_and_valid(estimator, X, reset=reset):
        if reset:
            estimator.n_features_in_ = X.shape[1]
            estimator.__dict__.pop("feature_names_in_", None)
        check_integer_columns(estimator, [], reset=reset)
        return X
    where = space_of(X)
    if where is not None:
        return check_device_features(estimator, X, where, reset=reset)
    if sparse.issparse(X):
        X = _canonical(X)
    else:
        refuse_unreal(X, name="X")
    try:
        checked = validate_data(
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
    check_integer_columns(estimator, column_names(X), reset=reset)
    return checked


def _is_plain_and_valid(estimator: BaseEstimator, X: Any, *, reset: bool) -> bool:
    """Say whether X is an array in which scikit-learn would find nothing to change, to warn of or to refuse.

    Its checks take some 80 microseconds a call, mostly to find out what X is: on a small table as long as a fit.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or not X.size or X.dtype not in (np.float64, np.float32):
        return False
    if not reset and (hasattr(estimator, "feature_names_in_") or getattr(estimator, "n_features_in_", 0) != X.shape[1]):
        return False
    return bool(np.isfinite(np.einsum("ij->", X)))  # gives no warning where numbers are huge


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
    name = type(estimator).__name__
    if sparse.issparse(X) and "parse" in message and "dense" in message:
        return TypeError(f"{message} {name} needs dense features.")
    if sparse.issparse(X):
        columns: list[Any] = []
        X = X.data.reshape(-1, 1) if np.size(X.data) else np.zeros((0, 1))
    else:
        columns = column_names(X)
    if not reset and hasattr(estimator, "n_features_in_") and ("features" in message or "feature names" in message):
        hint = "Pass the columns that fit saw, in the same order."
        return FeatureMismatchError(f"{message.rstrip()}\n{hint}")
    if "omplex data" in message:
        return NotNumericError(f"{message} Features must be real numbers.")
    place = _first_text_cell(X, columns)
    if place is not None:
        row, column, value = place
        return NotNumericError(
            f"X holds {value!r} in row {_row(row)}, column {column}, where a number belongs ({message}). "
            "Encode such columns (for example with sklearn.preprocessing.OneHotEncoder) or leave them out."
        )
    if "NaN" in message or "infinity" in message or "too large" in message:
        where = _first_non_finite_cell(X, columns)
        return NonFiniteError(
            f"{message.splitlines()[0]}{where} "
            "Impute missing features (sklearn.impute.SimpleImputer) or drop these rows."
        )
    if "0 sample" in message or "0 feature" in message:
        return EmptyDataError(f"{message} X needs at least one row and one column.")
    if "Expected 2D" in message or "with dim" in message:
        return DimensionError(f"{message} X needs one row per instance and one column per feature.")
    return DataError(message)


def _first_text_cell(X: Any, columns: list[Any]) -> tuple[int, Any, Any] | None:
    """Row, column and content of the first cell that no float can be made of."""
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
            for row, value in enumerate(cells[:, column]):
                try:
                    float(value)
                except (ValueError, TypeError):
                    return row, repr(columns[column]) if columns else column, value
    return None


def _first_non_finite_cell(X: Any, columns: list[Any]) -> str:
    try:
        values = np.asarray(X, dtype=np.float64)
    except (ValueError, TypeError):
        return ""
    bad = np.argwhere(~np.isfinite(values))
    if values.ndim != 2 or not len(bad):
        return ""
    row, column = (int(i) for i in bad[0])
    label = repr(columns[column]) if columns else column
    return f" The first of {len(bad)} such cells is {values[row, column]} in row {_row(row)}, column {label}."


def check_numbers(values: Any, *, name: str, allow_nan: bool = False, nan_hint: str = "") -> FloatArray:
    """Return a two-dimensional, non-empty, finite float64 array, or say what keeps it from being one.

    With ``allow_nan``, cells may be missing (NaN, None, ``pandas.NA``); ``nan_hint`` is what the error says otherwise.
    """
    follow(values, None, name=name)
    if sparse.issparse(values):
        raise SparseDistributionError(f"{name} is a sparse matrix. Distributions are dense: pass {name}.toarray().")
    columns = column_names(values)
    refuse_unreal(values, name=name)
    try:
        array = np.asarray(values)
        if array.dtype == object or array.dtype.kind in "US":
            raise ValueError
        array = array.astype(np.float64, copy=False)
    except (ValueError, TypeError):
        array = _from_objects(values, columns, name, allow_nan=allow_nan, nan_hint=nan_hint)
    if array.ndim != 2:
        raise DimensionError(
            f"{name} has {array.ndim} dimension{'s' * (array.ndim != 1)} (shape {array.shape}), but needs two: "
            "one row per instance, one column per label. "
            "For single labels use skldl.distributions.from_labels; for a single row pass a list of one row."
        )
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise EmptyDataError(
            f"{name} is empty: 0 sample(s) or 0 label(s) (shape {array.shape}); at least one row is needed."
        )
    if not np.isfinite(np.einsum("ij->", array)):  # quicker than a look at each number; false for huge ones, too
        bad = np.argwhere(np.isinf(array) if allow_nan else ~np.isfinite(array))
        if len(bad):
            row, column = (int(i) for i in bad[0])
            kind = "NaN" if np.isnan(array[row, column]) else "infinity"
            hint = nan_hint if nan_hint and kind == "NaN" else DEFAULT_NAN_HINT
            raise NonFiniteError(f"Input {name} contains {kind}: row {_row(row)}, {_label(columns, column)}. {hint}")
    return array


def _from_objects(values: Any, columns: list[Any], name: str, *, allow_nan: bool, nan_hint: str) -> FloatArray:
    """Numbers in disguise (Decimal, pandas.NA, lists of different length): convert, or say which cell it is."""
    try:
        cells = np.array(values, dtype=object)
    except ValueError:
        cells = np.empty(0, dtype=object)
    if cells.ndim != 2:
        entries = values if cells.ndim else ()  # None, for one, has no rows to look at
        lengths = [len(row) for row in entries if hasattr(row, "__len__") and not isinstance(row, str)]
        if len(set(lengths)) > 1:
            raise DimensionError(
                f"The rows of {name} have different lengths (from {min(lengths)} to {max(lengths)}). "
                "Every row needs one number per label."
            )
        raise DimensionError(
            f"{name} has {cells.ndim} dimension{'s' * (cells.ndim != 1)} (shape {cells.shape}), but needs two: "
            "one row per instance, one column per label. For single labels use skldl.distributions.from_labels."
        )
    for row, column in np.ndindex(cells.shape):
        cell = cells[row, column]
        if isinstance(cell, str | bytes) or not _is_number(cell):
            if cell is None or type(cell).__name__ == "NAType":
                if allow_nan:
                    cells[row, column] = np.nan
                    continue
                where = f"row {_row(row)}, {_label(columns, column)} is missing."
                raise NonFiniteError(f"Input {name} contains NaN: {where} {nan_hint}".rstrip())
            raise NotNumericError(
                f"{name} holds {cell!r} in row {_row(row)}, {_label(columns, column)}, where a number belongs. "
                "For single labels or label sets use skldl.distributions.from_labels or from_label_sets."
            )
    return cells.astype(np.float64)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (ValueError, TypeError):
        return False
    return True


def _label(columns: list[Any], column: int) -> str:
    return f"label {str(columns[column])!r}" if columns else f"label {column}"


def check_distributions(
    D: Any,
    *,
    name: str = "y",
    renormalize: bool = True,
    leave_rounding: bool = False,
    nan_hint: str = "",
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
        error in the place of another. Not for datasets, whose digits are the fingerprint that records carry.
    nan_hint : str, default=""
        What the error about NaN says instead of "drop or fill in".
    like : array, default=None
        Checked features. If they are on a device, D must be there too, and takes their precision.
    """
    if like is not None and is_device_array(like):
        where = space_of(like)
        follow(D, where, name=name)
        assert where is not None  # `follow` refuses arrays of another library
        return check_device_distributions(D, where, dtype=like.dtype, name=name, renormalize=renormalize)
    array = check_numbers(D, name=name, nan_hint=nan_hint)
    check_degrees(array, D, name=name)
    sums = row_sums(array)
    deviation = float(np.abs(sums - 1.0).max())
    if not deviation <= SUM_TOLERANCE:
        check_row_sums(sums, name=name)
    if not renormalize or (leave_rounding and deviation <= SUM_ROUNDING):
        return array
    sums = array.sum(axis=1)
    return array / sums[:, None] if np.any(sums != 1.0) else array


def check_degrees(array: FloatArray, D: Any, *, name: str) -> None:
    """Demand at least two labels, one name for each column of D, and no negative degree."""
    columns = column_names(D)
    check_two_labels(array, name=name)
    if columns:
        label_names(D, array.shape[1])
    if array.min() < 0:
        row, column = (int(i) for i in np.argwhere(array < 0)[0])
        raise NegativeDegreeError(
            f"Row {_row(row)} of {name} holds the negative degree {array[row, column]:g} ({_label(columns, column)}). "
            "Degrees are at least zero: use skldl.simplex.project for predictions of a regression, "
            "or skldl.distributions.from_scores for scores."
        )


def check_row_sums(sums: FloatArray, *, name: str) -> None:
    """Demand sums of one within the tolerance."""
    wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        more = f" ({int(wrong.sum())} rows in all)" if wrong.sum() > 1 else ""
        if sums[row] == 0:
            raise ZeroRowError(
                f"Row {_row(row)} of {name} is all zero{more}. A row without mass is no distribution: drop it, or say "
                "how it shall be filled with skldl.distributions.from_counts(y, smoothing=...)."
            )
        raise RowSumError(
            f"Row {_row(row)} of {name} sums to {sums[row]:.6g}, not 1{more}. "
            f"If these are counts, use skldl.distributions.from_counts({name}); for intensities, from_scores; "
            f"to divide each row by its sum, skldl.simplex.normalize({name})."
        )


def check_pair(D_true: Any, D_pred: Any) -> tuple[FloatArray, FloatArray]:
    """Return true and predicted distributions as they are, checked, of one shape and with the labels in one order.

    Those on a device come back with sums of one, which NumPy's get later.
    """
    where = space_of(D_true, name="D_true")
    if where is not None:
        return check_device_pair(D_true, D_pred, where)
    true = check_distributions(D_true, name="D_true", renormalize=False)
    pred = check_distributions(D_pred, name="D_pred", renormalize=False)
    check_same_shape(true, pred)
    order = order_of_labels(column_names(D_true), column_names(D_pred), name="D_pred")
    return true, pred if order is None else pred[:, order]


def check_same_length(X: Any, D: FloatArray) -> None:
    """Demand one row of D for each row of X."""
    if X.shape[0] != D.shape[0]:
        raise LengthMismatchError(
            f"X has {X.shape[0]} rows and y has {D.shape[0]}: found input variables with inconsistent numbers of "
            "samples. Pass one distribution per row of X."
        )


def group_codes(groups: Any, n_samples: int) -> IntArray:
    """Number the groups of all rows from 0, in the order of their names; every row needs a group."""
    labels = np.asarray(groups)
    if labels.shape != (n_samples,):
        raise LengthMismatchError(
            f"groups has shape {labels.shape}, but there are {n_samples} rows. Pass one group for each row of X."
        )
    missing = _missing(labels) | np.ma.getmaskarray(groups) if np.ma.isMaskedArray(groups) else _missing(labels)
    if missing.any():
        row = int(missing.argmax())
        raise DataError(
            f"groups holds missing values, the first in row {row} ({int(missing.sum())} in all). "
            "Every row needs a group: fill them in, or drop these rows."
        )
    return np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)[1].astype(np.intp)


def _missing(labels: AnyArray) -> BoolArray:
    """Which labels are NaN, infinity, NaT, None or pandas.NA."""
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
    """Number the groups of some rows from 0; at least two are needed, since one group alone cannot be held out.

    ``groups`` are those of all ``n_samples`` rows given to ``fit``, and ``rows`` the positions of those wanted. None
    stays None.
    """
    if groups is None:
        return None
    present, codes = np.unique(group_codes(groups, n_samples)[rows], return_inverse=True)
    if len(present) < 2:
        raise DataError(
            "All rows belong to one group, so none can be held out. Pass groups=None, or two groups or more."
        )
    return codes.astype(np.intp)
