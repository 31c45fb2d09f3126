"""The figures of a report: each is drawn where the records allow it, and left out where they do not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skldl._typing import FloatArray
from skldl.experiments import Candidate, StudyResults
from skldl.experiments.output.tables import losses_of, rank_rows, skill_of
from skldl.experiments.output.texts import parameter_titles
from skldl.experiments.output.uncertainty import noise_ceilings
from skldl.experiments.statistics import Comparison
from skldl.metrics import MEASURES
from skldl.plots import (
    CriticalDifferenceDisplay,
    MissingRateDisplay,
    QualityTimeDisplay,
    RankHeatmapDisplay,
    SensitivityDisplay,
    SkillDisplay,
    style,
)
from skldl.report._svg import inline_svg

MOST_CELLS = 1000  # of larger studies only the ranks by the criterion are drawn; the tables tell the others
MOST_LINES = 36  # more lines than that have no look of their own


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the page.

    Attributes
    ----------
    name : str
        Identifier in the page.
    title, caption : str
        What it shows, and how to read it.
    svg : str
        The picture.
    shape : {"wide", "tall", ""}
        Whether it needs the whole width or more than half the height of a page.
    """

    name: str
    title: str
    caption: str
    svg: str
    shape: str


def draw(name: str, title: str, caption: str, plot: Callable[[Axes], Any], width: float, height: float) -> ReportFigure:
    """Draw into a figure that only the report knows, and write it as SVG.

    Parameters
    ----------
    name : str
        Identifier in the page.
    title, caption : str
        What it shows, and how to read it.
    plot : callable
        Draws into given axes.
    width, height : float
        Size in inches.

    Returns
    -------
    ReportFigure
        The figure.
    """
    shape = "wide" if width > 7.6 else "tall" if height > 6 else ""
    figure = Figure(figsize=(width, height), layout="constrained")
    with style():
        plot(figure.add_subplot())
    return ReportFigure(name, title, caption, inline_svg(figure, name, f"{title}. {caption}"), shape)


