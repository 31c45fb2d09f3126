"""Skill with confidence intervals: the figure and the table that open a report."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from skldl.experiments import StudyResults
from skldl.experiments.tables import format_percent, noise_ceilings, skill_table
from skldl.metrics import MEASURES, Skill
from skldl.metrics._skill import LossSums
from skldl.plots import SkillDisplay
from skldl.report._figures import ReportFigure, best_candidates, draw
from skldl.utils.tables import Cell, TextTable
from skldl.utils.typing import FloatArray

CONFIDENCE = 0.95
MOST_MARKS = 400  # with more marks the figure shows only the best candidates; the table has all of them
FEWEST_SHOWN = 3
MOST_ROWS = 30  # with more datasets, the page opens with one row for each candidate instead of each dataset
_CEILING = "the skill of a model whose loss is the noise floor"


def skill_interval(losses: FloatArray, reference: FloatArray, n_folds: int) -> tuple[float, float]:
    """Confidence interval of the skill from the mean losses of J tests; NaN for fewer than two folds, or without loss.

    It is that of `skldl.metrics.skill_of_losses`, with the variance times 1 + J / (k − 1), where k is the number of
    folds of one repeat: the correction of Nadeau and Bengio (2003) for training sets that overlap.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = skill_interval(np.array([0.4, 0.5, 0.6]), np.array([1.0, 1.1, 1.2]), n_folds=3)
    >>> round(low, 3), round(high, 3)
    (0.302, 0.704)
    """
    n_tests = len(losses)
    if n_folds < 2 or n_tests < 2 or losses.sum() <= 0 or reference.sum() <= 0:
        return np.nan, np.nan
    found = LossSums.of(losses, reference).skill(CONFIDENCE, inflation=1 + n_tests / (n_folds - 1))
    return found.low, found.high


def skills_with_intervals(results: StudyResults, measure: str) -> list[list[float]]:
    """Skill of each candidate on each dataset: a `skldl.metrics.Skill` if an interval is known, NaN if none is."""
    known, repeats = MEASURES[measure], int(results.study["repeats"])
    table: list[list[float]] = []
    for dataset, row in zip(results.datasets, results.skills(measure), strict=True):
        n_labels, n_folds = results.info[dataset]["n_labels"], results.n_expected(dataset) // repeats
        reference = known.loss(results.values(measure, dataset, results.baseline), n_labels)
        line: list[float] = []
        for candidate, value in zip(results.candidates, row, strict=True):
            low = high = np.nan
            if np.isfinite(value) and candidate != results.baseline:
                losses = known.loss(results.values(measure, dataset, candidate), n_labels)
                low, high = skill_interval(losses, reference, n_folds)
            line.append(Skill(float(value), low, high, CONFIDENCE) if np.isfinite(low) else float(value))
        table.append(line)
    return table


def skill_figure(results: StudyResults, skills: list[list[float]]) -> Iterator[ReportFigure]:
    """Draw the skill of the candidates, which `skills_with_intervals` returns, with intervals and noise ceilings.

    There is no figure if no candidate other than the baseline has a skill.
    """
    criterion = results.study["criterion"]
    most = max(FEWEST_SHOWN, MOST_MARKS // max(1, len(results.datasets)))
    shown = [name for name in best_candidates(results, most + 1) if name != results.baseline]
    rows: dict[str, dict[str, Any]] = {}
    for dataset, line in zip(results.datasets, skills, strict=True):
        known = dict(zip(results.candidates, line, strict=True))
        row = {name: known[name] for name in shown if not np.isnan(known[name])}
        if row:
            rows[dataset] = row
    if not rows:
        return
    ceilings = {name: value for name, value in noise_ceilings(results, criterion).items() if name in rows}
    n_others = len(results.candidates) - 1
    notes = [_meaning(results)]
    if any(isinstance(value, Skill) for row in rows.values() for value in row.values()):
        notes.append(f"A line is the {CONFIDENCE:.0%} confidence interval over the folds.")
    notes += _outside(rows)
    if ceilings:
        notes.append(f"A black bar is the noise ceiling: {_CEILING}.")
    if len(shown) < n_others:
        notes.append(f"Shown are the {len(shown)} of {n_others} candidates with the best average rank.")
    yield draw(
        "skill",
        f"Skill by {MEASURES[criterion].title}",
        " ".join(notes),
        SkillDisplay(rows, ceilings).plot,
        7.2,
        min(1.3 + len(rows) * max(0.32, 0.075 * len(shown)), 16.0),
    )


def skill_summary_figure(results: StudyResults, skills: list[list[float]]) -> Iterator[ReportFigure]:
    """Draw the distribution of the skill over many datasets, one row for each candidate; see `skill_figure`."""
    rows: dict[str, dict[str, Any]] = {}
    for name, column in zip(results.candidates, np.array(skills, dtype=np.float64).T, strict=True):
        known = column[~np.isnan(column)]
        if len(known) and name != results.baseline:
            with np.errstate(invalid="ignore"):  # between −∞ and another skill
                quartiles = np.quantile(known, [0.25, 0.5, 0.75])
            low, middle, high = (float(value) for value in np.where(np.isnan(quartiles), -np.inf, quartiles))
            rows[name] = {"median": Skill(middle, low, high, 0.5)}
    if not rows:
        return
    ordered = dict(sorted(rows.items(), key=lambda row: -row[1]["median"]))
    notes = [_meaning(results), "A mark is the median over the datasets, a line the middle half of them."]
    notes += _outside(ordered)
    shown_ceilings: dict[str, float] = {}
    if ceilings := noise_ceilings(results, results.study["criterion"]):
        notes.append(
            f"The black bar is the median noise ceiling of the datasets made of votes ({len(ceilings)}): {_CEILING}."
        )
        shown_ceilings = dict.fromkeys(ordered, float(np.median(list(ceilings.values()))))
    yield draw(
        "skill-summary",
        f"Skill by {MEASURES[results.study['criterion']].title} over {len(skills)} datasets",
        " ".join(notes),
        SkillDisplay(ordered, shown_ceilings).plot,
        7.2,
        min(1.3 + 0.24 * len(ordered), 16.0),
    )


def _outside(rows: dict[str, dict[str, Any]]) -> list[str]:
    """What marks at the edge of the figure mean, if there are any."""
    if any(value < SkillDisplay.lowest for row in rows.values() for value in row.values()):
        return ["An arrow head at the left edge is a value outside the figure."]
    return []


def _meaning(results: StudyResults) -> str:
    return (
        f"Share of the loss of {results.baseline} that a candidate removes: 1 is perfect, 0 is no better than the mean "
        "of the training distributions."
    )


def skill_table_with_intervals(results: StudyResults, skills: list[list[float]]) -> TextTable:
    """Make the table of skills, with the interval beside each skill."""
    table = skill_table(results, results.study["criterion"])
    rows = []
    for (name, cells), line in zip(table.rows, skills, strict=True):
        texts = [Cell(f"{cell.text}{interval_text(s)}", cell.best) for cell, s in zip(cells, line, strict=False)]
        rows.append((name, [*texts, *cells[len(line) :]]))
    notes = list(table.notes)
    if any(isinstance(value, Skill) for line in skills for value in line):
        notes.append(
            f"In brackets the {CONFIDENCE:.0%} confidence interval over the folds, corrected for training sets that "
            "overlap (Nadeau and Bengio, 2003). A single test set gives no interval."
        )
    return replace(table, rows=rows, notes=notes)


def interval_text(skill: float) -> str:
    """Write the interval of a skill in brackets, or nothing if there is none.

    Examples
    --------
    >>> from skldl.metrics import Skill
    >>> interval_text(Skill(0.3, 0.25, 0.351, 0.95)), interval_text(0.3)
    (' [25.0%, 35.1%]', '')
    """
    return f" [{format_percent(skill.low)}, {format_percent(skill.high)}]" if isinstance(skill, Skill) else ""
