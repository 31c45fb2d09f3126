"""Validation of arrays on a device: X, D and weights are checked there, in as few passes as possible.

Each check ends in one number that is copied to the host. Only invalid data are scanned a second time, for the place
that the message names. Nothing is converted silently: an array of another library, on another device or of another
precision than a float32 or float64 X raises an error that says what to do.
"""

from typing import Any

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
    RowSumError,
    SampleWeightError,
    SingleLabelError,
    ZeroRowError,
)
from skldl.utils.arrays import (
    Space,
    as_double,
    count_true,
    first_true,
    is_foreign,
    library_name,
    namespace,
    space,
    space_of,
    sum_in_double,
)

ROUNDING = 8.0
"""Row sums that differ from one by so many units of rounding are left as they are."""


def check_device_features(estimator: Any, X: Any, where: Space, *, reset: bool) -> Any:
    """Return X, finite and of floating point, and record or compare the number of its columns."""
    name = type(estimator).__name__
    if not getattr(estimator, "_array_api", False):
        refuse_device_arrays(estimator, X)
    X = _real(X, where, name="X")
    if X.ndim != 2:
        raise DimensionError(
            f"Expected 2D array, got {X.ndim} dimension{'s' * (X.ndim != 1)} (shape {tuple(X.shape)}). X needs one row "
            "per instance and one column per feature."
        )
    if 0 in X.shape:
        raise EmptyDataError(f"X has shape {tuple(X.shape)}: it needs at least one row and one column.")
    if reset:
        estimator.n_features_in_ = X.shape[1]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif X.shape[1] != estimator.n_features_in_:
        raise FeatureMismatchError(
            f"X has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features as input.\n"
            "Pass the columns that fit saw, in the same order."
        )
    _check_finite(X, where.xp, name="X")
    return X


def refuse_device_arrays(estimator: Any, X: Any) -> None:
    """Raise an error if X is to be computed on a device, which this estimator cannot."""
    where = space_of(X)
    if where is not None:
        raise DeviceError(
            f"{type(estimator).__name__} computes with NumPy alone, and X is an array of {where}: pass X and y as "
            "NumPy arrays, or use SABFGS, SABFGSCV, SAIIS, AAKNN, AABP, KernelRidgeLDL or MeanDistribution."
        )


def _real(values: Any, where: Space, *, name: str, error: type[DataError] = NotNumericError) -> Any:
    """Refuse what is no float32 or float64 array; leave the graph of gradients behind."""
    xp = where.xp
    if values.dtype not in (xp.float32, xp.float64):
        cast = f"{name}.float()" if library_name(xp) == "torch" else f"{name}.astype('float32')"
        raise error(
            f"{name} holds numbers of type {values.dtype}. Arrays on a device must be float32 or float64, and are not "
            f"converted silently: pass {cast}."
        )
    return values.detach() if getattr(values, "requires_grad", False) else values


def _check_finite(values: Any, xp: Any, *, name: str) -> None:
    """One pass: a sum in double precision is finite unless a number is not, or numbers are huge."""
    total = float(sum_in_double(values))
    if total - total == 0.0:
        return
    wrong = ~xp.isfinite(values)
    if not bool(xp.any(wrong)):
        return
    row, column = _first_cell(wrong)
    raise NonFiniteError(
        f"Input {name} contains {_kind(values[row, column])}: the first of {count_true(wrong)} such cells is in row "
        f"{row}, column {column}. Impute or drop these rows. Arrays on a device take no missing values."
    )


def _first_cell(truth: Any) -> tuple[int, int]:
    """Row and column of the first true cell of a table."""
    row = first_true(namespace(truth).any(truth, axis=1))
    return row, first_true(truth[row, ...])


def _kind(value: Any) -> str:
    return "NaN" if float(value) != float(value) else "infinity"


