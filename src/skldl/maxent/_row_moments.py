"""Moments of rows that are read in chunks: all that the whitening and the objective need to know before the first step.

One pass gives them, for all rows or for each fold. Of dense rows the products are taken about the mean of each chunk,
and two sets of rows with weights W, means m and products S about them are put together by

    m = m_a + (W_b / W) δ,    S = S_a + S_b + (W_a W_b / W) δ δᵀ,    δ = m_b − m_a

(Chan, Golub and LeVeque 1983), so that nothing cancels. Products of sparse rows are taken about zero, as in memory;
a second pass takes them about the values that columns have in common, if rounding would leave few digits.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from skldl.chunks import Chunk, Rows
from skldl.chunks._rows import Sums
from skldl.maxent import _blocks
from skldl.maxent._constant_columns import CONSTANT_COLUMN, common_values, constant_columns
from skldl.maxent._feature_scaling import rare_columns, scaling_factors
from skldl.maxent._folds import Folds
from skldl.maxent._whitening import LARGEST_MATRIX, Factorisation
from skldl.utils.arrays import sparse_minus
from skldl.utils.scaling import two_valued_columns
from skldl.utils.simplex import entropy
from skldl.utils.typing import BoolArray, FloatArray
from skldl.utils.validation import check_feature_size


@dataclass(frozen=True)
class Moments:
    """Moments of some rows; the sums are not divided by the weight.

    Attributes
    ----------
    count : int
        Number of rows with weight.
    total : float
        Sum of their weights.
    sums : ndarray of shape (n_features,)
        Σ w x.
    measured : ndarray of shape (n_features,)
        Σ w x of rows measured from the common values of sparse columns (`skldl.maxent._constant_columns`), if these
        were needed.
    products : ndarray of shape (n_features, n_features) or (n_features,)
        Σ w (x − m)(x − m)ᵀ or its diagonal; about zero or the common values for sparse rows, and about zero for dense
        rows without intercept.
    target : ndarray of shape (n_features, n_labels)
        Σ w x dᵀ.
    mass : ndarray of shape (n_labels,)
        Σ w d.
    entropy : float
        Σ w H(d).
    n_nonzero, low, high, inside : ndarray of shape (n_features,)
        Of each column: numbers other than zero, least and largest value, and whether there are values between these.
    about_mean, is_sparse : bool
        Whether the products are about the mean; whether the rows are sparse.
    constant : float
        Variances of dense columns up to this share of the squared mean are nothing but rounding error.
    """

    count: int
    total: float
    sums: FloatArray
    measured: FloatArray
    products: FloatArray
    target: FloatArray
    mass: FloatArray
    entropy: float
    n_nonzero: FloatArray
    low: FloatArray
    high: FloatArray
    inside: FloatArray
    about_mean: bool
    is_sparse: bool
    constant: float = CONSTANT_COLUMN

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of the columns."""
        return self.sums / self.total

    def second(self, *, centred: bool) -> FloatArray:
        """The products divided by the weight, about the mean or about zero; constant columns have exactly zero."""
        second = self.products / self.total
        mean, about = (sums / self.total if centred else np.zeros_like(sums) for sums in (self.sums, self.measured))
        if centred and not self.about_mean:
            second -= np.multiply.outer(about, about) if second.ndim == 2 else about**2
        variances = np.diag(second) if second.ndim == 2 else second
        constant = self._constant(variances, mean, about)
        second[constant] = 0.0
        if second.ndim == 2:
            second[:, constant] = 0.0
        return second

    def _constant(self, variances: FloatArray, mean: FloatArray, about: FloatArray) -> BoolArray:
        """Which columns have a variance that is nothing but rounding error, as in `skldl.maxent._whitening`."""
        if not self.is_sparse:
            return np.asarray(variances <= self.constant * mean**2)
        return constant_columns(variances, mean, about, self.n_nonzero > 0, self._facts)

    def common_values(self) -> FloatArray:
        """The values from which columns of sparse rows must be measured."""
        squares = np.diag(self.products) if self.products.ndim == 2 else self.products
        return common_values(squares / self.total - self.mean**2, self.mean, self._facts)

    def _facts(self, some: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, BoolArray]:
        return self.low[some], self.high[some], self._two_valued[some]

    @property
    def _two_valued(self) -> BoolArray:
        return np.asarray((self.low < self.high) & (self.inside == 0))

    def rare_columns(self) -> BoolArray:
        """Columns with two values, or with more than nine zeros in ten."""
        return rare_columns(self._two_valued, self.n_nonzero, self.count)

    def factors(self, scaling: str) -> FloatArray:
        """What the columns are multiplied by; 0 for constant ones."""
        second = self.second(centred=True)
        variances = np.diag(second) if second.ndim == 2 else second
        return scaling_factors(np.sqrt(np.maximum(variances, 0.0)), scaling, self.rare_columns)

    def factorisation(self, factors: FloatArray | None, *, fit_intercept: bool) -> Factorisation:
        """What `skldl.maxent._whitening.factorise` gives for these rows, their columns multiplied by ``factors``."""
        second = self.second(centred=fit_intercept)
        centre = self.mean if fit_intercept else None
        if factors is not None:
            second = second * (np.multiply.outer(factors, factors) if second.ndim == 2 else factors**2)
            centre = None if centre is None else centre * factors
        if second.ndim == 2:
            return Factorisation(None, centre, gram=second)
        return Factorisation(None, centre, eigenvalues=second)


