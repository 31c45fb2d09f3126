"""SA-BFGS: the maximum entropy model with soft targets, fitted by a quasi-Newton method.

The model of Geng (2016), equation 6, is p(y_j | x) ∝ exp(θ_jᵀ x). Its parameters minimise the mean Kullback-Leibler
divergence from the training distributions, which is the same as the mean cross-entropy

    T'(θ) = Σ_i ω_i [ln Σ_j exp(θ_jᵀ x_i) − Σ_j d_ij θ_jᵀ x_i] + alpha/2 ‖θ‖²,

with row weights ω that sum to one. For one-hot rows this is maximum likelihood (equation 2), for rows that divide the
mass equally among the labels of a set it is entropy-based label assignment (equation 3).
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import effective_n_jobs
from scipy import special

from skldl.base import MISSING, PartialLDL
from skldl.chunks import Rows
from skldl.chunks._arrays import CheckedRows
from skldl.exceptions import Message, Parameter, WordedError
from skldl.maxent._objective import CrossEntropy, probabilities
from skldl.maxent._search import (
    INIT,
    Init,
    Settings,
    Weights,
    fit,
    fit_path_of_rows,
    fit_rows,
    make_problem,
    starting_weights,
)
from skldl.utils.missing import COMPLETE
from skldl.utils.parameters import BOOLEAN, COUNT, N_JOBS, NOT_NEGATIVE, number, one_of
from skldl.utils.typing import FloatArray
from skldl.utils.warn import warn

ALPHA = number(at_least=0, hint="0 means no penalty")
WORSE_THAN_MEAN = 1.25
"""A fit without intercept warns if its divergence is this multiple of that of the mean distribution; chosen by hand."""


class SABFGS(PartialLDL):
    """Maximum entropy model with soft targets, fitted by L-BFGS or BFGS (SA-BFGS of Geng, 2016).

    The loss is the weighted mean of the cross-entropy plus ``alpha / 2`` times the sum of squared weights; it is
    convex. The search begins at zero, and every step satisfies the strong Wolfe conditions. It has converged when an
    estimate of the excess of the mean Kullback-Leibler divergence over its minimum falls below ``tol``. The estimate is
    gᵀM⁻¹g / μ, where g is the gradient, M the Hessian as it would be if every row had the mean prediction (p̄_j Xᵀ
    diag(ω) X + alpha I for label j), and μ the smallest curvature, relative to M, among the last 20 steps; or the
    divergence itself where that is smaller. For a quadratic function of curvature μ the excess is half of it; the other
    half is a margin for directions in which the search has not moved. It is an estimate, not a bound: in 7 of 692 fits
    of nearly one-hot distributions the true excess was above ``tol`` although the estimate was below it.

    By default the search uses coordinates in which M is the identity, and its first step goes from zero to the mean
    distribution, as far as the features can express it. The optimum is the same, but on most label distribution data
    about ten evaluations suffice to reach it, whatever the scale of the features.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the squared penalty on the weights, not on the intercept. Zero is the paper's objective; the
        unpenalised optimum can be worse than the mean distribution on new data, so choose alpha by validation:
        `skldl.SABFGSCV` does. With alpha > 0 the scale of the features matters.
    fit_intercept : bool, default=False
        Whether to learn one free score for each label. The paper has none, but features with mean zero, such as
        standardised ones, cannot express the mean distribution without it: use True for them. A warning is raised if a
        fit without intercept is clearly worse than the mean distribution on its own training rows.
    whiten : bool, default=True
        Whether to search in whitened coordinates. False searches over the weights themselves, where ``max_iter`` acts
        as a regulariser: for studies of early stopping.
    solver : {"lbfgs", "bfgs"}, default="lbfgs"
        L-BFGS, or the paper's BFGS with the whole inverse Hessian, (n_features · n_labels)² numbers.
    max_iter : int, default=1000
        Maximum number of steps.
    tol : float, default=1e-8
        Largest estimated excess of the mean Kullback-Leibler divergence (with its penalty) over the optimum.
    warm_start : bool, default=False
        Whether ``fit`` begins at the weights of the previous fit.
    init : {"zeros", "eye"} or array-like of shape (n_features, n_labels), default="zeros"
        Initial weights of the search, unless it begins at those of a previous fit. Only with ``whiten=False``, because
        the whitened search goes to the mean distribution first. "eye" is ``numpy.eye(n_features,
        n_labels)``, the start of the code published with the paper.
    missing : {"auto", "degrees", "renormalised"}, default="auto"
        Meaning of NaN in y. "degrees": the observed degrees are true, and the rest of the mass lies on the missing
        labels. "renormalised": the observed degrees were divided by their sum, so that only ratios are known. "auto"
        chooses "renormalised" if the observed degrees of every row sum to one, otherwise "degrees", and warns. The
        model maximises the likelihood of the observed degrees: with "degrees" over the observed labels and one cell for
        the others, with "renormalised" over the observed labels alone.
    n_jobs : int, default=None
        Number of threads that work on blocks of dense rows; None is one, -1 all cores. It changes no digit of the
        result. With 10⁶ rows of 50 features two threads took 1.7 to 2.4 s, one 2.5 s. Two threads of the linear algebra
        library (1.5 to 2.0 s) are the alternative on an idle machine; on a busy one they took 70 times the CPU time.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights, one row for each label as in scikit-learn's linear classifiers; each column sums to zero, since a
        common shift changes nothing.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts, which sum to zero; all zero without ``fit_intercept``.
    n_iter_ : int
        Number of steps.
    n_evaluations_ : int
        Number of evaluations of loss and gradient.
    loss_curve_ : list of float
        The loss at the start and after each step.
    excess_ : float
        The estimate of the excess at the end. The true excess can be larger; see above.
    missing_ : {"complete", "degrees", "renormalised"}
        Meaning of NaN in y; "complete" if there was none, or if all missing degrees follow from the other cells.

    See Also
    --------
    skldl.SABFGSCV : Scales the features, has an intercept and chooses alpha by cross-validation.
    skldl.AutoLDL : Compares and pools several kinds of models.
    skldl.SAIIS : The same model, fitted by improved iterative scaling.

    Notes
    -----
    Without penalty the optimum need not be unique or finite. Where the columns of X depend on each other, the weights
    are those of smallest norm (with columns scaled to length one), so predictions for rows like those of X are unique.
    One-hot rows that can be separated, or labels without any mass, have their optimum at infinity: the search ends when
    the divergence is within ``tol`` of its limit, or with a `ConvergenceWarning`.

    Dense features and few sparse ones are whitened by the products of all columns, many sparse ones by their variances:
    more steps, each of which costs a pass over the stored values, and no matrix of n_features × n_features numbers.

    Rows in chunks (`skldl.chunks`) take one pass for the moments (two if a sparse column of two values is nearly
    constant) and one for each evaluation; y must be complete.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.
    .. [2] J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition, Springer 2006.

    Examples
    --------
    >>> from skldl import SABFGS
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> D = [[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]]
    >>> model = SABFGS().fit(X, D)
    >>> model.predict([[1.5, 1.0]]).round(2)
    array([[0.65, 0.35]])
    >>> model.n_iter_ <= 10
    True

    Degrees that were not observed are NaN:

    >>> nan = float("nan")
    >>> D = [[0.5, 0.3, 0.2], [0.4, nan, nan], [nan, 0.5, nan]]
    >>> SABFGS(missing="degrees").fit(X, D).predict([[1.0, 1.0]]).round(2)
    array([[0.4, 0.4, 0.2]])
    """

    _array_api = True
    _linear_scores = True
    _onnx = "linear"
    _constraints: ClassVar = {
        "alpha": ALPHA,
        "fit_intercept": BOOLEAN,
        "whiten": BOOLEAN,
        "solver": one_of("lbfgs", "bfgs"),
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "warm_start": BOOLEAN,
        "init": INIT,
        "missing": MISSING,
        "n_jobs": N_JOBS,
    }
    n_jobs: int | None = None  # a class attribute, because subclasses and loaded models may lack it

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        fit_intercept: bool = False,
        whiten: bool = True,
        solver: Literal["lbfgs", "bfgs"] = "lbfgs",
        max_iter: int = 1000,
        tol: float = 1e-8,
        warm_start: bool = False,
        init: Init = "zeros",
        missing: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.whiten = whiten
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.init = init
        self.missing = missing
        self.n_jobs = n_jobs

    def _fit_rows(self, rows: Rows) -> None:
        settings = self._settings()
        start = self._start_of_fit(rows.n_features, self.n_labels_)
        problem = make_problem(rows, settings, alpha=self.alpha)
        weights = problem.passes.run(fit(problem, self.alpha, settings, start=start))
        weights.warn_unless_converged(type(self).__name__, self.alpha, settings)
        if not self.fit_intercept and weights.run.converged and self.missing_ == COMPLETE:
            self._compare_with_mean(weights, problem.objective)
        self._store(weights)

    def _compare_with_mean(self, weights: Weights, objective: CrossEntropy) -> None:
        """Warn if the mean distribution, which needs an intercept only, is better on the training rows."""
        of_model = weights.run.loss - 0.5 * self.alpha * float(np.vdot(weights.W, weights.W)) - objective.entropy
        of_mean = float(special.entr(objective.mean_target).sum()) - objective.entropy
        # 1e-6: where both fit nearly perfectly, their ratio does not matter
        if of_model > WORSE_THAN_MEAN * of_mean + 1e-6:
            text = (
                f"SABFGS without intercept has a mean Kullback-Leibler divergence of {of_model:.3g} on its training "
                f"rows, the mean distribution alone one of {of_mean:.3g}: these features, which may be centred, cannot "
                "express the mean. Set "
            )
            warn(Message(text, Parameter("fit_intercept", True), ", or use SABFGSCV or AutoLDL."))

    def _start_of_fit(self, n_features: int, n_labels: int) -> tuple[FloatArray, FloatArray] | None:
        """Initial weights and intercepts: with ``warm_start`` those of the previous fit, else those of ``init``."""
        start = self._start(n_features, n_labels)
        if not (self.warm_start and hasattr(self, "coef_")):
            return start
        if self.coef_.shape != (n_labels, n_features):
            before = f"{self.coef_.shape[1]} features and {self.coef_.shape[0]} labels"
            hint = f", and this one has {n_features} and {n_labels}. Use a new estimator, or "
            parts = (f", but the fit before had {before}", hint, Parameter("warm_start", False), ".")
            raise WordedError(Parameter("warm_start", True), *parts)
        return np.ascontiguousarray(self.coef_.T), self.intercept_

    def _start(self, n_features: int, n_labels: int) -> tuple[FloatArray, FloatArray] | None:
        """Initial weights and intercepts of ``init``; None stands for zeros."""
        theta = starting_weights(self.init, n_features, n_labels)
        if theta is None:
            return None
        if self.whiten:
            raise WordedError(
                "init has no effect on the whitened search, which begins at the mean distribution. Set ",
                Parameter("whiten", False),
                ", or ",
                Parameter("init", "zeros"),
                ".",
            )
        return theta, np.zeros(n_labels)

    def _store(self, weights: Weights) -> None:
        self.coef_ = np.ascontiguousarray(weights.W.T)
        self.intercept_ = weights.b
        self.n_iter_ = weights.run.n_iter
        self.n_evaluations_ = weights.run.n_evaluations
        self.loss_curve_ = weights.run.loss_curve
        self.excess_ = weights.run.excess

    def _predict(self, X: Any) -> FloatArray:
        return probabilities(X, self.coef_.T, self.intercept_)

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """All alphas from one factorisation, all ``max_iter`` from one run."""
        if not (param == "max_iter" or (param == "alpha" and self.whiten)):
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        rows, start = CheckedRows(X, D, sample_weight), self._start(X.shape[1], D.shape[1])
        if param == "alpha":
            path = fit_path_of_rows(rows, values, self._settings())
            for alpha, weights in sorted(zip(values, path, strict=True), key=lambda pair: -pair[0]):
                weights.warn_unless_converged(type(self).__name__, alpha, self._settings())
            for weights in path:
                yield probabilities(X_new, weights.W, weights.b)
        else:
            self.set_params(max_iter=max(values))
            weights = fit_rows(rows, self.alpha, self._settings(), start=start, keep=frozenset(values))
            for value in values:
                yield probabilities(X_new, *weights.kept.get(value, (weights.W, weights.b)))

    def _settings(self) -> Settings:
        return Settings(
            bool(self.fit_intercept),
            bool(self.whiten),
            self.solver,
            int(self.max_iter),
            float(self.tol),
            self.missing_,
            effective_n_jobs(self.n_jobs),
        )
