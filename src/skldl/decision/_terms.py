"""Terms of the objectives of LDL4C, LDL-HR and LDLM: one value per row, and its slope in the prediction p.

`TopAndRestLDL` is the base class of LDL-HR and LDLM, which learn the top label as a one-hot target with a margin, and
the other degrees as they are.

Absolute values and max(0, ·) are smoothed at the scale ε = ``smoothing``: √(x² + ε²) − ε and (x + √(x² + ε²))/2.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldl.losses._linear_softmax import LinearSoftmaxLDL, ScoreObjective, TrainingSet, mean_of
from skldl.losses._rows import smooth_absolute, smooth_hinge, through_softmax
from skldl.utils.parameters import NOT_NEGATIVE, POSITIVE
from skldl.utils.typing import FloatArray

ALPHA_FACTOR = 10.0  # of the automatic penalty: absolute errors are larger than divergences; chosen by hand


@dataclass(frozen=True)
class TopLabels:
    """The labels of each row in the order of their true degrees.

    Attributes
    ----------
    first, second : ndarray of shape (n_samples,)
        The two labels with the largest degrees; of equal degrees, the first columns.
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
        """Sort the labels of each row by their degrees."""
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
    """Insensitive version max(0, value − threshold) of a term."""
    above, factor = smooth_hinge(values - threshold, smoothing)
    return above, slope * factor[:, None]


def margin_to_second(p: FloatArray, top: TopLabels, rho: float, smoothing: float) -> tuple[FloatArray, FloatArray]:
    """max(0, 1 − (p_first − p_second) / ρ)."""
    rows = np.arange(len(p))
    # smoothed as max(0, ρ − x) / ρ, so that the smoothing is in the unit of the degrees
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
    slope[rows, top.first] = -slope.sum(axis=1)  # p_first is in every term; its own entry is 0 so far
    return values.sum(axis=1), slope


class TopAndRestLDL(LinearSoftmaxLDL):
    """Base class of LDL-HR and LDLM; a subclass may transform the absolute errors in ``_soften``."""

    _constraints: ClassVar = {
        **LinearSoftmaxLDL._constraints,
        "margin_weight": NOT_NEGATIVE,
        "rest_weight": NOT_NEGATIVE,
        "rho": POSITIVE,
        "smoothing": POSITIVE,
    }

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        margin_weight: float = 0.1,
        rest_weight: float = 10.0,
        rho: float = 0.01,
        fit_intercept: bool = True,
        smoothing: float = 1e-3,
        max_iter: int = 1000,
        tol: float = 1e-9,
    ) -> None:
        self.alpha = alpha
        self.margin_weight = margin_weight
        self.rest_weight = rest_weight
        self.rho = rho
        self.fit_intercept = fit_intercept
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol

    def _penalty(self, training: TrainingSet) -> float:
        """``alpha``, or ten times the automatic choice, because absolute errors are larger than divergences."""
        return (ALPHA_FACTOR if self.alpha == "auto" else 1.0) * training.alpha(self.alpha)

    def _soften(
        self, values: FloatArray, slope: FloatArray, threshold: float | FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Transform the absolute error of each row and its slope; here the identity."""
        return values, slope

    def _objective(self, training: TrainingSet) -> tuple[ScoreObjective, float]:
        top = training.shared("top labels", lambda: TopLabels.of(training.D))
        others = 1.0 - top.one_hot

        def loss(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
            p = np.exp(log_p)
            values, slope = self._soften(*absolute_error(p, top.one_hot, self.smoothing), self.rho)
            margin, margin_slope = margin_to_all(p, top, self.rho, self.smoothing)
            rest, rest_slope = self._soften(*absolute_error(p, d, self.smoothing, others), top.gap)
            values = values + self.margin_weight * margin + self.rest_weight * rest
            slope = slope + self.margin_weight * margin_slope + self.rest_weight * rest_slope
            return values, through_softmax(p, slope)

        return mean_of(loss, training.D, training.weight), 0.0