def read_moments(rows: Rows, folds: Folds, *, about_mean: bool) -> list[Moments]:
    """Moments of each fold, in one pass; in two if columns of sparse rows must be measured from their common values."""

    def read(origin: FloatArray | None) -> list[Moments]:
        sums = rows.sum(_chunk_moments, folds, about_mean, origin, merge=_merge)
        return [_moments_of(sums, fold) for fold in range(folds.n_folds)]

    moments = read(None)
    check_feature_size(max(max(-m.low.min(), m.high.max()) for m in moments))
    if not (about_mean and moments[0].is_sparse):
        return moments
    origin = _origin(moments)
    return read(origin) if origin.any() else moments


def _origin(of_folds: list[Moments]) -> FloatArray:
    """The common values of all rows, and where these have none, those of the rows without one of the folds."""
    small = [replace(m, products=np.diag(m.products) if m.products.ndim == 2 else m.products) for m in of_folds]
    origin = merged(small).common_values()
    if len(small) > 1:
        for fold in range(len(small)):
            others = merged(small[:fold] + small[fold + 1 :]).common_values()
            origin = np.where(origin == 0, others, origin)
    return origin


def merged(moments: list[Moments]) -> Moments:
    """Moments of several sets of rows together, in their order."""
    total = _as_sums(moments[0])
    for part in moments[1:]:
        total = _merge(total, _as_sums(part))
    return _moments_of(total, 0)


def _chunk_moments(chunk: Chunk, folds: Folds, about_mean: bool, origin: FloatArray | None) -> Sums:
    """Moments of one chunk, one row of each array for each fold; products of sparse rows about the origin."""
    weight = chunk.weights()
    parts = []
    for some in folds.segments(chunk):
        X, D, w = some.X, np.asarray(some.D), weight[some.rows]
        parts.append(_of_rows(X, D, w, about_mean and not sparse.issparse(X), origin))
    flags = np.array([about_mean and not sparse.issparse(chunk.X), sparse.issparse(chunk.X)])
    return (*(np.stack(column) for column in zip(*parts, strict=True)), flags)


