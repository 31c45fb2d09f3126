"""Common code of estimators that choose settings on held-out rows: groups, feature scaling, the mean share.

A prediction P is mixed with the mean distribution of the training rows, (1 − s)P + s·mean. The mean share s > 0 makes
every degree positive, so that the Kullback-Leibler divergence is finite. When a row (or its group) is left out, the
mean is that of the other rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from skldl.exceptions import DataError, LengthMismatchError
from skldl.utils.arrays import (
    as_double,
    as_type_of,
    is_device_array,
    least_number,
    mean_and_variance,
    namespace,
    row_blocks,
    to_numpy,
    weighted_mean,
)
from skldl.utils.typing import AnyArray, BoolArray, FloatArray, IntArray

MEAN_SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
"""Shares of the mean distribution to choose from."""
SCREENING_SHARES = (0.001, 0.01, 0.05, 0.2)
"""The few that first comparisons try."""
SMALLEST_DEGREE = 1e-12
"""Floor of the mean distribution, for labels that no training row has."""
BLOCK_CELLS = 2**17
"""Tables of predictions are scored in blocks of about this many numbers, small enough for the cache."""
SCALINGS = ("standard", "raw", "sqrt")
"""Names of the feature scalings."""


def row_weights(n_samples: int, sample_weight: FloatArray | None) -> FloatArray:
    """Weights that sum to one."""
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples)
    scaled = sample_weight / sample_weight.max()  # a sum of huge weights must not overflow
    return np.asarray(scaled / scaled.sum())


def mean_distribution(D: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Weighted mean of the rows, with every degree at least 1e-12."""
    return _floored(weighted_mean(D, weight)[None])[0]


def means_without(D: FloatArray, weight: FloatArray | None, codes: IntArray | None) -> FloatArray:
    """For each row the mean distribution of the rows that remain when it, or its whole group, is left out.

    Where all rows are one row or one group, nothing remains: then it is their own mean.
    """
    if is_device_array(D):  # sums over groups are NumPy's; the table is small beside the matrices of those who ask
        host = means_without(to_numpy(as_double(D)), None if weight is None else to_numpy(weight), codes)
        return as_type_of(host, as_double(D))
    w = np.ones(len(D)) if weight is None else weight
    own = np.arange(len(D)) if codes is None else codes
    weighted = w[:, None] * D
    left_out_weight = np.bincount(own, w)
    left_out = np.column_stack([np.bincount(own, column) for column in weighted.T])
    total_weight = w.sum()
    rest = np.maximum(weighted.sum(axis=0) - left_out, 0.0)
    rest_weight = total_weight - left_out_weight
    heaviest = int(left_out_weight.argmax())
    if left_out_weight[heaviest] > total_weight / 2:  # a difference would lose precision: add them up
        others = own != heaviest
        if not others.any():  # nothing remains
            return _floored(left_out / left_out_weight[:, None])[own]
        rest[heaviest], rest_weight[heaviest] = weighted[others].sum(axis=0), w[others].sum()
    return _floored(rest / rest_weight[:, None])[own]


def _floored(means: FloatArray) -> FloatArray:
    means = np.maximum(means, SMALLEST_DEGREE)
    return np.asarray(means / means.sum(axis=1, keepdims=True))


def mix(P: FloatArray, means: FloatArray, share: float) -> FloatArray:
    """Give the mean distribution its share: (1 − share)·P + share·means."""
    return (1 - share) * P + share * means


def best_share(
    D: FloatArray, P: FloatArray, means: FloatArray, weight: FloatArray | None, shares: Sequence[float]
) -> tuple[float, float]:
    """Return the least mean Kullback-Leibler divergence from D to the mixtures, and the share that reaches it."""
    divergences = share_divergences(D, P[None], means, weight, shares)[0]
    place = first_best(divergences)
    return float(divergences[place]), float(shares[place])


