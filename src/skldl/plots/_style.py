"""Style and layout of all figures: colours that colour-blind readers can distinguish, markers, names along axes.

A candidate has the same colour, marker and dash in all figures of a report; those of the paper have them in every
report. The settings of matplotlib are not changed permanently.
"""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecBase
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from skldl.utils.spelling import plain as comparable

TRUTH = "#000000"
MUTED = "#767676"
FAINT = "#cccccc"
SEQUENTIAL = "cividis"  # its lightness is monotone, so that its order is kept in grey

# Okabe and Ito's colours without yellow, too faint on white, and without black, the colour of true distributions.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))
_SLOT_OF = {"sabfgs": 0, "saiis": 1, "aaknn": 2, "ptbayes": 3, "ptsvm": 4, "aabp": 5}
_MEAN_NAMES = ("mean", "meandistribution")

_TICK_SIZE = 8.0
_SETTINGS: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": _TICK_SIZE,
    "ytick.labelsize": _TICK_SIZE,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.4,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
}


@dataclass(frozen=True)
class Look:
    """Colour, marker and dashes of a candidate: candidates must differ by more than colour."""

    colour: str
    marker: str
    dash: Any

    @property
    def line(self) -> dict[str, Any]:
        """The arguments of ``Axes.plot`` for a line with this look."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}


def style() -> AbstractContextManager[None]:
    """Apply matplotlib settings for the figures of this package, where you make the axes yourself for ``plot(ax)``.

    Returns
    -------
    context manager
        Restores matplotlib's settings when it ends.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skldl.plots import FlowDisplay, style
    >>> with style():
    ...     figure, ax = plt.subplots(figsize=(9.5, 4.1), layout="constrained")
    >>> FlowDisplay().plot(ax).figure_ is figure
    True
    """
    return mpl.rc_context(_SETTINGS)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Assign a look to each candidate: a fixed one to those of the paper, grey to the mean, unused ones to the others.

    Examples
    --------
    >>> looks(["SA-BFGS", "Mean"])["Mean"].colour
    '#767676'
    """
    names = list(names)
    given: dict[str, Look] = {}
    taken = {_SLOT_OF[comparable(name)] for name in names if comparable(name) in _SLOT_OF}
    free = [slot for slot in range(len(_COLOURS)) if slot not in taken]
    others = 0
    for name in names:
        if comparable(name) in _MEAN_NAMES:
            given[name] = Look(MUTED, "X", (0, (2, 2)))
            continue
        if comparable(name) in _SLOT_OF:
            slot, shift = _SLOT_OF[comparable(name)], 0
        elif others < len(free):
            slot, shift = free[others], 0
            others += 1
        else:  # all colours are used: repeat them with other markers and dashes
            number = others - len(free)
            slot, shift = number % len(_COLOURS), 1 + number // len(_COLOURS)
            others += 1
        shifted = (slot + shift) % len(_COLOURS)
        given[name] = Look(_COLOURS[slot], _MARKERS[shifted], _DASHES[shifted])
    return given


def plain(name: object, limit: int = 24) -> str:
    """Prepare a name for drawing: one line, no control characters, no formula between dollar signs, limited length.

    A long name is shortened in the middle, because names with the same beginning mostly end differently.

    Examples
    --------
    >>> plain("two\\nlines, $5")
    'two lines, \\\\$5'
    >>> plain("a name that never seems to end", limit=12)
    'a name…end'
    """
    text = " ".join(str(name).split())
    text = "".join(letter if unicodedata.category(letter)[0] != "C" else "\N{REPLACEMENT CHARACTER}" for letter in text)
    if len(text) > limit:
        end = limit // 3
        text = f"{text[: limit - 1 - end].rstrip()}…{text[-end:].lstrip()}"
    return text.replace("$", r"\$")


def figure_of(ax: Axes) -> Figure:
    """The figure that contains these axes, possibly in nested subfigures."""
    return cast(Figure, ax.get_figure(root=True))


