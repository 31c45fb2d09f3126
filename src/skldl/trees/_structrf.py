"""StructRF: a structured random forest for label distributions (Chen et al., 2018).

In each node the distributions of its rows are split into two clusters by 2-means; the numbers of the clusters are then
classes, and the split of the features with the largest information gain about them is taken. Leaves hold the mean
distribution of their rows, and the forest predicts the mean over trees, each grown on a random share of the rows.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from skldl.base import BaseLDL
from skldl.trees._information_gain import RankedColumns, best_split
from skldl.trees._newton_tree import NewtonTree
from skldl.utils.parameters import COUNT, RANDOM_STATE, number
from skldl.utils.typing import FloatArray, IntArray

LARGEST_NUMBER_OF_ROUNDS = 50


def two_clusters(D: FloatArray, weight: FloatArray) -> npt.NDArray[np.bool_]:
    """Split rows into two clusters by weighted 2-means, starting across the direction of largest variance."""
    centred = D - weight @ D / weight.sum()
    axis = np.linalg.eigh(centred.T @ (centred * weight[:, None]))[1][:, -1]
    second = centred @ axis > 0
    for _ in range(LARGEST_NUMBER_OF_ROUNDS):
        if not second.any() or second.all():
            break
        shares = weight * np.array([~second, second])
        other, centre = shares @ D / shares.sum(axis=1, keepdims=True)
        nearer = D @ (centre - other) > 0.5 * (centre @ centre - other @ other)
        if np.array_equal(nearer, second):
            break
        second = nearer
    return second


class StructRF(BaseLDL):
    r"""Structured random forest (StructRF): splits that separate two clusters of distributions.

    In each node the distributions are split by 2-means, and the split :math:`x_k \leq t` with the largest information
    gain about the two clusters is taken. Leaves hold mean distributions; the forest is the mean of its trees.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees.
    max_depth : int, default=20
        Largest depth.
    min_leaf_share : float, default=0.0
        Smallest share of a tree's total weight in a leaf.
    min_split_share : float, default=0.005
        Smallest share of a tree's total weight in a node that is split.
    max_features : float, default=0.33
        Share of the features, drawn anew in each node, among which a split is looked for.
    sampling_share : float, default=0.8
        Share of the rows, drawn without replacement, on which each tree is grown.
    random_state : int, RandomState or None, default=None
        Source of rows and features.

    Attributes
    ----------
    trees_ : list of NewtonTree
        The trees.

    Notes
    -----
    The paper's text was not available: 2-means and information gain follow its citations. python-ldl looks for splits
    among all features, with another gain; ``max_features=1.0`` does the first here.

    References
    ----------
    .. [1] M. Chen, X. Wang, B. Feng and W. Liu, "Structured random forest for label distribution learning",
       Neurocomputing 320, 2018.

    Examples
    --------
    >>> from skldl.trees import StructRF
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]]
    >>> StructRF(5, sampling_share=1.0, max_depth=1, random_state=0).fit(X, D).predict([[0.0], [3.0]])
    array([[0.85, 0.15],
           [0.15, 0.85]])
    """

    _accept_sparse = False

    _onnx = "newton_forest"
    _model_parts = (NewtonTree,)
    _constraints: ClassVar = {
        "n_estimators": COUNT,
        "max_depth": COUNT,
        "min_leaf_share": number(at_least=0, below=1),
        "min_split_share": number(at_least=0, below=1),
        "max_features": number(above=0, at_most=1),
        "sampling_share": number(above=0, at_most=1),
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        max_depth: int = 20,
        min_leaf_share: float = 0.0,
        min_split_share: float = 0.005,
        max_features: float = 0.33,
        sampling_share: float = 0.8,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_leaf_share = min_leaf_share
        self.min_split_share = min_split_share
        self.max_features = max_features
        self.sampling_share = sampling_share
        self.random_state = random_state

    def _fit(self, X: FloatArray, D: FloatArray, sample_weight: FloatArray | None) -> None:
        random = check_random_state(self.random_state)
        weight = np.ones(len(X)) if sample_weight is None else sample_weight / sample_weight.max()
        X = X.astype(np.float64, copy=False)
        self.trees_ = []
        table = RankedColumns.of(X)
        size = max(1, round(self.sampling_share * len(X)))
        for _ in range(self.n_estimators):
            rows = np.arange(len(X)) if size == len(X) else np.sort(random.permutation(len(X))[:size])
            self.trees_.append(
                self._grow(X, D, weight / weight[rows].sum(), rows, table, sample_weight is None, random)
            )

    def _grow(
        self,
        X: FloatArray,
        D: FloatArray,
        weight: FloatArray,
        rows: IntArray,
        table: RankedColumns,
        equal_weights: bool,
        random: np.random.RandomState,
    ) -> NewtonTree:
        tree = NewtonTree()
        n_features = X.shape[1]
        n_columns = max(1, round(self.max_features * n_features))

        def mean(rows: IntArray) -> FloatArray:
            return np.asarray(weight[rows] @ D[rows] / weight[rows].sum())

        waiting = [(tree.add(mean(rows)), rows, 0)]
        while waiting:
            node, rows, depth = waiting.pop()
            if depth >= self.max_depth or len(rows) < 2 or weight[rows].sum() < self.min_split_share:
                continue
            columns = np.arange(n_features)
            if n_columns < n_features:
                columns = np.sort(random.permutation(n_features)[:n_columns])
            w = weight[rows]
            second = two_clusters(D[rows], w)
            if equal_weights:  # best_split counts rows then
                split = best_split(table, rows, second, None, columns, self.min_leaf_share / w[0])
            else:
                split = best_split(table, rows, second, w, columns, self.min_leaf_share)
            gain, column, threshold = split
            if gain <= 0:
                continue
            goes_right = X[rows, column] > threshold
            tree.feature[node], tree.threshold[node] = column, threshold
            parts = rows[~goes_right], rows[goes_right]
            tree.left[node], tree.right[node] = children = tree.add(mean(parts[0])), tree.add(mean(parts[1]))
            waiting += [(child, part, depth + 1) for child, part in zip(children, parts, strict=True)]
        return tree

    def _predict(self, X: FloatArray) -> FloatArray:
        return np.asarray(sum(tree.predict(X) for tree in self.trees_) / len(self.trees_))

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """Forests of different sizes are the first trees of the largest."""
        if param != "n_estimators" or not isinstance(self.random_state, int | np.integer):
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        self.set_params(n_estimators=max(values))._fit(X, D, sample_weight)
        sums = np.cumsum([tree.predict(X_new) for tree in self.trees_], axis=0)
        yield from (sums[value - 1] / value for value in values)
