"""`from_neighbours`: an ordered label, such as an age or a rating, as a distribution around it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from skldl.distributions._tables import cells, check_names, check_not_empty, frame_like, is_missing
from skldl.exceptions import (
    DataError,
    LengthMismatchError,
    MissingLabelError,
    NotNumericError,
    Parameter,
    ParameterError,
    UnknownLabelError,
)
from skldl.utils.parameters import check_value, one_of
from skldl.utils.typing import FloatArray
from skldl.utils.validation import as_real_array


def _triangular(x: FloatArray) -> FloatArray:
    """Distribution function of the triangle on [−1, 1]."""
    return np.where(x < 0, np.clip(1 + x, 0, None) ** 2 / 2, 1 - np.clip(1 - x, 0, None) ** 2 / 2)


def _laplace(x: FloatArray) -> FloatArray:
    """Distribution function of the Laplace distribution, each tail from the exponential that does not overflow."""
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


_CUMULATIVE: dict[str, Callable[[FloatArray], FloatArray]] = {
    "gaussian": special.ndtr,
    "triangular": _triangular,
    "laplace": _laplace,
}
_REACH = {"gaussian": 9.0, "triangular": 1.0, "laplace": 40.0}  # in scales; the mass beyond is below 1e-17
MAX_TURNS = 100  # of a circle on either side: wider densities are uniform over it
MAX_SCALE = 1e8
"""In intervals of the labels: a wider density is the same to eight digits, and rounding errors would dominate."""


def from_neighbours(y: Any, labels: Any, scale: Any, shape: str = "gaussian", circular: bool | float = False) -> Any:
    r"""Spread an ordered label to its neighbours.

    Each label represents the interval up to the midpoints between it and its neighbours (the outer labels for as much
    on the far side as on the near one). Its degree is the mass that a density of the given shape, centred on y,
    has in that interval:

    .. math:: d_j \propto F\Bigl(\frac{u_j - y}{s}\Bigr) - F\Bigl(\frac{l_j - y}{s}\Bigr)

    with the cumulative distribution function F and the scale s. Mass beyond the outer labels is removed and the
    row renormalised. Unlike the density at the label, this is also right for small s: s → 0 gives the whole mass to
    the label in whose interval y lies (half to each if y lies exactly between two).

    Parameters
    ----------
    y : array-like or Series of shape (n_samples,)
        Numbers; they need not be among the labels, but must lie within their intervals.
    labels : array-like of shape (n_labels,)
        Values of the labels, in the order of the columns; they need not be evenly spaced.
    scale : float or array-like of shape (n_samples,)
        Width s, at least zero, for all rows or one for each: the standard deviation of the Gaussian, half the base of
        the triangle, the mean distance of the Laplace density.
    shape : {"gaussian", "triangular", "laplace"}, default="gaussian"
        Density around y.
    circular : bool or float, default=False
        Whether the last label is a neighbour of the first, as with angles: the period, or True for evenly spaced
        labels, whose period is their number times their distance.

    Returns
    -------
    ndarray or DataFrame of shape (n_samples, n_labels)
        Rows that sum to one. A Series gives a DataFrame of the same library.

    Raises
    ------
    UnknownLabelError
        If y lies beyond the intervals of the labels.
    NotNumericError, MissingLabelError
        If y or a label is no number, or an empty cell.

    Examples
    --------
    >>> from skldl.distributions import from_neighbours
    >>> from_neighbours([3, 5], labels=[1, 2, 3, 4, 5], scale=1.0).round(3)
    array([[0.061, 0.245, 0.388, 0.245, 0.061],
           [0.   , 0.009, 0.088, 0.35 , 0.554]])
    >>> from_neighbours([0], labels=[0, 90, 180, 270], scale=90, shape="triangular", circular=True)
    array([[0.75 , 0.125, 0.   , 0.125]])
    """
    check_value("shape", shape, one_of(*_CUMULATIVE))
    names = check_names(labels, name="labels")
    values = _as_numbers(names, name="labels")
    centre = _as_numbers(cells(y), name="y")
    check_not_empty(cells(y), name="y")
    width = _check_scale(scale, len(centre))
    lower, upper, period = _intervals(values, circular)
    width = np.minimum(width, MAX_SCALE * (upper - lower).max())
    if period is None:
        _check_inside(centre, lower.min(), upper.max())
        D = _mass(lower[None] - centre[:, None], upper[None] - centre[:, None], width, shape)
    else:
        start = (centre - lower.min()) % period + lower.min()
        turns = min(int(np.ceil(_REACH[shape] * width.max() / period)) + 1, MAX_TURNS)
        D = np.zeros((len(centre), len(values)))
        for turn in range(-turns, turns + 1):
            shift = turn * period - start[:, None]
            D += _mass(lower[None] + shift, upper[None] + shift, width, shape)
    return frame_like(y, D / D.sum(axis=1, keepdims=True), names)


def _mass(lower: FloatArray, upper: FloatArray, width: FloatArray, shape: str) -> FloatArray:
    """Mass between two offsets from the centre; the density is even, so upper tails are taken from the lower side."""
    flip = lower + upper > 0
    lower, upper = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    spread = width[:, None] > 0
    scale = np.where(spread, width[:, None], 1.0)
    cumulative = _CUMULATIVE[shape]
    with np.errstate(over="ignore"):  # an offset divided by a tiny scale is infinite: the tail is then 0 or 1
        smooth = cumulative(upper / scale) - cumulative(lower / scale)
    return np.where(spread, smooth, np.heaviside(upper, 0.5) - np.heaviside(lower, 0.5))


def _intervals(values: FloatArray, circular: bool | float) -> tuple[FloatArray, FloatArray, float | None]:
    """Lower and upper end of each label's interval, and the period if there is one."""
    order = np.argsort(values)
    ascending = values[order]
    gaps = np.diff(ascending)
    period = None
    if circular is False:
        first, last = gaps[0], gaps[-1]
    else:
        period = _period(ascending, gaps, circular)
        first = last = period - (ascending[-1] - ascending[0])
    edges = np.concatenate([[ascending[0] - first / 2], ascending[:-1] + gaps / 2, [ascending[-1] + last / 2]])
    lower, upper = np.empty_like(values), np.empty_like(values)
    lower[order], upper[order] = edges[:-1], edges[1:]
    return lower, upper, period


