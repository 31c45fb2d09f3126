"""Nearest neighbours in a reproducible order: training rows at equal distances stay in the order of their index.

Candidates come from scikit-learn's search, or, on few rows and on a device, from a matrix product. Both have two
properties that would make a prediction depend on chance: among equal distances they keep any, and Euclidean distances
by ‖x‖² − 2xᵀy + ‖y‖² carry rounding noise that breaks the tie between two identical rows and changes with the size of
the batch. So a few candidates more than needed are asked for. Where the gaps between consecutive distances exceed a
bound on the noise, the order is proven and nothing more is done. Only for the other rows are the distances computed
again from differences, and sorted by distance, then by index. If a row that is no candidate could still be among the
nearest, more candidates are asked for.

A cosine distance is half the squared Euclidean distance between unit rows, and differences of unit rows are accurate
for nearly parallel rows too, where 1 − cos loses all digits. Dividing a row by its largest number first gives parallel
rows the same unit row. Equal distances from rows that are not parallel can still differ by rounding: consecutive
distances within the error of their computation count as equal, and candidates are asked for until no other row follows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms

from skldl.exceptions import DeviceError, Parameter
from skldl.utils.arrays import as_double, at_least, namespace, row_blocks, space, take_rows, to_numpy
from skldl.utils.typing import FloatArray, IntArray

EUCLIDEAN = ("euclidean", "l2", "sqeuclidean")
MAX_PRODUCT_ROWS = 2**14
"""Up to so many dense training rows, brute-force Euclidean searches are products here. scikit-learn's search takes 2.1
times as long on SJAFFE (fit and predict, 213 rows), 1.5 times on Yeast_alpha (2,465 rows), 2.9 times for a single
row: it prepares and validates more."""
MAX_TREE_FEATURES = 15
"""With more features, scikit-learn's algorithm "auto" means "brute", and no choice by their number is better: for 1,500
queries among 200,000 rows of 50 features a k-d tree takes .12 s instead of .98 if all are combinations of 3, but 4.7 s
if of 8, and 44 s if they are independent; making the tree takes 1.5 s."""
EPS = float(np.finfo(np.float64).eps)
MIN_GROUPED_CELLS = 2**14
"""Up to so many numbers a partial sort of all is faster than one of groups: so it is for one row of Yeast_alpha."""
SPARE = 2
"""Candidates beyond the wanted ones: one shows whether the last one is tied, the next settles a tie of two."""


def is_euclidean(metric: Any, metric_params: dict[str, Any] | None) -> bool:
    """Say whether a metric is the Euclidean distance or its square; not with parameters such as weights of features."""
    params = dict(metric_params or {})
    power = params.pop("p", 2)
    return not params and (metric in EUCLIDEAN or (metric == "minkowski" and power == 2))


class StableSearch:
    """Search for nearest neighbours with ties in the order of the training rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Training rows; distances between them if the metric is "precomputed".
    metric : str or callable
        Any metric of `sklearn.neighbors.NearestNeighbors`.
    metric_params : dict or None
        Parameters of the metric, such as ``{"p": 3}`` for "minkowski".
    algorithm : str
        As in `sklearn.neighbors.NearestNeighbors`.
    n_jobs : int or None
        Number of threads.
    """

    # of 2**14 to 2**20 cells and groups of 8 to 32 these are the fastest on Yeast_alpha, SBU_3DFE and Natural_Scene
    _product_cells, _min_queries = 2**20, 1
    _group = 8  # training rows of which only the nearest is looked at first
    _cells = 2**22  # numbers in other temporary arrays: 32 MiB

    def __init__(
        self,
        X: Any,
        *,
        metric: str | Callable[..., float],
        metric_params: dict[str, Any] | None,
        algorithm: str,
        n_jobs: int | None,
    ) -> None:
        params = dict(metric_params or {})
        power = params.pop("p", 2)
        self._cosine = metric == "cosine" and not params
        self._has_zero_rows = False
        if self._cosine:
            metric, power, (X, is_zero) = "euclidean", 2, unit_rows(X)
            self._has_zero_rows = bool(is_zero.any())
            X = _with_column(X, is_zero) if self._has_zero_rows else X
        self._keep_rows(X, metric, metric_params)
        self._index: NearestNeighbors | None = None
        brute = algorithm == "brute" or (algorithm == "auto" and X.shape[1] > MAX_TREE_FEATURES)
        by_products = self._euclidean and brute and self.n_samples <= MAX_PRODUCT_ROWS and not sparse.issparse(X)
        if not by_products or metric_params:  # only scikit-learn checks the parameters of a metric
            index = NearestNeighbors(
                metric=metric, p=power, metric_params=params or None, algorithm=algorithm, n_jobs=n_jobs
            )
            self._index = index.fit(X)

    def _check_fitted_state(self) -> None:
        """Raise ValueError unless a search from a model file has the rows that its index has."""
        if not (self._index is None or isinstance(self._index, NearestNeighbors)):
            raise ValueError("a neighbour search holds something else")
        if self._index is not None and self._X.shape != self._index._fit_X.shape:
            raise ValueError("a neighbour search has two sets of training rows")
        if self.n_samples != self._X.shape[0]:
            raise ValueError("a neighbour search has another number of training rows")
        if vars(self).keys() & {"_product_cells", "_min_queries", "_group", "_cells"}:
            raise ValueError("a neighbour search sets the sizes of its blocks")

    def _keep_rows(self, X: Any, metric: Any, metric_params: dict[str, Any] | None) -> None:
        """Keep the training rows, and their norms for Euclidean distances."""
        self._X = X
        self.n_samples = X.shape[0]
        self._squared = metric == "sqeuclidean"
        self._euclidean = self._cosine or is_euclidean(metric, metric_params)
        if self._euclidean:
            self._norms = _squared_norms(X)
            self._largest_norm = float(namespace(self._norms).max(self._norms))

    def query(
        self, X: Any, n_neighbors: int, *, ordered: bool = True, exact: bool = False
    ) -> tuple[FloatArray, IntArray]:
        """Return distances and indices of the nearest training rows, nearest first.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_new, n_features)
            Rows to find neighbours of.
        n_neighbors : int
            How many, at most the number of training rows.
        ordered : bool, default=True
            Prove the order among the neighbours too, not only which rows they are.
        exact : bool, default=False
            Compute every returned distance from differences, so that a row is at distance zero from itself.
        """
        if sparse.issparse(X) != sparse.issparse(self._X):
            X = sparse.csr_matrix(X) if sparse.issparse(self._X) else X.toarray()
        if not self._cosine:
            return self._query(X, n_neighbors, ordered=ordered, exact=exact)
        X, is_zero = unit_rows(X)
        X = _with_column(X, np.zeros(X.shape[0])) if self._has_zero_rows else X
        distances, neighbors = self._query(X, n_neighbors, ordered=ordered, exact=exact)
        distances = np.minimum(distances**2 / 2, 2.0)
        distances[is_zero], neighbors[is_zero] = 1.0, np.arange(n_neighbors)  # a row of zeros has no direction
        return distances, neighbors

    def _query(self, X: Any, n_neighbors: int, *, ordered: bool, exact: bool) -> tuple[Any, Any]:
        """`query` for rows that are dense or sparse as the training rows are; cosine distances are Euclidean here."""
        rough, found = self._candidates(X, min(n_neighbors + SPARE, self.n_samples))
        distances, neighbors = self._distances(rough[:, :n_neighbors]), found[:, :n_neighbors]
        if exact and self._euclidean:
            unsure = np.arange(X.shape[0])
        else:
            tied = self._tied(X, rough)[:, 0 if ordered else n_neighbors - 1 : n_neighbors]
            unsure = np.flatnonzero(to_numpy(namespace(tied).any(tied, axis=1)))
        n_candidates, more = rough.shape[1], 8  # 8, 64, 512, … more: rows with many equal distances are rare, but large
        while len(unsure):
            open_rows = []
            for block in row_blocks(len(unsure), n_candidates * X.shape[1], self._cells):
                rows = unsure[block]
                some = take_rows(X, rows)
                if n_candidates == rough.shape[1]:
                    candidates = take_rows(rough, rows), take_rows(found, rows)
                else:
                    candidates = self._candidates(some, n_candidates)
                settled, near, nearest = self._settle(some, *candidates, n_neighbors, exact)
                settled = to_numpy(settled)
                distances = _with_rows(distances, rows, settled, near)
                neighbors = _with_rows(neighbors, rows, settled, nearest)
                open_rows.append(rows[~settled])
            unsure = np.concatenate(open_rows)
            n_candidates, more = min(n_candidates + more, self.n_samples), 8 * more
        return distances, neighbors

    def _candidates(self, X: Any, count: int) -> tuple[Any, Any]:
        """Distances (squared if Euclidean) and indices of the nearest rows, up to rounding noise, ascending."""
        if self._index is None:
            size = max(self._min_queries, self._product_cells // self.n_samples)
            parts = [self._candidates_by_product(X[rows, ...], count) for rows in row_blocks(X.shape[0], 1, size)]
            return _concatenated([part for part, _ in parts]), _concatenated([part for _, part in parts])
        with config_context(assume_finite=True, skip_parameter_validation=True):  # X has been checked
            distances, found = self._index.kneighbors(X, count)
        distances = distances.astype(np.float64, copy=False)
        return distances**2 if self._euclidean and not self._squared else distances, found

    def _candidates_by_product(self, X: Any, count: int) -> tuple[Any, Any]:
        """`_candidates` by ‖x‖² − 2xᵀy + ‖y‖² for all x and blocks of training rows y, in double precision."""
        X = as_double(X)
        norms = _squared_norms(X)
        parts = []
        for rows in row_blocks(self.n_samples, X.shape[0], self._product_cells):
            smallest, found = _smallest(self._products(X, rows), count, self._group)
            parts.append((smallest, found + rows.start))
        smallest, found = (_concatenated(list(part), axis=1) for part in zip(*parts, strict=True))
        if len(parts) > 1:
            smallest, positions = _sorted_smallest(smallest, count)
            found = namespace(found).take_along_axis(found, positions, axis=1)
        return smallest + norms[:, None], found

    def _products(self, X: Any, rows: slice) -> Any:
        """‖y‖² − 2xᵀy: ‖x‖² does not change which y is nearest."""
        products = (-2.0 * X) @ as_double(self._X[rows]).T
        products += self._norms[rows]
        return products

    def _tied(self, X: Any, rough: Any) -> Any:
        """Whether each candidate and the next are too close together to know which is nearer."""
        return rough[:, 1:] - rough[:, :-1] <= 2 * self._noise(X, rough)[:, None]

    def _settle(self, X: Any, rough: Any, found: Any, n_neighbors: int, exact: bool) -> tuple[Any, Any, Any]:
        """Sort candidates by distance and index; say for which rows no other row can be among the nearest."""
        xp = namespace(rough)
        if not self._euclidean:
            distances = rough
        elif exact or xp is not np:
            rows = np.repeat(np.arange(X.shape[0]), found.shape[1])
            distances = xp.reshape(self._measure(X, rows, xp.reshape(found, (-1,))), found.shape)
        else:
            distances, tied = self._distances(rough), self._tied(X, rough)
            cells = np.zeros(rough.shape, dtype=bool)
            cells[:, 1:] |= tied
            cells[:, :-1] |= tied
            distances[cells] = self._measure(X, np.nonzero(cells)[0], found[cells])
        distances, last = self._equal_within_rounding(distances) if self._cosine else (distances, distances)
        order = _order(distances, found)[:, :n_neighbors]
        distances, last, nearest = (xp.take_along_axis(some, order, axis=1) for some in (distances, last, found))
        if found.shape[1] == self.n_samples:
            return xp.ones_like(last[:, 0], dtype=bool if xp is np else xp.bool), distances, nearest
        farthest = last[:, -1] + (2 * self._rounding if self._cosine else 0.0)
        farthest = farthest**2 if self._euclidean and not self._squared else farthest
        # every row that is no candidate is at least as far away as the last candidate, less the noise
        return farthest < rough[:, -1] - self._noise(X, rough), distances, nearest

    def _noise(self, X: Any, rough: Any) -> Any:
        """Bound, for each row of X, on the rounding error of the candidates' distances; zero where it has no products.

        An inner product of q terms is accurate to about q ulp of the product of the norms. Distances that scikit-learn
        computes for rows in single precision have been rounded to it.
        """
        if not self._euclidean:
            return np.zeros(X.shape[0])
        q = X.shape[1] + 8
        noise = 4 * q * EPS * (_squared_norms(X) + self._largest_norm)
        if self._index is not None:
            noise = noise + 4 * max(float(np.finfo(rows.dtype).eps) for rows in (X, self._X)) * rough[:, -1]
        if self._cosine:  # what is not proven to be farther than distances that count as equal
            noise = noise + 2 * self._distances(rough[:, -1]) * self._rounding
        return noise

    def _measure(self, X: Any, rows: IntArray, neighbors: Any) -> Any:
        """Distances between pairs of a row of X and a training row, each computed from the pair alone."""
        if sparse.issparse(X):
            return self._distances(_squared_norms(X[rows].astype(np.float64) - self._X[neighbors]))
        return self._distances(_squared_norms(as_double(take_rows(X, rows)) - take_rows(self._X, neighbors)))

    def _distances(self, rough: Any) -> Any:
        """Distances from the numbers that `_candidates` returns."""
        if not self._euclidean:
            return rough
        squares = at_least(rough, 0.0)  # rounding makes some negative
        return squares if self._squared else namespace(squares).sqrt(squares)

    @property
    def _rounding(self) -> float:
        """Bound on how far rounding moves two equal distances between unit rows apart."""
        return 4 * (self._X.shape[1] + 8) * EPS

    def _equal_within_rounding(self, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest of the consecutive distances that count as equal, for each distance."""
        order = np.argsort(distances, axis=1)
        ascending = np.take_along_axis(distances, order, axis=1)
        positions = np.arange(distances.shape[1])
        begins = np.diff(ascending, axis=1, prepend=-np.inf) > self._rounding
        ends = np.diff(ascending, axis=1, append=np.inf) > self._rounding
        first = np.maximum.accumulate(np.where(begins, positions, 0), axis=1)
        last = np.minimum.accumulate(np.where(ends, positions, positions[-1])[:, ::-1], axis=1)[:, ::-1]
        smallest, largest = np.empty_like(distances), np.empty_like(distances)
        for values, position in ((smallest, first), (largest, last)):
            np.put_along_axis(values, order, np.take_along_axis(ascending, position, axis=1), axis=1)
        return smallest, largest


