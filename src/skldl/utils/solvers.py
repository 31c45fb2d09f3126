"""`minimise`: quasi-Newton minimisation of a smooth convex function, stopped by an estimate in the function's own unit.

Two methods share one loop: L-BFGS, which remembers the last steps, and the dense BFGS of Nocedal and Wright [1]_, which
keeps the whole inverse Hessian. Both take steps that satisfy the strong Wolfe conditions. SciPy's solvers stop by the
size of the gradient or by relative change; here a run ends when the function is estimated to lie within ``tol`` of its
minimum.

`minimisation` is the algorithm as a generator: it yields the points at which it needs the function, so that several
runs can be answered together, for example from one pass over rows that are read in chunks. `minimise` runs it for a
function of Python.

References
----------
.. [1] J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition, Springer 2006: algorithms 3.5, 3.6, 6.1, 7.5.
"""

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, cast

import numpy as np

from skldl.utils.typing import FloatArray

Objective = Callable[[FloatArray], tuple[float, FloatArray]]

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
"""Constants c₁ and c₂ of the Wolfe conditions, as Nocedal and Wright choose them for quasi-Newton methods."""
MAX_TRIALS = 30
"""Maximum number of step lengths in a line search, chosen by hand; the first one usually passes."""
MEMORY = 20
"""Number of steps that L-BFGS remembers; chosen by hand."""
MANY, MEMORY_OF_MANY = 10_000, 8
"""From this number of variables on it remembers fewer, since they take most of the memory: on sparse text features with
3,000 and 20,000 columns and 1e-8 <= alpha <= 1e-4 it took about as many evaluations, and less time."""
ROUNDING = 256 * float(np.finfo(np.float64).eps)
"""Relative rises of the loss up to this are rounding: it is a difference of larger terms. 256 was chosen by hand."""
MAX_LEVEL_STEPS = 5
"""Steps in a row (chosen by hand) that may lower neither the loss, because of rounding, nor the gradient by half."""


class Metric(Protocol):
    """The quadratic form M in which curvature is measured: near the identity times the Hessian, in some coordinates."""

    def primal(self, step: FloatArray) -> float:
        """Return sᵀ M s."""

    def dual(self, gradient: FloatArray) -> float:
        """Return gᵀ M⁻¹ g."""


class Euclidean:
    """M is the identity: for coordinates that are already whitened."""

    def primal(self, step: FloatArray) -> float:
        return float(step @ step)

    def dual(self, gradient: FloatArray) -> float:
        return float(gradient @ gradient)


Answer = tuple[float, FloatArray, Metric]
"""What the search needs to know about a point: the function, its gradient, and the metric there."""


@dataclass
class Minimum:
    """Where a run ended and what it cost.

    Attributes
    ----------
    x : ndarray
        The last point; no point before had a loss that is lower by more than rounding.
    loss : float
        The function there.
    metric : Metric
        The metric there.
    excess : float
        Estimate of how far the function lies above its minimum, not a bound: see `minimise`.
    converged : bool
        Whether ``excess`` fell below the tolerance.
    curvature : float
        μ, the smallest curvature among the last steps.
    n_iter, n_evaluations : int
        Steps taken, and evaluations of the function.
    loss_curve : list of float
        The function at the start and after each step.
    """

    x: FloatArray
    loss: float
    metric: Metric
    excess: float = np.inf
    converged: bool = False
    curvature: float = 1.0
    n_iter: int = 0
    n_evaluations: int = 1
    loss_curve: list[float] = field(default_factory=list)


Minimisation = Generator[FloatArray, Answer, Minimum]


