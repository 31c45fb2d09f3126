"""`QualityTimeDisplay`: quality of models against the time to fit and predict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox
from sklearn.model_selection import cross_validate

from skldl.metrics import SCORERS, Measure
from skldl.plots._display import Display, as_values, axis_title, find_measure, is_higher_better, named_estimators
from skldl.plots._style import few_log_ticks, figure_of, legend_beside, looks, plain

_MARKER = 8  # points
_GAP = 8  # points between the centre of a marker and the name beside it
_OFFSETS = [(side * _GAP, height) for height in (0, _GAP, -_GAP) for side in (1, -1)]


@dataclass(eq=False)
class QualityTimeDisplay(Display):
    """One point for each model: time to fit and predict on a logarithmic x axis, quality on the y axis.

    The names are beside the points, or in a legend if any of them would overlap another element.

    Parameters
    ----------
    seconds : dict of float or sequence of float
        From the name of each model to its time in seconds, of each fold or dataset.
    values : dict of float or sequence of float
        From the name of each model to its values of the measure.
    measure : str or Measure
        The measure; better values are at the top. Any other text is the name of a quantity that is better if it is
        lower.
    time_name : str
        Title of the x axis.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import QualityTimeDisplay
    >>> display = QualityTimeDisplay({"A": 0.1, "B": 2.0}, {"A": 0.3, "B": 0.2}, "clark").plot()
    >>> display.ax_.get_ylabel()
    'Clark (lower is better)'
    """

    seconds: dict[str, float | Sequence[float]]
    values: dict[str, float | Sequence[float]]
    measure: str | Measure = "kullback_leibler"
    time_name: str = "time to fit and predict"
    _inches: ClassVar[tuple[float, float]] = (6.4, 3.6)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, measure: str = "kullback_leibler", cv: Any = 5, ax: Axes | None = None
    ) -> Self:
        """Cross-validate one or several estimators, one fit at a time, and draw the figure.

        Parameters
        ----------
        estimator : estimator or mapping
            An estimator, or several by name. They are cloned.
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like or DataFrame of shape (n_samples, n_labels)
            Distributions.
        measure : str, default="kullback_leibler"
            Name of the measure.
        cv : int or splitter, default=5
            The folds, as scikit-learn takes them.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        QualityTimeDisplay
            The figure, drawn.
        """
        found = find_measure(measure)
        seconds: dict[str, float | Sequence[float]] = {}
        values: dict[str, float | Sequence[float]] = {}
        for name, model in named_estimators(estimator).items():
            result = cross_validate(model, X, y, scoring=SCORERS[found.name], cv=cv)
            seconds[name] = list(result["fit_time"] + result["score_time"])
            values[name] = list(as_values(result["test_score"], found))
        return cls(seconds, values, found).plot(ax)

    def _draw(self, ax: Axes | None) -> None:
        ax = self._axes(ax)
        points, bars = {}, []
        for name, look in looks(self.values).items():
            values, seconds = np.atleast_1d(self.values[name]), np.atleast_1d(self.seconds[name])
            spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
            # the geometric mean; clocks can measure 0 s
            x, y = float(np.exp(np.log(np.maximum(seconds, 1e-9)).mean())), float(values.mean())
            points[name] = (x, y)
            bars.append([(x, y - spread), (x, y + spread)])
            ax.errorbar(
                x,
                y,
                yerr=spread,
                color=look.colour,
                marker=look.marker,
                markersize=_MARKER,
                linestyle="none",
                elinewidth=0.8,
                capsize=2,
                label=plain(name),
            )
        ax.set_xscale("log")
        few_log_ticks(ax)
        ax.set_xlabel(f"{self.time_name} in seconds (further left is faster)")
        ax.set_ylabel(axis_title(self.measure))
        if not is_higher_better(self.measure):
            ax.invert_yaxis()
        ax.grid(axis="y")
        if not _name_points(ax, points, bars):
            legend_beside(ax)


def _name_points(ax: Axes, points: dict[str, tuple[float, float]], bars: list[list[tuple[float, float]]]) -> bool:
    """Write the name of each point beside it; if there is no free space for one of them, write none, return False."""
    figure = figure_of(ax)
    figure.draw_without_rendering()  # computes the final layout
    pixels = figure.dpi / 72
    taken = [Bbox(ax.transData.transform(bar)).padded(2 * pixels) for bar in bars]
    taken += [Bbox([at, at]).padded(_MARKER / 2 * pixels) for at in ax.transData.transform(list(points.values()))]
    written = []
    for name, point in points.items():
        for dx, dy in _OFFSETS:
            text = ax.annotate(
                plain(name),
                point,
                (dx, dy),
                textcoords="offset points",
                ha="left" if dx > 0 else "right",
                va="center",
                fontsize=mpl.rcParams["legend.fontsize"],
            )
            box = text.get_window_extent()
            if all(ax.bbox.contains(*corner) for corner in box.corners()) and not box.count_overlaps(taken):
                taken.append(box)
                written.append(text)
                break
            text.remove()
        else:
            for text in written:
                text.remove()
            return False
    return True
