"""`PTBayes`: a Gaussian for each label, and Bayes' rule (problem transformation with the Bayes classifier).

Each row xᵢ counts for label yⱼ with the mass mᵢⱼ = wᵢ dᵢⱼ, or with the number of times that the pair is drawn. Then

    Nⱼ = Σᵢ mᵢⱼ,   πⱼ = Nⱼ / Σₖ Nₖ,   μⱼ = Σᵢ mᵢⱼ xᵢ / Nⱼ,   Σⱼ = Σᵢ mᵢⱼ (xᵢ − μⱼ)(xᵢ − μⱼ)ᵀ / Nⱼ,

and the predicted degree is πⱼ N(x; μⱼ, Σⱼ), normalised over the labels, all in log space. The means of all labels are
one product MᵀX. With one pooled covariance the square of x is the same for every label, so the model is a softmax of
linear scores.

All sums are over rows, so that two passes over rows in chunks are enough; rows in memory are one chunk.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from skldl.base import BaseLDL
from skldl.chunks import Chunk, Rows
from skldl.chunks._arrays import CheckedRows
from skldl.chunks._rows import Sums, add
from skldl.exceptions import DataError, Parameter
from skldl.transformation._origin import measured_from, movable_columns
from skldl.transformation._resampling import RandomState, multinomial_counts
from skldl.utils.arrays import SPARSE_DIGITS, row_blocks
from skldl.utils.parameters import FRACTION, NONE, NOT_NEGATIVE, RANDOM_STATE, one_of
from skldl.utils.simplex import softmax
from skldl.utils.typing import BoolArray, FloatArray
from skldl.utils.validation import check_feature_size

BLOCK_CELLS = 2**22
"""Temporary arrays in ``predict`` hold at most about this many numbers (32 MiB)."""
MAX_ZERO_FRACTION = 1e-4
"""A sparse column of one other value is measured from that value if at most this fraction of the mass is on its zeros.
With a larger fraction its variance, computed about 0, loses at most four of sixteen digits. Chosen by hand."""
MIN_REG = 1e-9
"""Ridge that is added even with ``reg=0``, so that a Cholesky factor exists: far above rounding errors. Chosen by
hand."""


@dataclass(frozen=True)
class Moments:
    """Statistics of the labels with mass, with features measured from ``center``."""

    labels: npt.NDArray[np.intp]
    center: FloatArray
    log_priors: FloatArray
    means: FloatArray
    covariances: FloatArray | None
    """Of each label: (c, q, q), variances (c, q), or None if only the pooled one is needed."""
    pooled: FloatArray
    """Mean of the labels' covariances, weighted by the priors: (q, q), or variances (q,)."""
    largest_variance: float


def _moments(rows: Rows, covariance: str) -> Moments:
    """Compute the moments in two passes: masses and mean, then products of features measured from near the mean."""
    mass, sums, n_movable, n_rows, low, high = rows.sum(_masses, merge=_merge_masses)
    labels, total = np.flatnonzero(mass), mass.sum()
    mass, mean = mass[labels], sums / total
    center = _center_of(mean, n_movable == n_rows, low, high)
    means, mean_squares, products, largest_square = rows.sum(
        _sums_about, center, labels, mass, covariance, merge=_merge_sums
    )
    check_feature_size(max(float(np.abs(mean).max()), np.sqrt(largest_square)))
    # differences of squares measured from near the mean, so that few digits cancel
    variances = mean_squares - (mean - center) ** 2
    _check_digits(variances, mean, center)
    priors, covariances = mass / total, None
    if covariance == "diag":
        covariances = np.maximum(products - means**2, 0.0)  # a variance of 0 may be negative by rounding
        pooled = priors @ covariances
    elif covariance == "full":
        covariances = np.stack([product - np.outer(mu, mu) for product, mu in zip(products, means, strict=True)])
        pooled = np.tensordot(priors, covariances, axes=1)
    else:
        pooled = products - (means.T * priors) @ means  # within labels: all products less those of the means
    largest = float(variances.max())
    # up to 45 machine epsilons of the squares are rounding: no feature varies, and any scale of the ridge will do
    largest = largest if largest > 1e-14 * largest_square else 1.0
    return Moments(labels, center, np.log(priors), means, covariances, pooled, largest)