class DeviceSearch(StableSearch):
    """`StableSearch` for Euclidean distances between rows on a device, where all candidates come from products.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Training rows, on a device.
    metric : str or callable
        "euclidean", "l2", "sqeuclidean", or "minkowski" with p = 2.
    metric_params : dict or None
        Parameters of the metric.
    """

    _product_cells, _min_queries = 2**28, 2**13  # 2 GiB, and enough rows for fast products
    _group = 64  # larger than in NumPy: sorting takes longer there, compared with reading
    _cells = 2**25

    def __init__(self, X: Any, *, metric: Any, metric_params: dict[str, Any] | None) -> None:
        if not is_euclidean(metric, metric_params):
            given = f" with {', '.join(map(str, metric_params))} in metric_params" if metric_params else ""
            raise DeviceError(
                Parameter("metric", metric),
                f"{given} is computed with NumPy alone: on a device choose one of {', '.join(EUCLIDEAN)}, or pass "
                "NumPy arrays.",
            )
        self._metric, self._metric_params = metric, metric_params
        self._cosine, self._index = False, None
        self._keep_rows(X, metric, metric_params)

    def _products(self, X: Any, rows: slice) -> Any:
        # as one product of (−2x, 1) and (y, ‖y‖²): another pass over all pairs would take as long as the product
        xp = namespace(X)
        queries = xp.concat([-2.0 * X, xp.ones_like(X[:, :1])], axis=1)
        return queries @ xp.concat([as_double(self._X[rows, ...]), self._norms[rows, None]], axis=1).T

    def _on_host(self) -> StableSearch:
        """Make the search with NumPy for the same training rows."""
        X = np.asarray(to_numpy(self._X), dtype=np.float64)
        return StableSearch(X, metric=self._metric, metric_params=self._metric_params, algorithm="auto", n_jobs=None)


