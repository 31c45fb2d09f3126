"""Fits of maximum entropy weights to rows: one penalty, or many that share one factorisation.

A fit is a generator that requests evaluations of the objective (`skldl.maxent._objective`), so that several fits can
share each pass over the rows. `Problem` holds the moments of the rows that it needs.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from skldl.chunks import Chunk, Rows
from skldl.chunks._arrays import CheckedRows, in_memory
from skldl.chunks._rows import Sums
from skldl.exceptions import DataError, Message, Parameter, WordedError
from skldl.maxent._folds import take
from skldl.maxent._moments import few_rows, products_of, read_moments
from skldl.maxent._objective import CrossEntropy, Evaluation, Passes, Search
from skldl.maxent._whitening import Factorisation, Whitening, factorise_moments, factorise_row_space
from skldl.utils.arrays import as_double, as_type_of, is_device_array
from skldl.utils.missing import COMPLETE, informative
from skldl.utils.parameters import Constraint, one_of
from skldl.utils.solvers import Answer, Minimum, minimisation
from skldl.utils.typing import FloatArray
from skldl.utils.warn import warn

MAX_DENSE_INVERSE = 20_000
"""Weights up to which solver="bfgs" runs: its matrix then takes 3.2 GB."""
SMALLEST_DEGREE = 1e-11
"""Lower bound of the degrees of a mean prediction, so that their logarithms are finite; chosen by hand."""
MAX_HALVINGS = 20
"""Maximum number of halvings of the first step; after these it has a millionth of its length, and is given up."""
SINGLE_ROWS = 1 << 17
"""Fewer rows on a device are always computed in double precision, because rounding errors of single precision would not
average out in the loss."""

Init = Literal["zeros", "eye"] | npt.ArrayLike


def _are_numbers(value: Any) -> bool:
    """Whether a value is a table of real numbers; text, masked arrays and complex numbers would be changed."""
    if isinstance(value, str) or np.ma.isMaskedArray(value):
        return False
    if isinstance(value, list | tuple) and any(np.ma.isMaskedArray(row) for row in value):
        return False
    try:
        cells = np.asarray(value)
        if cells.dtype.kind == "O" and not all(isinstance(cell, Real) for cell in cells.flat):
            return False
        return cells.dtype.kind in "biufO" and cells.astype(np.float64).ndim == 2
    except (TypeError, ValueError):
        return False


INIT = one_of("zeros", "eye") | Constraint("an array of numbers of shape (n_features, n_labels)", _are_numbers)
"""Valid values of the parameter ``init``."""


@dataclass(frozen=True)
class Settings:
    """How to minimise; the names are those of `skldl.SABFGS`."""

    fit_intercept: bool
    whiten: bool
    solver: Literal["lbfgs", "bfgs"]
    max_iter: int
    tol: float
    missing: str = COMPLETE
    n_threads: int = 1


@dataclass
class Weights:
    """Weights of the features (n_features, n_labels) and intercepts (n_labels,), both centred over labels.

    ``kept`` holds W and b after certain steps of the run, by number of steps, and ``end`` the last evaluation of a
    whitened run.
    """

    W: FloatArray
    b: FloatArray
    run: Minimum
    kept: dict[int, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    end: Evaluation | None = None

    def warn_unless_converged(self, name: str, alpha: float, settings: Settings) -> None:
        """Warn if the run did not converge, with its estimated excess and the parameters to change."""
        if self.run.converged:
            return
        if self.run.n_iter == settings.max_iter:
            stopped = Message("stopped at ", Parameter("max_iter", settings.max_iter))
            hint = "Raise max_iter"
            hint += "." if alpha > 0 else ", or set alpha > 0: without it the optimum can lie at infinity."
        else:
            stopped = Message(f"found no lower loss after {self.run.n_iter} steps")
            hint = "Rounding hides what is left: raise tol, or set a larger alpha."
        excess = f"estimated to be {self.run.excess:.1g} above the optimum ("
        parts = (
            " ",
            stopped,
            ", with a mean Kullback-Leibler divergence ",
            excess,
            Parameter("tol", settings.tol),
            "). ",
        )
        warn(Message(f"{name} with ", Parameter("alpha", alpha), *parts, hint), ConvergenceWarning)


@dataclass
class WhitenedMetric:
    """M at one point in whitened coordinates, from the mean prediction there; at the start it is the identity."""

    whitening: Whitening
    found: Evaluation

    @cached_property
    def ratio(self) -> FloatArray:
        """Diagonal of M."""
        now = self.whitening.diagonal(np.maximum(self.found.mean, SMALLEST_DEGREE))
        return np.divide(now, self.whitening.hessian, out=np.ones_like(now), where=self.whitening.hessian > 0).ravel()

    def primal(self, step: FloatArray) -> float:
        return float(step**2 @ self.ratio)

    def dual(self, gradient: FloatArray) -> float:
        return float(gradient**2 @ (1.0 / self.ratio))


@dataclass
class PlainMetric(WhitenedMetric):
    """M on the weights of the features, for the convergence test of a run without whitening."""

    problem: "Problem"
    alpha: float

    def primal(self, step: FloatArray) -> float:
        U, b = self.problem.split(step)
        squares = self.problem.squared_scores(U, b, self.found.mean)
        return squares + self.alpha * float(np.vdot(U, U))

    def dual(self, gradient: FloatArray) -> float:
        problem = self.problem
        of_design = problem.factorisation.gradient_from_features(gradient.reshape(problem.objective.shape))
        return super().dual(self.whitening.contract(of_design).ravel())


@dataclass
class Problem:
    """A problem of minimisation: the objective of some rows, their factorisation, and the passes that evaluate it.

    Attributes
    ----------
    objective : CrossEntropy
        Objective on the design: the features times factors, or their coordinates in the space of the rows.
    factorisation : Factorisation
        Maps from whitened coordinates to the design and to the features.
    passes : Passes
        Passes over the rows of the design.
    """

    objective: CrossEntropy
    factorisation: Factorisation
    passes: Passes

    def split(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of the columns, and intercepts or zeros, from flat parameters."""
        table = parameters.reshape(self.objective.shape)
        n_columns = self.objective.n_columns
        return table[:n_columns], table[n_columns] if self.objective.fit_intercept else np.zeros(table.shape[1])

    def squared_scores(self, U: FloatArray, b: FloatArray, labels: FloatArray) -> float:
        """Σ_i ω_i Σ_j p̄_j s_ij², from the products of the columns if they are known, otherwise in a pass."""
        objective = self.objective
        mean = objective.column_means if objective.fit_intercept else np.zeros(len(U))
        found = self.factorisation.squared_scores(U, b, mean, labels)
        if found is None:
            (found,) = self.passes.rows.sum(_squared_scores, U, b, labels, labels=False)
            found /= objective.total
        return float(found)


