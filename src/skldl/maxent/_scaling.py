"""The increments of improved iterative scaling, for all weights at once.

For feature k and label j the increment δ solves equation 8 of Geng (2016), with rows weighted by ω,

    Σ_i ω_i p_ij x_ik exp(δ sign(x_ik) g_i) = Σ_i ω_i d_ij x_ik,        g_i = Σ_k |x_ik|.

Split by sign this is A(δ) − B(δ) = C, with A = Σ_{x>0} ω p x e^{δg} rising and B = Σ_{x<0} ω p |x| e^{−δg} falling, so there is
at most one root. Newton's method finds it on φ(δ) = ln(A + max(−C, 0)) − ln(B + max(C, 0)), whose slope lies between the
smallest g and twice the largest: φ is nearly a straight line, and no exponential overflows.

How A and B are computed decides the cost:

- one value of g: closed form;
- few values of g: sums over the rows of each value;
- any g: e^{δg} is interpolated at Chebyshev nodes γ_r of [min g, max g], so that A(δ) = Σ_r m_r e^{δγ_r} with
  m_r = Σ_i ω_i p_ij x_ik ℓ_r(g_i): a few matrix products, and then Newton's method no longer sees the rows. With half width
  h of the interval and κ = |δ|h, R nodes leave a relative error of at most κ^R e^{2κ} / (2^{R−1} R!); R is the least that
  keeps it below 1e-14;
- weights with κ > 3, where nodes lose digits: sums over all rows, in blocks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

FloatArray = npt.NDArray[np.floating]

CONSTANT = 1e-13  # relative range below which g is one value up to rounding
FEW_VALUES = 8
LARGEST_EXPONENT = 3.0
NODE_ERROR = 1e-14
NEWTON_STEPS = 60
NEWTON_ERROR = 1e-14
CAP = 10.0
BLOCK_CELLS = 1 << 20
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
        self.up = np.maximum(target, 0.0)
        self.down = np.maximum(-target, 0.0)
        self.g = np.asarray(abs(X).sum(axis=1), dtype=np.float64).ravel()
        has_negative = (X.data if sparse.issparse(X) else X).min(initial=0.0) < 0
        self.positive = X.maximum(0) if has_negative and sparse.issparse(X) else np.maximum(X, 0) if has_negative else X
        self.negative = self.positive - X if has_negative else None
        low, high = float(self.g.min()), float(self.g.max())
        self.middle, self.half_width = 0.5 * (low + high), 0.5 * (high - low)
        self.largest = high
        self.values = np.unique(self.g)
        self.is_constant = high - low <= CONSTANT * high
        self._nodes_for = 0.0  # the κ that the next solution will probably need

    def solve(self, P: FloatArray) -> FloatArray:
        """Return the increments (n_features, n_labels) for predictions P (n_samples, n_labels).

        Where the equation has no root, because the target of a feature with one sign is zero, the weight should go to
        infinity: the increment is cut at 10 / max g in that direction, which is still a step upwards. Features that are
        zero throughout get no increment.
        """
        P = P * self.weight[:, None]
        if self.is_constant:
            A, B = self._sums(P)
            return self._without_root(A, B, _closed_form(A, B, self.up, self.down, self.middle))
        if len(self.values) <= FEW_VALUES:
            shares = (self.g[:, None] == self.values).astype(np.float64)
            moments = self._moments(P, shares)
            return self._without_root(
                *(m.sum(axis=0) for m in moments), self._newton_at_nodes(moments, self.values, np.inf)
            )
        return self._solve_by_interpolation(P)

    def _solve_by_interpolation(self, P: FloatArray) -> FloatArray:
        limit = LARGEST_EXPONENT / self.half_width
        need = self._nodes_for
        while True:
            count = node_count(need)
            nodes, shares = _chebyshev(self.g, self.middle, self.half_width, count)
            moments = self._moments(P, shares)
            delta = self._newton_at_nodes(moments, nodes, limit)
            A, B = (m.sum(axis=0) for m in moments)  # Σ_r ℓ_r = 1
            delta = self._without_root(A, B, delta)
            inside = np.abs(delta) < limit
            largest = float(np.abs(delta[inside]).max(initial=0.0)) * self.half_width
            if count >= node_count(largest):
                break
            need = min(1.1 * largest, LARGEST_EXPONENT)
        self._nodes_for = largest
        far = np.argwhere(~inside & self._has_root(A, B))
        for some in np.array_split(far, max(1, -(-len(far) * len(self.g) // BLOCK_CELLS))):
            delta[some[:, 0], some[:, 1]] = self._solve_exactly(P, some, delta[some[:, 0], some[:, 1]])
        return delta

    def _sums(self, P: FloatArray) -> tuple[FloatArray, FloatArray]:
        A = np.asarray(self.positive.T @ P)
        return A, np.zeros_like(A) if self.negative is None else np.asarray(self.negative.T @ P)

    def _moments(self, P: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """m_r for the positive and the negative part of X, each of shape (n_nodes, n_features, n_labels)."""
        sums = [self._sums(P * share[:, None]) for share in shares.T]
        return np.stack([A for A, _ in sums]), np.stack([B for _, B in sums])

    def _newton_at_nodes(self, moments: tuple[FloatArray, FloatArray], nodes: FloatArray, limit: float) -> FloatArray:
        offsets = nodes - self.middle

        def one_side(m: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
            terms = m * np.exp(np.multiply.outer(offsets, delta))
            total = np.maximum(terms.sum(axis=0), TINY)
            return np.log(total) + self.middle * delta, np.tensordot(nodes, terms, axes=1) / total

        def evaluate(delta: FloatArray) -> tuple[FloatArray, FloatArray]:
            log_A, slope_A = one_side(moments[0], delta)
            if self.negative is None:
                return log_A - np.log(np.maximum(self.up, TINY)), np.maximum(slope_A, TINY)
            log_B, slope_B = one_side(moments[1], -delta)
            return _balance(log_A, slope_A, log_B, slope_B, self.up, self.down)

        return _newton(evaluate, np.zeros_like(self.up), limit)

    def _solve_exactly(self, P: FloatArray, places: npt.NDArray[np.intp], start: FloatArray) -> FloatArray:
        """Solve for the (feature, label) pairs in ``places`` with sums over all rows."""
        columns = self.X[:, places[:, 0]]
        x = columns.toarray() if sparse.issparse(columns) else columns
        masses = P[:, places[:, 1]] * np.abs(x)
        up, down = (side[places[:, 0], places[:, 1]] for side in (self.up, self.down))

        def one_side(kept: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
            exponents = np.multiply.outer(self.g, delta)
            top = exponents.max(axis=0)
            terms = kept * np.exp(exponents - top)
            total = np.maximum(terms.sum(axis=0), TINY)
            return np.log(total) + top, (self.g @ terms) / total

        def evaluate(delta: FloatArray) -> tuple[FloatArray, FloatArray]:
            log_A, slope_A = one_side(np.where(x > 0, masses, 0.0), delta)
            log_B, slope_B = one_side(np.where(x < 0, masses, 0.0), -delta)
            return _balance(log_A, slope_A, log_B, slope_B, up, down)

        return _newton(evaluate, start, np.inf)

    def _has_root(self, A: FloatArray, B: FloatArray) -> npt.NDArray[np.bool_]:
        return ((A > 0) | (self.down > 0)) & ((B > 0) | (self.up > 0))

    def _without_root(self, A: FloatArray, B: FloatArray, delta: FloatArray) -> FloatArray:
        """Put in the increments of those weights whose equation has no root."""
        step = CAP / self.largest
        return np.where(self._has_root(A, B), delta, step * ((B > 0).astype(np.float64) - (A > 0)))


def node_count(exponent: float) -> int:
    """Least number of Chebyshev nodes that interpolates exp(κt) on [−1, 1] to a relative error below 1e-14."""
    if exponent == 0:
        return 2
    counts = np.arange(2, 40)
    log_error = counts * np.log(exponent) + 2 * exponent - (counts - 1) * np.log(2) - special.gammaln(counts + 1)
    return int(counts[np.argmax(log_error <= np.log(NODE_ERROR))])


def _chebyshev(g: FloatArray, middle: float, half_width: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Chebyshev nodes in the range of g, and the Lagrange polynomials of the nodes at each g (n_samples, n_nodes)."""
    angles = (np.arange(count) + 0.5) * np.pi / count
    t = np.clip((g - middle) / half_width, -1.0, 1.0)
    orders = np.arange(count)
    at_rows = np.cos(np.multiply.outer(np.arccos(t), orders))  # Chebyshev polynomials
    at_nodes = np.cos(np.multiply.outer(orders, angles)) * (2.0 / count)
    at_nodes[0] *= 0.5
    return middle + half_width * np.cos(angles), at_rows @ at_nodes


