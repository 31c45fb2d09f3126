"""Moments of rows, from which scaling, whitening and the linear part of the objective are computed.

One pass computes them, for all rows or for each fold. Products of dense columns are taken about the mean of each chunk,
and two sets of rows with weights W, means m and products S about them are merged by

    m = m_a + (W_b / W) δ,    S = S_a + S_b + (W_a W_b / W) δ δᵀ,    δ = m_b − m_a

(Chan, Golub and LeVeque 1983), so that no digits cancel. Centred sparse rows would not be sparse: their products are
taken about zero, and a variance is a difference of two sums, Σ w x² / W − m², with a rounding error of about 1e-15 of
the squared mean. In two kinds of sparse columns few digits are left:

- Columns of two values, such as a flag that is 0 in a single row of tiny weight. A second pass subtracts the value that
  is nearer to the mean: the column then has hardly any entries, and its variance is the contribution of the other
  value.
- All others, such as 10⁷ + noise, which are rejected if the digits are too few.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from skldl.chunks import Chunk, Rows
from skldl.chunks._rows import Sums
from skldl.maxent._blocks import DEVICE_CELLS, GRAM_CELLS, gram, is_single, row_products, row_sum, variances
from skldl.maxent._folds import ALL_TOGETHER, Folds
from skldl.utils.arrays import (
    SPARSE_DIGITS,
    as_double,
    as_type_of,
    is_device_array,
    namespace,
    row_blocks,
    sparse_minus,
    sum_in_double,
)
from skldl.utils.missing import has_gaps
from skldl.utils.simplex import entropy
from skldl.utils.typing import BoolArray, FloatArray
from skldl.utils.validation import check_feature_size

MAX_MATRIX = 5000
"""Columns up to which their products are computed, a matrix of 200 MB; of more columns only the variances."""
SMALL_MATRIX = 300
"""Columns up to which the products of sparse columns are always computed: 0.7 MB, decomposed in about 15 ms."""
CONSTANT_COLUMN = {4: 1e-12, 8: 1e-26}
"""Variances up to this fraction of the squared mean are rounding error, by bytes of a number: the relative error of the
mean is about 1e-7 in single and 1e-16 in double precision, and some of it accumulates over the rows."""
NEARLY_CONSTANT = 1e-4
"""Fraction of the squared mean up to which one of the values of a sparse column of two is subtracted: a larger variance
keeps at least eleven digits in a difference of sums."""
RARE = 0.1
"""Columns with a smaller fraction of numbers other than zero are rare; chosen by hand."""


class Moments(NamedTuple):
    """Moments of some rows; sums are not divided by the weight.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    total : float
        Sum of their weights.
    sums : ndarray of shape (n_features,)
        Σ w x.
    measured : ndarray of shape (n_features,)
        Σ w (x − origin).
    products : ndarray of shape (n_features, n_features) or (n_features,)
        Σ w (x − m)(x − m)ᵀ or its diagonal, m the mean if ``about_mean``, else ``origin``; zero if not needed.
    target : ndarray of shape (n_features, n_labels)
        Σ w x dᵀ; missing degrees count as zero, here and below.
    mass : ndarray of shape (n_labels,)
        Σ w d.
    entropy : float
        Σ w H(d).
    low, high : ndarray of shape (n_features,)
        Minimum and maximum of each column; NaN if they were not needed.
    n_nonzero, inside : ndarray of shape (n_features,)
        Number of nonzero values of each column, and whether some lie between minimum and maximum; NaN if they were not
        needed.
    origin : ndarray of shape (n_features,)
        The values that were subtracted from the columns of sparse rows.
    about_mean, is_sparse : bool
        Whether the products are about the mean; whether the rows are sparse.
    constant : float
        Variances of dense columns up to this fraction of the squared mean are rounding error.
    """

    n_rows: int
    total: float
    sums: FloatArray
    measured: FloatArray
    products: FloatArray
    target: FloatArray
    mass: FloatArray
    entropy: float
    low: FloatArray
    high: FloatArray
    n_nonzero: FloatArray
    inside: FloatArray
    origin: FloatArray
    about_mean: bool
    is_sparse: bool
    constant: float

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of the columns."""
        return self.sums / self.total

    @property
    def largest(self) -> FloatArray | None:
        """Largest absolute value of each column, or None if it is not known."""
        return None if np.isnan(self.high).any() else np.maximum(np.abs(self.low), np.abs(self.high))

    def second(self, *, centred: bool) -> FloatArray:
        """The products divided by the weight, about the mean or about zero; constant columns have exactly zero."""
        second = self.products / self.total
        mean, about = (sums / self.total if centred else np.zeros_like(sums) for sums in (self.sums, self.measured))
        if centred and not self.about_mean:
            second -= np.multiply.outer(about, about) if second.ndim == 2 else about**2
        constant = self._constant(_diagonal(second), mean, about)
        second[constant] = 0.0
        if second.ndim == 2:
            second[:, constant] = 0.0
        return second

    def _constant(self, variances: FloatArray, mean: FloatArray, about: FloatArray) -> BoolArray:
        """Which columns have a variance that is rounding error only.

        Raises if a sparse column is not constant although its variance has too few digits: it would be dropped, and its
        products with other columns have lost their digits, too.
        """
        constant = np.asarray(variances <= self.constant * mean**2)
        if not self.is_sparse:
            return constant
        lost = variances <= SPARSE_DIGITS * about**2
        if not about.any():  # nothing was subtracted, so no digit is lost
            return np.asarray(lost | constant)
        size = np.maximum(np.abs(self.low), np.abs(self.high))
        # minimum and maximum, or the mean and zero, that agree in 13 digits are equal up to rounding
        rejected = lost & (self.high - self.low > 1e-13 * size) & (np.abs(about) > 1e-13 * size)
        for column in np.flatnonzero(rejected)[:1]:
            raise ValueError(
                f"Column {column} of the sparse X has mean {mean[column]:.4g} and values from {self.low[column]:.8g} "
                f"to {self.high[column]:.8g}: its (weighted) variance is lost in rounding, and the column would be "
                "dropped. Centre or scale it, or pass a dense X."
            )
        return np.asarray(lost | constant)

    def common_values(self) -> FloatArray:
        """For nearly constant columns with two values the value that is nearer to the mean; otherwise 0."""
        mean = self.mean
        variances = _diagonal(self.products) / self.total - mean**2
        nearly = (variances <= NEARLY_CONSTANT * mean**2) & (mean != 0) & self._two_valued
        nearer = np.where(np.abs(mean - self.low) < np.abs(mean - self.high), self.low, self.high)
        return np.where(nearly, nearer, 0.0)

    @property
    def _two_valued(self) -> BoolArray:
        return np.asarray((self.low < self.high) & (self.inside == 0))

    def rare_columns(self) -> BoolArray:
        """Columns with two values, or with more than nine zeros in ten."""
        return np.asarray(self._two_valued | (self.n_nonzero < RARE * self.n_rows))

    def factors(self, scaling: str) -> FloatArray:
        """Numbers by which `skldl.SABFGSCV` multiplies the columns; 0 for constant ones."""
        # a variance of sparse rows is a difference, which rounding can make negative
        deviations = np.sqrt(np.maximum(_diagonal(self.second(centred=True)), 0.0))
        factors = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        if scaling == "standard":
            return factors
        as_they_are = np.ones(len(factors), dtype=bool) if scaling == "raw" else self.rare_columns()
        return np.where(as_they_are & (factors > 0), 1.0, factors)


