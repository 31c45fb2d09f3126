"""The figures of a report, as inline SVG; a figure for which the records lack data is left out.

`figure_groups` collects them; a new figure is a function that yields it, called in one of the groups.
"""

import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from textwrap import fill
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from scipy.special import rel_entr

from skldl.annotators import RaterSummary
from skldl.experiments import StudyResults
from skldl.experiments.grids import best_by_value, candidate_of, parameter_titles, validation_losses
from skldl.experiments.statistics import Comparison, rank_rows
from skldl.experiments.tables import average_ranks, predictions_with_folds
from skldl.metrics import MEASURES
from skldl.plots import (
    CalibrationDisplay,
    CoverageDisplay,
    CriticalDifferenceDisplay,
    ExamplesDisplay,
    LabelCasesDisplay,
    ManifoldDisplay,
    MissingRateDisplay,
    QualityTimeDisplay,
    RankHeatmapDisplay,
    RatersDisplay,
    ResidualsDisplay,
    SensitivityDisplay,
    TernaryDisplay,
    style,
)
from skldl.plots._calibration import calibration_curves
from skldl.plots._display import Display, evenly_spaced
from skldl.plots._residuals import residual_quantiles
from skldl.selection import pairs_of
from skldl.uncertainty import coverage_curve
from skldl.uncertainty._calibrated import METHODS, cross_fit_maps
from skldl.uncertainty._dirichlet import fill_zeros, fit_concentration
from skldl.uncertainty._spread import dirichlet_ranks
from skldl.utils.mean_mixture import means_without
from skldl.utils.typing import FloatArray

MIN_DATASETS = 5  # average ranks over fewer datasets say little, and their figures repeat the tables
MAX_CELLS = 1000  # larger studies have figures of ranks for the criterion only; the tables have the other ranks
MIN_ROWS = 100  # fewer predictions say little about calibration and residuals
MAX_POINTS = 100  # of a triangle
EXAMPLE_LABELS = (18, 7, 4, 2)  # numbers of labels of the typical examples, as in the paper
MAX_MODELS = 8  # rows of the figure of typical examples; in large studies the candidates with the best average rank
MAX_NAMED_RATERS = 8  # flagged raters that a caption names
MAX_SENSITIVITIES = 8  # in studies with more candidates, figures of those with the best average rank
MAX_CURVES = 12  # with more datasets, a figure shows the median and the quartiles over them

PHONE_WIDTH = 3.7  # inches: 355 pixels, what a phone of 390 pixels leaves beside the margins of the page
LINE_LENGTH = 40  # letters, in a figure of this width

