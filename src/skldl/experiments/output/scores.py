"""The numbers behind the tables and tests of a study: losses, skills and ranks."""

import numpy as np
from scipy.stats import rankdata, studentized_range

from skldl.experiments.output.layout import same
from skldl.experiments.results import StudyResults
from skldl.metrics import MEASURES, skill_ratio
from skldl.utils.typing import FloatArray


def losses_of(results: StudyResults, measure: str) -> FloatArray:
    """Mean losses, for each dataset and candidate, see `skldl.metrics.Measure.loss`."""
    n_labels = [[results.info[dataset]["n_labels"]] for dataset in results.datasets]
    return MEASURES[measure].loss(results.means(measure), n_labels)


def skill_of(results: StudyResults, measure: str) -> FloatArray:
    """Share of the loss of the mean baseline that each candidate removes on each dataset.

    1 is perfect, below 0 is worse than the mean; NaN where there is no result, and by a similarity without upper bound.
    """
    losses = losses_of(results, measure)
    if not MEASURES[measure].has_least_loss:
        return np.full_like(losses, np.nan)
    return skill_ratio(losses, losses[:, [results.candidates.index(results.baseline)]])


def rank_rows(means: FloatArray, *, higher_is_better: bool) -> FloatArray:
    """Rank the columns of each row, 1 for the best; ties get the average rank, NaN no rank.

    Examples
    --------
    >>> import numpy as np
    >>> rank_rows(np.array([[0.2, 0.1, 0.2]]), higher_is_better=False)
    array([[2.5, 1. , 2.5]])
    """
    ranks = np.full(means.shape, np.nan)
    for row, values in enumerate(means):
        places = [int(place) for place in np.argsort(values) if not np.isnan(values[place])]
        levels = np.empty(len(places))  # equal up to rounding errors means equal
        level = 0
        for i, place in enumerate(places):
            level += bool(i and not same(values[places[i - 1]], values[place]))
            levels[i] = level
        ranks[row, places] = rankdata(-levels if higher_is_better else levels)
    return ranks


def nemenyi_difference(n_candidates: int, n_datasets: int, alpha: float) -> float:
    """The critical difference of average ranks between any two candidates, by the test of Nemenyi at a level."""
    spread = np.sqrt(n_candidates * (n_candidates + 1) / (6 * n_datasets))
    return float(studentized_range.ppf(1 - alpha, n_candidates, np.inf) / np.sqrt(2) * spread)


def family_name(datasets: list[str]) -> str:
    """Name a family by what the names of its datasets begin with.

    Examples
    --------
    >>> family_name(["Yeast_alpha", "Yeast_cdc"]), family_name(["Movie"]), family_name(["a", "b"])
    ('Yeast', 'Movie', 'a, b')
    """
    if len(datasets) == 1:
        return datasets[0]
    first, last = min(datasets), max(datasets)
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:shared].rstrip("_- ") or ", ".join(datasets)
