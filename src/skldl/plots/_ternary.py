"""`TernaryDisplay`: distributions over three labels as points in a triangle whose corners are the labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from skldl.exceptions import DimensionError
from skldl.plots._display import PredictionDisplay, evenly_spaced, named_predictions, names_of_labels
from skldl.plots._style import FAINT, MUTED, TRUTH, looks, plain
from skldl.utils.typing import FloatArray

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


@dataclass(eq=False)
class TernaryDisplay(PredictionDisplay):
    """Real and predicted distributions in one triangle, a thin line from each real point to its prediction.

    The nearer a point is to a corner, the more that label describes the instance.

    Parameters
    ----------
    true : ndarray of shape (n_samples, 3)
        Real distributions.
    predicted : dict of ndarray of shape (n_samples, 3)
        From the name of each model to its predictions.
    label_names : list of str
        Names of the three labels.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import TernaryDisplay
    >>> display = TernaryDisplay.from_predictions([[0.2, 0.3, 0.5]], [[0.3, 0.3, 0.4]])
    >>> display.ax_.get_aspect()
    1.0
    """

    true: FloatArray
    predicted: dict[str, FloatArray]
    label_names: list[str]

    @classmethod
    def from_predictions(
        cls,
        D_true: Any,
        D_pred: Any,
        *,
        max_points: int = 100,
        label_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the figure from true and predicted distributions.

        Parameters
        ----------
        D_true : array-like or DataFrame of shape (n_samples, 3)
            True distributions.
        D_pred : array-like or mapping
            Predicted distributions, or several tables of them by name.
        max_points : int, default=100
            Maximum number of rows to draw; of more rows, evenly spaced ones are drawn.
        label_names : sequence of str, default=None
            Names of the labels.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        TernaryDisplay
            The figure, drawn.
        """
        true, predicted = named_predictions(D_true, D_pred)
        if true.shape[1] != 3:
            raise DimensionError(f"The triangle needs three labels, but there are {true.shape[1]}.")
        rows = evenly_spaced(len(true), max_points)
        names = names_of_labels(D_true, label_names, 3)
        return cls(true[rows], {name: table[rows] for name, table in predicted.items()}, names).plot(ax)

    def _size(self, width: float | None) -> tuple[float, float]:
        return 5.2, 4.6 if width is None else min(4.6, 0.89 * width)

    def _draw(self, ax: Axes | None) -> None:
        ax = self._axes(ax)
        self._draw_triangle()
        real = self.true @ _CORNERS
        for name, look in looks(self.predicted).items():
            guess = self.predicted[name] @ _CORNERS
            lines = LineCollection(list(np.stack([real, guess], axis=1)), colors=look.colour, linewidths=0.4, alpha=0.6)
            ax.add_collection(lines, autolim=False)
            ax.plot(
                *guess.T, linestyle="none", marker=look.marker, markersize=3.5, color=look.colour, label=plain(name)
            )
        ax.plot(*real.T, linestyle="none", marker=".", markersize=4, color=TRUTH, label="real")
        ax.legend(loc="upper right", bbox_to_anchor=(1.0, 1.0))

    def _draw_triangle(self) -> None:
        self.ax_.set(xlim=(-0.12, 1.12), ylim=(-0.12, 0.98), aspect="equal")
        self.ax_.set_axis_off()
        self.ax_.plot(*_CORNERS[[0, 1, 2, 0]].T, color=MUTED, linewidth=0.9)
        for degree in (0.25, 0.5, 0.75):
            for corner in range(3):
                ends = np.full((2, 3), 0.0)
                ends[:, corner] = degree
                ends[0, (corner + 1) % 3] = ends[1, (corner + 2) % 3] = 1 - degree
                self.ax_.plot(*(ends @ _CORNERS).T, color=FAINT, linewidth=0.5, zorder=0)
        for corner, (place, anchor) in enumerate(zip(_CORNERS, ("top", "top", "bottom"), strict=True)):
            shift = -0.03 if anchor == "top" else 0.03
            self.ax_.text(place[0], place[1] + shift, plain(self.label_names[corner]), ha="center", va=anchor)