def _smallest(values: Any, count: int, group: int) -> tuple[Any, Any]:
    """The ``count`` smallest numbers of each row, ascending, and their positions, after one pass over the numbers.

    That pass finds the minimum of each group of columns. The smallest numbers of a row are in the ``count`` groups with
    the smallest minima, and only these groups are searched.
    """
    xp, device = space(values)
    n_rows, n_columns = values.shape
    n_groups = n_columns // group
    if n_groups <= 2 * count or n_rows * n_columns <= MIN_GROUPED_CELLS:  # most groups, or very few numbers
        return _sorted_smallest(values, count)
    whole = n_columns // n_groups * n_groups
    # column j belongs to group j mod n_groups: minima over the middle axis read the memory in its order
    minima = xp.min(xp.reshape(values[:, :whole], (n_rows, -1, n_groups)), axis=1)
    rest = n_columns - whole  # the first groups have one column more
    if rest:
        minima = _concatenated([xp.minimum(minima[:, :rest], values[:, whole:]), minima[:, rest:]], axis=1)
    _, chosen = _sorted_smallest(minima, count)
    members = chosen[:, :, None] + xp.arange(0, n_columns, n_groups, dtype=chosen.dtype, device=device)
    members = xp.reshape(members, (n_rows, -1))
    exists = members < n_columns
    inside = xp.where(exists, xp.take_along_axis(values, xp.where(exists, members, 0), axis=1), xp.inf)
    smallest, positions = _sorted_smallest(inside, count)
    return smallest, xp.take_along_axis(members, positions, axis=1)