def minimise(
    objective: Objective,
    start: FloatArray,
    *,
    method: Literal["lbfgs", "bfgs"] = "lbfgs",
    tol: float,
    max_iter: int,
    lower_bound: float = -np.inf,
    metric: Metric | None = None,
    curvature: float = 1.0,
    callback: Callable[[int, FloatArray], None] | None = None,
) -> Minimum:
    """Minimise a smooth convex function from a start, until it is estimated to be within ``tol`` of its minimum.

    Parameters
    ----------
    objective : callable
        From a vector to the function's value and gradient.
    start : ndarray of shape (n,)
        Where to begin.
    method : {"lbfgs", "bfgs"}, default="lbfgs"
        With the last 20 steps in memory, or with the whole inverse Hessian (n × n).
    tol : float
        Largest estimated excess over the minimum. The estimate is gᵀM⁻¹g / μ, where μ is the smallest curvature sᵀy /
        sᵀMs among the last 20 steps s and their changes y of the gradient. For a quadratic function whose smallest
        curvature is μ half of this is a bound; the other half is a margin for directions that the run has not met. In
        general it is no bound. The distance to ``lower_bound`` is one, and the smaller of the two counts.
    max_iter : int
        Largest number of steps.
    lower_bound : float, default=-inf
        A value that the function cannot fall below.
    metric : Metric, default=None
        M; None is the identity.
    curvature : float, default=1.0
        What to take for μ before the first step.
    callback : callable, default=None
        Called with the number of steps so far and the point, at the start and after each step.

    Returns
    -------
    Minimum
        The end of the run. A line search that finds no step, or more than `MAX_LEVEL_STEPS` steps in a row that lower
        neither the function nor its gradient, end it early: then rounding hides what is left, and ``converged`` is
        false.
    """
    metric = metric or Euclidean()
    search = minimisation(
        start,
        method=method,
        tol=tol,
        max_iter=max_iter,
        lower_bound=lower_bound,
        curvature=curvature,
        callback=callback,
    )
    x = next(search)
    while True:
        try:
            x = search.send((*objective(x), metric))
        except StopIteration as end:
            return cast(Minimum, end.value)


def minimisation(
    start: FloatArray,
    *,
    method: Literal["lbfgs", "bfgs"] = "lbfgs",
    tol: float,
    max_iter: int,
    lower_bound: float = -np.inf,
    curvature: float = 1.0,
    callback: Callable[[int, FloatArray], None] | None = None,
) -> Minimisation:
    """The search of `minimise`, as a generator: ``loss, gradient, metric = yield x``; it returns the `Minimum`."""
    memory = LimitedMemory(start.size) if method == "lbfgs" else DenseInverse(start.size)
    x = start
    loss, gradient, metric = yield x
    run = Minimum(x=x, loss=loss, metric=metric, curvature=curvature, loss_curve=[loss])
    curvatures: deque[float] = deque(maxlen=MEMORY)
    dual = metric.dual(gradient)
    least, least_dual, n_level = loss, dual, 0
    while True:
        if callback is not None:
            callback(run.n_iter, x)
        run.curvature = min(curvatures, default=curvature)
        run.excess = min(dual / run.curvature, loss - lower_bound)
        run.converged = run.excess <= tol
        if run.converged or run.n_iter == max_iter:
            return run
        here = _Trial(0.0, loss, 0.0, x, gradient, metric)
        found, n_trials = yield from _line_search(here, -memory.times(gradient), first_step=memory.first_step(gradient))
        run.n_evaluations += n_trials
        dual = found.metric.dual(found.gradient)
        # close to the minimum the loss no longer falls by more than its rounding, while the gradient still does
        fell = found.loss < least or dual < 0.5 * least_dual
        least, least_dual = min(least, found.loss), min(least_dual, dual)
        n_level = 0 if fell else n_level + 1
        if found.x is x or n_level > MAX_LEVEL_STEPS:
            return run  # what is left is rounding
        step, change = found.x - x, found.gradient - gradient
        if step @ change > 0:  # rounding errors can affect the last digits of a convex function
            memory.remember(step, change)
            curvatures.append(float(step @ change) / found.metric.primal(step))
        x, loss, gradient, metric = found.x, found.loss, found.gradient, found.metric
        run.x, run.loss, run.metric, run.n_iter = x, loss, metric, run.n_iter + 1
        run.loss_curve.append(loss)


class LimitedMemory:
    """Inverse Hessian from the last steps, applied by the two-loop recursion."""

    def __init__(self, size: int) -> None:
        n_pairs = MEMORY if size < MANY else MEMORY_OF_MANY
        self.pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=n_pairs)

    def remember(self, step: FloatArray, change: FloatArray) -> None:
        self.pairs.append((step, change, 1.0 / float(step @ change)))

    def times(self, gradient: FloatArray) -> FloatArray:
        if not self.pairs:
            return gradient
        direction = gradient.copy()
        alphas = []
        for step, change, rho in reversed(self.pairs):
            alpha = rho * float(step @ direction)
            direction -= alpha * change
            alphas.append(alpha)
        step, change, rho = self.pairs[-1]
        direction /= rho * float(change @ change)  # the start of the recursion: the identity times sᵀu / uᵀu
        for (step, change, rho), alpha in zip(self.pairs, reversed(alphas), strict=True):
            direction += (alpha - rho * float(change @ direction)) * step
        return direction

    def first_step(self, gradient: FloatArray) -> float:
        """First step length: one, and a step of at most unit length as long as the scale of the function is unknown."""
        return 1.0 if self.pairs else _unit_step(gradient)


