"""`RankHeatmapDisplay`: the rank of each model on each dataset."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.experiments.statistics import rank_rows
from skldl.plots._display import Display, names_of_columns
from skldl.plots._style import SEQUENTIAL, name_axis, plain
from skldl.utils.typing import FloatArray

MAX_NUMBERS = 1000
"""Larger maps show ranks only as colours, because so many numbers cannot be read."""


@dataclass(eq=False)
class RankHeatmapDisplay(Display):
    """Heat map of ranks: one row for each dataset, one column for each model, and the average ranks in the last row.

    Maps of more than 1,000 cells show the ranks of the datasets as colours without numbers.

    Parameters
    ----------
    ranks : ndarray of shape (n_datasets, n_models)
        Ranks, 1 for the best; NaN where a model has no result.
    dataset_names, names : list of str
        Names of the rows and of the columns.
    title : str
        Title of the figure.
    average : bool
        Whether to add a last row with the average ranks.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import RankHeatmapDisplay
    >>> display = RankHeatmapDisplay.from_scores([[0.1, 0.2], [0.3, 0.1]], names=["A", "B"], dataset_names=["x", "y"])
    >>> display.ranks
    array([[1., 2.],
           [2., 1.]])
    """

    ranks: FloatArray
    dataset_names: list[str]
    names: list[str]
    title: str = ""
    average: bool = True

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        *,
        higher_is_better: bool = False,
        names: Sequence[str] | None = None,
        dataset_names: Sequence[str] | None = None,
        title: str = "",
        ax: Axes | None = None,
    ) -> Self:
        """Rank a table of scores and draw it.

        Parameters
        ----------
        scores : array-like or DataFrame of shape (n_datasets, n_models)
            Mean scores; NaN where there is none.
        higher_is_better : bool, default=False
            The direction of the scores.
        names : sequence of str, default=None
            Names of the models; the columns of a DataFrame if None.
        dataset_names : sequence of str, default=None
            Names of the datasets; the index of a DataFrame if None.
        title : str, default=""
            Title of the figure.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        RankHeatmapDisplay
            The figure, drawn.
        """
        rows = dataset_names if dataset_names is not None else getattr(scores, "index", range(np.shape(scores)[0]))
        ranks = rank_rows(np.asarray(scores, dtype=np.float64), higher_is_better=higher_is_better)
        return cls(ranks, [str(row) for row in rows], names_of_columns(scores, names), title).plot(ax)

    def _size(self, width: float | None) -> tuple[float, float]:
        n_rows, n_models = self.ranks.shape
        return 2.2 + 0.68 * n_models, min(1.4 + 0.24 * (n_rows + self.average), 16.0)

    def _draw(self, ax: Axes | None) -> None:
        n_rows, n_models = self.ranks.shape
        parts, names = [(self.ranks, -0.5, n_rows - 0.5)], list(self.dataset_names)
        heights: list[float] = list(range(n_rows))
        if self.average:
            parts.append((np.nanmean(self.ranks, axis=0, keepdims=True), n_rows - 0.2, n_rows + 0.8))
            names.append("average rank")
            heights.append(n_rows + 0.3)
        cells = np.vstack([part for part, _, _ in parts])
        ax = self._axes(ax)
        for part, top, bottom in parts:
            extent = (-0.5, n_models - 0.5, bottom, top)
            ax.imshow(part, cmap=SEQUENTIAL + "_r", vmin=1, vmax=max(n_models, 2), extent=extent, aspect="auto")
        for height, row in zip(heights, cells, strict=True):
            is_average = height > n_rows
            if self.ranks.size > MAX_NUMBERS and not is_average:
                continue
            for column, rank in enumerate(row):
                if np.isfinite(rank):
                    self._write(height, column, rank, average=is_average)
        ax.set(xlim=(-0.5, n_models - 0.5), ylim=(parts[-1][2], -0.5))
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labeltop=True, labelbottom=False)
        name_axis(ax, self.names, "x")
        name_axis(ax, names, "y", heights)
        if self.title:
            ax.set_title(plain(self.title, 60), loc="left")

    def _write(self, height: float, column: int, rank: float, *, average: bool) -> None:
        word = f"{rank:.2f}" if average else f"{rank:g}"
        darkness = (rank - 1) / max(len(self.names) - 1, 1)
        self.ax_.text(
            column,
            height,
            word,
            ha="center",
            va="center",
            fontsize=8,
            color="#fefefe" if darkness > 0.5 else "#010101",  # reports replace pure black and white
            fontweight="bold" if not average and rank == 1 else "normal",
        )