def _squared_scores(chunk: Chunk, U: FloatArray, b: FloatArray, labels: FloatArray) -> Sums:
    """Σ_i w_i Σ_j p̄_j s_ij² over the rows of one chunk."""
    X = chunk.X
    scores = X @ as_type_of(U, X) + as_type_of(b, X) if is_device_array(X) else np.asarray(X @ U) + b
    return (chunk.weights() @ (as_double(scores) ** 2 @ as_type_of(labels, chunk.weights())),)


def make_problem(
    rows: Rows, settings: Settings, *, factors: FloatArray | None = None, alpha: float | None = None
) -> Problem:
    """Compute the moments of rows and factorise them; few rows of many features in the space of the rows.

    Parameters
    ----------
    rows : Rows
        Rows to learn from.
    settings : Settings
        How to minimise.
    factors : ndarray of shape (n_features,), default=None
        Numbers by which the features are multiplied; None leaves them as they are.
    alpha : float, default=None
        The penalty, if there is only one; with zero, columns may be scaled in the space of the rows.
    """
    rows = informative_rows(precise_rows(rows), settings.missing)
    if rows.n_rows == 0:
        raise DataError("All training rows have too few observed labels to learn from them. Use fewer folds.")
    if not few_rows(rows.n_rows, rows):
        plan: dict[str, Any] = {"products": products_of(rows), "n_threads": settings.n_threads}
        (moments,) = read_moments(rows, centred=settings.fit_intercept, **plan)
        if not few_rows(moments.n_rows, rows):
            objective = CrossEntropy.of(moments, factors, fit_intercept=settings.fit_intercept)
            passes = Passes(rows, largest=moments.largest, missing=settings.missing, n_threads=settings.n_threads)
            factorisation = factorise_moments(moments, factors, fit_intercept=settings.fit_intercept)
            return _with_missing(Problem(objective, factorisation, passes))
    rows = in_memory(rows)
    chunk, scale_free = rows.chunk, alpha == 0 and settings.whiten
    factorisation = factorise_row_space(
        chunk.X, chunk.weight, factors, fit_intercept=settings.fit_intercept, scale_free=scale_free
    )
    if settings.whiten:  # otherwise the weights of the features are fitted, on the rows themselves
        rows = CheckedRows(factorisation.design, chunk.D, chunk.weight)
    (moments,) = read_moments(rows, centred=settings.fit_intercept, products="none")
    objective = CrossEntropy.of(moments, None, fit_intercept=settings.fit_intercept)
    return _with_missing(
        Problem(objective, factorisation, Passes(rows, missing=settings.missing, n_threads=settings.n_threads))
    )


