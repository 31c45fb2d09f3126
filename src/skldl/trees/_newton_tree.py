"""Regression trees by Newton steps on binned features, for boosting: grown best first, from gradients and Hessians.

A node with gradient sum G and Hessian sum H can lower the loss by G² / 2H. A split is chosen by the gain of its two
parts over the node. The caller provides G and H for each node, so that a node may have its own pair of labels.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.utils.typing import FloatArray, IntArray

Statistics = Callable[[IntArray], tuple[FloatArray, FloatArray]]
LeafValue = Callable[[IntArray], FloatArray]

MIN_GAIN = 1e-12
"""A smaller gain is rounding: losses are of order 1."""
BLOCK_CELLS = 1 << 22
"""Codes of features are summed in blocks of at most about this many."""


@dataclass(frozen=True)
class Bins:
    """Features as codes: code k of a column means thresholds[k−1] < x ≤ thresholds[k].

    Attributes
    ----------
    codes : ndarray of shape (n_samples, n_features)
        Codes plus the position of the column's first bin among the bins of all columns.
    thresholds : list of ndarray
        Thresholds of each column.
    first : ndarray of shape (n_features + 1,)
        Position of the first bin of each column among those of all columns.
    """

    codes: npt.NDArray[np.int32]
    thresholds: list[FloatArray]
    first: IntArray

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray, max_bins: int) -> "Bins":
        """Thresholds between neighbouring values, or at weighted quantiles where there are too many values."""
        codes = np.empty(X.shape, dtype=np.int32)
        thresholds: list[FloatArray] = []
        first = [0]
        for column in range(X.shape[1]):
            values, ranks = np.unique(X[:, column].astype(np.float64), return_inverse=True)
            between = values[:-1] + 0.5 * np.diff(values)
            if len(values) > max_bins:
                fractions = np.cumsum(np.bincount(ranks, weights=weight))[:-1] / weight.sum()
                # 1e-12 allows for the rounding of sums of weights
                wanted = np.searchsorted(fractions, np.arange(1, max_bins) / max_bins - 1e-12)
                between = between[np.unique(np.minimum(wanted, len(between) - 1))]
            codes[:, column] = np.searchsorted(between, values)[ranks] + first[-1]
            thresholds.append(between)
            first.append(first[-1] + len(between) + 1)
        return cls(codes, thresholds, np.array(first))


@dataclass
class NewtonTree:
    """Nodes in lists: a leaf has feature −1 and a value; rows with x ≤ threshold go left, others right."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    value: list[FloatArray] = field(default_factory=list)

    def add(self, value: FloatArray) -> int:
        """Append a leaf and return its number."""
        self.feature.append(-1)
        self.threshold.append(0.0)
        self.left.append(-1)
        self.right.append(-1)
        self.value.append(value)
        return len(self.feature) - 1

    def _check_fitted_state(self) -> None:
        """Reject nodes that point outside the tree or back to an earlier node, which would be an endless loop."""
        n_nodes = len(self.feature)
        positions = np.arange(n_nodes)
        inner = np.array(self.feature) >= 0
        lengths = {len(part) for part in (self.threshold, self.left, self.right, self.value)}
        if lengths != {n_nodes} or not n_nodes or len({np.shape(value) for value in self.value}) > 1:
            raise ValueError("A tree holds parts of different lengths.")
        for children in (np.array(self.left), np.array(self.right)):
            if not (children[inner] > positions[inner]).all() or not (children[inner] < n_nodes).all():
                raise ValueError("A node of a tree points outside the tree or to a node before it.")

    def predict(self, X: FloatArray) -> FloatArray:
        """The value of the leaf of each row."""
        feature, threshold = np.array(self.feature), np.array(self.threshold)
        children = np.array([self.left, self.right])
        node = np.zeros(len(X), dtype=np.intp)
        moving = np.flatnonzero(feature[node] >= 0)
        while len(moving):
            here = node[moving]
            right = X[moving, feature[here]] > threshold[here]
            node[moving] = children[right.astype(np.intp), here]
            moving = moving[feature[node[moving]] >= 0]
        return np.array(self.value)[node]


