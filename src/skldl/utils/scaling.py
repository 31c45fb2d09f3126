"""Scaling of features, for distances and inside estimators."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from skldl.utils.arrays import (
    as_double,
    as_type_of,
    is_device_array,
    least_number,
    mean_and_variance,
    namespace,
    take_rows,
    to_numpy,
)
from skldl.utils.mean_mixture import row_weights
from skldl.utils.typing import BoolArray, FloatArray

SCALINGS = ("standard", "raw", "sqrt")
"""Names of the feature scalings."""


@dataclass(frozen=True)
class Scaling:
    """A feature scaling, fitted to training rows.

    "raw" leaves the features as they are. "standard" divides by the standard deviation, but a column with two values
    by their difference, so that binary features stay 0 and 1. "sqrt" takes square roots (of negative values, which
    only new rows can hold, minus the root of the absolute value). No scaling moves the origin: distances do not depend
    on it, and sparse features stay sparse.
    """

    name: str
    divisor: FloatArray | None = None

    @classmethod
    def fit(cls, name: str, X: Any, weight: FloatArray | None) -> "Scaling":
        """Fit the scaling to training rows."""
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


@dataclass(frozen=True)
class StandardizedFeatures:
    """Rows (X − mean) / scale, of which only products are formed, so that a sparse X is never made dense."""

    X: Any
    mean: FloatArray
    scale: FloatArray

    def times(self, weights: FloatArray) -> FloatArray:
        """Return the product of the standardised rows with a matrix of weights."""
        if is_device_array(self.X):  # dense rows are standardised already
            return self.X @ weights
        scaled = weights / self.scale[:, None]
        return np.asarray(self.X @ scaled) - self.mean @ scaled

    def transposed_times(self, rows: FloatArray) -> FloatArray:
        """Return the product of the transposed standardised rows with a matrix that has as many rows."""
        product = np.asarray(self.X.T @ rows)
        product -= np.outer(self.mean, rows.sum(axis=0))
        product /= self.scale[:, None]
        return product

    def take(self, rows: Any) -> "StandardizedFeatures":
        """Return some of the rows."""
        if is_device_array(self.X):
            part = self.X[rows, ...] if isinstance(rows, slice) else take_rows(self.X, rows)
            return StandardizedFeatures(part, self.mean, self.scale)
        return StandardizedFeatures(self.X[rows], self.mean, self.scale)


def standardize(X: Any, mean: FloatArray, scale: FloatArray) -> StandardizedFeatures:
    """Standardise dense rows at once, sparse rows only in products."""
    if sparse.issparse(X):
        return StandardizedFeatures(X, mean, scale)
    if is_device_array(X):
        return StandardizedFeatures((X - as_type_of(mean, X)) / as_type_of(scale, X), mean, scale)
    return StandardizedFeatures((X - mean) / scale, np.zeros_like(mean), np.ones_like(scale))


def is_non_negative(X: Any) -> bool:
    """Whether no feature is negative."""
    return least_number(X) >= 0


def two_valued_columns(X: Any) -> npt.NDArray[np.bool_]:
    """Whether each column holds exactly two different values."""
    if not sparse.issparse(X):
        xp = namespace(X)
        low, high = xp.min(X, axis=0), xp.max(X, axis=0)
        return to_numpy((low < high) & xp.all((low == X) | (high == X), axis=0))
    low, high = (np.ravel(bound.toarray()) for bound in (X.min(axis=0), X.max(axis=0)))
    inside = (X.data != low[X.indices]) & (X.data != high[X.indices]) & (X.data != 0)
    has_third = np.bincount(X.indices[inside], minlength=X.shape[1]) > 0
    # cells that are not stored are zeros, a third value unless it is one of the two
    has_zero = np.diff(X.tocsc().indptr) < X.shape[0]
    return np.asarray((low < high) & ~has_third & ((low == 0) | (high == 0) | ~has_zero))


def column_divisors(X: Any, weight: FloatArray | None) -> FloatArray:
    """Standard deviation of each column; difference of the values of a two-valued one, and 1 for a constant one."""
    if is_device_array(X):
        xp = namespace(X)
        low, high = (to_numpy(as_double(bound(X, axis=0))) for bound in (xp.min, xp.max))
        return _divisors(mean_and_variance(X, weight)[1], low, high, two_valued_columns(X))
    w = row_weights(X.shape[0], weight)
    if sparse.issparse(X):
        X = X.astype(np.float64)
        mean = w @ X
        variance = np.maximum(w @ X.power(2) - mean**2, 0.0)  # rounding can make the difference negative
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
    # a deviation below 1e-12 of the range is rounding of the sums: such a column counts as constant
    return np.where((spread > 0) & (divisor > 1e-12 * spread), divisor, 1.0)


def standardisation(X: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and inverse standard deviation of each column, 0 for a constant one; the weights sum to one."""
    mean = weight @ X
    deviation = np.sqrt(weight @ (X - mean) ** 2)
    constant = np.ptp(X, axis=0) <= 1e-13 * np.abs(mean)  # the computed deviation of equal numbers is not quite zero
    return mean, np.divide(1.0, deviation, out=np.zeros_like(deviation), where=~constant)
