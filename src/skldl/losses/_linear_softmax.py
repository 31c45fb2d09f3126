"""`LinearSoftmaxLDL`: base class of models p = softmax(Wᵀx + b) that minimise any smooth objective.

With row weights ω that sum to one, scores S = X W + 1 bᵀ and a smooth function f of all scores, it minimises

    f(S) + alpha/2 ‖W‖²,        ∂/∂W = Xᵀ ∂f/∂S + alpha W,        ∂/∂b = Σ_i ∂f/∂s_i.

The solver is L-BFGS (`skldl.utils.solvers`) in the whitened coordinates of `skldl.maxent`. It has two phases: a short
run on the cross-entropy alone, which ends near the optimum of SA-BFGS, and a run on f from there, in coordinates for
the mean prediction at that point. If f is not convex, the result is the local optimum reached from this start; no
random numbers are used.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skldl.base import BaseLDL
from skldl.losses._automatic_alpha import ALPHA, automatic_alpha, count_different_rows
from skldl.losses._rows import RowLoss
from skldl.maxent._whitening import Factorisation, Whitening, factorise
from skldl.utils.mean_mixture import row_weights
from skldl.utils.parameters import BOOLEAN, COUNT, NOT_NEGATIVE
from skldl.utils.simplex import log_softmax, softmax
from skldl.utils.solvers import Minimum, minimise
from skldl.utils.typing import FloatArray
from skldl.utils.warn import warn

ScoreObjective = Callable[[FloatArray], tuple[float, FloatArray]]
Penalty = Callable[[FloatArray], tuple[float, FloatArray]]

FIRST_PHASE_TOL = 1e-4  # the first phase only has to come near; chosen by hand
FIRST_PHASE_STEPS = 50  # chosen by hand
MIN_MEAN_DEGREE = 1e-11  # keeps logarithms, and the scale of a coordinate, finite for labels without mass; by hand


@dataclass
class TrainingSet:
    """Validated data, with a cache of what fits with several hyper-parameters share, such as factorisations.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Features.
    D : ndarray of shape (n_samples, n_labels)
        Distributions.
    weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    fit_intercept : bool
        Whether the model has one.
    """

    X: Any
    D: FloatArray
    weight: FloatArray
    fit_intercept: bool
    _kept: dict[Any, Any] = field(default_factory=dict)

    def shared(self, key: Any, compute: Callable[[], Any]) -> Any:
        """The result of ``compute``, which is called once for each key."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]

    def factorisation(self, scale_free: bool) -> Factorisation:
        """Factorise the features in double precision; see `skldl.maxent._whitening`."""

        def compute() -> Factorisation:
            X = self.X.astype(np.float64, copy=False)
            return factorise(X, self.weight, fit_intercept=self.fit_intercept, scale_free=scale_free)

        return self.shared(("factorisation", scale_free), compute)

    def alpha(self, alpha: float | str) -> float:
        """Return the penalty that a hyper-parameter defines."""
        if alpha != "auto":
            return float(alpha)

        def choose() -> float:
            return automatic_alpha(self.factorisation(scale_free=False), self.D, self.weight, self.n_different)

        return self.shared("automatic alpha", choose)

    @property
    def n_different(self) -> int:
        """Number of different rows."""
        return self.shared("different rows", lambda: count_different_rows(self.X, self.D))


@dataclass
class LinearFit:
    """Weights (n_features, n_labels), intercepts (n_labels,), parameters of the design, and the run."""

    W: FloatArray
    b: FloatArray
    parameters: FloatArray
    run: Minimum


def cross_entropy(D: FloatArray, weight: FloatArray) -> ScoreObjective:
    """The weighted mean cross-entropy as a function of the scores."""
    return mean_of(lambda log_p, d: (-(d * log_p).sum(axis=1), np.exp(log_p) - d), D, weight)


def mean_of(loss: RowLoss, D: FloatArray, weight: FloatArray) -> ScoreObjective:
    """The weighted mean of a row loss as a function of the scores."""

    def objective(S: FloatArray) -> tuple[float, FloatArray]:
        values, gradient = loss(log_softmax(S), D)
        return float(weight @ values), gradient * weight[:, None]

    return objective


