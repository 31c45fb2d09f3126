r"""KM: label enhancement by distances in a kernel's space (Jiang, Yi and Lv, 2006).

With the kernel K and the n_j rows S_j that carry label j, the squared distance of x to the centre of the label is

    s_j²(x) = K(x, x) − (2/n_j) Σ_{i ∈ S_j} K(x, x_i) + (1/n_j²) Σ_{i, i' ∈ S_j} K(x_i, x_i'),

and its radius r_j is the largest distance of a row of S_j. A relevant label has the score 1 − √(s_j² / (r_j² + δ)), an
irrelevant one 0; the distribution is the softmax. All distances follow from the product K L, computed in blocks.
"""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldl.distributions._labels import membership
from skldl.distributions._tables import frame_like
from skldl.enhancement._base import LabelEnhancer, mean_distance
from skldl.kernel._kernels import kernel_times
from skldl.utils.parameters import NONE, POSITIVE
from skldl.utils.simplex import softmax
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_same_length


class KM(LabelEnhancer):
    """Label enhancement by the distance to the centre of each label in the space of a Gaussian kernel.

    Parameters
    ----------
    width : float, default=None
        Width σ of the kernel exp(−‖x − x'‖² / 2σ²), in standardised features; None means the mean distance.
    delta : float, default=1e-3
        Added to the squared radius, which is 0 if all rows of a label are equal.

    Attributes
    ----------
    distributions_ : ndarray of shape (n_samples, n_labels)
        Distributions of the training rows.
    radii_ : ndarray of shape (n_labels,)
        Radius of each label.
    width_ : float
        Width in use.
    classes_ : list
        Names of the labels.

    Notes
    -----
    Time grows with the square of the number of rows (50,000 rows took 34 CPU seconds, so that 500,000 take an hour);
    memory does not, since the kernel matrix is computed in blocks.

    References
    ----------
    .. [1] X. Jiang, Z. Yi and J. C. Lv, "Fuzzy SVM with a new fuzzy membership function", Neural Computing and
       Applications 15, 2006.

    Examples
    --------
    >>> from skldl.enhancement import KM
    >>> X = [[0.0], [0.1], [0.2], [3.0], [3.1], [3.2]]
    >>> L = [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1]]
    >>> KM().fit_transform(X, L).round(2)[2]
    array([0.53, 0.47])
    """

    _constraints: ClassVar = {"width": NONE | POSITIVE, "delta": POSITIVE}

    def __init__(self, width: float | None = None, *, delta: float = 1e-3) -> None:
        self.width = width
        self.delta = delta

    def _enhance(self, X: FloatArray, L: FloatArray) -> FloatArray:
        self._X, self._L = X, L.copy()  # an indicator matrix may be the array of the caller
        self.width_ = self.width or mean_distance(X)
        self._count = np.maximum(L.sum(axis=0), 1.0)  # a label without rows must not divide by zero
        means = self._means(X)
        self._norm = (L * means).sum(axis=0) / self._count
        squares = self._squares(means)
        self.radii_ = np.sqrt(np.where(L > 0, squares, 0.0).max(axis=0))
        return self._scores(squares, L)

    def transform(self, X: Any, y: Any) -> Any:
        """Enhance the labels of new rows by the centres of the training rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        y : indicator matrix or list of sets of labels
            Logical labels of the new rows, among those that ``fit`` saw.

        Returns
        -------
        ndarray or DataFrame of shape (n_samples, n_labels)
            Rows that sum to one.
        """
        check_is_fitted(self)
        rows = self._new_rows(X)
        # an indicator matrix has no names: its columns are those that fit saw
        is_plain = hasattr(y, "shape") and not hasattr(y, "columns")
        L, names = membership(y, None if is_plain else self.classes_, name="y")
        check_same_length(rows, L)
        return frame_like(y, softmax(self._scores(self._squares(self._means(rows)), L)), names)

    def _means(self, X: FloatArray) -> FloatArray:
        """Mean kernel value between each row and the training rows of each label."""
        return kernel_times("rbf", X, self._X, self.width_, self._L) / self._count

    def _squares(self, means: FloatArray) -> FloatArray:
        """Squared distances to the centres; negative only by rounding."""
        return np.maximum(1.0 - 2.0 * means + self._norm, 0.0)

    def _scores(self, squares: FloatArray, L: FloatArray) -> FloatArray:
        return np.where(L > 0, 1.0 - np.sqrt(squares / (self.radii_**2 + self.delta)), 0.0)
