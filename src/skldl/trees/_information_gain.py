"""The split of features with the largest information gain about two classes, for a node of a tree.

What does not depend on the node is computed once for a table: the rank of each value in its column, so that a node
sorts whole numbers, and which columns hold two values only, so that a node needs sums and nothing to sort.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from skldl.utils.typing import FloatArray, IntArray

SMALLEST_GAIN = 1e-12
ROUNDING = 1e-9


@dataclass(frozen=True)
class RankedColumns:
    """A table of features, ready for the search of splits.

    Attributes
    ----------
    ranks : ndarray of shape (n_ranked, n_samples)
        Twice the place of each value among the different values of its column, for columns of three values or more.
    values : list of ndarray
        The different values of these columns.
    is_high : CSR matrix of shape (n_samples, n_two_valued)
        Ones where a column of at most two values holds the larger one.
    ends : ndarray of shape (2, n_two_valued)
        The two values.
    place : ndarray of shape (n_features,)
        Number of a column among the ranked ones, or −1 − its number among the others.
    """

    ranks: npt.NDArray[np.uint32]
    values: list[FloatArray]
    is_high: Any
    ends: FloatArray
    place: IntArray

    @classmethod
    def of(cls, X: FloatArray) -> "RankedColumns":
        """Rank the columns of a table in double precision."""
        low, high = X.min(axis=0), X.max(axis=0)
        two_valued = np.array([bool(((x == a) | (x == b)).all()) for x, a, b in zip(X.T, low, high, strict=True)])
        ranked = np.flatnonzero(~two_valued)
        ranks = np.empty((len(ranked), len(X)), dtype=np.uint32)
        values = []
        for row, column in enumerate(ranked):
            different, places = np.unique(X[:, column], return_inverse=True)
            ranks[row] = 2 * places
            values.append(different)
        place = np.where(two_valued, -np.cumsum(two_valued), np.cumsum(~two_valued) - 1)
        is_high = sparse.csr_array((X[:, two_valued] > low[two_valued]).astype(np.float64))
        return cls(ranks, values, is_high, np.array([low[two_valued], high[two_valued]]), place)


def best_split(
    table: RankedColumns,
    rows: IntArray,
    second: npt.NDArray[np.bool_],
    weight: FloatArray | None,
    columns: IntArray,
    least_weight: float,
) -> tuple[float, int, float]:
    """Information gain, column and threshold of the best split of a node for two classes; gain 0 if there is none.

    The gain is H(w₂/w) − Σ_side w_side/w · H(share of class 2 on that side), with the binary entropy H and sums of
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
        Columns to look at, in ascending order.
    least_weight : float
        Smallest sum of weights on each side.
    """
    place = table.place[columns]
    ranked, two_valued = place[place >= 0], -1 - place[place < 0]
    gains = np.zeros(len(columns))
    if len(two_valued):
        gains[place < 0] = _gains_of_two_values(table.is_high, rows, second, weight, two_valued, least_weight)
    if len(ranked):
        gain, below, above = _gains_of_ranks(table.ranks[ranked[:, None], rows], second, weight, least_weight)
        gains[place >= 0] = gain.max(axis=1, initial=0.0)
    largest = gains.max()
    if largest <= SMALLEST_GAIN:
        return 0.0, 0, 0.0
    least = largest * (1.0 - ROUNDING)
    best = int(np.argmax(gains >= least))
    if place[best] < 0:
        ends = table.ends[:, -1 - place[best]]
        found = gains[best]
    else:
        row = int(np.searchsorted(ranked, place[best]))
        cut = int(np.argmax(gain[row] >= least))
        ends = table.values[place[best]][[below[row, cut], above[row, cut]]]
        found = gain[row, cut]
    low, high = ends.tolist()  # numbers of Python: their difference may be infinite without a warning
    threshold = low + 0.5 * (high - low)
    return float(found), int(columns[best]), threshold if threshold < high else low


def _gains_of_two_values(
    is_high: Any,
    rows: IntArray,
    second: npt.NDArray[np.bool_],
    weight: FloatArray | None,
    wanted: IntArray,
    least_weight: float,
) -> FloatArray:
    """Gain of the only split of each column of two values."""
    w = np.ones(len(rows)) if weight is None else weight
    parts = np.column_stack([w, w * second, np.ones(len(rows))])
    w_right, second_right, n_right = (is_high[rows].T @ parts)[wanted].T
    total, total_second = float(w.sum()), float(w @ second)
    gain = _gain(total - w_right, total_second - second_right, total, total_second)
    slack = ROUNDING * total
    allowed = (n_right > 0) & (n_right < len(rows))
    allowed &= (w_right >= least_weight - slack) & (total - w_right >= least_weight - slack)
    return np.where(allowed, gain, 0.0)


def _gains_of_ranks(
    ranks: npt.NDArray[np.uint32], second: npt.NDArray[np.bool_], weight: FloatArray | None, least_weight: float
) -> tuple[FloatArray, Any, Any]:
    """Gains of all cuts of each column (n_columns, n_rows − 1), and the places of the values on both sides."""
    if weight is None:
        ranks |= second.astype(np.uint32)  # the class travels in the last bit
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
    allowed = (w_left >= least_weight - slack) & (total - w_left >= least_weight - slack)
    places = ranks >> 1
    below, above = places[:, :-1], places[:, 1:]
    gain *= allowed & (above > below)
    return gain, below, above


def _gain_of_counts(second_left: npt.NDArray[np.intp], n_rows: int, n_second: int) -> FloatArray:
    """Information gain of each cut of each column, from the number of rows of class 2 on its left.

    x ln x of both sides is a table over counts: two tables stand for four logarithms in each cell.
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
    left = _impurity(w_left, second_left)
    right = _impurity(np.maximum(total - w_left, 0.0), np.maximum(total_second - second_left, 0.0))
    return np.asarray((_impurity(np.array(total), np.array(total_second)) - left - right) / total)


def _impurity(w: FloatArray, w_second: FloatArray) -> FloatArray:
    """w · H(w_second / w)."""
    w_first = np.maximum(w - w_second, 0.0)
    return np.asarray(special.xlogy(w, w) - special.xlogy(w_second, w_second) - special.xlogy(w_first, w_first))
