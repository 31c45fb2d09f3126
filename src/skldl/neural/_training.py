"""Training loops of a network whose weights are one flat vector, of NumPy or on a device, and what ends them."""

from collections.abc import Callable, Collection, Iterator

import numpy as np
import numpy.typing as npt
from scipy import optimize

from skldl.utils.arrays import copy_of, namespace
from skldl.utils.typing import FloatArray

Objective = Callable[..., tuple[float, FloatArray]]


class Watch:
    """Keep the losses and the best weights, and say when to stop."""

    def __init__(
        self, held_out: Callable[[FloatArray], float] | None, patience: int, tol: float, wanted: Collection[int]
    ) -> None:
        self.losses: list[float] = []
        self.scores: list[float] = []
        self.snapshots: dict[int, FloatArray] = {}
        self.best = np.inf
        self.best_theta: FloatArray | None = None
        self._held_out = held_out
        self._patience, self._tol, self._wanted = patience, tol, wanted
        self._since_best = 0

    def start(self, theta: FloatArray, loss: float) -> None:
        """Take the weights before the first iteration into account."""
        self.best = loss if self._held_out is None else self._held_out(theta)
        self.best_theta = copy_of(theta)

    def step(self, theta: FloatArray, loss: float) -> bool:
        """Record an iteration; true if nothing got better for too long."""
        self.losses.append(loss)
        value, least = loss, self._tol
        if self._held_out is not None:
            value, least = self._held_out(theta), 0.0
            self.scores.append(-value)
        if value < self.best - least:
            self.best, self._since_best = value, 0
            self.best_theta = copy_of(theta)
        else:
            self._since_best += 1
        if len(self.losses) in self._wanted:
            self.snapshots[len(self.losses)] = copy_of(self.result(theta))
        return self._since_best >= self._patience

    def result(self, theta: FloatArray) -> FloatArray:
        """The weights to keep: the best on held-out rows, else the last."""
        return theta if self._held_out is None or self.best_theta is None else self.best_theta


def run_lbfgs(
    objective: Objective, theta: FloatArray, max_iter: int, tol: float, watch: Watch
) -> tuple[FloatArray, bool]:
    """Minimise with L-BFGS on all rows; one step of the watch for each iteration."""
    stopped = False

    def callback(intermediate_result: optimize.OptimizeResult) -> None:
        nonlocal stopped
        stopped = watch.step(intermediate_result.x, float(intermediate_result.fun))
        if stopped:
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 100 * max_iter, "ftol": tol, "gtol": 0.0, "maxcor": 20}
    outcome = optimize.minimize(objective, theta, jac=True, method="L-BFGS-B", callback=callback, options=options)
    out_of_iterations = outcome.status == 1  # 0 and 2: no step lowers the objective any more
    return np.asarray(outcome.x), stopped or not out_of_iterations


def run_adam(
    objective: Objective,
    theta: FloatArray,
    max_iter: int,
    batches: Callable[[], Iterator[npt.NDArray[np.intp]]],
    learning_rate: float,
    watch: Watch,
) -> tuple[FloatArray, bool]:
    """Minimise with Adam on batches; one step of the watch for each pass over the rows."""
    theta, xp = copy_of(theta), namespace(theta)
    first, second, n_steps = xp.zeros_like(theta), xp.zeros_like(theta), 0
    for _ in range(max_iter):
        losses = []
        for rows in batches():
            loss, gradient = objective(theta, rows)
            losses.append(loss)
            n_steps += 1
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            step = float(learning_rate * np.sqrt(1 - 0.999**n_steps) / (1 - 0.9**n_steps))
            theta -= step * first / (xp.sqrt(second) + 1e-8)
        if watch.step(theta, float(np.mean([float(loss) for loss in losses]))):
            return theta, True
    return theta, False
