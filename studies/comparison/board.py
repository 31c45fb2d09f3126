"""Losses of the paper's six algorithms by dataset, in families of datasets that share their features.

Ten of the paper's datasets have one and the same X. Ten rows of such a table are not ten independent findings, so that
counts over datasets are made for each family, and reported inside and outside the largest one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from comparison.published import load_published
from skldl.experiments.results import StudyResults
from skldl.experiments.statistics import family_name, rank_rows
from skldl.metrics import MEASURES, PAPER_MEASURES
from skldl.utils.spelling import plain

SIX = ("PT-Bayes", "PT-SVM", "AA-kNN", "AA-BP", "SA-IIS", "SA-BFGS")


@dataclass(frozen=True)
class Board:
    """Losses of the algorithms of the paper that took part, ours or the published ones.

    A family is a set of real datasets with the same features. ``losses`` has for each measure an array (n_datasets +
    n_artificial, n_algorithms), the real datasets first. ``printed_ranks`` has the ranks of a printed table: its means
    are rounded, so that not all ranks follow from them.
    """

    families: dict[str, list[str]]
    artificial: list[str]
    algorithms: list[str]
    losses: dict[str, np.ndarray]
    printed_ranks: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def datasets(self) -> list[str]:
        """The real datasets, family after family."""
        return [name for names in self.families.values() for name in names]

    @property
    def is_complete(self) -> bool:
        """Whether all six took part."""
        return len(self.algorithms) == len(SIX)

    def place(self, algorithm: str) -> int:
        """Column of an algorithm."""
        return self.algorithms.index(algorithm)

    def rows(self, family: str) -> slice:
        """The rows of a family."""
        start = self.datasets.index(self.families[family][0])
        return slice(start, start + len(self.families[family]))

    def cells(self, family: str) -> int:
        """Number of pairs of a dataset of the family and a measure."""
        return len(self.families[family]) * len(self.losses)

    def ranks(self, measure: str) -> np.ndarray:
        """Average rank of each algorithm over the real datasets, each counted once."""
        return np.asarray(self.dataset_ranks(measure).mean(axis=0))

    def dataset_ranks(self, measure: str) -> np.ndarray:
        """Ranks of the algorithms on each real dataset."""
        return self._rank_rows(measure)[: len(self.datasets)]

    def family_ranks(self, measure: str) -> np.ndarray:
        """Average rank of each algorithm with every family counted once: the mean of the families' means."""
        ranks = self._rank_rows(measure)
        return np.asarray(np.mean([ranks[self.rows(family)].mean(axis=0) for family in self.families], axis=0))

    def artificial_ranks(self) -> np.ndarray:
        """Average rank of each algorithm on the artificial dataset over all measures."""
        return np.asarray(np.mean([self._rank_rows(m)[-1] for m in self.losses], axis=0))

    def _rank_rows(self, measure: str) -> np.ndarray:
        if measure in self.printed_ranks:
            return self.printed_ranks[measure]
        return rank_rows(self.losses[measure], higher_is_better=False)

    def count(self, wins: Callable[[np.ndarray], np.ndarray]) -> dict[str, int]:
        """Count the wins in each family over its datasets and all measures; ``wins`` marks them in a table."""
        return {
            family: int(sum(np.sum(wins(table[self.rows(family)])) for table in self.losses.values()))
            for family in self.families
        }

    def describe(self, counts: dict[str, int], *, per_cell: int = 1) -> str:
        """Say how many cells were counted in the largest family and outside it; each counts ``per_cell`` at most.

        Such as ``58 of 60 in Yeast, 2 of 24 outside (Movie 2 of 6, SJAFFE 0 of 6, …)``. The families outside are named
        unless all or none of their cells count.
        """
        sizes = {family: per_cell * self.cells(family) for family in self.families}
        largest = max(self.families, key=lambda family: len(self.families[family]))
        each = [f"{family} {counts[family]} of {sizes[family]}" for family in self.families if family != largest]
        if len(self.families[largest]) == 1:
            return f"{sum(counts.values())} of {sum(sizes.values())}"
        inside = f"{counts[largest]} of {sizes[largest]} in {largest}"
        if not each:
            return inside
        won, cells = (sum(some.values()) - some[largest] for some in (counts, sizes))
        return f"{inside}, {won} of {cells} outside" + (f" ({', '.join(each)})" if 0 < won < cells else "")


def board_of(results: StudyResults) -> Board:
    """The losses of the paper's algorithms in the results of a study, on datasets where nothing failed."""
    known = {plain(name): name for name in SIX}
    columns = {known[plain(c)]: j for j, c in enumerate(results.candidates) if plain(c) in known}
    algorithms = [name for name in SIX if name in columns]
    measures = [measure for measure in results.measures if measure in PAPER_MEASURES]
    losses = {m: results.losses(m)[:, [columns[a] for a in algorithms]] for m in measures}
    whole = [i for i in range(len(results.datasets)) if not any(np.isnan(table[i]).any() for table in losses.values())]
    artificial = [results.datasets[i] for i in whole if plain(results.datasets[i]) == "artificial"]
    groups: dict[str, list[str]] = {}
    for name in (results.datasets[i] for i in whole):
        if name not in artificial:
            groups.setdefault(results.info[name]["family"], []).append(name)
    families = {family_name(names): names for names in groups.values()}
    order = [results.datasets.index(name) for names in families.values() for name in names]
    order += [results.datasets.index(name) for name in artificial]
    return Board(families, artificial, algorithms, {measure: table[order] for measure, table in losses.items()})


def published_board(board: Board) -> Board:
    """The paper's own tables, with those real datasets and measures of a board that the paper has."""
    cells = {(plain(c.dataset), c.algorithm, c.measure): c for c in load_published()}
    found = {
        family: [name for name in names if (plain(name), SIX[0], "clark") in cells]
        for family, names in board.families.items()
    }
    found = {family: names for family, names in found.items() if names}
    rows = [*(name for names in found.values() for name in names), "Artificial"]
    losses, ranks = {}, {}
    for measure in board.losses:
        table = [[cells[plain(row), algorithm, measure] for algorithm in SIX] for row in rows]
        means = np.array([[cell.mean for cell in line] for line in table])
        losses[measure] = 1 - means if MEASURES[measure].higher_is_better else means
        ranks[measure] = np.array([[cell.rank for cell in line] for line in table], dtype=np.float64)
    return Board(found, ["Artificial"], list(SIX), losses, ranks)