def _masses(chunk: Chunk) -> Sums:
    """Sums over a chunk for the masses and means, and for the choice of the origin of each column.

    They are the mass of each label, the rows weighted by their mass, the number of rows whose column can be shifted,
    the number of rows, and the smallest and largest entry other than 0 in each column of sparse rows.
    """
    X, mass = chunk.X, _mass_of(chunk)
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    if sparse.issparse(X):
        stored = X.data != 0
        columns, entries = X.indices[stored], X.data[stored].astype(np.float64)  # another type makes `at` much slower
        np.minimum.at(low, columns, entries)
        np.maximum.at(high, columns, entries)
    sums = np.asarray(X.T @ mass.sum(axis=1), dtype=np.float64).ravel()
    return mass.sum(axis=0), sums, len(chunk) * movable_columns(X), len(chunk), low, high


def _merge_masses(first: Sums, second: Sums) -> Sums:
    return *add(first[:4], second[:4]), np.minimum(first[4], second[4]), np.maximum(first[5], second[5])


def _mass_of(chunk: Chunk) -> FloatArray:
    """Mass of each pair of row and label."""
    D = np.asarray(chunk.D)
    return D if chunk.weight is None else chunk.weight[:, None] * D


def _center_of(mean: FloatArray, movable: BoolArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Origin from which each column is measured: its mean if that gives sparse rows no new entries, else 0.

    A column that holds 0 or one other value is measured from that value if nearly all mass is there: its variance comes
    from the zeros alone, and a difference of two sums about 0 would lose its digits.
    """
    nearly_all = (low == high) & (np.abs(mean - low) <= MAX_ZERO_FRACTION * np.abs(low))
    return np.where(movable, mean, np.where(nearly_all, low, 0.0))


def _sums_about(
    chunk: Chunk, center: FloatArray, labels: npt.NDArray[np.intp], label_mass: FloatArray, covariance: str
) -> Sums:
    """Sums over a chunk for the moments, with features measured from ``center``, where fewer digits are lost.

    They are the means of the labels, the mean squares of the features, the products of features (for each label unless
    they are "tied"; only squares if "diag"), and the largest square.
    """
    X, mass = measured_from(center, chunk.X), _mass_of(chunk)[:, labels]
    fractions, row_fractions = mass / label_mass, mass.sum(axis=1) / label_mass.sum()
    squares = X.multiply(X) if sparse.issparse(X) else X**2
    if covariance == "diag":
        products = np.asarray((squares.T @ fractions).T)
    elif covariance == "full":
        products = np.stack([_gram(X, fraction) for fraction in fractions.T])
    else:
        products = _gram(X, row_fractions)
    largest = float(np.max(np.asarray(squares.max(axis=0).max())))
    return np.asarray(fractions.T @ X), np.asarray(squares.T @ row_fractions).ravel(), products, largest


def _merge_sums(first: Sums, second: Sums) -> Sums:
    return *add(first[:3], second[:3]), max(first[3], second[3])


def _check_digits(variances: FloatArray, mean: FloatArray, center: FloatArray) -> None:
    """Reject a sparse column that could not be centred and whose variance is rounding error."""
    lost = np.flatnonzero((center == 0) & (mean != 0) & (variances <= SPARSE_DIGITS * mean**2))
    if len(lost):
        raise DataError(
            f"Column {lost[0]} of the sparse X has mean {mean[lost[0]]:.4g}, and the rows in which it is 0 have next "
            "to no weight: its (weighted) variance is lost in rounding. Centre or scale it, or pass a dense X."
        )


def _gram(X: Any, weight: FloatArray) -> FloatArray:
    """Xᵀ diag(weight) X as a dense matrix."""
    if sparse.issparse(X):
        return np.asarray((X.T @ sparse.diags(weight) @ X).toarray())
    return np.asarray((X * weight[:, None]).T @ X)


def _cholesky(matrix: FloatArray, ridge: float) -> FloatArray:
    """Lower Cholesky factor of matrix + ridge · I."""
    matrix = matrix.copy()
    np.fill_diagonal(matrix, np.diagonal(matrix) + ridge)
    try:
        return np.asarray(linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False))
    except linalg.LinAlgError as error:
        raise DataError(
            "A covariance is not positive definite in spite of ",
            Parameter("reg"),
            ": sparse features with means far larger than their deviations lose all precision. Raise reg, centre these "
            "features, or pass a dense X.",
        ) from error


def _solve(covariance: FloatArray, ridge: float, columns: FloatArray) -> FloatArray:
    """(covariance + ridge · I)⁻¹ times the columns, for a matrix or a vector of variances."""
    if covariance.ndim == 1:
        return np.asarray(columns / (covariance + ridge)[:, None])
    return np.asarray(linalg.cho_solve((_cholesky(covariance, ridge), True), columns, check_finite=False))


class PTBayes(BaseLDL):
    r"""Bayes classifier with one Gaussian per label, learned from weighted single-label examples.

    The covariance of label j that enters the density is

    .. math:: (1 - \mathtt{pooling})\, \Sigma_j + \mathtt{pooling}\, \bar\Sigma + \mathtt{reg}\, v\, I,
        \qquad \bar\Sigma = \sum_j \pi_j \Sigma_j,

    where v is the largest variance of a feature. So it is positive definite for any data: constant features, more
    features than rows, one-hot features. Covariances are maximum likelihood (division by Nⱼ, not by Nⱼ − 1, which
    has no meaning for fractional weights).

    Parameters
    ----------
    covariance : {"tied", "full", "diag"}, default="tied"
        "tied" is one matrix for all labels (linear discriminant analysis), which is fast and was never worse than the
        mean distribution on the paper's datasets; "full" is a matrix for each label, as in the code of the paper's
        author (the paper does not state it); "diag" assumes independent features (naive Bayes).
    resample : {None, "multinomial"}, default=None
        None weights each pair of row and label by its degree. "multinomial" draws n_samples · n_labels examples with
        these probabilities, as in the paper: the same in the limit, with noise.
    pooling : float, default=0.5
        Fraction of the pooled covariance in each label's own, from 0 (none) to 1 (all labels have the same). Rows of
        one dataset count for all labels, so the true covariances differ little, and differences of the estimates are
        mostly noise, which adds up over the features. Has no effect if the covariance is "tied".
    reg : float, default=0.1
        Ridge, as a fraction of the largest variance of a feature; at least 1e-9 is always added. It depends on the
        units of the features: standardise features of different scales.
    random_state : int, RandomState or None, default=None
        Source of randomness for ``resample="multinomial"``.

    Attributes
    ----------
    priors_ : ndarray of shape (n_labels,)
        Fraction of the mass of each label. A label without mass is predicted with degree 0.
    means_ : ndarray of shape (n_labels, n_features)
        Mean of the features for each label; nan for a label without mass.
    n_features_in_ : int
        Number of features seen by ``fit``.
    n_labels_ : int
        Number of labels.
    label_names_ : ndarray of str
        Names of the labels.

    Notes
    -----
    With ``covariance="diag"``, ``pooling=0`` and no resampling, this is Gaussian naive Bayes on weighted copies with
    ``var_smoothing=reg``. Sparse X stays sparse in ``fit`` unless more than half of its columns have no zero, or a
    single other value and zeros in rows of next to no mass: then all of it becomes dense. ``predict`` makes blocks of
    rows dense in that case, and with "full" unless ``pooling=1``. "full" and "tied" need matrices of n_features ×
    n_features, "diag" none. Rows in chunks need two passes; they cannot be resampled.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.
    .. [2] J. H. Friedman, "Regularized discriminant analysis", Journal of the American Statistical Association 84,
       1989.

    Examples
    --------
    >>> from skldl import PTBayes
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> PTBayes().fit(X, D).predict([[0.0], [1.5]]).round(3)
    array([[0.915, 0.085],
           [0.5  , 0.5  ]])
    """

    _constraints: ClassVar = {
        "covariance": one_of("tied", "full", "diag"),
        "resample": NONE | one_of("multinomial"),
        "pooling": FRACTION,
        "reg": NOT_NEGATIVE,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        covariance: str = "tied",
        *,
        resample: str | None = None,
        pooling: float = 0.5,
        reg: float = 0.1,
        random_state: RandomState = None,
    ) -> None:
        self.covariance = covariance
        self.resample = resample
        self.pooling = pooling
        self.reg = reg
        self.random_state = random_state

    def _fit_rows(self, rows: Rows) -> None:
        self._regularize(self._moments(rows))

    def _moments(self, rows: Rows) -> Moments:
        if self.resample is not None:
            if not isinstance(rows, CheckedRows):
                raise DataError(
                    Parameter("resample", self.resample),
                    " needs all rows in memory. Set ",
                    Parameter("resample", None),
                    ", its limit.",
                )
            X, D = rows.chunk.X, np.asarray(rows.chunk.D)
            counts = multinomial_counts(D, D.size, rows.chunk.weight, self.random_state)
            drawn = counts.any(axis=1)  # a row that was never drawn must not decide how columns are measured
            rows = CheckedRows(X[drawn], counts[drawn])
        try:
            return _moments(rows, self.covariance)
        except MemoryError as error:
            raise MemoryError(
                f"covariance={self.covariance!r} needs matrices of {rows.n_features:,} × {rows.n_features:,} numbers, "
                "which do not fit into memory. Choose covariance='diag', or fewer features "
                "(sklearn.decomposition.TruncatedSVD)."
            ) from error

    def _regularize(self, moments: Moments) -> None:
        """Turn moments into scores: linear, quadratic in each feature, or by Cholesky factors."""
        ridge = max(self.reg, MIN_REG) * moments.largest_variance
        means, own = moments.means, moments.covariances
        self._labels, self._center = moments.labels, moments.center
        self._measured_means = means  # from the center: means_ = center + means has fewer digits of them
        self._squares = self._factors = None
        if own is None or self.pooling == 1:  # the quadratic part of the scores is the same for all labels
            # scores are differences from the mean of all labels: smaller numbers, and the same softmax
            common = np.exp(moments.log_priors) @ means
            self._coef = _solve(moments.pooled, ridge, (means - common).T)
            self._intercept = moments.log_priors - ((means + common) / 2 * self._coef.T).sum(axis=1)
        elif own.ndim == 2:
            variances = (1 - self.pooling) * own + self.pooling * moments.pooled + ridge
            # less those of the first label: the same softmax, and rows far away keep the digits in which labels differ
            self._coef, self._squares = (means / variances).T, -0.5 / variances.T + 0.5 / variances[0, :, None]
            self._intercept = moments.log_priors - 0.5 * (means**2 / variances + np.log(variances)).sum(axis=1)
        else:
            self._factors, self._intercept = np.empty_like(own), moments.log_priors.copy()
            for label, matrix in enumerate(own):
                matrix = (1 - self.pooling) * matrix + self.pooling * moments.pooled
                self._factors[label] = _cholesky(matrix, ridge)
                self._intercept[label] -= np.log(np.diagonal(self._factors[label])).sum()
        self.priors_ = np.zeros(self.n_labels_)
        self.priors_[self._labels] = np.exp(moments.log_priors)
        self.means_ = np.full((self.n_labels_, means.shape[1]), np.nan)
        self.means_[self._labels] = self._center + means

    def _predict(self, X: Any) -> FloatArray:
        distributions = np.zeros((X.shape[0], self.n_labels_))
        for block in row_blocks(X.shape[0], max(X.shape[1], self.n_labels_), BLOCK_CELLS):
            distributions[block, self._labels] = softmax(self._log_joint(X[block]))
        return distributions

    def _log_joint(self, X: Any) -> FloatArray:
        """Log of prior times density for each label with mass, up to a constant for each row."""
        if self._factors is not None:
            X = (X.toarray() if sparse.issparse(X) else X) - self._center
            scores = np.empty((X.shape[0], len(self._labels)))
            for label, factor in enumerate(self._factors):
                residual = (X - self._measured_means[label]).T
                whitened = linalg.solve_triangular(factor, residual, lower=True, check_finite=False)
                scores[:, label] = self._intercept[label] - 0.5 * np.einsum("ij,ij->j", whitened, whitened)
            return scores
        X = measured_from(self._center, X)
        scores = np.asarray(X @ self._coef) + self._intercept
        if self._squares is not None:
            scores += (X.multiply(X) if sparse.issparse(X) else X**2) @ self._squares
        return scores

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        if param not in ("reg", "pooling"):
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        moments = None
        for value in values:
            self.set_params(**{param: value})
            if moments is None:
                moments = self._moments(CheckedRows(X, D, sample_weight))
            self._regularize(moments)
            yield self._predict(X_new)
