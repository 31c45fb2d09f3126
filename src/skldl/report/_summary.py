"""The summary that opens a report: the findings in a few sentences, and the skill of the candidates with intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skldl.experiments import StudyResults
from skldl.experiments.statistics import Comparison, compare
from skldl.experiments.tables import average_ranks, floor_columns, format_percent, noise_ceilings, skill_table
from skldl.metrics import MEASURES, Skill
from skldl.metrics._skill import LossSums
from skldl.plots import SkillDisplay
from skldl.report._figures import MIN_DATASETS, ReportFigure, best_candidates, draw
from skldl.utils.tables import Cell, TextTable
from skldl.utils.typing import FloatArray

MAX_WORDS = 6
MAX_DATASETS = 3  # more datasets are summed up in one sentence
CONFIDENCE = 0.95
MAX_MARKS = 400  # with more marks the figure shows only the best candidates; the table has all of them
MIN_SHOWN = 3
MAX_ROWS = 30  # with more datasets, the page opens with one row for each candidate instead of each dataset
_CEILING = "the skill of a model whose loss is the noise floor"


def headline(results: StudyResults, tests: Comparison | None, skills: list[list[float]]) -> list[str]:
    """Summarise the best candidate, the statistical tests of the criterion, the skill, the noise floor, and failures.

    ``tests`` are those of `trusted_tests`, or None if the study does not compute the criterion; ``skills`` is what
    `skills_with_intervals` returns, or empty then.
    """
    sentences = [*_winner(results), *_skill_of_the_best(results, skills), *_against_the_mean(results, skills)]
    sentences += [*_against_the_floor(results), *_trust(results, tests)]
    if results.missing:
        sentences.append(f"Datasets that were not found and not run: {enumerate_words(results.missing)}.")
    if results.failures:
        sentences.append(f"{_count(len(results.failures), 'task')} failed; the section on the protocol lists them.")
    return sentences


def _winner(results: StudyResults) -> list[str]:
    criterion = results.study["criterion"]
    title = MEASURES[criterion].title
    ranks = average_ranks(results, criterion) if criterion in results.measures else np.full(1, np.nan)
    if np.isnan(ranks).any():
        return []
    order = np.argsort(ranks, kind="stable")
    n_datasets = len([d for d in results.averaged if not any(results.state(d, c) for c in results.candidates)])
    first = [results.candidates[j] for j in order if ranks[j] == ranks[order[0]]]
    text = f"By {title}, {enumerate_words(first)}"
    is_or_are, has_or_have = ("is", "has") if len(first) == 1 else ("are", "have")
    if n_datasets == 1:
        return [f"{text} {is_or_are} best on {results.averaged[0]}."]
    text += f" {has_or_have} the best average rank over {n_datasets} datasets"
    if len(first) < len(order):
        next_rank = ranks[order[len(first)]]
        text += f", followed by {enumerate_words([results.candidates[j] for j in order if ranks[j] == next_rank])}"
    return [text + "."]


def _skill_of_the_best(results: StudyResults, skills: list[list[float]]) -> list[str]:
    best: dict[str, tuple[str, float]] = {}
    for dataset, line in zip(results.datasets, skills, strict=False):
        known = {
            n: s for n, s in zip(results.candidates, line, strict=True) if n != results.baseline and not np.isnan(s)
        }
        if known:
            name = max(known, key=lambda candidate: known[candidate])
            best[dataset] = (name, known[name])
    if len(best) > MAX_DATASETS:
        values = [value for _, value in best.values()]
        return [
            f"The best candidate of each dataset has a skill (share of the loss of {results.baseline} that it removes) "
            f"of {format_percent(min(values))} to {format_percent(max(values))}, "
            f"{format_percent(float(np.median(values)))} in the median over {len(best)} datasets."
        ]
    sentences = []
    for dataset, (name, value) in best.items():
        interval = ""
        if isinstance(value, Skill):
            interval = f" ({value.confidence:.0%} interval {format_percent(value.low)} to {format_percent(value.high)})"
        if value >= 0:
            text = f"{name} removes {format_percent(value)} of the loss of {results.baseline}{interval}"
        else:
            text = f"the best skill is that of {name}, {format_percent(value)}{interval}"
        sentences.append(f"On {dataset}, {text}.")
    return sentences


def trusted_tests(results: StudyResults, measure: str) -> Comparison:
    """Test the candidates without the baseline, and datasets that share their features as one.

    A baseline that is last everywhere, and the same features many times, would make differences significant by
    themselves.
    """
    rivals = [name for name in results.candidates if name != results.baseline]
    shared = any(len(family) > 1 for family in results.families)
    return compare(results, measure, candidates=rivals if len(rivals) > 1 else None, by_family=shared)


def _trust(results: StudyResults, tests: Comparison | None) -> list[str]:
    if tests is None or not np.isfinite(tests.nemenyi_difference):
        return []
    n_datasets = len(tests.datasets)
    shared = len(results.families) < len(results.averaged)
    frame = f"datasets with the same features counted once, as {n_datasets}" if shared else f"{n_datasets} datasets"
    if n_datasets < MIN_DATASETS:
        counted = f" ({frame})" if shared else ""
        return [f"{n_datasets} datasets are too few for a test of average ranks{counted}."]
    if results.baseline not in tests.candidates:
        frame += f", and without {results.baseline}"
    ranks = tests.average_ranks - tests.average_ranks.min()
    best, near = [], []
    for j in np.argsort(ranks, kind="stable"):
        if np.isclose(ranks[j], 0.0):
            best.append(tests.candidates[j])
        elif ranks[j] <= tests.nemenyi_difference:
            near.append(tests.candidates[j])
    if near:
        verdict = f"does not distinguish {enumerate_words(best)} from {enumerate_words(near)}"
    elif len(best) == 1:
        verdict = f"distinguishes {best[0]} from all other candidates"
    else:
        verdict = f"cannot distinguish {enumerate_words(best)}, whose average ranks are equal"
    return [f"With {frame}, the Nemenyi test {verdict}."]


def _against_the_mean(results: StudyResults, known_skills: list[list[float]]) -> list[str]:
    if not known_skills:
        return []
    title, skills = MEASURES[results.study["criterion"]].title, np.array(known_skills, dtype=np.float64)
    others = [j for j, name in enumerate(results.candidates) if name != results.baseline]
    if not others or np.isnan(skills[:, others]).all():
        return []
    wins = [(int(np.sum(skills[:, j] > 0)), results.candidates[j]) for j in others]
    most = max(count for count, _ in wins)
    names = [name for count, name in wins if count == most]
    known = ~np.isnan(skills[:, others]).all(axis=1)
    n_known = int(known.sum())
    sentences = [
        f"By {title}, better than always predicting the mean: {enumerate_words(names)} "
        f"on {most} of {_count(n_known, 'dataset')}"
        + ("; every other candidate on fewer." if len(names) < len(others) else ".")
    ]
    best = np.nanmax(skills[known][:, others], axis=1)
    lost = [name for name, value in zip(np.array(results.datasets)[known], best, strict=True) if value <= 0]
    if lost:
        sentences.append(f"No candidate is better than the mean on {enumerate_words(lost)}.")
    return sentences


def _against_the_floor(results: StudyResults) -> list[str]:
    criterion = results.study["criterion"]
    if criterion not in results.measures:
        return []
    known = floor_columns(results, criterion)
    rated = {dataset: line for dataset, line in known.items() if np.isfinite(line["noise floor"])}
    if len(rated) > MAX_DATASETS:
        shares = [line["explained by the best"] for line in rated.values()]
        if not np.isfinite(shares).any():
            return [f"On {len(rated)} datasets made of votes, the loss of the mean is the noise floor."]
        return [
            f"On {len(rated)} datasets made of votes the noise floor is known. Of the loss above it, the best "
            f"candidate explains {format_percent(float(np.nanmedian(shares)))} in the median."
        ]
    sentences = []
    for dataset, line in rated.items():
        share = line["explained by the best"]
        outcome = f"the best candidate explains {format_percent(share)}" if np.isfinite(share) else "there is none"
        sentences.append(
            f"On {dataset}, made of votes, the noise floor of {MEASURES[criterion].title} is {line['noise floor']:.4g} "
            f"± {line['noise floor error']:.2g}; of the loss above it, {outcome}."
        )
    return sentences


def enumerate_words(words: Sequence[str]) -> str:
    """Join words as in a sentence; of very many, the first few.

    Examples
    --------
    >>> enumerate_words(["a", "b", "c"])
    'a, b and c'
    >>> enumerate_words(["a", "b", "c", "d", "e", "f", "g", "h"])
    'a, b, c, d, e and 3 others'
    """
    if len(words) > MAX_WORDS:
        words = [*words[: MAX_WORDS - 1], f"{len(words) - MAX_WORDS + 1} others"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


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
    """Skill of each candidate on each dataset: a `skldl.metrics.Skill` where an interval is known; NaN if unknown."""
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
    most = max(MIN_SHOWN, MAX_MARKS // max(1, len(results.datasets)))
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
        SkillDisplay(rows, ceilings),
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
        SkillDisplay(ordered, shown_ceilings),
    )


def _outside(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Explain the marks at the edge of the figure, if there are any."""
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
