r"""`PropagationEnhancer`: degrees for multi-label data, by propagation over a graph of the instances.

With the affinity A over the instances (zero on the diagonal), the matrix Δ of its row sums, P = Δ^{-1/2} A Δ^{-1/2}
and the indicator matrix L, Li, Zhang and Geng (2015) iterate F ← α P F + (1 − α) L. The limit is

.. math:: F = (1 - \alpha) (I - \alpha P)^{-1} L

The eigenvalues of P lie in [−1, 1], so I − αP is positive definite with a condition number of at most
(1 + α)/(1 − α): conjugate gradients solve it to the last digits in a few dozen products, with no fill-in.
"""

from typing import Any, ClassVar, Self

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import cg
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skldl.distributions._labels import holds_sets, label_codes, membership
from skldl.distributions._nearest import nearest_rows
from skldl.distributions._tables import frame_like, library
from skldl.exceptions import DataError, MissingLabelError, Parameter, ZeroRowError
from skldl.utils.parameters import COUNT, NONE, POSITIVE, check_parameters, number
from skldl.utils.typing import AnyArray, FloatArray
from skldl.utils.validation import check_features, check_same_length, reject_lazy, reject_masked

MIN_DISTANCE = float(np.finfo(np.float64).tiny)  # stands for the distance 0 of copies in a sparse matrix


def _affinity(distances: Any, bandwidth: float) -> Any:
    """exp(−distance² / 2σ²), of a matrix of distances or of the stored entries of a sparse one."""
    if sparse.issparse(distances):
        affinity = distances.copy()
        affinity.data = np.exp(-0.5 * (distances.data / bandwidth) ** 2)
        return affinity
    return np.exp(-0.5 * (distances / bandwidth) ** 2)


def _median_distance(distances: Any) -> float:
    """Median of the distances between different rows; 1 where there are none."""
    values = distances.data if sparse.issparse(distances) else distances
    apart = values[values > MIN_DISTANCE]
    return float(np.median(apart)) if apart.size else 1.0


def _inverse_root(degree: FloatArray) -> FloatArray:
    """Degrees of the graph to the power −1/2; 0 for a row without neighbours."""
    return np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)


def propagate(affinity: Any, L: FloatArray, alpha: float) -> FloatArray:
    """Solve (I − αP) F = (1 − α) L, with a sparse or a dense affinity."""
    n_samples = L.shape[0]
    root = _inverse_root(np.asarray(affinity.sum(axis=1), dtype=np.float64).ravel())
    if not sparse.issparse(affinity):
        system = np.eye(n_samples) - alpha * (root[:, None] * affinity * root[None, :])
        return np.maximum(linalg.solve(system, (1 - alpha) * L, assume_a="pos"), 0.0)
    scaling = sparse.diags(root)
    system = (sparse.identity(n_samples) - alpha * (scaling @ affinity @ scaling)).tocsr()
    F = np.empty_like(L)
    for label in range(L.shape[1]):
        # 1e-12: degrees are right to more digits than anybody compares, at a few products more
        F[:, label], failed = cg(system, (1 - alpha) * L[:, label], rtol=1e-12, atol=0.0)
        if failed:
            raise DataError(f"The propagation of label {label} did not converge. Choose a smaller alpha.")
    return np.maximum(F, 0.0)


