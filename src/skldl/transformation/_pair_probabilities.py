"""Probabilities of PT-SVM: Platt's posterior for each pair of labels, and their coupling into one distribution.

Platt's posterior is the logistic function that turns decision values into probabilities. For one pair of labels with
decision values f_i, and row i seen u_i times with the first label and v_i times with the second, its parameters
minimise the cross-entropy

    Σ_i u_i·H(t₊, p_i) + v_i·H(t₋, p_i),   p_i = 1 / (1 + exp(−(slope·f_i + intercept))),

with Platt's targets t₊ = (Σu + 1) / (Σu + 2) and t₋ = 1 / (Σv + 2) in place of 1 and 0, by Newton's method with
backtracking as Lin, Lin and Weng [1]_ write it: no exponential of a positive number is ever taken.

Let r_ij be the probability of label i where only i and j are possible. The second method of Wu, Lin and Weng [2]_
couples them into

    p = argmin ½ Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)²   with   Σ_i p_i = 1,

which is ½ pᵀQp with Q_ii = Σ_{j≠i} r_ji² and Q_ij = −r_ji r_ij. Its optimum satisfies Qp = −b·1, so p is the solution
of (Q + τ11ᵀ) x = 1 for any τ > 0, divided by its sum: one linear system for each row, all rows at once.

References
----------
.. [1] H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs for support vector machines",
   Machine Learning 68, 2007, 267-276.
.. [2] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class classification by pairwise
   coupling", Journal of Machine Learning Research 5, 2004, 975-1005.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning

from skldl.utils.typing import BoolArray, FloatArray
from skldl.utils.warn import warn

MAX_ITERATIONS = 100
MAX_HALVINGS = 40
TOLERANCE = 1e-12
"""A pair is done when the predicted improvement per unit of weight is below this."""

MIN_PROBABILITY = 1e-7
"""Pair probabilities are kept this far from 0 and 1, as LIBSVM does, so that every system has one solution."""


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
    >>> from skldl.transformation._pair_probabilities import fit_sigmoids
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
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Take one damped Newton step for each pair; return slopes, intercepts and which pairs had converged."""
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


def couple(pair_probabilities: npt.ArrayLike, n_labels: int) -> FloatArray:
    """Couple the probabilities of all pairs of labels into distributions.

    Parameters
    ----------
    pair_probabilities : array-like of shape (n_samples, n_labels * (n_labels - 1) / 2)
        Probability of label a against label b for a < b, in the order of ``np.triu_indices(n_labels, 1)``.
    n_labels : int
        Number of labels, at least two.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Non-negative rows that sum to one.

    Examples
    --------
    The odds 1 : 2 : 1 agree on all three pairs, so coupling finds them again.

    >>> from skldl.transformation._pair_probabilities import couple
    >>> couple([[1 / 3, 1 / 2, 2 / 3]], n_labels=3)
    array([[0.25, 0.5 , 0.25]])
    """
    won = np.clip(np.asarray(pair_probabilities, dtype=np.float64), MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    if n_labels == 2:
        return np.hstack([won, 1.0 - won])
    first, second = np.triu_indices(n_labels, 1)
    quadratic = np.zeros((len(won), n_labels, n_labels))
    quadratic[:, first, second] = won  # r_ij
    quadratic[:, second, first] = 1.0 - won
    diagonal = np.einsum("sji,sji->si", quadratic, quadratic)
    cross = won * (won - 1.0)
    quadratic[:, first, second] = cross
    quadratic[:, second, first] = cross
    labels = np.arange(n_labels)
    quadratic[:, labels, labels] = diagonal
    quadratic += diagonal.mean(axis=1)[:, None, None] / n_labels  # τ of the size of Q keeps the system well scaled
    solution = np.linalg.solve(quadratic, np.ones((len(won), n_labels, 1)))[:, :, 0]
    np.maximum(solution, 0.0, out=solution)  # non-negative in exact arithmetic
    return np.asarray(solution / solution.sum(axis=1, keepdims=True))
