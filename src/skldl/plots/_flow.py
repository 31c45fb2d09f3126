"""`FlowDisplay`: the steps of label distribution learning compared with learning with scores (Fig. 1 of [1]_).

References
----------
.. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.plots._display import PredictionDisplay, named_predictions
from skldl.plots._style import FAINT, MUTED, TRUTH, looks
from skldl.utils.typing import FloatArray

_BLUE = looks(["SA-BFGS"])["SA-BFGS"].colour
_ORANGE = looks(["SA-IIS"])["SA-IIS"].colour


@dataclass(eq=False)
class FlowDisplay(PredictionDisplay):
    """Two flow charts, one above the other, with the numbers of one instance.

    Above, the distribution is part of the data, is predicted, and is compared as a whole. Below, the data are labels,
    the learner computes scores, a threshold turns them into labels, and only the labels are compared.

    Parameters
    ----------
    true : ndarray of shape (n_labels,)
        The real distribution of an instance.
    predicted : ndarray of shape (n_labels,)
        The predicted one, also drawn as the scores of the lower flow chart.
    threshold : float
        Labels from this degree on are positive in the lower flow chart.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import FlowDisplay
    >>> display = FlowDisplay().plot()
    >>> len(display.charts_)
    5
    """

    true: FloatArray = field(default_factory=lambda: np.array([0.40, 0.30, 0.18, 0.12]))
    predicted: FloatArray = field(default_factory=lambda: np.array([0.36, 0.31, 0.21, 0.12]))
    threshold: float = 0.25
    _inches: ClassVar[tuple[float, float]] = (9.5, 4.1)

    @classmethod
    def from_predictions(
        cls, D_true: Any, D_pred: Any, *, row: int = 0, threshold: float = 0.25, ax: Axes | None = None
    ) -> Self:
        """Draw the flow charts with the numbers of one instance.

        Parameters
        ----------
        D_true, D_pred : array-like or DataFrame of shape (n_samples, n_labels)
            True and predicted distributions.
        row : int, default=0
            Which instance to draw.
        threshold : float, default=0.25
            Labels from this degree on are positive in the lower flow chart.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        FlowDisplay
            The figure, drawn.
        """
        true, predicted = named_predictions(D_true, D_pred)
        return cls(true[row], next(iter(predicted.values()))[row], threshold).plot(ax)

    def _draw(self, ax: Axes | None) -> None:
        ax = self._axes(ax)
        ax.set(xlim=(0, 100), ylim=(0, 44))
        ax.set_axis_off()
        self.charts_: list[Axes] = []
        positive = np.asarray(self.true >= self.threshold, dtype=float)
        decided = np.asarray(self.predicted >= self.threshold, dtype=float)

        self._heading(43, "Label distribution learning")
        self._chart(3, 27, self.true, _BLUE, "distribution,\npart of the data")
        self._arrow(17, 25, 32.5)
        self._box(26, 28.5, "learner")
        self._arrow(42, 50, 32.5)
        self._chart(51, 27, self.predicted, _BLUE, "predicted\ndistribution")
        self._arrow(65, 73, 32.5)
        self._box(74, 28.5, "compared as a whole:\ndistance between\ndistributions", width=25)

        self._heading(20.5, "Learning with numerical indicators")
        self._chart(0, 4.5, positive, _ORANGE, "labels,\nyes or no", width=11)
        self._arrow(12, 18, 10)
        self._box(19, 6, "learner", width=13)
        self._arrow(33, 39, 10)
        self._chart(40, 4.5, self.predicted, MUTED, "intermediate\nscores", width=11, line=self.threshold)
        self._arrow(52, 58, 10, "threshold")
        self._chart(59, 4.5, decided, _ORANGE, "labels,\nyes or no", width=11)
        self._arrow(71, 77, 10)
        self._box(78, 6, "compared as a set:\naccuracy,\nHamming loss", width=21)

    def _heading(self, height: float, text: str) -> None:
        self.ax_.text(0, height, text, fontweight="bold", va="top", fontsize=10)

    def _box(self, left: float, bottom: float, text: str, width: float = 15) -> None:
        box = self.ax_.inset_axes((left, bottom, width, 8), transform=self.ax_.transData)
        box.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
        for spine in box.spines.values():
            spine.set(visible=True, color=MUTED)
        box.text(0.5, 0.5, text, ha="center", va="center", fontsize=8.5)

    def _arrow(self, start: float, end: float, height: float, text: str = "") -> None:
        self.ax_.annotate(
            "",
            (end, height),
            (start, height),
            arrowprops={"arrowstyle": "-|>", "color": TRUTH, "shrinkA": 0, "shrinkB": 0},
        )
        if text:
            self.ax_.text((start + end) / 2, height + 1.2, text, ha="center", va="bottom", fontsize=8)

    def _chart(
        self,
        left: float,
        bottom: float,
        values: FloatArray,
        colour: str,
        text: str,
        width: float = 13,
        line: float | None = None,
    ) -> None:
        chart = self.ax_.inset_axes((left, bottom, width, 10.5), transform=self.ax_.transData)
        chart.bar(np.arange(len(values)), values, 0.75, color=colour, edgecolor=FAINT, linewidth=0.3)
        chart.set(xticks=[], yticks=[], ylim=(0, max(1.15 * float(values.max()), 0.1)), xlim=(-0.7, len(values) - 0.3))
        if line is not None:
            chart.axhline(line, color=TRUTH, linewidth=1, linestyle="--")
        chart.set_xlabel(text, fontsize=8)
        self.charts_.append(chart)
