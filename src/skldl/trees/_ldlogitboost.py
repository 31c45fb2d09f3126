"""LDLogitBoost and AOSO-LDLogitBoost: logistic boosting of label distributions (Xing, Geng and Xue, 2016).

Scores F are sums of trees, p = softmax(F), and each round takes a Newton step on the cross-entropy −Σ_j d_j ln p_j.

- LDLogitBoost grows one tree for each label, a weighted least squares fit to z = (d − p) / (p (1 − p)) with weight p (1
  − p), and centres the result over labels: f_j ← (c − 1)/c (f_j − mean_k f_k).
- AOSO-LDLogitBoost grows one tree for all labels. Each leaf moves mass between the pair of labels (r, s) that gains
  most by it, f_r = t, f_s = −t: with G = Σ (d_r − p_r − d_s + p_s) and H = Σ [p_r + p_s − (p_r − p_s)²] the step is t =
  G/H and the gain G²/2H. A node is split for the pair with the largest Σ (d_r − p_r − d_s + p_s)² / H.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from skldl.base import BaseLDL
from skldl.trees._newton_tree import Bins, NewtonTree, grow_tree
from skldl.utils.mean_mixture import row_weights
from skldl.utils.parameters import COUNT, POSITIVE, integer, number, one_of
from skldl.utils.simplex import softmax
from skldl.utils.typing import FloatArray, IntArray

MAX_STEP = 4.0
"""|t| is clipped here, as LogitBoost clips z."""


def pair_hessians(p: FloatArray, weight: FloatArray) -> FloatArray:
    """Σ ω [p_r (1 − p_r) + p_s (1 − p_s) + 2 p_r p_s] for all pairs (n_labels, n_labels)."""
    # all pairs from one product of matrices: p(1 − p) of both labels, and twice the product of both
    products = p.T @ (p * weight[:, None])
    alone = weight @ p - np.diag(products)
    return np.asarray(alone[:, None] + alone + 2.0 * products)


def pair_to_move(error: FloatArray, p: FloatArray, weight: FloatArray, ridge: float) -> tuple[int, int, float]:
    """The pair (r, s) with the largest gain G²/H for some rows, and its step t = G/H ≥ 0, from errors d − p."""
    G = weight @ error
    H = pair_hessians(p, weight) + ridge
    gap = G[:, None] - G
    r, s = _first_largest(np.where(gap > 0, gap**2, 0.0) / H)
    return r, s, float(gap[r, s] / H[r, s])


def pair_to_split(error: FloatArray, p: FloatArray, weight: FloatArray, ridge: float) -> tuple[int, int]:
    """The pair (r, s) with the largest Σ ω (e_r − e_s)² / H for some rows, from errors e = d − p."""
    squares = error.T @ (error * weight[:, None])
    alone = np.diag(squares)
    return _first_largest((alone[:, None] + alone - 2.0 * squares) / (pair_hessians(p, weight) + ridge))


def _first_largest(gain: FloatArray) -> tuple[int, int]:
    """Row and column of the first entry that is the largest up to rounding."""
    # 1e-9: sums in another order must choose the same pair
    position = int(np.argmax(gain.ravel() >= gain.max() * (1.0 - 1e-9)))
    r, s = divmod(position, len(gain))
    return r, s


class LDLogitBoost(BaseLDL):
    r"""Logistic boosting of label distributions (LDLogitBoost, AOSO-LDLogitBoost).

    The prediction is the softmax of scores F, sums of regression trees. Each round takes a Newton step on the
    cross-entropy: with one tree for each label (LDLogitBoost), or with one tree whose nodes choose the pair of labels
    between which moving mass gains most (AOSO, adaptive one against one).

    Parameters
    ----------
    n_estimators : int, default=200
        Number of rounds.
    method : {"aoso", "logitboost"}, default="aoso"
        One tree with a pair of labels in each node, or one tree for each label.
    learning_rate : float, default=0.05
        Fraction of each Newton step that is taken.
    max_leaf_nodes : int, default=8
        Maximum number of leaves of a tree.
    min_leaf_share : float, default=0.01
        Minimum fraction of the total weight in a leaf.
    ridge : float, default=1e-3
        Added to each sum of Hessians, in units of the mean over all rows: keeps steps finite where p is near 0 or 1.
    max_bins : int, default=64
        Maximum number of bins of a feature.

    Attributes
    ----------
    trees_ : list of NewtonTree or list of list of NewtonTree
        The tree, or the trees of all labels, of each round.
    loss_curve_ : list of float
        Mean cross-entropy on the training rows before the first and after each round.
    start_ : ndarray of shape (n_labels,)
        Scores before the first round: the logarithm of the mean distribution, centred.

    Notes
    -----
    The scores begin at the logarithm of the mean distribution, those of the papers at zero. Centring runs over the
    labels of a row, so a prediction does not depend on the other rows. The text of the paper was not available: the two
    forms follow [2]_ and [3]_, which it carries over to distributions. In [3]_ the pair of a node is the one that its
    own mean error moves; at the mean distribution that error is zero for all pairs, so nodes are split here for the
    pair on which their rows err most. Features must be dense.

    References
    ----------
    .. [1] C. Xing, X. Geng and H. Xue, "Logistic boosting regression for label distribution learning", CVPR 2016.
    .. [2] J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical view of boosting",
       Annals of Statistics 28(2), 2000.
    .. [3] P. Sun, M. D. Reid and J. Zhou, "AOSO-LogitBoost: adaptive one-vs-one LogitBoost for multi-class problem",
       ICML 2012.

    Examples
    --------
    >>> from skldl.trees import LDLogitBoost
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> LDLogitBoost(learning_rate=0.2).fit(X, D).predict([[0.0], [3.0]]).round(1)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """

    _accept_sparse = False

    _onnx = "newton_boosting"
    _model_parts = (NewtonTree,)
    _constraints: ClassVar = {
        "n_estimators": COUNT,
        "method": one_of("aoso", "logitboost"),
        "learning_rate": POSITIVE,
        "max_leaf_nodes": integer(at_least=2),
        "min_leaf_share": number(at_least=0, below=0.5),
        "ridge": POSITIVE,
        "max_bins": integer(at_least=2),
    }

    def __init__(
        self,
        n_estimators: int = 200,
        *,
        method: str = "aoso",
        learning_rate: float = 0.05,
        max_leaf_nodes: int = 8,
        min_leaf_share: float = 0.01,
        ridge: float = 1e-3,
        max_bins: int = 64,
    ) -> None:
        self.n_estimators = n_estimators
        self.method = method
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_leaf_share = min_leaf_share
        self.ridge = ridge
        self.max_bins = max_bins

    def _fit(self, X: FloatArray, D: FloatArray, sample_weight: FloatArray | None) -> None:
        weight = row_weights(len(X), sample_weight)
        bins = Bins.of(X, weight, int(self.max_bins))
        mean = np.maximum(weight @ D, 1e-10)  # a label without mass starts low, not at minus infinity
        self.start_ = np.log(mean) - np.log(mean).mean()
        self.trees_: list[Any] = []
        F = np.tile(self.start_, (len(X), 1))
        p = softmax(F)
        self.loss_curve_ = [_cross_entropy(D, p, weight)]
        for _ in range(self.n_estimators):
            if self.method == "aoso":
                tree = self._grow_for_pairs(bins, D, p, weight)
                self.trees_.append(tree)
                step = tree.predict(X)
            else:
                trees = [self._grow_for_label(bins, D[:, j], p[:, j], weight) for j in range(D.shape[1])]
                self.trees_.append(trees)
                step = _centred(np.column_stack([tree.predict(X)[:, 0] for tree in trees]))
            F += self.learning_rate * step
            p = softmax(F)
            self.loss_curve_.append(_cross_entropy(D, p, weight))

    def _grow_for_pairs(self, bins: Bins, D: FloatArray, p: FloatArray, weight: FloatArray) -> NewtonTree:
        error = D - p

        def statistics(rows: IntArray) -> tuple[FloatArray, FloatArray]:
            r, s = pair_to_split(error[rows], p[rows], weight[rows], self.ridge)
            first, second = p[rows, r], p[rows, s]
            hessian = (first + second - (first - second) ** 2) * weight[rows]
            return (error[rows, r] - error[rows, s]) * weight[rows], hessian

        def leaf_value(rows: IntArray) -> FloatArray:
            r, s, t = pair_to_move(error[rows], p[rows], weight[rows], self.ridge)
            value = np.zeros(D.shape[1])
            t = min(t, MAX_STEP)
            value[r] += t
            value[s] -= t
            return value

        return grow_tree(bins, weight, statistics, leaf_value, **self._growth())

    def _grow_for_label(self, bins: Bins, d: FloatArray, p: FloatArray, weight: FloatArray) -> NewtonTree:
        gradient, hessian = (d - p) * weight, p * (1.0 - p) * weight

        def leaf_value(rows: IntArray) -> FloatArray:
            step = gradient[rows].sum() / (hessian[rows].sum() + self.ridge)
            return np.clip(np.array([step]), -MAX_STEP, MAX_STEP)

        return grow_tree(bins, weight, lambda rows: (gradient[rows], hessian[rows]), leaf_value, **self._growth())

    def _growth(self) -> dict[str, Any]:
        return {"max_leaf_nodes": self.max_leaf_nodes, "min_weight": self.min_leaf_share, "ridge": self.ridge}

    def _scores(self, X: FloatArray) -> Iterator[FloatArray]:
        """Scores before the first and after each round."""
        F = np.tile(self.start_, (len(X), 1))
        yield F
        for tree in self.trees_:
            if self.method == "aoso":
                F = F + self.learning_rate * tree.predict(X)
            else:
                F = F + self.learning_rate * _centred(np.column_stack([one.predict(X)[:, 0] for one in tree]))
            yield F

    def _predict(self, X: FloatArray) -> FloatArray:
        for F in self._scores(X):
            last = F
        return softmax(last)

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """Fit the largest number of rounds, whose scores after each round serve all others."""
        if param != "n_estimators":
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        self.set_params(n_estimators=max(values))._fit(X, D, sample_weight)
        wanted = {n: F for n, F in enumerate(self._scores(X_new)) if n in set(values)}
        yield from (softmax(wanted[value]) for value in values)


def _centred(F: FloatArray) -> FloatArray:
    n_labels = F.shape[1]
    return (n_labels - 1) / n_labels * (F - F.mean(axis=1, keepdims=True))


def _cross_entropy(D: FloatArray, p: FloatArray, weight: FloatArray) -> float:
    return -float(weight @ (D * np.log(np.maximum(p, np.finfo(np.float64).tiny))).sum(axis=1))