def follow(values: Any, where: Space | None, *, name: str, leader: str = "X") -> None:
    """Demand that an array lives where the leading one does: None stands for NumPy and all that is turned into it."""
    own = space_of(values, name=name)
    if own == where:
        return
    if where is None:
        raise DeviceError(
            f"{name} is an array of {own}, but {leader} is none: everything follows {leader}. Pass both in the same "
            "library and on the same device."
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


def check_device_distributions(
    D: Any, where: Space, *, dtype: Any = None, name: str = "y", renormalize: bool = True
) -> Any:
    """Return D as rows that sum to one, of the dtype of X; the argument itself is never changed.

    Rows whose sums differ from one by no more than the rounding of their precision stay as they are.
    """
    xp = where.xp
    D = _real(D, where, name=name)
    if D.ndim != 2:
        raise DimensionError(
            f"{name} has {D.ndim} dimension{'s' * (D.ndim != 1)} (shape {tuple(D.shape)}), but needs two: one row per "
            "instance, one column per label."
        )
    if 0 in D.shape:
        raise EmptyDataError(f"{name} is empty (shape {tuple(D.shape)}); at least one row is needed.")
    check_two_labels(D, name=name)
    sums = sum_in_double(D, axis=1)
    deviation = xp.abs(sums - 1.0)
    # NaN makes its own sum NaN, and maxima and minima hand it on; both numbers go to the host in one copy
    worst, least = (float(x) for x in _to_host(xp, xp.max(deviation), as_double(xp.min(D))))
    if not (worst <= 1e-3 and least >= 0):
        _explain_distributions(D, sums, xp, name=name)
    if renormalize and worst > ROUNDING * float(xp.finfo(D.dtype).eps):
        D = D / xp.astype(sums, D.dtype, copy=False)[:, None]
    return D if dtype is None else xp.astype(D, dtype, copy=False)


def _to_host(xp: Any, *scalars: Any) -> list[Any]:
    stacked = xp.stack(scalars)
    values = stacked.tolist() if hasattr(stacked, "tolist") else [stacked[i] for i in range(len(scalars))]
    return list(values)


def _explain_distributions(D: Any, sums: Any, xp: Any, *, name: str) -> None:
    """Find out what is wrong with D and raise."""
    wrong = ~xp.isfinite(D)
    if bool(xp.any(wrong)):
        row, column = _first_cell(wrong)
        raise NonFiniteError(
            f"Input {name} contains {_kind(D[row, column])}: row {row}, label {column}. Missing degrees are learnt "
            "from NumPy arrays only: on a device drop such rows or fill in the degree."
        )
    wrong = D < 0
    if bool(xp.any(wrong)):
        row, column = _first_cell(wrong)
        raise NegativeDegreeError(
            f"Row {row} of {name} holds the negative degree {float(D[row, column]):g} (label {column}). Degrees are at "
            "least zero."
        )
    wrong = ~(xp.abs(sums - 1.0) <= 1e-3)
    row, count = first_true(wrong), count_true(wrong)
    more = f" ({count} rows in all)" if count > 1 else ""
    if float(sums[row]) == 0:
        raise ZeroRowError(f"Row {row} of {name} is all zero{more}. A row without mass is no distribution: drop it.")
    raise RowSumError(
        f"Row {row} of {name} sums to {float(sums[row]):.6g}, not 1{more}. To divide each row by its sum: "
        f"{name} / {name}.sum(1)[:, None]."
    )


def check_device_weights(sample_weight: Any, n_samples: int, where: Space) -> Any:
    """Return the weights in double precision on the device of X, or None where every row counts the same."""
    if sample_weight is None:
        return None
    xp = where.xp
    if not is_foreign(sample_weight) and isinstance(sample_weight, int | float):
        sample_weight = xp.full((n_samples,), float(sample_weight), dtype=xp.float64, device=where.device)
    follow(sample_weight, where, name="sample_weight")
    weight = as_double(_real(sample_weight, where, name="sample_weight", error=SampleWeightError))
    check_one_weight_each(weight, n_samples)
    largest, least = _to_host(xp, xp.max(weight), xp.min(weight))
    if not (float(least) >= 0 and 0 < float(largest) < float("inf")):
        wrong = ~(xp.isfinite(weight) & (weight >= 0))
        if bool(xp.any(wrong)):
            row = first_true(wrong)
            raise SampleWeightError(
                f"sample_weight of row {row} is {float(weight[row]):g}. Weights are finite and at least zero."
            )
        raise SampleWeightError("sample_weight is zero for every row, so nothing is left to learn from.")
    return weight


def check_device_pair(D_true: Any, D_pred: Any, where: Space) -> tuple[Any, Any]:
    """Return true and predicted distributions of one device, checked and of one shape."""
    follow(D_pred, where, name="D_pred", leader="D_true")
    if D_true.ndim == D_pred.ndim == 2:
        check_same_shape(D_true, D_pred)
    return (
        check_device_distributions(D_true, where, name="D_true"),
        check_device_distributions(D_pred, where, name="D_pred"),
    )


def check_same_space(estimator: Any, X: Any, fitted: Any) -> None:
    """Demand that new rows live where a model keeps its training rows."""
    if is_foreign(X) or is_foreign(fitted):
        ours, theirs = space(fitted), space(X)
        if ours != theirs:
            name = type(estimator).__name__
            raise DeviceError(
                f"X is an array of {theirs}, but {name} was fitted on arrays of {ours} and keeps its training rows "
                "there: move X there, or fit where X is."
            )


def check_two_labels(D: Any, *, name: str) -> None:
    """Demand at least two columns, on any device."""
    if D.shape[1] < 2:
        raise SingleLabelError(
            f"{name} has {D.shape[1]} label (shape {tuple(D.shape)}). A distribution needs at least two labels: "
            "for a yes/no degree d pass the columns d and 1 - d."
        )


def check_same_shape(true: Any, pred: Any) -> None:
    """Say which of rows and labels differ between true and predicted distributions, on any device."""
    if tuple(true.shape) != tuple(pred.shape):
        what = "rows" if true.shape[0] != pred.shape[0] else "labels"
        raise LengthMismatchError(
            f"D_true has shape {tuple(true.shape)} and D_pred {tuple(pred.shape)}: the number of {what} differs. "
            "Compare each true row with the prediction for the same instance over the same labels."
        )


def check_one_weight_each(weight: Any, n_samples: int) -> None:
    """Demand one weight for each row, on any device."""
    if weight.ndim != 1:
        raise SampleWeightError(
            f"Sample weights must be 1D array or scalar: sample_weight has shape {tuple(weight.shape)}. "
            "Pass one number per row."
        )
    if weight.shape[0] != n_samples:
        raise SampleWeightError(f"sample_weight has {weight.shape[0]} entries, but there are {n_samples} rows.")
