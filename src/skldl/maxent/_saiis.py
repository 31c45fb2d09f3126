"""SA-IIS: the maximum entropy model with soft targets, fitted by improved iterative scaling (Geng 2016, algorithm 1).

Each iteration maximises a lower bound of the gain in T(θ) = Σ_i ω_i [Σ_j d_ij θ_jᵀx_i − ln Σ_j exp(θ_jᵀx_i)], in
which every weight stands alone. So T never falls, and its maximum is the one of SA-BFGS.
"""

import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skldl._parameters import COUNT, NOT_NEGATIVE, TRUTH
from skldl._typing import FloatArray
from skldl.base import BaseLDL
from skldl.maxent._objective import probabilities, row_weights, weighted_softmax
from skldl.maxent._scaling import ScalingEquations
from skldl.maxent._start import INIT, Init, starting_weights

SHORTEST_EXTRAPOLATION = 1.5


@dataclass
class _State:
    """Weights (n_features, n_labels), the predictions they give, and the loss −T."""

    theta: FloatArray
    P: FloatArray
    loss: float


class _Scaling:
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
        self.equations = None if is_empty else ScalingEquations(self.X, self.weight, self.target)

    def state(self, theta: FloatArray) -> _State:
        scores = np.ascontiguousarray(np.asarray(self.X @ theta).T)
        log_partition = weighted_softmax(scores, self.weight)
        P = (scores / self.weight).T
        return _State(theta, P, log_partition - float(np.vdot(self.target, theta)) + self.constant_loss)

    def improve(self, state: _State) -> _State:
        """One iteration of algorithm 1."""
        assert self.equations is not None
        return self.state(state.theta + self.equations.solve(state.P))

    def extrapolate(self, first: _State, second: _State, third: _State) -> _State:
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
class _Run:
    state: _State
    loss_curve: list[float]
    converged: bool
    kept: dict[int, FloatArray]


def _run(
    scaling: _Scaling, theta: FloatArray, max_iter: int, tol: float, accelerate: bool, keep: Collection[int] = ()
) -> _Run:
    """Iterate until the gain of one iteration falls below ``tol``; keep the weights after some iterations."""
    state = scaling.state(theta)
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
    return _Run(state, curve, converged, kept)


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

    _constraints: ClassVar = {"max_iter": COUNT, "tol": NOT_NEGATIVE, "accelerate": TRUTH, "init": INIT}

    def __init__(
        self, max_iter: int = 500, *, tol: float = 1e-7, accelerate: bool = False, init: Init = "zeros"
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.init = init

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        start = self._start(X.shape[1], D.shape[1])
        run = _run(_Scaling(X, D, sample_weight), start, self.max_iter, self.tol, self.accelerate)
        if not run.converged:
            more = "Raise max_iter" + ("." if self.accelerate else ", set accelerate=True, or use SABFGS.")
            warnings.warn(
                f"SAIIS stopped at max_iter={self.max_iter}, where the mean of T still grew by "
                f"{run.loss_curve[-2] - run.loss_curve[-1]:.1g} (tol={self.tol:g}). {more}",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.coef_ = _centred(run.state.theta)
        self.intercept_ = np.zeros(D.shape[1])
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
        scaling = _Scaling(X, D, sample_weight)
        start = self._start(X.shape[1], D.shape[1])
        run = _run(scaling, start, max(values), self.tol, self.accelerate, frozenset(values))
        for value in values:
            yield probabilities(X_new, _centred(run.kept.get(value, run.state.theta)).T)


def _centred(theta: FloatArray) -> FloatArray:
    return np.ascontiguousarray((theta - theta.mean(axis=1, keepdims=True)).T)