def fit_linear(
    factorisation: Factorisation,
    D: FloatArray,
    weight: FloatArray,
    objective: ScoreObjective,
    *,
    alpha: float | FloatArray,
    tol: float,
    max_iter: int,
    penalty: Penalty | None = None,
    start: FloatArray | None = None,
    lower_bound: float = -np.inf,
) -> LinearFit:
    """Minimise objective(S) + ½ Σ_k alpha_k ‖u_k‖² + penalty(U) over the parameters of the design.

    Parameters
    ----------
    factorisation : Factorisation
        Holds the design; its rows U are the parameters, with one more row for the intercept if it has a centre.
    D : ndarray of shape (n_samples, n_labels)
        Distributions, for the first phase.
    weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    objective : callable
        From scores (n_samples, n_labels) to the value and its gradient.
    alpha : float or ndarray of shape (n_columns,)
        Strength of the squared penalty, one for all columns of the design or one for each.
    tol : float
        Estimated excess over the optimum at which the search ends, see `skldl.utils.solvers.minimise`.
    max_iter : int
        Largest number of steps of the second phase.
    penalty : callable, default=None
        From U (n_columns, n_labels), without the intercept, to a value and its gradient. It must not change when a
        vector is added to all columns of U.
    start : ndarray, default=None
        Parameters to begin the second phase at; None runs the first phase.
    lower_bound : float, default=-inf
        A value that the whole objective cannot fall below.
    """
    design, n_labels = factorisation.design, D.shape[1]
    n_columns = design.shape[1]
    has_intercept = factorisation.centre is not None
    strengths = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (n_columns,))
    transposed = design.T.tocsr() if sparse.issparse(design) else design.T

    def scores(parameters: FloatArray) -> FloatArray:
        S = np.asarray(design @ parameters[:n_columns])
        return S + parameters[n_columns] if has_intercept else S

    def at(parameters: FloatArray, function: ScoreObjective, extra: Penalty | None) -> tuple[float, FloatArray]:
        value, of_scores = function(scores(parameters))
        U = parameters[:n_columns]
        gradient = np.empty_like(parameters)
        scaled = strengths[:, None] * U
        gradient[:n_columns] = transposed @ of_scores + scaled
        if has_intercept:
            gradient[n_columns] = of_scores.sum(axis=0)
        value += 0.5 * float(np.vdot(U, scaled))
        if extra is not None:
            more, slope = extra(U)
            value += more
            gradient[:n_columns] += slope
        return value, gradient

    def run(
        origin: FloatArray, function: ScoreObjective, extra: Penalty | None, steps: int, largest: float, lower: float
    ) -> tuple[FloatArray, Minimum]:
        labels = np.maximum(weight @ softmax(scores(origin)), MIN_MEAN_DEGREE)
        whitening: Whitening = factorisation.whitening(float(strengths.max(initial=0.0)), labels)

        def evaluate(flat: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = at(origin + whitening.expand(flat.reshape(origin.shape)), function, extra)
            return value, whitening.contract(gradient).ravel()

        found = minimise(evaluate, np.zeros(origin.size), tol=largest, max_iter=steps, lower_bound=lower)
        return origin + whitening.expand(found.x.reshape(origin.shape)), found

    if start is None:
        start = np.zeros((n_columns + has_intercept, n_labels))
        if has_intercept:
            start[-1] = np.log(np.maximum(weight @ D, MIN_MEAN_DEGREE))
            start[-1] -= start[-1].mean()  # of scores that differ by a constant, those with mean zero
        start, _ = run(start, cross_entropy(D, weight), None, FIRST_PHASE_STEPS, FIRST_PHASE_TOL, -np.inf)
    parameters, found = run(start, objective, penalty, max_iter, tol, lower_bound)
    W, b = factorisation.to_features(parameters)
    return LinearFit(W - W.mean(axis=1, keepdims=True), b - b.mean(), parameters, found)


class LinearSoftmaxLDL(BaseLDL):
    """Base class of linear softmax models, for subclasses that implement ``_objective``.

    ``_objective(training)`` returns the objective as a function of the scores, and a lower bound of it. Subclasses have
    the hyper-parameters ``alpha``, ``fit_intercept``, ``max_iter`` and ``tol``; ``alpha_`` is the penalty in use.
    """

    _linear_scores = True
    _onnx = "linear"
    _constraints: ClassVar = {
        "alpha": ALPHA,
        "fit_intercept": BOOLEAN,
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
    }

    alpha: float | str
    alpha_: float
    fit_intercept: bool
    max_iter: int
    tol: float

    def _objective(self, training: TrainingSet) -> tuple[ScoreObjective, float]:
        raise NotImplementedError

    def _penalty(self, training: TrainingSet) -> float:
        """The strength of the penalty: ``alpha``, or the automatic choice, which suits the divergence."""
        return training.alpha(self.alpha)

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        self._fit_shared(self._training_set(X, D, sample_weight))

    def _training_set(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> TrainingSet:
        return TrainingSet(X, D, row_weights(X.shape[0], sample_weight), bool(self.fit_intercept))

    def _fit_shared(self, training: TrainingSet) -> None:
        """Fit, with results that fits with other hyper-parameters have left in the cache of the training set."""
        objective, lower_bound = self._objective(training)
        self.alpha_ = self._penalty(training)
        fit = fit_linear(
            training.factorisation(scale_free=self.alpha_ == 0),
            training.D,
            training.weight,
            objective,
            alpha=self.alpha_,
            tol=self.tol,
            max_iter=self.max_iter,
            lower_bound=lower_bound,
        )
        self._store(fit)

    def _store(self, fit: LinearFit) -> None:
        warn_unless_converged(self, fit.run)
        self.coef_ = np.ascontiguousarray(fit.W.T)
        self.intercept_ = fit.b
        self.n_iter_ = max(1, fit.run.n_iter)
        self.loss_curve_ = fit.run.loss_curve

    def _predict(self, X: Any) -> FloatArray:
        return softmax(np.asarray(X @ self.coef_.T) + self.intercept_)

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """Fit for all values with one training set, so that factorisations, clusters, … are computed once."""
        if param == "fit_intercept":
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        training = self._training_set(X, D, sample_weight)
        for value in values:
            self.set_params(**{param: value})
            self._fit_shared(training)
            yield self._predict(X_new)


def warn_unless_converged(model: Any, run: Minimum) -> None:
    """Warn with the estimated distance from the optimum, and the hyper-parameter to change.

    There is no warning if no step lowered the loss any further and the last steps lowered it by at most ``tol``: the
    run is then at a minimum within double precision, although the estimated excess is larger.
    """
    flat = (
        run.n_iter < model.max_iter and run.loss_curve[-min(4, len(run.loss_curve))] - run.loss_curve[-1] <= model.tol
    )
    if run.converged or flat:
        return
    name = type(model).__name__
    if run.n_iter >= model.max_iter:
        what, hint = f"stopped at max_iter={model.max_iter}", "Raise max_iter, or set a larger alpha."
    else:
        what, hint = f"found no lower loss after {run.n_iter} steps", "Raise tol, or set a larger alpha."
    warn(
        f"{name} {what}, with a loss estimated to be {run.excess:.1g} above the optimum (tol={model.tol:g}). {hint}",
        ConvergenceWarning,
    )
