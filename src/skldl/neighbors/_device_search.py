"""Nearest neighbours on a device: the same neighbours in the same order as `StableSearch`, for Euclidean distances.

Candidates come from ‖y‖² − 2xᵀy, one matrix product for each block of queries and of training rows, of which each
query keeps the least few. Their distances are then computed from differences, and sorted by distance and index. A query
whose last place could still belong to a row that is no candidate, by the bound on the rounding error of the product, is
asked again with more candidates. Products are in double precision whatever the precision of the features.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from skldl.exceptions import DeviceError
from skldl.neighbors._search import EUCLIDEAN, StableSearch, is_euclidean
from skldl.utils.arrays import as_double, least_of_rows, namespace, row_blocks, space, take_rows, to_numpy

CELLS = 2**28
"""A block of products holds at most about this many numbers (2 GiB)."""
QUERIES = 2**13
GROUP = 64
"""Neighbouring training rows of which first only the nearest is looked at."""
SPARE = 2


class DeviceSearch:
    """Search for nearest neighbours with ties in the order of the training rows.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Training rows, on a device.
    metric : str or callable
        "euclidean", "l2", "sqeuclidean", or "minkowski" with p = 2.
    metric_params : dict or None
        Parameters of the metric.
    """

    def __init__(self, X: Any, *, metric: Any, metric_params: dict[str, Any] | None) -> None:
        if not is_euclidean(metric, metric_params):
            given = f" with {', '.join(map(str, metric_params))} in metric_params" if metric_params else ""
            raise DeviceError(
                f"metric={metric!r}{given} is computed with NumPy alone: on a device choose one of "
                f"{', '.join(EUCLIDEAN)}, or pass NumPy arrays."
            )
        xp = namespace(X)
        self.n_samples = X.shape[0]
        self._squared = metric == "sqeuclidean"
        self._metric, self._metric_params = metric, metric_params
        self._X = X
        parts = [xp.sum(as_double(X[rows, ...]) ** 2, axis=1) for rows in row_blocks(X.shape[0], X.shape[1])]
        self._norms = xp.concat(parts)
        self._largest_norm = float(xp.max(self._norms))

    def _on_host(self) -> StableSearch:
        """The same search with NumPy."""
        X = np.asarray(to_numpy(self._X), dtype=np.float64)
        return StableSearch(X, metric=self._metric, metric_params=self._metric_params, algorithm="auto", n_jobs=None)

    def query(self, X: Any, n_neighbors: int, *, ordered: bool = True, exact: bool = False) -> tuple[Any, Any]:
        """Return distances and indices of the nearest training rows, nearest first.

        Parameters
        ----------
        X : array of shape (n_new, n_features)
            Rows to find neighbours of, on the same device.
        n_neighbors : int
            How many, at most the number of training rows.
        ordered, exact : bool
            Of no account: order and distances are always exact here.
        """
        xp = namespace(X)
        parts = [self._query_block(X[rows, ...], n_neighbors) for rows in row_blocks(X.shape[0], 1, QUERIES)]
        return xp.concat([distances for distances, _ in parts]), xp.concat([found for _, found in parts])

    def _query_block(self, X: Any, n_neighbors: int) -> tuple[Any, Any]:
        xp = namespace(X)
        X = as_double(X)
        count = min(n_neighbors + SPARE, self.n_samples)
        settled, distances, neighbors = self._nearest(X, n_neighbors, count)
        more = 8
        while not bool(xp.all(settled)):
            rows = np.flatnonzero(~to_numpy(settled))
            count, more = min(count + more, self.n_samples), 8 * more
            here, near, found = self._nearest(take_rows(X, rows), n_neighbors, count)
            places = xp.asarray(np.cumsum(~to_numpy(settled)) - 1, device=settled.device)
            again = ~settled
            places = xp.where(again, places, 0)
            distances = xp.where(again[:, None], xp.take(near, places, axis=0), distances)
            neighbors = xp.where(again[:, None], xp.take(found, places, axis=0), neighbors)
            settled = xp.where(again, xp.take(here, places, axis=0), settled)
        return distances, neighbors

    def _nearest(self, X: Any, n_neighbors: int, count: int) -> tuple[Any, Any, Any]:
        """The nearest among ``count`` candidates, and whether no other row can be among them."""
        xp = namespace(X)
        norms = xp.sum(X**2, axis=1)
        rough, found = self._candidates(X, count)
        parts = []
        for rows in row_blocks(X.shape[0], count * X.shape[1], CELLS // 8):
            chosen = take_rows(self._X, xp.reshape(found[rows, ...], (-1,)))
            difference = X[rows, None, :] - xp.reshape(as_double(chosen), (-1, count, X.shape[1]))
            parts.append(xp.sum(difference**2, axis=2))
        squares = xp.concat(parts)
        distances = squares if self._squared else xp.sqrt(squares)
        by_index = xp.argsort(found, axis=1)
        found, distances = (xp.take_along_axis(part, by_index, axis=1) for part in (found, distances))
        order = xp.argsort(distances, axis=1, stable=True)[:, :n_neighbors]
        found, distances = (xp.take_along_axis(part, order, axis=1) for part in (found, distances))
        if count == self.n_samples:
            return xp.ones_like(norms, dtype=xp.bool), distances, found
        noise = 4 * (X.shape[1] + 8) * float(np.finfo(np.float64).eps) * (norms + self._largest_norm)
        last = distances[:, -1] if self._squared else distances[:, -1] ** 2
        return last < rough[:, -1] + norms - 2 * noise, distances, found

    def _candidates(self, X: Any, count: int) -> tuple[Any, Any]:
        """The least ‖y‖² − 2xᵀy of each query, ascending, and the rows y that they belong to.

        One product gives them, of (−2x, 1) and (y, ‖y‖²): each further pass over such a block would take as long.
        """
        xp = namespace(X)
        queries = xp.concat([-2.0 * X, xp.ones_like(X[:, :1])], axis=1)
        best = None
        for rows in self._training_blocks(X.shape[0]):
            training = xp.concat([as_double(self._X[rows, ...]), self._norms[rows, None]], axis=1)
            values, found = least_in_groups(queries @ training.T, count)
            found = found + rows.start
            if best is not None:
                values, found = xp.concat([best[0], values], axis=1), xp.concat([best[1], found], axis=1)
                values, places = least_of_rows(values, min(count, values.shape[1]))
                found = xp.take_along_axis(found, places, axis=1)
            best = values, found
        assert best is not None
        return best

    def _training_blocks(self, n_queries: int) -> Iterator[slice]:
        """Blocks of training rows: whole groups, and the rest of the rows as the last one."""
        whole = self.n_samples // GROUP * GROUP
        for groups in row_blocks(whole // GROUP, GROUP * n_queries, CELLS):
            yield slice(groups.start * GROUP, groups.stop * GROUP)
        if whole < self.n_samples:
            yield slice(whole, self.n_samples)


def least_in_groups(values: Any, count: int) -> tuple[Any, Any]:
    """The least numbers of each row, ascending, and their places, after one pass over the numbers.

    That pass finds the least number of each group of neighbouring columns. The ``count`` least numbers of a row are in
    the ``count`` groups with the least of these, and only there they are looked for.
    """
    xp, device = space(values)
    n_rows, n_columns = values.shape
    if n_columns % GROUP or n_columns <= 2 * GROUP * count:
        return least_of_rows(values, min(count, n_columns))
    groups = xp.reshape(values, (n_rows, -1, GROUP))
    _, chosen = least_of_rows(xp.min(groups, axis=2), count)
    inside = chosen[:, :, None] * GROUP + xp.arange(GROUP, dtype=chosen.dtype, device=device)
    inside = xp.reshape(inside, (n_rows, -1))
    least, places = least_of_rows(xp.take_along_axis(values, inside, axis=1), count)
    return least, xp.take_along_axis(inside, places, axis=1)
