"""`Pair`: a block of true and predicted rows with all that several measures need, computed once and only if asked.

Arrays inside have the shape (n_labels, n_rows): a sum over labels then runs along long contiguous rows, which NumPy
does several times faster than a sum over a short last axis. `p` is the true distribution and `q` the predicted one.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]

BLOCK_CELLS = 2**15  # a few such blocks fit into the cache of one core


class Pair:
    """True and predicted rows, transposed, with shared intermediate results.

    Parameters
    ----------
    p, q : ndarray of shape (n_labels, n_rows)
        True and predicted distributions.
    eps : float
        Floor under denominators and under arguments of logarithms that would otherwise be zero; 0 lets
        infinities through.
    """

    def __init__(self, p: FloatArray, q: FloatArray, eps: float) -> None:
        self.p = p
        self.q = q
        self.eps = eps

    @cached_property
    def difference(self) -> FloatArray:
        """|p − q|."""
        difference = np.subtract(self.p, self.q)
        return np.abs(difference, out=difference)

    @cached_property
    def total(self) -> FloatArray:
        """p + q."""
        return self.p + self.q

    @cached_property
    def relative(self) -> FloatArray:
        """|p − q| / (p + q), with 0/0 = 0."""
        return divide(self.difference, self.total)

    @cached_property
    def sum_difference(self) -> FloatArray:
        """Σ|p − q|."""
        return np.asarray(self.difference.sum(axis=0))

    @cached_property
    def max_difference(self) -> FloatArray:
        """max|p − q|."""
        return np.asarray(self.difference.max(axis=0))

    @cached_property
    def sum_minimum(self) -> FloatArray:
        """Σ min(p, q)."""
        return np.asarray(np.minimum(self.p, self.q).sum(axis=0))

    @cached_property
    def sum_relative_squared(self) -> FloatArray:
        """Σ (p − q)² / (p + q)²."""
        return column_dot(self.relative, self.relative)

    @cached_property
    def sum_product(self) -> FloatArray:
        """Σ pq."""
        return column_dot(self.p, self.q)

    @cached_property
    def sum_p_squared(self) -> FloatArray:
        """Σ p²."""
        return column_dot(self.p, self.p)

    @cached_property
    def sum_q_squared(self) -> FloatArray:
        """Σ q²."""
        return column_dot(self.q, self.q)

    @cached_property
    def relative_entropy(self) -> FloatArray:
        """Σ p ln(p / q), the prediction floored at eps; 0 ln 0 = 0."""
        return log_ratio_sum(self.p, np.maximum(self.q, self.eps) if self.eps else self.q)


def column_dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """Σ a·b over labels, without a temporary array."""
    return np.asarray(np.einsum("ij,ij->j", a, b))


def divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Quotient with 0/0 = 0; a positive number over zero is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.divide(numerator, denominator)
    if not denominator.all():
        quotient[(numerator == 0) & (denominator == 0)] = 0.0
    return quotient


def log_ratio_sum(a: FloatArray, b: FloatArray) -> FloatArray:
    """Σ a ln(a / b) over labels with 0 ln 0 = 0, infinite where b = 0 < a."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = np.divide(a, b)
        if np.isinf(terms).any():  # a tiny b: the quotient overflows although its logarithm does not
            np.subtract(np.log(a), np.log(b), out=terms)
        else:
            np.log(terms, out=terms)
        terms *= a
    if not a.all():
        terms[a == 0] = 0.0
    return np.asarray(terms.sum(axis=0))


def blocks(true: FloatArray, pred: FloatArray, eps: float) -> Iterator[tuple[slice, Pair]]:
    """Cut two tables into blocks of rows that fit into the cache."""
    n_rows, n_labels = true.shape
    step = max(16, BLOCK_CELLS // n_labels)
    for start in range(0, n_rows, step):
        rows = slice(start, min(start + step, n_rows))
        yield rows, Pair(np.ascontiguousarray(true[rows].T), np.ascontiguousarray(pred[rows].T), eps)
