"""The result tables of Geng (2016), and ours side by side with them.

``data/published.csv`` holds every cell of these tables as printed.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from skldl.data._spelling import plain
from skldl.experiments.output.layout import Cell, ResultTable
from skldl.experiments.results import StudyResults
from skldl.metrics import MEASURES

TOLERANCE = 0.02
_SHARE = f"{100 * TOLERANCE:g} %"
RULE = (
    f"A cell agrees if the means differ by at most {_SHARE} of the printed loss, or by one unit of the last printed "
    f"digit. The loss is a distance itself, and 1 − s for a similarity s. By the loose rule, {_SHARE} of any printed "
    "number, nearly every high similarity agrees; both counts are shown. Cells are not independent: all six "
    "measures judge the same predictions, and with two or three labels Chebyshev is 1 − intersection exactly."
)


@dataclass(frozen=True)
class PublishedCell:
    """One cell of a published table as printed; on the artificial dataset there is no deviation."""

    dataset: str
    algorithm: str
    measure: str
    mean: float
    std: float | None
    rank: int
    decimals: int
    std_decimals: int = 0


@cache
def load_published() -> tuple[PublishedCell, ...]:
    """Load all cells of the published tables.

    Examples
    --------
    >>> from skldl.experiments.output.published import load_published
    >>> len(load_published()), load_published()[0].mean
    (576, 0.174)
    """
    text = (resources.files("skldl.experiments.output") / "data" / "published.csv").read_text(encoding="utf-8")
    return tuple(
        PublishedCell(
            row["dataset"],
            row["algorithm"],
            row["measure"],
            float(row["mean"]),
            float(row["std"]) if row["std"] else None,
            int(row["rank"]),
            len(row["mean"].partition(".")[2]),
            len(row["std"].partition(".")[2]),
        )
        for row in csv.DictReader(text.splitlines())
    )


@dataclass(frozen=True)
class Match:
    """A published cell and our mean and deviation, with our names for its row and column."""

    published: PublishedCell
    dataset: str
    candidate: str
    ours: float
    deviation: float

    @property
    def difference(self) -> float:
        """Ours minus the published mean."""
        return self.ours - self.published.mean

    @property
    def agrees(self) -> bool:
        """Whether both means are equal within 2 % of the printed loss or one unit of the last printed digit.

        The loss is a distance itself, and 1 − s for a similarity s: of a cosine of 0.99, 2 % are 0.0002.
        """
        loss = self.published.mean
        if MEASURES[self.published.measure].higher_is_better:
            loss = 1.0 - loss
        return self._within(TOLERANCE * loss)

    @property
    def agrees_loosely(self) -> bool:
        """Whether both means are equal within 2 % of the printed number or one unit of its last digit."""
        return self._within(TOLERANCE * self.published.mean)

    def _within(self, tolerance: float) -> bool:
        return abs(self.difference) <= max(tolerance, 10.0**-self.published.decimals) * (1 + 1e-9)

    @property
    def rounds_to_it(self) -> bool:
        """Whether our mean, rounded to as many digits, is the published one."""
        places = self.published.decimals
        return f"{self.ours:.{places}f}" == f"{self.published.mean:.{places}f}"

    @property
    def deviation_tells(self) -> bool:
        """Whether the published deviation exceeds one unit of its last digit; a smaller one agrees with 0, too."""
        return self.published.std is not None and self.published.std > 10.0**-self.published.std_decimals * (1 + 1e-9)

    @property
    def deviation_agrees(self) -> bool:
        """Whether both deviations are equal within 10 % or one unit of the last printed digit."""
        if self.published.std is None:
            return bool(np.isnan(self.deviation))
        difference = abs(self.deviation - self.published.std)
        return difference <= max(0.1 * self.published.std, 10.0**-self.published.std_decimals) * (1 + 1e-9)

    @property
    def better(self) -> bool:
        """Whether ours is better than the published mean."""
        return (self.difference > 0) == MEASURES[self.published.measure].higher_is_better


def algorithm_of(candidate: str) -> str:
    """The algorithm that a candidate's name begins with, in plain letters.

    Examples
    --------
    >>> algorithm_of("AA-kNN (k=4)")
    'aaknn'
    """
    return plain(candidate.partition("(")[0])


def match_published(results: StudyResults, *, column: str | None = None) -> list[Match]:
    """Find the published cells that belong to the datasets, candidates and measures of a study.

    A candidate is compared with the algorithm that its name begins with, such as ``AA-kNN (k=4)`` with AA-kNN; or all
    are with one ``column`` of the paper, such as the mean of the training distributions with SA-BFGS.
    """
    cells = {(plain(c.dataset), plain(c.algorithm), c.measure): c for c in load_published()}
    matches = []
    for measure in results.measures:
        means, deviations = results.means(measure), results.deviations(measure)
        for i, dataset in enumerate(results.datasets):
            for j, candidate in enumerate(results.candidates):
                cell = cells.get((plain(dataset), algorithm_of(column or candidate), measure))
                if cell is not None and not np.isnan(means[i, j]):
                    matches.append(Match(cell, dataset, candidate, float(means[i, j]), float(deviations[i, j])))
    return matches


def count_text(matches: Sequence[Match]) -> str:
    """Say how many cells agree, such as ``55 of 60``, or ``55 of 60 (loosely 60)`` where the loose rule counts more."""
    strict, loose = sum(m.agrees for m in matches), sum(m.agrees_loosely for m in matches)
    return f"{strict} of {len(matches)}" + (f" (loosely {loose})" if loose != strict else "")


def published_table(results: StudyResults, measure: str) -> ResultTable:
    """Make the side-by-side table of one measure: ours / published; agreement in bold."""
    matches = {(m.dataset, m.candidate): m for m in match_published(results) if m.published.measure == measure}
    datasets = [name for name in results.datasets if any(key[0] == name for key in matches)]
    candidates = [name for name in results.candidates if any(key[1] == name for key in matches)]

    def show(dataset: str, candidate: str) -> Cell:
        match = matches.get((dataset, candidate))
        if match is None:
            return Cell(results.state(dataset, candidate))
        places = match.published.decimals
        return Cell(f"{match.ours:.{places}f} / {match.published.mean:.{places}f}", match.agrees)

    own = {name: [match for key, match in matches.items() if key[1] == name] for name in candidates}
    counts = [Cell(count_text(found)) for found in own.values()]
    known = MEASURES[measure]
    return ResultTable(
        title=f"{known.title} {known.arrow}: ours / published",
        head=["Dataset", *candidates],
        rows=[(dataset, [show(dataset, candidate) for candidate in candidates]) for dataset in datasets],
        foot=[("Agree", counts)],
        notes=[f"Bold: equal within {_SHARE} of the printed loss or one unit of the last printed digit."],
    )


def published_frame(results: StudyResults) -> list[dict[str, Any]]:
    """All cells that both have, one line each, in full."""
    return [
        {
            "measure": match.published.measure,
            "dataset": match.dataset,
            "candidate": match.candidate,
            "ours": match.ours,
            "published": match.published.mean,
            "difference": match.difference,
            "agrees": int(match.agrees),
            "agrees_loosely": int(match.agrees_loosely),
        }
        for match in match_published(results)
    ]