def overview_figures(results: StudyResults, tests: dict[str, Comparison]) -> Iterator[ReportFigure]:
    """Draw the figures about the study as a whole.

    Parameters
    ----------
    results : StudyResults
        The results.
    tests : dict
        From each measure to its tests over datasets.

    Yields
    ------
    ReportFigure
        Skill, quality against time, critical differences, rank maps.
    """
    criterion = results.study["criterion"]
    names = results.candidates
    if criterion in results.measures:
        yield from _skill(results, criterion)
        yield from _quality_and_time(results, criterion)
        yield from _hidden_degrees(results, criterion)
    for measure in results.measures:
        known = MEASURES[measure]
        compared = tests[measure]
        if np.isfinite(compared.nemenyi_difference):
            display = CriticalDifferenceDisplay(
                compared.average_ranks, names, compared.nemenyi_difference, f"{known.title} {known.arrow}"
            )
            yield draw(
                f"critical-{measure}",
                f"Critical difference by {known.title}",
                f"Average ranks over {len(compared.datasets)} datasets, best on the left. A bar joins candidates that "
                "the Nemenyi test does not tell apart at the level 0.05.",
                display.plot,
                7.2,
                1.2 + 0.33 * (0.55 + 0.32 * len(display.groups) + 0.55 * ((len(names) + 1) // 2)),
            )
    is_large = len(results.datasets) * len(names) > MOST_CELLS
    for measure in [criterion] if is_large and criterion in results.measures else results.measures:
        known = MEASURES[measure]
        means = results.means(measure)
        if len(results.datasets) > 1 and np.isfinite(means).any(axis=0).all():
            ranks = rank_rows(means, higher_is_better=known.higher_is_better)
            yield draw(
                f"ranks-{measure}",
                f"Ranks by {known.title}",
                "1 is best on a dataset. The lowest line averages over all datasets shown.",
                RankHeatmapDisplay(ranks, results.datasets, names, f"{known.title} {known.arrow}").plot,
                2.2 + 0.68 * len(names),
                min(1.4 + 0.24 * (len(means) + 1), 16.0),
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


def _skill(results: StudyResults, criterion: str) -> Iterator[ReportFigure]:
    table = skill_of(results, criterion)
    skills: dict[str, dict[str, Any]] = {}
    for dataset, row in zip(results.datasets, table, strict=True):
        known = {
            name: float(value)
            for name, value in zip(results.candidates, row, strict=True)
            if name != results.baseline and np.isfinite(value)
        }
        if known:
            skills[dataset] = known
    known_ceilings = noise_ceilings(results, criterion, losses_of(results, criterion))
    ceilings = {name: value for name, value in known_ceilings.items() if name in skills}
    if skills:
        n_models = len(results.candidates) - 1
        note = (
            " A thick bar is the noise ceiling: the skill of a model at the noise floor of the votes."
            if ceilings
            else ""
        )
        yield draw(
            "skill",
            f"Skill by {MEASURES[criterion].title}",
            f"The part of the loss of {results.baseline} that a candidate takes away: 1 is perfect, 0 is no better "
            "than the mean of the training distributions. Arrow heads at the left edge stand for values beyond it."
            + note,
            SkillDisplay(skills, ceilings).plot,
            7.2,
            min(1.3 + len(skills) * max(0.32, 0.075 * n_models), 16.0),
        )


def _quality_and_time(results: StudyResults, criterion: str) -> Iterator[ReportFigure]:
    seconds = results.means("fit_seconds") + results.means("predict_seconds")
    ranks = rank_rows(results.means(criterion), higher_is_better=MEASURES[criterion].higher_is_better)
    whole = np.isfinite(seconds).all(axis=1)
    if not whole.any() or len(results.candidates) < 2:
        return
    columns = range(len(results.candidates))
    display = QualityTimeDisplay(
        {results.candidates[j]: list(seconds[whole, j]) for j in columns},
        {results.candidates[j]: list(ranks[whole, j]) for j in columns},
        f"rank by {MEASURES[criterion].title}",
    )
    yield draw(
        "time",
        "Quality against time",
        f"Rank by {MEASURES[criterion].title} (mean and standard deviation over {int(whole.sum())} datasets, best on "
        "top) against the time of one fit and its predictions (geometric mean). Selection is not counted.",
        display.plot,
        6.4,
        3.6,
    )


def sensitivity_figures(results: StudyResults) -> Iterator[ReportFigure]:
    """Draw how the criterion depends on the hyper-parameter that selection searched.

    Parameters
    ----------
    results : StudyResults
        The results.

    Yields
    ------
    ReportFigure
        One for each candidate with a grid.
    """
    known = MEASURES[results.study["criterion"]]
    for number, told in enumerate(results.study["candidates"]):
        grids = told.get("grids", {})
        candidate = Candidate(told["name"], "", grid=told.get("grid", {}), path=told.get("path", ""), grids=grids)
        if not candidate.needs_selection:
            continue
        name = candidate.path or max(candidate.grid, key=lambda param: len(candidate.grid[param]))
        others = (value for grid in candidate.grids.values() for value in grid.get(name, ()))
        values = list(dict.fromkeys([*candidate.grid[name], *others]))
        if candidate.grids:  # the values of several grids, as one axis
            values = sorted(values, key=lambda value: (isinstance(value, str), value))
        title = parameter_titles(candidate.grid)[name]
        curves = {}
        for dataset in results.datasets[:MOST_LINES]:
            used = candidate.on(dataset)
            trials = _trials(results, dataset, told["name"], len(used.settings))
            if len(trials):
                loss = known.loss(trials.mean(axis=0), results.info[dataset]["n_labels"])
                best = _best_by_value(loss, used, name)
                if np.isfinite(best).all() and best.min() > 0:
                    relative = dict(zip(used.grid[name], best / best.min(), strict=True))
                    curves[dataset] = np.array([[relative.get(value, np.nan)] for value in values])
        if curves and len(values) > 1:
            yield draw(
                f"sensitivity-{number}",
                f"{told['name']}: sensitivity to {title}",
                f"{known.title} on validation rows for each value of {title} that was tried, as a "
                "multiple of the best value on the same dataset; other hyper-parameters at their best.",
                SensitivityDisplay(title, values, curves, "relative loss").plot,
                6.8,
                max(3.2, 0.6 + 0.19 * len(curves)),
            )


def _trials(results: StudyResults, dataset: str, candidate: str, n_settings: int) -> FloatArray:
    """Values of the criterion, tests × settings, as selection saw them."""
    records = [*results.selections, *(r for r in results.evaluations if "selection" in r)]
    rows = [
        (record.get("selection") or record)["values"]
        for record in records
        if (record["dataset"], record["candidate"]) == (dataset, candidate) and record["status"] == "ok"
    ]
    table = np.array([[np.nan if value is None else float(value) for value in row] for row in rows], dtype=np.float64)
    return table.reshape(-1, n_settings)


def _best_by_value(losses: FloatArray, candidate: Candidate, name: str) -> FloatArray:
    """For each value of one hyper-parameter the least loss over all others that could be fitted."""
    settings = [setting[name] for setting in candidate.settings]
    rows = [
        [loss for loss, used in zip(losses, settings, strict=True) if used == value] for value in candidate.grid[name]
    ]
    return np.asarray(np.fmin.reduce(np.array(rows, dtype=np.float64), axis=1))  # settings that failed are NaN
