"""Improved iterative scaling on one training set, with or without extrapolation."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldl.maxent._objective import row_weights, weighted_softmax
from skldl.maxent._scaling import ScalingEquations
from skldl.utils.typing import FloatArray

SHORTEST_EXTRAPOLATION = 1.5
LARGEST_LOSS = 1e9
"""Of a larger loss at the start the rounding error exceeds 1e-7."""


@dataclass
class State:
    """Weights (n_features, n_labels), the loss −T, and what the equations need of the predictions there."""

    theta: FloatArray
    P: Any
    loss: float


class Scaling:
    """Improved iterative scaling on one training set."""

    def __init__(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        weight = row_weights(X.shape[0], sample_weight)
        X = X.astype(np.float64, copy=False)
        self.target = np.asarray(X.T @ (D * weight[:, None]))
        # a row of zeros has no part in the equations, and its prediction stays uniform
        filled = np.asarray(abs(X).sum(axis=1)).ravel() > 0
        is_empty = not filled.any()
        self.X, self.weight = (X, weight) if is_empty or filled.all() else (X[filled], weight[filled])
        self.constant_loss = (1.0 - float(self.weight.sum())) * float(np.log(D.shape[1]))
        self.equations: ScalingEquations | None = (
            None if is_empty else ScalingEquations(self.X, self.weight, self.target)
        )

    def state(self, theta: FloatArray) -> State:
        scores = np.ascontiguousarray(np.asarray(self.X @ theta).T)
        log_partition = weighted_softmax(scores, self.weight)
        P = (scores / self.weight).T
        return State(theta, P, log_partition - float(np.vdot(self.target, theta)) + self.constant_loss)

    def improve(self, state: State) -> State:
        """One iteration of algorithm 1."""
        assert self.equations is not None
        return self.state(state.theta + self.equations.solve(state.P))

    def extrapolate(self, first: State, second: State, third: State) -> State:
        """SQUAREM: follow the last two steps further, if that is better than where they ended."""
        step = second.theta - first.theta
        bend = third.theta - second.theta - step
        length = float(np.linalg.norm(bend))
        factor = float(np.linalg.norm(step)) / length if length > 0 else 1.0
        while factor > SHORTEST_EXTRAPOLATION:  # at 1 it is the third state itself
            candidate = self.state(first.theta + 2.0 * factor * step + factor**2 * bend)
            if candidate.loss < third.loss:
                return candidate
            factor = 0.5 * (factor + 1.0)
        return third


@dataclass
class Run:
    """Where the iterations ended, the loss at the start and after each, and the weights that were to be kept."""

    state: State
    loss_curve: list[float]
    converged: bool
    kept: dict[int, FloatArray]


def run_iterations(
    scaling: Scaling, theta: FloatArray, max_iter: int, tol: float, accelerate: bool, keep: Collection[int] = ()
) -> Run:
    """Iterate until the gain of one iteration falls below ``tol``; keep the weights after some iterations."""
    state = scaling.state(theta)
    if not abs(state.loss) <= LARGEST_LOSS:
        raise ValueError(
            f"init gives a loss of {state.loss:.3g}, in which rounding hides what an iteration gains. Begin at smaller "
            "weights, or multiply X by a power of ten, so that its features are of the order of 1."
        )
    curve = [state.loss]
    kept = {}
    converged = scaling.equations is None
    history = [state]
    while not converged and len(curve) <= max_iter:
        before, state = state, scaling.improve(state)
        converged = before.loss - state.loss < tol
        if state.loss > before.loss:  # only rounding can do this: stay where it was better
            state = before
        if accelerate:  # a state holds a prediction for every row: none is kept without need
            history.append(state)
            if len(history) == 3 and not converged:
                state = scaling.extrapolate(*history)
                history = [state]
        curve.append(state.loss)
        if len(curve) - 1 in keep:
            kept[len(curve) - 1] = state.theta
    return Run(state, curve, converged, kept)