class DenseInverse:
    """Inverse Hessian as a matrix: B ← (I − ρ s uᵀ) B (I − ρ u sᵀ) + ρ s sᵀ, from a scaled identity."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.inverse: FloatArray | None = None

    def remember(self, step: FloatArray, change: FloatArray) -> None:
        product = float(step @ change)
        if self.inverse is None:
            # the scale that L-BFGS starts from, too: Nocedal and Wright (6.20)
            self.inverse = np.eye(self.size) * (product / float(change @ change))
        turned = self.inverse @ change
        outer = np.multiply.outer(step, turned / product)
        self.inverse -= outer
        self.inverse -= outer.T
        self.inverse += np.multiply.outer(step, step * ((1.0 + float(change @ turned) / product) / product))

    def times(self, gradient: FloatArray) -> FloatArray:
        return gradient if self.inverse is None else self.inverse @ gradient

    def first_step(self, gradient: FloatArray) -> float:
        return 1.0 if self.inverse is not None else _unit_step(gradient)


def _unit_step(gradient: FloatArray) -> float:
    # tiny: the gradient may be zero
    return min(1.0, 1.0 / max(float(np.linalg.norm(gradient)), np.finfo(np.float64).tiny))


@dataclass
class _Trial:
    """The function along the search direction at one step length."""

    length: float
    loss: float
    slope: float
    x: FloatArray
    gradient: FloatArray
    metric: Metric


def _line_search(
    here: _Trial, direction: FloatArray, *, first_step: float
) -> Generator[FloatArray, Answer, tuple[_Trial, int]]:
    """Find a step that satisfies the strong Wolfe conditions, or return the best step met; and the number of trials.

    Once ``high`` is known, the interval between low and high contains such a step: ``low`` has the least value so far
    among the trials with sufficient decrease. Until then the step grows. New lengths are minima of the cubic through
    both ends.
    """
    start = replace(here, slope=float(here.gradient @ direction))
    slack = ROUNDING * abs(start.loss)
    low, high, length = start, None, first_step
    n_trials = 0
    while n_trials < MAX_TRIALS:
        n_trials += 1
        point = start.x + length * direction
        value, gradient, metric = yield point
        trial = _Trial(length, value, float(gradient @ direction), point, gradient, metric)
        too_high = not value <= start.loss + SUFFICIENT_DECREASE * length * start.slope + slack  # also true for nan
        if too_high or value > low.loss + slack:
            high = trial
        elif abs(trial.slope) <= -CURVATURE * start.slope:
            low = trial
            break
        else:
            if trial.slope > 0 if high is None else trial.slope * (high.length - low.length) >= 0:
                high = low
            low = trial
        if high is None:
            # still downhill: at least double the step, at most ten times it, as far as the cubic points
            ahead = _cubic_minimum(start, trial)
            length = min(max(ahead, 2.0 * length), 10.0 * length) if ahead > 0 else 10.0 * length  # nan included
        else:
            width = high.length - low.length
            if abs(width) <= 1e-12 * max(low.length, high.length):  # both ends are one point up to rounding
                break
            # the cubic may point to an end of the interval, where it would not shrink: stay a tenth away from both
            inner = _cubic_minimum(low, high)
            near, far = low.length + 0.1 * width, low.length + 0.9 * width
            length = min(max(inner, min(near, far)), max(near, far)) if np.isfinite(inner) else low.length + 0.5 * width
    return low, n_trials


def _cubic_minimum(a: _Trial, b: _Trial) -> float:
    """Minimum of the cubic that has the values and slopes of both trials (Nocedal and Wright, 3.59); nan if none."""
    if not (np.isfinite(b.loss) and np.isfinite(b.slope)):
        return np.nan
    width = b.length - a.length
    mean = a.slope + b.slope - 3.0 * (b.loss - a.loss) / width
    square = mean * mean - a.slope * b.slope
    if square < 0:
        return np.nan
    root = np.copysign(np.sqrt(square), width)
    bottom = b.slope - a.slope + 2.0 * root
    return b.length - width * (b.slope + root - mean) / bottom if bottom != 0 else np.nan
