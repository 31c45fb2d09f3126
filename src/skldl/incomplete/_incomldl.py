r"""IncomLDL: incomplete label distribution learning with low rank (Xu and Zhou, 2017).

With the observed cells R_Ω, and means over rows (weights ω that sum to one, Ω = diag ω):

    min_W  ½ Σ_i ω_i ‖R_i ∘ (x_i W − d_i)‖² + alpha ‖A W‖_*      (the nuclear norm: sum of singular values)

where A is Ω^{1/2} X with the rows √ridge I below it (none for the constant). With ridge = 0 the penalty is that of the
predictions, as in the paper; with a large ridge it is nearly that of the weights. A penalty on predictions alone leaves
weights free in directions in which the training rows hardly vary, which matters if there are many features.

"admm" keeps the constraints X W ≥ 0 and X W 1 = 1, "prox" drops them. With A = U R (orthonormal columns), V = R W and Q
the rows of U that belong to X, the predictions are Q V and the penalty is ‖V‖_*, a matrix of the size of W. ‖Q‖ ≤ 1:

- prox: the smooth part has the Lipschitz constant 1, so that accelerated proximal gradient steps V ← SVT(V − ∇, alpha)
  need no line search, where SVT takes alpha off every singular value;
- admm: the predictions Z = X W are a second variable. The row problem in Z has a diagonal Hessian and is a weighted
  projection onto the simplex (no quadratic program); the problem in V is replaced by one proximal gradient step, an
  SVT, which solves it exactly if ridge = 0; then the dual step.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from skldl.base import MISSING
from skldl.incomplete._linear import LinearProblem, ProjectedLinearLDL, best_setting, project_weighted
from skldl.utils.parameters import COUNT, NONE, NOT_NEGATIVE, POSITIVE, integer, one_of
from skldl.utils.typing import FloatArray

RANK_CUT = 1e-10  # relative to the largest singular value: below it are rounding errors of equal columns
FRACTIONS = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)  # of the smallest alpha at which the weights are zero
RIDGES = (0.0, 1.0, 10.0)  # the paper's penalty, and two for tables with many features; chosen by hand
SELECTION_TOL = 1e-3  # errors on held-out rows do not need the precision of the final fit; chosen by hand


class IncomLDL(ProjectedLinearLDL):
    r"""Linear model of low rank, fitted to the degrees that were observed (IncomLDL).

    It minimises the mean squared error on observed degrees plus ``alpha`` times the nuclear norm of the predictions,
    which ties the labels to each other, subject to predictions that are distributions on the training rows ("admm").
    ``ridge`` extends that norm to the weights, for tables with many features.

    Parameters
    ----------
    alpha : float, default=None
        Weight of the nuclear norm. None chooses one of eight values by cross-validation without the constraints, by the
        squared error on observed degrees of held-out rows. With sums over n rows, as in the paper, the weight is alpha
        times the square root of n.
    ridge : float, default=None
        Weight of the coefficients of the standardised features in the nuclear norm, in addition to the predictions; 0
        is the paper's penalty. None chooses 0, 1 or 10 together with alpha, and is 0 if alpha is given.
    method : {"admm", "prox"}, default="admm"
        With the constraints, or without them.
    n_folds : int, default=5
        Number of folds for the choice of alpha and ridge.
    rho : float, default=1.0
        Weight of the quadratic term of ADMM: it changes the iterations, not the optimum.
    max_iter : int, default=500
        Largest number of steps.
    tol : float, default=1e-5
        The search ends when the steps (for ADMM, both residuals) are smaller, measured as root of the mean over rows of
        squared distances.
    missing : {"auto", "degrees", "renormalised"}, default="auto"
        What NaN in y means; see `skldl.SABFGS`. With "renormalised" the observed part of each row is multiplied by the
        mass of the mean distribution on them: the method itself needs true degrees.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts.
    alpha_ : float
        The alpha in use.
    ridge_ : float
        The ridge in use.
    n_iter_ : int
        Number of steps.
    missing_ : {"complete", "degrees", "renormalised"}
        What NaN in y means.
    n_left_out_ : int
        Number of rows without information.

    Notes
    -----
    Features are standardised and a constant column is added. Predictions for new rows are projected onto the simplex.

    References
    ----------
    .. [1] M. Xu and Z.-H. Zhou, "Incomplete label distribution learning", IJCAI 2017.

    Examples
    --------
    >>> from skldl import IncomLDL
    >>> nan = float("nan")
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.5, nan, nan], [nan, 0.3, nan], [0.3, 0.3, 0.4]]
    >>> IncomLDL(alpha=1e-4, missing="degrees").fit(X, D).predict([[1.5]]).round(2)
    array([[0.45, 0.3 , 0.25]])
    """

    _constraints: ClassVar = {
        "alpha": NONE | NOT_NEGATIVE,
        "ridge": NONE | NOT_NEGATIVE,
        "method": one_of("admm", "prox"),
        "n_folds": integer(at_least=2),
        "rho": POSITIVE,
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "missing": MISSING,
    }

    def __init__(
        self,
        alpha: float | None = None,
        *,
        ridge: float | None = None,
        method: str = "admm",
        n_folds: int = 5,
        rho: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-5,
        missing: str = "auto",
    ) -> None:
        self.alpha = alpha
        self.ridge = ridge
        self.method = method
        self.n_folds = n_folds
        self.rho = rho
        self.max_iter = max_iter
        self.tol = tol
        self.missing = missing

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        problem = LinearProblem.of(X, D, sample_weight, self.missing_)
        if self.alpha is None:
            self.alpha_, self.ridge_ = self._choose(problem)
        else:
            self.alpha_, self.ridge_ = float(self.alpha), float(self.ridge or 0.0)
        solver = LowRank(problem, self.rho, self.ridge_)
        self.n_iter_ = solver.run(self.alpha_, self.method, self.max_iter, self.tol)
        self.coef_, self.intercept_ = problem.to_features(solver.weights())

    def _choose(self, problem: LinearProblem) -> tuple[float, float]:
        """Alpha and ridge with the smallest squared error on observed degrees of held-out rows.

        The search leaves the constraints out, which is several times as fast, and projects predictions on the simplex.
        """
        ridges = RIDGES if self.ridge is None else (float(self.ridge),)
        largest = [LowRank(problem, self.rho, ridge).largest_alpha() for ridge in ridges]
        settings = [
            (one * fraction, ridge) for one, ridge in zip(largest, ridges, strict=True) for fraction in FRACTIONS
        ]

        def path(part: LinearProblem) -> Iterator[FloatArray]:
            for ridge in ridges:
                solver = LowRank(part, self.rho, ridge)
                # from the largest alpha down: each starts at the solution before
                for alpha, _ in (setting for setting in settings if setting[1] == ridge):
                    solver.run(alpha, "prox", self.max_iter, max(self.tol, SELECTION_TOL))
                    yield solver.weights()

        return settings[best_setting(problem, self.n_folds, path)]


class LowRank:
    """Solvers for V; each run starts at the result of the run before.

    Parameters
    ----------
    problem : LinearProblem
        The training rows.
    rho : float
        Weight of the quadratic term of ADMM.
    ridge : float, default=0.0
        Weight of the coefficients in the nuclear norm.
    """

    def __init__(self, problem: LinearProblem, rho: float, ridge: float = 0.0) -> None:
        self.problem, self.rho = problem, rho
        self.root = np.sqrt(problem.weight)[:, None]
        rows = self.root * problem.X
        if ridge > 0:
            rows = np.vstack([rows, np.sqrt(ridge) * np.eye(rows.shape[1])[1:]])  # the constant has no ridge
        left, values, right = linalg.svd(rows, full_matrices=False)
        kept = values > RANK_CUT * values[0]
        self.Q, self.values, self.right = left[: len(problem.X), kept], values[kept], right[kept]
        self.V = self.Q.T @ (self.root * np.full_like(problem.D, 1.0 / problem.D.shape[1]))
        self.dual = np.zeros_like(problem.D)

    def weights(self) -> FloatArray:
        """W of shape (1 + n_features, n_labels), the one of smallest norm with these coordinates V."""
        return np.asarray(self.right.T @ (self.V / self.values[:, None]))

    def largest_alpha(self) -> float:
        """The smallest alpha at which the unconstrained problem has the solution zero."""
        return float(linalg.norm(self.Q.T @ (self.root * self.problem.D), 2))

    def run(self, alpha: float, method: str, max_iter: int, tol: float) -> int:
        """Run until the steps are small, and return the number of steps."""
        step = self._admm if method == "admm" else self._prox
        return step(alpha, max_iter, tol)

    def objective(self, alpha: float) -> float:
        """The objective at V, without constraints."""
        miss = (self.Q @ self.V - self.root * self.problem.D) * self.problem.observed
        return 0.5 * float((miss**2).sum()) + alpha * float(linalg.svdvals(self.V).sum())

    def _prox(self, alpha: float, max_iter: int, tol: float) -> int:
        target, observed = self.root * self.problem.D, self.problem.observed
        momentum, point = 1.0, self.V
        for n_iter in range(1, max_iter + 1):
            gradient = self.Q.T @ ((self.Q @ point - target) * observed)
            V = shrink(point - gradient, alpha)
            if np.vdot(point - V, V - self.V) > 0:  # the momentum points uphill: restart it
                momentum = 1.0
            # Nesterov's sequence of momenta
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            moved = V - self.V
            point = V + (momentum - 1.0) / following * moved
            self.V, momentum = V, following
            if linalg.norm(moved) <= tol:
                return n_iter
        return max_iter

    def _admm(self, alpha: float, max_iter: int, tol: float) -> int:
        D, cells = self.problem.D, self.problem.observed.astype(np.float64)
        curvature = cells + self.rho  # diagonal of the Hessian of the row problem; the row weights cancel
        fitted = self.Q @ self.V
        for n_iter in range(1, max_iter + 1):
            goal = (fitted - self.dual) / self.root
            Z = project_weighted((cells * D + self.rho * goal) / curvature, curvature)
            scaled = self.root * Z  # in the coordinates of Q, where the step length 1 is safe
            V = shrink(self.V + self.Q.T @ (scaled + self.dual - fitted), alpha / self.rho)
            fitted = self.Q @ V
            apart = scaled - fitted
            self.dual += apart
            moved = self.rho * linalg.norm(V - self.V)
            self.V = V
            if max(float(linalg.norm(apart)), float(moved)) <= tol:
                return n_iter
        return max_iter


def shrink(V: FloatArray, amount: float) -> FloatArray:
    """Subtract an amount from every singular value, down to zero: the proximal step of the nuclear norm."""
    left, values, right = linalg.svd(V, full_matrices=False, check_finite=False)
    return np.asarray((left * np.maximum(values - amount, 0.0)) @ right)
