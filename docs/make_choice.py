"""Draw the chart of ``docs/choose.md``: questions down the left side, answers beside them."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

PICTURE = Path(__file__).parent / "pictures" / "choose.png"
STEPS = [
    ("Are cells of the\nlabel table empty?", "SABFGSCV, then\nIncomLDL or WInLDL"),
    ("Are there only sets\nof labels, no degrees?", "softmax of zeros and\nones, then continue"),
    ("Is there one ordered\nlabel for each row?", "from_neighbours,\nthen continue"),
    ("Does accuracy matter most,\nand may a fit take minutes?", "AutoLDL"),
    ("Are the features sparse, text,\nor more than a few hundred?", "SABFGSCV"),
    ("More than about\n20,000 rows?", "SABFGSCV; AAKNNCV\nfor few features"),
    ("Few features, and similar rows\nhave similar distributions?", "AAKNNCV"),
    ("Columns on different\nscales, interactions?", "RandomForestLDL,\nGradientBoostingLDL"),
]
LAST = ("Otherwise: a smooth relation,\nup to a few thousand rows", "KernelRidgeLDL")
QUESTION, ANSWER, GAP = 3.1, 2.3, 0.7  # widths; the picture is narrow, so that it can be read on a phone
BLUE, GREEN, GREY = "#DCEBF7", "#DDF0E3", "#555555"


def draw() -> None:
    """Draw the chart and save it."""
    mpl.use("Agg")
    height = 0.95
    figure, ax = plt.subplots(figsize=(5.6, 7.6), layout="constrained")
    for place, (question, answer) in enumerate(STEPS):
        y = -place * height
        _pair(ax, y, question, answer)
        ax.text(QUESTION + GAP / 2, y + 0.06, "yes", ha="center", va="bottom", color=GREY)
        middle = QUESTION / 2
        ax.annotate(
            "", (middle, y - height + 0.32), (middle, y - 0.32), arrowprops={"arrowstyle": "-|>", "color": GREY}
        )
        ax.text(middle + 0.1, y - height / 2, "no, or then" if place in (1, 2) else "no", va="center", color=GREY)
    y = -len(STEPS) * height
    _pair(ax, y, *LAST)
    ax.set(xlim=(-0.1, QUESTION + GAP + ANSWER + 0.1), ylim=(y - 0.45, 0.45))
    ax.axis("off")
    figure.savefig(PICTURE, dpi=160)
    plt.close(figure)


def _pair(ax: Axes, y: float, question: str, answer: str) -> None:
    """Draw a question, its answer and the arrow between them."""
    _box(ax, 0, y, QUESTION, question, BLUE)
    _box(ax, QUESTION + GAP, y, ANSWER, answer, GREEN)
    ax.annotate("", (QUESTION + GAP, y), (QUESTION, y), arrowprops={"arrowstyle": "-|>", "color": GREY})


def _box(ax: Axes, x: float, y: float, width: float, text: str, colour: str) -> None:
    ax.add_patch(FancyBboxPatch((x, y - 0.3), width, 0.6, boxstyle="round,pad=0.02", facecolor=colour, edgecolor=GREY))
    ax.text(x + width / 2, y, text, ha="center", va="center", fontsize=10.5)


if __name__ == "__main__":
    draw()
    print(f"wrote {PICTURE}")
