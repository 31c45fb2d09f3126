"""Draw the chart of ``docs/choose.md``: questions down the left side, answers beside them."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

PICTURE = Path(__file__).parent / "pictures" / "choose.png"
STEPS = [
    ("Are cells of the label table empty?", "SABFGSCV, then IncomLDL or WInLDL"),
    ("Are there only sets of labels, no degrees?", "softmax of zeros and ones,\nthen go on below"),
    ("Are the labels ordered, one for each row?", "from_neighbours,\nthen go on below"),
    ("Is accuracy all that counts,\nand are minutes of time no matter?", "AutoLDL"),
    ("Are the features sparse, or text,\nor more than a few hundred?", "SABFGSCV"),
    ("More than about 20,000 rows?", "SABFGSCV, or AAKNNCV\nif features are few"),
    ("Do similar rows have similar distributions,\nwith few features?", "AAKNNCV"),
    ("Columns on different scales, interactions?", "RandomForestLDL,\nGradientBoostingLDL"),
]
LAST = ("Otherwise: a smooth relation, up to some thousand rows", "KernelRidgeLDL")
BLUE, GREEN, GREY = "#DCEBF7", "#DDF0E3", "#555555"


def draw() -> None:
    """Draw the chart and save it."""
    mpl.use("Agg")
    height = 0.95
    figure, ax = plt.subplots(figsize=(9.5, 8.6), layout="constrained")
    for place, (question, answer) in enumerate(STEPS):
        y = -place * height
        _box(ax, 0, y, 4.5, question, BLUE)
        _box(ax, 6.2, y, 3.3, answer, GREEN)
        ax.annotate("", (6.2, y), (4.5, y), arrowprops={"arrowstyle": "-|>", "color": GREY})
        ax.text(5.35, y + 0.06, "yes", ha="center", va="bottom", color=GREY)
        ax.annotate("", (2.25, y - height + 0.32), (2.25, y - 0.32), arrowprops={"arrowstyle": "-|>", "color": GREY})
        ax.text(2.35, y - height / 2, "no, or afterwards" if place in (1, 2) else "no", va="center", color=GREY)
    y = -len(STEPS) * height
    _box(ax, 0, y, 4.5, LAST[0], BLUE)
    _box(ax, 6.2, y, 3.3, LAST[1], GREEN)
    ax.annotate("", (6.2, y), (4.5, y), arrowprops={"arrowstyle": "-|>", "color": GREY})
    ax.set(xlim=(-0.1, 9.6), ylim=(y - 0.45, 0.45))
    ax.axis("off")
    figure.savefig(PICTURE, dpi=110)
    plt.close(figure)


def _box(ax: Axes, x: float, y: float, width: float, text: str, colour: str) -> None:
    ax.add_patch(FancyBboxPatch((x, y - 0.3), width, 0.6, boxstyle="round,pad=0.02", facecolor=colour, edgecolor=GREY))
    ax.text(x + width / 2, y, text, ha="center", va="center", fontsize=10.5)


if __name__ == "__main__":
    draw()
    print(f"wrote {PICTURE}")
