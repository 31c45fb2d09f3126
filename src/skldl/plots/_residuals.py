"""`ResidualsDisplay`: quantiles of predicted minus real degree for each label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.plots._display import PredictionDisplay, named_predictions, names_of_labels
from skldl.plots._style import MUTED, height_for, legend_beside, looks, name_axis, plain
from skldl.utils.typing import FloatArray

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def residual_quantiles(true: FloatArray, predicted: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Quantiles of predicted minus real degree of each label, for each table of predictions."""
    return {name: np.quantile(table - true, QUANTILES, axis=0) for name, table in predicted.items()}


@dataclass(eq=False)
class ResidualsDisplay(PredictionDisplay):
    """One line for each label: median, middle half and middle 90 % of predicted minus real degree.

    Parameters
    ----------
    quantiles : dict of ndarray of shape (5, n_labels)
        From the name of each model to the quantiles 5, 25, 50, 75 and 95 % of its residuals.
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
    >>> from skldl.plots import ResidualsDisplay
    >>> display = ResidualsDisplay.from_predictions([[0.2, 0.8], [0.4, 0.6]], [[0.3, 0.7], [0.5, 0.5]])
    >>> display.quantiles["predicted"][2].round(2)
    array([ 0.1, -0.1])
    """

    quantiles: dict[str, FloatArray]
    label_names: list[str]

    @classmethod
    def from_predictions(
        cls, D_true: Any, D_pred: Any, *, label_names: Sequence[str] | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw the figure from true and predicted distributions.

        Parameters
        ----------
        D_true : array-like or DataFrame of shape (n_samples, n_labels)
            True distributions.
        D_pred : array-like or mapping
            Predicted distributions, or several tables of them by name.
        label_names : sequence of str, default=None
            Names of the labels.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        ResidualsDisplay
            The figure, drawn.
        """
        true, predicted = named_predictions(D_true, D_pred)
        return cls(residual_quantiles(true, predicted), names_of_labels(D_true, label_names, true.shape[1])).plot(ax)

    def _size(self, width: float | None) -> tuple[float, float]:
        return 7.0, height_for(len(self.label_names), each=max(0.2, 0.11 * len(self.quantiles)))

    def _draw(self, ax: Axes | None) -> None:
        n_labels, n_models = len(self.label_names), len(self.quantiles)
        ax = self._axes(ax)
        ax.axvline(0, color=MUTED, linewidth=0.8)
        for number, (name, look) in enumerate(looks(self.quantiles).items()):
            heights = np.arange(n_labels) + 0.7 * ((number + 0.5) / n_models - 0.5)
            low, lower, middle, upper, high = self.quantiles[name]
            ax.hlines(heights, low, high, color=look.colour, linewidth=0.8)
            ax.hlines(heights, lower, upper, color=look.colour, linewidth=2.8)
            ax.plot(
                middle,
                heights,
                linestyle="none",
                marker=look.marker,
                markersize=4.5,
                markerfacecolor="white",
                markeredgecolor=look.colour,
                label=plain(name),
            )
        ax.set_ylim(n_labels - 0.4, -0.6)
        ax.set_xlabel("predicted minus real degree (median, middle half, middle 90 %)")
        ax.grid(axis="x")
        if n_models > 1:
            legend_beside(ax)
        name_axis(ax, self.label_names, "y")