def _with_missing(problem: Problem) -> Problem:
    """The problem with the objective for missing degrees, if there are any."""
    missing = problem.passes.missing
    if missing == COMPLETE:
        return problem
    chunk = in_memory(problem.passes.rows).chunk
    return replace(problem, objective=problem.objective.with_missing(np.asarray(chunk.D), chunk.weights(), missing))


def precise_rows(rows: Rows) -> Rows:
    """The rows; in double precision if they are on a device and few."""
    if isinstance(rows, CheckedRows) and is_device_array(rows.chunk.X) and len(rows.chunk) < SINGLE_ROWS:
        return CheckedRows(as_double(rows.chunk.X), as_double(rows.chunk.D), rows.chunk.weight)
    return rows


def informative_rows(rows: Rows, missing: str) -> Rows:
    """The rows without those in which too few degrees were observed to learn anything."""
    if missing == COMPLETE:
        return rows
    rows = in_memory(rows)
    kept = informative(np.asarray(rows.chunk.D), missing)
    if kept.all():
        return rows
    some = take(rows.chunk, np.flatnonzero(kept))
    return CheckedRows(some.X, some.D, some.weight)


def fit(
    problem: Problem,
    alpha: float,
    settings: Settings,
    *,
    start: tuple[FloatArray, FloatArray] | None = None,
    keep: Collection[int] = (),
) -> Search[Weights]:
    """Fit one alpha, from W and b in ``start`` (zero if None); W and b are kept after the steps in ``keep``."""
    if not settings.whiten:
        return (yield from _fit_plain(problem, alpha, settings, start, keep))
    here = None
    if start is not None:
        here = yield from problem.objective.at(problem.factorisation.from_features(*start))
    return (yield from _fit_whitened(problem, alpha, settings, here, keep=keep))


def fit_path(problem: Problem, alphas: Sequence[float], settings: Settings) -> Search[list[Weights]]:
    """Fit many alphas with one factorisation, from the largest to the smallest, each starting at the previous optimum.

    Zero starts anew: without a penalty the optimum need not be unique, and would depend on the start.
    """
    found: dict[int, Weights] = {}
    here, curvature = None, 1.0
    for position in sorted(range(len(alphas)), key=lambda position: -alphas[position]):
        if alphas[position] == 0:
            found[position] = yield from _fit_whitened(problem, 0.0, settings, None)
            continue
        weights = yield from _fit_whitened(problem, alphas[position], settings, here, curvature=curvature)
        here, curvature = weights.end, weights.run.curvature
        found[position] = replace(weights, end=None)
    return [found[position] for position in range(len(alphas))]


