"""The four principles of the choice, each as a definition that can be computed or looked up."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from skldl import simplex
from skldl.metrics._measure import Measure, compute_rows
from skldl.utils.typing import FloatArray

# Which general-purpose libraries offer a measure, read from their reference manuals. A proxy: the paper states
# "widely used in the related areas" and gives no figures.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "SciPy (spatial.distance, special.rel_entr, stats.chisquare)": (
        "euclidean", "city_block", "minkowski", "chebyshev", "sorensen", "canberra", "cosine", "squared_euclidean",
        "jensen_shannon", "kullback_leibler", "pearson_chi2",
    ),
    "scikit-learn (metrics.pairwise, metrics.DistanceMetric)": (
        "euclidean", "city_block", "minkowski", "chebyshev", "sorensen", "canberra", "cosine", "squared_euclidean",
        "squared_chi2", "inner_product",
    ),
    "R (stats::dist)": ("euclidean", "chebyshev", "city_block", "canberra", "minkowski"),
    "R (vegan::vegdist)": ("euclidean", "city_block", "canberra", "clark", "sorensen", "soergel", "gower"),
    "MATLAB (pdist)": ("euclidean", "squared_euclidean", "city_block", "minkowski", "chebyshev", "cosine"),
    "OpenCV (compareHist)": (
        "neyman_chi2", "intersection", "hellinger", "probabilistic_symmetric_chi2", "kullback_leibler",
    ),
    "PyTorch (torch.nn)": (
        "euclidean", "city_block", "minkowski", "squared_euclidean", "kullback_leibler", "cosine",
    ),
}  # fmt: skip
USAGE: dict[str, int] = {
    name: sum(name in offered for offered in LIBRARIES.values())
    for name in sorted({name for offered in LIBRARIES.values() for name in offered})
}


def instability(
    measures: Sequence[Measure], true: FloatArray, pred: FloatArray, generator: np.random.Generator
) -> dict[str, float]:
    """How many times its usual size a measure takes when degrees vanish or the prediction is perfect.

    The usual size is the median over rows without zeros (each mixed with one per cent of the uniform distribution). It
    is compared with the median over the same rows after (1) a predicted degree, (2) a true degree, (3) both degrees of
    one random label per row are set to zero, and (4) after the prediction is replaced by the truth.

    Parameters
    ----------
    measures : sequence of Measure
        The measures.
    true, pred : ndarray of shape (n_samples, n_labels)
        Distributions to start from.
    generator : numpy.random.Generator
        Draws the labels.

    Returns
    -------
    dict
        From name to the greatest of the four ratios: about 1 for a bounded measure, a few units for one that grows like
        a logarithm, many orders of magnitude for one that divides by the degree.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.metrics import chebyshev, pearson_chi2
    >>> from skldl.metrics.selection import instability
    >>> generator = np.random.default_rng(0)
    >>> D, P = generator.dirichlet(np.ones(4), size=(2, 200))
    >>> found = instability([chebyshev, pearson_chi2], D, P, generator)
    >>> found["chebyshev"] < 2, found["pearson_chi2"] > 1e6
    (True, True)
    """
    true, pred = simplex.smooth_zeros(true, 0.01), simplex.smooth_zeros(pred, 0.01)
    rows, labels = np.arange(len(true)), generator.integers(true.shape[1], size=len(true))
    without_true, without_pred = true.copy(), pred.copy()
    without_true[rows, labels] = without_pred[rows, labels] = 0.0
    without_true, without_pred = simplex.normalize(without_true), simplex.normalize(without_pred)
    situations = [(true, without_pred), (without_true, pred), (without_true, without_pred), (true, true)]

    usual = _medians(measures, true, pred)
    ratios = []
    for situation in situations:
        size = _medians(measures, *situation)
        ratios.append({name: size[name] / usual[name] if usual[name] > 0 else 0.0 for name in size})
    return {measure.name: float(max(ratio[measure.name] for ratio in ratios)) for measure in measures}


def _medians(measures: Sequence[Measure], true: FloatArray, pred: FloatArray) -> dict[str, float]:
    values = compute_rows(true, pred, measures)
    return {name: float(np.median(np.abs(rows))) for name, rows in values.items()}


def choose(
    candidates: Sequence[Measure], clusters: Mapping[str, int], usage: Mapping[str, int], n_measures: int
) -> tuple[str, ...]:
    """Choose at most one measure for each family and each cluster, so that their usage adds up to the most.

    Among sets of ``n_measures`` the best is found exactly, as an assignment of clusters to families; where no set of
    that size exists, the largest is taken. Equal usage is decided by the order of the candidates.
    """
    families = list(dict.fromkeys(measure.family for measure in candidates))
    numbers = sorted({clusters[measure.name] for measure in candidates})
    weights = np.full((len(families), len(numbers)), -np.inf)
    best: dict[tuple[int, int], str] = {}
    for place, measure in enumerate(candidates):
        # the bonus of an early place is too small for all of them together to outweigh one library
        weight = usage.get(measure.name, 0) + (len(candidates) - place) / (10.0 * len(candidates) * n_measures)
        cell = families.index(measure.family), numbers.index(clusters[measure.name])
        if weight > weights[cell]:
            weights[cell] = weight
            best[cell] = measure.name
    for size in range(min(n_measures, len(families), len(numbers)), 0, -1):
        found = [_assign(weights, subset) for subset in combinations(range(len(families)), size)]
        possible = [solution for solution in found if solution is not None]
        if possible:
            cells = max(possible, key=lambda solution: sum(weights[cell] for cell in solution))
            return tuple(best[cell] for cell in cells)
    return ()


def _assign(weights: FloatArray, families: tuple[int, ...]) -> list[tuple[int, int]] | None:
    """Give each of these families a separate cluster at the greatest total weight, or None where that fails."""
    rows = weights[list(families)]
    impossible = -1e6  # finite, so that the solver always answers
    places, columns = linear_sum_assignment(np.where(np.isfinite(rows), rows, impossible), maximize=True)
    if not np.isfinite(rows[places, columns]).all():
        return None
    return [(families[place], int(column)) for place, column in zip(places, columns, strict=True)]
