"""Sharpness and mean share: two numbers, chosen on out-of-bag predictions, that calibrate an averaged prediction.

An average of distributions is less concentrated than its members, and a leaf without mass for a label gives it zero
probability. Both are corrected by

    p_s,b = (1 - s) · p^b / Σ_j p_j^b + s · mean,

where ``b`` is the sharpness (1 leaves p as it is, more concentrates it), ``s`` the mean share (more than 0 makes the
prediction strictly positive) and ``mean`` the mean training distribution.
"""

import numpy as np
from scipy.special import xlogy

from skldl.utils.mean_mixture import row_weights
from skldl.utils.typing import FloatArray

SHARPNESSES = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0)
MEAN_SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def calibrate(P: FloatArray, sharpness: float, mean_share: float, mean: FloatArray) -> FloatArray:
    """The distributions p_s,b for rows of P that sum to one."""
    if sharpness != 1.0:
        P = P**sharpness
        P = P / P.sum(axis=1, keepdims=True)
    return np.asarray((1.0 - mean_share) * P + mean_share * mean)


def mean_divergence(D: FloatArray, P: FloatArray, weight: FloatArray | None) -> float:
    """Weighted mean Kullback-Leibler divergence from D to P, whose rows are positive."""
    with np.errstate(divide="ignore"):
        divergence = (xlogy(D, D) - xlogy(D, P)).sum(axis=1)
    return float(np.average(divergence, weights=weight))


def choose_calibration(
    D: FloatArray,
    P: FloatArray,
    variance: FloatArray,
    mean: FloatArray,
    weight: FloatArray | None,
    sharpnesses: tuple[float, ...] = SHARPNESSES,
    mean_shares: tuple[float, ...] = MEAN_SHARES,
) -> tuple[float, float, float]:
    """Least mean divergence over both grids, with the sharpness and the mean share that give it.

    ``variance`` is the part of the variance of P that the final prediction, a mean over more trees, will not have. It
    raises the divergence by Σ_j var_j / (2 p_j) to second order; that is subtracted, because otherwise few trees would
    make large leaves and low sharpness look better than they are.
    """
    results = []
    relative_variance = np.divide(variance, P**2, out=np.zeros_like(P), where=P > 0)
    weight = row_weights(len(D), weight)
    minus_entropy = float(weight @ xlogy(D, D).sum(axis=1))
    weighted = D * weight[:, None]
    for sharpness in sharpnesses:
        sharp = calibrate(P, sharpness, 0.0, mean)
        noise = relative_variance * (sharpness * sharp) ** 2 * (0.5 * weight[:, None])
        for share in mean_shares:
            calibrated = calibrate(sharp, 1.0, share, mean)
            with np.errstate(divide="ignore"):
                divergence = minus_entropy - float(xlogy(weighted, calibrated).sum())
            excess = np.divide(noise, calibrated, out=np.zeros_like(P), where=calibrated > 0).sum()
            results.append((divergence - float(excess) * (1.0 - share) ** 2, sharpness, share))
    return min(results)
