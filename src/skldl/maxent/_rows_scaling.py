"""Improved iterative scaling over rows that are read in chunks: about one pass for each iteration.

A pass at weights θ gives the loss and the moments that the equations of the next increments probably need; further
passes are read only where it turns out that more nodes, or sums over all rows, are needed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from skldl.chunks import Chunk, Rows
from skldl.chunks._rows import Sums
from skldl.maxent._iterations import Scaling, State
from skldl.maxent._objective import weighted_softmax
from skldl.maxent._scaling import (
    BLOCK_CELLS,
    FEW_VALUES,
    LOG_OF_NOTHING,
    ScalingEquations,
    balance,
    chebyshev,
    chebyshev_nodes,
    exponential_sums,
    holds_negative,
    log_of,
    newton,
    node_count,
    node_moments,
    parts_by_sign,
    row_lengths,
    sums_by_sign,
    value_shares,
)
from skldl.utils.typing import FloatArray


@dataclass(frozen=True)
class Nodes:
    """How the moments of a pass are taken: "sums", "values" or "nodes", with what is needed for that."""

    kind: str
    has_negative: bool
    values: FloatArray
    middle: float = 0.0
    half_width: float = 1.0
    count: int = 0

    def moments(self, X: Any, P: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Moments of some rows with masses P."""
        positive, negative = parts_by_sign(X, self.has_negative)
        if self.kind == "sums":
            return sums_by_sign(positive, negative, P)
        g = row_lengths(X)
        if self.kind == "values":
            return node_moments(positive, negative, P, value_shares(g, self.values))
        return node_moments(positive, negative, P, chebyshev(g, self.middle, self.half_width, self.count)[1])


@dataclass
class Masses:
    """The predictions at θ: known by their moments, and otherwise computed again in a pass."""

    theta: FloatArray
    nodes: Nodes
    moments: tuple[FloatArray, FloatArray]


class RowsScaling(Scaling):
    """`Scaling` of rows in chunks."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        total, target, filled, values, negative = rows.sum(_scan, merge=_merge_scans)
        self.total = float(total)
        self.target = target / total
        self.equations: RowsEquations | None = RowsEquations(self, values, bool(negative)) if filled else None

    def state(self, theta: FloatArray) -> State:
        """Loss and moments at θ, in one pass; rows that are zero throughout are predicted to be uniform."""
        nodes = Nodes("none", False, np.zeros(0)) if self.equations is None else self.equations.next_nodes()
        log_partition, moments = self.moments(theta, nodes)
        loss = log_partition - float(np.vdot(self.target, theta))
        return State(theta, Masses(theta, nodes, moments), loss)

    def moments(self, theta: FloatArray, nodes: Nodes) -> tuple[float, tuple[FloatArray, FloatArray]]:
        """Log-partition at θ, and the moments of the positive and of the negative part of X: one pass."""
        log_partition, *moments = self.rows.sum(_pass, theta, self.total, nodes, labels=False)
        return float(log_partition), (moments[0], moments[1])

    def far_sums(self, theta: FloatArray, far: npt.NDArray[np.intp], delta: FloatArray) -> Sums:
        """`exponential_sums` over all rows for some features and labels, of both signs: one pass."""
        return self.rows.sum(_far_pass, theta, self.total, far, delta, merge=merge_far, labels=False)


class RowsEquations(ScalingEquations):
    """`ScalingEquations` of rows that are seen in passes only: those of ``scaling``."""

    def __init__(self, scaling: RowsScaling, values: FloatArray, has_negative: bool) -> None:
        self.scaling, self.has_negative = scaling, has_negative
        self._prepare(scaling.target, values)

    def next_nodes(self, count: int | None = None) -> Nodes:
        """How the moments are taken in the next pass."""
        if self.is_constant:
            return Nodes("sums", self.has_negative, self.values)
        if len(self.values) <= FEW_VALUES:
            return Nodes("values", self.has_negative, self.values)
        count = node_count(self._exponent) if count is None else count
        return Nodes("nodes", self.has_negative, np.zeros(0), self.middle, self.half_width, count)

    def solve(self, P: Any) -> FloatArray:
        """Return the increments for the predictions of a `State`."""
        return self._solve(P)

    def _sums(self, P: Any) -> tuple[FloatArray, FloatArray]:
        return P.moments

    def _moments_at_values(self, P: Any) -> tuple[FloatArray, FloatArray]:
        return P.moments

    def _moments_at_nodes(self, P: Any, count: int) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
        if P.nodes.count != count:
            P.nodes = self.next_nodes(count)
            P.moments = self.scaling.moments(P.theta, P.nodes)[1]
        return chebyshev_nodes(self.middle, self.half_width, count)[0], P.moments

    def _solve_far(self, P: Any, far: npt.NDArray[np.intp], delta: FloatArray) -> None:
        """Roots with sums over all rows: one pass for each step of Newton's method."""
        places = far[:, 0], far[:, 1]

        def evaluate(at: FloatArray) -> tuple[FloatArray, FloatArray]:
            top, total, weighted = self.scaling.far_sums(P.theta, far, at)
            value, slope = np.log(total) + top, weighted / total
            return balance(value[0], slope[0], value[1], slope[1], self.log_up[places], self.log_down[places])

        delta[places] = newton(evaluate, delta[places], np.inf)[0]