def _sorted_smallest(values: Any, count: int) -> tuple[Any, Any]:
    """`_smallest` by a partial sort of each row, or by a full one in libraries without a partial one."""
    xp = namespace(values)
    count = min(count, values.shape[1])
    if hasattr(xp, "topk"):
        smallest, positions = xp.topk(values, count, dim=1, largest=False, sorted=True)
        return smallest, positions
    if xp is np and count < values.shape[1]:
        found = np.argpartition(values, count - 1, axis=1)[:, :count]
        values = np.take_along_axis(values, found, axis=1)
        order = np.argsort(values, axis=1)
        return np.take_along_axis(values, order, axis=1), np.take_along_axis(found, order, axis=1)
    order = xp.argsort(values, axis=1)[:, :count]
    return xp.take_along_axis(values, order, axis=1), order


def _order(distances: Any, found: Any) -> Any:
    """Positions that sort each row by distance, equal distances by index."""
    if isinstance(distances, np.ndarray):
        return np.lexsort((found, distances), axis=1)
    xp = namespace(distances)
    by_index = xp.argsort(found, axis=1)
    order = xp.argsort(xp.take_along_axis(distances, by_index, axis=1), axis=1, stable=True)
    return xp.take_along_axis(by_index, order, axis=1)


def _with_rows(array: Any, rows: IntArray, chosen: npt.NDArray[np.bool_], values: Any) -> Any:
    """Replace the chosen ones among some rows of an array."""
    if isinstance(array, np.ndarray):
        array[rows[chosen]] = values[chosen]
        return array
    source = np.arange(array.shape[0])
    source[rows[chosen]] = array.shape[0] + np.flatnonzero(chosen)  # arrays on devices need not support assignment
    return take_rows(_concatenated([array, values]), source)


