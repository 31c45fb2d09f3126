r"""Losses between a true and a predicted distribution: one value per row, and the gradient in the scores.

The prediction is p = softmax(s). A loss f(p) with slope g = ∂f/∂p has the gradient

    ∂f/∂s = p ∘ (g − ⟨p, g⟩),

which `through_softmax` computes; it sums to zero over labels. The losses for ordered labels [1]_ work on running sums
F_j = Σ_{k≤j} d_k and F̂_j = Σ_{k≤j} p_k. Absolute values are replaced by √(x² + ε²) − ε with ε = 1e-3 and max(0, x)
by (x + √(x² + ε²))/2, so that every loss has a continuous gradient; both differ by at most ε from what they replace.

References
----------
.. [1] C. Wen, X. Zhang, X. Yao and J. Yang, "Ordinal label distribution learning", ICCV 2023.
.. [2] B.-B. Gao, H.-Y. Zhou, J. Wu and X. Geng, "Age estimation using expectation of label distribution learning",
   IJCAI 2018.
.. [3] Q. Li et al., "Unimodal-concentrated loss: fully adaptive label distribution learning for ordinal regression",
   CVPR 2022.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from scipy import special

from skldl.exceptions import DeviceError, Parameter
from skldl.utils.arrays import is_device_array, namespace
from skldl.utils.parameters import CALLABLE, NOT_NEGATIVE, Constraint, check_value, one_of
from skldl.utils.simplex import entropy
from skldl.utils.typing import FloatArray

SMOOTHING = 1e-3  # ε: about the precision to which degrees are known; chosen by hand
MIN_VARIANCE = 1e-6  # added to the variance of a prediction over its positions: a one-hot prediction has none


class RowLoss(Protocol):
    """From log p and d, both (n_rows, n_labels), to one value per row and the gradient in the scores."""

    def __call__(self, log_p: FloatArray, d: FloatArray, /) -> tuple[FloatArray, FloatArray]: ...


PredictionTerm = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From p (n_rows, n_labels) to one value per row and the slope in p."""


def through_softmax(p: FloatArray, slope: FloatArray) -> FloatArray:
    """Gradient in the scores from the slope in p, row by row."""
    weighted = p * slope
    weighted -= p * namespace(weighted).sum(weighted, axis=1, keepdims=True)
    return weighted


def smooth_absolute(x: FloatArray, epsilon: float = SMOOTHING) -> tuple[FloatArray, FloatArray]:
    """√(x² + ε²) − ε and its slope."""
    root = np.sqrt(x * x + epsilon * epsilon)
    return root - epsilon, x / root


def smooth_hinge(x: FloatArray, epsilon: float = SMOOTHING) -> tuple[FloatArray, FloatArray]:
    """(x + √(x² + ε²)) / 2, a smooth version of max(0, x) and at most ε/2 above it, and its slope."""
    root = np.sqrt(x * x + epsilon * epsilon)
    return 0.5 * (x + root), 0.5 * (1.0 + x / root)


