r"""Pools of predictions: several predicted distributions are joined with weights that are fitted on held-out rows.

Log-linear pool (Genest & Zidek, 1986): a geometric mean of the members with free weights and an offset for each label,

.. math:: p(x) \propto \exp\Big(\sum_k w_k \ln p_k(x) + b\Big), \quad w_k \ge 0

The weights minimise the mean Kullback-Leibler divergence of the rows plus a penalty towards equal weights,

.. math:: \frac{\lambda}{n}\, \overline{KL}_0\, \big(\lVert w - 1/K \rVert^2 + \lVert b \rVert^2\big),

where :math:`\overline{KL}_0` is the mean divergence from the mean distribution, so that the penalty has the unit of the
loss, and n is the number of rows. The problem is convex. The sum of the weights is free: if all members predict too
flat distributions, their weights sum to more than one, which makes the pool sharper.

Linear pool: :math:`p(x) = \sum_k w_k p_k(x)` with weights on the simplex. Minimising the cross-entropy plus
:math:`\sum_k w_k` over :math:`w \ge 0` has its optimum on the simplex, since the derivative along w itself is
:math:`\sum_k w_k - 1`; so bounds are the only constraint that the solver needs.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import log_softmax, rel_entr, softmax

from skldl.utils.mean_mixture import row_weights
from skldl.utils.typing import FloatArray

PENALTY = 8.0
"""Default of λ."""
MIN_DEGREE = 1e-12
"""Lower limit of predicted degrees in logarithms."""
# the objective is smooth and has few parameters, so that minimising it nearly to rounding takes little time
_SOLVER_OPTIONS = {"maxiter": 1000, "maxfun": 5000, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 30}


@dataclass(frozen=True)
class Pool:
    """A fitted pool.

    Attributes
    ----------
    kind : {"log-linear", "linear"}
        Its form.
    weights : ndarray of shape (n_members,)
        Weight of each member.
    offset : ndarray of shape (n_labels,)
        Offset of each label in the log-linear form; zeros in the linear one.
    """

    kind: str
    weights: FloatArray
    offset: FloatArray

    def apply(self, members: FloatArray) -> FloatArray:
        """Join the predictions of the members.

        Parameters
        ----------
        members : ndarray of shape (n_members, n_samples, n_labels)
            Distributions predicted by each member.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            The pooled distributions.
        """
        if self.kind == "linear":
            return np.asarray(np.tensordot(self.weights, members, axes=1))
        scores = np.broadcast_to(self.offset, members.shape[1:]).copy()
        for weight, predicted in zip(self.weights, members, strict=True):
            if weight > 0:
                scores += weight * np.log(np.maximum(predicted, MIN_DEGREE))
        return np.asarray(softmax(scores, axis=1))


def fit_pool(
    members: FloatArray, D: FloatArray, sample_weight: FloatArray | None, *, kind: str, penalty: float = PENALTY
) -> Pool:
    """Fit the weights of a pool on predictions for rows that the members did not learn from.

    Parameters
    ----------
    members : ndarray of shape (n_members, n_samples, n_labels)
        Held-out predictions of each member.
    D : ndarray of shape (n_samples, n_labels)
        True distributions.
    sample_weight : ndarray of shape (n_samples,) or None
        Weight of each row.
    kind : {"log-linear", "linear"}
        Form of the pool.
    penalty : float, default=8.0
        Strength of the penalty towards equal weights in the log-linear form.

    Returns
    -------
    Pool
        The pool.
    """
    n_members, n_samples, n_labels = members.shape
    mass = row_weights(n_samples, sample_weight)
    equal = np.full(n_members, 1.0 / n_members)
    if kind == "linear":
        bounds = Bounds(np.zeros(n_members), np.inf)
        found = minimize(
            linear_loss, equal, (members, D, mass), "L-BFGS-B", jac=True, bounds=bounds, options=_SOLVER_OPTIONS
        )
        # at the optimum the sum is one; the division corrects the error of the solver
        return Pool(kind, found.x / found.x.sum(), np.zeros(n_labels))
    logs = np.log(np.maximum(members, MIN_DEGREE))
    # in units of the divergence from the mean, so that one default suits distributions that differ little or much
    strength = penalty * mean_divergence(D, mass) / n_samples
    start = np.concatenate([equal, np.zeros(n_labels)])
    bounds = Bounds(np.concatenate([np.zeros(n_members), np.full(n_labels, -np.inf)]), np.inf)
    found = minimize(
        log_linear_loss, start, (logs, D, mass, strength), "L-BFGS-B", jac=True, bounds=bounds, options=_SOLVER_OPTIONS
    )
    return Pool(kind, found.x[:n_members], found.x[n_members:])


def mean_divergence(D: FloatArray, mass: FloatArray) -> float:
    """Mean Kullback-Leibler divergence of the rows from their mean; ``mass`` holds row weights that sum to one."""
    return float(mass @ rel_entr(D, mass @ D).sum(axis=1))


def log_linear_loss(
    coefficients: FloatArray, logs: FloatArray, D: FloatArray, mass: FloatArray, strength: float
) -> tuple[float, FloatArray]:
    """Penalised cross-entropy of the log-linear pool, and its gradient in the weights and offsets."""
    n_members = len(logs)
    weights, offset = coefficients[:n_members], coefficients[n_members:]
    log_p = log_softmax(np.tensordot(weights, logs, axes=1) + offset, axis=1)
    residual = mass[:, None] * (np.exp(log_p) - D)
    gradient = np.concatenate([[np.vdot(residual, log) for log in logs], residual.sum(axis=0)])
    distance = coefficients - np.concatenate([np.full(n_members, 1.0 / n_members), np.zeros(len(offset))])
    loss = -float(mass @ (D * log_p).sum(axis=1)) + strength * float(distance @ distance)
    return loss, gradient + 2.0 * strength * distance


def linear_loss(weights: FloatArray, members: FloatArray, D: FloatArray, mass: FloatArray) -> tuple[float, FloatArray]:
    """Cross-entropy of the linear pool plus the sum of the weights, and its gradient."""
    pooled = np.maximum(np.tensordot(weights, members, axes=1), MIN_DEGREE)
    ratio = mass[:, None] * D / pooled
    loss = -float(mass @ (D * np.log(pooled)).sum(axis=1)) + float(weights.sum())
    return loss, 1.0 - np.array([np.vdot(ratio, predicted) for predicted in members])
