r"""WInLDL: incomplete label distribution learning by weights instead of a penalty (Li and Chen, 2024).

    min_W  ½ Σ_i ω_i Σ_j q_ij² (x_i w_j − y_ij)²   subject to  X W ≥ 0, X W 1 = 1

Observed degrees have the weight q = 2^{1 − d}, so that small degrees count more. A missing degree has the present
prediction as its target y, and a weight that grows with the steps t of T: q = (1 + t/T)^{m_j}, where m_j is the mean of
the observed degrees of label j. With Z = X W as a second variable, each step of ADMM is one weighted projection of rows
onto the simplex and one least squares problem, whose matrix is factorised once. The paper has no penalty on W, so that
with many features and few rows the noise of the training rows is fitted exactly. Here the least squares problem has a
ridge, which is chosen on held-out rows; with 1e-5, the smallest, it is nearly the published method.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from skldl.base import MISSING
from skldl.incomplete._linear import LinearProblem, ProjectedLinearLDL, best_setting, project_weighted
from skldl.utils.parameters import COUNT, NONE, POSITIVE, integer
from skldl.utils.typing import FloatArray

RIDGES = (1e-5, 1e-2, 0.1, 1.0, 10.0)  # the published method, and four for tables with many features; chosen by hand
SELECTION_STEPS = 30  # enough to compare ridges; chosen by hand


class WInLDL(ProjectedLinearLDL):
    r"""Weighted least squares on observed degrees (WInLDL).

    Parameters
    ----------
    max_iter : int, default=100
        Number of steps, T, over which the weight of a missing degree grows from 1 to 2 to the power of the mean degree.
    rho : float, default=2.0
        Weight of the quadratic term of ADMM.
    ridge : float, default=None
        Added to the diagonal of the mean of products of the standardised features, but not of the constant. 1e-5 is the
        published method, which it makes soluble if there are more features than rows. None chooses 1e-5, .01, .1, 1 or
        10 by cross-validation, by the squared error on observed degrees of held-out rows.
    n_folds : int, default=5
        Number of folds for the choice of ridge.
    missing : {"auto", "degrees", "renormalised"}, default="auto"
        What NaN in y means; see `skldl.SABFGS`. With "renormalised" the observed part of each row is multiplied by the
        mass of the mean distribution on them: the method itself needs true degrees.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts.
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
    Features are standardised and a constant column is added. The row problem is solved exactly; python-ldl
    projects without the weights. Predictions for new rows are projected onto the simplex.

    References
    ----------
    .. [1] X. Li and S. Chen, "No regularization is needed: efficient and effective incomplete label distribution
       learning", IJCAI 2024.

    Examples
    --------
    >>> from skldl import WInLDL
    >>> nan = float("nan")
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.5, nan, nan], [nan, 0.3, nan], [0.3, 0.3, 0.4]]
    >>> WInLDL(missing="degrees").fit(X, D).predict([[1.5]]).round(2)
    array([[0.45, 0.3 , 0.25]])
    """

    _constraints: ClassVar = {
        "max_iter": COUNT,
        "rho": POSITIVE,
        "ridge": NONE | POSITIVE,
        "n_folds": integer(at_least=2),
        "missing": MISSING,
    }

    def __init__(
        self,
        *,
        max_iter: int = 100,
        rho: float = 2.0,
        ridge: float | None = None,
        n_folds: int = 5,
        missing: str = "auto",
    ) -> None:
        self.max_iter = max_iter
        self.rho = rho
        self.ridge = ridge
        self.n_folds = n_folds
        self.missing = missing

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        problem = LinearProblem.of(X, D, sample_weight, self.missing_)
        self.ridge_ = self._choose(problem) if self.ridge is None else float(self.ridge)
        self.n_iter_ = self.max_iter
        self.coef_, self.intercept_ = problem.to_features(self._weights(problem, self.ridge_, self.max_iter))

    def _choose(self, problem: LinearProblem) -> float:
        """Ridge with the smallest squared error on observed degrees of held-out rows."""

        def path(part: LinearProblem) -> Iterator[FloatArray]:
            for ridge in RIDGES:
                yield self._weights(part, ridge, min(self.max_iter, SELECTION_STEPS))

        return RIDGES[best_setting(problem, self.n_folds, path)]

    def _weights(self, problem: LinearProblem, ridge: float, n_steps: int) -> FloatArray:
        """W of shape (1 + n_features, n_labels) after ``n_steps`` steps of ADMM."""
        X, D, observed = problem.X, problem.D, problem.observed
        n_labels = D.shape[1]
        weighted = X * problem.weight[:, None]
        penalty = np.full(X.shape[1], ridge)
        penalty[0] = 0.0  # of the constant
        solve = linalg.cho_factor(X.T @ weighted + np.diag(penalty))
        total = problem.weight @ observed
        mean = np.divide(problem.weight @ D, total, out=np.full(n_labels, 1.0 / n_labels), where=total > 0)
        of_observed = np.where(observed, 4.0 ** (1.0 - D), 0.0)  # squares of the weights
        fitted, dual = np.full_like(D, 1.0 / n_labels), np.zeros_like(D)
        for step in range(1, n_steps + 1):
            of_missing = (1.0 + step / n_steps) ** (2.0 * mean)
            squares = np.where(observed, of_observed, of_missing)
            target = np.where(observed, D, fitted)
            curvature = squares + self.rho  # diagonal of the Hessian of the row problem
            Z = project_weighted((squares * target + self.rho * (fitted + dual)) / curvature, curvature)
            W = linalg.cho_solve(solve, weighted.T @ (Z - dual))
            fitted = X @ W
            dual = dual + fitted - Z
        return np.asarray(W)
