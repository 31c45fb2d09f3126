"""`DistributionDisplay`: the real distribution of one instance and the predictions of models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.plots._display import PredictionDisplay, named_predictions, names_of_labels
from skldl.plots._style import FAINT, MUTED, legend_beside, looks, name_axis, plain
from skldl.utils.typing import FloatArray

MAX_NAME_LENGTH = 18


@dataclass(eq=False)
class DistributionDisplay(PredictionDisplay):
    """Real distribution of one instance as bars, predictions as marks on top of them.

    Parameters
    ----------
    true : ndarray of shape (n_labels,)
        The real distribution.
    predicted : dict of ndarray of shape (n_labels,)
        From the name of each model to its prediction.
    label_names : list of str
        Names of the labels.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import DistributionDisplay
    >>> display = DistributionDisplay.from_predictions([[0.2, 0.8]], [[0.4, 0.6]], label_names=["no", "yes"])
    >>> display.ax_.get_ylabel()
    'description degree'
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
        row: int = 0,
        label_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the figure from true and predicted distributions.

        Parameters
        ----------
        D_true : array-like or DataFrame of shape (n_samples, n_labels)
            True distributions.
        D_pred : array-like or mapping
            Predicted distributions, or several tables of them by name.
        row : int, default=0
            Which instance to draw.
        label_names : sequence of str, default=None
            Names of the labels.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        DistributionDisplay
            The figure, drawn.
        """
        true, predicted = named_predictions(D_true, D_pred)
        names = names_of_labels(D_true, label_names, true.shape[1])
        return cls(true[row], {name: table[row] for name, table in predicted.items()}, names).plot(ax)

    def _size(self, width: float | None) -> tuple[float, float]:
        longest = min(max(len(name) for name in self.label_names), MAX_NAME_LENGTH)
        return min(4.0 + 0.18 * len(self.true), 15.0), 2.3 + 0.08 * longest

    def _draw(self, ax: Axes | None) -> None:
        n_labels = len(self.true)
        places = np.arange(n_labels)
        ax = self._axes(ax)
        ax.bar(places, self.true, 0.8, color=FAINT, edgecolor=MUTED, linewidth=0.6, label="real")
        for name, look in looks(self.predicted).items():
            ax.plot(
                places,
                self.predicted[name],
                **look.line,
                linewidth=0.9,
                markersize=4.5 if n_labels <= 30 else 3,
                label=plain(name),
            )
        ax.set_xlim(-0.7, n_labels - 0.3)
        ax.set_ylim(bottom=0)
        ax.set_ylabel("description degree")
        legend_beside(ax)
        name_axis(ax, self.label_names, "x", limit=MAX_NAME_LENGTH)