def grow_tree(
    bins: Bins,
    weight: FloatArray,
    statistics: Statistics,
    leaf_value: LeafValue,
    *,
    max_leaf_nodes: int,
    min_weight: float,
    ridge: float,
) -> NewtonTree:
    """Grow a tree, splitting the leaf with the largest gain first.

    Parameters
    ----------
    bins : Bins
        Features.
    weight : ndarray of shape (n_samples,)
        Row weights.
    statistics : callable
        From the rows of a node to their (negative) gradients and Hessians.
    leaf_value : callable
        From the rows of a leaf to its value.
    max_leaf_nodes : int
        Maximum number of leaves.
    min_weight : float
        Minimum sum of weights in a leaf.
    ridge : float
        Added to each sum of Hessians.
    """
    tree = NewtonTree()
    everything = np.arange(len(weight))
    open_leaves = [
        (
            tree.add(leaf_value(everything)),
            everything,
            _best_split(bins, weight, statistics, everything, min_weight, ridge),
        )
    ]
    n_leaves = 1
    while n_leaves < max_leaf_nodes:
        best = max(range(len(open_leaves)), key=lambda leaf: open_leaves[leaf][2][0])
        node, rows, (gain, column, code) = open_leaves.pop(best)
        if gain <= MIN_GAIN:
            break
        goes_left = bins.codes[rows, column] <= code
        tree.feature[node] = column
        tree.threshold[node] = float(bins.thresholds[column][code - bins.first[column]])
        for side, part in ((tree.left, rows[goes_left]), (tree.right, rows[~goes_left])):
            side[node] = tree.add(leaf_value(part))
            open_leaves.append((side[node], part, _best_split(bins, weight, statistics, part, min_weight, ridge)))
        n_leaves += 1
    return tree


def _best_split(
    bins: Bins, weight: FloatArray, statistics: Statistics, rows: IntArray, min_weight: float, ridge: float
) -> tuple[float, int, int]:
    """Gain, column and last code on the left of the best split; gain 0 if there is none."""
    gradient, hessian = statistics(rows)
    total_G, total_H, total_w = gradient.sum(), hessian.sum(), weight[rows].sum()
    if total_w < 2.0 * min_weight:
        return 0.0, 0, 0
    n_columns = bins.codes.shape[1]
    size = max(1, BLOCK_CELLS // max(len(rows), 1))
    best = (0.0, 0, 0)
    for start in range(0, n_columns, size):
        columns = slice(start, min(start + size, n_columns))
        origin, end = bins.first[columns.start], bins.first[columns.stop]
        codes = (bins.codes[rows, columns] - origin).ravel()
        width = columns.stop - columns.start
        offsets = bins.first[start : columns.stop] - origin
        lengths = np.diff(bins.first[start : columns.stop + 1])
        G, H, w = (
            _running_sums(np.bincount(codes, np.repeat(part, width), end - origin), offsets, lengths)
            for part in (gradient, hessian, weight[rows])
        )
        # what remains of the total may be negative by rounding, where all rows are on the left
        gain = G**2 / (H + ridge) + (total_G - G) ** 2 / (np.maximum(total_H - H, 0.0) + ridge)
        gain = 0.5 * (gain - total_G**2 / (total_H + ridge))
        gain[(w < min_weight) | (total_w - w < min_weight)] = 0.0
        gain[offsets + lengths - 1] = 0.0  # all rows on the left
        # gains that are equal up to rounding go to the first column, so that the order of sums does not decide
        cut = int(np.argmax(gain >= gain.max() * (1.0 - 1e-9)))
        if gain[cut] > best[0] * (1.0 + 1e-9):
            column = int(np.searchsorted(offsets, cut, side="right")) - 1 + start
            best = (float(gain[cut]), column, int(cut + origin))
    return best


def _running_sums(values: npt.NDArray[Any], offsets: IntArray, lengths: IntArray) -> FloatArray:
    """Running sums inside each column."""
    sums = np.cumsum(values)  # of all columns in one pass; each then loses what came before its first bin
    before = np.where(offsets > 0, sums[offsets - 1], 0.0)
    return np.asarray(sums - np.repeat(before, lengths))
