"""`Pair`: a block of true and predicted rows, with cached quantities that several measures use.

The arithmetic is written once, for NumPy and for every namespace of the array API: `Pair.xp` is NumPy itself or the
namespace of the arrays. On a device terms have the precision of the arrays, and sums over labels are in double.

Arrays inside have the shape (n_labels, n_rows): a sum over labels then adds long contiguous rows, which is several
times faster in NumPy than a sum over a short last axis. `p` is the true distribution and `q` the predicted one.

Rules for zeros: 0/0 is 0 and 0 ln 0 is 0. Where a denominator or the argument of a logarithm can vanish while the rest
of the term does not, p, q or the sum in question is floored at `eps`; with eps = 0 such a term is infinite.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from skldl.utils.arrays import as_double, at_least, namespace, row_blocks, sum_in_double
from skldl.utils.typing import FloatArray

BLOCK_CELLS = 2**15
"""Numbers in a block in NumPy, 256 KiB: a few such arrays fit into the second-level cache of one core."""
MIN_SAFE_FLOOR = 1e-30
"""A degree, at most 1, divided by a larger floor cannot overflow, not even in single precision (largest: 3e38)."""


class Pair:
    """True and predicted rows, transposed, with shared intermediate results.

    Parameters
    ----------
    p, q : ndarray of shape (n_labels, n_rows)
        True and predicted distributions.
    eps : float
        Floor of denominators and of arguments of logarithms that could otherwise be zero; 0 allows infinite
        values.
    """

    def __init__(self, p: FloatArray, q: FloatArray, eps: float) -> None:
        self.p = p
        self.q = q
        self.eps = eps
        self.xp = namespace(p)
        self.bounded = eps > MIN_SAFE_FLOOR

    def floored(self, values: FloatArray) -> FloatArray:
        """max(values, eps)."""
        return at_least(values, self.eps) if self.eps else values

    # -- arrays of shape (n_labels, n_rows)

    @cached_property
    def floored_p(self) -> FloatArray:
        """max(p, eps)."""
        return self.floored(self.p)

    @cached_property
    def floored_q(self) -> FloatArray:
        """max(q, eps)."""
        return self.floored(self.q)

    @cached_property
    def difference(self) -> FloatArray:
        """|p − q|."""
        if self.xp is not np:
            return self.xp.abs(self.p - self.q)
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
    def smaller(self) -> FloatArray:
        """min(p, q)."""
        return self.xp.minimum(self.p, self.q)

    @cached_property
    def difference_per_larger(self) -> FloatArray:
        """|p − q| / max(p, q), with 0/0 = 0."""
        return divide(self.difference, self.xp.maximum(self.p, self.q))

    @cached_property
    def difference_per_smaller(self) -> FloatArray:
        """|p − q| / min(p, q), the denominator floored at eps."""
        return divide(self.difference, self.floored(self.smaller))

    @cached_property
    def root_p(self) -> FloatArray:
        """√p."""
        return self.xp.sqrt(self.p)

    @cached_property
    def root_q(self) -> FloatArray:
        """√q."""
        return self.xp.sqrt(self.q)

    @cached_property
    def root_difference(self) -> FloatArray:
        """|√p − √q|, as |p − q| / (√p + √q), which is accurate where p and q are close."""
        return divide(self.difference, self.root_p + self.root_q)

    @cached_property
    def floored_geometric_mean(self) -> FloatArray:
        """√p √q, each of p and q floored at eps."""
        root_eps = float(np.sqrt(self.eps))
        return at_least(self.root_p, root_eps) * at_least(self.root_q, root_eps)

    # -- one value per row

    @cached_property
    def sum_difference(self) -> FloatArray:
        """Σ|p − q|."""
        return sum_over_labels(self.difference)

    @cached_property
    def max_difference(self) -> FloatArray:
        """max|p − q|."""
        return as_double(self.xp.max(self.difference, axis=0))

    @cached_property
    def sum_difference_squared(self) -> FloatArray:
        """Σ (p − q)²."""
        return column_dot(self.difference, self.difference)

    @cached_property
    def sum_total(self) -> FloatArray:
        """Σ (p + q)."""
        return sum_over_labels(self.total)

    @cached_property
    def sum_smaller(self) -> FloatArray:
        """Σ min(p, q)."""
        return sum_over_labels(self.smaller)

    @cached_property
    def sum_larger(self) -> FloatArray:
        """Σ max(p, q)."""
        return self.sum_total - self.sum_smaller

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
    def fidelity(self) -> FloatArray:
        """Σ √(pq)."""
        return column_dot(self.root_p, self.root_q)

    @cached_property
    def squared_chord(self) -> FloatArray:
        """Σ (√p − √q)²."""
        return column_dot(self.root_difference, self.root_difference)

    @cached_property
    def squared_chi2(self) -> FloatArray:
        """Σ (p − q)² / (p + q)."""
        return column_dot(self.difference, self.relative)

    @cached_property
    def pearson_chi2(self) -> FloatArray:
        """Σ (p − q)² / q, the denominator floored at eps."""
        return column_dot(self.difference, divide(self.difference, self.floored_q))

    @cached_property
    def neyman_chi2(self) -> FloatArray:
        """Σ (p − q)² / p, the denominator floored at eps."""
        return column_dot(self.difference, divide(self.difference, self.floored_p))

    @cached_property
    def relative_entropy(self) -> FloatArray:
        """Σ p ln(p / q), the prediction floored at eps."""
        # negative only by rounding, or because floored predictions sum to more than one
        return at_least(log_ratio_sum(self.p, self.floored_q, bounded=self.bounded), 0.0)

    @cached_property
    def reversed_relative_entropy(self) -> FloatArray:
        """Σ q ln(q / p), the truth floored at eps."""
        return at_least(log_ratio_sum(self.q, self.floored_p, bounded=self.bounded), 0.0)

    @cached_property
    def k_divergence(self) -> FloatArray:
        """Σ p ln(2p / (p + q))."""
        return at_least(k_divergence(self.p, self.total), 0.0)  # negative only by rounding

    @cached_property
    def topsoe(self) -> FloatArray:
        """Σ p ln(2p / (p + q)) + q ln(2q / (p + q))."""
        return at_least(self.k_divergence + k_divergence(self.q, self.total), 0.0)


def sum_over_labels(values: FloatArray) -> FloatArray:
    """Σ over labels; on a device in double precision."""
    return np.asarray(values.sum(axis=0)) if isinstance(values, np.ndarray) else sum_in_double(values, axis=0)


def column_dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """Σ a·b over labels, in NumPy without a temporary array."""
    if not isinstance(a, np.ndarray):
        return sum_in_double(a * b, axis=0)
    return np.asarray(np.einsum("ij,ij->j", a, b))


def divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Quotient with 0/0 = 0; a positive number over zero is infinite."""
    if not isinstance(denominator, np.ndarray):  # no branch on values: the host would have to wait for the device
        xp = namespace(denominator)
        return xp.where((numerator == 0) & (denominator == 0), 0.0, numerator / denominator)
    quotient = np.divide(numerator, denominator)
    if not denominator.all():
        quotient[(numerator == 0) & (denominator == 0)] = 0.0
    return quotient