def _concatenated(parts: list[Any], axis: int = 0) -> Any:
    if len(parts) == 1:
        return parts[0]
    xp = namespace(parts[0])
    return np.concatenate(parts, axis=axis) if xp is np else xp.concat(parts, axis=axis)


def unit_rows(X: Any) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Divide each row by its norm, in double precision, the same for parallel rows; and say which rows are zero.

    A row is divided by its largest number first. That division is rounded once, so that its result depends on the
    ratios of the row's numbers alone, and no square overflows or vanishes.
    """
    X = X.astype(np.float64)
    if not sparse.issparse(X):
        largest = np.abs(X).max(axis=1)
        is_zero = largest == 0
        X /= np.where(is_zero, 1.0, largest)[:, None]
        X /= np.sqrt(np.where(is_zero, 1.0, _squared_norms(X)))[:, None]
        return X, is_zero
    X = X.tocsr()
    largest = np.ravel(abs(X).max(axis=1).toarray())
    is_zero = largest == 0
    n_cells = np.diff(X.indptr)
    X.data /= np.repeat(np.where(is_zero, 1.0, largest), n_cells)
    X.data /= np.repeat(np.sqrt(np.where(is_zero, 1.0, _squared_norms(X))), n_cells)
    return X, is_zero


def _squared_norms(X: Any) -> Any:
    """‖x‖² of each row, in double precision even for X in single: there a distance would lose all its digits."""
    if sparse.issparse(X):
        return row_norms(X.astype(np.float64), squared=True)
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    xp = namespace(X)
    return xp.concat([xp.sum(as_double(X[rows, ...]) ** 2, axis=1) for rows in row_blocks(X.shape[0], X.shape[1])])


def _with_column(X: Any, column: npt.NDArray[Any]) -> Any:
    """Append a column."""
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(column.astype(np.float64)[:, None])], format="csr")
    return np.column_stack([X, column])
