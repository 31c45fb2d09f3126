"""A start for the Newton method of `_newton_svm`: steps that cost one product with the same matrix for all pairs.

The alternating direction method of multipliers [1]_ gives the quadratic and the piecewise linear part of the problem a
variable each, γ and z, and draws them together with a penalty ρ:

    γ ← argmin ½ γᵀKγ + ρ/2 ‖γ − z + y‖²  with  Σ_i γ_i = 0,
    z ← argmin Σ_i h_i(z_i) + ρ/2 ‖γ − z + y‖²,
    y ← y + γ − z.

The first needs (K + ρI)⁻¹, which all pairs and folds share, the second is known in closed form; −ρy tends to f. These
steps approach the optimum slowly, but they usually come near it soon, where Newton's method needs few steps instead of
dozens. Single precision is enough for that. With a large C and a narrow kernel the most steps may not suffice.

References
----------
.. [1] S. Boyd, N. Parikh, E. Chu, B. Peleato and J. Eckstein, "Distributed optimization and statistical learning via
   the alternating direction method of multipliers", Foundations and Trends in Machine Learning 3(1), 2011.
"""

import numpy as np

from skldl.transformation._kernel import KernelMatrix
from skldl.utils.typing import FloatArray

MOST_STEPS = 500
PENALTY = 0.3
"""ρ where the largest entry of K times the mean cost of a row is 1, as a share of that entry; the share falls with the
root of that product."""
LEAST_PENALTY = 1e-5
"""Least ρ, as a share of the largest entry of K: the inverse is kept in single precision."""
RELAXATION = 1.6
"""γ is replaced by a point beyond it, seen from z: with 1.5 to 1.8 the steps are fewer (section 3.4.3 of [1]_)."""
NEAR = 3e-4
"""The steps end where ρ|γ − z| and ρ times the change of z are below it: the largest entry of each pair, on average
over the pairs, in units of f, where the margins are at ±1."""


def come_near(
    kernel: KernelMatrix, first: FloatArray, second: FloatArray, gamma: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Move many pairs near their optimum.

    Parameters
    ----------
    kernel : KernelMatrix
        Kernel of the rows.
    first, second : ndarray of shape (n_pairs, n_samples)
        Costs u and v of missing the first and the second label.
    gamma, values : ndarray of shape (n_pairs, n_samples)
        Where γ and f begin; γ is inside its bounds.

    Returns
    -------
    gamma : ndarray of shape (n_pairs, n_samples)
        γ inside its bounds.
    offset : ndarray of shape (n_pairs,)
        The offsets b.
    """
    costs = first + second
    cost = float(costs.sum() / np.count_nonzero(costs))
    penalty = _penalty(max(kernel.scale, np.finfo(np.float64).tiny), cost)
    unit = penalty * cost  # of f, where z and y are divided by the mean cost
    u, v = (first / cost).astype(np.float32), (second / cost).astype(np.float32)
    z, y = (gamma / cost).astype(np.float32), (values / -unit).astype(np.float32)
    middle, width = u - v, np.float32(1.0 / unit)
    ones = kernel.smooth(np.ones((1, u.shape[1]), dtype=np.float32), penalty)
    offset = np.zeros(len(u), dtype=np.float32)
    for _ in range(MOST_STEPS):
        near = kernel.smooth(z - y, penalty)
        offset = near.sum(axis=1) / ones.sum()
        near -= offset[:, None] * ones
        beyond = RELAXATION * near + (1.0 - RELAXATION) * z
        soft = beyond + y - middle
        soft -= np.clip(soft, -width, width)
        previous, z = z, middle + np.clip(soft, -u, v)
        y += beyond - z
        apart = np.maximum(np.abs(near - z).max(axis=1), np.abs(z - previous).max(axis=1))
        if unit * apart.mean() <= NEAR:
            break
    return np.clip(cost * z.astype(np.float64), -second, first), unit * offset.astype(np.float64)


def _penalty(scale: float, cost: float) -> float:
    """ρ, rounded to a power of two: the same for all folds, so that they share the inverse."""
    share = max(LEAST_PENALTY, PENALTY / float(np.sqrt(scale * cost)))
    return scale * 2.0 ** round(float(np.log2(share)))
