"""From a training set to maximum entropy weights, for one alpha or for many that share one factorisation."""

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from skldl._solvers import Minimum, minimise
from skldl.maxent._objective import CrossEntropy, row_weights
from skldl.maxent._whitening import Factorisation, Whitening, factorise, mean_curvature

FloatArray = npt.NDArray[np.floating]

LARGEST_DENSE_INVERSE = 20_000
SMALLEST_SHARED_ALPHA = 1e-12


@dataclass(frozen=True)
class Settings:
    """How to minimise; the names are those of `skldl.SABFGS`."""

    fit_intercept: bool
    whiten: bool
    solver: Literal["lbfgs", "bfgs"]
    max_iter: int
    tol: float


@dataclass
class Weights:
    """Weights of the features (n_features, n_labels) and intercepts (n_labels,), both centred over labels.

    ``kept`` holds W and b after certain steps of the run, by number of steps.
    """

    W: FloatArray
    b: FloatArray
    run: Minimum
    kept: dict[int, tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    def warn_unless_converged(self, name: str, alpha: float, settings: Settings) -> None:
        """Say how far the run may be from the optimum, and which knob to turn."""
        if self.run.converged:
            return
        if self.run.n_iter == settings.max_iter:
            stopped = f"stopped at max_iter={settings.max_iter}"
            cure = "Raise max_iter"
            cure += "." if alpha > 0 else ", or set alpha > 0: without it the optimum can lie at infinity."
        else:
            stopped = f"found no lower loss after {self.run.n_iter} steps"
            cure = "Rounding hides what is left: raise tol, or set a larger alpha."
        warnings.warn(
            f"{name} with alpha={alpha:g} {stopped}, with a mean Kullback-Leibler divergence up to "
            f"{self.run.excess:.1g} above the optimum (tol={settings.tol:g}). {cure}",
            ConvergenceWarning,
            stacklevel=2,
        )


class PlainMetric:
    """M = v G + alpha I on the plain parameters, for the convergence test of a run that is not whitened."""

    def __init__(self, objective: CrossEntropy, factorisation: Factorisation, whitening: Whitening) -> None:
        self.objective, self.factorisation, self.whitening = objective, factorisation, whitening

    def primal(self, step: FloatArray) -> float:
        objective = self.objective
        parameters = step.reshape(objective.shape)
        U = parameters[: objective.X.shape[1]]
        scores = objective.X @ U
        if objective.fit_intercept:
            scores = scores + parameters[-1]
        scores *= scores
        data = float(objective.weight @ scores.sum(axis=1))
        return self.factorisation.curvature * data + objective.alpha * float(np.vdot(U, U))

    def dual(self, gradient: FloatArray) -> float:
        of_design = self.factorisation.gradient_from_features(gradient.reshape(self.objective.shape))
        whitened = self.whitening.contract(of_design)
        return float(np.vdot(whitened, whitened))


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
    weight = row_weights(X.shape[0], sample_weight)
    factorisation = factorise(
        X,
        weight,
        mean_curvature(D, weight),
        fit_intercept=settings.fit_intercept,
        scale_free=alpha == 0 and settings.whiten,
    )
    fit = _fit_whitened if settings.whiten else _fit_plain
    design = factorisation.design if settings.whiten else X
    objective = CrossEntropy(design, D, weight, alpha=alpha, fit_intercept=settings.fit_intercept)
    if start is None:
        origin = np.zeros(objective.shape)
    else:
        origin = factorisation.from_features(*start) if settings.whiten else _stack(*start, settings.fit_intercept)
    return fit(objective, factorisation, settings, origin, keep=keep)


def fit_path(
    X: Any, D: FloatArray, sample_weight: FloatArray | None, alphas: Sequence[float], settings: Settings
) -> Iterator[tuple[int, Weights]]:
    """Fit many alphas from one factorisation, from the largest to the smallest, each from the one before.

    Yields the place of each alpha in ``alphas`` and its weights. An alpha so small that the eigenvectors of G no longer
    resolve it (zero above all) gets a Cholesky factor of its own.
    """
    weight = row_weights(X.shape[0], sample_weight)
    curvature = mean_curvature(D, weight)
    shared = factorise(X, weight, curvature, fit_intercept=settings.fit_intercept, scale_free=False, many_alphas=True)
    assert shared.eigenvalues is not None
    resolved = SMALLEST_SHARED_ALPHA * curvature * float(shared.eigenvalues.max(initial=0.0))
    objective = CrossEntropy(shared.design, D, weight, fit_intercept=settings.fit_intercept)
    weights = None
    origin, met = np.zeros(objective.shape), 1.0
    for place in sorted(range(len(alphas)), key=lambda place: -alphas[place]):
        if alphas[place] > resolved:
            objective.alpha = alphas[place]
            weights = _fit_whitened(objective, shared, settings, origin, curvature=met)
            origin, met = shared.from_features(weights.W, weights.b), weights.run.curvature
        else:
            start = None if weights is None else (weights.W, weights.b)
            weights = fit_weights(X, D, sample_weight, alphas[place], settings, start=start)
        yield place, weights


def _fit_whitened(
    objective: CrossEntropy,
    factorisation: Factorisation,
    settings: Settings,
    origin: FloatArray,
    *,
    curvature: float = 1.0,
    keep: Collection[int] = (),
) -> Weights:
    """Minimise over the displacement from ``origin`` in whitened coordinates."""
    whitening = factorisation.whitening(objective.alpha)

    def parameters(displacement: FloatArray) -> FloatArray:
        return origin + whitening.expand(displacement.reshape(objective.shape))

    def evaluate(displacement: FloatArray) -> tuple[float, FloatArray]:
        loss, gradient = objective(parameters(displacement))
        return loss, whitening.contract(gradient).ravel()

    def features(displacement: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _centred(*factorisation.to_features(parameters(displacement)))

    return _run(evaluate, np.zeros(origin.size), objective, settings, features, keep, curvature=curvature)


def _fit_plain(
    objective: CrossEntropy,
    factorisation: Factorisation,
    settings: Settings,
    origin: FloatArray,
    *,
    keep: Collection[int] = (),
) -> Weights:
    """Minimise over the weights of the features themselves; only the convergence test is whitened."""
    whitening = factorisation.whitening(objective.alpha)
    metric = PlainMetric(objective, factorisation, whitening)

    def evaluate(flat: FloatArray) -> tuple[float, FloatArray]:
        loss, gradient = objective(flat.reshape(objective.shape))
        return loss, gradient.ravel()

    def features(flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        parameters = flat.reshape(objective.shape)
        n_features = objective.X.shape[1]
        b = parameters[n_features] if objective.fit_intercept else np.zeros(objective.shape[1])
        return _centred(parameters[:n_features], b)

    return _run(evaluate, origin.ravel(), objective, settings, features, keep, metric=metric)


def _run(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    objective: CrossEntropy,
    settings: Settings,
    features: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    keep: Collection[int],
    *,
    metric: PlainMetric | None = None,
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
