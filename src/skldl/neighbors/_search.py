"""Nearest neighbours in a reproducible order: rows at equal distances are in the order of the training rows.

scikit-learn finds the neighbours. Two of its properties would make a prediction depend on chance: among equal distances
it keeps any, and its fast Euclidean distances, by ‖x‖² − 2xᵀy + ‖y‖², carry rounding noise that breaks the tie between
two identical rows and changes with the size of the batch. Here a few neighbours more than needed are asked for. Where
the gaps between neighbouring distances exceed the noise, the order is proven and nothing more is done; only for the
other rows are the distances of the candidates computed from differences and sorted by distance, then by index, and more
candidates asked for if the last place is still tied.

Cosine distances are half the squares of Euclidean distances between unit rows, which differences give exactly enough
for rows that are nearly parallel, too. Dividing a row by its largest number first gives parallel rows the same unit
row. Equal distances from rows that are not parallel can still differ by rounding: distances that follow each other
within the error of their computation count as equal, and candidates are asked for until no other row follows them.

Small Euclidean searches are done here, by one matrix product and a partial sort: scikit-learn takes longer to prepare
such a search than to run it.
"""

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms

from skldl.neighbors._filter import LARGEST_NORM, LEAST_ROWS, MOST_FEATURES, LowerBoundFilter
from skldl.utils import arrays
from skldl.utils.typing import FloatArray, IntArray

BLOCK_CELLS = 2**22
"""Temporary arrays hold at most about this many numbers (32 MiB)."""
DIRECT_CELLS = 2**14
"""Up to so many distances between dense rows are computed by one matrix product."""
GROUPED_CELLS = 2**20
"""Distances from several rows to at most DIRECT_CELLS others are computed so many at a time, and searched by groups."""
GROUPS_PER_NEIGHBOR, MOST_IN_GROUP = 16, 16
"""Least number of training rows for each neighbour in that search, and the size of the groups."""
LEAST_QUERIES = 32
"""For fewer rows the filter of large searches is not made."""
MOST_FEATURES_OF_TREES = 15
"""With more features, scikit-learn's algorithm "auto" means "brute"."""
SPARE = 2
"""Candidates asked for beyond the wanted ones: one shows whether the last place is tied, the next settles a pair."""


