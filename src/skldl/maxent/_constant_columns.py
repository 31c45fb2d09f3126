"""Which columns are constant, and sparse rows measured so that their variances keep their digits.

Dense rows are measured from their mean before anything is squared. Sparse rows would no longer be sparse: there a
variance is a difference of two sums, Σ ω x² − (Σ ω x)², with a rounding error of about 1e-15 of the squared mean. Two
kinds of columns have few digits left:

- Columns of two values, such as a flag that is 0 in a single row of tiny weight. Measured from the value that is nearer
  to the mean, such a column has hardly an entry, and its variance is what the other value contributes.
- All others, such as 10⁷ + noise, which are refused where the digits are too few.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.utils.arrays import SPARSE_DIGITS, sparse_minus
from skldl.utils.scaling import two_valued_columns
from skldl.utils.typing import BoolArray, FloatArray

CONSTANT_COLUMN = 1e-26  # share of the squared mean up to which an exact variance is rounding error of the mean
NEARLY_CONSTANT = 1e-4  # share of the squared mean up to which columns of two values are measured from one of them

Facts = Callable[[npt.NDArray[np.intp]], tuple[FloatArray, FloatArray, BoolArray]]
"""Of some columns of rows with weight: least value, greatest value, and whether the column has exactly two."""


def without_common_values(X: Any, weight: FloatArray, mean: FloatArray) -> tuple[Any, FloatArray]:
    """Measure sparse rows from the `common_values` of their columns.

    Parameters
    ----------
    X : CSR matrix of shape (n_samples, n_features)
        Rows.
    weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    mean : ndarray of shape (n_features,)
        Weighted mean of the columns.

    Returns
    -------
    rows : CSR matrix of shape (n_samples, n_features)
        X minus the common values; X itself if there are none.
    about : ndarray of shape (n_features,)
        Weighted mean of ``rows``.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> X, weight = csr_matrix([[1.0, 2.0], [1.0, 5.0], [0.0, 3.0]]), np.array([0.5, 0.5, 1e-20])
    >>> rows, about = without_common_values(X, weight, weight @ X)
    >>> rows.nnz, about
    (4, array([-1.0e-20,  3.5e+00]))
    """
    common = common_values(weight @ X.astype(np.float64, copy=False).power(2) - mean**2, mean, facts_of(X))
    if not common.any():
        return X, mean
    rows = sparse_minus(X, common)
    return rows, np.asarray(weight @ rows)


def common_values(variances: FloatArray, mean: FloatArray, facts: Facts) -> FloatArray:
    """Of each nearly constant column with two values the one that is nearer to the mean; 0 for the others."""
    common = np.zeros(len(mean))
    columns = np.flatnonzero((variances <= NEARLY_CONSTANT * mean**2) & (mean != 0))
    if len(columns):
        low, high, two_valued = facts(columns)
        nearer = np.where(np.abs(mean[columns] - low) < np.abs(mean[columns] - high), low, high)
        common[columns] = np.where(two_valued, nearer, 0.0)
    return common


def constant_columns(
    variances: FloatArray, mean: FloatArray, about: FloatArray, stored: BoolArray, facts: Facts
) -> BoolArray:
    """Which columns of sparse rows are constant.

    A column that is not constant although its variance has too few digits is refused: it would be dropped, and its
    products with other columns have lost their digits, too.

    Parameters
    ----------
    variances : ndarray of shape (n_features,)
        Of the rows as measured from their common values.
    mean, about : ndarray of shape (n_features,)
        Mean of the rows as they are, and as measured.
    stored : ndarray of shape (n_features,)
        Which columns of the rows as they are have entries.
    facts : callable
        The `Facts` of the rows as they are. Every row with weight counts, however small that is, and zeros that are
        not stored are values.
    """
    lost = variances <= SPARSE_DIGITS * about**2
    columns = np.flatnonzero(lost & stored)
    if len(columns):
        low, high, _ = facts(columns)
        largest = np.maximum(np.abs(low), np.abs(high))
        refused = (high - low > 1e-13 * largest) & (np.abs(about[columns]) > 1e-13 * largest)
        for column, least, greatest in zip(columns[refused], low[refused], high[refused], strict=True):
            raise ValueError(
                f"Column {column} of the sparse X has mean {mean[column]:.4g} and values from {least:.8g} to "
                f"{greatest:.8g}: its (weighted) variance is lost in rounding, and the column would be dropped. Centre "
                "or scale it, or pass a dense X."
            )
    return np.asarray(lost | (variances <= CONSTANT_COLUMN * mean**2))


def facts_of(X: Any) -> Facts:
    """The facts of sparse rows in memory."""

    def facts(columns: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, BoolArray]:
        part = X[:, columns]
        low, high = (np.ravel(bound.toarray()).astype(np.float64) for bound in (part.min(axis=0), part.max(axis=0)))
        return low, high, two_valued_columns(part)

    return facts
