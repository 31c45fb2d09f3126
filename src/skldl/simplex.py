"""Arithmetic on rows that are, or should become, distributions: pure functions from array to array.

Every function treats the last axis as the labels and returns a new array of double precision; the
input is never changed. NaN, infinity, masked cells, dates and complex numbers are refused.
"""

import numpy as np
import numpy.typing as npt
from scipy import special

from skldl.exceptions import NegativeDegreeError, ZeroRowError
from skldl.utils.real_numbers import as_finite_array, as_real_array, row_sums
from skldl.utils.typing import FloatArray


def normalize(rows: npt.ArrayLike) -> FloatArray:
    """Divide each row by its sum.

    Parameters
    ----------
    rows : array-like of shape (..., n_labels)
        Non-negative numbers, such as counts or scores.

    Returns
    -------
    ndarray of shape (..., n_labels)
        Rows that sum to one.

    Raises
    ------
    NonFiniteError
        If a number is NaN or infinite.
    NegativeDegreeError
        If a number is negative.
    ZeroRowError
        If a row has no mass.

    Examples
    --------
    >>> from skldl.simplex import normalize
    >>> normalize([[1, 3], [2, 2]])
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    values = np.array(as_finite_array(rows, name="rows"))
    if values.size and values.min() < 0:
        place = tuple(int(i) for i in np.argwhere(values < 0)[0])
        raise NegativeDegreeError(
            f"Cell {place} is {values[place]:g}, and a negative number cannot be a share. "
            "Use skldl.simplex.project to move such rows to the nearest distribution."
        )
    with np.errstate(over="ignore"):
        totals = values.sum(axis=-1, keepdims=True)
    if np.isinf(totals).any():  # finite but huge: scale before the sum
        values /= values.max(axis=-1, keepdims=True)
        totals = values.sum(axis=-1, keepdims=True)
    if np.any(totals == 0):
        row = int(np.flatnonzero(totals.ravel() == 0)[0])
        raise ZeroRowError(f"Row {row} is all zero and cannot be normalised. Drop it, or add a constant first.")
    tiny = totals < np.finfo(np.float64).tiny * 2**53  # a denormal sum has low precision: scale it up
    if tiny.any():
        values *= np.where(tiny, 2.0**600, 1.0)
        totals = values.sum(axis=-1, keepdims=True)
    values /= totals
    return values


def project(rows: npt.ArrayLike) -> FloatArray:
    """Move each row to the nearest distribution in Euclidean distance.

    The projection subtracts one threshold τ from the whole row and cuts at zero; sorting finds τ in
    O(c log c) per row [1]_.

    Parameters
    ----------
    rows : array-like of shape (..., n_labels)
        Any finite numbers.

    Returns
    -------
    ndarray of shape (..., n_labels)
        Non-negative rows that sum to one. A row that already does is returned as it is, up to rounding.

    References
    ----------
    .. [1] J. Duchi, S. Shalev-Shwartz, Y. Singer and T. Chandra, "Efficient projections onto the
       l1-ball for learning in high dimensions", ICML 2008.

    Examples
    --------
    >>> from skldl.simplex import project
    >>> project([[0.75, 0.5], [2.0, -1.0]])
    array([[0.625, 0.375],
           [1.   , 0.   ]])
    """
    values = np.array(as_real_array(rows, name="rows"))
    if _moved_to_sum_one(values):  # nothing is cut, as in most predictions: no need to sort
        return values
    as_finite_array(values, name="rows")
    with np.errstate(over="ignore"):
        values -= values.max(axis=-1, keepdims=True)  # the projection does not see a common shift
    np.maximum(values, -1.0, out=values)  # what is one below the largest degree is cut anyway: no sum overflows
    if _moved_to_sum_one(values):
        return values
    descending = -np.sort(-values, axis=-1)
    excess = np.cumsum(descending, axis=-1) - 1.0
    counts = np.arange(1, values.shape[-1] + 1)
    support = (descending * counts > excess).sum(axis=-1, keepdims=True)
    threshold = np.take_along_axis(excess, support - 1, axis=-1) / support
    values -= threshold
    np.maximum(values, 0.0, out=values)
    values /= values.sum(axis=-1, keepdims=True)
    return values


def _moved_to_sum_one(values: FloatArray) -> bool:
    """Add one number to each row, in place, so that it sums to one, and return True, if all degrees become positive.

    Rows are left alone if one has a large sum, in which the one would be lost in rounding, or is not finite.
    """
    sums, n_labels = row_sums(values)[..., None], values.shape[-1]
    threshold = (sums - 1.0) / n_labels
    if not ((np.abs(sums) <= n_labels + 1.0).all() and (values > threshold).all()):
        return False
    values -= threshold
    values /= row_sums(values)[..., None]
    return True


def log_softmax(scores: npt.ArrayLike) -> FloatArray:
    """Logarithm of the distribution proportional to exp(scores), without overflow.

    Parameters
    ----------
    scores : array-like of shape (..., n_labels)
        Any real numbers.

    Returns
    -------
    ndarray of shape (..., n_labels)
        Log degrees; their exponentials sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.simplex import log_softmax
    >>> np.exp(log_softmax([[1000.0, 1000.0]]))
    array([[0.5, 0.5]])
    """
    return np.asarray(special.log_softmax(as_finite_array(scores, name="scores"), axis=-1))


def softmax(scores: npt.ArrayLike) -> FloatArray:
    """Distribution proportional to exp(scores), without overflow.

    Parameters
    ----------
    scores : array-like of shape (..., n_labels)
        Any real numbers.

    Returns
    -------
    ndarray of shape (..., n_labels)
        Rows that sum to one.

    Examples
    --------
    >>> from skldl.simplex import softmax
    >>> softmax([[0.0, 0.0, 0.0, 0.0]])
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    values = np.array(as_finite_array(scores, name="scores"))
    values -= values.max(axis=-1, keepdims=True)
    np.exp(values, out=values)
    values /= values.sum(axis=-1, keepdims=True)
    return values


def smooth_zeros(rows: npt.ArrayLike, amount: float = 1e-6) -> FloatArray:
    """Mix each row with the uniform distribution, so that no degree is zero.

    Parameters
    ----------
    rows : array-like of shape (..., n_labels)
        Distributions.
    amount : float, default=1e-6
        Share of the uniform distribution in the mixture, in [0, 1]. Every degree is at least
        ``amount / n_labels`` afterwards.

    Returns
    -------
    ndarray of shape (..., n_labels)
        ``(1 - amount) * rows + amount / n_labels``.

    Examples
    --------
    >>> from skldl.simplex import smooth_zeros
    >>> smooth_zeros([[1.0, 0.0]], amount=0.2)
    array([[0.9, 0.1]])
    """
    if not 0 <= amount <= 1:
        raise ValueError(f"amount={amount!r} is a share of the mixture and must lie in [0, 1].")
    values = np.array(as_finite_array(rows, name="rows"))
    values *= 1.0 - amount
    values += amount / values.shape[-1]
    return values


def entropy(rows: npt.ArrayLike) -> FloatArray:
    """Shannon entropy of each row in nats, with 0 ln 0 = 0.

    Parameters
    ----------
    rows : array-like of shape (..., n_labels)
        Distributions.

    Returns
    -------
    ndarray of shape (...,)
        From 0 (all mass on one label) to ln(n_labels) (uniform).

    Examples
    --------
    >>> from skldl.simplex import entropy
    >>> entropy([[0.5, 0.5], [1.0, 0.0]]).round(4)
    array([0.6931, 0.    ])
    """
    return np.asarray(special.entr(as_finite_array(rows, name="rows")).sum(axis=-1))