def fits_matrix(rows: Rows, n_columns: int) -> bool:
    """Whether a matrix of n_columns × n_columns numbers costs little beside the rows.

    Always true for dense rows up to `MAX_MATRIX`. For sparse rows the matrix must be at most a quarter as large as the
    number of stored values. Its decomposition takes about n_columns³ · 1e-10 s and some copies, an evaluation about
    5e-9 s for each stored value and label, and the matrix saves some tens of evaluations: so whatever is small enough
    in memory also pays in time.
    """
    if n_columns <= SMALL_MATRIX or n_columns > MAX_MATRIX or not rows.layout.is_sparse:
        return n_columns <= MAX_MATRIX
    (n_stored,) = rows.sum(_n_stored, labels=False)
    return 4 * n_columns**2 <= int(n_stored)


def _n_stored(chunk: Chunk) -> Sums:
    return (chunk.X.nnz,)


def products_of(rows: Rows) -> str:
    """The products of the columns that a quasi-Newton search needs: the matrix if it fits, else the variances."""
    return "matrix" if fits_matrix(rows, rows.n_features) else "variances"


def few_rows(n_rows: int | None, rows: Rows) -> bool:
    """Whether n_rows of the rows are fitted in the space that they span, in memory, as they are fewer than features."""
    return n_rows is not None and n_rows < rows.n_features and fits_matrix(rows, n_rows)