def _of_rows(X: Any, D: FloatArray, weight: FloatArray, about_mean: bool, origin: FloatArray | None) -> tuple[Any, ...]:
    n_features = X.shape[1]
    if not X.shape[0]:
        zeros, shape = np.zeros(n_features), (n_features, n_features) if n_features <= LARGEST_MATRIX else (n_features,)
        nothing = np.zeros((n_features, D.shape[1])), np.zeros(D.shape[1]), 0.0
        ends = np.full(n_features, np.inf), np.full(n_features, -np.inf)
        return 0, 0.0, zeros, zeros, np.zeros(shape), *nothing, zeros, *ends, zeros
    if sparse.issparse(X):
        n_nonzero = np.bincount(X.indices[X.data != 0], minlength=n_features).astype(np.float64)
        low, high = (np.ravel(bound.toarray()).astype(np.float64) for bound in (X.min(axis=0), X.max(axis=0)))
    else:
        n_nonzero = np.count_nonzero(X, axis=0).astype(np.float64)
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    total = float(weight.sum())
    sums = np.asarray(weight @ X, dtype=np.float64)
    mean = sums / total if about_mean else np.zeros(n_features)
    measured = X if origin is None else sparse_minus(X, origin)
    products = (_blocks.gram if n_features <= LARGEST_MATRIX else _blocks.variances)(measured, weight, mean)
    weighted = D * weight[:, None]
    X64 = X.astype(np.float64, copy=False) if sparse.issparse(X) else X
    inside = ((low < high) & ~two_valued_columns(X)).astype(np.float64)
    of_labels = np.asarray(X64.T @ weighted), weighted.sum(axis=0), float(weight @ entropy(D))
    about = sums if origin is None else np.asarray(weight @ measured)
    return X.shape[0], total, sums, about, products, *of_labels, n_nonzero, low, high, inside


def _merge(total: Sums, part: Sums) -> Sums:
    """Put two sets of rows together, for each fold."""
    count, weight, sums, measured, products, target, mass, entropies, *columns, flags = total
    count_2, weight_2, sums_2, measured_2, products_2, target_2, mass_2, entropies_2, *columns_2, _ = part
    (n_nonzero, low, high, inside), (n_nonzero_2, low_2, high_2, inside_2) = columns, columns_2
    there, there_2 = (weight > 0)[:, None], (weight_2 > 0)[:, None]
    if flags[0]:  # about the mean
        joint = weight * weight_2 / np.maximum(weight + weight_2, np.finfo(np.float64).tiny)
        mean = np.divide(sums, weight[:, None], out=np.zeros_like(sums), where=there)
        mean_2 = np.divide(sums_2, weight_2[:, None], out=np.zeros_like(sums), where=there_2)
        delta = (mean_2 - mean) * np.sqrt(joint)[:, None]
        products += delta[:, :, None] * delta[:, None, :] if products.ndim == 3 else delta**2
    products += products_2
    least, most = np.minimum(low, low_2), np.maximum(high, high_2)
    between = (inside > 0) | (inside_2 > 0)
    for end, known in ((low, there), (high, there), (low_2, there_2), (high_2, there_2)):
        between |= known & (end != least) & (end != most)
    added = (target + target_2, mass + mass_2, entropies + entropies_2, n_nonzero + n_nonzero_2)
    ends = (least, most, between.astype(np.float64))
    return count + count_2, weight + weight_2, sums + sums_2, measured + measured_2, products, *added, *ends, flags


def _moments_of(sums: Sums, fold: int) -> Moments:
    count, total, first, measured, products, target, mass, entropies, *columns = (part[fold] for part in sums[:-1])
    n_nonzero, low, high, inside = columns
    return Moments(
        count=int(count),
        total=float(total),
        sums=first,
        measured=measured,
        products=products,
        target=target,
        mass=mass,
        entropy=float(entropies),
        n_nonzero=n_nonzero,
        low=low,
        high=high,
        inside=inside,
        about_mean=bool(sums[-1][0]),
        is_sparse=bool(sums[-1][1]),
    )


def _as_sums(moments: Moments) -> Sums:
    m = moments
    values = (m.count, m.total, m.sums, m.measured, m.products, m.target, m.mass, m.entropy)
    columns = (m.n_nonzero, m.low, m.high, m.inside)
    return (*(np.array(value)[None] for value in (*values, *columns)), np.array([m.about_mean, m.is_sparse]))
