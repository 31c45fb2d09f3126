"""Linear models with missing targets: training rows, weighted projection, choice of settings by cross-validation."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldl.base import PartialLDL
from skldl.selection._folds import pairs_of, shuffled_folds
from skldl.utils.mean_mixture import row_weights
from skldl.utils.missing import informative_rows, mean_distribution
from skldl.utils.scaling import standardisation
from skldl.utils.simplex import project
from skldl.utils.typing import BoolArray, FloatArray, IntArray


def project_weighted(A: FloatArray, weight: FloatArray) -> FloatArray:
    r"""Project each row onto the simplex in a weighted Euclidean norm.

    Solves :math:`\min_z \sum_j \frac{w_j}{2} (z_j - a_j)^2` subject to :math:`z \ge 0, \sum_j z_j = 1` for each row.
    The solution is :math:`z_j = \max(0, a_j - \tau / w_j)`, where τ is the root of a decreasing, piecewise linear
    function, whose pieces follow from the order of :math:`a_j w_j`: O(c log c).

    Parameters
    ----------
    A : ndarray of shape (n_samples, n_labels)
        Rows to project.
    weight : ndarray of shape (n_samples, n_labels)
        Positive weights.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Distributions.

    Examples
    --------
    >>> import numpy as np
    >>> project_weighted(np.array([[0.5, 0.8]]), np.array([[1.0, 2.0]])).round(3)
    array([[0.3, 0.7]])
    """
    order = np.argsort(-A * weight, axis=1)
    a, w = np.take_along_axis(A, order, 1), np.take_along_axis(weight, order, 1)
    tau = (np.cumsum(a, axis=1) - 1.0) / np.cumsum(1.0 / w, axis=1)
    last = (a * w > tau).sum(axis=1) - 1  # at least 0: the label with the largest a · w is always positive
    threshold = np.take_along_axis(tau, last[:, None], 1)
    return np.maximum(A - threshold / weight, 0.0)


@dataclass(frozen=True)
class LinearProblem:
    """Training rows of a linear model of degrees.

    Attributes
    ----------
    X : ndarray of shape (n_samples, 1 + n_features)
        A constant column and the features, centred and divided by their standard deviations.
    D : ndarray of shape (n_samples, n_labels)
        Observed degrees, zero elsewhere.
    observed : ndarray of bool of shape (n_samples, n_labels)
        Which degrees were observed.
    weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    mean, scale : ndarray of shape (n_features,)
        Offset that is subtracted from the features, and factor that they are multiplied by.
    """

    X: FloatArray
    D: FloatArray
    observed: BoolArray
    weight: FloatArray
    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, X: Any, D: FloatArray, sample_weight: FloatArray | None, missing: str) -> "LinearProblem":
        """Prepare validated training data.

        With renormalised rows, the observed part of a row is multiplied by the mass of the mean distribution on the
        labels observed in that row: an estimate of the true degrees.
        """
        X, D, sample_weight = informative_rows(X, D, sample_weight, missing)
        weight = row_weights(len(D), sample_weight)
        observed = ~np.isnan(D)
        degrees = np.where(observed, D, 0.0)
        if missing == "renormalised":
            degrees *= (observed @ mean_distribution(D, weight, missing))[:, None]
        X = np.asarray(X, dtype=np.float64)
        mean, scale = standardisation(X, weight)
        return cls(with_constant((X - mean) * scale), degrees, observed, weight, mean, scale)

    def take(self, rows: IntArray) -> "LinearProblem":
        """Return the problem of some of the rows, with features scaled as before."""
        weight = row_weights(len(rows), self.weight[rows])
        return LinearProblem(self.X[rows], self.D[rows], self.observed[rows], weight, self.mean, self.scale)

    def to_features(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of the features as they came in (n_labels, n_features), and intercepts."""
        weights = W[1:] * self.scale[:, None]
        return np.ascontiguousarray(weights.T), W[0] - self.mean @ weights


class ProjectedLinearLDL(PartialLDL):
    """Base class of linear models whose predictions are projected onto the simplex."""

    _accept_sparse = False
    coef_: FloatArray
    intercept_: FloatArray

    def _predict(self, X: Any) -> FloatArray:
        return project(np.asarray(X @ self.coef_.T + self.intercept_, dtype=np.float64))


def best_setting(problem: LinearProblem, n_folds: int, path: Callable[[LinearProblem], Iterable[FloatArray]]) -> int:
    """Find the setting with the smallest squared error on observed degrees of held-out rows.

    Parameters
    ----------
    problem : LinearProblem
        The training rows.
    n_folds : int
        Number of folds; at most one for each row.
    path : callable
        From a problem of some of the rows to the weights of each setting, in order.

    Returns
    -------
    int
        Position of the setting; of equal ones the first, and 0 if there is only one row.
    """
    n_samples = len(problem.D)
    if n_samples < 2:
        return 0
    errors: list[float] = []
    for train, test in pairs_of(shuffled_folds(n_samples, n_folds, None, np.random.RandomState(0))):
        held_out, mass = problem.take(test), problem.weight[test].sum()
        for index, W in enumerate(path(problem.take(train))):
            miss = (project(held_out.X @ W) - held_out.D) * held_out.observed
            if index == len(errors):
                errors.append(0.0)
            errors[index] += mass * float(held_out.weight @ (miss**2).sum(axis=1))
    return int(np.argmin(errors))


def with_constant(X: FloatArray) -> FloatArray:
    """X with a constant column in front."""
    return np.column_stack([np.ones(len(X)), X])
