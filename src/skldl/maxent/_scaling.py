"""The increments of improved iterative scaling, for all weights at once.

For feature k and label j the increment δ solves equation 8 of Geng (2016), with rows weighted by ω,

    Σ_i ω_i p_ij x_ik exp(δ sign(x_ik) g_i) = Σ_i ω_i d_ij x_ik,        g_i = Σ_k |x_ik|.

Split by sign this is A(δ) − B(δ) = C, with A = Σ_{x>0} ω p x e^{δg} rising and B = Σ_{x<0} ω p |x| e^{−δg} falling,
so there is at most one root. Newton's method finds it on φ(δ) = ln(A + max(−C, 0)) − ln(B + max(C, 0)), whose slope
lies between the smallest g and twice the largest: φ is nearly a straight line, and no exponential overflows.

How A and B are computed decides the cost:

- one value of g: closed form;
- few values of g: sums over the rows of each value;
- any g: e^{δg} is interpolated at Chebyshev nodes γ_r of [min g, max g], so that A(δ) = Σ_r m_r e^{δγ_r} with m_r =
  Σ_i ω_i p_ij x_ik ℓ_r(g_i): a few matrix products, and then Newton's method no longer sees the rows. With half width
  h of the interval and κ = |δ|h, R nodes leave a relative error of at most κ^R e^{2κ} / (2^{R−1} R!); R is the least
  that keeps it below 1e-14;
- weights with κ > 3, where nodes lose digits: sums over all rows, in blocks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from skldl.utils.arrays import is_device_array, namespace
from skldl.utils.typing import FloatArray

CONSTANT = 1e-13  # relative range below which g is one value up to rounding
FEW_VALUES = 8
LARGEST_EXPONENT = 3.0
NODE_ERROR = 1e-14
NEWTON_STEPS = 60
NEWTON_ERROR = 1e-14
LARGEST_ERROR = 2e-13  # of φ at a root found at nodes; else the sums over all rows decide
CAP = 10.0
BLOCK_CELLS = 1 << 20
MOMENT_CELLS = 1 << 18
LOG_OF_NOTHING = -1e30  # finite, so that differences stay numbers
TINY = float(np.finfo(np.float64).tiny)


class ScalingEquations:
    """The equations of one training set, solved for any predictions.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features), float64
        Features, without rows that are zero throughout.
    weight : ndarray of shape (n_samples,)
        Row weights.
    target : ndarray of shape (n_features, n_labels)
        C = Xᵀ diag(ω) D.
    """

    def __init__(self, X: Any, weight: FloatArray, target: FloatArray) -> None:
        self.X, self.weight = X, weight
        self.g = row_lengths(X)
        self.has_negative = holds_negative(X)
        self.positive, self.negative = parts_by_sign(X, self.has_negative)
        self._last: tuple[FloatArray, FloatArray] | None = None
        self._prepare(target, np.unique(self.g))

    def _prepare(self, target: FloatArray, values: FloatArray) -> None:
        """Keep the target and the values of g; of many values the least and the largest are enough."""
        self.up = np.maximum(target, 0.0)
        self.down = np.maximum(-target, 0.0)
        self.log_up, self.log_down = log_of(self.up), log_of(self.down)
        low, high = float(values[0]), float(values[-1])
        self.middle, self.half_width = 0.5 * (low + high), 0.5 * (high - low)
        self.smallest, self.largest = low, high
        self.values = values
        self.is_constant = high - low <= CONSTANT * high
        self._exponent = 0.0  # the κ that the last solution needed, and so the next one probably will

    def solve(self, P: FloatArray) -> FloatArray:
        """Return the increments (n_features, n_labels) for predictions P (n_samples, n_labels).

        Where the equation has no root, because the target of a feature with one sign is zero, the weight should go to
        infinity: the increment is cut at 10 / max g in that direction, which is still a step upwards. Features that are
        zero throughout get no increment.
        """
        return self._solve(P * self.weight[:, None])

    def _solve(self, masses: Any) -> FloatArray:
        """The increments; ``masses`` is what the sums over rows are taken of."""
        if self.is_constant:
            A, B = self._sums(masses)
            return self._without_root(A, B, _closed_form(A, B, self.up, self.down, self.middle))
        if len(self.values) <= FEW_VALUES:
            moments = self._moments_at_values(masses)
            A, B = (m.sum(axis=0) for m in moments)
            places = np.nonzero(self._has_root(A, B))
            delta = np.zeros_like(A)
            delta[places] = _newton_on_masses(
                (moments[0][:, places[0], places[1]], moments[1][:, places[0], places[1]]),
                self.values,
                self.log_up[places],
                self.log_down[places],
                delta[places],
            )
            return self._without_root(A, B, delta)
        return self._solve_by_interpolation(masses)

    def _solve_by_interpolation(self, masses: Any) -> FloatArray:
        limit = LARGEST_EXPONENT / self.half_width
        need = self._exponent
        while True:
            nodes, moments = self._moments_at_nodes(masses, node_count(need))
            A, B = (m.sum(axis=0) for m in moments)  # Σ_r ℓ_r = 1
            has_root = self._has_root(A, B)
            delta, error = self._newton_at_nodes(moments, nodes, limit, has_root)
            near = (error <= LARGEST_ERROR) & (np.abs(delta) < 0.99 * limit)
            largest = float(np.abs(delta[near & has_root]).max(initial=0.0)) * self.half_width
            if len(nodes) >= node_count(largest):
                break
            need = min(1.1 * largest, LARGEST_EXPONENT)
        self._exponent = largest
        far = np.argwhere(~near & has_root)
        if len(far):
            self._solve_far(masses, far, delta)
        return self._without_root(A, B, delta)

    def _sums(self, P: FloatArray) -> tuple[FloatArray, FloatArray]:
        return sums_by_sign(self.positive, self.negative, P)

    def _moments_at_values(self, P: FloatArray) -> tuple[FloatArray, FloatArray]:
        return node_moments(self.positive, self.negative, P, value_shares(self.g, self.values))

    def _moments_at_nodes(self, P: FloatArray, count: int) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
        """Chebyshev nodes and the moments there; the shares of the rows are kept, since they often serve again."""
        if self._last is None or len(self._last[0]) != count:
            self._last = chebyshev(self.g, self.middle, self.half_width, count)
        return self._last[0], node_moments(self.positive, self.negative, P, self._last[1])

    def _newton_at_nodes(
        self,
        moments: tuple[FloatArray, FloatArray],
        nodes: FloatArray,
        limit: float,
        has_root: npt.NDArray[np.bool_],
    ) -> tuple[FloatArray, FloatArray]:
        """Roots inside ±limit, where exponentials are harmless although moments have both signs."""
        offsets = nodes - self.middle

        def one_side(m: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
            terms = np.exp(np.multiply.outer(offsets, delta))
            terms *= m
            total, derivative = terms.sum(axis=0), np.tensordot(nodes, terms, axes=1)
            slope = np.divide(derivative, total, out=np.full_like(total, self.largest), where=total > TINY)
            return log_of(total) + self.middle * delta, np.clip(slope, self.smallest, self.largest)

        def evaluate(delta: FloatArray) -> tuple[FloatArray, FloatArray]:
            value, slope = one_side(moments[0], delta)
            if not self.has_negative:
                value = value - self.log_up
            else:
                value, slope = balance(value, slope, *one_side(moments[1], -delta), self.log_up, self.log_down)
            return np.where(has_root, value, 0.0), slope

        return newton(evaluate, np.zeros_like(self.up), limit)

    def _solve_far(self, P: FloatArray, far: npt.NDArray[np.intp], delta: FloatArray) -> None:
        """Roots for the features and labels in ``far``, with sums over all rows, put into ``delta``."""
        for some in np.array_split(far, -(-len(far) * len(self.g) // BLOCK_CELLS)):
            places = some[:, 0], some[:, 1]
            columns = self.X[:, places[0]]
            masses = P[:, places[1]] * (columns.toarray() if sparse.issparse(columns) else columns)
            by_sign = np.maximum(masses, 0), np.maximum(-masses, 0)
            delta[places] = _newton_on_masses(
                by_sign, self.g, self.log_up[places], self.log_down[places], delta[places]
            )

    def _has_root(self, A: FloatArray, B: FloatArray) -> npt.NDArray[np.bool_]:
        return ((A > 0) | (self.down > 0)) & ((B > 0) | (self.up > 0))

    def _without_root(self, A: FloatArray, B: FloatArray, delta: FloatArray) -> FloatArray:
        """Put in the increments of those weights whose equation has no root."""
        step = CAP / self.largest
        return np.where(self._has_root(A, B), delta, step * ((B > 0).astype(np.float64) - (A > 0)))


def row_lengths(X: Any) -> FloatArray:
    """g_i = Σ_k |x_ik|."""
    return np.asarray(abs(X).sum(axis=1), dtype=np.float64).ravel()


def holds_negative(X: Any) -> bool:
    """Whether any feature is negative."""
    return bool((X.data if sparse.issparse(X) else X).min(initial=0.0) < 0)


def parts_by_sign(X: Any, has_negative: bool) -> tuple[Any, Any]:
    """The positive part of X and, where there is one, the negative part, both at least zero."""
    if not has_negative:
        return X, None
    positive = X.maximum(0) if sparse.issparse(X) else np.maximum(X, 0)
    return positive, positive - X


def sums_by_sign(positive: Any, negative: Any, P: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A(0) and B(0)."""
    A = np.asarray(positive.T @ P)
    return A, np.zeros_like(A) if negative is None else np.asarray(negative.T @ P)