def kullback_leibler(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ_j d_j ln(d_j / p_j)."""
    if is_device_array(d):
        xp = namespace(d)
        return -entropy(d) - xp.sum(d * log_p, axis=1), xp.exp(log_p) - d
    return (special.xlogy(d, d) - d * log_p).sum(axis=1), np.exp(log_p) - d


def divergence_plus(D: FloatArray, term: PredictionTerm | None = None) -> RowLoss:
    """Kullback-Leibler divergence from D plus a term of the prediction; the entropy of D is computed once.

    Parameters
    ----------
    D : ndarray of shape (n_samples, n_labels)
        The distributions that the loss will be called with.
    term : callable, default=None
        From p (n_samples, n_labels) to one value per row and the slope in p.

    Returns
    -------
    callable
        From log p and D to one value per row and the gradient in the scores.
    """
    constant = special.xlogy(D, D).sum(axis=1)

    def loss(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = np.exp(log_p)
        values, gradient = constant - np.einsum("ij,ij->i", d, log_p), p - d
        if term is not None:
            more, slope = term(p)
            values += more
            gradient += through_softmax(p, slope)
        return values, gradient

    return loss


def squared_error(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ_j (p_j − d_j)², the loss of AA-BP."""
    xp = namespace(log_p)
    p = xp.exp(log_p)
    error = p - d
    values = np.einsum("ij,ij->i", error, error) if xp is np else xp.sum(error * error, axis=1)
    return values, through_softmax(p, 2.0 * error)


def cumulative_absolute(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """CAD, Σ_j |F_j − F̂_j|: the earth mover's distance for labels in steps of one."""
    p = np.exp(log_p)
    values, slope = smooth_absolute(np.cumsum(p - d, axis=1)[:, :-1])  # the last running sums are both one
    return values.sum(axis=1), through_softmax(p, _sums_from_right(slope))


def quadratic_form(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """QFD², (p − d)ᵀ A (p − d) with A_jk = 1 − |j − k| / (c − 1)."""
    p = np.exp(log_p)
    positions = np.arange(d.shape[1])
    A = 1.0 - np.abs(positions[:, None] - positions) / (d.shape[1] - 1)
    product = (p - d) @ A
    return np.einsum("ij,ij->i", p - d, product), through_softmax(p, 2.0 * product)


def cumulative_jensen_shannon(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """CJS, ½ Σ_j [F ln(2F/(F + F̂)) + F̂ ln(2F̂/(F + F̂))]."""
    p = np.exp(log_p)
    true = np.minimum(np.cumsum(d, axis=1)[:, :-1], 1.0)  # above 1 only by rounding
    # logarithms of the running sums, so that the slope is finite where p underflows
    log_pred = np.logaddexp.accumulate(log_p, axis=1)[:, :-1]
    pred = np.exp(log_pred)
    log_middle = np.log(np.maximum(0.5 * (true + pred), np.finfo(np.float64).tiny))
    values = 0.5 * (special.xlogy(true, true) - true * log_middle + pred * (log_pred - log_middle))
    slope = 0.5 * (log_pred - log_middle)
    return values.sum(axis=1), through_softmax(p, _sums_from_right(slope))


def expectation(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """|E_p[y] − E_d[y]| over the positions y = 0, 1, …, c − 1: the second term of DLDL-v2."""
    p = np.exp(log_p)
    positions = np.arange(d.shape[1], dtype=np.float64)
    value, slope = smooth_absolute((p - d) @ positions)
    return value, through_softmax(p, slope[:, None] * positions)


def unimodal(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ_j max(0, −(p_j − p_{j+1}) sgn(j − y)) with y the position of the top true degree."""
    p = np.exp(log_p)
    sign = np.sign(np.arange(d.shape[1] - 1) - d.argmax(axis=1)[:, None])
    values, slope = smooth_hinge(-(p[:, :-1] - p[:, 1:]) * sign)
    values = np.where(sign == 0, 0.0, values)  # the smoothed hinge is ε/2 at 0, where the term is to be 0
    slope = slope * sign
    of_p = np.zeros_like(p)
    of_p[:, :-1] -= slope
    of_p[:, 1:] += slope
    return values.sum(axis=1), through_softmax(p, of_p)


def concentrated(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """½ ln v + (µ − y)² / 2v with mean µ and variance v of the prediction and the mean y of the truth."""
    p = np.exp(log_p)
    positions = np.arange(d.shape[1], dtype=np.float64)
    mean = p @ positions
    deviation = positions - mean[:, None]
    variance = np.einsum("ij,ij->i", p, deviation**2) + MIN_VARIANCE
    error = mean - d @ positions
    of_variance = 0.5 / variance - 0.5 * (error / variance) ** 2
    slope = of_variance[:, None] * deviation**2 + (error / variance)[:, None] * positions
    return 0.5 * np.log(variance) + 0.5 * error**2 / variance, through_softmax(p, slope)


def _sums_from_right(slope: FloatArray) -> FloatArray:
    """∂/∂p_k = Σ_{j≥k} ∂/∂F̂_j; the last running sum is fixed at one and has no slope."""
    sums = np.zeros((slope.shape[0], slope.shape[1] + 1))
    sums[:, :-1] = np.cumsum(slope[:, ::-1], axis=1)[:, ::-1]
    return sums


LOSSES: dict[str, RowLoss] = {
    "kullback_leibler": kullback_leibler,
    "squared_error": squared_error,
    "cad": cumulative_absolute,
    "qfd2": quadratic_form,
    "cjs": cumulative_jensen_shannon,
    "expectation": expectation,
    "unimodal": unimodal,
    "concentrated": concentrated,
}
"""Losses and penalties by name."""

COMBINATIONS: dict[str, Mapping[str, float]] = {
    "dldl_v2": {"kullback_leibler": 1.0, "expectation": 1.0},
}
"""Sums of them that papers propose, by name."""


PENALTIES = ("expectation", "unimodal", "concentrated")
"""Terms that look at the mean or the shape of a prediction alone: minimised by themselves, they fit no distribution."""


def _is_sum(loss: Any) -> bool:
    """Whether a value is a mapping from names of losses to coefficients."""
    if not isinstance(loss, Mapping) or not loss or not set(loss) <= set(LOSSES):
        return False
    return all(NOT_NEGATIVE.accepts(coefficient) for coefficient in loss.values())


def _is_fitting_sum(loss: Any) -> bool:
    """Whether a value is such a mapping, and not all that counts in it is a penalty."""
    return _is_sum(loss) and any(loss[name] > 0 for name in set(loss) - set(PENALTIES))


TERM = (
    one_of(*LOSSES, *COMBINATIONS)
    | CALLABLE
    | Constraint("a mapping from these names to finite coefficients of at least 0", _is_sum)
)
"""Valid arguments of `resolve_loss`."""
LOSS = (
    one_of(
        *(name for name in LOSSES if name not in PENALTIES),
        *COMBINATIONS,
        hint=f"{', '.join(PENALTIES)} are penalties, which fit no distribution alone: add them to a loss, as in "
        "{'kullback_leibler': 1, 'unimodal': 0.1}",
    )
    | CALLABLE
    | Constraint("a mapping from names of losses to finite coefficients of at least 0", _is_fitting_sum)
)
"""Valid values of a hyper-parameter ``loss``."""


DEVICE_LOSSES = ("kullback_leibler", "squared_error")
"""Losses that also compute on a device."""


def check_device_loss(loss: Any) -> None:
    """Raise an error for a loss, given by name, that computes with NumPy alone."""
    names = [loss] if isinstance(loss, str) else list(loss) if isinstance(loss, Mapping) else []
    for name in names:
        if name not in DEVICE_LOSSES:
            raise DeviceError(
                Parameter("loss", loss),
                f" is computed with NumPy: on a device choose {' or '.join(DEVICE_LOSSES)}, or pass NumPy arrays.",
            )


def resolve_loss(loss: Any) -> RowLoss:
    """Return the loss that a name, a mapping from names to coefficients, or a function defines.

    Parameters
    ----------
    loss : str, mapping from str to float, or callable
        As in `skldl.losses.SmoothLossLDL`.

    Returns
    -------
    callable
        From log p and d to one value per row and the gradient in the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.losses import resolve_loss
    >>> values, gradient = resolve_loss("kullback_leibler")(np.log([[0.5, 0.5]]), np.array([[0.2, 0.8]]))
    >>> values.round(4), gradient.round(2)
    (array([0.1927]), array([[ 0.3, -0.3]]))
    """
    check_value("loss", loss, TERM)
    if callable(loss):
        return loss
    if isinstance(loss, str):
        if loss in LOSSES:
            return LOSSES[loss]
        loss = COMBINATIONS[loss]
    return _sum_of([(float(coefficient), LOSSES[name]) for name, coefficient in loss.items()])


def _sum_of(terms: list[tuple[float, RowLoss]]) -> Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """The weighted sum of several losses."""

    def total(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
        xp = namespace(d)
        gradient = xp.zeros_like(d)
        values = np.zeros(len(d)) if xp is np else xp.sum(gradient, axis=1)
        for coefficient, term in terms:
            term_values, term_gradient = term(log_p, d)
            values += coefficient * term_values
            gradient += coefficient * term_gradient
        return values, gradient

    return total