EUCLIDEAN = ("euclidean", "l2", "sqeuclidean")


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
        self.n_samples = X.shape[0]
        self._cosine = metric == "cosine" and not params
        if self._cosine:
            directions, is_zero = unit_rows(X)
            self._has_zero_rows = bool(is_zero.any())
            X = _with_column(directions, is_zero) if self._has_zero_rows else directions
        self._X = X
        self._index = NearestNeighbors(
            metric="euclidean" if self._cosine else metric,
            p=2 if self._cosine else power,
            metric_params=params or None,
            algorithm=algorithm,
            n_jobs=n_jobs,
        )
        self._squared = metric == "sqeuclidean"
        self._euclidean = self._cosine or is_euclidean(metric, metric_params)
        self._direct = self._euclidean and not sparse.issparse(X)
        brute = algorithm == "brute" or (algorithm == "auto" and X.shape[1] > MOST_FEATURES_OF_TREES)
        if not (self._direct and brute and not metric_params):  # else scikit-learn has nothing to prepare or to refuse
            self._fit_index()
            self._direct = self._direct and self._index._fit_method == "brute"
        self._filter: LowerBoundFilter | None = None  # made when it is first needed, and not kept in files
        if self._euclidean:
            self._find_norms()

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

    def _query(self, X: Any, n_neighbors: int, *, ordered: bool, exact: bool) -> tuple[FloatArray, IntArray]:
        """The same for rows of the same kind as the training rows, by the distance of the search itself."""
        rough, found = self._candidates(X, min(n_neighbors + SPARE, self.n_samples))
        if self._euclidean and not np.isfinite(rough).all():
            row = int(np.argmin(np.isfinite(rough).all(axis=1)))
            raise ValueError(
                f"Row {row} of X is too far from the training rows: the squares of its distances overflow. Use another "
                "unit for the features, or scale them."
            )
        distances, neighbors = rough[:, :n_neighbors].astype(np.float64), found[:, :n_neighbors].copy()
        if exact and self._euclidean:
            unsure = np.arange(X.shape[0])
        else:
            tied = self._tied(X, rough)[:, 0 if ordered else n_neighbors - 1 : n_neighbors]
            unsure = np.flatnonzero(tied.any(axis=1))
        n_candidates, more = rough.shape[1], 8
        while len(unsure):
            open_rows = []
            for block in row_blocks(len(unsure), n_candidates * X.shape[1]):
                rows = unsure[block]
                if n_candidates == rough.shape[1]:
                    candidates = rough[rows], found[rows]
                else:
                    candidates = self._candidates(X[rows], n_candidates)
                settled, *nearest = self._settle(X[rows], *candidates, n_neighbors, exact)
                distances[rows[settled]], neighbors[rows[settled]] = nearest[0][settled], nearest[1][settled]
                open_rows.append(rows[~settled])
            unsure = np.concatenate(open_rows)
            n_candidates, more = min(n_candidates + more, self.n_samples), 8 * more
        return distances, neighbors

    def _candidates(self, X: Any, n_neighbors: int) -> tuple[FloatArray, IntArray]:
        """What scikit-learn finds; X has been checked, so it need not look again."""
        if self._direct and X.shape[0] * self.n_samples <= DIRECT_CELLS:
            return self._direct_candidates(X, n_neighbors, _first_of_all)
        found = self._filtered_candidates(X, n_neighbors)
        if found is not None:
            return found
        if self._direct and GROUPS_PER_NEIGHBOR * n_neighbors <= self.n_samples <= DIRECT_CELLS:
            extended = None
            if X.shape[0] > 2 * self._X.shape[1] and self._X.size <= GROUPED_CELLS:
                extended = np.column_stack([self._X, self._norms]).T
            parts = [
                self._direct_candidates(X[block], n_neighbors, _first_of_groups, extended)
                for block in row_blocks(X.shape[0], self.n_samples, GROUPED_CELLS)
            ]
            return np.concatenate([part for part, _ in parts]), np.concatenate([part for _, part in parts])
        self._fit_index()
        with config_context(assume_finite=True, skip_parameter_validation=True):
            distances, neighbors = self._index.kneighbors(X, n_neighbors)
        return distances, neighbors

    def _find_norms(self) -> None:
        self._norms = _squared_norms(self._X)
        self._largest_norm = float(self._norms.max())

    def _fit_index(self) -> None:
        """Fit scikit-learn's search if it is not fitted: one whose distances are all computed here may not need it."""
        if not hasattr(self._index, "_fit_X"):
            self._index = copy(self._index).fit(self._X)  # another thread never sees a search that is half fitted

    def _filtered_candidates(self, X: Any, n_neighbors: int) -> tuple[FloatArray, IntArray] | None:
        """The same for many rows among very many; None where it does not pay."""
        if not self._direct or X.shape[0] < LEAST_QUERIES or self.n_samples < max(LEAST_ROWS, 16 * n_neighbors):
            return None
        if self._X.shape[1] > MOST_FEATURES or not self._largest_norm < LARGEST_NORM:
            return None
        if self._filter is None:
            self._filter = LowerBoundFilter(self._X)
        found = self._filter.query(X, n_neighbors)
        if found is None:
            return None
        return (found[0] if self._squared else np.sqrt(found[0])), found[1]

    def __getstate__(self) -> dict[str, Any]:
        self._fit_index()  # what is in a file does not depend on the predictions that were made before
        return {**self.__dict__, "_filter": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_unit" in state:  # of a version that searched by cosine distances
            index = state["_index"]
            options = {"metric": "cosine", "metric_params": None, "algorithm": index.algorithm, "n_jobs": index.n_jobs}
            state = StableSearch(state["_X"], **options).__getstate__()
        self.__dict__.update({"_direct": False, "_filter": None} | state)  # files of version 0.1 have neither
        if self._euclidean:  # those of older files may have been computed in single precision
            self._find_norms()

    def _direct_candidates(
        self,
        X: FloatArray,
        n_neighbors: int,
        first: Callable[[FloatArray, int], tuple[FloatArray, IntArray]],
        extended: FloatArray | None = None,
    ) -> tuple[FloatArray, IntArray]:
        """The same by ‖x‖² − 2xᵀy + ‖y‖² for all pairs at once; ``first`` finds the least numbers of each row.

        ``extended`` holds the training rows and their squared norms, transposed: the product then adds the norms, which
        is quicker than another pass over all pairs.
        """
        X = np.asarray(X, dtype=np.float64)
        if extended is None:
            squares: FloatArray = (-2.0 * X) @ self._X.T.astype(np.float64, copy=False)
            squares += self._norms
        else:
            squares = np.column_stack([-2.0 * X, np.ones(len(X))]) @ extended
        nearest, found = first(squares, n_neighbors)
        nearest += _squared_norms(X)[:, None]
        np.maximum(nearest, 0.0, out=nearest)
        return (nearest if self._squared else np.sqrt(nearest, out=nearest)), found

    def _settle(
        self, X: Any, rough: FloatArray, found: IntArray, n_neighbors: int, exact: bool
    ) -> tuple[npt.NDArray[np.bool_], FloatArray, IntArray]:
        """Sort candidates by distance and index; say for which rows no other row can be among the nearest."""
        distances: FloatArray = rough.astype(np.float64)
        if self._euclidean:
            tied = self._tied(X, rough)
            cells = np.full(rough.shape, exact)
            cells[:, 1:] |= tied
            cells[:, :-1] |= tied
            distances[cells] = self._measure(X, np.nonzero(cells)[0], found[cells])
        distances, last = self._equal_within_rounding(distances) if self._cosine else (distances, distances)
        order = np.lexsort((found, distances), axis=1)[:, :n_neighbors]
        distances, last = (np.take_along_axis(some, order, axis=1) for some in (distances, last))
        reach = self._key(rough[:, -1]) - self._noise(X, rough)  # every other row is at least this far
        farthest = last[:, -1] + (2 * self._rounding if self._cosine else 0.0)
        settled = (self._key(farthest) < reach) | (found.shape[1] == self.n_samples)
        return settled, distances, np.take_along_axis(found, order, axis=1)

    @property
    def _rounding(self) -> float:
        """Bound on how far rounding moves two equal distances between unit rows apart."""
        return float(4 * (self._X.shape[1] + 8) * np.finfo(np.float64).eps)

    def _equal_within_rounding(self, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each distance the least and the largest of those that follow each other within the rounding error."""
        order = np.argsort(distances, axis=1)
        ascending = np.take_along_axis(distances, order, axis=1)
        places = np.arange(distances.shape[1])
        begins = np.diff(ascending, axis=1, prepend=-np.inf) > self._rounding
        ends = np.diff(ascending, axis=1, append=np.inf) > self._rounding
        first = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
        last = np.minimum.accumulate(np.where(ends, places, places[-1])[:, ::-1], axis=1)[:, ::-1]
        least, largest = np.empty_like(distances), np.empty_like(distances)
        for found, place in ((least, first), (largest, last)):
            np.put_along_axis(found, order, np.take_along_axis(ascending, place, axis=1), axis=1)
        return least, largest

    def _tied(self, X: Any, rough: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether each candidate and the next are too close together to know which is nearer."""
        return np.asarray(np.diff(self._key(rough), axis=1) <= 2 * self._noise(X, rough)[:, None])

    def _key(self, distances: FloatArray) -> FloatArray:
        """Distances in the unit in which the noise is known: squared for Euclidean ones."""
        return distances**2 if self._euclidean and not self._squared else distances

    def _noise(self, X: Any, distances: FloatArray) -> FloatArray:
        """Bound, for each row of X, on the rounding error of scikit-learn's distances; zero where it forms no product.

        Inner products of q terms are exact to about q ulp of the norms; for features in single precision the result has
        been rounded to that, whatever type it comes in.
        """
        eps = max(np.finfo(kind.dtype).eps for kind in (X, self._X, distances))
        rounded = 4 * eps * self._key(distances[:, -1])
        if not self._euclidean:
            return np.zeros(X.shape[0])
        if self._cosine:  # what is not proven to be farther than distances that count as equal
            rounded = rounded + 2 * distances[:, -1] * self._rounding
        norms = _squared_norms(X) + self._largest_norm
        return np.asarray(rounded + 4 * (X.shape[1] + 8) * np.finfo(np.float64).eps * norms)

    def _measure(self, X: Any, rows: IntArray, neighbors: IntArray) -> FloatArray:
        """Distances between pairs of a row of X and a training row, each computed from the pair alone."""
        difference = X[rows].astype(np.float64) - self._X[neighbors]
        squares = _sums_of_products(difference, difference)
        return squares if self._squared else np.sqrt(squares)


def _first_of_all(values: FloatArray, count: int) -> tuple[FloatArray, IntArray]:
    """The least numbers of each row, ascending, and their places, by a partial sort."""
    found = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    if count < values.shape[1]:
        found = np.argpartition(values, count - 1, axis=1)[:, :count]
    least = np.take_along_axis(values, found, axis=1)
    order = np.argsort(least, axis=1)
    return np.take_along_axis(least, order, axis=1), np.take_along_axis(found, order, axis=1)


def _first_of_groups(values: FloatArray, count: int) -> tuple[FloatArray, IntArray]:
    """The same, quicker on long rows: the count-th least among the minima of groups of places is a bound.

    So many groups hold a number of at most that size. Few other numbers do, and only they are sorted.
    """
    n_rows, n_places = values.shape
    n_groups = n_places // min(MOST_IN_GROUP, n_places // (GROUPS_PER_NEIGHBOR // 2 * count))
    rest = n_places % n_groups  # the first groups have one place more
    minima = values[:, : n_places - rest].reshape(n_rows, -1, n_groups).min(axis=1)
    np.minimum(minima[:, :rest], values[:, n_places - rest :], out=minima[:, :rest])
    bound = np.partition(minima, count - 1, axis=1)[:, count - 1 : count]
    rows, groups = np.divmod(np.flatnonzero(minima <= bound), n_groups)
    places = groups[:, None] + np.arange(0, n_places, n_groups)
    members = values.take(rows[:, None] * n_places + places, mode="clip")
    chosen = np.flatnonzero((members <= bound[rows]) & (places < n_places))
    rows, places, small = rows[chosen // places.shape[1]], places.ravel()[chosen], members.ravel()[chosen]
    order = np.lexsort((places, small, rows))
    kept = order[np.searchsorted(rows, np.arange(n_rows))[:, None] + np.arange(count)]
    return small[kept], places[kept]


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


def _with_column(X: Any, column: npt.NDArray[Any]) -> Any:
    """Append a column."""
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(column.astype(np.float64)[:, None])], format="csr")
    return np.column_stack([X, column])


def _squared_norms(X: Any) -> FloatArray:
    """‖x‖² of each row, in double precision whatever that of X: in single precision distances would lose all digits."""
    if sparse.issparse(X):
        return row_norms(X.astype(np.float64), squared=True)
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _sums_of_products(left: Any, right: Any) -> FloatArray:
    """Inner product of each row on the left with the row on the right."""
    if sparse.issparse(left):
        return np.asarray(left.multiply(right).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", left, right))


def row_blocks(n_rows: int, cells_per_row: int, cells: int | None = None) -> Iterator[slice]:
    """Cut the rows into blocks of a bounded number of cells, `BLOCK_CELLS` if not given."""
    return arrays.row_blocks(n_rows, cells_per_row, BLOCK_CELLS if cells is None else cells)
