r"""Candidates for the nearest neighbours among very many rows, by a filter in single precision.

For each block of queries and each block of training rows, one matrix product gives

    s = ‖u_i‖² − 2 u_iᵀv,

the squared distance less the squared norm of the query, where u and v are the rows less the mean of the training rows,
rotated so that the first coordinates vary most. Only the first coordinates take part: they give a lower bound of the
distance, since a sum of squares grows with its terms. Pairs whose s, less a bound on the rounding error, exceeds the
distance of the n-th nearest row found so far cannot be among the n nearest. All others are measured from their
differences in double precision. So the filter decides how fast the search is, never what it finds.

How many coordinates take part is decided by a trial, some training rows as queries: few where the columns depend on
each other, all where they do not. Blocks of training rows are boxes (`RowBoxes`), and a query takes no part in the
product with a box that is farther away than the n-th nearest row found so far. Where few directions matter, most pairs
are passed over in this way; where all columns are independent, none.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from skldl.neighbors._boxes import RowBoxes
from skldl.utils.typing import FloatArray, IntArray

LEAST_ROWS = 20_000
"""On fewer training rows scikit-learn's search is as quick."""
MOST_FEATURES = 512
"""Rotations of more columns take longer than they save."""
QUERIES, ROWS = 256, 2048
"""A block of products has at most QUERIES × ROWS cells: 2 MiB."""
TRIAL_ROWS, TRIAL_QUERIES, TRIAL_BLOCKS, TRIAL_NEIGHBOURS = 20_000, 16, 64, 10
TRIAL_SHARES = (*range(1, 9), *range(10, 17, 2), *range(20, 33, 4))
"""Numbers of coordinates that the trial compares, in parts of 32."""
COST_OF_MEASURING = 40000.0
"""Measuring a pair takes about as long as so many coordinates in the product."""
LARGEST_NORM = 1e30
"""Squared norms beyond this are too large for single precision."""
MOST_CANDIDATES = 2**22
"""With more candidates than this at one time the filter gives up: it does not pay."""