def fit_path_of_rows(
    rows: Rows, alphas: Sequence[float], settings: Settings, factors: FloatArray | None = None
) -> list[Weights]:
    """Fit many alphas to rows, as `fit_path` does.

    In the space of the rows alpha = 0 has its own factorisation, because without a penalty the columns may be scaled.
    """
    problem = make_problem(rows, settings, factors=factors)
    apart = problem.factorisation.rows is not None
    found = iter(problem.passes.run(fit_path(problem, [a for a in alphas if a or not apart], settings)))
    return [next(found) if alpha or not apart else fit_rows(rows, alpha, settings, factors=factors) for alpha in alphas]


def fit_rows(
    rows: Rows, alpha: float, settings: Settings, *, factors: FloatArray | None = None, **more: Any
) -> Weights:
    """Fit one alpha to rows, as `fit` does."""
    problem = make_problem(rows, settings, factors=factors, alpha=alpha)
    return problem.passes.run(fit(problem, alpha, settings, **more))


def _fit_whitened(
    problem: Problem,
    alpha: float,
    settings: Settings,
    here: Evaluation | None,
    *,
    curvature: float = 1.0,
    keep: Collection[int] = (),
) -> Search[Weights]:
    """Minimise over the displacement from ``here`` in whitened coordinates.

    From zero (``here`` None) the first step goes to the weights whose predictions are nearest to the mean
    distribution, because the Hessian there is close to that at the optimum.
    """
    objective, factorisation = problem.objective, problem.factorisation
    n_labels = objective.shape[1]
    whitening = factorisation.whitening(alpha, np.full(n_labels, 1.0 / n_labels))
    first = 0  # the step towards the mean distribution counts as one, before those of the minimiser
    if here is None:
        origin, labels, here = yield from _towards_mean(objective, alpha, whitening)
        first = int(origin.any())
    else:
        origin, labels = here.parameters, here.mean
    # coordinates for the mean prediction at the start; a label without mass must not vanish in them
    whitening = replace(whitening, labels=np.maximum(labels, SMALLEST_DEGREE))

    def parameters(displacement: FloatArray) -> FloatArray:
        return origin + whitening.expand(displacement.reshape(objective.shape))

    def answer(found: Evaluation) -> Answer:
        loss, gradient = objective.penalised(found, alpha)
        return loss, whitening.contract(gradient).ravel(), WhitenedMetric(whitening, found)

    def features(displacement: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _centred(*factorisation.to_features(parameters(displacement)))

    run, kept = yield from _minimise(
        np.zeros(origin.size),
        parameters,
        answer,
        problem,
        replace(settings, max_iter=settings.max_iter - first),
        {steps - first for steps in keep},
        known=here,
        curvature=curvature,
    )
    if first:
        run.n_iter += 1
        run.loss_curve.insert(0, objective.loss_at_zero)
    metric = cast(WhitenedMetric, run.metric)
    return Weights(*features(run.x), run, {steps + first: features(x) for steps, x in kept.items()}, metric.found)


def _towards_mean(
    objective: CrossEntropy, alpha: float, whitening: Whitening
) -> Search[tuple[FloatArray, FloatArray, Evaluation | None]]:
    """Parameters whose predictions are near the mean distribution, their mean prediction, and the evaluation if known.

    Without an intercept they must have a smaller loss than the uniform prediction; zero if no such are found.
    """
    n_labels = objective.shape[1]
    mean = np.maximum(objective.mean_target, SMALLEST_DEGREE)
    goal = np.log(mean)
    goal -= goal.mean()
    origin = np.zeros(objective.shape)
    if objective.fit_intercept:
        origin[-1] = goal
        return origin, mean, None
    if objective.is_complete:  # with missing degrees the mean distribution need not be better than the uniform one
        u = whitening.solve(objective.column_means)  # X u is as near to 1 on all rows as the features allow
        for size in 0.5 ** np.arange(MAX_HALVINGS):
            found = yield from objective.at(np.multiply.outer(u, size * goal))
            if objective.penalised(found, alpha)[0] < np.log(n_labels):
                return found.parameters, found.mean, found
    return origin, np.full(n_labels, 1.0 / n_labels), None


def _fit_plain(
    problem: Problem,
    alpha: float,
    settings: Settings,
    start: tuple[FloatArray, FloatArray] | None,
    keep: Collection[int],
) -> Search[Weights]:
    """Minimise over the weights of the features; only the convergence test is whitened."""
    objective = problem.objective
    n_labels = objective.shape[1]
    whitening = problem.factorisation.whitening(alpha, np.full(n_labels, 1.0 / n_labels))

    def parameters(flat: FloatArray) -> FloatArray:
        return flat.reshape(objective.shape)

    def answer(found: Evaluation) -> Answer:
        loss, gradient = objective.penalised(found, alpha)
        return loss, gradient.ravel(), PlainMetric(whitening, found, problem, alpha)

    def features(flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _centred(*problem.split(flat))

    origin: FloatArray = np.zeros(objective.shape)
    if start is not None:
        origin = np.vstack(start) if objective.fit_intercept else start[0]
    run, kept = yield from _minimise(origin.ravel(), parameters, answer, problem, settings, keep)
    return Weights(*features(run.x), run, {steps: features(x) for steps, x in kept.items()})


def _minimise(
    start: FloatArray,
    parameters: Callable[[FloatArray], FloatArray],
    answer: Callable[[Evaluation], Answer],
    problem: Problem,
    settings: Settings,
    keep: Collection[int],
    *,
    known: Evaluation | None = None,
    curvature: float = 1.0,
) -> Search[tuple[Minimum, dict[int, FloatArray]]]:
    """Minimise from a start, whose evaluation may be known; also return the points after the steps in ``keep``."""
    if settings.solver == "bfgs" and start.size > MAX_DENSE_INVERSE:
        raise WordedError(
            Parameter("solver", "bfgs"),
            f" stores a matrix of {start.size:,} × {start.size:,} numbers here, and is limited to "
            f"{MAX_DENSE_INVERSE:,} weights. Use ",
            Parameter("solver", "lbfgs"),
            ", which reaches the same optimum.",
        )
    kept: dict[int, FloatArray] = {}

    def callback(n_iter: int, x: FloatArray) -> None:
        if n_iter in keep:
            kept[n_iter] = x

    search = minimisation(
        start,
        method=settings.solver,
        tol=settings.tol,
        max_iter=settings.max_iter,
        lower_bound=problem.objective.entropy,
        curvature=curvature,
        callback=callback,
    )
    x = next(search)
    while True:
        found = known or (yield from problem.objective.at(parameters(x)))
        known = None
        try:
            x = search.send(answer(found))
        except StopIteration as end:
            return end.value, kept


def _centred(W: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Subtract the mean over labels, which changes no probability."""
    return W - W.mean(axis=1, keepdims=True), b - b.mean()


def starting_weights(init: Any, n_features: int, n_labels: int) -> FloatArray | None:
    """Return θ⁰ of shape (n_features, n_labels), or None for zeros.

    Parameters
    ----------
    init : {"zeros", "eye"} or array-like of shape (n_features, n_labels)
        "eye" is ``numpy.eye(n_features, n_labels)``, as in the code published with Geng (2016).
    n_features, n_labels : int
        The shape that the weights must have.

    Examples
    --------
    >>> from skldl.maxent._search import starting_weights
    >>> starting_weights("eye", 3, 2)
    array([[1., 0.],
           [0., 1.],
           [0., 0.]])
    """
    if isinstance(init, str):
        return None if init == "zeros" else np.eye(n_features, n_labels)
    theta = np.array(init, dtype=np.float64)
    if theta.shape != (n_features, n_labels):
        raise WordedError(
            f"init has shape {theta.shape}, but the weights have shape {(n_features, n_labels)}: one row for each "
            "feature, one column for each label (the transpose of coef_)."
        )
    if not np.isfinite(theta).all():
        raise WordedError("init holds numbers that are not finite. Pass finite weights.")
    return theta
