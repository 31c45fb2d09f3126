"""From a training set to maximum entropy weights, for one alpha or for many that share one factorisation."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skldl.maxent._objective import CrossEntropy, row_weights
from skldl.maxent._partial_objective import PartialCrossEntropy, cross_entropy
from skldl.maxent._whitening import Factorisation, Whitening, factorise
from skldl.utils.missing import COMPLETE, informative_rows
from skldl.utils.solvers import Metric, Minimum, minimise
from skldl.utils.typing import FloatArray
from skldl.utils.warn import warn

LARGEST_DENSE_INVERSE = 20_000
SMALLEST_SHARE = 1e-11  # of a label in a mean prediction: a smaller one counts as zero
MAX_HALVINGS = 20


@dataclass(frozen=True)
class Settings:
    """How to minimise; the names are those of `skldl.SABFGS`."""

    fit_intercept: bool
    whiten: bool
    solver: Literal["lbfgs", "bfgs"]
    max_iter: int
    tol: float
    reading: str = COMPLETE  # of missing degrees
    n_threads: int = 1


@dataclass
class Weights:
    """Weights of the features (n_features, n_labels) and intercepts (n_labels,), both centred over labels.

    ``kept`` holds W and b after certain steps of the run, by number of steps; ``end`` the parameters of the design at
    which a whitened run ended.
    """

    W: FloatArray
    b: FloatArray
    run: Minimum
    kept: dict[int, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    end: FloatArray | None = None

    def warn_unless_converged(self, name: str, alpha: float, settings: Settings) -> None:
        """Say how far the run may be from the optimum, and which knob to turn."""
        if self.run.converged:
            return
        if self.run.n_iter == settings.max_iter:
            stopped = f"stopped at max_iter={settings.max_iter}"
            hint = "Raise max_iter"
            hint += "." if alpha > 0 else ", or set alpha > 0: without it the optimum can lie at infinity."
        else:
            stopped = f"found no lower loss after {self.run.n_iter} steps"
            hint = "Rounding hides what is left: raise tol, or set a larger alpha."
        warn(
            f"{name} with alpha={alpha:g} {stopped}, with a mean Kullback-Leibler divergence "
            f"estimated to be {self.run.excess:.1g} above the optimum (tol={settings.tol:g}). {hint}",
            ConvergenceWarning,
        )


class WhitenedMetric:
    """M in whitened coordinates: the identity at the start, and then what the latest mean prediction makes of it."""

    def __init__(self, objective: CrossEntropy, whitening: Whitening) -> None:
        self.objective, self.whitening = objective, whitening

    def ratio(self) -> FloatArray:
        """Diagonal of M."""
        now = self.whitening.diagonal(np.maximum(self.objective.mean_prediction, SMALLEST_SHARE))
        return np.divide(now, self.whitening.hessian, out=np.ones_like(now), where=self.whitening.hessian > 0).ravel()

    def primal(self, step: FloatArray) -> float:
        return float(step**2 @ self.ratio())

    def dual(self, gradient: FloatArray) -> float:
        return float(gradient**2 @ (1.0 / self.ratio()))


class PlainMetric(WhitenedMetric):
    """M on the weights of the features themselves, for the convergence test of a run that is not whitened."""

    def __init__(self, objective: CrossEntropy, whitening: Whitening, factorisation: Factorisation) -> None:
        super().__init__(objective, whitening)
        self.factorisation = factorisation

    def primal(self, step: FloatArray) -> float:
        objective = self.objective
        parameters = step.reshape(objective.shape)
        U = parameters[: objective.n_columns]
        return objective.squared_scores(parameters) + objective.alpha * float(np.vdot(U, U))

    def dual(self, gradient: FloatArray) -> float:
        of_design = self.factorisation.gradient_from_features(gradient.reshape(self.objective.shape))
        return super().dual(self.whitening.contract(of_design).ravel())


def fit_weights(
    X: Any,
    D: FloatArray,
    sample_weight: FloatArray | None,
    alpha: float,
    settings: Settings,
    *,
    start: tuple[FloatArray, FloatArray] | None = None,
    keep: Collection[int] = (),
) -> Weights:
    """Fit one alpha, from W and b in ``start`` (zero if None); ``keep`` says after which steps to keep W and b."""
    X, D, sample_weight = informative_rows(X, D, sample_weight, settings.reading)
    weight = row_weights(X.shape[0], sample_weight)
    factorisation = factorise(
        X,
        weight,
        fit_intercept=settings.fit_intercept,
        scale_free=alpha == 0 and settings.whiten,
        n_threads=settings.n_threads,
    )
    design = factorisation.design if settings.whiten else X
    objective = cross_entropy(
        design, D, weight, reading=settings.reading, alpha=alpha, fit_intercept=settings.fit_intercept
    )
    objective.n_threads = settings.n_threads
    return fit_objective(objective, factorisation, settings, start=start, keep=keep)


def fit_objective(
    objective: CrossEntropy,
    factorisation: Factorisation,
    settings: Settings,
    *,
    start: tuple[FloatArray, FloatArray] | None = None,
    keep: Collection[int] = (),
) -> Weights:
    """Fit one alpha, that of the objective; see `fit_weights`."""
    fit = _fit_whitened if settings.whiten else _fit_plain
    origin = None
    if start is not None:
        origin = factorisation.from_features(*start) if settings.whiten else _stack(*start, settings.fit_intercept)
    return fit(objective, factorisation, settings, origin, keep=keep)


def fit_path(
    X: Any, D: FloatArray, sample_weight: FloatArray | None, alphas: Sequence[float], settings: Settings
) -> Iterator[tuple[int, Weights]]:
    """Fit many alphas from one factorisation, from the largest to the smallest, each from the one before.

    Yields the place of each alpha in ``alphas`` and its weights. Zero is fitted alone: without a penalty the optimum
    need not be unique, and then it would depend on the start.
    """
    X, D, sample_weight = informative_rows(X, D, sample_weight, settings.reading)
    weight = row_weights(X.shape[0], sample_weight)
    shared = factorise(X, weight, fit_intercept=settings.fit_intercept, scale_free=False, n_threads=settings.n_threads)
    objective = cross_entropy(shared.design, D, weight, reading=settings.reading, fit_intercept=settings.fit_intercept)
    objective.n_threads = settings.n_threads
    yield from walk_path(objective, shared, alphas, settings, lambda: fit_weights(X, D, sample_weight, 0.0, settings))


def walk_path(
    objective: CrossEntropy,
    factorisation: Factorisation,
    alphas: Sequence[float],
    settings: Settings,
    fit_zero: Callable[[], Weights] | None = None,
) -> Iterator[tuple[int, Weights]]:
    """Fit many alphas, each from the one before; see `fit_path`.

    ``fit_zero`` fits without a penalty; None fits the same objective by the same factorisation.
    """
    origin, curvature = None, 1.0
    for place in sorted(range(len(alphas)), key=lambda place: -alphas[place]):
        objective.alpha = alphas[place]
        if alphas[place] == 0:
            yield place, fit_objective(objective, factorisation, settings) if fit_zero is None else fit_zero()
            continue
        weights = _fit_whitened(objective, factorisation, settings, origin, curvature=curvature)
        origin, curvature = weights.end, weights.run.curvature
        yield place, weights


def _fit_whitened(
    objective: CrossEntropy,
    factorisation: Factorisation,
    settings: Settings,
    origin: FloatArray | None,
    *,
    curvature: float = 1.0,
    keep: Collection[int] = (),
) -> Weights:
    """Minimise over the displacement from ``origin`` in whitened coordinates.

    From zero (``origin`` None) the first step goes to the weights whose predictions are nearest to the mean
    distribution: there the Hessian is about what it will be at the optimum.
    """
    n_labels = objective.shape[1]
    whitening = factorisation.whitening(objective.alpha, np.full(n_labels, 1.0 / n_labels))
    first = 0  # steps taken before the run
    if origin is None:
        origin, labels = _towards_mean(objective, whitening)
        first = int(origin.any())
    else:
        objective(origin)
        labels = objective.mean_prediction
    whitening = replace(whitening, labels=np.maximum(labels, SMALLEST_SHARE))

    def parameters(displacement: FloatArray) -> FloatArray:
        return origin + whitening.expand(displacement.reshape(objective.shape))

    def evaluate(displacement: FloatArray) -> tuple[float, FloatArray]:
        loss, gradient = objective(parameters(displacement))
        return loss, whitening.contract(gradient).ravel()

    def features(displacement: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _centred(*factorisation.to_features(parameters(displacement)))

    metric = WhitenedMetric(objective, whitening)
    weights = _run(
        evaluate,
        np.zeros(origin.size),
        objective,
        replace(settings, max_iter=settings.max_iter - first),
        metric,
        features,
        {steps - first for steps in keep},
        curvature=curvature,
    )
    weights.end = parameters(weights.run.x)
    if first:
        weights.run.n_iter += 1
        weights.run.loss_curve.insert(0, objective.loss_at_zero)
        weights.kept = {steps + 1: kept for steps, kept in weights.kept.items()}
    return weights


def _towards_mean(objective: CrossEntropy, whitening: Whitening) -> tuple[FloatArray, FloatArray]:
    """Parameters that predict nearly the mean distribution, better than uniform, and their mean prediction.

    Zero if the features allow no such thing.
    """
    n_labels = objective.shape[1]
    mean = np.maximum(objective.mean_target, SMALLEST_SHARE)
    goal = np.log(mean)
    goal -= goal.mean()
    origin = np.zeros(objective.shape)
    if objective.fit_intercept:
        origin[-1] = goal
        return origin, mean
    if isinstance(objective, PartialCrossEntropy):  # what lies between zero and the mean is not a matter of D alone
        return origin, np.full(n_labels, 1.0 / n_labels)
    u = whitening.solve(objective.column_means())  # X u is nearest to 1 on all rows
    at = objective.along(u, goal)
    for size in 0.5 ** np.arange(MAX_HALVINGS):
        loss, labels = at(size)
        loss += 0.5 * objective.alpha * size**2 * float(u @ u) * float(goal @ goal)
        if loss < np.log(n_labels):
            return np.multiply.outer(u, size * goal), labels
    return origin, np.full(n_labels, 1.0 / n_labels)


def _fit_plain(
    objective: CrossEntropy,
    factorisation: Factorisation,
    settings: Settings,
    origin: FloatArray | None,
    *,
    keep: Collection[int] = (),
) -> Weights:
    """Minimise over the weights of the features themselves; only the convergence test is whitened."""
    n_labels = objective.shape[1]
    whitening = factorisation.whitening(objective.alpha, np.full(n_labels, 1.0 / n_labels))

    def evaluate(flat: FloatArray) -> tuple[float, FloatArray]:
        loss, gradient = objective(flat.reshape(objective.shape))
        return loss, gradient.ravel()

    def features(flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        parameters = flat.reshape(objective.shape)
        n_features = objective.n_columns
        b = parameters[n_features] if objective.fit_intercept else np.zeros(n_labels)
        return _centred(parameters[:n_features], b)

    start = np.zeros(objective.shape) if origin is None else origin
    metric = PlainMetric(objective, whitening, factorisation)
    return _run(evaluate, start.ravel(), objective, settings, metric, features, keep)


def _run(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    objective: CrossEntropy,
    settings: Settings,
    metric: Metric,
    features: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    keep: Collection[int],
    *,
    curvature: float = 1.0,
) -> Weights:
    """Minimise, and turn the end and the steps to keep into weights of the features."""
    if settings.solver == "bfgs" and start.size > LARGEST_DENSE_INVERSE:
        raise ValueError(
            f"solver='bfgs' keeps a matrix of {start.size:,} × {start.size:,} numbers here, and takes at most "
            f"{LARGEST_DENSE_INVERSE:,} weights. Use solver='lbfgs', which reaches the same optimum."
        )
    kept: dict[int, tuple[FloatArray, FloatArray]] = {}

    def callback(n_iter: int, x: FloatArray) -> None:
        if n_iter in keep:
            kept[n_iter] = features(x)

    run = minimise(
        evaluate,
        start,
        method=settings.solver,
        tol=settings.tol,
        max_iter=settings.max_iter,
        lower_bound=objective.entropy,
        metric=metric,
        curvature=curvature,
        callback=callback,
    )
    return Weights(*features(run.x), run, kept)


def _stack(W: FloatArray, b: FloatArray, fit_intercept: bool) -> FloatArray:
    return np.vstack([W, b]) if fit_intercept else W


def _centred(W: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Take out the mean over labels, which changes no probability."""
    return W - W.mean(axis=1, keepdims=True), b - b.mean()
