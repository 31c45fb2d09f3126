"""The instance browser: a table for each instance whose predictions were kept; the script makes one of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skldl._typing import FloatArray
from skldl.experiments import StudyResults
from skldl.metrics import MEASURES
from skldl.plots._style import looks

MOST_INSTANCES = 20  # of each dataset: with all predictions kept, a page of every row would be too large
NOTHING = "–"


@dataclass(frozen=True)
class Instance:
    """One instance.

    Attributes
    ----------
    row : int
        Its row number in the dataset, or in the fixed test set.
    degrees : list of tuple
        For each label its name, the real degree, and the predicted ones.
    measures : list of tuple
        For each measure its title and the values of the candidates, the best marked.
    """

    row: int
    degrees: list[tuple[str, str, list[str]]]
    measures: list[tuple[str, list[tuple[str, bool]]]]


@dataclass(frozen=True)
class Browser:
    """The instances of one dataset.

    Attributes
    ----------
    dataset : str
        Its name.
    candidates : list of tuple
        Name, colour and marker of each.
    instances : list of Instance
        The instances.
    """

    dataset: str
    candidates: list[tuple[str, str, str]]
    instances: list[Instance]


def browsers(results: StudyResults) -> list[Browser]:
    """Collect the instances of every dataset whose predictions were kept.

    Parameters
    ----------
    results : StudyResults
        The results.

    Returns
    -------
    list of Browser
        One for each dataset.
    """
    given = [(name, look.colour, look.marker) for name, look in looks(results.candidates).items()]
    found = {name: results.predictions(name) for name in results.datasets}
    return [
        Browser(name, given, _instances(kept, results.measures, results.candidates))
        for name, kept in found.items()
        if kept is not None
    ]


def _instances(kept: dict[str, Any], measures: list[str], candidates: list[str]) -> list[Instance]:
    chosen = np.unique(np.linspace(0, len(kept["rows"]) - 1, min(len(kept["rows"]), MOST_INSTANCES)).astype(int))
    truth = kept["truth"][chosen]
    predicted = [kept["predicted"][name][chosen] for name in candidates]
    values = {measure: [_values(measure, truth, table) for table in predicted] for measure in measures}
    instances = []
    for place, row in enumerate(kept["rows"][chosen]):
        degrees = [
            (label, _number(truth[place, j]), [_number(table[place, j]) for table in predicted])
            for j, label in enumerate(kept["labels"])
        ]
        rows = [(MEASURES[m].title, _marked(m, [v[place] for v in values[m]])) for m in measures]
        instances.append(Instance(int(row), degrees, rows))
    return instances


def _values(measure: str, truth: FloatArray, predicted: FloatArray) -> FloatArray:
    values = np.full(len(truth), np.nan)
    known = np.isfinite(predicted).all(axis=1)
    if known.any():
        values[known] = MEASURES[measure].rowwise(truth[known], predicted[known])
    return values


def _marked(measure: str, values: list[float]) -> list[tuple[str, bool]]:
    finite = [value for value in values if np.isfinite(value)]
    best = (max if MEASURES[measure].higher_is_better else min)(finite, default=np.nan)
    return [(_number(value), bool(value == best)) for value in values]


def _number(value: float) -> str:
    return NOTHING if np.isnan(value) else f"{value:.4f}"
