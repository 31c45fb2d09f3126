"""The maximum entropy objective where some degrees were not observed: the exact likelihood of what was.

With the observed labels Ω_i of row i and scores S = X U + 1 bᵀ:

- **degrees** (the observed degrees are true, the rest r_i = 1 − Σ_Ω d_ij lies on the missing labels) is the
  cross-entropy over the observed labels and one cell for all others, whose probability is Σ_{j ∉ Ω} p_ij:

      loss_i = ln Σ_j exp s_ij − Σ_Ω d_ij s_ij − r_i ln Σ_{j ∉ Ω} exp s_ij,   ∂/∂s_ij = p_ij − d_ij − r_i q_ij

  with d_ij = 0 outside of Ω and q_i the softmax over the missing labels alone. Filling in r_i q_ij is the E-step of EM;
  here loss and gradient go to the quasi-Newton method directly. With more than one gap in a row it need not be convex.

- **renormalised** (only ratios inside Ω are known) is the cross-entropy of the conditional distribution:

      loss_i = ln Σ_Ω exp s_ij − Σ_Ω d_ij s_ij,   ∂/∂s_ij = p_ij / Σ_Ω p_ik − d_ij inside of Ω, zero outside. Convex.
"""

from typing import Any

import numpy as np
from scipy.special import entr

from skldl.maxent._objective import CrossEntropy, weighted_softmax
from skldl.utils.missing import has_gaps, mean_distribution, rest_of
from skldl.utils.typing import FloatArray


class PartialCrossEntropy(CrossEntropy):
    """`CrossEntropy` of partly observed distributions.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_columns)
        Features.
    D : ndarray of shape (n_samples, n_labels)
        Distributions with NaN, as `skldl.utils.missing.check_partial_distributions` gives them; no row is empty.
    weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    reading : {"degrees", "renormalised"}
        How to read D.
    alpha : float, default=0.0
        Strength of the penalty.
    fit_intercept : bool, default=False
        Whether the last row of the parameters is the intercept.

    Attributes
    ----------
    entropy : float
        Weighted mean entropy of what was observed: the loss never falls below it.
    mean_target : ndarray of shape (n_labels,)
        The constant prediction under which what was observed is most likely.
    """

    def __init__(
        self,
        X: Any,
        D: FloatArray,
        weight: FloatArray,
        *,
        reading: str,
        alpha: float = 0.0,
        fit_intercept: bool = False,
    ) -> None:
        gaps = np.isnan(D)
        seen = np.where(gaps, 0.0, D)
        super().__init__(X, seen, weight, alpha=alpha, fit_intercept=fit_intercept)
        self.reading = reading
        self.rest = rest_of(D)
        self._gaps = np.ascontiguousarray(gaps.T)
        self._rest_mean = np.zeros(D.shape[1])
        self.entropy = float(weight @ entr(seen).sum(axis=1))
        observed = (~gaps).sum(axis=1)
        if reading == "degrees":
            self.entropy += float(weight @ entr(self.rest))
            hidden = np.log(np.maximum(D.shape[1] - observed, 1))
            self.loss_at_zero -= float(weight @ (self.rest * hidden))
        else:
            self.loss_at_zero = float(weight @ np.log(observed))
        self.mean_target = mean_distribution(D, weight, reading)

    def _without_penalty(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Loss and gradient without the penalty, and the mean prediction: what takes a pass over the rows."""
        self._rest_mean = np.zeros(self.shape[1])
        self.n_threads = 1  # blocks add to the line above
        loss, gradient, mean = super()._without_penalty(parameters)
        return loss, gradient, mean + self._rest_mean

    def _normalise(self, scores: FloatArray, rows: slice) -> float:
        """Turn scores into ω_i (p_ij − r_i q_ij), or ω_i p_ij over the observed labels, and return their part."""
        gaps, weight = self._gaps[:, rows], self.weight[rows]
        if self.reading == "renormalised":
            scores[gaps] = -np.inf
            return weighted_softmax(scores, weight)
        some = np.flatnonzero(self.rest[rows] > 0)
        hidden = np.where(gaps[:, some], scores[:, some], -np.inf)
        part = weighted_softmax(scores, weight)
        if len(some):
            part -= weighted_softmax(hidden, weight[some] * self.rest[rows][some])
            scores[:, some] -= hidden
            self._rest_mean += hidden.sum(axis=1)
        return part


def cross_entropy(
    X: Any, D: FloatArray, weight: FloatArray, *, reading: str, alpha: float = 0.0, fit_intercept: bool = False
) -> CrossEntropy:
    """Make the objective for D: the ordinary one unless D has gaps."""
    if has_gaps(D):
        return PartialCrossEntropy(X, D, weight, reading=reading, alpha=alpha, fit_intercept=fit_intercept)
    return CrossEntropy(X, D, weight, alpha=alpha, fit_intercept=fit_intercept)
