"""The findings of a study in a few sentences, each of which the tables bear out."""

from collections.abc import Sequence

import numpy as np

from skldl.experiments import StudyResults
from skldl.experiments.output.published import count_text, match_published
from skldl.experiments.output.tables import average_ranks, losses_of, skill_of
from skldl.experiments.output.uncertainty import floor_columns
from skldl.experiments.statistics import Comparison
from skldl.metrics import MEASURES

MOST_WORDS = 6


def headline(results: StudyResults, tests: Comparison | None) -> list[str]:
    """Say who is best, whether that can be trusted, what beats the mean, and what went wrong.

    Parameters
    ----------
    results : StudyResults
        The results.
    tests : Comparison or None
        The tests of the criterion over datasets, if there are any.

    Returns
    -------
    list of str
        Sentences.
    """
    said = [*_winner(results), *_trust(tests), *_against_the_mean(results), *_against_the_floor(results)]
    said += _against_the_paper(results)
    if results.missing:
        said.append(f"Not found, and so not run: {enumerate_words(results.missing)}.")
    if results.failures:
        said.append(f"{_count(len(results.failures), 'task')} failed; the list stands below.")
    return said


def _winner(results: StudyResults) -> list[str]:
    criterion = results.study["criterion"]
    title = MEASURES[criterion].title
    ranks = average_ranks(results, criterion) if criterion in results.measures else np.full(1, np.nan)
    if np.isnan(ranks).any():
        return []
    order = np.argsort(ranks, kind="stable")
    n_datasets = len([d for d in results.averaged if not any(results.state(d, c) for c in results.candidates)])
    first = [results.candidates[j] for j in order if ranks[j] == ranks[order[0]]]
    if n_datasets == 1:
        return [f"By {title}, {enumerate_words(first)} {_verb(first)} best on {results.averaged[0]}."]
    text = f"By {title}, {enumerate_words(first)} {_verb(first)} best on average over {n_datasets} datasets"
    text += f" (average rank {ranks[order[0]]:.2f} of {len(ranks)})"
    if len(first) < len(order):
        second = order[len(first)]
        text += f", then {results.candidates[second]} ({ranks[second]:.2f})"
    return [text + "."]


def _trust(tests: Comparison | None) -> list[str]:
    if tests is None or not np.isfinite(tests.nemenyi_difference):
        return []
    order = np.argsort(tests.average_ranks, kind="stable")
    gap = tests.average_ranks - tests.average_ranks[order[0]]
    near = [tests.candidates[j] for j in order[1:] if gap[j] <= tests.nemenyi_difference]
    best = tests.candidates[order[0]]
    if not near:
        return [f"The Nemenyi test tells {best} from all others."]
    return [f"With {len(tests.datasets)} datasets, the Nemenyi test does not tell {best} from {enumerate_words(near)}."]


def _against_the_mean(results: StudyResults) -> list[str]:
    criterion = results.study["criterion"]
    if criterion not in results.measures:
        return []
    skills = skill_of(results, criterion)
    others = [j for j, name in enumerate(results.candidates) if name != results.baseline]
    if not others or not np.isfinite(skills[:, others]).any():
        return []
    wins = [(int(np.sum(skills[:, j] > 0)), results.candidates[j]) for j in others]
    most = max(count for count, _ in wins)
    names = [name for count, name in wins if count == most]
    n_known = int(np.isfinite(skills[:, others]).any(axis=1).sum())
    said = [
        f"By {MEASURES[criterion].title}, better than always predicting the mean: {enumerate_words(names)} "
        f"on {most} of {_count(n_known, 'dataset')}" + (", the most of all." if len(names) < len(others) else ".")
    ]
    best = np.nanmax(np.where(np.isfinite(skills[:, others]), skills[:, others], -np.inf), axis=1)
    lost = [name for name, value in zip(results.datasets, best, strict=True) if np.isfinite(value) and value <= 0]
    if lost:
        said.append(f"Nothing beats the mean on {enumerate_words(lost)}.")
    return said


def _against_the_floor(results: StudyResults) -> list[str]:
    criterion = results.study["criterion"]
    if criterion not in results.measures:
        return []
    known = floor_columns(results, criterion, losses_of(results, criterion))
    said = []
    for dataset, line in known.items():
        floor, share = line["noise floor"], line["explained by the best"]
        if np.isfinite(floor):
            outcome = f"the best candidate explains {share:.1%}" if np.isfinite(share) else "there is none"
            said.append(
                f"On {dataset}, made of votes, the noise floor of {MEASURES[criterion].title} is {floor:.4g} "
                f"± {line['noise floor error']:.2g}; of the loss that can be explained, {outcome}."
            )
    return said


def _against_the_paper(results: StudyResults) -> list[str]:
    matches = match_published(results)
    if not matches:
        return []
    agree = sum(match.agrees for match in matches)
    better = sum(match.better for match in matches if not match.agrees)
    text = f"{count_text(matches)} cells agree with the published numbers"
    if agree < len(matches):
        text += f"; of the others, ours is better in {better} and worse in {len(matches) - agree - better}"
    return [text + "."]


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


def _verb(words: Sequence[str]) -> str:
    return "is" if len(words) == 1 else "are"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
