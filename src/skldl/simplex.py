"""Functions on rows of distributions or scores: normalisation, projection, softmax, smoothing and entropy.

The last axis of an array is the labels. Each function returns a new array in double precision and does not change its
input. NaN, infinity, masked cells, dates and complex numbers are rejected. Inside the package, arrays that need no
validation go to `skldl.utils.simplex`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.exceptions import NegativeDegreeError, NonFiniteError, ZeroRowError
from skldl.utils import simplex as arithmetic
from skldl.utils.parameters import FRACTION, check_value
from skldl.utils.typing import FloatArray
from skldl.utils.validation import as_real_array, row_sums

MIN_SUM = 2.0**-969
"""Smallest sum of a row with full precision: 2**53 times the smallest normal number."""


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
    values = np.array(_finite(rows, name="rows"))
    if values.size and values.min() < 0:
        cell = tuple(int(i) for i in np.argwhere(values < 0)[0])
        raise NegativeDegreeError(
            f"Cell {cell} is {values[cell]:g}, and a degree is not negative. "
            "Use skldl.simplex.project to move such rows to the nearest distribution."
        )
    with np.errstate(over="ignore"):
        totals = values.sum(axis=-1, keepdims=True)
    # sums that overflow or have few digits: rows are multiplied by a power of two first, which is exact
    extreme = ~((totals > MIN_SUM) & np.isfinite(totals))
    if extreme.any():
        exponents = np.frexp(values.max(axis=-1, keepdims=True, initial=0.0))[1]
        values = np.ldexp(values, np.where(extreme, -exponents, 0))
        totals = values.sum(axis=-1, keepdims=True)
    if np.any(totals == 0):
        row = int(np.flatnonzero(totals.ravel() == 0)[0])
        raise ZeroRowError(f"Row {row} is all zero and cannot be normalised. Remove it, or add a constant first.")
    values /= totals
    return values


def project(rows: npt.ArrayLike) -> FloatArray:
    """Project each row onto the simplex: the nearest distribution in Euclidean distance.

    The projection subtracts one threshold τ from the whole row and cuts at zero; sorting finds τ in
    O(c log c) per row [1]_.

    Parameters
    ----------
    rows : array-like of shape (..., n_labels)
        Any finite numbers.

    Returns
    -------
    ndarray of shape (..., n_labels)
        Non-negative rows that sum to one. A distribution is returned unchanged, up to rounding.

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
    return np.asarray(arithmetic.project(_finite(rows, name="rows")))


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
    return np.asarray(arithmetic.log_softmax(_finite(scores, name="scores")))


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
    return np.asarray(arithmetic.softmax(_finite(scores, name="scores")))


def smooth_zeros(rows: npt.ArrayLike, amount: float = 1e-6) -> FloatArray:
    """Mix each row with the uniform distribution, so that no degree is zero.

    Parameters
    ----------
    rows : array-like of shape (..., n_labels)
        Distributions.
    amount : float, default=1e-6
        Fraction of the uniform distribution in the mixture, in [0, 1]. Every degree is at least
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
    check_value("amount", amount, FRACTION)
    values = np.array(_finite(rows, name="rows"))
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
    return np.asarray(arithmetic.entropy(_finite(rows, name="rows")))


def _finite(values: Any, *, name: str) -> FloatArray:
    """Return an array of finite float64; the error names the first cell that is not a finite number."""
    array = as_real_array(values, name=name)
    sums = row_sums(array) if array.ndim else array
    if not np.isfinite(sums).all() and not np.isfinite(array).all():  # sums of huge numbers can be infinite, too
        cell = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NonFiniteError(
            f"{name} holds {array[cell]} in cell {cell}, where a finite number belongs. Remove or fill in such cells."
        )
    return array