@dataclass(frozen=True)
class Plan:
    """The moments that a pass computes.

    Attributes
    ----------
    centred : bool
        Whether products are needed about the mean.
    products : {"matrix", "variances", "none"}
        Products of all columns, their diagonal, or none.
    facts : bool
        Whether `Moments.rare_columns` will be needed.
    total : float or None
        Sum of the weights, if it is known exactly: the sum of normalised weights differs from 1 by rounding.
    n_threads : int
        Number of blocks of dense rows that are processed at once; it changes no digit.
    """

    centred: bool
    products: str = "matrix"
    facts: bool = False
    total: float | None = None
    n_threads: int = 1


def read_moments(rows: Rows, folds: Folds = ALL_TOGETHER, **plan: Any) -> list[Moments]:
    """Moments of each fold in one pass, or in two if common values must be subtracted from columns of sparse rows.

    Parameters
    ----------
    rows : Rows
        The rows.
    folds : Folds, default: all together
        Their folds.
    **plan
        The attributes of `Plan`.
    """
    needed = Plan(**plan)
    if needed.products == "matrix" and rows.n_features > MAX_MATRIX:
        needed = replace(needed, products="variances")
    moments = _split(rows.sum(_moments, folds, needed, None, merge=_merge))
    largest = [part.largest for part in moments if part.n_rows and rows.n_features]
    known = [ends for ends in largest if ends is not None]
    if known:  # whether all squares vanish is known of all chunks together only
        check_feature_size(float(np.max(known)))
    if needed.centred and moments[0].is_sparse:
        origin = _origin(moments)
        if origin.any():
            return _split(rows.sum(_moments, folds, needed, origin, merge=_merge))
    return moments


def merged(moments: list[Moments]) -> Moments:
    """Moments of several sets of rows together, merged in this order."""
    total = moments[0]._replace(products=moments[0].products.copy())
    for part in moments[1:]:
        total = _joined(total, part)
    return total


def _origin(of_folds: list[Moments]) -> FloatArray:
    """The common values of all rows; for columns without one, that of the rows without one of the folds."""
    small = [m._replace(products=_diagonal(m.products)) for m in of_folds if m.n_rows]
    origin = merged(small).common_values()
    if len(small) > 1:
        for fold in range(len(small)):
            others = merged(small[:fold] + small[fold + 1 :]).common_values()
            origin = np.where(origin == 0, others, origin)
    return origin


def _diagonal(second: FloatArray) -> FloatArray:
    return np.diag(second) if second.ndim == 2 else second


def _moments(chunk: Chunk, folds: Folds, plan: Plan, origin: FloatArray | None) -> Sums:
    """Moments of one chunk: those of each fold, one after another."""
    segments = folds.segments(chunk)
    return tuple(value for some in segments for value in _of_rows(some.X, some.D, some.weight, plan, origin))


def _split(sums: Sums) -> list[Moments]:
    """Moments of each fold from the result of a pass."""
    n_fields = len(Moments._fields)
    return [Moments(*sums[first : first + n_fields]) for first in range(0, len(sums), n_fields)]


def _merge(total: Sums, part: Sums) -> Sums:
    pairs = zip(_split(total), _split(part), strict=True)
    return tuple(value for first, second in pairs for value in _joined(first, second))


def _joined(first: Moments, second: Moments) -> Moments:
    """Moments of two sets of rows together; the products of the first are overwritten."""
    if not first.n_rows or not second.n_rows:
        return second if not first.n_rows else first
    a, b = first, second
    products = a.products
    if a.about_mean:
        # the root goes into delta, so that the outer product is exactly symmetric
        delta = (b.mean - a.mean) * np.sqrt(a.total * b.total / (a.total + b.total))
        products += np.multiply.outer(delta, delta) if products.ndim == 2 else delta**2
    products += b.products
    low, high = np.minimum(a.low, b.low), np.maximum(a.high, b.high)
    inside = a.inside + b.inside
    for end in (a.low, a.high, b.low, b.high):  # a minimum or maximum of one part can lie between those of both
        inside += (end != low) & (end != high)
    return Moments(
        a.n_rows + b.n_rows,
        a.total + b.total,
        a.sums + b.sums,
        a.measured + b.measured,
        products,
        a.target + b.target,
        a.mass + b.mass,
        a.entropy + b.entropy,
        low,
        high,
        a.n_nonzero + b.n_nonzero,
        inside,
        *a[12:],
    )


