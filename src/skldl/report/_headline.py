"""The findings of a study in a few sentences; the tables have the numbers behind them."""

from collections.abc import Sequence

import numpy as np

from skldl.experiments import StudyResults
from skldl.experiments.statistics import Comparison, compare
from skldl.experiments.tables import average_ranks, floor_columns, format_percent
from skldl.metrics import MEASURES, Skill
from skldl.report._figures import FEWEST_DATASETS

MOST_WORDS = 6
MOST_DATASETS = 3  # more datasets are summed up in one sentence


def headline(results: StudyResults, tests: Comparison | None, skills: list[list[float]]) -> list[str]:
    """Summarise the best candidate, the statistical tests of the criterion, the skill, the noise floor, and failures.

    ``tests`` are those of `trusted_tests`, or None if the study does not compute the criterion; ``skills`` is what
    `skldl.report._skill.skills_with_intervals` returns, or empty then.
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
    if len(best) > MOST_DATASETS:
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
    if n_datasets < FEWEST_DATASETS:
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
    if len(rated) > MOST_DATASETS:
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
    if len(words) > MOST_WORDS:
        words = [*words[: MOST_WORDS - 1], f"{len(words) - MOST_WORDS + 1} others"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
