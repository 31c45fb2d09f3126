"""Platt's posterior: the logistic function that turns decision values into probabilities, for many pairs at once.

For one pair of labels with decision values f_i, and row i seen u_i times with the first label and v_i times with the
second, the parameters minimise the cross-entropy

    Σ_i u_i·H(t₊, p_i) + v_i·H(t₋, p_i),   p_i = 1 / (1 + exp(−(slope·f_i + intercept))),

with Platt's targets t₊ = (Σu + 1) / (Σu + 2) and t₋ = 1 / (Σv + 2) in place of 1 and 0, by Newton's method with
backtracking as Lin, Lin and Weng [1]_ write it: no exponential of a positive number is ever taken.

References
----------
.. [1] H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs for support vector machines",
   Machine Learning 68, 2007, 267-276.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning

from skldl.utils.typing import FloatArray
from skldl.utils.warn import warn

MAX_ITERATIONS = 100
MAX_HALVINGS = 40
TOLERANCE = 1e-12
"""A pair is done when the predicted improvement per unit of weight is below this."""


def fit_sigmoids(
    decisions: FloatArray, positive: FloatArray, negative: FloatArray, *, noise: npt.ArrayLike = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Fit slope and intercept of one logistic function for each column.

    Parameters
    ----------
    decisions : ndarray of shape (n_samples, n_pairs)
        Decision values.
    positive, negative : ndarray of shape (n_samples, n_pairs)
        How often each row was seen with the first and with the second label of the pair.
    noise : float or array-like of shape (n_pairs,), default=0
        Decision values whose standard deviation is not above this are taken as constant, so that rounding errors are
        not learned from.

    Returns
    -------
    slope, intercept : ndarray of shape (n_pairs,)
        The probability of the first label is ``expit(slope * decision + intercept)``.

    Warns
    -----
    ConvergenceWarning
        If `MAX_ITERATIONS` are not enough for some pair.

    Examples
    --------
    Twice as many rows of the first label on either side of zero, and uninformative decision values:

    >>> import numpy as np
    >>> from skldl.transformation._platt import fit_sigmoids
    >>> counts = np.array([[200.0], [200.0]])
    >>> slope, intercept = fit_sigmoids(np.array([[-1.0], [1.0]]), counts, counts / 2)
    >>> abs(slope).round(9), intercept.round(2)
    (array([0.]), array([0.69]))
    """
    mass_positive, mass_negative = positive.sum(axis=0), negative.sum(axis=0)
    weight = positive + negative
    total = np.maximum(mass_positive + mass_negative, np.finfo(np.float64).tiny)
    pull = positive * ((mass_positive + 1) / (mass_positive + 2)) + negative / (mass_negative + 2)  # weight × target
    # In standard units the Hessian is near a multiple of the identity, however small the decision values are.
    centre = (weight * decisions).sum(axis=0) / total
    spread = np.sqrt((weight * (decisions - centre) ** 2).sum(axis=0) / total)
    informative = spread > noise
    unit = np.where(informative, spread, 1.0)
    standard = np.where(informative, (decisions - centre) / unit, 0.0)
    slope = np.zeros(decisions.shape[1])
    intercept = np.log((mass_positive + 1) / (mass_negative + 1))
    active = np.flatnonzero(mass_positive + mass_negative > 0)  # without any row, the even odds above are kept
    for _ in range(MAX_ITERATIONS):
        if not active.size:
            break
        z, w, t = standard[:, active], weight[:, active], pull[:, active]
        slope[active], intercept[active], done = _newton_step(z, w, t, slope[active], intercept[active], total[active])
        active = active[~done]
    if active.size:
        warn(
            f"Platt's posterior of {active.size} of {len(slope)} pairs of labels has not converged after "
            f"{MAX_ITERATIONS} steps. Look for extreme sample weights or features, or lower C.",
            ConvergenceWarning,
        )
    slope = slope / unit
    return slope, intercept - slope * np.where(informative, centre, 0.0)


def _newton_step(
    z: FloatArray, weight: FloatArray, pull: FloatArray, slope: FloatArray, intercept: FloatArray, total: FloatArray
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """One damped Newton step for each pair, and whether it has converged."""
    score = slope * z + intercept
    probability = expit(score)
    residual = weight * probability - pull
    curvature = weight * probability * (1.0 - probability)
    ridge = 1e-12 * total  # keeps the Hessian positive definite where all decision values are equal
    h_ss = (curvature * z * z).sum(axis=0) + ridge
    h_si = (curvature * z).sum(axis=0)
    h_ii = curvature.sum(axis=0) + ridge
    g_s, g_i = (residual * z).sum(axis=0), residual.sum(axis=0)
    determinant = h_ss * h_ii - h_si**2
    d_s = -(h_ii * g_s - h_si * g_i) / determinant
    d_i = -(h_ss * g_i - h_si * g_s) / determinant
    promise = -(g_s * d_s + g_i * d_i)
    done = promise <= TOLERANCE * total
    step = np.ones_like(slope)
    change = d_s * z + d_i
    pending = np.flatnonzero(~done)  # a step with almost no predicted improvement is taken as it is
    before = _loss(score[:, pending], weight[:, pending], pull[:, pending])
    for _ in range(MAX_HALVINGS):
        after = _loss((score + step * change)[:, pending], weight[:, pending], pull[:, pending])
        worse = after > before - 1e-4 * (step * promise)[pending]
        if not worse.any():
            break
        pending, before = pending[worse], before[worse]
        step[pending] /= 2.0
    return slope + step * d_s, intercept + step * d_i, done


def _loss(score: FloatArray, weight: FloatArray, pull: FloatArray) -> FloatArray:
    """Cross-entropy of each pair: −log p = −score − log(1 − p), and both logarithms are safe."""
    return np.asarray(-(weight * log_expit(-score)).sum(axis=0) - (pull * score).sum(axis=0))
