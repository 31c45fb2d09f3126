"""Common code of curves over folds: the figure, the band, and the sign of a scorer."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from skldl._typing import FloatArray
from skldl.metrics import Measure
from skldl.plots._inputs import axis_title
from skldl.plots._style import legend_beside, looks, new_axes, plain, style


def band_figure(
    ax: Axes | None, x: npt.ArrayLike, curves: Mapping[str, FloatArray], x_title: str, measure: str | Measure
) -> Axes:
    """Draw the bands of all curves into the given axes, or those of a new figure, with titles and legend."""
    with style():
        ax = new_axes(ax, 6.2, 3.4)
        draw_bands(ax, x, curves)
        ax.set_xlabel(x_title)
        ax.set_ylabel(axis_title(measure))
        ax.grid(axis="y")
        legend_beside(ax)
    return ax


def draw_bands(ax: Axes, x: npt.ArrayLike, curves: Mapping[str, FloatArray]) -> None:
    """Mean over folds as a line, one standard deviation to either side as a band."""
    for name, look in looks(curves).items():
        mean = curves[name].mean(axis=1)
        spread = curves[name].std(axis=1, ddof=1) if curves[name].shape[1] > 1 else np.zeros(len(mean))
        ax.fill_between(x, mean - spread, mean + spread, color=look.colour, alpha=0.15, linewidth=0)
        ax.plot(x, mean, **look.line, label=plain(name))


def as_values(scores: npt.ArrayLike, measure: Measure) -> FloatArray:
    """Undo the sign that a scorer gives to a distance."""
    return np.asarray(scores, dtype=np.float64) * (1.0 if measure.higher_is_better else -1.0)
