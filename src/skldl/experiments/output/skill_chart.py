"""The skill of the candidates as bars of text, for a terminal."""

import math

import numpy as np

from skldl.experiments.output.layout import show_share
from skldl.experiments.output.scores import skill_of
from skldl.experiments.output.uncertainty import noise_ceilings
from skldl.experiments.results import StudyResults
from skldl.metrics import MEASURES

MOST_DATASETS = 4  # with more datasets, the chart has the median over them
MOST_CANDIDATES = 10
BAR = 40
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def skill_chart(results: StudyResults) -> list[str]:
    """Draw the skill by the criterion as bars of text, the best candidate first; nothing if none has a skill.

    A vertical line is the noise ceiling, the skill of a model whose loss is the noise floor.
    """
    criterion = results.study["criterion"]
    if criterion not in results.measures:
        return []
    skills = skill_of(results, criterion)
    ceilings = noise_ceilings(results, criterion)
    groups = {
        dataset: (dict(zip(results.candidates, row, strict=True)), ceilings.get(dataset, math.nan))
        for dataset, row in zip(results.datasets, skills, strict=True)
    }
    if len(groups) > MOST_DATASETS:
        known = {name: column[~np.isnan(column)] for name, column in zip(results.candidates, skills.T, strict=True)}
        medians = {name: float(np.median(column)) if len(column) else math.nan for name, column in known.items()}
        groups = {f"Median over {len(groups)} datasets": (medians, math.nan)}
    lines = []
    for title, (row, ceiling) in groups.items():
        shown = [name for name in row if name != results.baseline and not np.isnan(row[name])]
        shown = sorted(shown, key=lambda name: -row[name])[:MOST_CANDIDATES]
        if shown:
            note = "" if math.isnan(ceiling) else f" (│ noise ceiling {show_share(ceiling)})"
            wide = max(len(name) for name in shown)
            lines += [f"  {title}{note}"]
            lines += [
                f"    {name.ljust(wide)} {show_share(row[name]).rjust(7)}  {bar(row[name], ceiling)}" for name in shown
            ]
    if not lines:
        return []
    head = f"Skill by {MEASURES[criterion].title}: share of the loss of {results.baseline} that a candidate removes"
    return [head, *lines]


def bar(share: float, ceiling: float = math.nan, width: int = BAR) -> str:
    """Draw a share of 1 as a bar of text, ``width`` characters for 1, with a vertical line at the ceiling.

    Examples
    --------
    >>> bar(0.55, 0.8, width=10)
    '█████▌  │'
    >>> bar(-0.2, width=10)
    ''
    """
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    text = "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
    if 0 <= ceiling <= 1:
        place = min(int(ceiling * width), width - 1)
        text = text.ljust(place)
        text = text[:place] + "│" + text[place + 1 :]
    return text.rstrip()