def _scan(chunk: Chunk) -> Sums:
    """Weight, Xᵀ diag(w) D, whether any row is not zero, the first values of g and its ends, and negative features."""
    X, weight = chunk.X.astype(np.float64, copy=False), chunk.weights()
    g = row_lengths(X)
    target = np.asarray(X.T @ (np.asarray(chunk.D) * weight[:, None]))
    return float(weight.sum()), target, bool(g.any()), few_values(np.unique(g[g > 0])), holds_negative(X)


def few_values(values: FloatArray) -> FloatArray:
    """All values if they are few; else so many that it is seen, the least and the largest among them."""
    if len(values) <= FEW_VALUES:
        return values
    return np.concatenate([values[:FEW_VALUES], values[-1:]])


def _merge_scans(total: Sums, part: Sums) -> Sums:
    weight, target, filled, values, negative = total
    values = few_values(np.unique(np.concatenate([values, part[3]])))
    return weight + part[0], target + part[1], filled or part[2], values, negative or part[4]


def _predictions(X: Any, theta: FloatArray, weight: FloatArray) -> tuple[float, FloatArray]:
    """Σ ω ln Σ exp s and ω p (n_samples, n_labels)."""
    scores = np.ascontiguousarray(np.asarray(X @ theta).T)
    return weighted_softmax(scores, weight), scores.T


def _pass(chunk: Chunk, theta: FloatArray, total: float, nodes: Nodes) -> Sums:
    """What one chunk contributes to the loss at θ and to the moments."""
    X = chunk.X.astype(np.float64, copy=False)
    log_partition, P = _predictions(X, theta, chunk.weights() / total)
    if nodes.kind == "none":
        return log_partition, np.zeros(0), np.zeros(0)
    A, B = nodes.moments(X, P)
    return log_partition, np.ascontiguousarray(A), np.ascontiguousarray(B)


def _far_pass(chunk: Chunk, theta: FloatArray, total: float, far: npt.NDArray[np.intp], delta: FloatArray) -> Sums:
    """What one chunk contributes to A(δ) and B(δ) of some features and labels, with their derivatives."""
    X = chunk.X.astype(np.float64, copy=False)
    P = _predictions(X, theta, chunk.weights() / total)[1]
    step = max(1, BLOCK_CELLS // len(far))
    sums: Sums | None = None
    for first in range(0, len(P), step):
        rows = X[first : first + step]
        columns = rows[:, far[:, 0]]
        masses = P[first : first + step][:, far[:, 1]] * (columns.toarray() if sparse.issparse(columns) else columns)
        g = row_lengths(rows)
        sides = [exponential_sums(log_of(np.maximum(sign * masses, 0)), g, sign * delta) for sign in (1.0, -1.0)]
        part = tuple(np.stack([side[k] for side in sides]) for k in range(3))
        sums = part if sums is None else merge_far(sums, part)
    assert sums is not None
    return sums


def merge_far(total: Sums, part: Sums) -> Sums:
    """Put two sums of exponentials together, each divided by the exponential of its largest exponent."""
    top = np.maximum(total[0], part[0])
    own, other = (np.exp(np.maximum(one[0] - top, LOG_OF_NOTHING)) for one in (total, part))
    return top, total[1] * own + part[1] * other, total[2] * own + part[2] * other