def log_ratio(a: FloatArray, b: FloatArray, *, bounded: bool = False) -> FloatArray:
    """ln(a / b), also where b is so small that the quotient overflows; infinite where b = 0 < a, NaN where both are 0.

    ``bounded`` says that a / b cannot overflow.
    """
    if not isinstance(a, np.ndarray):
        xp = namespace(a)
        ratio = a / b
        return xp.log(ratio) if bounded else xp.where(xp.isinf(ratio), xp.log(a) - xp.log(b), xp.log(ratio))
    ratio = np.divide(a, b)
    if np.isinf(ratio).any():
        return np.subtract(np.log(a), np.log(b), out=ratio)
    return np.log(ratio, out=ratio)


def log_ratio_sum(a: FloatArray, b: FloatArray, *, bounded: bool = False) -> FloatArray:
    """Σ a ln(a / b) over labels with 0 ln 0 = 0, infinite where b = 0 < a; ``bounded`` as in `log_ratio`."""
    terms = log_ratio(a, b, bounded=bounded)
    if not isinstance(a, np.ndarray):
        return sum_in_double(namespace(a).where(a == 0, 0.0, a * terms), axis=0)
    terms *= a
    if not a.all():
        terms[a == 0] = 0.0
    return np.asarray(terms.sum(axis=0))


def k_divergence(a: FloatArray, total: FloatArray) -> FloatArray:
    """Σ a ln(2a / total) over labels.

    a is doubled, because halving the total would round the smallest subnormal numbers.
    """
    return log_ratio_sum(2.0 * a, total, bounded=True) / 2.0


def blocks(true: FloatArray, pred: FloatArray, eps: float) -> Iterator[tuple[slice, Pair]]:
    """Cut two tables into blocks of rows: in NumPy small enough for the cache, on a device large ones."""
    n_rows, n_labels = true.shape
    if not isinstance(true, np.ndarray):
        for rows in row_blocks(n_rows, n_labels):
            yield rows, Pair(true[rows, ...].T, pred[rows, ...].T, eps)
        return
    # at least 16 rows, so that the work in NumPy's loops outweighs the cost of calling them
    step = max(16, BLOCK_CELLS // n_labels)
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        yield rows, Pair(np.ascontiguousarray(true[rows].T), np.ascontiguousarray(pred[rows].T), eps)
