"""`StructRF`: a structured random forest for label distributions (Chen et al., 2018).

In each node the distributions of its rows are split into two clusters by 2-means; the numbers of the clusters are then
classes, and the split of the features with the largest information gain about them is taken. Leaves hold the mean
distribution of their rows, and the forest predicts the mean over trees, each grown on a random part of the rows.

What does not depend on the node is computed once for a table: the rank of each value in its column, so that a node
sorts integers, and which columns hold two values only, so that a node needs sums and no sorting.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse, special
from sklearn.utils import check_random_state

from skldl.base import BaseLDL
from skldl.trees._newton_tree import NewtonTree
from skldl.utils.parameters import COUNT, RANDOM_STATE, number
from skldl.utils.typing import FloatArray, IntArray

MAX_ROUNDS = 50
"""Maximum number of rounds of 2-means, which usually ends after a few."""
MIN_GAIN = 1e-12
"""A smaller gain is rounding."""
ROUNDING = 1e-9
"""Gains and weights that differ by less than this fraction count as equal."""


@dataclass(frozen=True)
class RankedColumns:
    """A table of features, ready for the search of splits.

    Attributes
    ----------
    ranks : ndarray of shape (n_ranked, n_samples)
        Twice the rank of each value among the different values of its column, for columns of three values or more; the
        last bit is free for the class of a row.
    values : list of ndarray
        The different values of these columns.
    is_high : CSR matrix of shape (n_samples, n_two_valued)
        Ones where a column of at most two values holds the larger one.
    ends : ndarray of shape (2, n_two_valued)
        The two values.
    position : ndarray of shape (n_features,)
        Position of a column among the ranked ones, or −1 − its position among the others.
    """

    ranks: npt.NDArray[np.uint32]
    values: list[FloatArray]
    is_high: Any
    ends: FloatArray
    position: IntArray

    @classmethod
    def of(cls, X: FloatArray) -> "RankedColumns":
        """Rank the columns of a table in double precision."""
        low, high = X.min(axis=0), X.max(axis=0)
        two_valued = np.array([bool(((x == a) | (x == b)).all()) for x, a, b in zip(X.T, low, high, strict=True)])
        ranked = np.flatnonzero(~two_valued)
        ranks = np.empty((len(ranked), len(X)), dtype=np.uint32)
        values = []
        for row, column in enumerate(ranked):
            different, codes = np.unique(X[:, column], return_inverse=True)
            ranks[row] = 2 * codes
            values.append(different)
        position = np.where(two_valued, -np.cumsum(two_valued), np.cumsum(~two_valued) - 1)
        is_high = sparse.csr_array((X[:, two_valued] > low[two_valued]).astype(np.float64))
        return cls(ranks, values, is_high, np.array([low[two_valued], high[two_valued]]), position)


def best_split(
    table: RankedColumns,
    rows: IntArray,
    second: npt.NDArray[np.bool_],
    weight: FloatArray | None,
    columns: IntArray,
    min_weight: float,
) -> tuple[float, int, float]:
    """Information gain, column and threshold of the best split of a node for two classes; gain 0 if there is none.

    The gain is H(w₂/w) − Σ_side w_side/w · H(fraction of class 2 on that side), with the binary entropy H and sums of
    weights w; thresholds are between neighbouring values. Equal gains, up to rounding, go to the first column and
    threshold.

    Parameters
    ----------
    table : RankedColumns
        The features of all rows.
    rows : ndarray of shape (n_rows,)
        The rows of the node.
    second : ndarray of shape (n_rows,)
        Which of them belong to class 2.
    weight : ndarray of shape (n_rows,) or None
        Their weights; None counts each as one.
    columns : ndarray
        Columns to consider, in ascending order.
    min_weight : float
        Minimum sum of weights on each side.
    """
    position = table.position[columns]
    ranked, two_valued = position[position >= 0], -1 - position[position < 0]
    gains = np.zeros(len(columns))
    if len(two_valued):
        gains[position < 0] = _gains_of_two_values(table.is_high, rows, second, weight, two_valued, min_weight)
    if len(ranked):
        gain, below, above = _gains_of_ranks(table.ranks[ranked[:, None], rows], second, weight, min_weight)
        gains[position >= 0] = gain.max(axis=1, initial=0.0)
    largest = gains.max()
    if largest <= MIN_GAIN:
        return 0.0, 0, 0.0
    almost = largest * (1.0 - ROUNDING)
    best = int(np.argmax(gains >= almost))
    if position[best] < 0:
        ends = table.ends[:, -1 - position[best]]
        found = gains[best]
    else:
        row = int(np.searchsorted(ranked, position[best]))
        cut = int(np.argmax(gain[row] >= almost))
        ends = table.values[position[best]][[below[row, cut], above[row, cut]]]
        found = gain[row, cut]
    low, high = ends.tolist()
    threshold = low + 0.5 * (high - low)
    return float(found), int(columns[best]), threshold if threshold < high else low  # rounding may reach the upper end


def _gains_of_two_values(
    is_high: Any,
    rows: IntArray,
    second: npt.NDArray[np.bool_],
    weight: FloatArray | None,
    chosen: IntArray,
    min_weight: float,
) -> FloatArray:
    """Gain of the only split of each column of two values."""
    w = np.ones(len(rows)) if weight is None else weight
    parts = np.column_stack([w, w * second, np.ones(len(rows))])
    w_right, second_right, n_right = (is_high[rows].T @ parts)[chosen].T
    total, total_second = float(w.sum()), float(w @ second)
    gain = _gain(total - w_right, total_second - second_right, total, total_second)
    slack = ROUNDING * total  # sums of equal weights in another order must pass the same test
    allowed = (n_right > 0) & (n_right < len(rows))
    allowed &= (w_right >= min_weight - slack) & (total - w_right >= min_weight - slack)
    return np.where(allowed, gain, 0.0)


def _gains_of_ranks(
    ranks: npt.NDArray[np.uint32], second: npt.NDArray[np.bool_], weight: FloatArray | None, min_weight: float
) -> tuple[FloatArray, Any, Any]:
    """Gains of all cuts of each column (n_columns, n_rows − 1), and the ranks of the values on both sides."""
    if weight is None:
        ranks |= second.astype(np.uint32)  # sorted together with its class in the last bit
        ranks.sort(axis=1)
        second_left = np.cumsum(ranks[:, :-1] & 1, axis=1, dtype=np.intp)
        gain = _gain_of_counts(second_left, ranks.shape[1], int(second.sum()))
        w_left, total = np.arange(1.0, ranks.shape[1]), float(ranks.shape[1])
    else:
        order = np.argsort(ranks, axis=1, kind="stable")
        ranks = np.take_along_axis(ranks, order, axis=1)
        w_left = np.cumsum(weight[order], axis=1)[:, :-1]
        total = float(weight.sum())
        gain = _gain(w_left, np.cumsum((weight * second)[order], axis=1)[:, :-1], total, float(weight @ second))
    slack = ROUNDING * total
    allowed = (w_left >= min_weight - slack) & (total - w_left >= min_weight - slack)
    values = ranks >> 1
    below, above = values[:, :-1], values[:, 1:]
    gain *= allowed & (above > below)
    return gain, below, above


def _gain_of_counts(second_left: npt.NDArray[np.intp], n_rows: int, n_second: int) -> FloatArray:
    """Information gain of each cut of each column, from the number of rows of class 2 on its left.

    x ln x of both sides is looked up in a table over counts: two tables replace four logarithms in each cell.
    """
    n_first = n_rows - n_second
    counts = np.arange(n_rows + 1.0)
    terms = special.xlogy(counts, counts)
    of_second = terms[: n_second + 1] + terms[n_second::-1]
    of_first = terms[: n_first + 1] + terms[n_first::-1]
    left = np.arange(1, n_rows)
    gain = of_second[second_left]
    gain += of_first[left - second_left]
    gain += terms[n_rows] - terms[n_second] - terms[n_first] - terms[left] - terms[n_rows - left]
    gain /= n_rows
    return np.asarray(gain)


def _gain(w_left: FloatArray, second_left: FloatArray, total: float, total_second: float) -> FloatArray:
    """Information gain from the weights on the left, of all rows and of class 2."""
    # both sides can be what remains of a total: rounding takes such differences below 0, where x ln x is NaN
    left = _impurity(w_left, np.maximum(second_left, 0.0))
    right = _impurity(np.maximum(total - w_left, 0.0), np.maximum(total_second - second_left, 0.0))
    return np.asarray((_impurity(np.array(total), np.array(total_second)) - left - right) / total)


def _impurity(w: FloatArray, w_second: FloatArray) -> FloatArray:
    """w · H(w_second / w)."""
    w_first = np.maximum(w - w_second, 0.0)
    return np.asarray(special.xlogy(w, w) - special.xlogy(w_second, w_second) - special.xlogy(w_first, w_first))


def two_clusters(D: FloatArray, weight: FloatArray) -> npt.NDArray[np.bool_]:
    """Split rows into two clusters by weighted 2-means, starting across the direction of largest variance."""
    centred = D - weight @ D / weight.sum()
    # a start that is not random: the same clusters in every run
    axis = np.linalg.eigh(centred.T @ (centred * weight[:, None]))[1][:, -1]
    second = centred @ axis > 0
    for _ in range(MAX_ROUNDS):
        if not second.any() or second.all():
            break
        parts = weight * np.array([~second, second])
        other, centre = parts @ D / parts.sum(axis=1, keepdims=True)
        # ‖d − centre‖² < ‖d − other‖², without ‖d‖²
        nearer = D @ (centre - other) > 0.5 * (centre @ centre - other @ other)
        if np.array_equal(nearer, second):
            break
        second = nearer
    return second


class StructRF(BaseLDL):
    r"""Structured random forest (StructRF): splits that separate two clusters of distributions.

    In each node the distributions are split by 2-means, and the split :math:`x_k \leq t` with the largest information
    gain about the two clusters is taken. Leaves hold mean distributions; the forest is the mean of its trees.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees.
    max_depth : int, default=20
        Maximum depth.
    min_leaf_share : float, default=0.0
        Minimum fraction of a tree's total weight in a leaf.
    min_split_share : float, default=0.005
        Minimum fraction of a tree's total weight in a node that is split.
    max_features : float, default=0.33
        Fraction of the features, drawn anew in each node, among which the split is chosen.
    sampling_share : float, default=0.8
        Fraction of the rows, drawn without replacement, on which each tree is grown.
    random_state : int, RandomState or None, default=None
        Source of rows and features.

    Attributes
    ----------
    trees_ : list of NewtonTree
        The trees.

    Notes
    -----
    The paper's text was not available: 2-means and information gain follow its citations. python-ldl searches all
    features, as ``max_features=1.0`` does here, with another gain.

    References
    ----------
    .. [1] M. Chen, X. Wang, B. Feng and W. Liu, "Structured random forest for label distribution learning",
       Neurocomputing 320, 2018.

    Examples
    --------
    >>> from skldl.trees import StructRF
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]]
    >>> StructRF(5, sampling_share=1.0, max_depth=1, random_state=0).fit(X, D).predict([[0.0], [3.0]])
    array([[0.85, 0.15],
           [0.15, 0.85]])
    """

    _accept_sparse = False

    _onnx = "newton_forest"
    _model_parts = (NewtonTree,)
    _constraints: ClassVar = {
        "n_estimators": COUNT,
        "max_depth": COUNT,
        "min_leaf_share": number(at_least=0, below=1),
        "min_split_share": number(at_least=0, below=1),
        "max_features": number(above=0, at_most=1),
        "sampling_share": number(above=0, at_most=1),
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        max_depth: int = 20,
        min_leaf_share: float = 0.0,
        min_split_share: float = 0.005,
        max_features: float = 0.33,
        sampling_share: float = 0.8,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_leaf_share = min_leaf_share
        self.min_split_share = min_split_share
        self.max_features = max_features
        self.sampling_share = sampling_share
        self.random_state = random_state

    def _fit(self, X: FloatArray, D: FloatArray, sample_weight: FloatArray | None) -> None:
        random = check_random_state(self.random_state)
        # only ratios of weights count, so the largest may be one
        weight = np.ones(len(X)) if sample_weight is None else sample_weight / sample_weight.max()
        X = X.astype(np.float64, copy=False)
        self.trees_ = []
        table = RankedColumns.of(X)
        size = max(1, round(self.sampling_share * len(X)))
        for _ in range(self.n_estimators):
            rows = np.arange(len(X)) if size == len(X) else np.sort(random.permutation(len(X))[:size])
            self.trees_.append(
                self._grow(X, D, weight / weight[rows].sum(), rows, table, sample_weight is None, random)
            )

    def _grow(
        self,
        X: FloatArray,
        D: FloatArray,
        weight: FloatArray,
        rows: IntArray,
        table: RankedColumns,
        equal_weights: bool,
        random: np.random.RandomState,
    ) -> NewtonTree:
        tree = NewtonTree()
        n_features = X.shape[1]
        n_columns = max(1, round(self.max_features * n_features))

        def mean(rows: IntArray) -> FloatArray:
            return np.asarray(weight[rows] @ D[rows] / weight[rows].sum())

        waiting = [(tree.add(mean(rows)), rows, 0)]
        while waiting:
            node, rows, depth = waiting.pop()
            if depth >= self.max_depth or len(rows) < 2 or weight[rows].sum() < self.min_split_share:
                continue
            columns = np.arange(n_features)
            if n_columns < n_features:
                columns = np.sort(random.permutation(n_features)[:n_columns])
            w = weight[rows]
            second = two_clusters(D[rows], w)
            if equal_weights:  # best_split counts rows then
                split = best_split(table, rows, second, None, columns, self.min_leaf_share / w[0])
            else:
                split = best_split(table, rows, second, w, columns, self.min_leaf_share)
            gain, column, threshold = split
            if gain <= 0:
                continue
            goes_right = X[rows, column] > threshold
            tree.feature[node], tree.threshold[node] = column, threshold
            parts = rows[~goes_right], rows[goes_right]
            tree.left[node], tree.right[node] = children = tree.add(mean(parts[0])), tree.add(mean(parts[1]))
            waiting += [(child, part, depth + 1) for child, part in zip(children, parts, strict=True)]
        return tree

    def _predict(self, X: FloatArray) -> FloatArray:
        return np.asarray(sum(tree.predict(X) for tree in self.trees_) / len(self.trees_))

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """Forests of different sizes are the first trees of the largest."""
        if param != "n_estimators" or not isinstance(self.random_state, int | np.integer):
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        self.set_params(n_estimators=max(values))._fit(X, D, sample_weight)
        sums = np.cumsum([tree.predict(X_new) for tree in self.trees_], axis=0)
        yield from (sums[value - 1] / value for value in values)
