r"""Candidates for the nearest neighbours among very many rows, by a filter in single precision.

For each block of queries and each block of training rows, one matrix product gives

    s = ‖u_i‖² − 2 u_iᵀv,

the squared distance less the squared norm of the query, where u and v are the rows less the mean of the training rows,
rotated so that the first coordinates vary most. Only the first coordinates take part: they give a lower bound of the
distance, since a sum of squares grows with its terms. Pairs whose s, less a bound on the rounding error, exceeds the
distance of the n-th nearest row found so far cannot be among the n nearest. All others are measured from their
differences in double precision. So the filter decides how fast the search is, never what it finds.

How many coordinates take part is decided by trials on rows of the training set: few where the columns depend on each
other, all where they do not.
"""

import numpy as np

from skldl._typing import FloatArray, IntArray

LEAST_ROWS = 20_000
"""On fewer training rows scikit-learn's search is as quick."""
MOST_FEATURES = 512
"""Rotations of more columns take longer than they save."""
QUERIES = 256
ROWS = 8192
"""A block of products has at most QUERIES × ROWS cells: 8 MiB."""
TRIAL_ROWS, TRIAL_QUERIES, TRIAL_NEIGHBOURS = 20_000, 64, 10
COST_OF_MEASURING = 20000.0
"""Measuring a pair takes about as long as so many coordinates in the product, or more."""
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
        self._n_used = self._trial(some @ self._axes)
        rows = np.empty((len(X), self._n_used + 1), dtype=np.float32)
        self._largest = 0.0
        for start in range(0, len(X), ROWS):
            block = slice(start, start + ROWS)
            part = (X[block] - self._mean) @ self._axes[:, : self._n_used]
            rows[block, :-1] = part
            squares = np.einsum("ij,ij->i", part, part)
            rows[block, -1] = squares
            self._largest = max(self._largest, float(squares.max()))
        self._rows = rows
        # rounding of the rotated coordinates, of their product and of the stored squares; all in single precision
        self._error_of_mean = 32 * n_features * float(np.finfo(np.float64).eps * np.linalg.norm(self._mean))
        self._relative_error = 4 * (n_features + 16) * float(np.finfo(np.float32).eps)

    def _trial(self, rotated: FloatArray) -> int:
        """Number of leading coordinates that costs least: products for all pairs, and a distance for each survivor."""
        n_features = rotated.shape[1]
        queries = rotated[:: max(1, len(rotated) // TRIAL_QUERIES)][:TRIAL_QUERIES]
        squares = np.zeros((len(queries), len(rotated)))
        counts = sorted({max(1, n_features * share // 8) for share in (1, 2, 3, 4, 5, 6, 8)})
        partial, begin = [], 0
        for count in counts:
            left, right = queries[:, begin:count], rotated[:, begin:count]
            squares += (left**2).sum(axis=1)[:, None] - 2 * left @ right.T + (right**2).sum(axis=1)
            partial.append(squares.astype(np.float32))
            begin = count
        reach = np.partition(squares, TRIAL_NEIGHBOURS, axis=1)[:, TRIAL_NEIGHBOURS, None]
        costs = [
            count + COST_OF_MEASURING * float((bound <= reach).mean())
            for count, bound in zip(counts, partial, strict=True)
        ]
        return counts[int(np.argmin(costs))]

    def query(self, X: FloatArray, n_neighbors: int) -> tuple[FloatArray, IntArray] | None:
        """Squared distances, ascending, and indices of the nearest rows; None where the filter lets too much through.

        Parameters
        ----------
        X : ndarray of shape (n_new, n_features)
            Rows to find neighbours of.
        n_neighbors : int
            How many.
        """
        squares, neighbors = np.empty((len(X), n_neighbors)), np.empty((len(X), n_neighbors), dtype=np.intp)
        for start in range(0, len(X), QUERIES):
            block = slice(start, start + QUERIES)
            found = self._query_block(np.asarray(X[block], dtype=np.float64), n_neighbors)
            if found is None:
                return None
            squares[block], neighbors[block] = found
        return squares, neighbors

    def _query_block(self, X: FloatArray, n_neighbors: int) -> tuple[FloatArray, IntArray] | None:
        rotated = (X - self._mean) @ self._axes[:, : self._n_used]
        norms = np.einsum("ij,ij->i", rotated, rotated)
        error = self._relative_error * (norms + self._largest) + self._error_of_mean * np.sqrt(norms + self._largest)
        if not np.isfinite(error.astype(np.float32)).all():  # too large for single precision
            return None
        left = np.empty((len(X), self._n_used + 1), dtype=np.float32)
        left[:, :-1], left[:, -1] = -2 * rotated, 1
        reach = self._first_reach(X, left, n_neighbors) - norms + error
        reach = np.nextafter(reach.astype(np.float32), np.float32(np.inf))
        nearest: tuple[FloatArray, IntArray] = (
            np.full((len(X), n_neighbors), np.inf),
            np.full((len(X), n_neighbors), -1, dtype=np.intp),
        )
        waiting: list[tuple[IntArray, IntArray]] = []
        n_waiting, merge_at = 0, 1
        products = np.empty((len(X), ROWS), dtype=np.float32)
        for done, start in enumerate(range(0, len(self._rows), ROWS), start=1):
            part = self._rows[start : start + ROWS]
            block = np.matmul(left, part.T, out=products[:, : len(part)]) if len(part) == ROWS else left @ part.T
            queries, rows = np.divmod(np.flatnonzero(block <= reach[:, None]), block.shape[1])
            waiting.append((queries, rows + start))
            n_waiting += len(queries)
            if done == merge_at or n_waiting > MOST_CANDIDATES // 4 or start + ROWS >= len(self._rows):
                if n_waiting > MOST_CANDIDATES:
                    return None
                nearest = self._merge(X, nearest, waiting)
                waiting, n_waiting, merge_at = [], 0, 2 * merge_at if done == merge_at else merge_at
                limit = nearest[0][:, -1] - norms + error
                reach = np.minimum(reach, np.nextafter(limit.astype(np.float32), np.float32(np.inf)))
        return nearest

    def _first_reach(self, X: FloatArray, left: FloatArray, n_neighbors: int) -> FloatArray:
        """Squared distance within which there are enough rows: those that look nearest among the first ones."""
        products = left @ self._rows[: max(ROWS, n_neighbors)].T
        some = np.argpartition(products, n_neighbors - 1, axis=1)[:, :n_neighbors]
        queries = np.repeat(np.arange(len(X)), n_neighbors)
        return np.asarray(self._measure(X, queries, some.ravel()).reshape(some.shape).max(axis=1))

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
        queries = np.concatenate([np.repeat(np.arange(len(X)), n_neighbors), queries])
        rows = np.concatenate([nearest[1].ravel(), rows])
        squares = np.concatenate([nearest[0].ravel(), squares])
        order = np.lexsort((rows, squares, queries))
        queries = queries[order]
        first = np.searchsorted(queries, np.arange(len(X)))
        kept = order[first[:, None] + np.arange(n_neighbors)]
        return squares[kept], rows[kept]
