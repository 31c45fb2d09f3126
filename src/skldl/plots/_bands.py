"""Common code of curves over folds: the figure, and the sign of a scorer."""

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from skldl.metrics import Measure
from skldl.plots._display import Display
from skldl.plots._inputs import axis_title
from skldl.plots._style import legend_beside, looks, plain
from skldl.utils.typing import FloatArray


class BandDisplay(Display):
    """Base of figures of curves: the mean over folds as a line, one standard deviation to either side as a band."""

    curves: dict[str, FloatArray]
    measure: str | Measure

    def _draw_bands(self, ax: Axes | None, x: npt.ArrayLike, x_title: str) -> Axes:
        """Draw the bands of all curves, titles and legend."""
        ax = self._take(ax, 6.2, 3.4)
        for name, look in looks(self.curves).items():
            values = self.curves[name]
            mean = values.mean(axis=1)
            spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(mean))
            ax.fill_between(x, mean - spread, mean + spread, color=look.colour, alpha=0.15, linewidth=0)
            ax.plot(x, mean, **look.line, label=plain(name))
        ax.set_xlabel(x_title)
        ax.set_ylabel(axis_title(self.measure))
        ax.grid(axis="y")
        legend_beside(ax)
        return ax


def as_values(scores: npt.ArrayLike, measure: Measure) -> FloatArray:
    """Undo the sign that a scorer gives to a distance."""
    return np.asarray(scores, dtype=np.float64) * (1.0 if measure.higher_is_better else -1.0)
