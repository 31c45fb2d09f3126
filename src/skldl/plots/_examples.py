"""`ExamplesDisplay`: real and predicted distributions of a few instances, with their measures (Table 3 of [1]_).

References
----------
.. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.exceptions import LengthMismatchError
from skldl.metrics import PAPER_MEASURES, evaluate
from skldl.plots._display import PredictionDisplay
from skldl.plots._style import TRUTH, columns_that_fit, looks, name_axis, panels, plain, width_of
from skldl.utils.typing import FloatArray

SHORT = {
    "chebyshev": "Cheb",
    "clark": "Clark",
    "canberra": "Canb",
    "kullback_leibler": "KL",
    "cosine": "Cos",
    "intersection": "Int",
}
MAX_DECIMALS = 6
MAX_NAME_LENGTH = 14  # of a label above a panel


def _formatted(value: float, *, higher_is_better: bool) -> str:
    """Format a value with three decimals, or with more to show two digits of its distance from 1 (or 0).

    Examples
    --------
    >>> _formatted(0.36512, higher_is_better=False), _formatted(0.00077, higher_is_better=False)
    ('0.365', '0.00077')
    >>> _formatted(0.99923, higher_is_better=True), _formatted(3.2e-7, higher_is_better=False)
    ('0.99923', '3e-07')
    """
    gap = 1 - value if higher_is_better else value
    if 0 < gap < 1e-5 and not higher_is_better:
        return f"{value:.0e}"
    # 1e-9: the logarithm of a power of ten may be a rounding error below an integer
    decimals = 3 if gap <= 0 else max(3, 1 - math.floor(math.log10(gap) + 1e-9))
    return f"{value:.{min(decimals, MAX_DECIMALS)}f}"


@dataclass(eq=False)
class ExamplesDisplay(PredictionDisplay):
    """A grid of panels: a column for each instance, a row for each model; the best value of each column is bold.

    Parameters
    ----------
    true : list of ndarray of shape (n_labels,)
        The real distribution of each instance; the numbers of labels may differ.
    predicted : dict of list of ndarray
        From the name of each model to its predictions, one for each instance.
    titles : list of str
        Heading of each column.
    label_names : list of list of str, default=None
        Names of the labels of each instance, above the first panel of its column; None to leave them out.

    Attributes
    ----------
    values : dict of list of dict
        The measures: by model, instance and name.
    axes_ : list of list of Axes
        The panels, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import ExamplesDisplay
    >>> display = ExamplesDisplay.from_predictions(
    ...     [[0.2, 0.8], [0.5, 0.5]], {"A": [[0.3, 0.7], [0.5, 0.5]], "B": [[0.2, 0.8], [0.1, 0.9]]}, rows=[0, 1]
    ... )
    >>> round(display.values["A"][0]["chebyshev"], 3), display.best(0, "chebyshev")
    (0.1, 0.0)
    """

    true: list[FloatArray]
    predicted: dict[str, list[FloatArray]]
    titles: list[str]
    label_names: list[list[str]] | None = None

    def __post_init__(self) -> None:
        for name, rows in self.predicted.items():
            if len(rows) != len(self.true):
                raise LengthMismatchError(f"{name} has {len(rows)} predictions for {len(self.true)} instances.")
        self.values = {
            name: [evaluate([real], [guess]) for real, guess in zip(self.true, rows, strict=True)]
            for name, rows in self.predicted.items()
        }

    @classmethod
    def from_predictions(
        cls,
        D_true: Any,
        D_pred: Any,
        *,
        rows: Sequence[int] | None = None,
        titles: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw instances of one table, or of several tables with different numbers of labels.

        Parameters
        ----------
        D_true : array-like, DataFrame or list of them
            True distributions. For a list of tables there is one column for each table.
        D_pred : mapping
            From the name of each model to its predictions, in the form of D_true.
        rows : sequence of int, default=None
            Rows of the table (None: the first four); for a list of tables, one row of each (None: the first).
        titles : sequence of str, default=None
            Heading of each column; the number of labels if None.
        ax : Axes, default=None
            Where to draw; its area is divided into panels. A new figure if None.

        Returns
        -------
        ExamplesDisplay
            The figure, drawn.
        """
        tables = dict(D_pred) if isinstance(D_pred, Mapping) else {"predicted": D_pred}
        several = isinstance(D_true, list | tuple) and np.ndim(D_true[0]) == 2
        if rows is None:
            rows = [0] * len(D_true) if several else range(min(4, np.shape(D_true)[0]))

        def pick(table: Any) -> list[FloatArray]:
            if several:
                return [np.asarray(part, dtype=np.float64)[row] for part, row in zip(table, rows, strict=True)]
            return list(np.asarray(table, dtype=np.float64)[list(rows)])

        true = pick(D_true)
        if titles is None:
            titles = [f"instance {row}, {len(real)} labels" for row, real in zip(rows, true, strict=True)]
        return cls(true, {str(name): pick(table) for name, table in tables.items()}, list(titles)).plot(ax)

    def best(self, column: int, measure: str) -> float:
        """Return the best value that any model reaches on one instance.

        Parameters
        ----------
        column : int
            Position of the instance.
        measure : str
            Name of the measure.

        Returns
        -------
        float
            The best value.
        """
        values = [rows[column][measure] for rows in self.values.values()]
        return max(values) if PAPER_MEASURES[measure].higher_is_better else min(values)

    def _size(self, width: float | None) -> tuple[float, float]:
        n_rows, n_columns = len(self.predicted), len(self.true)
        names = 0.0
        if self.label_names is not None:  # they are turned where they would overlap
            longest = max(len(name) for names in self.label_names for name in names)
            names = 0.1 + 0.07 * min(longest, MAX_NAME_LENGTH)
        if self._is_stacked(width):
            return 3.15, (0.35 + 1.2 * n_rows + names) * n_columns
        return 0.7 + 2.45 * n_columns, 0.35 + 1.3 * n_rows + names

    def _is_stacked(self, width: float | None) -> bool:
        """Whether the instances are drawn one below the other, because side by side they would be too narrow."""
        return columns_that_fit(width, len(self.true), min_width=1.9) < len(self.true)

    def _draw(self, ax: Axes | None) -> None:
        names = list(self.predicted)
        n_rows, n_columns = len(names), len(self.true)
        if self._is_stacked(width_of(ax)):
            self.figure_, grid = panels(ax, n_rows * n_columns, 1, self.size())
            cells = [row[0] for row in grid]
            self.axes_ = [[cells[column * n_rows + row] for column in range(n_columns)] for row in range(n_rows)]
        else:
            self.figure_, self.axes_ = panels(ax, n_rows, n_columns, self.size())
        for name, look, row in zip(names, looks(names).values(), self.axes_, strict=True):
            for column, panel in enumerate(row):
                self._draw_panel(panel, name, look, column)
                if column == 0 or self._is_stacked(width_of(ax)):
                    panel.set_ylabel(plain(name, 14), fontweight="bold", fontsize=8)
        for column, (panel, title) in enumerate(zip(self.axes_[0], self.titles, strict=True)):
            panel.set_title(plain(title, 34))
            if self.label_names is not None:
                name_axis(panel, self.label_names[column], "x", limit=MAX_NAME_LENGTH)
                panel.tick_params(axis="x", labelsize=6.5, labeltop=True, labelbottom=False, length=0)

    def _draw_panel(self, panel: Axes, name: str, look: Any, column: int) -> None:
        real, guess = self.true[column], self.predicted[name][column]
        places = np.arange(len(real))
        panel.bar(places, guess, 0.8, color=look.colour, alpha=0.75, linewidth=0)
        size = 3.0 if len(real) <= 20 else 1.2
        panel.plot(places, real, color=TRUTH, marker="o", markersize=size, linewidth=0.9)
        panel.set_ylim(0, 1.15 * max(float(table[column].max()) for table in [self.true, *self.predicted.values()]))
        panel.set_xticks([])
        panel.tick_params(axis="y", labelsize=6.5)
        for place, measure in enumerate(PAPER_MEASURES):
            best = self.best(column, measure)
            value = self.values[name][column][measure]
            word = _formatted(value, higher_is_better=PAPER_MEASURES[measure].higher_is_better)
            panel.text(
                (place % 3) / 3 + 1 / 6,
                -0.12 - 0.19 * (place // 3),
                f"{SHORT[measure]} {word}",
                transform=panel.transAxes,
                ha="center",
                va="center",
                fontsize=6.5,
                fontweight="bold" if value == best else "normal",
            )
