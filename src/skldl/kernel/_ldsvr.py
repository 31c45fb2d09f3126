"""LDSVR: support vector regression of label distributions (Geng and Hou, 2015).

A multi-output support vector machine (M-SVR) fits the logits z_ij = −ln(1/d_ij − 1) of the degrees, with one loss for
all labels of a row, so that labels share their support vectors. With f(x) = k(x)ᵀB + b and u_i = ‖z_i − f(x_i)‖ it
minimises

    Σ_i ω_i L(u_i) + alpha/2 tr(BᵀKB),        L(u) = 0 for u < ε, else (u − ε)²,

by iteratively re-weighted least squares (IRWLS): with a_i = 2 ω_i (u_i − ε)/u_i on rows outside the tube, the system
(K + alpha diag(1/a)) B + 1 bᵀ = Z, 1ᵀB = 0, is one kernel ridge solve for all labels, and a step towards its solution
is halved until the objective falls. The prediction is the sigmoid of f, normalised.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, special

from skldl.base import BaseLDL
from skldl.kernel._kernels import squared_distances
from skldl.utils.mean_mixture import row_weights
from skldl.utils.parameters import COUNT, NOT_NEGATIVE, POSITIVE, number
from skldl.utils.typing import FloatArray

BLOCK_ROWS = 2048
"""Rows that are predicted at once: their kernel with all support vectors is one array."""
MAX_HALVINGS = 30
"""A step shorter than 2⁻³⁰ of the whole one changes the objective by rounding only."""


@dataclass
class MultiOutputSVR:
    """B (n_samples, n_labels), b (n_labels,), and the objective after each step."""

    B: FloatArray
    b: FloatArray
    curve: list[float]


def objective(
    K: FloatArray, Z: FloatArray, weight: FloatArray, B: FloatArray, b: FloatArray, alpha: float, epsilon: float
) -> tuple[float, FloatArray]:
    """Value of the M-SVR objective, and the residual norms u."""
    KB = K @ B
    u = np.sqrt(((Z - KB - b) ** 2).sum(axis=1))
    return float(weight @ np.maximum(u - epsilon, 0.0) ** 2) + 0.5 * alpha * float(np.vdot(B, KB)), u


def fit_msvr(
    K: FloatArray, Z: FloatArray, weight: FloatArray, *, alpha: float, epsilon: float, max_iter: int, tol: float
) -> MultiOutputSVR:
    """Iteratively re-weighted least squares from B = 0 and the weighted mean of Z.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        Kernel matrix.
    Z : ndarray of shape (n_samples, n_labels)
        Targets.
    weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    alpha, epsilon : float
        Strength of the penalty and radius of the tube.
    max_iter : int
        Maximum number of steps.
    tol : float
        The search ends when a step lowers the objective by less than this fraction of its first value.
    """
    B, b = np.zeros_like(Z), weight @ Z
    value, u = objective(K, Z, weight, B, b, alpha, epsilon)
    curve = [value]
    for _ in range(max_iter):
        outside = np.flatnonzero(u > epsilon)
        if not len(outside):
            break
        a = 2.0 * weight[outside] * (u[outside] - epsilon) / u[outside]
        system = K[np.ix_(outside, outside)]
        system[np.diag_indices_from(system)] += alpha / a
        # the bordered system by elimination: solve for Z and for 1, then choose b so that the columns of B sum to zero
        factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        solved = linalg.cho_solve(factor, np.column_stack([Z[outside], np.ones(len(outside))]), check_finite=False)
        b_new = solved[:, :-1].sum(axis=0) / solved[:, -1].sum()
        B_new = np.zeros_like(B)
        B_new[outside] = solved[:, :-1] - np.multiply.outer(solved[:, -1], b_new)
        length = 1.0
        for _ in range(MAX_HALVINGS):
            B_trial, b_trial = B + length * (B_new - B), b + length * (b_new - b)
            value_trial, u_trial = objective(K, Z, weight, B_trial, b_trial, alpha, epsilon)
            if value_trial < value:
                break
            length *= 0.5
        else:
            break  # what can still be gained is below rounding
        fall = value - value_trial
        B, b, value, u = B_trial, b_trial, value_trial, u_trial
        curve.append(value)
        if fall <= tol * curve[0]:
            break
    return MultiOutputSVR(B, b, curve)


class LDSVR(BaseLDL):
    r"""Multi-output support vector regression on the logits of the degrees (LDSVR).

    It minimises, with weighted means over rows,

    .. math:: \overline{L(\lVert z_i - f(x_i) \rVert)} + \frac{\mathtt{alpha}}{2} \lVert f \rVert_K^2, \qquad
        L(u) = \max(0, u - \mathtt{epsilon})^2, \qquad z_{ij} = \ln \frac{d_{ij}}{1 - d_{ij}},

    and predicts the sigmoid of f(x), divided by its sum. The kernel is :math:`\exp(-\lVert x - x' \rVert^2 / 2
    \sigma^2)` with σ = ``width`` times the mean distance between training rows.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty. The paper's C is 1 / (n · alpha) for n rows.
    epsilon : float, default=0.1
        Radius of the tube inside which errors cost nothing.
    width : float, default=1.0
        Width of the kernel in units of the mean distance; 1 is the paper's.
    floor : float, default=1e-4
        Degrees are moved into [floor, 1 − floor] before the logit, which is infinite at 0 and 1.
    max_iter : int, default=100
        Maximum number of re-weighted solves.
    tol : float, default=1e-12
        The search ends when a step lowers the objective by less than this fraction of its first value.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_support, n_labels)
        Weights of the support vectors.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features)
        The rows outside the tube.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts.
    sigma_ : float
        Width of the kernel.
    n_iter_ : int
        Number of solves.
    loss_curve_ : list of float
        Objective at the start and after each solve.

    Notes
    -----
    Time grows with the cube of the number of rows, memory with its square. The floor is not in the paper, whose data
    have no zeros. Width, C = 1 and ε = 0.1 are the paper's as cited by its successors; its text was not available.
    python-ldl fits one independent support vector regression for each label instead.

    References
    ----------
    .. [1] X. Geng and P. Hou, "Pre-release prediction of crowd opinion on movies by label distribution learning", IJCAI
       2015.
    .. [2] M. Sánchez-Fernández, M. de-Prado-Cumplido, J. Arenas-García and F. Pérez-Cruz, "SVM multiregression for
       nonlinear channel estimation in multiple-input multiple-output systems", IEEE Transactions on Signal Processing
       52(8), 2004.

    Examples
    --------
    >>> from skldl.kernel import LDSVR
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> LDSVR().fit(X, D).predict([[0.0], [1.5]]).round(1)
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """

    _keeps_rows = True
    _constraints: ClassVar = {
        "alpha": POSITIVE,
        "epsilon": NOT_NEGATIVE,
        "width": POSITIVE,
        "floor": number(above=0, below=0.5),
        "max_iter": COUNT,
        "tol": POSITIVE,
    }

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        epsilon: float = 0.1,
        width: float = 1.0,
        floor: float = 1e-4,
        max_iter: int = 100,
        tol: float = 1e-12,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.width = width
        self.floor = floor
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        weight = row_weights(X.shape[0], sample_weight)
        squared = squared_distances(X, X)
        self._fit_distances(X, D, weight, squared, _mean_distance(squared, weight))

    def _fit_distances(
        self, X: Any, D: FloatArray, weight: FloatArray, squared: FloatArray, mean_distance: float
    ) -> None:
        self.sigma_ = self.width * mean_distance
        K = np.exp(-squared / (2.0 * self.sigma_**2))
        Z = special.logit(np.clip(D, self.floor, 1.0 - self.floor))
        settings: dict[str, Any] = {"alpha": self.alpha, "epsilon": self.epsilon}
        found = fit_msvr(K, Z, weight, max_iter=self.max_iter, tol=self.tol, **settings)
        support = np.flatnonzero(found.B.any(axis=1))  # exactly 0 inside the tube: rows there are in no system
        self.support_vectors_ = X[support]
        self.dual_coef_, self.intercept_ = found.B[support], found.b
        self.n_iter_, self.loss_curve_ = max(1, len(found.curve) - 1), found.curve

    def _predict(self, X: Any) -> FloatArray:
        scores = np.tile(self.intercept_, (X.shape[0], 1))
        if len(self.dual_coef_):
            for first in range(0, X.shape[0], BLOCK_ROWS):
                rows = slice(first, first + BLOCK_ROWS)
                squared = squared_distances(X[rows], self.support_vectors_)
                scores[rows] += np.exp(-squared / (2.0 * self.sigma_**2)) @ self.dual_coef_
        degrees = special.expit(scores)
        return np.asarray(degrees / degrees.sum(axis=1, keepdims=True))

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """Fit for each value; the distances are computed once."""
        weight = row_weights(X.shape[0], sample_weight)
        squared = squared_distances(X, X)
        mean_distance = _mean_distance(squared, weight)
        for value in values:
            self.set_params(**{param: value})
            self._fit_distances(X, D, weight, squared, mean_distance)
            yield self._predict(X_new)


def _mean_distance(squared: FloatArray, weight: FloatArray) -> float:
    """Weighted mean distance between two rows drawn at random; 1 where all rows are equal."""
    mean = float(weight @ (np.sqrt(squared) @ weight))
    return mean if mean > 0 else 1.0