def share_divergences(
    D: FloatArray, tables: FloatArray, means: FloatArray, weight: FloatArray | None, shares: Sequence[float]
) -> FloatArray:
    """Mean Kullback-Leibler divergence of each table of predictions (n_tables × n × c) mixed with each share."""
    if is_device_array(D):
        return _share_divergences_on_device(D, tables, means, weight, shares)
    row_weight = row_weights(len(D), weight)
    weighted = row_weight[:, None] * D
    constant = -float(row_weight @ special.entr(D).sum(axis=1))
    divergences = np.empty((len(tables), len(shares)))
    step = max(1, BLOCK_CELLS // D.size)
    for start in range(0, len(tables), step):
        block = slice(start, start + step)
        for column, share in enumerate(shares):
            mixed = mix(tables[block], means, share)
            if share > 0:
                score = np.einsum("tnc,nc->t", np.log(mixed, out=mixed), weighted)
            else:  # degrees of zero can remain: infinitely bad where the label has mass, nothing where it has not
                score = special.xlogy(weighted, mixed).sum(axis=(1, 2))
            divergences[block, column] = constant - score
    return divergences


def _share_divergences_on_device(D: Any, tables: Any, means: Any, weight: Any, shares: Sequence[float]) -> FloatArray:
    xp = namespace(D)
    D = as_double(D)
    weighted = D / D.shape[0] if weight is None else (weight / xp.sum(weight))[:, None] * D
    constant = xp.sum(xp.where(D > 0, weighted * xp.log(xp.where(D > 0, D, 1.0)), 0.0))
    found = []
    for block in row_blocks(tables.shape[0], D.shape[0] * D.shape[1]):
        columns = []
        for share in shares:
            logarithm = xp.log(mix(tables[block, ...], means, float(share)))
            terms = xp.where(weighted > 0, weighted * logarithm, 0.0)
            columns.append(constant - xp.sum(xp.sum(terms, axis=2), axis=1))
        found.append(to_numpy(xp.stack(columns, axis=1)))
    return np.concatenate(found)


def first_best(divergences: npt.ArrayLike) -> int:
    """Place of the first value that equals the least up to rounding, so that ties do not depend on the last bit."""
    values = np.asarray(divergences, dtype=np.float64)
    least = values.min()
    return int(np.argmax(values <= least + 1e-9 * abs(least) + 1e-15))


@dataclass(frozen=True)
class Scaling:
    """A feature scaling, fitted to training rows.

    "raw" leaves the features as they are. "standard" divides by the standard deviation, but a column with two values
    by their difference, so that binary features stay 0 and 1. "sqrt" takes square roots (of negative values, which
    only new rows can hold, minus the root of the absolute value). No scaling moves the origin: distances do not see
    it and sparse features stay sparse.
    """

    name: str
    divisor: FloatArray | None = None

    @classmethod
    def fit(cls, name: str, X: Any, weight: FloatArray | None) -> "Scaling":
        """Learn the divisors that the scaling needs from the training rows."""
        return cls(name, column_divisors(X, weight) if name == "standard" else None)

    def apply(self, X: Any, *, copy: bool = False) -> Any:
        """Scale rows, in double precision; with ``copy`` the result never shares memory with X."""
        copy = copy and self.name == "raw"  # the others make a new array
        if sparse.issparse(X):
            X = X.astype(np.float64, copy=copy)
            if self.divisor is not None:
                return X.multiply(1 / self.divisor).tocsr()
            return X.sign().multiply(abs(X).sqrt()).tocsr() if self.name == "sqrt" else X
        X, xp = as_double(X, copy=copy), namespace(X)
        if self.divisor is not None:
            return X / as_type_of(self.divisor, X)
        return xp.sign(X) * xp.sqrt(xp.abs(X)) if self.name == "sqrt" else X


def is_non_negative(X: Any) -> bool:
    """Say whether no feature is negative."""
    return least_number(X) >= 0


def two_valued_columns(X: Any) -> npt.NDArray[np.bool_]:
    """Say for each column whether it holds exactly two different values."""
    if not sparse.issparse(X):
        xp = namespace(X)
        low, high = xp.min(X, axis=0), xp.max(X, axis=0)
        return to_numpy((low < high) & xp.all((low == X) | (high == X), axis=0))
    low, high = (np.ravel(bound.toarray()) for bound in (X.min(axis=0), X.max(axis=0)))
    inside = (X.data != low[X.indices]) & (X.data != high[X.indices]) & (X.data != 0)
    odd = np.bincount(X.indices[inside], minlength=X.shape[1]) > 0
    return np.asarray((low < high) & ~odd & ((low == 0) | (high == 0) | (np.diff(X.tocsc().indptr) == X.shape[0])))


def column_divisors(X: Any, weight: FloatArray | None) -> FloatArray:
    """Standard deviation of each column, difference of the values of a two-valued one, and 1 for a constant one."""
    if is_device_array(X):
        xp = namespace(X)
        low, high = (to_numpy(as_double(bound(X, axis=0))) for bound in (xp.min, xp.max))
        return _divisors(mean_and_variance(X, weight)[1], low, high, two_valued_columns(X))
    w = row_weights(X.shape[0], weight)
    if sparse.issparse(X):
        X = X.astype(np.float64)
        mean = w @ X
        variance = np.maximum(w @ X.power(2) - mean**2, 0.0)
        low, high = (np.ravel(bound.toarray()) for bound in (X.min(axis=0), X.max(axis=0)))
    else:
        mean = w @ X.astype(np.float64)
        variance = w @ (X - mean) ** 2
        low, high = X.min(axis=0), X.max(axis=0)
    return _divisors(variance, low, high, two_valued_columns(X))


def _divisors(variance: FloatArray, low: FloatArray, high: FloatArray, two_valued: BoolArray) -> FloatArray:
    divisor = np.sqrt(variance)
    spread = (high - low).astype(np.float64)
    divisor = np.where(two_valued, spread, divisor)
    return np.where((spread > 0) & (divisor > 1e-12 * spread), divisor, 1.0)


def standardisation(X: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of each column and one over its standard deviation, zero for a constant one; the weights sum to one."""
    mean = weight @ X
    deviation = np.sqrt(weight @ (X - mean) ** 2)
    constant = np.ptp(X, axis=0) <= 1e-13 * np.abs(mean)  # the deviation of many equal numbers is not quite zero
    return mean, np.divide(1.0, deviation, out=np.zeros_like(deviation), where=~constant)


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
