"""``skldl measures``: list the measures, and repeat the choice of six."""

import shutil
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter, validators

from skldl.cli._options import Flag, check_targets, naming_formats
from skldl.cli._screen import IMAGES, save_figure
from skldl.data import TableFile
from skldl.data._arrays import read_arrays
from skldl.data._formats import holds_arrays
from skldl.data._labels import label_numbers
from skldl.exceptions import DatasetError, DatasetNotFoundError
from skldl.metrics import MEASURES, PAPER_MEASURES, Measure
from skldl.metrics.selection import Robustness, Selection, robustness, select_measures

app = App(
    name="measures",
    help="""List the measures between distributions, or choose among them.

    For instance:

        skldl measures
        skldl measures --latex | grep clark
        skldl measures select --out dendrogram.png
    """,
    help_format="markdown",
    result_action="return_value",
)

FAMILY_ORDER = list(dict.fromkeys(measure.family for measure in MEASURES.values()))
WIDTH_OF_NAME = max(map(len, MEASURES))
WIDTH_OF_RANGE = max(len(measure.range) for measure in MEASURES.values())


@app.default
def show(*, latex: bool = False) -> None:
    """List all measures with name, arrow (↑ higher is better), range and formula, by family.

    Parameters
    ----------
    latex
        Formulae in LaTeX instead of plain text.
    """
    print("d true degree, p predicted degree, c number of labels, * one of the paper's six")
    family = ""
    for measure in sorted(MEASURES.values(), key=lambda measure: FAMILY_ORDER.index(measure.family)):
        if measure.family != family:
            family = measure.family
            print(f"\n{family}")
        print(_line(measure, measure.formula if latex else measure.text))


def _line(measure: Measure, formula: str) -> str:
    """The line of a measure; on a terminal a long formula is wrapped, in a pipe it stays on one line for grep."""
    star = "*" if measure.name in PAPER_MEASURES else " "
    start = f" {star}{measure.name:{WIDTH_OF_NAME}} {measure.arrow} {measure.range:{WIDTH_OF_RANGE}} "
    if not sys.stdout.isatty():
        return start + formula
    width = max(shutil.get_terminal_size().columns - len(start), 24)
    pieces = textwrap.wrap(formula, width, break_long_words=False, break_on_hyphens=False)
    return start + f"\n{' ' * len(start)}".join(pieces)


@app.command
@naming_formats
def select(
    *,
    data: Path | None = None,
    out: Path = Path("measures.png"),
    seed: int = 0,
    labels: Annotated[int, Parameter(validator=validators.Number(gte=2))] = 10,
    concentration: Annotated[float, Parameter(validator=validators.Number(gt=0))] = 1.0,
    dissimilarity: Literal["sine", "one_minus_r"] = "sine",
    repeat: Flag = False,
    overwrite: Flag = False,
) -> None:
    """Choose six measures by the four principles of the paper, and save the dendrogram.

    Without data, thirty experiments on random distributions are run. For instance:

        skldl measures select --seed 1 --labels 5
        skldl measures select --data predictions.csv --out dendrogram.pdf

    Parameters
    ----------
    data
        True and predicted distributions: a file with the arrays D_true and D_pred ({arrays}), or a table ({tables})
        with the columns true_NAME and pred_NAME for each label NAME, one row per instance.
    out
        File for the figure; its extension determines the format (.png, .pdf, .svg).
    seed
        Seed of the experiments.
    labels
        Number of labels of the random distributions.
    concentration
        Parameter of their Dirichlet law: below 1 sharp, above 1 flat distributions.
    dissimilarity
        How a correlation r becomes a distance: sine is √(1−r²), one_minus_r is 1−|r|.
    repeat
        Also repeat the choice over seeds, numbers of labels and concentrations (some seconds).
    overwrite
        Overwrite an existing figure.
    """
    if out.suffix.lower() not in IMAGES:
        raise DatasetError(f"--out {out}: the figure can be a {', '.join(IMAGES)} file.")
    check_targets([("--out", out)], [], overwrite=overwrite)
    D_true, D_pred = (None, None) if data is None else read_pairs(data)
    selection = select_measures(
        D_true,
        D_pred,
        n_labels=labels,
        concentration=concentration,
        dissimilarity=dissimilarity,
        random_state=seed,
    )
    _print_selection(selection)
    if repeat:
        _print_robustness(robustness(dissimilarity=dissimilarity))

    from skldl.plots import MeasureDendrogramDisplay

    save_figure(out, lambda: MeasureDendrogramDisplay.from_selection(selection))
    print(f"\nfigure: {out}")


def _print_selection(selection: Selection) -> None:
    settings = selection.settings
    print(f"{settings['experiments']} experiments, {settings['source']}, seed {settings['random_state']}")
    print(
        f"clusters at {selection.cut:g}: {len(set(selection.clusters.values()))} of {len(selection.measures)} measures"
    )
    print(f"\n  {f'chosen ({len(selection.chosen)})':{WIDTH_OF_NAME}}  usage  growth near zero")
    for name in selection.chosen:
        star = "*" if name in PAPER_MEASURES else " "
        numbers = f"{selection.usage.get(name, 0):5}  {selection.instability[name]:6.1f}"
        print(f" {star}{name:{WIDTH_OF_NAME}}  {numbers}")
    print("\nthe paper's six (*):")
    for principle, violations in selection.judge().items():
        print(f"  {principle:10} {violations or 'kept'}")
    for name in PAPER_MEASURES:
        if name not in selection.chosen:
            print(f"  {name} was not chosen: {selection.reasons[name]}")
    print("\nusage: how many of seven general-purpose libraries have it")
    print("growth near zero: times its usual size when a degree vanishes, at most", f"{selection.limit:g}")


def _print_robustness(outcome: Robustness) -> None:
    names, fraction = outcome.usual
    print(f"\n{len(outcome.runs)} settings (seeds, numbers of labels, concentrations):")
    for line in (
        f"most often ({fraction:.0%}): {', '.join(names)}",
        "chosen in: " + ", ".join(f"{name} {fraction:.0%}" for name, fraction in outcome.frequency.items()),
        f"the paper's six keep the first three principles in {outcome.paper_admissible['all']:.0%}",
        f"of the paper's six, {outcome.agreement:.1f} are chosen on average",
    ):
        print(textwrap.fill(line, 78, initial_indent="  ", subsequent_indent="    "))


def read_pairs(path: Path) -> tuple[Any, Any]:
    """Read true and predicted distributions, without normalising them, from arrays or a table; see `select`."""
    if not path.exists():
        raise DatasetNotFoundError(f"There is no file {path}. Name the file with the distributions.")
    if holds_arrays(path):
        pair = read_arrays(path, "D_true", "D_pred")
        return pair.features, pair.labels
    frame = TableFile(path).read()
    sides = [[name.removeprefix(side) for name in frame if name.startswith(side)] for side in ("true_", "pred_")]
    if not sides[0] or sorted(sides[0]) != sorted(sides[1]):
        raise DatasetError(
            f"{path} needs a column true_NAME and a column pred_NAME for each label NAME; "
            f"it has true_ for {', '.join(sides[0]) or 'none'} and pred_ for {', '.join(sides[1]) or 'none'}."
        )
    true, pred = (label_numbers(frame[[side + name for name in sides[0]]]).to_numpy() for side in ("true_", "pred_"))
    return true, pred
