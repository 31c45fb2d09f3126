"""`CriticalDifferenceDisplay`: average ranks of models, and which of them differ significantly."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.exceptions import LengthMismatchError
from skldl.experiments.statistics import nemenyi_difference, rank_rows
from skldl.plots._display import Display, names_of_columns
from skldl.plots._style import MUTED, TRUTH, columns_that_fit, plain, width_of
from skldl.utils.typing import FloatArray


@dataclass(eq=False)
class CriticalDifferenceDisplay(Display):
    r"""Average ranks on a line; models joined by a bar do not differ significantly in the Nemenyi test [1]_.

    With k models on N datasets, average ranks differ significantly if their difference exceeds
    :math:`q_\alpha \sqrt{k (k + 1) / (6 N)}`, where :math:`q_\alpha` is the studentised range statistic divided by
    :math:`\sqrt 2`.

    Parameters
    ----------
    average_ranks : ndarray of shape (n_models,)
        Average rank of each model.
    names : list of str
        Names of the models.
    critical_difference : float
        The difference of average ranks above which two models differ significantly.
    title : str
        Title of the figure.

    Attributes
    ----------
    groups : list of tuple of int
        First and last position, in the order of ranks, of each group of models that do not differ significantly.
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    References
    ----------
    .. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine Learning
       Research 7, 2006.

    Examples
    --------
    >>> from skldl.plots import CriticalDifferenceDisplay
    >>> display = CriticalDifferenceDisplay([1.2, 2.0, 2.8], ["A", "B", "C"], critical_difference=1.0).plot()
    >>> display.groups
    [(0, 1), (1, 2)]
    """

    average_ranks: FloatArray
    names: list[str]
    critical_difference: float
    title: str = ""

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        *,
        higher_is_better: bool = False,
        alpha: float = 0.05,
        names: Sequence[str] | None = None,
        title: str = "",
        ax: Axes | None = None,
    ) -> Self:
        """Rank a table of scores, compute the critical difference and draw both.

        Parameters
        ----------
        scores : array-like or DataFrame of shape (n_datasets, n_models)
            Mean scores; datasets with missing scores are ignored.
        higher_is_better : bool, default=False
            The direction of the scores.
        alpha : float, default=0.05
            Level of the test.
        names : sequence of str, default=None
            Names of the models; the columns of a DataFrame if None.
        title : str, default=""
            Title of the figure.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        CriticalDifferenceDisplay
            The figure, drawn.
        """
        columns = names_of_columns(scores, names)
        values = np.asarray(scores, dtype=np.float64)
        values = values[np.isfinite(values).all(axis=1)]
        n_datasets, n_models = values.shape
        if n_datasets < 2 or n_models < 2:
            raise LengthMismatchError(
                f"A critical difference needs at least two models and two datasets with all scores, but there are "
                f"{n_models} models and {n_datasets} datasets."
            )
        ranks = rank_rows(values, higher_is_better=higher_is_better).mean(axis=0)
        return cls(ranks, columns, nemenyi_difference(n_models, n_datasets, alpha), title).plot(ax)

    @property
    def groups(self) -> list[tuple[int, int]]:
        """First and last position of each group without significant differences; groups inside others are left out."""
        ordered = np.sort(self.average_ranks)
        found: list[tuple[int, int]] = []
        for first in range(len(ordered)):
            # 1e-12 for rounding: a difference that equals the critical one is not significant
            last = int(np.searchsorted(ordered, ordered[first] + self.critical_difference + 1e-12, side="right")) - 1
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found

    @property
    def _first_line(self) -> float:
        """Distance from the axis to the first name, below the bars of all groups."""
        return 0.55 + 0.32 * len(self.groups)

    def _size(self, width: float | None) -> tuple[float, float]:
        return 7.2, 1.2 + 0.33 * (self._first_line + 0.55 * math.ceil(len(self.names) / 2))

    def _draw(self, ax: Axes | None) -> None:
        n_models = len(self.names)
        order = np.argsort(self.average_ranks, kind="stable")
        ordered = np.asarray(self.average_ranks, dtype=np.float64)[order]
        n_left = math.ceil(n_models / 2)
        first_line = self._first_line
        depth = first_line + 0.55 * n_left
        low, high = 1.0, float(max(n_models, 2))
        margin = 0.5 * (high - low)
        ax = self._axes(ax)
        ax.set(xlim=(low - margin, high + margin), ylim=(depth, -1.5))
        ax.set_axis_off()
        self._draw_ruler(low, high)
        for line, (first, last) in enumerate(self.groups):
            height = 0.4 + 0.32 * line
            ends = [ordered[first] - 0.02 * (high - low), ordered[last] + 0.02 * (high - low)]
            ax.plot(ends, [height, height], color=TRUTH, linewidth=3.0, solid_capstyle="butt")
        for place, model in enumerate(order):
            left = place < n_left
            height = first_line + 0.55 * (place if left else n_models - 1 - place)
            end = low - 0.06 * margin if left else high + 0.06 * margin
            ax.plot([ordered[place]] * 2 + [end], [0, height, height], color=MUTED, linewidth=0.8)
            word = plain(self.names[model], 20)
            ax.text(
                end - 0.03 * margin if left else end + 0.03 * margin,
                height,
                f"{word}  {ordered[place]:.2f}" if left else f"{ordered[place]:.2f}  {word}",
                ha="right" if left else "left",
                va="center",
            )
        if self.title:
            ax.set_title(plain(self.title, 70), loc="left")

    def _draw_ruler(self, low: float, high: float) -> None:
        self.ax_.plot([low, high], [0, 0], color=TRUTH, linewidth=1.0)
        is_narrow = columns_that_fit(width_of(self.ax_), 2, min_width=2.5) < 2
        step = math.ceil((high - low) / 4) if is_narrow else 1  # the names at the sides leave little space
        for rank in range(int(low), int(high) + 1):
            self.ax_.plot([rank, rank], [0, -0.16], color=TRUTH, linewidth=0.8)
            if (rank - int(low)) % step == 0:
                self.ax_.text(rank, -0.24, str(rank), ha="center", va="bottom", fontsize=8)
        end = min(low + self.critical_difference, high)
        self.ax_.plot([low, low, end, end], [-0.95, -1.05, -1.05, -0.95], color=TRUTH, linewidth=1.0)
        word = f"critical difference {self.critical_difference:.2f}"
        self.ax_.text(end + 0.02 * (high - low), -1.05, word, ha="left", va="center", fontsize=8)