class LowerBoundFilter:
    """Find nearest neighbours of dense rows by a lower bound in single precision and exact distances of what is left.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    """

    def __init__(self, X: FloatArray) -> None:
        self._X = X
        self._mean = X.mean(axis=0, dtype=np.float64)
        some = X[:: max(1, len(X) // TRIAL_ROWS)][:TRIAL_ROWS].astype(np.float64) - self._mean
        _, self._axes = np.linalg.eigh(some.T @ some)
        self._axes = self._axes[:, ::-1]
        n_features = X.shape[1]
        rotated = np.empty((len(X), n_features), dtype=np.float32)
        for block in _blocks(len(X)):
            rotated[block] = (X[block] - self._mean) @ self._axes
        self._n_used = self._trial(rotated)
        self._boxes = RowBoxes(rotated[:, : self._n_used], ROWS)
        self._rows = np.empty((len(X), self._n_used + 1), dtype=np.float32)
        self._largest = 0.0
        for block in self._boxes.slices:
            part = rotated[self._boxes.order[block], : self._n_used]
            squares = np.einsum("ij,ij->i", part, part, dtype=np.float64)
            self._rows[block, :-1], self._rows[block, -1] = part, squares
            self._largest = max(self._largest, float(squares.max()))
        # rounding of the rotated coordinates, of their product and of the stored squares; all in single precision
        self._error_of_mean = 32 * n_features * float(np.finfo(np.float64).eps * np.linalg.norm(self._mean))
        self._relative_error = 4 * (n_features + 16) * float(np.finfo(np.float32).eps)

    def _trial(self, rotated: npt.NDArray[np.float32]) -> int:
        """Number of leading coordinates that costs least: products for all pairs, and a distance for each survivor."""
        n_features = rotated.shape[1]
        queries = rotated[:: max(1, len(rotated) // TRIAL_QUERIES)][:TRIAL_QUERIES]
        counts = sorted({max(1, round(n_features * share / 32)) for share in TRIAL_SHARES})
        blocks = list(_blocks(len(rotated)))
        some = [rotated[block] for block in blocks[:: max(1, len(blocks) // TRIAL_BLOCKS)]]
        nth = max(1, round(TRIAL_NEIGHBOURS * len(some) / len(blocks)))  # a query, one of the rows, is its own nearest
        least = [np.partition(_partial_squares(queries, part, counts)[-1], nth, axis=1)[:, : nth + 1] for part in some]
        reach = np.partition(np.hstack(least), nth, axis=1)[:, nth, None]
        survivors = np.mean([(_partial_squares(queries, part, counts) <= reach).mean(axis=(1, 2)) for part in some], 0)
        costs = np.array(counts) + COST_OF_MEASURING * survivors
        return counts[int(np.argmin(costs))]

    def query(self, X: FloatArray, n_neighbors: int) -> tuple[FloatArray, IntArray] | None:
        """Squared distances, ascending, and indices of the nearest rows; None where it does not pay or cannot be used.

        Parameters
        ----------
        X : ndarray of shape (n_new, n_features)
            Rows to find neighbours of.
        n_neighbors : int
            How many.
        """
        squares, neighbors = np.empty((len(X), n_neighbors)), np.empty((len(X), n_neighbors), dtype=np.intp)
        parts = [X[block] for block in _blocks(len(X), QUERIES)]
        homes = []
        for part in map(self._rotated, parts):
            if not np.abs(part).max() < math.sqrt(LARGEST_NORM / part.shape[1]):
                return None
            homes.append(self._boxes.squared_distances(part).argmin(axis=1))
        order = np.argsort(np.concatenate(homes), kind="stable")  # queries that are near each other pass over the same
        for block in _blocks(len(X), QUERIES):
            found = self._query_block(np.asarray(X[order[block]], dtype=np.float64), n_neighbors)
            if found is None:
                return None
            squares[order[block]], neighbors[order[block]] = found
        return squares, neighbors

    def _rotated(self, X: FloatArray) -> FloatArray:
        return np.asarray((X - self._mean) @ self._axes[:, : self._n_used])

    def _query_block(self, X: FloatArray, n_neighbors: int) -> tuple[FloatArray, IntArray] | None:
        rotated = self._rotated(X)
        norms = np.einsum("ij,ij->i", rotated, rotated)
        error = self._relative_error * (norms + self._largest) + self._error_of_mean * np.sqrt(norms + self._largest)
        left = np.empty((self._n_used + 1, len(X)), dtype=np.float32)
        left[:-1], left[-1] = -2 * rotated.T, 1
        apart = self._boxes.squared_distances(rotated)
        limit = self._first_reach(X, left, apart.argmin(axis=1), n_neighbors)
        nearest: tuple[FloatArray, IntArray] = (
            np.full((len(X), n_neighbors), np.inf),
            np.full((len(X), n_neighbors), -1, dtype=np.intp),
        )
        waiting: list[tuple[IntArray, IntArray]] = []
        n_waiting, done, merge_at = 0, 0, 1
        products = np.empty(ROWS * len(X), dtype=np.float32)
        is_near = np.empty(products.shape, dtype=bool)
        for box in np.argsort(apart.min(axis=0), kind="stable"):
            some = np.flatnonzero(apart[:, box] <= limit + 2 * error)  # once for the rows, once for the box
            if not len(some):
                continue
            done += 1
            part = self._rows[self._boxes.slices[box]]
            cells = (slice(len(part) * len(some)), (len(part), len(some)))
            block, near = products[cells[0]].reshape(cells[1]), is_near[cells[0]].reshape(cells[1])
            reach = np.nextafter((limit - norms + error)[some].astype(np.float32), np.float32(np.inf))
            np.less_equal(np.matmul(part, left if len(some) == len(X) else left[:, some], out=block), reach, out=near)
            rows, queries = np.divmod(np.flatnonzero(near), len(some))
            waiting.append((some[queries], self._boxes.order[rows + self._boxes.slices[box].start]))
            n_waiting += len(queries)
            if done == merge_at or n_waiting > MOST_CANDIDATES // 4:
                if n_waiting > MOST_CANDIDATES:
                    return None
                nearest = self._merge(X, nearest, waiting)
                waiting, n_waiting, merge_at = [], 0, 2 * merge_at if done == merge_at else merge_at
                limit = np.minimum(limit, nearest[0][:, -1])
        return self._merge(X, nearest, waiting) if waiting else nearest

    def _first_reach(
        self, X: FloatArray, left: npt.NDArray[np.float32], homes: IntArray, n_neighbors: int
    ) -> FloatArray:
        """Squared distance within which there are enough rows: those that look nearest in the box of each query."""
        reach = np.empty(len(X))
        for box in np.unique(homes):
            some = np.flatnonzero(homes == box)
            start = min(self._boxes.slices[box].start, len(self._rows) - n_neighbors)
            part = slice(start, max(self._boxes.slices[box].stop, start + n_neighbors))
            products = (self._rows[part] @ left[:, some]).T
            rows = self._boxes.order[np.argpartition(products, n_neighbors - 1, axis=1)[:, :n_neighbors] + start]
            squares = self._measure(X, np.repeat(some, n_neighbors), rows.ravel())
            reach[some] = squares.reshape(rows.shape).max(axis=1)
        return reach

    def _measure(self, X: FloatArray, queries: IntArray, rows: IntArray) -> FloatArray:
        squares = np.empty(len(rows))
        step = max(1, 2**20 // X.shape[1])
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            difference = X[queries[some]] - self._X[rows[some]]
            squares[some] = np.einsum("ij,ij->i", difference, difference)
        return squares

    def _merge(
        self, X: FloatArray, nearest: tuple[FloatArray, IntArray], waiting: list[tuple[IntArray, IntArray]]
    ) -> tuple[FloatArray, IntArray]:
        """Measure candidates and keep the nearest rows of each query, equal distances in the order of the rows."""
        n_neighbors = nearest[0].shape[1]
        queries = np.concatenate([part for part, _ in waiting])
        rows = np.concatenate([part for _, part in waiting])
        squares = self._measure(X, queries, rows)
        near = squares <= nearest[0][queries, -1]  # what cannot be among the nearest need not be sorted
        queries, rows, squares = queries[near], rows[near], squares[near]
        queries = np.concatenate([np.repeat(np.arange(len(X)), n_neighbors), queries])
        rows = np.concatenate([nearest[1].ravel(), rows])
        squares = np.concatenate([nearest[0].ravel(), squares])
        order = np.lexsort((rows, squares, queries))
        queries = queries[order]
        first = np.searchsorted(queries, np.arange(len(X)))
        kept = order[first[:, None] + np.arange(n_neighbors)]
        return squares[kept], rows[kept]


def _blocks(n_rows: int, length: int | None = None) -> Iterator[slice]:
    length = ROWS if length is None else length
    return (slice(start, start + length) for start in range(0, n_rows, length))


def _partial_squares(
    queries: npt.NDArray[np.float32], rows: npt.NDArray[np.float32], counts: list[int]
) -> npt.NDArray[np.float32]:
    """Squared distances of all pairs in the first coordinates: one table for each number of them."""
    parts = [slice(begin, end) for begin, end in pairwise([0, *counts])]
    return np.cumsum(
        [
            (queries[:, part] ** 2).sum(axis=1)[:, None]
            - 2 * queries[:, part] @ rows[:, part].T
            + (rows[:, part] ** 2).sum(axis=1)
            for part in parts
        ],
        axis=0,
    )