def _balance(
    log_A: FloatArray, slope_A: FloatArray, log_B: FloatArray, slope_B: FloatArray, up: FloatArray, down: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """φ and its slope from the logarithms of A and B and their logarithmic slopes."""
    with np.errstate(divide="ignore"):
        left, right = np.logaddexp(log_A, np.log(down)), np.logaddexp(log_B, np.log(up))
    slope = slope_A * np.exp(log_A - left) + slope_B * np.exp(log_B - right)
    return left - right, np.maximum(slope, TINY)


def _closed_form(A: FloatArray, B: FloatArray, up: FloatArray, down: FloatArray, g: float) -> FloatArray:
    """With one value of g, e^{δg} is the positive root of A z² − C z − B = 0."""
    root = np.sqrt((up + down) ** 2 + 4.0 * A * B)
    above, below = np.where(up >= down, up + root, 2.0 * B), np.where(up >= down, 2.0 * A, down + root)
    return np.log(np.maximum(above, TINY) / np.maximum(below, TINY)) / g


def _newton(
    evaluate: Callable[[FloatArray], tuple[FloatArray, FloatArray]], start: FloatArray, limit: float
) -> FloatArray:
    """Roots of increasing functions inside ±limit, by Newton's method kept inside what is known about each root."""
    delta = start
    low, high = np.full_like(start, -limit), np.full_like(start, limit)
    best, least = delta, np.full_like(start, np.inf)
    for _ in range(NEWTON_STEPS):
        value, slope = evaluate(delta)
        better = np.abs(value) < least
        best, least = np.where(better, delta, best), np.where(better, np.abs(value), least)
        low, high = np.where(value < 0, delta, low), np.where(value > 0, delta, high)
        with np.errstate(over="ignore"):
            following = delta - value / slope
        if np.all((least <= NEWTON_ERROR) | (np.abs(following - delta) <= NEWTON_ERROR * np.abs(delta))):
            break
        outside = (following < low) | (following > high)
        following = np.where(outside & np.isfinite(low) & np.isfinite(high), 0.5 * (low + high), following)
        delta = np.clip(following, -limit, limit)
    return best
