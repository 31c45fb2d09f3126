"""Boosting with scikit-learn alone: one tree per round serves all labels, its leaves hold a vector of scores."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from skldl.trees._boosting_fold import BoostingSettings, derivatives, divergences, log_mean
from skldl.trees._flat_trees import FlatTrees
from skldl.utils.typing import FloatArray, IntArray


class VectorLeafFold:
    r"""A model boosted on the training rows of one fold by multi-output regression trees.

    The gain of a split in the second-order expansion of the loss is :math:`\sum_j G_j^2 / H_j` over both sides. A
    regression tree maximises :math:`\sum_j (\sum_i t_{ij})^2 / n` for targets t, which is nearly the same for
    :math:`t_{ij} = -g_{ij} / \sqrt{\bar h_j}`, with the mean Hessian of each label. The values of the leaves are then
    exact Newton steps with penalty, shrunk by the learning rate.

    Parameters are those of `skldl.trees._boosting_fold.Fold`.
    """

    def __init__(
        self,
        X: Any,
        D: FloatArray,
        weight: FloatArray,
        train: IntArray,
        test: IntArray,
        settings: BoostingSettings,
        seed: int,
    ) -> None:
        self.settings = settings
        self.random = np.random.RandomState(seed)
        self.X, self.X_test = X[train], X[test]
        self.X_columns = self.X
        if sparse.issparse(X):
            self.X_columns = self.X.tocsc()
            self.X_columns.sort_indices()
        self.has_missing = not sparse.issparse(X) and bool(np.isnan(self.X).any())
        self.D, self.D_test = D[train], D[test]
        self.weight, self.test_weight = weight[train], weight[test]
        base = log_mean(self.D, self.weight)
        self.scores = np.tile(base, (len(train), 1))
        self.test_scores = np.tile(base, (len(test), 1))
        self.grown: list[tuple[Any, FloatArray]] = []

    def advance(self, n_rounds: int) -> list[float]:
        """Add rounds; return the weighted sum of held-out divergences after each of them."""
        sums = []
        for _ in range(n_rounds):
            self._add_tree()
            sums.append(float(self.test_weight @ divergences(self.D_test, self.test_scores)))
        return sums

    def _add_tree(self) -> None:
        settings = self.settings
        gradient, hessian = derivatives(self.D, self.scores, self.weight)
        n_drawn = max(1, round(settings.subsample * len(self.D)))
        drawn = self.random.permutation(len(self.D)) < n_drawn
        in_bag = np.where(drawn, self.weight, 0.0)
        per_weight = np.maximum(hessian[drawn].sum(axis=0) / in_bag.sum(), 1e-12)
        grow = ExtraTreeRegressor if settings.random_splits else DecisionTreeRegressor
        model = grow(
            max_features=settings.max_features,
            max_leaf_nodes=settings.max_leaf_nodes,
            min_samples_leaf=settings.min_samples_leaf,
            random_state=self.random,
        )
        targets = -gradient / self.weight[:, None] / np.sqrt(per_weight)
        # the check of X, the same in every round, is needed only to find the features with missing values
        tree = model.fit(self.X_columns, targets, sample_weight=in_bag, check_input=self.has_missing).tree_
        leaf = tree.apply(self.X)
        values = settings.learning_rate * newton_steps(
            leaf[drawn], tree.node_count, gradient[drawn], hessian[drawn], settings.l2
        )
        self.scores += values[leaf]
        self.test_scores += values[tree.apply(self.X_test)]
        self.grown.append((tree, values))

    def trees(self, n_rounds: int) -> FlatTrees:
        """The trees of the first rounds."""
        return FlatTrees.from_scikit_learn(*zip(*self.grown[:n_rounds], strict=True))

    def gains(self, n_rounds: int) -> FloatArray:
        """Total gain of the splits on each feature in the first rounds."""
        gains = np.zeros(self.X.shape[1])
        for tree, _ in self.grown[:n_rounds]:
            gains += tree.compute_feature_importances(normalize=False) * tree.weighted_n_node_samples[0]
        return gains


def newton_steps(leaf: IntArray, n_nodes: int, gradient: FloatArray, hessian: FloatArray, l2: float) -> FloatArray:
    """Minus summed gradient over penalised summed Hessian for each node and label; 0 in nodes without rows."""
    total = np.column_stack([np.bincount(leaf, column, n_nodes) for column in gradient.T])
    curvature = l2 + np.column_stack([np.bincount(leaf, column, n_nodes) for column in hessian.T])
    return np.divide(-total, curvature, out=np.zeros_like(total), where=curvature > 0)
