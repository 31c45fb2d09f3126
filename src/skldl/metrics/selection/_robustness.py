"""`robustness`: the choice again and again, over seeds, numbers of labels and concentrations."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from skldl.metrics import PAPER_MEASURES
from skldl.metrics.selection._select import select_measures


@dataclass(frozen=True)
class Run:
    """One choice: its settings, the measures taken, and how it agrees with the paper's six."""

    n_labels: int
    concentration: float
    seed: int
    chosen: tuple[str, ...]
    paper_violations: dict[str, str]


@dataclass(frozen=True)
class Robustness:
    """The result of `robustness`.

    Attributes
    ----------
    runs : tuple of Run
        Each setting with the chosen measures and the violations of the paper's six.

    Examples
    --------
    >>> from skldl.metrics.selection import robustness
    >>> outcome = robustness(n_labels=[5], concentrations=[1.0], seeds=[0, 1], n_experiments=5, n_pairs=100)
    >>> outcome.frequency["cosine"]
    1.0
    """

    runs: tuple[Run, ...]

    @property
    def frequency(self) -> dict[str, float]:
        """Share of the settings in which each measure was chosen, the most frequent first."""
        counts = Counter(name for run in self.runs for name in run.chosen)
        return {name: count / len(self.runs) for name, count in counts.most_common()}

    @property
    def usual(self) -> tuple[tuple[str, ...], float]:
        """The set that was chosen most often, sorted by name, and the share of settings in which it was."""
        counts = Counter(tuple(sorted(run.chosen)) for run in self.runs)
        names, count = counts.most_common(1)[0]
        return names, count / len(self.runs)

    @property
    def paper_admissible(self) -> dict[str, float]:
        """Share of the settings in which the paper's six keep each of the first three principles, and all of them."""
        kept = {
            principle: sum(not run.paper_violations[principle] for run in self.runs) / len(self.runs)
            for principle in ("clusters", "families", "stability")
        }
        return {**kept, "all": sum(not any(run.paper_violations.values()) for run in self.runs) / len(self.runs)}

    @property
    def agreement(self) -> float:
        """Mean number of the paper's six among the chosen."""
        return sum(len(set(run.chosen) & set(PAPER_MEASURES)) for run in self.runs) / len(self.runs)


def robustness(
    *,
    n_labels: Iterable[int] = (4, 10, 30),
    concentrations: Iterable[float] = (0.5, 1.0, 5.0),
    seeds: Iterable[int] = (0, 1, 2),
    **settings: Any,
) -> Robustness:
    """Repeat the choice of measures over seeds, numbers of labels and concentrations of random distributions.

    Parameters
    ----------
    n_labels : iterable of int, default=(4, 10, 30)
        Numbers of labels.
    concentrations : iterable of float, default=(0.5, 1.0, 5.0)
        Parameters of the Dirichlet law.
    seeds : iterable of int, default=(0, 1, 2)
        Seeds.
    **settings
        Further arguments of `select_measures`.

    Returns
    -------
    Robustness
        All runs, how often each measure was chosen, and how often the paper's six were admissible.

    Examples
    --------
    >>> from skldl.metrics.selection import robustness
    >>> outcome = robustness(n_labels=[5], concentrations=[1.0], seeds=[0, 1], n_experiments=5, n_pairs=100)
    >>> len(outcome.runs), outcome.paper_admissible["stability"]
    (2, 1.0)
    """
    runs = []
    for labels, concentration, seed in product(n_labels, concentrations, seeds):
        selection = select_measures(n_labels=labels, concentration=concentration, random_state=seed, **settings)
        runs.append(Run(labels, concentration, seed, selection.chosen, selection.judge()))
    if not runs:
        raise ValueError("Nothing to repeat: n_labels, concentrations and seeds must each hold at least one value.")
    return Robustness(tuple(runs))
