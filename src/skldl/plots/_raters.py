"""`RatersDisplay`: informedness, severity and confusion of raters."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.annotators import DawidSkene, RaterSummary, RaterTable
from skldl.plots._display import Display
from skldl.plots._style import FAINT, MUTED, SEQUENTIAL, columns_that_fit, height_for, name_axis, panels, width_of
from skldl.utils.typing import FloatArray, IntArray

_MAX_NAMED = 40  # more raters than this are drawn as a curve, without names
_MARKS = {"": ("o", "#0072B2"), "spammer": ("X", "#D55E00"), "contrary": ("v", "#CC79A7"), "habit": ("s", "#E69F00")}


@dataclass(eq=False)
class RatersDisplay(Display):
    """Three panels about raters: informedness, severity, and the confusion of all of them together.

    Raters are sorted by informedness. Lines are intervals; crosses, triangles and squares mark raters with a flag. The
    names of up to forty raters are shown. There is no panel of severity where labels are not ordered.

    Parameters
    ----------
    table : RaterTable
        Quality of the raters.
    confusion : ndarray of shape (n_labels, n_labels)
        Probability of each answer (column) to each true label (row).
    label_names : list
        Names of the labels.
    n_raters : int, default=None
        Number of all raters, if the table contains only some of them.

    Attributes
    ----------
    axes_ : list of Axes
        The panels, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.annotators import DawidSkene
    >>> from skldl.plots import RatersDisplay
    >>> generator = np.random.default_rng(0)
    >>> truth, noise = generator.integers(1, 6, size=(2, 100))
    >>> votes = np.stack([truth, np.minimum(truth + 1, 5), np.where(noise < 4, truth, 3), noise], axis=1)
    >>> display = RatersDisplay.from_model(DawidSkene().fit(votes))
    >>> [ax.get_xlabel() for ax in display.axes_]
    ['informedness', 'severity (in labels)', 'answer']
    """

    table: RaterTable
    confusion: FloatArray
    label_names: list[Any]
    n_raters: int | None = None

    @classmethod
    def from_model(cls, model: DawidSkene, *, table: RaterTable | None = None, ax: Axes | None = None) -> Self:
        """Draw the raters of a fitted model.

        Parameters
        ----------
        model : DawidSkene
            Fitted.
        table : RaterTable, default=None
            Quality of its raters, if it is already computed; else `skldl.annotators.rater_table` computes it.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        RatersDisplay
            The figure, drawn.
        """
        return cls.from_summary(RaterSummary.from_model(model, table), ax=ax)

    @classmethod
    def from_summary(cls, summary: RaterSummary, *, ax: Axes | None = None) -> Self:
        """Draw the raters of a summary, such as that in a record of a study.

        Parameters
        ----------
        summary : RaterSummary
            The summary.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        RatersDisplay
            The figure, drawn.
        """
        return cls(summary.table, summary.confusion, list(summary.label_names), summary.n_raters).plot(ax)

    def _size(self, width: float | None) -> tuple[float, float]:
        height = max(3.2, height_for(len(self.table))) if len(self.table) <= _MAX_NAMED else 4.4
        n_columns = columns_that_fit(width, self._n_panels)
        if n_columns < self._n_panels:  # one panel below the other
            return 4.1, self._n_panels * height
        return 1.2 + 2.9 * self._n_panels, height

    @property
    def _has_severity(self) -> bool:
        return bool(np.isfinite(self.table.severity).any())

    @property
    def _n_panels(self) -> int:
        return 3 if self._has_severity else 2

    def _draw(self, ax: Axes | None) -> None:
        order = self.table._best_first
        n_panels = self._n_panels
        stacked = columns_that_fit(width_of(ax), n_panels) < n_panels
        self.figure_, grid = panels(ax, *((n_panels, 1) if stacked else (1, n_panels)), self.size())
        self.axes_ = [panel for row in grid for panel in row]
        self._draw_column(self.axes_[0], "informedness", order)
        self.axes_[0].set_xlabel("informedness")
        self._name_raters(self.axes_[0], order)
        handles, names = self.axes_[0].get_legend_handles_labels()
        if len(names) > 1:
            self.figure_.legend(handles, names, loc="outside upper center", ncols=len(names))
        if self._has_severity:
            self._draw_column(self.axes_[1], "severity", order)
            self.axes_[1].set_xlabel("severity (in labels)")
            if stacked:
                self._name_raters(self.axes_[1], order)
            else:
                self.axes_[1].set_yticks([])
        self._draw_confusion(self.axes_[-1])

    def _draw_column(self, ax: Axes, name: str, order: IntArray) -> None:
        """Draw one quantity of all raters, with intervals and markers for the flags."""
        value, low, high = (getattr(self.table, name + end)[order] for end in ("", "_low", "_high"))
        places = np.arange(len(order))
        ax.axvline(0, color=MUTED, linewidth=1.0)
        many = len(order) > _MAX_NAMED
        ax.hlines(places, low, high, color=FAINT if many else MUTED, linewidth=1.1)
        flag = np.array([(self.table.flags[rater].split() or [""])[0] for rater in order])
        for kind, (marker, colour) in _MARKS.items():
            chosen = flag == kind
            if chosen.any():
                ax.plot(
                    value[chosen],
                    places[chosen],
                    linestyle="none",
                    marker=marker,
                    color=colour,
                    markersize=2.5 if many else 5,
                    label=kind or "no flag",
                )
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.grid(axis="x")

    def _name_raters(self, ax: Axes, order: IntArray) -> None:
        if len(order) <= _MAX_NAMED:
            name_axis(ax, [str(self.table.rater[rater]) for rater in order], "y")
        else:
            some = len(order) < (self.n_raters or 0)
            if some:
                ax.set_yticks([])  # positions among the drawn raters are not those among all
            ax.set_ylabel(f"{len(order):,}{f' of {self.n_raters:,}' if some else ''} raters, best first")

    def _draw_confusion(self, ax: Axes) -> None:
        n_labels = len(self.label_names)
        ax.imshow(self.confusion, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
        if n_labels <= 10:
            for truth, answer in np.ndindex(n_labels, n_labels):
                fraction = self.confusion[truth, answer]
                colour = "#010101" if fraction > 0.5 else "#fefefe"  # reports replace pure black and white
                word = f"{fraction:.2f}".removeprefix("0") if fraction < 0.995 else "1"
                ax.text(answer, truth, word, ha="center", va="center", fontsize=7, color=colour)
        ax.set_xlabel("answer")
        ax.set_ylabel("true label")
        ax.spines[:].set_visible(False)
        name_axis(ax, [str(name) for name in self.label_names], "x", limit=14)
        name_axis(ax, [str(name) for name in self.label_names], "y", limit=14)
