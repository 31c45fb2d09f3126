"""The instance browser: one table per instance with predictions; the script shows one of them at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skldl.experiments import StudyResults
from skldl.experiments.tables import NOTHING
from skldl.metrics import MEASURES
from skldl.plots._display import evenly_spaced
from skldl.plots._style import looks
from skldl.utils.typing import FloatArray

MAX_INSTANCES = 20  # of each dataset: with all predictions kept, a page of every row would be too large
MAX_NUMBERS = 60_000  # of the page: large studies show fewer instances of each dataset, but at least one


@dataclass(frozen=True)
class Instance:
    """One instance: ``row`` counts in the dataset or the fixed test set.

    ``degrees`` has for each label its name, the real degree and the predicted ones; ``measures`` for each measure its
    title and the values of the candidates, the best marked.
    """

    row: int
    degrees: list[tuple[str, str, list[str]]]
    measures: list[tuple[str, list[tuple[str, bool]]]]


@dataclass(frozen=True)
class Browser:
    """The instances of one dataset; ``candidates`` has name, colour and marker of each."""

    dataset: str
    candidates: list[tuple[str, str, str]]
    instances: list[Instance]


def browsers(results: StudyResults) -> list[Browser]:
    """Collect the instances of every dataset whose predictions were kept."""
    given = [(name, look.colour, look.marker) for name, look in looks(results.candidates).items()]
    found = {name: results.predictions(name) for name in results.datasets}
    known = {name: kept for name, kept in found.items() if kept is not None}
    n_lines = sum(len(kept["labels"]) + len(results.measures) for kept in known.values())
    most = min(MAX_INSTANCES, MAX_NUMBERS // max(1, n_lines * (len(given) + 1))) or 1
    return [
        Browser(name, given, _instances(kept, results.measures, results.candidates, most))
        for name, kept in known.items()
    ]


def _instances(kept: dict[str, Any], measures: list[str], candidates: list[str], most: int) -> list[Instance]:
    chosen = evenly_spaced(len(kept["rows"]), most)
    truth = kept["truth"][chosen]
    predicted = [kept["predicted"][name][chosen] for name in candidates]
    values = {measure: _values(measure, truth, predicted) for measure in measures}
    instances = []
    for place, row in enumerate(kept["rows"][chosen]):
        degrees = [
            (label, _number(truth[place, j]), [_number(table[place, j]) for table in predicted])
            for j, label in enumerate(kept["labels"])
        ]
        rows = [(MEASURES[m].title, _marked(m, [v[place] for v in values[m]])) for m in measures]
        instances.append(Instance(int(row), degrees, rows))
    return instances


def _values(measure: str, truth: FloatArray, predicted: list[FloatArray]) -> FloatArray:
    """Values of a measure, candidates × rows; NaN without a prediction. One call for all candidates saves time."""
    true, guessed = np.tile(truth, (len(predicted), 1)), np.concatenate(predicted)
    values = np.full(len(true), np.nan)
    known = np.isfinite(guessed).all(axis=1)
    if known.any():
        values[known] = MEASURES[measure].rowwise(true[known], guessed[known])
    return values.reshape(len(predicted), len(truth))


def _marked(measure: str, values: list[float]) -> list[tuple[str, bool]]:
    finite = [value for value in values if np.isfinite(value)]
    best = (max if MEASURES[measure].higher_is_better else min)(finite, default=np.nan)
    return [(_number(value), bool(value == best)) for value in values]


def _number(value: float) -> str:
    return NOTHING if np.isnan(value) else f"{value:.4f}"