class LabelColumns(TransformerMixin):
    """Base class of transformers whose columns are the labels ``classes_``; scikit-learn adds ``set_output``."""

    classes_: list[Any]

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the names of the labels, which are the columns after ``set_output(transform=...)``.

        Parameters
        ----------
        input_features : ignored
            There for scikit-learn.

        Returns
        -------
        ndarray of str of shape (n_labels,)
            The names.
        """
        check_is_fitted(self)
        return np.array([str(name) for name in self.classes_], dtype=object)


class PropagationEnhancer(LabelColumns, BaseEstimator):
    r"""Turn sets of labels into distributions by propagation over a graph of the instances.

    Labels spread between instances with similar features: a label that the neighbours have too gets a higher
    degree, an isolated one a lower degree, and labels that only the neighbours have get some mass. The result

    .. math:: F = (1 - \alpha) (I - \alpha \Delta^{-1/2} A \Delta^{-1/2})^{-1} L, \qquad
        A_{ij} = e^{-\lVert x_i - x_j \rVert^2 / 2 \sigma^2}

    is divided by its row sums [1]_. It is solved in closed form, not by repeated products.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of the neighbours against an instance's own labels, in [0, 1); with 0 each label has ``1/|Y|``.
    n_neighbors : int or None, default=10
        Number of nearest neighbours of each instance in the graph (i and j are adjacent if one of them is among the
        neighbours of the other). All instances at the same distance as the last of them are neighbours, too, so that
        the result depends neither on the order of the rows nor on whether X is sparse. With None all instances are
        adjacent, with a dense matrix of n_samples².
    bandwidth : float or None, default=None
        σ of the affinity. None uses the median distance of adjacent rows, without copies.

    Attributes
    ----------
    distributions_ : ndarray of shape (n_samples, n_labels)
        Distributions of the training rows.
    bandwidth_ : float
        σ in use.
    classes_ : list
        Names of the labels.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    ``fit_transform(X, Y)`` returns ``distributions_``, in which an instance's own labels take part. ``transform(X)``
    is for new rows without labels: each takes the affinity-weighted mean of the propagated degrees of its neighbours
    in the training set, the same equation with L = 0 for the new row. So ``fit(X, Y).transform(X)`` differs from
    ``fit_transform(X, Y)``.

    References
    ----------
    .. [1] Y.-K. Li, M.-L. Zhang and X. Geng, "Leveraging implicit relative labeling-importance information for
       effective multi-label learning", ICDM 2015.

    Examples
    --------
    >>> from skldl.distributions import PropagationEnhancer
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> Y = [[1, 1], [1, 0], [0, 1], [0, 1]]
    >>> PropagationEnhancer(n_neighbors=1).fit_transform(X, Y).round(3)
    array([[0.6 , 0.4 ],
           [0.75, 0.25],
           [0.  , 1.  ],
           [0.  , 1.  ]])
    """

    _constraints: ClassVar = {
        "alpha": number(at_least=0, below=1, hint="it is the weight of the neighbours"),
        "n_neighbors": NONE | COUNT,
        "bandwidth": NONE | POSITIVE,
    }

    def __init__(self, alpha: float = 0.5, n_neighbors: int | None = 10, bandwidth: float | None = None) -> None:
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth

    def fit(self, X: Any, y: Any) -> Self:
        """Propagate the labels of the training rows.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features; scale them first if their units differ.
        y : indicator matrix, list of sets of labels, or column of labels
            As in `from_label_sets` or `from_labels`. A row without labels has those of its neighbours.

        Returns
        -------
        self
            The fitted enhancer.
        """
        check_parameters(self)
        if y is None:
            raise DataError("PropagationEnhancer requires y to be passed, but the target y is None.")
        X = check_features(self, X, reset=True, accept_sparse=True)
        L, self.classes_ = as_indicator(y)
        check_same_length(X, L)
        self._X = X
        self._neighbors = NearestNeighbors().fit(X)
        distances = self._graph(X)
        self.bandwidth_ = self.bandwidth or _median_distance(distances)
        affinity = _affinity(distances, self.bandwidth_)
        if not sparse.issparse(affinity):
            np.fill_diagonal(affinity, 0.0)
        self._root = _inverse_root(np.asarray(affinity.sum(axis=1), dtype=np.float64).ravel())
        self._propagated = propagate(affinity, L, self.alpha)
        self.distributions_ = _normalized(self._propagated)
        return self

    def fit_transform(self, X: Any, y: Any) -> Any:
        """Propagate the labels of the training rows and return their distributions.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        y : indicator matrix, list of sets of labels, or column of labels
            As in `fit`.

        Returns
        -------
        ndarray or DataFrame of shape (n_samples, n_labels)
            The distributions; a DataFrame y gives a DataFrame of the same library, unless ``set_output`` was called.
        """
        self.fit(X, y)
        return frame_like(y, self.distributions_, self.classes_)

    def transform(self, X: Any, y: Any = None) -> FloatArray:
        """Predict the distributions of new rows, without labels, from their neighbours in the training set.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        y : ignored
            For compatibility with enhancers that need the labels of new rows.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Rows that sum to one.
        """
        check_is_fitted(self)
        X = check_features(self, X, reset=False, accept_sparse=True)
        # a training row without neighbours has degree zero; as a neighbour of a new row its labels still count
        scaled_degrees = np.where(self._root > 0, self._root, 1.0)[:, None] * self._propagated
        if self.n_neighbors is None:
            exponent = -0.5 * (pairwise_distances(X, self._X) / self.bandwidth_) ** 2
            return _normalized(np.exp(exponent - exponent.max(axis=1, keepdims=True)) @ scaled_degrees)
        n_neighbors = min(self.n_neighbors, len(self._root))
        rows, columns, distances = nearest_rows(self._neighbors, self._X, X, n_neighbors)
        exponent = -0.5 * (distances / self.bandwidth_) ** 2
        highest = np.full(X.shape[0], -np.inf)
        # relative to the nearest row: far from all rows the affinities would underflow
        np.maximum.at(highest, rows, exponent)
        affinity = np.exp(exponent - highest[rows])
        weights = sparse.csr_matrix((affinity, (rows, columns)), shape=(X.shape[0], len(scaled_degrees)))
        return _normalized(weights @ scaled_degrees)

    def _graph(self, X: Any) -> Any:
        """Distances between adjacent rows: a sparse matrix for nearest neighbours, a dense one for all."""
        if self.n_neighbors is None:
            return pairwise_distances(X)
        n_samples = X.shape[0]
        n_adjacent = min(self.n_neighbors, n_samples - 1)
        if n_adjacent == 0:
            return sparse.csr_matrix((n_samples, n_samples))
        rows, columns, distances = nearest_rows(self._neighbors, X, None, n_adjacent)
        # a distance of zero, between copies of a row, is an edge as well: it must not vanish from the sparse matrix
        stored = np.maximum(distances, MIN_DISTANCE)
        graph = sparse.csr_matrix((stored, (rows, columns)), shape=(n_samples, n_samples))
        return graph.maximum(graph.T).tocsr()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def as_indicator(y: Any) -> tuple[FloatArray, list[Any]]:
    """Sets of labels as they are; a column of single labels as sets of one."""
    reject_lazy(y, name="y")
    reject_masked(y, name="y", error=MissingLabelError)
    if hasattr(y, "__array__") and not library(y):
        y = np.asarray(y)
    if holds_sets(y):
        return membership(y, None, name="y")
    codes, names = label_codes(y, None, name="y")
    return np.eye(len(names))[codes], names


def _normalized(F: FloatArray) -> FloatArray:
    """Divide rows by their sums."""
    totals = F.sum(axis=1, keepdims=True)
    if not totals.all():
        row = int(np.argmin(totals))
        raise ZeroRowError(
            f"Row {row} holds no label, and its neighbours have none. Remove the row, or choose larger ",
            Parameter("n_neighbors"),
            " or ",
            Parameter("bandwidth"),
            ".",
            row=row,
        )
    return np.asarray(F / totals)
