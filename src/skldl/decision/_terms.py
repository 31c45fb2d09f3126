"""Terms that LDL4C, LDL-HR and LDLM are made of: each gives one value per row and its slope in the prediction p.

Absolute values and max(0, ·) are smoothed at the scale ε = ``smoothing``: √(x² + ε²) − ε and (x + √(x² + ε²))/2.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skldl._typing import FloatArray
from skldl.losses._rows import smooth_absolute, smooth_hinge


@dataclass(frozen=True)
class TopLabels:
    """The labels of each row in the order of their true degrees.

    Attributes
    ----------
    first, second : ndarray of shape (n_samples,)
        The two labels with the largest degrees; among equal ones the first in the table.
    one_hot : ndarray of shape (n_samples, n_labels)
        1 at the first label.
    gap : ndarray of shape (n_samples,)
        Degree of the second label minus that of the third; with two labels, the degree of the second.
    """

    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]
    one_hot: FloatArray
    gap: FloatArray

    @classmethod
    def of(cls, D: FloatArray) -> "TopLabels":
        """Sort the labels of each row."""
        order = np.argsort(-D, axis=1, kind="stable")
        degrees = np.take_along_axis(D, order, axis=1)
        gap = degrees[:, 1] - (degrees[:, 2] if D.shape[1] > 2 else 0.0)
        return cls(order[:, 0], order[:, 1], np.eye(D.shape[1])[order[:, 0]], gap)


def absolute_error(
    p: FloatArray, target: FloatArray, smoothing: float, mask: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Σ_j |p_j − target_j|, over all labels or over those where the mask is one."""
    values, slope = smooth_absolute(p - target, smoothing)
    if mask is not None:
        values, slope = values * mask, slope * mask
    return values.sum(axis=1), slope


def insensitive(
    values: FloatArray, slope: FloatArray, threshold: float | FloatArray, smoothing: float
) -> tuple[FloatArray, FloatArray]:
    """max(0, value − threshold) of another term."""
    above, factor = smooth_hinge(values - threshold, smoothing)
    return above, slope * factor[:, None]


def margin_to_second(p: FloatArray, top: TopLabels, rho: float, smoothing: float) -> tuple[FloatArray, FloatArray]:
    """max(0, 1 − (p_first − p_second) / ρ)."""
    rows = np.arange(len(p))
    values, slope = smooth_hinge(rho - (p[rows, top.first] - p[rows, top.second]), smoothing)
    of_p = np.zeros_like(p)
    of_p[rows, top.first] = -slope / rho
    of_p[rows, top.second] = slope / rho
    return values / rho, of_p


def margin_to_all(p: FloatArray, top: TopLabels, rho: float, smoothing: float) -> tuple[FloatArray, FloatArray]:
    """Σ_{j ≠ first} max(0, ρ − (p_first − p_j))."""
    rows = np.arange(len(p))
    values, slope = smooth_hinge(rho - (p[rows, top.first][:, None] - p), smoothing)
    others = 1.0 - top.one_hot
    values, slope = values * others, slope * others
    slope[rows, top.first] = -slope.sum(axis=1)
    return values.sum(axis=1), slope
