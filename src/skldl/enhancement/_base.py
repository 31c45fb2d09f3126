"""`LabelEnhancer` and `InductiveEnhancer`: base classes of label enhancement; graph Laplacian and kernel width."""

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skldl.distributions._nearest import nearest_rows
from skldl.distributions._propagation import LabelColumns, as_indicator
from skldl.distributions._tables import frame_like
from skldl.exceptions import DataError
from skldl.utils.mean_mixture import row_weights
from skldl.utils.parameters import check_parameters
from skldl.utils.scaling import standardisation
from skldl.utils.simplex import softmax
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_features, check_same_length

MAX_DISTANCE_ROWS = 2000  # evenly spaced rows whose mean distance sets the width: 2000² distances take 32 MB


class LabelEnhancer(LabelColumns, BaseEstimator):
    """Base class for subclasses that implement ``_enhance(X, L)``, which returns scores of the training rows.

    X is standardised (columns have mean 0 and variance 1, constant ones are 0), and L is a matrix of zeros and ones.
    Distributions are the softmax of the scores, as in the literature.

    Attributes
    ----------
    distributions_ : ndarray of shape (n_samples, n_labels)
        Distributions of the training rows.
    classes_ : list
        Names of the labels.
    n_features_in_ : int
        Number of features.
    """

    _constraints: ClassVar[Any] = {}

    def fit(self, X: Any, y: Any) -> Self:
        """Enhance the labels of the training rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features. They are standardised inside.
        y : indicator matrix, list of sets of labels, or column of labels
            Logical labels, as in `skldl.distributions.from_label_sets` or ``from_labels``.

        Returns
        -------
        self
            The fitted enhancer.
        """
        check_parameters(self)
        if y is None:
            raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X = np.asarray(check_features(self, X, reset=True), dtype=np.float64)
        L, self.classes_ = as_indicator(y)
        check_same_length(X, L)
        self._mean, self._scale = standardisation(X, row_weights(len(X), None))
        self.distributions_ = softmax(self._enhance(self._standardised(X), L))
        return self

    def fit_transform(self, X: Any, y: Any) -> Any:
        """Enhance the labels of the training rows and return their distributions.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        y : indicator matrix, list of sets of labels, or column of labels
            Logical labels.

        Returns
        -------
        ndarray or DataFrame of shape (n_samples, n_labels)
            The distributions; a DataFrame of the same library if y is a DataFrame, unless ``set_output`` was called.
        """
        return frame_like(y, self.fit(X, y).distributions_, self.classes_)

    def _standardised(self, X: FloatArray) -> FloatArray:
        return (X - self._mean) * self._scale

    def _new_rows(self, X: Any) -> FloatArray:
        """Check and standardise new rows."""
        return self._standardised(np.asarray(check_features(self, X, reset=False), dtype=np.float64))

    def _enhance(self, X: FloatArray, L: FloatArray) -> FloatArray:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


class InductiveEnhancer(LabelEnhancer):
    """Base class of enhancers for new rows without labels; subclasses implement ``_score(X)`` of standardised rows."""

    def transform(self, X: Any, y: Any = None) -> FloatArray:
        """Predict the distributions of new rows from their features; their labels are not needed.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        y : ignored
            For compatibility with enhancers that need the labels of new rows.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Rows that sum to one.
        """
        check_is_fitted(self)
        return softmax(self._score(self._new_rows(X)))

    def _score(self, X: FloatArray) -> FloatArray:
        raise NotImplementedError


def neighbours(X: FloatArray, n_neighbors: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Nearest rows of each row, without itself and with all ties: pairs of rows, and their distances."""
    if len(X) < 2:
        nothing = np.empty(0, dtype=np.intp)
        return nothing, nothing, np.empty(0)
    return nearest_rows(NearestNeighbors().fit(X), X, None, min(n_neighbors, len(X) - 1))


def mean_distance(X: FloatArray) -> float:
    """Mean distance between two rows, from at most 2,000 evenly spaced rows of the table; 1 if all rows are equal."""
    rows = X[np.linspace(0, len(X) - 1, min(len(X), MAX_DISTANCE_ROWS)).astype(np.intp)]
    n_rows = len(rows)
    mean = pairwise_distances(rows).sum() / (n_rows * (n_rows - 1)) if n_rows > 1 else 0.0
    return float(mean) if mean > 0 else 1.0


def laplacian(X: FloatArray, n_neighbors: int, width: float) -> Any:
    """Sparse Laplacian of the graph of nearest neighbours, with weights exp(−distance² / 2 width²)."""
    rows, columns, distances = neighbours(X, n_neighbors)
    weights = np.exp(-0.5 * (distances / width) ** 2)
    affinity = sparse.csr_matrix((weights, (rows, columns)), shape=(len(X), len(X)))
    affinity = affinity.maximum(affinity.T).tocsr()  # an edge if either row is a neighbour of the other
    return (sparse.diags(np.asarray(affinity.sum(axis=1)).ravel()) - affinity).tocsr()
