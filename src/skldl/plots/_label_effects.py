"""`LabelEffectsDisplay`: effects of columns on labels, as a heat map."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.plots._display import Display
from skldl.plots._style import SEQUENTIAL
from skldl.utils.typing import FloatArray

if TYPE_CHECKING:  # tables need pandas, which the extra "plot" does not bring
    from skldl.tabular import ColumnEffects, RowExplanation

MAX_ROWS = 30
MAX_NUMBERS = 400  # in larger maps numbers cannot be read


@dataclass(eq=False)
class LabelEffectsDisplay(Display):
    """A heat map with a row for each column of the table (or feature, or neighbour) and a column for each label.

    Parameters
    ----------
    effects : array-like of shape (n_rows, n_labels)
        The numbers that are drawn.
    row_names, labels : sequence of str
        Names of the rows and of the labels.
    title : str
        Title of the figure.
    meaning : str
        Title of the colour scale.
    signed : bool, default=False
        Whether the effects have a sign; then zero is drawn white.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the map.
    figure_ : matplotlib Figure
        Figure that contains them.

    Examples
    --------
    >>> from skldl.plots import LabelEffectsDisplay
    >>> display = LabelEffectsDisplay([[0.2, -0.2]], ["age"], ["joy", "fear"], "Weights", "weight", signed=True).plot()
    >>> display.figure_.savefig("weights.png")  # doctest: +SKIP
    """

    effects: FloatArray
    row_names: list[str]
    labels: list[str]
    title: str
    meaning: str
    signed: bool = False

    def __post_init__(self) -> None:
        self.effects = np.asarray(self.effects, dtype=np.float64)
        self.row_names = [str(name) for name in self.row_names]
        self.labels = [str(name) for name in self.labels]

    @classmethod
    def from_effects(cls, effects: "ColumnEffects", *, ax: Axes | None = None) -> Self:
        """Draw the effect on each label of shuffling each column; the importance is next to the name.

        Parameters
        ----------
        effects : ColumnEffects
            The result of `skldl.tabular.column_effects`.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure of a fitting size.

        Returns
        -------
        LabelEffectsDisplay
            The drawn display.
        """
        names = [f"{name}  {value:.4f}" for name, value in zip(effects.columns, effects.importance, strict=True)]
        title = "Rise of the Kullback-Leibler divergence when a column is shuffled, and which labels it moves"
        return cls(effects.movement, names, effects.labels, title, "mean change of the degree").plot(ax)

    @classmethod
    def from_row(cls, explanation: "RowExplanation", *, ax: Axes | None = None) -> Self:
        """Draw why one row is predicted as it is.

        Parameters
        ----------
        explanation : RowExplanation
            The result of `skldl.tabular.explain_row`.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure of a fitting size.

        Returns
        -------
        LabelEffectsDisplay
            The drawn display.
        """
        labels = [str(name) for name in explanation.prediction.index]
        from skldl.tabular._explain import EXPLANATION_TITLES, NEIGHBOURS

        title, meaning = EXPLANATION_TITLES[explanation.how]
        table = explanation.table

        if explanation.how == NEIGHBOURS:
            pairs = zip(table["training row"], table["distance"], strict=True)
            names = [f"row {row}, distance {distance:.3g}" for row, distance in pairs]
            return cls(table[labels], names, labels, title, meaning).plot(ax)
        return cls(table, table.index, labels, title, meaning, signed=True).plot(ax)

    def _size(self, width: float | None) -> tuple[float, float]:
        return 4.5 + 0.7 * len(self.labels), 1.8 + 0.3 * min(len(self.row_names), MAX_ROWS)

    def _draw(self, ax: Axes | None) -> None:
        effects, names = self.effects[:MAX_ROWS], self.row_names[:MAX_ROWS]
        ax = self._axes(ax)
        top = float(np.abs(effects).max(initial=0.0)) or 1.0  # if all are 0, a scale must still have a length
        image = ax.imshow(
            effects,
            aspect="auto",
            cmap="PuOr_r" if self.signed else SEQUENTIAL,
            vmin=-top if self.signed else 0,
            vmax=top,
        )
        ax.set_xticks(range(len(self.labels)), self.labels, rotation=45, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(len(names)), names)
        if effects.size <= MAX_NUMBERS:
            self._write(ax, effects, top)
        self.figure_.colorbar(image, ax=ax, label=self.meaning)
        cut = f" (the first {MAX_ROWS} of {len(self.row_names)})" if len(self.row_names) > MAX_ROWS else ""
        ax.set_title(self.title + cut, loc="left", wrap=True)

    def _write(self, ax: Axes, effects: FloatArray, top: float) -> None:
        """Write the numbers into their cells, light on dark and dark on light."""
        for (row, column), value in np.ndenumerate(effects):
            dark = abs(value) > 0.6 * top if self.signed else value < 0.55 * top
            colour = "white" if dark else "black"
            ax.text(column, row, f"{value:.2g}", ha="center", va="center", fontsize=8, color=colour)