def _of_rows(X: Any, D: Any, weight: Any, plan: Plan, origin: FloatArray | None) -> Moments:
    """Moments of some rows, which may be none."""
    n_features, is_sparse, is_device = int(X.shape[1]), sparse.issparse(X), is_device_array(X)
    about_mean = plan.centred and not is_sparse
    zeros: FloatArray = np.zeros(n_features)
    unknown = np.full(n_features, np.nan)
    shared: tuple[Any, ...] = (zeros if origin is None else origin, about_mean, is_sparse)
    shared += (CONSTANT_COLUMN[4 if is_single(X) else 8],)
    if not X.shape[0]:
        products = np.zeros((n_features, n_features)) if plan.products == "matrix" else zeros.copy()
        of_labels = np.zeros((n_features, D.shape[1])), np.zeros(D.shape[1]), 0.0
        return Moments(0, 0.0, zeros, zeros, products, *of_labels, unknown, unknown, zeros, zeros, *shared)
    total = plan.total
    if total is None:
        total = float(X.shape[0]) if weight is None else float(namespace(weight).sum(weight))
    sums = row_sum(X, weight)
    rows = X if origin is None else sparse_minus(X, origin)
    mean = (as_type_of(sums / total, X) if is_device else sums / total) if about_mean else None
    products = zeros.copy()
    if plan.products != "none":
        of_matrix = plan.products == "matrix"
        products = gram(rows, weight, mean, plan.n_threads) if of_matrix else variances(rows, weight, mean)
    needs_facts = plan.facts or (is_sparse and plan.centred)
    # of dense rows with many evaluations ahead the bound of all scores saves more than it costs
    needs_ends = needs_facts or (not is_sparse and plan.products == "matrix")
    low, high = _ends(X) if needs_ends else (unknown, unknown)
    n_nonzero, inside = _facts(X, low, high) if needs_facts else (unknown, unknown)
    seen = np.nan_to_num(D) if not is_device and has_gaps(D) else D
    of_rows = entropy(seen)
    return Moments(
        int(X.shape[0]),
        total,
        sums,
        sums if origin is None else row_sum(rows, weight),
        products,
        row_products(X, seen, weight),
        row_sum(seen, weight),
        sum_in_double(of_rows) if weight is None else as_double(of_rows) @ weight,
        low,
        high,
        n_nonzero,
        inside,
        *shared,
    )


def _ends(X: Any) -> tuple[Any, Any]:
    """Minimum and maximum of each column, in double precision."""
    if sparse.issparse(X):
        # not X.min: it copies X to columns
        has_zeros = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]
        low, high = np.where(has_zeros, 0.0, np.inf), np.where(has_zeros, 0.0, -np.inf)
        np.minimum.at(low, X.indices, X.data)
        np.maximum.at(high, X.indices, X.data)
        return low, high
    xp = namespace(X)
    return as_double(xp.min(X, axis=0)), as_double(xp.max(X, axis=0))


def _facts(X: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Number of nonzero values, and of values between minimum and maximum, of each column."""
    n_features = int(X.shape[1])
    if sparse.issparse(X):
        columns, values = X.indices, X.data
        if not values.all():  # zeros that are stored
            stored = values != 0
            columns, values = columns[stored], values[stored]
        n_nonzero = np.bincount(columns, minlength=n_features).astype(np.float64)
        between = values != low[columns]
        between &= values != high[columns]
        inside = np.bincount(columns[between], minlength=n_features).astype(np.float64)
        # zeros that are not stored lie between minimum and maximum, too
        return n_nonzero, inside + ((low < 0) & (high > 0) & (n_nonzero < X.shape[0]))
    xp = namespace(X)
    ends = as_type_of(low, X), as_type_of(high, X)
    n_nonzero = inside = xp.zeros_like(low)
    for some in row_blocks(X.shape[0], n_features, DEVICE_CELLS if is_device_array(X) else GRAM_CELLS):
        rows = X[some, ...]
        n_nonzero = n_nonzero + sum_in_double(as_double(rows != 0), axis=0)
        inside = inside + sum_in_double(as_double((rows != ends[0]) & (rows != ends[1])), axis=0)
    return n_nonzero, inside
