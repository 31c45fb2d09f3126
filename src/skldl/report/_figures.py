"""The figures of a report: each is drawn where the records allow it, and left out where they do not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from skldl.experiments import StudyResults
from skldl.experiments.statistics import Comparison, rank_rows
from skldl.experiments.tables import average_ranks
from skldl.metrics import MEASURES
from skldl.plots import (
    CriticalDifferenceDisplay,
    MissingRateDisplay,
    QualityTimeDisplay,
    RankHeatmapDisplay,
    style,
)
from skldl.report._svg import inline_svg

FEWEST_DATASETS = 5  # average ranks over fewer datasets say little, and their figures repeat the tables
PHONE_WIDTH = 3.7  # inches: 355 pixels, what a phone of 390 pixels leaves beside the margins of the page
LETTERS_OF_A_LINE = 40  # in a figure of this width
MOST_CELLS = 1000  # larger studies have figures of ranks for the criterion only; the tables have the other ranks


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the page. ``phone_svg`` is drawn for a narrow screen; empty if the picture itself is narrow.

    ``shape`` says if it needs the whole width ("wide") or more than half the height ("tall") of a page.
    """

    name: str
    title: str
    caption: str
    svg: str
    phone_svg: str
    shape: str


def draw(
    name: str,
    title: str,
    caption: str,
    plot: Callable[..., Any],
    width: float,
    height: float,
    phone_plot: Callable[..., Any] | None = None,
    phone_height: float | None = None,
) -> ReportFigure:
    """Draw into a new figure, and write it as SVG; wide figures a second time, for narrow screens.

    A wide figure that is scaled down to a phone has letters of six pixels. The second drawing, by ``phone_plot`` or
    ``plot``, has letters of the usual size, and the legend below the axes. Sizes are in inches.
    """
    shape = "wide" if width > 7.6 else "tall" if height > 6 else ""
    text = f"{title}. {caption}"
    figure = Figure(figsize=(width, height), layout="constrained")
    with style():
        plot(ax=figure.add_subplot())
    phone_svg = ""
    if width > PHONE_WIDTH:
        phone = Figure(figsize=(PHONE_WIDTH, height if phone_height is None else phone_height), layout="constrained")
        with style():
            (phone_plot or plot)(ax=phone.add_subplot())
            _rearrange(phone)
        phone_svg = inline_svg(phone, f"{name}-phone", text)
    return ReportFigure(name, title, caption, inline_svg(figure, name, text), phone_svg, shape)


def _rearrange(figure: Figure) -> None:
    """Break long names of axes, and move the legend, if there is one, below the axes: the figure grows by as much."""
    for ax in figure.axes:
        ax.set_xlabel(fill(ax.get_xlabel(), LETTERS_OF_A_LINE))
        legend = ax.get_legend()
        if legend is None:
            continue
        legend.remove()
        handles, names = ax.get_legend_handles_labels()
        longest = max(len(name) for name in names)
        # in letters: 52 small ones fit, 6 are mark and gap
        n_columns = max(1, min(len(names), 52 // (longest + 6)))
        figure.legend(handles, names, loc="outside lower center", ncols=n_columns)
        figure.set_figheight(figure.get_figheight() + 0.1 + 0.17 * -(-len(names) // n_columns))


def best_candidates(results: StudyResults, most: int) -> list[str]:
    """At most ``most`` candidates for a figure, in the order of the study.

    If there are more: the baseline and those with the best average rank by the criterion.
    """
    criterion = results.study["criterion"]
    if len(results.candidates) <= most:
        return results.candidates
    ranks = average_ranks(results, criterion) if criterion in results.measures else np.zeros(len(results.candidates))
    order = [results.candidates[j] for j in np.argsort(ranks, kind="stable")]  # NaN last
    kept = [results.baseline, *(name for name in order if name != results.baseline)][:most]
    return [name for name in results.candidates if name in kept]


def overview_figures(results: StudyResults, tests: dict[str, Comparison]) -> Iterator[ReportFigure]:
    """Draw the figures about the study as a whole; ``tests`` has the tests over datasets of each measure.

    Quality against time and against hidden degrees; from five datasets on, critical differences and rank maps.
    """
    criterion = results.study["criterion"]
    names = results.candidates
    if criterion in results.measures:
        yield from _quality_and_time(results, criterion)
        yield from _hidden_degrees(results, criterion)
    is_large = len(results.datasets) * len(names) > MOST_CELLS
    measures = [criterion] if is_large and criterion in results.measures else results.measures
    for measure in measures:
        known = MEASURES[measure]
        compared = tests[measure]
        if len(compared.datasets) >= FEWEST_DATASETS and np.isfinite(compared.nemenyi_difference):
            display = CriticalDifferenceDisplay(
                compared.average_ranks, names, compared.nemenyi_difference, f"{known.title} {known.arrow}"
            )
            yield draw(
                f"critical-{measure}",
                f"Critical difference by {known.title}",
                f"Average ranks over {len(compared.datasets)} datasets, best on the left. A bar joins candidates that "
                "the Nemenyi test does not distinguish at the level 0.05.",
                display.plot,
                7.2,
                1.2 + 0.33 * (0.55 + 0.32 * len(display.groups) + 0.55 * ((len(names) + 1) // 2)),
            )
    for measure in measures:
        known = MEASURES[measure]
        means = results.means(measure)
        if len(results.datasets) >= FEWEST_DATASETS and np.isfinite(means).any(axis=0).all():
            ranks = rank_rows(means, higher_is_better=known.higher_is_better)
            title = f"{known.title} {known.arrow}"
            yield draw(
                f"ranks-{measure}",
                f"Ranks by {known.title}",
                "1 is the best candidate on a dataset.",
                RankHeatmapDisplay(ranks, results.datasets, names, title, average=False).plot,
                2.2 + 0.68 * len(names),
                min(1.4 + 0.24 * len(means), 16.0),
            )


def _hidden_degrees(results: StudyResults, criterion: str) -> Iterator[ReportFigure]:
    """Draw the criterion against the share of hidden degrees, where a dataset was studied at several."""
    for number, (dataset, display) in enumerate(MissingRateDisplay.of_study(results, criterion).items()):
        yield draw(
            f"hidden-{number}",
            f"{MEASURES[criterion].title} against the share of hidden degrees, {dataset}",
            "Mean over the tests, with one standard deviation to either side. Degrees are hidden from the candidates "
            "alone: the tests compare with all of them.",
            display.plot,
            7.2,
            3.6,
        )


def _quality_and_time(results: StudyResults, criterion: str) -> Iterator[ReportFigure]:
    seconds = results.means("fit_seconds") + results.means("predict_seconds")
    ranks = rank_rows(results.means(criterion), higher_is_better=MEASURES[criterion].higher_is_better)
    whole = np.isfinite(seconds).all(axis=1)
    if not whole.any() or len(results.candidates) < 2:
        return
    columns = range(len(results.candidates))
    counted = f"{int(whole.sum())} dataset{'s' if whole.sum() > 1 else ''}"
    display = QualityTimeDisplay(
        {results.candidates[j]: list(seconds[whole, j]) for j in columns},
        {results.candidates[j]: list(ranks[whole, j]) for j in columns},
        f"rank by {MEASURES[criterion].title}",
    )
    yield draw(
        "time",
        "Quality against time",
        f"Rank by {MEASURES[criterion].title} (mean and standard deviation over {counted}, best on "
        "top) against the time of one fit and its predictions (geometric mean). Selection is not counted.",
        display.plot,
        6.4,
        3.6,
    )
