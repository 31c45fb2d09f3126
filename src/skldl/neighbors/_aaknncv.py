"""`AAKNNCV`: nearest neighbours with scaling, metric, number, weights and mean share chosen by leave-one-out.

With d_1 ≤ d_2 ≤ … the distances from x to the training rows, v_i the weights of the rows, and s the mean share,

    p(x) = (1 − s) Σ_{i ≤ k} v_i g(d_i) d(i) / Σ_{i ≤ k} v_i g(d_i) + s·mean,

where g is 1 ("uniform") or 1 − (d_i / d_{k+1})² ("epanechnikov"). Leaving a row out means removing it, or its group,
from its own list of neighbours, so one list serves every k, both kinds of weights and every mean share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.utils import check_random_state

from skldl.base import GroupedLDL
from skldl.exceptions import Parameter, ParameterError
from skldl.neighbors._search import StableSearch
from skldl.utils.arrays import row_blocks
from skldl.utils.mean_mixture import (
    MEAN_FRACTIONS,
    SCREENING_FRACTIONS,
    best_fraction,
    first_best,
    mean_distribution,
    means_without,
    mix,
    mixture_divergences,
)
from skldl.utils.parameters import COUNT, FRACTION, NONE, RANDOM_STATE, one_of
from skldl.utils.scaling import SCALINGS, Scaling, is_non_negative
from skldl.utils.typing import FloatArray, IntArray

METRICS = ("euclidean", "manhattan")
WEIGHTS = ("epanechnikov", "uniform")
COUNTS = (*range(1, 11), 12, 14, 17, 20, 24, 28, 34, 40, 48, 57, 68, 80, 96, 115, 138, 165, 200)
"""Numbers of neighbours that are tried first; then all numbers between those beside the best one. Chosen by hand: up to
10 all, then about 20 % more each."""
FIRST_ROUND_ROWS = 500
"""Rows on which all pairs of scaling and metric are compared first; the best two are then compared on more."""
BLOCK_CELLS = 2**22
"""Temporary arrays hold at most about this many numbers (32 MiB)."""


@dataclass(frozen=True)
class Setting:
    """Number and weights of the neighbours, the mean share, and the divergence that they reach."""

    n_neighbors: int
    weights: str
    share: float
    divergence: float


class AAKNNCV(GroupedLDL):
    """Average the distributions of the nearest neighbours, with every setting chosen by leave-one-out.

    The prediction is the weighted mean of the distributions of the k nearest training rows [1]_, mixed with a small
    fraction of the mean distribution of all training rows, so that every degree is positive. Settings that are not
    fixed are chosen to minimise the mean Kullback-Leibler divergence when each row is predicted from the others.

    Parameters
    ----------
    n_neighbors : int, default=None
        Number of neighbours k. None chooses from 1 to 200.
    weights : {"auto", "epanechnikov", "uniform"}, default="auto"
        Weights of the neighbours: 1 − (d/d_{k+1})², where d_{k+1} is the distance of the next row, or equal ones. Where
        all k + 1 distances are equal, or there is no next row, the weights are equal.
    metric : {"auto", "euclidean", "manhattan"}, default="auto"
        Distance between rows.
    scaling : {"auto", "raw", "standard", "sqrt"}, default="auto"
        Scaling of the features: none, division by the standard deviation (of a two-valued feature by the difference of
        its values), or square roots, for non-negative features.
    mean_share : float, default=None
        Fraction of the mean distribution in predictions, from 0 to 1; with 0, predicted degrees can be zero. None
        chooses among ten values from 0.001 to 0.5.
    n_queries : int, default=2500
        Maximum number of rows, drawn at random, that are predicted from all others in order to choose k and weights.
        Scalings and metrics are compared on 500 of them, and the best two on all.
    max_loo_rows : int, default=20000
        Maximum number of rows in ``loo_predictions_``; of more rows, so many are drawn.
    random_state : int, RandomState instance or None, default=0
        Seed for drawing these rows. With the default, every fit returns the same model.

    Attributes
    ----------
    n_neighbors_, weights_, metric_, scaling_, mean_share_ : int, str, str, str, float
        The settings used.
    loo_predictions_ : ndarray of shape (n_loo, n_labels)
        Predictions of training rows from the others (with ``groups``, from other groups) at the settings used.
    loo_rows_ : ndarray of shape (n_loo,)
        The rows that they belong to, among the training rows of positive weight: all, unless there are more than
        ``max_loo_rows``.
    loo_divergence_ : float
        Their mean Kullback-Leibler divergence: slightly optimistic, because the settings were chosen by it.
    candidates_ : list of dict
        All comparisons of scaling and metric, with the best number of neighbours, weights and mean share of each.
    distributions_ : ndarray of shape (n_samples, n_labels)
        Distributions of the training rows.
    distribution_ : ndarray of shape (n_labels,)
        Their mean.

    Notes
    -----
    Equal distances are ordered by the index of the training row, as in `skldl.AAKNN`. ``sample_weight`` multiplies the
    weights of the neighbours and weights the divergence. A row of weight two is not the same as the row twice: a copy
    would take a second of the k places. With ``groups`` given to ``fit``, a row is predicted from the rows of other
    groups when the settings are chosen.

    Distances are computed in blocks of rows: memory grows with n_samples × k, not with n_samples².

    See Also
    --------
    skldl.AAKNN : Fixed settings.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.neighbors import AAKNNCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(80, 2))
    >>> D = np.exp(np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2 / 2, np.zeros(80)]))
    >>> D /= D.sum(axis=1, keepdims=True)
    >>> model = AAKNNCV().fit(X, D)
    >>> model.n_neighbors_ < 10, model.loo_predictions_.shape
    (True, (80, 3))
    """

    _keeps_rows = True
    _model_parts = (StableSearch,)
    _constraints: ClassVar = {
        "n_neighbors": NONE | COUNT,
        "weights": one_of("auto", *WEIGHTS),
        "metric": one_of("auto", *METRICS),
        "scaling": one_of("auto", *SCALINGS),
        "mean_share": NONE | FRACTION,
        "n_queries": COUNT,
        "max_loo_rows": COUNT,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        weights: str = "auto",
        metric: str = "auto",
        scaling: str = "auto",
        mean_share: float | None = None,
        n_queries: int = 2500,
        max_loo_rows: int = 20_000,
        random_state: Any = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.scaling = scaling
        self.mean_share = mean_share
        self.n_queries = n_queries
        self.max_loo_rows = max_loo_rows
        self.random_state = random_state

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        weight, codes = sample_weight, groups
        max_count = len(D) - int(1 if codes is None else np.bincount(codes).max())  # rows that remain in the worst case
        counts = self._counts(X, max_count)
        shares = MEAN_FRACTIONS if self.mean_share is None else (float(self.mean_share),)
        order = check_random_state(self.random_state).permutation(len(D))
        means = means_without(D, weight, codes)
        pairs = self._candidates(X)
        scalings = {name: Scaling.fit(name, X, weight) for name, _ in pairs}
        self.candidates_: list[dict[str, Any]] = []

        def compare(pair: tuple[str, str], rows: IntArray, few: bool) -> Setting:
            lists = _Lists(scalings[pair[0]].apply(X), pair[1], rows, codes, counts[-1])
            few_shares = SCREENING_FRACTIONS if few and self.mean_share is None else shares
            weights = WEIGHTS if self.weights == "auto" else (self.weights,)
            best = lists.best(D, weight, means, counts, weights, few_shares)
            if not few and self.n_neighbors is None:
                finer = _between(counts, best.n_neighbors)
                best = lists.best(D, weight, means, finer, (best.weights,), shares)
            record = {"scaling": pair[0], "metric": pair[1], "n_rows": len(rows), "divergence": best.divergence}
            chosen = {"n_neighbors": best.n_neighbors, "weights": best.weights, "mean_share": best.share}
            self.candidates_.append(record | chosen)
            return best

        if len(pairs) > 2:
            first = [compare(pair, np.sort(order[:FIRST_ROUND_ROWS]), True) for pair in pairs]
            ranking = np.argsort([setting.divergence for setting in first], kind="stable")
            pairs = [pairs[rank] for rank in ranking[:2]]
        settings = [compare(pair, np.sort(order[: self.n_queries]), False) for pair in pairs]
        best = first_best([setting.divergence for setting in settings])
        (self.scaling_, self.metric_), setting = pairs[best], settings[best]
        self.n_neighbors_, self.weights_ = setting.n_neighbors, setting.weights
        self._divisor = scalings[self.scaling_].divisor
        self.distributions_ = D.copy()  # the caller may change the original
        self.distribution_ = mean_distribution(D, weight)
        self._row_weight = weight
        scaled = scalings[self.scaling_].apply(X, copy=True)
        self._search = StableSearch(scaled, metric=self.metric_, metric_params=None, algorithm="auto", n_jobs=None)
        rows = np.sort(order[: self.max_loo_rows])
        P = self._left_out(scaled, rows, codes)
        kept = None if weight is None else weight[rows]
        self.loo_divergence_, self.mean_share_ = best_fraction(D[rows], P, means[rows], kept, shares)
        self.loo_rows_ = rows
        self.loo_predictions_ = mix(P, means[rows], self.mean_share_)

    def _candidates(self, X: Any) -> list[tuple[str, str]]:
        scalings = (SCALINGS if is_non_negative(X) else SCALINGS[:2]) if self.scaling == "auto" else (self.scaling,)
        metrics = METRICS if self.metric == "auto" else (self.metric,)
        return [(scaling, metric) for metric in metrics for scaling in scalings]

    def _left_out(self, scaled: Any, rows: IntArray, codes: IntArray | None) -> FloatArray:
        """Predictions of training rows from their nearest rows outside their own group, without the mean share."""
        k, n_samples = self.n_neighbors_, len(self.distributions_)
        group = np.arange(n_samples) if codes is None else codes
        longest = min(n_samples, k + 1 + int(np.bincount(group).max()))
        P = np.empty((len(rows), self.n_labels_))
        for block in row_blocks(len(rows), longest, BLOCK_CELLS):
            some = rows[block]
            distances, neighbors = self._search.query(scaled[some], longest, exact=True)
            others = group[neighbors] != group[some][:, None]
            front = np.argsort(~others, axis=1, kind="stable")[:, : k + 1]  # the others first, in their order
            allowed = np.take_along_axis(np.where(others, distances, np.inf), front, axis=1)
            P[block] = self._average(allowed, np.take_along_axis(neighbors, front, axis=1))
        return P

    def _average(self, distances: FloatArray, neighbors: IntArray) -> FloatArray:
        k = self.n_neighbors_
        weights = kernel_weights(distances, k, self.weights_)
        if self._row_weight is not None:
            weights = weights * self._row_weight[neighbors[:, :k]]
        return _weighted_means(weights, self.distributions_[neighbors[:, :k]])

    def _predict(self, X: Any) -> FloatArray:
        scaling = Scaling(self.scaling_, self._divisor)
        longest = min(self.n_neighbors_ + 1, len(self.distributions_))
        P = np.empty((X.shape[0], self.n_labels_))
        for block in row_blocks(X.shape[0], max(longest * self.n_labels_, X.shape[1]), BLOCK_CELLS):
            P[block] = self._average(*self._search.query(scaling.apply(X[block]), longest, exact=True))
        return mix(P, self.distribution_, self.mean_share_)

    def _counts(self, X: Any, max_count: int) -> Sequence[int]:
        """The numbers of neighbours to compare, if at most ``max_count`` can be found."""
        if self.scaling == "sqrt" and not is_non_negative(X):
            raise ParameterError(
                Parameter("scaling", self.scaling),
                f" needs non-negative features, but X holds {X.min():g}. Choose another scaling, or 'auto'.",
            )
        if max_count < 1:
            raise ValueError("AAKNNCV leaves rows out, so it needs at least two rows, but n_samples=1.")
        if self.n_neighbors is None:
            return tuple(k for k in COUNTS if k <= max_count)
        if self.n_neighbors > max_count:
            raise ParameterError(
                Parameter("n_neighbors", self.n_neighbors),
                f" is more than the {max_count} rows that remain when a row or its group is left out. Choose fewer "
                "neighbours, or None.",
            )
        return (int(self.n_neighbors),)


class _Lists:
    """Neighbours of some training rows, without each row itself or its group, in blocks of bounded memory."""

    def __init__(self, scaled: Any, metric: str, rows: IntArray, codes: IntArray | None, k: int) -> None:
        self.rows = rows
        length = min(k + 1, scaled.shape[0])
        self.distances = np.empty((len(rows), length))
        self.neighbors = np.empty((len(rows), length), dtype=np.intp)
        group = np.arange(scaled.shape[0]) if codes is None else codes
        measure = euclidean_distances if metric == "euclidean" else manhattan_distances
        for block in row_blocks(len(rows), scaled.shape[0], BLOCK_CELLS):
            some = rows[block]
            values = np.asarray(measure(scaled[some], scaled), dtype=np.float64)
            values[group[some][:, None] == group] = np.inf
            nearest = np.argpartition(values, length - 1, axis=1)[:, :length]
            nearest.sort(axis=1)  # so that the stable sort by distance leaves equal ones in the order of the rows
            values = np.take_along_axis(values, nearest, axis=1)
            order = np.argsort(values, axis=1, kind="stable")
            self.distances[block] = np.take_along_axis(values, order, axis=1)
            self.neighbors[block] = np.take_along_axis(nearest, order, axis=1)

    def best(
        self,
        D: FloatArray,
        weight: FloatArray | None,
        means: FloatArray,
        counts: Sequence[int],
        weights: Sequence[str],
        shares: Sequence[float],
    ) -> Setting:
        """Choose number, weights and share by the divergence of the rows."""
        names = [(k, name) for name in weights for k in counts]
        tables = np.empty((len(names), len(self.rows), D.shape[1]))
        for block in row_blocks(len(self.rows), self.neighbors.shape[1] * D.shape[1], BLOCK_CELLS // 4):
            distances, neighbors = self.distances[block], self.neighbors[block]
            near = D[neighbors]
            for table, (k, name) in zip(tables, names, strict=True):
                v = kernel_weights(distances, k, name)
                if weight is not None:
                    v = v * weight[neighbors[:, :k]]
                table[block] = _weighted_means(v, near[:, :k])
        row_weight = None if weight is None else weight[self.rows]
        divergences = mixture_divergences(D[self.rows], tables, means[self.rows], row_weight, shares)
        best = first_best(divergences.min(axis=1))
        column = first_best(divergences[best])
        return Setting(*names[best], float(shares[column]), float(divergences[best, column]))


def kernel_weights(distances: FloatArray, k: int, weights: str) -> FloatArray:
    """Weights of the first k neighbours from the k + 1 smallest distances (inf or missing: there is no next row)."""
    near = distances[:, :k]
    if weights == "uniform" or distances.shape[1] <= k:
        return np.ones(near.shape)
    reach = distances[:, k : k + 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 1 - (near / reach) ** 2  # 0/0 where all are at distance zero, replaced at once
    # equal distances leave nothing but rounding errors of 1 − 1, far below 1e-9
    return np.where(found.sum(axis=1, keepdims=True) > 1e-9, found, 1.0)


def _weighted_means(weights: FloatArray, near: FloatArray) -> FloatArray:
    return np.asarray((weights[:, None, :] @ near)[:, 0] / weights.sum(axis=1, keepdims=True))


def _between(counts: Sequence[int], k: int) -> Sequence[int]:
    """All numbers from the one before k to the one after it in ``counts``."""
    position = counts.index(k)
    return range(counts[max(position - 1, 0)], counts[min(position + 1, len(counts) - 1)] + 1)