_CORRECTIONS = {
    "temperature": "temperature scaling",
    "vector": "vector scaling",
    "shrink": "shrinkage towards the mean",
}


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the page. ``phone_svg`` is drawn for a narrow screen; empty if ``svg`` itself is narrow.

    ``shape`` says if it needs the whole width ("wide") or more than half the height ("tall") of a page.
    """

    name: str
    title: str
    caption: str
    svg: str
    phone_svg: str
    shape: str


def draw(name: str, title: str, caption: str, display: Display) -> ReportFigure:
    """Draw a display as SVG, and a wide one a second time for narrow screens.

    Scaled down to a phone, a wide figure would have letters of six pixels. The second drawing has letters of the usual
    size, and its legend is below the axes.
    """
    text = f"{title}. {caption}"
    width, height = display.size()
    shape = "wide" if width > 7.6 else "tall" if height > 6 else ""
    phone_svg = ""
    with style():  # of axes and legends that are made here
        if width > PHONE_WIDTH:
            phone = _drawn(display, PHONE_WIDTH)
            _rearrange(phone)
            phone_svg = inline_svg(phone, f"{name}-phone", text)
        svg = inline_svg(_drawn(display), name, text)
    return ReportFigure(name, title, caption, svg, phone_svg, shape)


def _drawn(display: Display, width: float | None = None) -> Figure:
    """Draw into a figure that is not registered with pyplot, which would keep it in memory."""
    figure = Figure(figsize=display.size(width), layout="constrained")
    display.plot(figure.add_subplot())
    return figure


def _rearrange(figure: Figure) -> None:
    """Break long names of axes, and move the legend, if there is one, below the axes: the figure grows by as much."""
    for ax in figure.axes:
        ax.set_xlabel(fill(ax.get_xlabel(), LINE_LENGTH))
        legend = ax.get_legend()
        if legend is None:
            continue
        legend.remove()
        handles, names = ax.get_legend_handles_labels()
        longest = max(len(name) for name in names)
        # in letters: 52 fit into the width (by trial), and each entry needs 6 for its mark and the gap
        n_columns = max(1, min(len(names), 52 // (longest + 6)))
        figure.legend(handles, names, loc="outside lower center", ncols=n_columns)
        figure.set_figheight(figure.get_figheight() + 0.1 + 0.17 * -(-len(names) // n_columns))


def figure_groups(
    results: StudyResults, tests: dict[str, Comparison], first: Iterator[ReportFigure]
) -> list[dict[str, Any]]:
    """Draw all figures, in groups with name and title; groups without a figure are left out.

    ``tests`` has the tests over datasets of each measure, ``first`` the figures that come before all others.
    """
    groups = {
        ("comparison", "Candidates compared"): chain(first, comparison_figures(results, tests)),
        ("predictions", "Distributions and predictions"): prediction_figures(results),
        ("raters", "Raters"): rater_figures(results),
        ("corrections", "Corrected predictions"): correction_figures(results),
        ("sensitivity", "Sensitivity to hyper-parameters"): sensitivity_figures(results),
    }
    found = [{"name": name, "title": title, "figures": list(drawn)} for (name, title), drawn in groups.items()]
    return [group for group in found if group["figures"]]


def best_candidates(results: StudyResults, most: int) -> list[str]:
    """Choose at most ``most`` candidates for a figure: the baseline and those with the best average ranks.

    They are in the order of the study; ranks are by its criterion.
    """
    criterion = results.study["criterion"]
    if len(results.candidates) <= most:
        return results.candidates
    ranks = average_ranks(results, criterion) if criterion in results.measures else np.zeros(len(results.candidates))
    order = [results.candidates[j] for j in np.argsort(ranks, kind="stable")]  # NaN last
    kept = [results.baseline, *(name for name in order if name != results.baseline)][:most]
    return [name for name in results.candidates if name in kept]


def comparison_figures(results: StudyResults, tests: dict[str, Comparison]) -> Iterator[ReportFigure]:
    """Draw the figures about the study as a whole.

    Quality against time and against hidden degrees; from five datasets on, critical differences and rank maps.
    """
    criterion = results.study["criterion"]
    names = results.candidates
    if criterion in results.measures:
        yield from _quality_and_time(results, criterion)
        yield from _hidden_degrees(results, criterion)
    is_large = len(results.datasets) * len(names) > MAX_CELLS
    measures = [criterion] if is_large and criterion in results.measures else results.measures
    for measure in measures:
        known = MEASURES[measure]
        compared = tests[measure]
        if len(compared.datasets) >= MIN_DATASETS and np.isfinite(compared.nemenyi_difference):
            yield draw(
                f"critical-{measure}",
                f"Critical difference by {known.title}",
                f"Average ranks over {len(compared.datasets)} datasets, best on the left. A bar joins candidates that "
                "the Nemenyi test does not distinguish at the level 0.05.",
                CriticalDifferenceDisplay(
                    compared.average_ranks, names, compared.nemenyi_difference, f"{known.title} {known.arrow}"
                ),
            )
    for measure in measures:
        known = MEASURES[measure]
        means = results.means(measure)
        if len(results.datasets) >= MIN_DATASETS and np.isfinite(means).any(axis=0).all():
            ranks = rank_rows(means, higher_is_better=known.higher_is_better)
            yield draw(
                f"ranks-{measure}",
                f"Ranks by {known.title}",
                "1 is the best candidate on a dataset.",
                RankHeatmapDisplay(ranks, results.datasets, names, f"{known.title} {known.arrow}", average=False),
            )


def _quality_and_time(results: StudyResults, criterion: str) -> Iterator[ReportFigure]:
    seconds = results.means("fit_seconds") + results.means("predict_seconds")
    ranks = rank_rows(results.means(criterion), higher_is_better=MEASURES[criterion].higher_is_better)
    complete = np.isfinite(seconds).all(axis=1)
    if not complete.any() or len(results.candidates) < 2:
        return
    counted = f"{int(complete.sum())} dataset{'s' if complete.sum() > 1 else ''}"
    yield draw(
        "time",
        "Quality against time",
        f"Rank by {MEASURES[criterion].title} (mean and standard deviation over {counted}, best on "
        "top) against the time of one fit and its predictions (geometric mean). Selection is not counted.",
        QualityTimeDisplay(
            {name: list(seconds[complete, j]) for j, name in enumerate(results.candidates)},
            {name: list(ranks[complete, j]) for j, name in enumerate(results.candidates)},
            f"rank by {MEASURES[criterion].title}",
        ),
    )


def _hidden_degrees(results: StudyResults, criterion: str) -> Iterator[ReportFigure]:
    """Draw the criterion against the fraction of hidden degrees, where a dataset was studied at several."""
    for number, (dataset, display) in enumerate(MissingRateDisplay.of_study(results, criterion).items()):
        yield draw(
            f"hidden-{number}",
            f"{MEASURES[criterion].title} against the fraction of hidden degrees, {dataset}",
            "Mean over the tests, with one standard deviation to either side. Degrees are hidden from the candidates "
            "alone: the tests compare with all of them.",
            display,
        )


def prediction_figures(results: StudyResults) -> Iterator[ReportFigure]:
    """Draw the figures that need predictions, from those that the records keep.

    Cases of annotation, typical examples; triangles, manifolds, calibration and residuals where possible.
    """
    kept = {name: results.predictions(name) for name in results.datasets}
    complete = {name: _complete(found) for name, found in kept.items() if found is not None}
    tables = {name: found for name, found in complete.items() if found is not None}
    if not tables:
        return
    yield _cases(tables)
    shown = best_candidates(results, MAX_MODELS)
    yield from _examples(tables, shown, len(results.candidates) - len(shown))
    for number, (dataset, found) in enumerate(tables.items()):
        truth, predicted = found["truth"], found["predicted"]
        rivals = {name: table for name, table in predicted.items() if name != results.baseline} or predicted
        if truth.shape == (results.info[dataset]["n_test"], 3) and np.sqrt(len(truth)).is_integer():
            shape = (round(np.sqrt(len(truth))), -1, 3)
            yield draw(
                f"manifold-{number}",
                f"{dataset}: the test manifold",
                "The three degrees as red, green and blue, after the same decorrelation stretch for all panels.",
                ManifoldDisplay(truth.reshape(shape), {n: table.reshape(shape) for n, table in predicted.items()}),
            )
        elif truth.shape[1] == 3:
            some = dict(list(rivals.items())[-2:])
            rows = evenly_spaced(len(truth), MAX_POINTS)
            yield draw(
                f"triangle-{number}",
                f"{dataset}: real and predicted distributions",
                "Each corner is a label; the nearer a point, the more it describes the instance. A line connects "
                f"a true distribution with its prediction by {' or '.join(some)}.",
                TernaryDisplay(truth[rows], {name: table[rows] for name, table in some.items()}, found["labels"]),
            )
        if len(truth) >= MIN_ROWS:
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


def _cases(tables: dict[str, dict[str, Any]]) -> ReportFigure:
    """Draw the three cases of annotation for one instance, if possible with about six labels that have names."""
    dataset = min(tables, key=lambda name: (_has_generic_names(tables[name]), abs(len(tables[name]["labels"]) - 6)))
    found = tables[dataset]
    return draw(
        "cases",
        "What a label distribution is",
        f"Instance {found['rows'][0]} of {dataset}, annotated by one label, by a set of labels, and by a distribution "
        "that quantifies how much each label describes it. The study is about the last.",
        LabelCasesDisplay(found["truth"][0], found["labels"]),
    )


def _has_generic_names(found: dict[str, Any]) -> bool:
    """Whether the labels have the default names ``label_0``, ``label_1``, …"""
    return list(found["labels"]) == [f"label_{j}" for j in range(len(found["labels"]))]


def typical_datasets(tables: dict[str, dict[str, Any]]) -> list[str]:
    """Names of datasets with 18, 7, 4 and 2 labels, or with the nearest numbers, among those with predictions."""
    left = list(tables)
    chosen = []
    for wanted in EXAMPLE_LABELS[: len(tables)]:
        chosen.append(min(left, key=lambda name: abs(len(tables[name]["labels"]) - wanted)))
        left.remove(chosen[-1])
    return chosen


def typical_examples(tables: dict[str, dict[str, Any]], *, named: bool = False) -> ExamplesDisplay | None:
    """One instance of each typical dataset, not drawn yet, with the names of its labels if they are wanted.

    ``tables`` has the results of `StudyResults.predictions`. None if no candidate has predictions for all of them.
    """
    chosen = typical_datasets(tables)
    names = [name for name in tables[chosen[0]]["predicted"] if all(name in tables[c]["predicted"] for c in chosen)]
    if not names:
        return None
    return ExamplesDisplay(
        [tables[c]["truth"][0] for c in chosen],
        {name: [tables[c]["predicted"][name][0] for c in chosen] for name in names},
        [f"{c}: {len(tables[c]['labels'])} labels" for c in chosen],
        [list(tables[c]["labels"]) for c in chosen] if named else None,
    )


def _examples(tables: dict[str, dict[str, Any]], shown: list[str], n_left_out: int) -> Iterator[ReportFigure]:
    kept = {
        name: {**found, "predicted": {c: rows for c, rows in found["predicted"].items() if c in shown}}
        for name, found in tables.items()
    }
    display = typical_examples(kept, named=True)
    if display is not None:
        yield draw(
            "examples",
            "Typical examples",
            "True distributions (line with dots) and predicted ones (bars), one instance of each dataset; the labels "
            "are named above the first panel. Below each panel the six measures, the best value of a column in bold."
            + (f" {n_left_out} candidates with worse average ranks are left out." if n_left_out else ""),
            display,
        )


def _per_label(
    number: int, dataset: str, found: dict[str, Any], rivals: dict[str, FloatArray]
) -> Iterator[ReportFigure]:
    truth, labels = found["truth"], found["labels"]
    calibration = CalibrationDisplay(calibration_curves(truth, rivals), labels)
    shown = min(len(labels), calibration.max_panels)
    yield draw(
        f"calibration-{number}",
        f"{dataset}: calibration",
        "Mean real degree against mean predicted degree, in bins of equal size; on the dotted line both agree."
        + (f" The {shown} of {len(labels)} labels with the largest error." if shown < len(labels) else ""),
        calibration,
    )
    yield draw(
        f"residuals-{number}",
        f"{dataset}: residuals",
        "Predicted minus real degree of each label: median, middle half and middle 90 % of the rows.",
        ResidualsDisplay(residual_quantiles(truth, rivals), labels),
    )


def rater_figures(results: StudyResults) -> Iterator[ReportFigure]:
    """Draw the raters of each dataset whose record has a summary of them: how informed, severe and confused they are.

    There is one figure for each set of raters: datasets that differ only in hidden degrees share them.
    """
    known = {name: results.info[name].get("raters") for name in results.datasets}
    drawn = []
    for number, (dataset, raters) in enumerate(known.items()):
        if not raters or raters in drawn:
            continue
        drawn.append(raters)
        summary = RaterSummary.from_dict(raters)
        if np.isfinite(summary.table.informedness).any():
            yield draw(
                f"raters-{number}",
                f"{dataset}: the raters",
                _caption_of_raters(summary),
                RatersDisplay(summary.table, summary.confusion, list(summary.label_names), summary.n_raters),
            )


def _caption_of_raters(summary: RaterSummary) -> str:
    """Explain the panels, and name the raters that are flagged."""
    table = summary.table
    severity = "Severity is the mean difference between the answer and the truth as the others see it. "
    text = (
        f"{summary.n_raters:,} raters gave {summary.n_votes:,} votes. Informedness is the agreement with the other "
        "raters beyond chance: the fraction of answers that come from the item and not from habit or chance. "
        f"{severity if np.isfinite(table.severity).any() else ''}Lines are intervals of 95 %. On the right, how often "
        f'each true label gets each answer, by the model "{summary.model}" of Dawid and Skene. '
    )
    if not summary.flagged:
        return text + "No rater is flagged."
    if summary.n_raters == len(table):
        flagged = [f"{rater} ({flags})" for rater, flags in zip(table.rater, table.flags, strict=True) if flags]
        more = len(flagged) - MAX_NAMED_RATERS
        names = ", ".join(flagged[:MAX_NAMED_RATERS]) + (f" and {more} more" if more > 0 else "")
    else:
        names = ", ".join(f"{number:,} as {name}" for name, number in summary.flagged.items())
    return f"{text}Flagged: {names}. The flags are hints: inspect the votes before drawing conclusions."


def correction_figures(results: StudyResults) -> Iterator[ReportFigure]:
    """Draw, for the best candidate on each dataset, calibration before and after, and the coverage of its spread.

    There are none for a dataset of which the records keep fewer than 100 predictions.
    """
    criterion = results.study["criterion"]
    if criterion not in results.measures:
        return
    losses = results.losses(criterion)
    for number, dataset in enumerate(results.datasets):
        kept = predictions_with_folds(results, dataset)
        if kept is None or len(kept[0]["truth"]) < MIN_ROWS or np.isnan(losses[number]).all():
            continue
        found, fold_of = kept
        best = results.candidates[int(np.nanargmin(losses[number]))]
        P = found["predicted"][best]
        if np.isfinite(P).all():
            yield from _before_and_after(number, dataset, best, found, P, fold_of)


def _before_and_after(
    number: int, dataset: str, best: str, found: dict[str, Any], P: FloatArray, fold_of: Any
) -> Iterator[ReportFigure]:
    D, labels = found["truth"], found["labels"]
    codes = np.unique(fold_of, return_inverse=True)[1]
    means, pairs = means_without(D, None, codes), list(pairs_of(codes))
    # A predicted zero would make the divergence infinite, so that no map could be fitted.
    corrected = cross_fit_maps(METHODS, D, np.maximum(P, 1e-12), means, None, pairs)
    divergence = {name: float(rel_entr(D, table).sum(axis=1).mean()) for name, table in corrected.items()}
    method = min(divergence, key=lambda name: divergence[name])
    outcome = "none lowers the divergence: the predictions are calibrated already."
    if method != "none":
        outcome = (
            f"{_CORRECTIONS[method]} is the best: it takes the Kullback-Leibler divergence from "
            f"{divergence['none']:.4g} to {divergence[method]:.4g}."
        )
    stages = {"before": P, "after": corrected[method]} if method != "none" else {"unchanged": P}
    yield draw(
        f"correction-{number}",
        f"{dataset}: {best} before and after calibration",
        "Mean real degree against mean predicted degree. Of temperature scaling, vector scaling and shrinkage towards "
        f"the mean, fitted without the fold of the row, {outcome}",
        CalibrationDisplay(calibration_curves(D, stages), labels),
    )
    filled = fill_zeros(D)
    curves = {}
    for name in stages:
        table = corrected[method if name == "after" else "none"]
        ranks = np.empty_like(D)
        for train, test in pairs:
            tau = fit_concentration(table[train], D=filled[train])
            ranks[test] = dirichlet_ranks(filled[test], table[test], np.full(len(test), tau))
        curves[name] = coverage_curve(ranks)
    yield draw(
        f"spread-{number}",
        f"{dataset}: spread around {best}",
        "Fraction of the degrees inside the intervals of a Dirichlet distribution around the prediction, against the "
        "level of the intervals; its concentration was fitted without the fold of the row. Above the dotted line the "
        "intervals are too wide, below it too narrow.",
        CoverageDisplay(curves),
    )


def sensitivity_figures(results: StudyResults) -> Iterator[ReportFigure]:
    """Draw how the criterion depends on the hyper-parameter that selection searched, from the recorded values.

    There is one figure for each candidate with a grid; in large studies for those with the best average rank.
    """
    known = MEASURES[results.study["criterion"]]
    shown = best_candidates(results, MAX_SENSITIVITIES + 1)
    for number, entry in enumerate(results.study["candidates"]):
        candidate = candidate_of(entry)
        if not candidate.needs_selection or entry["name"] not in shown:
            continue
        name = candidate.path or max(candidate.grid, key=lambda param: len(candidate.grid[param]))
        others = (value for grid in candidate.grids.values() for value in grid.get(name, ()))
        values = list(dict.fromkeys([*candidate.grid[name], *others]))
        if candidate.grids:  # the values of several grids, as one axis
            values = sorted(values, key=lambda value: (isinstance(value, str), value))
        title = parameter_titles(candidate.grid)[name]
        curves = {}
        for dataset in results.datasets:
            used = candidate.on(dataset)
            losses = validation_losses(results, dataset, used)
            if losses is None:
                continue
            best = best_by_value(losses.mean(axis=0), used, name)
            minimum = min(best.values())
            if np.isfinite(list(best.values())).all() and minimum > 0:
                curves[dataset] = np.array([[best.get(value, np.nan) / minimum] for value in values])
        if curves and len(values) > 1:
            lines = _few_curves(curves)
            summary = "" if lines is curves else f" The lines summarise {len(curves)} datasets."
            yield draw(
                f"sensitivity-{number}",
                f"{entry['name']}: sensitivity to {title}",
                f"{known.title} on validation rows for each value of {title} that was tried, as a "
                f"multiple of the best value on the same dataset; other hyper-parameters at their best.{summary}",
                SensitivityDisplay(title, values, lines, "relative loss"),
            )


def _few_curves(curves: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """The curves themselves, or the median and the quartiles of many."""
    if len(curves) <= MAX_CURVES:
        return curves
    table = np.hstack(list(curves.values()))  # values × datasets; NaN where a dataset has another grid
    known = [row[np.isfinite(row)] for row in table]
    return {
        name: np.array([[np.quantile(row, level) if len(row) else np.nan] for row in known])
        for name, level in {"upper quartile": 0.75, "median": 0.5, "lower quartile": 0.25}.items()
    }


# Inline SVG that satisfies a strict content security policy and uses the colours of the page. matplotlib writes `style`
# attributes and a `style` element, which such a policy forbids: they become presentation attributes. Black becomes the
# colour of the text around, grey lines and white fill follow the page. Identifiers get a prefix, since a page has many
# figures. Text stays text.

SVG = "http://www.w3.org/2000/svg"
XLINK = "{http://www.w3.org/1999/xlink}href"
FONTS = "DejaVu Sans, Verdana, sans-serif"
_CLASS_OF = {("fill", "#ffffff"): "paper", ("stroke", "#cccccc"): "faint", ("fill", "#cccccc"): "bar"}
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_HASHED = re.compile(r"[a-zA-Z][0-9a-f]{10}")
_NUMBER = re.compile(r"\d+\.\d{3,}")

ElementTree.register_namespace("", SVG)


def inline_svg(figure: Figure, prefix: str, title: str) -> str:
    """Write a figure as an ``svg`` element with all text escaped.

    The prefix is put before every identifier, and is different for each figure of a page; the title is for readers who
    do not see the figure.
    """
    stream = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": prefix}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the reader's browser has other fonts
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(stream.getvalue())
    for parent in list(root.iter()):
        for element in list(parent):
            if element.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(element)
    names = _plain_names(root)
    for element in root.iter():
        _without_style(element)
        _with_prefix(element, prefix, names)
        _shorten(element)
    root.attrib.pop("version", None)
    root.attrib.pop("height", None)
    root.set("width", f"{float(root.get('width', '0').removesuffix('pt')) * 4 / 3:.0f}")  # points to pixels
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title")
    root.set("font-family", FONTS)
    root.set("fill", "currentColor")  # what matplotlib leaves out because it is black
    heading = ElementTree.Element(f"{{{SVG}}}title", {"id": f"{prefix}-title"})
    heading.text = title
    root.insert(0, heading)
    for element in root.iter():
        for text in ("text", "tail"):
            if not (getattr(element, text) or "").strip():
                setattr(element, text, None)
    return ElementTree.tostring(root, encoding="unicode")


def _without_style(element: ElementTree.Element) -> None:
    """Turn the declarations of a style attribute into presentation attributes, and colours into those of the page."""
    for declaration in element.attrib.pop("style", "").split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font":  # what matplotlib before 3.11 writes, such as: 700 9px 'DejaVu Sans', sans-serif
            words = value.split(",")[0].split()
            element.set("font-size", next(word for word in words if word.endswith("px")))
            if "700" in words:
                element.set("font-weight", "700")
        elif name and name != "font-family":
            element.set(name, value)
    for name in ("fill", "stroke"):
        colour = element.get(name)
        if colour == "#000000":
            element.set(name, "currentColor")
        elif (name, colour) in _CLASS_OF:
            element.attrib.pop(name)
            element.set("class", f"{element.get('class', '')} {_CLASS_OF[name, str(colour)]}".strip())


def _plain_names(root: ElementTree.Element) -> dict[str, str]:
    """Names in the place of identifiers that are hashes.

    matplotlib hashes the coordinates of clipping areas and marks. Their last digit differs between two runs of its
    solver of layouts, but the same records shall give the same page.
    """
    hashed = [found for element in root.iter() if _HASHED.fullmatch(found := element.get("id", ""))]
    return {name: f"shape_{number}" for number, name in enumerate(dict.fromkeys(hashed), start=1)}


def _with_prefix(element: ElementTree.Element, prefix: str, names: dict[str, str]) -> None:
    """Put a prefix before identifiers and references to them, and replace those that ``names`` holds."""

    def full(name: str) -> str:
        return f"{prefix}-{names.get(name, name)}"

    if "id" in element.attrib:
        element.set("id", full(element.attrib["id"]))
    if XLINK in element.attrib:
        target = element.attrib.pop(XLINK)
        element.set("href", f"#{full(target[1:])}" if target.startswith("#") else target)
    for name, value in element.attrib.items():
        if "url(#" in value:
            element.set(name, _REFERENCE.sub(lambda found: f"url(#{full(found[1])})", value))


def _shorten(element: ElementTree.Element) -> None:
    """Two decimals of a point are more than a screen shows."""
    for name in ("d", "x", "y", "transform"):
        if name in element.attrib:
            element.set(name, _NUMBER.sub(lambda number: f"{float(number[0]):.2f}", element.attrib[name]))
