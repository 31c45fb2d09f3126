"""The figures that need predictions: drawn from those that the records keep."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from skldl.experiments import StudyResults
from skldl.plots import (
    CalibrationDisplay,
    ExamplesDisplay,
    LabelCasesDisplay,
    ManifoldDisplay,
    ResidualsDisplay,
    TernaryDisplay,
)
from skldl.plots._style import figure_of, name_axis
from skldl.report._figures import ReportFigure, best_candidates, draw
from skldl.utils.typing import FloatArray

ENOUGH_ROWS = 100  # fewer predictions say little about calibration and residuals
EXAMPLE_LABELS = (18, 7, 4, 2)  # as in the paper
LONGEST_LABEL = 14  # letters of a name in the figure of typical examples
MOST_MODELS = 8  # rows of the figure of typical examples; in large studies the candidates with the best average rank


def prediction_figures(results: StudyResults) -> Iterator[ReportFigure]:
    """Draw the figures that need predictions, from those that the records keep.

    Cases of annotation, typical examples; triangles, manifolds, calibration and residuals where possible.
    """
    kept = {name: results.predictions(name) for name in results.datasets}
    whole = {name: _complete(found) for name, found in kept.items() if found is not None}
    tables = {name: found for name, found in whole.items() if found is not None}
    if not tables:
        return
    yield from _cases(tables)
    shown = best_candidates(results, MOST_MODELS)
    yield from _examples(tables, shown, len(results.candidates) - len(shown))
    for number, (dataset, found) in enumerate(tables.items()):
        truth, predicted = found["truth"], found["predicted"]
        rivals = {name: table for name, table in predicted.items() if name != results.baseline} or predicted
        if truth.shape == (results.info[dataset]["n_test"], 3) and np.sqrt(len(truth)).is_integer():
            yield draw(
                f"manifold-{number}",
                f"{dataset}: the test manifold",
                "The three degrees as red, green and blue, after the same decorrelation stretch for all panels.",
                partial(ManifoldDisplay.from_predictions, truth, predicted),
                7.6,
                2.3 * -(-(len(predicted) + 1) // 4),
                phone_height=2.2 * -(-(len(predicted) + 1) // 2),
            )
        elif truth.shape[1] == 3:
            some = dict(list(rivals.items())[-2:])
            yield draw(
                f"triangle-{number}",
                f"{dataset}: real and predicted distributions",
                "Each corner is a label; the nearer a point, the more it describes the instance. A line connects "
                f"a true distribution with its prediction by {' or '.join(some)}.",
                partial(TernaryDisplay.from_predictions, truth, some, label_names=found["labels"]),
                5.2,
                4.6,
                phone_height=3.3,
            )
        if len(truth) >= ENOUGH_ROWS:
            yield from _per_label(number, dataset, found, rivals)


def _complete(found: dict[str, Any]) -> dict[str, Any] | None:
    """Leave out candidates and rows whose predictions are missing."""
    predicted = {name: table for name, table in found["predicted"].items() if np.isfinite(table).any()}
    rows = np.all([np.isfinite(table).all(axis=1) for table in predicted.values()], axis=0)
    if not predicted or not rows.any():
        return None
    return {
        "rows": found["rows"][rows],
        "labels": found["labels"],
        "truth": found["truth"][rows],
        "predicted": {name: table[rows] for name, table in predicted.items()},
    }


def _cases(tables: dict[str, dict[str, Any]]) -> Iterator[ReportFigure]:
    dataset = min(tables, key=lambda name: (_has_generic_names(tables[name]), abs(len(tables[name]["labels"]) - 6)))
    found = tables[dataset]
    n_labels = len(found["labels"])
    yield draw(
        "cases",
        "What a label distribution is",
        f"Instance {found['rows'][0]} of {dataset}, annotated by one label, by a set of labels, and by a distribution "
        "that quantifies how much each label describes it. The study is about the last.",
        partial(LabelCasesDisplay.from_predictions, found["truth"], label_names=found["labels"]),
        7.5,
        1.3 + 0.17 * n_labels,
        phone_height=1.2 + 3 * (0.25 + 0.17 * n_labels),
    )


def typical_datasets(tables: dict[str, dict[str, Any]]) -> list[str]:
    """Names of datasets with 18, 7, 4 and 2 labels, or with what comes nearest, among those with predictions."""
    left = list(tables)
    chosen = []
    for wanted in EXAMPLE_LABELS[: len(tables)]:
        chosen.append(min(left, key=lambda name: abs(len(tables[name]["labels"]) - wanted)))
        left.remove(chosen[-1])
    return chosen


def typical_examples(tables: dict[str, dict[str, Any]]) -> ExamplesDisplay | None:
    """One instance of each typical dataset, not drawn yet; ``tables`` has what `StudyResults.predictions` gives.

    None if no candidate has predictions for all of them.
    """
    chosen = typical_datasets(tables)
    names = [name for name in tables[chosen[0]]["predicted"] if all(name in tables[c]["predicted"] for c in chosen)]
    if not names:
        return None
    return ExamplesDisplay(
        [tables[c]["truth"][0] for c in chosen],
        {name: [tables[c]["predicted"][name][0] for c in chosen] for name in names},
        [f"{c}: {len(tables[c]['labels'])} labels" for c in chosen],
    )


def _has_generic_names(found: dict[str, Any]) -> bool:
    """Whether the labels have the names that data without names get."""
    return list(found["labels"]) == [f"label_{j}" for j in range(len(found["labels"]))]


def _examples(tables: dict[str, dict[str, Any]], shown: list[str], n_left_out: int) -> Iterator[ReportFigure]:
    kept = {
        name: {**found, "predicted": {c: rows for c, rows in found["predicted"].items() if c in shown}}
        for name, found in tables.items()
    }
    display = typical_examples(kept)
    if display is None:
        return
    labels = [list(kept[name]["labels"]) for name in typical_datasets(kept)]
    longest = min(max(len(label) for names in labels for label in names), LONGEST_LABEL)
    names_height = 0.1 + 0.07 * longest  # they are turned where they would overlap
    yield draw(
        "examples",
        "Typical examples",
        "True distributions (line with dots) and predicted ones (bars), one instance of each dataset; the labels are "
        "named above the first panel. Below each panel the six measures, the best value of a column in bold."
        + (f" {n_left_out} candidates with worse average ranks are left out." if n_left_out else ""),
        partial(_draw_examples, [display], [labels]),
        0.7 + 2.45 * len(display.true),
        0.35 + 1.3 * len(display.predicted) + names_height,
        phone_plot=partial(_draw_examples, _one_by_one(display), [[names] for names in labels]),
        phone_height=(0.35 + 1.2 * len(display.predicted) + names_height) * len(display.true),
    )


def _one_by_one(display: ExamplesDisplay) -> list[ExamplesDisplay]:
    """One figure for each instance of the given one."""
    return [
        ExamplesDisplay([true], {name: [rows[place]] for name, rows in display.predicted.items()}, [title])
        for place, (true, title) in enumerate(zip(display.true, display.titles, strict=True))
    ]


def _draw_examples(displays: list[ExamplesDisplay], labels: list[list[list[str]]], ax: Axes) -> None:
    """Draw the figures one below the other, with the names of the labels above the first panel of each column.

    ``labels`` holds these names for each figure and each of its columns.
    """
    spec = ax.get_subplotspec()
    assert spec is not None  # `draw` makes the axes with add_subplot
    ax.set_axis_off()
    places = spec.subgridspec(len(displays), 1)
    for place, (display, columns) in enumerate(zip(displays, labels, strict=True)):
        display.plot(figure_of(ax).add_subplot(places[place, 0]))
        for panel, names in zip(display.axes_[0], columns, strict=True):
            name_axis(panel, names, "x", limit=LONGEST_LABEL)
            panel.tick_params(axis="x", labelsize=6.5, labeltop=True)
        for panel in (panel for row in display.axes_ for panel in row):  # the panels of a column share their ticks
            panel.tick_params(axis="x", length=0, labelbottom=False)


def _per_label(
    number: int, dataset: str, found: dict[str, Any], rivals: dict[str, FloatArray]
) -> Iterator[ReportFigure]:
    truth, labels = found["truth"], found["labels"]
    n_labels = len(labels)
    shown = min(n_labels, 12)
    yield draw(
        f"calibration-{number}",
        f"{dataset}: calibration",
        "Mean real degree against mean predicted degree, in bins of equal size; on the dotted line both agree."
        + (f" The {shown} of {n_labels} labels with the largest error." if shown < n_labels else ""),
        partial(CalibrationDisplay.from_predictions, truth, rivals, label_names=labels),
        1.6 + 2.0 * min(shown, 4),
        0.6 + 1.85 * -(-shown // 4),
        phone_height=0.6 + 1.85 * -(-shown // 2),
    )
    yield draw(
        f"residuals-{number}",
        f"{dataset}: residuals",
        "Predicted minus real degree of each label: median, middle half and middle 90 % of the rows.",
        partial(ResidualsDisplay.from_predictions, truth, rivals, label_names=labels),
        7.0,
        min(0.9 + max(0.2, 0.11 * len(rivals)) * n_labels, 16.0),
    )