def _period(ascending: FloatArray, gaps: FloatArray, circular: bool | float) -> float:
    if circular is True:
        if not np.allclose(gaps, gaps[0]):
            raise DataError(
                Parameter("circular", True),
                " needs evenly spaced labels. Pass the period instead, such as ",
                Parameter("circular", 360),
                ".",
            )
        return float(len(ascending) * gaps[0])
    if not (np.isfinite(circular) and circular > ascending[-1] - ascending[0]):
        raise ParameterError(
            Parameter("circular", circular),
            f" is a period and must be more than the span of the labels, {ascending[-1] - ascending[0]:g}.",
        )
    return float(circular)


def _as_numbers(entries: list[Any], *, name: str) -> FloatArray:
    numbers = np.empty(len(entries))
    for row, entry in enumerate(entries):
        if is_missing(entry):
            raise MissingLabelError(f"{name}[{row}] is missing. Remove the row, or fill the number in.", row=row)
        try:
            numbers[row] = float(entry)
        except (TypeError, ValueError):
            raise NotNumericError(f"{name}[{row}] is {entry!r}; ordered labels are numbers.", row=row) from None
        if isinstance(entry, str | bytes) or not np.isfinite(numbers[row]):
            raise NotNumericError(f"{name}[{row}] is {entry!r}; ordered labels are finite numbers.", row=row)
    return numbers


def _check_scale(scale: Any, n_samples: int) -> FloatArray:
    width = as_real_array(scale, name="scale")
    if width.ndim > 1 or (width.ndim == 1 and len(width) != n_samples):
        raise LengthMismatchError(
            f"scale has shape {width.shape}: pass one number, or one for each of {n_samples} rows."
        )
    if not np.isfinite(width).all() or (width < 0).any():
        raise DataError("scale must be finite and at least zero in every row.")
    return np.broadcast_to(width, (n_samples,))


def _check_inside(centre: FloatArray, low: float, high: float) -> None:
    """Raise an error for a number beyond the intervals of the labels."""
    outside = (centre < low) | (centre > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise UnknownLabelError(
            f"y[{row}] is {centre[row]:g}, beyond the labels, whose intervals reach from {low:g} to {high:g}. "
            "Add labels on that side, or correct the entry.",
            row=row,
        )