def value_shares(g: FloatArray, values: FloatArray) -> FloatArray:
    """Which rows have which value of g, as ones and zeros (n_samples, n_values)."""
    return np.asarray((g[:, None] == values).astype(np.float64))


def node_moments(positive: Any, negative: Any, P: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """m_r for the positive and the negative part of X, each of shape (n_nodes, n_features, n_labels)."""
    if sparse.issparse(positive):
        sums = [sums_by_sign(positive, negative, P * share[:, None]) for share in shares.T]
        return np.stack([A for A, _ in sums]), np.stack([B for _, B in sums])
    # all nodes in one product for each block of rows, which stays in the cache
    n_nodes, n_labels, n_features = shares.shape[1], P.shape[1], positive.shape[1]
    A = np.zeros((n_nodes * n_labels, n_features))
    B = np.zeros_like(A)
    columns, transposed = np.ascontiguousarray(shares.T)[:, None], np.ascontiguousarray(P.T)
    step = max(64, MOMENT_CELLS // (n_nodes * n_labels + 2 * n_features))
    for start in range(0, len(P), step):
        rows = slice(start, start + step)
        masses = (columns[:, :, rows] * transposed[:, rows]).reshape(n_nodes * n_labels, -1)
        A += masses @ positive[rows]
        if negative is not None:
            B += masses @ negative[rows]
    shape = (n_nodes, n_labels, n_features)
    return A.reshape(shape).transpose(0, 2, 1), B.reshape(shape).transpose(0, 2, 1)


def node_count(exponent: float) -> int:
    """Least number of Chebyshev nodes that interpolates exp(κt) on [−1, 1] to a relative error below 1e-14."""
    if exponent == 0:
        return 2
    counts = np.arange(2, 40)
    log_error = counts * np.log(exponent) + 2 * exponent - (counts - 1) * np.log(2) - special.gammaln(counts + 1)
    return int(counts[np.argmax(log_error <= np.log(NODE_ERROR))])


def chebyshev(g: FloatArray, middle: float, half_width: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Chebyshev nodes in the range of g, and the Lagrange polynomials of the nodes at each g (n_samples, n_nodes)."""
    nodes, at_nodes = chebyshev_nodes(middle, half_width, count)
    t = np.clip((g - middle) / half_width, -1.0, 1.0)
    at_rows = np.cos(np.multiply.outer(np.arccos(t), np.arange(count)))  # Chebyshev polynomials
    return nodes, at_rows @ at_nodes


def chebyshev_nodes(middle: float, half_width: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Chebyshev nodes, and the matrix that turns Chebyshev polynomials into Lagrange polynomials of the nodes."""
    angles = (np.arange(count) + 0.5) * np.pi / count
    at_nodes = np.cos(np.multiply.outer(np.arange(count), angles)) * (2.0 / count)
    at_nodes[0] *= 0.5
    return middle + half_width * np.cos(angles), at_nodes


def balance(
    log_A: FloatArray,
    slope_A: FloatArray,
    log_B: FloatArray,
    slope_B: FloatArray,
    log_up: FloatArray,
    log_down: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """φ and its slope from the logarithms of A, B, max(C, 0) and max(−C, 0), and the slopes of the first two."""
    left, right = np.logaddexp(log_A, log_down), np.logaddexp(log_B, log_up)
    slope = slope_A * np.exp(np.minimum(log_A - left, 0)) + slope_B * np.exp(np.minimum(log_B - right, 0))
    return left - right, np.maximum(slope, TINY)


def _newton_on_masses(
    masses: tuple[FloatArray, FloatArray], g: FloatArray, log_up: FloatArray, log_down: FloatArray, start: FloatArray
) -> FloatArray:
    """Roots from the masses ω p |x| of the positive and the negative part, one row for each value in g."""
    log_masses = log_of(masses[0]), log_of(masses[1])

    def one_side(log_mass: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        top, total, weighted = exponential_sums(log_mass, g, delta)
        return np.log(total) + top, weighted / total

    def evaluate(delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return balance(*one_side(log_masses[0], delta), *one_side(log_masses[1], -delta), log_up, log_down)

    return newton(evaluate, start, np.inf)[0]


def exponential_sums(
    log_masses: FloatArray, g: FloatArray, delta: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Largest exponent of m e^{δg}, and the sums of m e^{δg} and g m e^{δg} over rows divided by its exponential."""
    xp = namespace(g)
    exponents = log_masses + g[:, None] * delta
    top = xp.max(exponents, axis=0)
    terms = xp.exp(exponents - top)
    return top, xp.sum(terms, axis=0), g @ terms


def log_of(values: FloatArray) -> FloatArray:
    """Logarithms; of zero a number that is low enough, and finite."""
    if is_device_array(values):
        xp = namespace(values)
        return xp.where(values > 0, xp.log(xp.where(values > 0, values, 1.0)), LOG_OF_NOTHING)
    return np.asarray(np.log(values, out=np.full_like(values, LOG_OF_NOTHING), where=values > 0))


def _closed_form(A: FloatArray, B: FloatArray, up: FloatArray, down: FloatArray, g: float) -> FloatArray:
    """With one value of g, e^{δg} is the positive root of A z² − C z − B = 0."""
    root = np.sqrt((up + down) ** 2 + 4.0 * A * B)
    above, below = np.where(up >= down, up + root, 2.0 * B), np.where(up >= down, 2.0 * A, down + root)
    return np.log(np.maximum(above, TINY) / np.maximum(below, TINY)) / g


def newton(
    evaluate: Callable[[FloatArray], tuple[FloatArray, FloatArray]], start: FloatArray, limit: float
) -> tuple[FloatArray, FloatArray]:
    """Roots of increasing functions inside ±limit, and what the functions are there.

    Newton's method, with bisection where it would leave what is already known about a root.
    """
    delta = start
    low, high = np.full_like(start, -limit), np.full_like(start, limit)
    best, error = delta, np.full_like(start, np.inf)
    for _ in range(NEWTON_STEPS):
        value, slope = evaluate(delta)
        better = np.abs(value) < error
        best, error = np.where(better, delta, best), np.where(better, np.abs(value), error)
        low, high = np.where(value < 0, delta, low), np.where(value > 0, delta, high)
        following = delta - value / slope
        if np.all((error <= NEWTON_ERROR) | (np.abs(following - delta) <= NEWTON_ERROR * np.abs(delta))):
            break
        outside = ((following < low) | (following > high)) & np.isfinite(low) & np.isfinite(high)
        following[outside] = 0.5 * (low[outside] + high[outside])
        delta = np.clip(following, -limit, limit)
    return best, error
