"""SA-IIS: the maximum entropy model with soft targets, fitted by improved iterative scaling (Geng 2016, algorithm 1).

Each iteration maximises a lower bound of the gain in T(θ) = Σ_i ω_i [Σ_j d_ij θ_jᵀx_i − ln Σ_j exp(θ_jᵀx_i)], in
which every weight stands alone. So T never falls, and its maximum is the one of SA-BFGS.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skldl.base import BaseLDL
from skldl.chunks import Rows
from skldl.chunks._arrays import CheckedRows
from skldl.maxent._objective import probabilities
from skldl.maxent._scaling import Scaling, State
from skldl.maxent._search import INIT, Init, starting_weights
from skldl.utils.parameters import BOOLEAN, COUNT, NOT_NEGATIVE
from skldl.utils.typing import FloatArray
from skldl.utils.warn import warn

MAX_START_LOSS = 1e9
"""The rounding error of a larger loss at the start exceeds 1e-7, the default of ``tol``."""


class SAIIS(BaseLDL):
    """Maximum entropy model with soft targets, fitted by improved iterative scaling (SA-IIS of Geng, 2016).

    Every iteration finds the increments of all weights at once, each the exact root of the paper's equation 8 up to a
    relative residual of 1e-12, and the mean of T never falls. The way to the optimum is long: where it stops
    decides the result, so ``max_iter`` acts as a regulariser. `skldl.SABFGS` reaches the same optimum in a few steps.

    Parameters
    ----------
    max_iter : int, default=500
        Largest number of iterations.
    tol : float, default=1e-7
        The iterations end when the mean of T grows by less than this (the paper's ε, divided by the number of rows).
    accelerate : bool, default=False
        Whether to follow every second step further (SQUAREM), where that raises T. The optimum stays the same and is
        reached in fewer iterations.
    init : {"zeros", "eye"} or array-like of shape (n_features, n_labels), default="zeros"
        The weights θ⁰ at which the iterations begin. "eye" is ``numpy.eye(n_features, n_labels)``, the start of the
        code published with the paper: from there 150 iterations on folds in file order give the published means of
        all ten Yeast sets.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights, one row for each label; each column sums to zero, since a common shift changes nothing.
    intercept_ : ndarray of shape (n_labels,)
        Zeros: the model has no intercept. For code that reads the coefficients of any maximum entropy model.
    n_iter_ : int
        Number of iterations.
    loss_curve_ : list of float
        Minus the mean of T, which is the mean cross-entropy, at the start and after each iteration.

    See Also
    --------
    skldl.SABFGS : The same model, fitted by a quasi-Newton method.

    Notes
    -----
    Features may be negative. A row that is zero throughout has no part in the equations, and a feature
    that is zero throughout keeps weight zero. Where a feature of one sign has target zero for a label, its weight
    belongs at infinity: one iteration moves it by 10 / max g# at most. Single precision is computed in double.

    Rows in chunks take about one pass for each iteration, and more where increments are so large that their equations
    need sums over all rows.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.
    .. [2] S. Della Pietra, V. Della Pietra and J. Lafferty, "Inducing features of random fields", IEEE Transactions on
       Pattern Analysis and Machine Intelligence 19(4), 1997.
    .. [3] R. Varadhan and C. Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
       algorithm", Scandinavian Journal of Statistics 35(2), 2008.

    Examples
    --------
    >>> from skldl import SAIIS
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> D = [[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]]
    >>> SAIIS().fit(X, D).predict([[1.5, 1.0]]).round(2)
    array([[0.65, 0.35]])
    """

    _array_api = True
    _linear_scores = True
    _onnx = "linear"
    _constraints: ClassVar = {"max_iter": COUNT, "tol": NOT_NEGATIVE, "accelerate": BOOLEAN, "init": INIT}

    def __init__(
        self, max_iter: int = 500, *, tol: float = 1e-7, accelerate: bool = False, init: Init = "zeros"
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.init = init

    def _fit_rows(self, rows: Rows) -> None:
        start = self._start(rows.n_features, self.n_labels_)
        run = run_iterations(Scaling(rows), start, self.max_iter, self.tol, self.accelerate)
        if not run.converged:
            more = "Raise max_iter" + ("." if self.accelerate else ", set accelerate=True, or use SABFGS.")
            warn(
                f"SAIIS stopped at max_iter={self.max_iter}, where the mean of T still grew by "
                f"{run.loss_curve[-2] - run.loss_curve[-1]:.1g} (tol={self.tol:g}). {more}",
                ConvergenceWarning,
            )
        self.coef_ = _centred(run.state.theta)
        self.intercept_ = np.zeros(self.n_labels_)
        self.n_iter_ = len(run.loss_curve) - 1
        self.loss_curve_ = run.loss_curve

    def _start(self, n_features: int, n_labels: int) -> FloatArray:
        theta = starting_weights(self.init, n_features, n_labels)
        return np.zeros((n_features, n_labels)) if theta is None else theta

    def _predict(self, X: Any) -> FloatArray:
        return probabilities(X, self.coef_.T)

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """All ``max_iter`` from one run."""
        if param != "max_iter":
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        scaling, start = Scaling(CheckedRows(X, D, sample_weight)), self._start(X.shape[1], D.shape[1])
        run = run_iterations(scaling, start, max(values), self.tol, self.accelerate, frozenset(values))
        for value in values:
            yield probabilities(X_new, _centred(run.kept.get(value, run.state.theta)).T)


def _centred(theta: FloatArray) -> FloatArray:
    return np.ascontiguousarray((theta - theta.mean(axis=1, keepdims=True)).T)


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
    if not abs(state.loss) <= MAX_START_LOSS:
        raise ValueError(
            f"init gives a loss of {state.loss:.3g}, in which rounding hides what an iteration gains. Begin at smaller "
            "weights, or multiply X by a power of ten, so that its features are of the order of 1."
        )
    curve = [state.loss]
    kept = {}
    converged = scaling.is_empty
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