def width_of(ax: Axes | None) -> float | None:
    """Width in inches of the cells of the axes in their grid; None without axes, and for axes that are in no grid."""
    spec = None if ax is None else ax.get_subplotspec()
    if ax is None or spec is None:
        return None
    columns = spec.get_gridspec().ncols
    return float(figure_of(ax).get_size_inches()[0]) * (spec.colspan.stop - spec.colspan.start) / columns


def columns_that_fit(width: float | None, max_columns: int, min_width: float = 1.5) -> int:
    """Number of panels side by side in a given width in inches, each at least ``min_width`` wide; at least one.

    Examples
    --------
    >>> columns_that_fit(9.0, 4), columns_that_fit(4.0, 4), columns_that_fit(None, 4)
    (4, 2, 4)
    """
    return max_columns if width is None else max(1, min(max_columns, int(width // min_width)))


def panels(
    ax: Axes | None, n_rows: int, n_columns: int, size: tuple[float, float], **options: Any
) -> tuple[Figure, list[list[Axes]]]:
    """Divide the given axes, or a new figure of this size in inches, into a grid of axes."""
    if ax is None:
        figure = plt.figure(figsize=size, layout="constrained")
        grid: GridSpecBase = figure.add_gridspec(n_rows, n_columns)
    else:
        figure = figure_of(ax)
        spec = ax.get_subplotspec()
        if spec is None:
            raise ValueError(
                "This figure has several panels and divides the area of ax into them, but ax is not part of a "
                "grid. Make it with plt.subplots or add_subplot, or do not pass ax."
            )
        ax.set_axis_off()
        grid = spec.subgridspec(n_rows, n_columns)
    return figure, [list(row) for row in grid.subplots(squeeze=False, **options)]


def name_axis(
    ax: Axes, names: Sequence[str], axis: str, positions: Sequence[float] | None = None, limit: int = 24
) -> None:
    """Write names along an axis without overlaps: rotate names that are wide; of many, write only every n-th."""
    # In points: a letter of DejaVu Sans is 0.62 of the font size wide on average, a line 1.2 of it high.
    places = list(range(len(names)) if positions is None else positions)
    texts = [plain(name, limit) for name in names]
    slots = max(max(places) - min(places) + 1, 1)
    widest = max(len(text) for text in texts) * 0.62 * _TICK_SIZE
    if min(widest, 1.2 * _TICK_SIZE) > 0.6 * _length(ax, axis) / slots:
        # 0.6: names may not fit, since the layout can still make the axes smaller; compute it and measure again
        figure_of(ax).draw_without_rendering()
    slot = _length(ax, axis) / slots
    turned = axis == "x" and widest > 0.95 * slot
    step = max(1, math.ceil((widest if axis == "x" and not turned else 1.2 * _TICK_SIZE) / slot))
    shown, words = places[::step], texts[::step]
    if axis == "x":
        ax.set_xticks(shown, words, rotation=90 if turned else 0)
    else:
        ax.set_yticks(shown, words)


def few_log_ticks(ax: Axes) -> None:
    """Set a few ticks on a logarithmic x axis, as decimal numbers that do not overlap."""
    low, high = ax.get_xlim()
    decades = math.log10(high / low)
    if decades < 0.7:  # less than a factor of five: powers of ten and their multiples may be outside
        ax.xaxis.set_major_locator(MaxNLocator(4))
    else:
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2 else (1.0,), numticks=8))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _length(ax: Axes, axis: str) -> float:
    """Length of an axis in points."""
    width, height = figure_of(ax).get_size_inches() * 72
    return float(ax.get_position().width * width if axis == "x" else ax.get_position().height * height)


def height_for(n_names: int, each: float = 0.2) -> float:
    """Height in inches of a figure with one line for each name, from 1.6 to 16."""
    return min(max(1.6, 0.9 + each * n_names), 16.0)


def legend_beside(ax: Axes) -> None:
    """Put the legend to the right of the axes, where it covers no data."""
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
