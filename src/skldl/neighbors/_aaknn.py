"""`AAKNN`: the mean of the distributions of the k nearest neighbours (algorithm adaptation of k-NN).

For N_k(x), the k training rows nearest to x,

    p(y_j | x) = 1/k Σ_{i ∈ N_k(x)} d_ij,

or the weighted mean if neighbours are weighted by distance or rows have weights. The neighbours for k contain those for
every smaller k, so one search serves all k, and leaving a row out means removing it from its own list.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skldl.base import BaseLDL, kept_rows
from skldl.exceptions import DimensionError, Parameter, ParameterError
from skldl.neighbors._search import DeviceSearch, StableSearch
from skldl.utils.arrays import (
    as_double,
    as_type_of,
    computing_on,
    copy_of,
    is_device_array,
    namespace,
    row_blocks,
    space,
    take_rows,
)
from skldl.utils.parameters import CALLABLE, COUNT, N_JOBS, NONE, Constraint, check_value, one_of
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_features, check_same_space

Weights = str | Callable[[FloatArray], FloatArray]

MAX_COPIED_CELLS = 2**15
"""Up to so many numbers (256 KiB) the neighbours' distributions are copied, which is faster than a sparse product."""


class AAKNN(BaseLDL):
    """Average the label distributions of the nearest neighbours.

    The prediction is the mean of the distributions of the ``n_neighbors`` nearest training rows [1]_. The paper
    specifies neither k, nor the metric, nor the treatment of ties, nor a scaling of the features; its tables on the
    Yeast sets follow from k = 4 with Euclidean distances between the features as they are. Here equal distances are
    ordered by the index of the training row, so a prediction does not depend on the other rows of the batch. Euclidean
    distances are compared as computed from differences; cosine distances that differ by no more than rounding count as
    equal; with other metrics, rounding may separate distances that are equal in theory.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours k. More than the number of training rows is an error, already in ``fit``: reducing it
        silently would make two settings of a search the same model.
    weights : {"uniform", "distance"} or callable, default="uniform"
        "uniform" weights all k neighbours equally; "distance" by the inverse of the distance (if training rows are at
        distance zero, only those count); a callable takes the distances (n_new × k, ascending) and returns weights of
        the same shape.
    metric : str or callable, default="euclidean"
        Any metric that scikit-learn's neighbour search knows, or "precomputed": then ``fit`` takes the distances
        between training rows (n × n) and ``predict`` those from new rows to training rows (n_new × n).
    metric_params : dict, default=None
        Parameters of the metric, such as ``{"p": 3}`` for "minkowski".
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Algorithm of the search; the result is the same.
    n_jobs : int, default=None
        Number of threads of the search.

    Attributes
    ----------
    distributions_ : ndarray of shape (n_samples, n_labels)
        Distributions of the training rows.
    n_samples_fit_ : int
        Number of training rows.
    n_features_in_ : int
        Number of features seen by ``fit``.
    n_labels_ : int
        Number of labels.
    label_names_ : ndarray of str
        Names of the labels.

    Notes
    -----
    ``sample_weight`` multiplies the weights of the neighbours. A row of weight two is not the same as the row twice: a
    copy would take a second of the k places.

    The search works in blocks: memory grows with n_new × k, not with n_new × n_samples.

    With scikit-learn's setting ``array_api_dispatch``, X and y on a device stay there: Euclidean distances only, with
    the same order of ties, and ``distributions_`` is an array of that device.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> from skldl import AAKNN
    >>> X = [[0.0], [1.0], [5.0]]
    >>> D = [[0.2, 0.8], [0.4, 0.6], [0.9, 0.1]]
    >>> model = AAKNN(n_neighbors=2).fit(X, D)
    >>> model.predict([[0.4]])
    array([[0.3, 0.7]])
    >>> model.leave_one_out(max_neighbors=1)[0]
    array([[0.4, 0.6],
           [0.2, 0.8],
           [0.4, 0.6]])
    """

    _array_api = True
    _keeps_rows = True
    _model_parts = (StableSearch,)
    _constraints: ClassVar = {
        "n_neighbors": COUNT,
        "weights": one_of("uniform", "distance") | CALLABLE,
        "metric": Constraint("the name of a metric", lambda value: isinstance(value, str)) | CALLABLE,
        "metric_params": NONE | Constraint("a dict", lambda value: isinstance(value, dict)),
        "algorithm": one_of("auto", "ball_tree", "kd_tree", "brute"),
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Weights = "uniform",
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs

    def predict_all(self, X: Any, max_neighbors: int) -> FloatArray:
        """Predict with every number of neighbours from 1 to ``max_neighbors``, from one search.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_new, n_features)
            Features, in the columns that ``fit`` saw.
        max_neighbors : int
            Largest number of neighbours.

        Returns
        -------
        ndarray of shape (max_neighbors, n_new, n_labels)
            The prediction with k neighbours at position k − 1.
        """
        check_is_fitted(self)
        _check_count("max_neighbors", max_neighbors, self.n_samples_fit_)
        with computing_on(X, "AAKNN.predict_all"):
            return self._averages(*self._nearest(self._check_new(X), max_neighbors), range(1, max_neighbors + 1))

    def leave_one_out(self, max_neighbors: int) -> FloatArray:
        """Predict every training row from all the others, with every number of neighbours up to ``max_neighbors``.

        Exactly what a fit without the row would predict for it: the row itself is left out, its duplicates are not.

        Parameters
        ----------
        max_neighbors : int
            Largest number of neighbours, less than the number of training rows.

        Returns
        -------
        ndarray of shape (max_neighbors, n_samples, n_labels)
            The predictions with k neighbours at position k − 1, in the order of the training rows.
        """
        check_is_fitted(self)
        _check_count("max_neighbors", max_neighbors, self.n_samples_fit_ - 1)
        distances, neighbors = self._search.query(self._training_rows, max_neighbors + 1, exact=self._by_distance())
        if not isinstance(neighbors, np.ndarray):
            return self._averages(*_without_own_row(distances, neighbors), range(1, max_neighbors + 1))
        keep = neighbors != np.arange(len(neighbors))[:, None]
        keep[keep.all(axis=1), -1] = False  # the row is not in its own list, which is full of duplicates of it
        distances, neighbors = (part[keep].reshape(-1, max_neighbors) for part in (distances, neighbors))
        return self._averages(distances, neighbors, range(1, max_neighbors + 1))

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> tuple[FloatArray, IntArray]:
        """Return the distances and indices of the nearest training rows.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_new, n_features)
            Features, in the columns that ``fit`` saw.
        n_neighbors : int, default=None
            How many neighbours; None means as many as ``predict`` uses.

        Returns
        -------
        distances : ndarray of shape (n_new, n_neighbors)
            Ascending distances.
        neighbors : ndarray of shape (n_new, n_neighbors)
            Index of each neighbour among the training rows of positive weight, equal distances by index.
        """
        check_is_fitted(self)
        n_neighbors = self.n_neighbors if n_neighbors is None else n_neighbors
        _check_count("n_neighbors", n_neighbors, self.n_samples_fit_)
        X = self._known_columns(self._check_new(X))
        check_same_space(self, X, self.distributions_)
        return self._search.query(X, n_neighbors, exact=True)

    def _check_training_set(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, FloatArray, FloatArray | None]:
        given = X
        X, D, weight = super()._check_training_set(given, y, sample_weight)
        X, D = _own(X, given), _own(D, y)
        self._columns = None
        if isinstance(self.metric, str) and self.metric == "precomputed":
            if sparse.issparse(X):
                raise TypeError(
                    "X is sparse, but metric='precomputed' needs the distances between all rows: pass a dense X."
                )
            if X.shape[1] != len(y):
                raise DimensionError(
                    f"X has {len(y)} rows and {X.shape[1]} columns, but ",
                    Parameter("metric", self.metric),
                    " needs a square matrix: the distances between all training rows.",
                )
            kept, n_samples = kept_rows(sample_weight, len(D))
            if len(kept) < n_samples:  # rows of weight zero were removed: remove the distances to them too
                self._columns = kept
                X = X[:, kept]
        return X, D, weight

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        _check_count("n_neighbors", self.n_neighbors, X.shape[0])
        if is_device_array(X):
            self._search: Any = DeviceSearch(X, metric=self.metric, metric_params=self.metric_params)
        else:
            self._search = StableSearch(
                X, metric=self.metric, metric_params=self.metric_params, algorithm=self.algorithm, n_jobs=self.n_jobs
            )
        self._training_rows = X
        self.distributions_ = D
        self.n_samples_fit_ = X.shape[0]
        self._row_weight = sample_weight

    def _predict(self, X: Any) -> FloatArray:
        X = self._known_columns(X)
        check_same_space(self, X, self.distributions_)
        by_distance = self._by_distance()  # an unweighted mean does not depend on the order of the neighbours
        distances, neighbors = self._search.query(X, self.n_neighbors, ordered=by_distance, exact=by_distance)
        weights = neighbor_weights(distances, neighbors, self.weights, self._row_weight)
        return average(weights, neighbors, self.distributions_)

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        if param != "n_neighbors":
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        for value in values:
            _check_count("n_neighbors", value, X.shape[0])
        self.set_params(n_neighbors=max(values))
        self._fit(X, D, sample_weight)
        tables = self._averages(*self._nearest(X_new, self.n_neighbors), values)
        yield from (tables[place, ...] for place in range(len(values)))

    def _check_new(self, X: Any) -> Any:
        return check_features(self, X, reset=False, accept_sparse=self._accept_sparse)

    def _known_columns(self, X: Any) -> Any:
        return X if self._columns is None else X[:, self._columns]

    def _by_distance(self) -> bool:
        return callable(self.weights) or self.weights != "uniform"

    def _averages(self, distances: FloatArray, neighbors: IntArray, counts: Sequence[int]) -> FloatArray:
        return averages(distances, neighbors, counts, self.distributions_, self.weights, self._row_weight)

    def _nearest(self, X: Any, n_neighbors: int) -> tuple[FloatArray, IntArray]:
        check_same_space(self, X, self.distributions_)
        return self._search.query(self._known_columns(X), n_neighbors, exact=self._by_distance())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        return tags


def _own(checked: Any, given: Any) -> Any:
    """Copy the checked data, which the model keeps, unless validation already made a copy of what was given."""
    is_new = (
        isinstance(checked, np.ndarray) and isinstance(given, np.ndarray) and not np.may_share_memory(checked, given)
    )
    return checked if is_new else copy_of(checked)


def _check_count(name: str, value: Any, maximum: int) -> None:
    check_value(name, value, COUNT)
    if value > maximum:
        raise ParameterError(
            Parameter(name, value),
            f" is more than the {maximum} rows that can be neighbours (n_samples={maximum}). Choose fewer neighbours "
            "or fit on more rows.",
        )


def _without_own_row(distances: Any, neighbors: Any) -> tuple[Any, Any]:
    """Remove each row from its own neighbours, or the last neighbour if duplicates pushed the row out."""
    xp, device = space(neighbors)
    own = neighbors == xp.arange(neighbors.shape[0], device=device)[:, None]
    last = xp.arange(neighbors.shape[1], device=device) == neighbors.shape[1] - 1
    removed = xp.where(xp.any(own, axis=1, keepdims=True), own, last[None, :])
    order = xp.argsort(xp.astype(removed, xp.int32), axis=1, stable=True)[:, :-1]
    return xp.take_along_axis(distances, order, axis=1), xp.take_along_axis(neighbors, order, axis=1)


def average(weights: Any, neighbors: Any, distributions: Any) -> Any:
    """Weighted mean of the neighbours' distributions."""
    n_new, n_neighbors = neighbors.shape
    n_samples, n_labels = distributions.shape
    if not isinstance(distributions, np.ndarray):
        return _average_on_device(weights, neighbors, distributions)
    if neighbors.size * n_labels <= MAX_COPIED_CELLS:
        total = np.einsum("ij,ijk->ik", weights, distributions.take(neighbors, axis=0))
        return np.asarray(total / weights.sum(axis=1, keepdims=True))
    starts = np.arange(0, n_new * n_neighbors + 1, n_neighbors)
    # a sparse matrix times the distributions makes no copies of them
    chosen = sparse.csr_array((np.ravel(weights), np.ravel(neighbors), starts), shape=(n_new, n_samples))
    return np.asarray(chosen @ distributions / weights.sum(axis=1, keepdims=True))


def _average_on_device(weights: Any, neighbors: Any, distributions: Any) -> Any:
    xp = namespace(distributions)
    n_neighbors, n_labels = neighbors.shape[1], distributions.shape[1]
    parts = []
    for rows in row_blocks(neighbors.shape[0], n_neighbors * n_labels):
        chosen = as_double(take_rows(distributions, xp.reshape(neighbors[rows, ...], (-1,))))
        chosen = xp.reshape(chosen, (-1, n_neighbors, n_labels))
        fraction = weights[rows, ...] / xp.sum(weights[rows, ...], axis=1, keepdims=True)
        parts.append(xp.sum(fraction[:, :, None] * chosen, axis=1))
    return xp.astype(xp.concat(parts), distributions.dtype, copy=False)


def averages(
    distances: Any,
    neighbors: Any,
    counts: Sequence[int],
    distributions: Any,
    weights: Weights,
    row_weight: Any,
) -> Any:
    """Predictions from the first k neighbours for each k in ``counts``, stacked."""
    xp = namespace(distributions)
    if callable(weights):  # it may use a whole row of distances, so it is called for each k
        tables = [
            average(
                neighbor_weights(distances[:, :k], neighbors[:, :k], weights, row_weight),
                neighbors[:, :k],
                distributions,
            )
            for k in counts
        ]
        return xp.stack(tables)
    of_neighbors = neighbor_weights(distances, neighbors, weights, row_weight)
    # running sums over the neighbours: the prediction with k of them costs one division more
    total, total_weight, tables_of = 0.0, 0.0, {}
    for k in range(1, max(counts) + 1):
        weight = of_neighbors[:, k - 1 : k]
        total = total + weight * as_double(take_rows(distributions, neighbors[:, k - 1]))
        total_weight = total_weight + weight
        if k in counts:
            tables_of[k] = as_type_of(total / total_weight, distributions)
    return xp.stack([tables_of[k] for k in counts])


def neighbor_weights(distances: Any, neighbors: Any, weights: Weights, row_weight: Any) -> Any:
    """Weights of the neighbours up to a factor per row: by distance, times the weights of the training rows."""
    xp = namespace(distances)
    if callable(weights):
        found = _check_callable_weights(weights(distances), distances)
    elif weights == "distance":
        nearest = distances[:, :1]
        # nearest / distance instead of 1 / distance, which overflows for tiny distances
        with np.errstate(invalid="ignore"):  # 0/0 where the nearest is at distance zero, replaced at once
            found = xp.where(nearest > 0, nearest / distances, as_double(distances == 0))
    else:
        found = xp.ones_like(distances)
    if row_weight is not None:
        if xp is np:
            of_rows = row_weight[neighbors]
        else:
            of_rows = xp.reshape(take_rows(row_weight, xp.reshape(neighbors, (-1,))), neighbors.shape)
        found = found * (of_rows / xp.max(of_rows, axis=1, keepdims=True))  # tiny weights must not vanish in sums
    return found


def _check_callable_weights(weights: Any, distances: Any) -> Any:
    xp, shape = namespace(distances), tuple(distances.shape)
    weights = np.asarray(weights, dtype=np.float64) if xp is np else as_type_of(weights, distances)
    if tuple(weights.shape) != shape:
        raise ValueError(
            f"weights returned shape {tuple(weights.shape)} for distances of shape {shape}. Return one weight for each."
        )
    if not bool(xp.all(xp.isfinite(weights))) or float(xp.min(weights)) < 0:
        raise ValueError("weights returned negative or infinite numbers or NaN. Return numbers of at least zero.")
    is_positive = xp.any(weights != 0, axis=1)
    if not bool(xp.all(is_positive)):
        row = int(xp.argmin(is_positive if xp is np else xp.astype(is_positive, xp.int32)))
        raise ValueError(f"weights returned zero for all neighbours of row {row}. Give distant neighbours some weight.")
    return weights
