"""`MeasureDendrogramDisplay`: dendrogram of measures, with the cut and the formulae of the chosen ones."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnchoredOffsetbox, TextArea, VPacker
from scipy.cluster import hierarchy

from skldl.metrics import PAPER_MEASURES, Measure
from skldl.metrics.selection import Selection
from skldl.plots._display import Display

# Okabe and Ito's colours, safe for colour-blind readers, each with its own marker for printing in grey
LOOKS = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "v"),
    ("#56B4E9", "D"),
    ("#000000", "P"),
    ("#E69F00", "X"),
    ("#8B5A2B", "<"),
    ("#7F7F7F", "*"),
)
CUT_COLOUR = "#B2182B"
BAND_COLOUR = "#FFE9A8"


@dataclass(eq=False)
class MeasureDendrogramDisplay(Display):
    """Dendrogram of measures with families coloured, the cut line, the chosen measures marked and their formulae.

    Parameters
    ----------
    selection : Selection
        Outcome of `skldl.metrics.selection.select_measures`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the dendrogram.
    figure_ : matplotlib Figure
        Figure that contains them.

    Examples
    --------
    >>> from skldl.metrics.selection import select_measures
    >>> from skldl.plots import MeasureDendrogramDisplay
    >>> selection = select_measures(n_experiments=3, n_pairs=100)
    >>> display = MeasureDendrogramDisplay.from_selection(selection)
    >>> display.figure_.savefig("dendrogram.png")  # doctest: +SKIP
    """

    selection: Selection

    @classmethod
    def from_selection(cls, selection: Selection, *, ax: Axes | None = None) -> Self:
        """Draw the dendrogram of a selection.

        Parameters
        ----------
        selection : Selection
            Outcome of `skldl.metrics.selection.select_measures`.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure of a fitting size.

        Returns
        -------
        MeasureDendrogramDisplay
            The drawn display.
        """
        return cls(selection).plot(ax=ax)

    def _size(self, width: float | None) -> tuple[float, float]:
        return 11.0, 1.6 + 0.19 * len(self.selection.measures)

    def _draw(self, ax: Axes | None) -> None:
        ax = self._axes(ax)
        leaves = self._draw_tree(ax)
        self._label_leaves(ax, [self.selection.measures[leaf] for leaf in leaves])
        self._explain(ax)

    def _draw_tree(self, ax: Axes) -> list[int]:
        """Draw the links, with thick lines below the cut, and return the leaves from bottom to top."""
        selection = self.selection
        tree: dict[str, Any] = hierarchy.dendrogram(selection.linkage, no_plot=True)
        links = [
            np.column_stack([heights, (np.asarray(places) - 5.0) / 10.0])
            for heights, places in zip(tree["dcoord"], tree["icoord"], strict=True)
        ]
        inside = [link[:, 0].max() <= selection.cut for link in links]
        widths = [1.8 if below else 0.8 for below in inside]
        colours = ["#222222" if below else "#777777" for below in inside]
        ax.add_collection(LineCollection(links, linewidths=widths, colors=colours, zorder=2))
        ax.axvline(selection.cut, color=CUT_COLOUR, linestyle="--", linewidth=1.2, zorder=3)
        ax.annotate(
            f"cut at {selection.cut:g}",
            (selection.cut, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, 3),
            textcoords="offset points",
            color=CUT_COLOUR,
            fontsize=8,
        )
        ax.set_xlim(0.0, 1.03 * max(float(selection.linkage[:, 2].max()), selection.cut))
        return [int(leaf) for leaf in tree["leaves"]]

    def _label_leaves(self, ax: Axes, measures: list[Measure]) -> None:
        """Write the names, mark them in the colours of their families and draw a band behind the chosen ones."""
        selection = self.selection
        look = self._looks()
        ax.set_ylim(-0.8, len(measures) - 0.2)
        ax.set_yticks(range(len(measures)))
        ax.set_yticklabels([m.title + " †" * (m.name in PAPER_MEASURES) for m in measures], fontsize=8)
        ax.tick_params(axis="y", length=0, pad=10)
        for place, (measure, label) in enumerate(zip(measures, ax.get_yticklabels(), strict=True)):
            colour, marker = look[measure.family]
            ax.plot(0.0, place, marker, color=colour, markersize=6.5, clip_on=False, zorder=4)
            if measure.name in selection.chosen:
                label.set_fontweight("bold")
                ax.axhspan(place - 0.5, place + 0.5, color=BAND_COLOUR, zorder=0, linewidth=0)

    def _looks(self) -> dict[str, tuple[str, str]]:
        families = list(dict.fromkeys(measure.family for measure in self.selection.measures))
        return {family: LOOKS[i % len(LOOKS)] for i, family in enumerate(families)}

    def _explain(self, ax: Axes) -> None:
        """Draw title, axis title, the legend of the families and the box with the formulae."""
        selection = self.selection
        settings = selection.settings
        formula = {"sine": r"$\sqrt{1 - r^2}$", "one_minus_r": r"$1 - |r|$"}[settings["dissimilarity"]]
        kind = settings["correlation"].capitalize()
        ax.set_xlabel(f"distance between clusters of measures: {formula}, r the mean {kind} correlation")
        ax.set_title(f"{settings['experiments']} experiments, {settings['source']}", fontsize=10, loc="right", pad=16)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        handles = [
            Line2D([], [], color=colour, marker=marker, linestyle="", label=family)
            for family, (colour, marker) in self._looks().items()
        ]
        ax.legend(
            handles=handles, title="family", loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=8, frameon=False
        )
        by_name = {measure.name: measure for measure in selection.measures}
        lines = [f"{by_name[n].title} {by_name[n].arrow}   ${_large(by_name[n].formula)}$" for n in selection.chosen]
        texts = [f"the {len(lines)} chosen (shaded)", *lines, "† one of the six of the paper"]
        box = AnchoredOffsetbox(
            "lower left",
            child=VPacker(children=[TextArea(text, textprops={"size": 9}) for text in texts], pad=4, sep=11),
            bbox_to_anchor=(1.02, 0.0),
            bbox_transform=ax.transAxes,
            borderpad=0.0,
        )
        box.patch.set(boxstyle="round", facecolor=BAND_COLOUR, edgecolor="#888888")
        ax.add_artist(box)


def _large(formula: str) -> str:
    """Set fractions in full size, because small ones cannot be read in a figure."""
    return formula.replace(r"\frac", r"\dfrac")
