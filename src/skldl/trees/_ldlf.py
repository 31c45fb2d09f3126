"""LDLF: label distribution learning forests (Shen et al., 2017), with linear split functions.

A tree of depth h sends a row to the left at split node n with probability s_n(x) = σ(w_nᵀx + b_n). The product along
the path to leaf ℓ is µ_ℓ(x), and the tree predicts g(x) = Σ_ℓ µ_ℓ(x) q_ℓ with one distribution q_ℓ for each leaf. It
minimises

    −Σ_i ω_i Σ_c d_ic ln g_c(x_i) + alpha/2 Σ_n ‖w_n‖²

in turn over the leaves, by q_ℓc ← (1/Z_ℓ) Σ_i ω_i d_ic q_ℓc µ_ℓ(x_i) / g_c(x_i), which never raises the loss, and over
the split functions, by L-BFGS. The forest predicts the mean of its trees.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from scipy import special
from sklearn.utils import check_random_state

from skldl.base import BaseLDL
from skldl.utils.mean_mixture import row_weights
from skldl.utils.parameters import COUNT, NOT_NEGATIVE, RANDOM_STATE
from skldl.utils.scaling import StandardizedFeatures, column_divisors, standardize
from skldl.utils.solvers import minimise
from skldl.utils.typing import FloatArray

MIN_PROBABILITY = 1e-300
"""Divisors and arguments of logarithms are raised to it: nearly the smallest number with all its digits."""


def leaf_weights(decisions: FloatArray) -> FloatArray:
    """µ (n_samples, 2^h) from the decisions s (n_samples, 2^h − 1), nodes in the order of levels."""
    n_samples, n_nodes = decisions.shape
    mu = np.ones((n_samples, 1))
    first = 0
    while first < n_nodes:
        here = decisions[:, first : first + mu.shape[1]]
        mu = np.stack([mu * here, mu * (1.0 - here)], axis=2).reshape(n_samples, -1)
        first = 2 * first + 1
    return mu


def update_leaves(mu: FloatArray, Q: FloatArray, D: FloatArray, weight: FloatArray) -> FloatArray:
    """One step for all leaves; a leaf that no row reaches keeps its distribution."""
    g = np.maximum(mu @ Q, MIN_PROBABILITY)
    mass = Q * (mu.T @ (weight[:, None] * D / g))
    totals = mass.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(mass, totals, out=Q.copy(), where=totals > MIN_PROBABILITY))


def tree_loss(scores: FloatArray, Q: FloatArray, D: FloatArray, weight: FloatArray) -> tuple[float, FloatArray]:
    """Loss without penalty, and its gradient in the scores w_nᵀx + b_n (n_samples, n_nodes)."""
    decisions = special.expit(scores)
    mu = leaf_weights(decisions)
    g = np.maximum(mu @ Q, MIN_PROBABILITY)
    loss = -float(weight @ (D * np.log(g)).sum(axis=1))
    # sums of it below a node are derivatives in the two decisions there; both halves of each level are summed at once
    mass = mu * ((D / g) @ Q.T) * weight[:, None]  # minus the derivative in ln µ_ℓ
    gradient = np.empty_like(scores)
    n_samples, n_leaves = mu.shape
    width = 1
    while width < n_leaves:
        sides = mass.reshape(n_samples, width, 2, -1).sum(axis=3)
        nodes = slice(width - 1, 2 * width - 1)
        s = decisions[:, nodes]
        gradient[:, nodes] = sides[:, :, 1] * s - sides[:, :, 0] * (1.0 - s)
        width *= 2
    return loss, gradient


class LDLF(BaseLDL):
    r"""Label distribution learning forest of soft trees (LDLF), with linear split functions.

    Each tree predicts :math:`g(x) = \sum_\ell \mu_\ell(x) q_\ell`, where :math:`\mu_\ell` is the probability of
    reaching leaf ℓ when a row goes left at node n with probability :math:`\sigma(w_n^\top x + b_n)`. It minimises

    .. math:: -\overline{\textstyle\sum_c d_{ic} \ln g_c(x_i)} + \frac{\mathtt{alpha}}{2} \sum_n \lVert w_n \rVert^2

    in turn over leaves and split functions; the forest is the mean of the trees. Features are centred inside
    and divided by their standard deviation, or by the difference of their values where there are two: dividing rare
    ones and zeros by their deviation would make the rows that hold them outliers.

    Parameters
    ----------
    n_estimators : int, default=5
        Number of trees, 5 in the paper.
    max_depth : int, default=4
        Depth of each tree; it has 2^max_depth leaves. The paper has 7.
    alpha : float, default=1e-3
        Weight decay of the split functions.
    n_rounds : int, default=10
        Number of times that leaves and split functions are fitted in turn.
    n_leaf_updates : int, default=20
        Updates of the leaves in each round, 20 in the paper.
    n_split_steps : int, default=20
        Steps of L-BFGS for the split functions in each round.
    random_state : int, RandomState or None, default=None
        Source of the initial split functions.

    Attributes
    ----------
    coefs_ : list of ndarray of shape (n_features, n_nodes)
        Weights of the split functions of each tree, for features as they come.
    intercepts_ : list of ndarray of shape (n_nodes,)
        Their intercepts.
    leaves_ : list of ndarray of shape (n_leaves, n_labels)
        Distributions of the leaves of each tree.
    loss_curves_ : list of list of float
        Loss of each tree after each round.

    Notes
    -----
    In the paper the split functions are units of a network that all trees share, and the network is trained by
    stochastic gradients; without a network below, this is its shallow version, here with separate units for each
    node and tree. Leaf update and loss were checked against the derivation, not against the authors' code.

    References
    ----------
    .. [1] W. Shen, K. Zhao, Y. Guo and A. Yuille, "Label distribution learning forests", NeurIPS 2017.

    Examples
    --------
    >>> from skldl.trees import LDLF
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> LDLF(max_depth=2, random_state=0).fit(X, D).predict([[0.0], [3.0]]).round(1)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """

    _onnx = "soft_forest"
    _constraints: ClassVar = {
        "n_estimators": COUNT,
        "max_depth": COUNT,
        "alpha": NOT_NEGATIVE,
        "n_rounds": COUNT,
        "n_leaf_updates": COUNT,
        "n_split_steps": COUNT,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        n_estimators: int = 5,
        *,
        max_depth: int = 4,
        alpha: float = 1e-3,
        n_rounds: int = 10,
        n_leaf_updates: int = 20,
        n_split_steps: int = 20,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.alpha = alpha
        self.n_rounds = n_rounds
        self.n_leaf_updates = n_leaf_updates
        self.n_split_steps = n_split_steps
        self.random_state = random_state

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        random = check_random_state(self.random_state)
        weight = row_weights(X.shape[0], sample_weight)
        mean, scale = weight @ X, column_divisors(X, weight)
        rows = standardize(X, mean, scale)
        self.coefs_, self.intercepts_, self.leaves_, self.loss_curves_ = [], [], [], []
        for _ in range(self.n_estimators):
            W, b, Q, curve = self._fit_tree(rows, D, weight, random)
            W = W / scale[:, None]
            self.coefs_.append(W)
            self.intercepts_.append(b - mean @ W)
            self.leaves_.append(Q)
            self.loss_curves_.append(curve)

    def _fit_tree(
        self, X: StandardizedFeatures, D: FloatArray, weight: FloatArray, random: np.random.RandomState
    ) -> tuple[FloatArray, FloatArray, FloatArray, list[float]]:
        n_features, n_nodes = len(X.mean), 2**self.max_depth - 1
        theta = np.zeros((n_features + 1, n_nodes))
        theta[:-1] = random.normal(scale=1.0 / np.sqrt(n_features), size=(n_features, n_nodes))
        Q = np.full((n_nodes + 1, D.shape[1]), 1.0 / D.shape[1])

        def evaluate(flat: FloatArray) -> tuple[float, FloatArray]:
            parameters = flat.reshape(theta.shape)
            W = parameters[:-1]
            loss, of_scores = tree_loss(X.times(W) + parameters[-1], Q, D, weight)
            gradient = np.vstack([X.transposed_times(of_scores) + self.alpha * W, of_scores.sum(axis=0)])
            return loss + 0.5 * self.alpha * float(np.vdot(W, W)), gradient.ravel()

        curve = []
        for number in range(self.n_rounds):
            mu = leaf_weights(special.expit(X.times(theta[:-1]) + theta[-1]))
            for _ in range(self.n_leaf_updates):
                Q = update_leaves(mu, Q, D, weight)
            if number < self.n_rounds - 1:  # the leaves are updated last, so that they fit the split functions
                # the leaves change next, so that the exact minimum is of no use: the number of steps ends the search
                run = minimise(evaluate, theta.ravel(), tol=0.0, max_iter=self.n_split_steps)
                theta = run.x.reshape(theta.shape)
            curve.append(evaluate(theta.ravel())[0])
        return theta[:-1], theta[-1], Q, curve

    def _predict(self, X: Any) -> FloatArray:
        return np.asarray(sum(self._trees(X)) / self.n_estimators)

    def _trees(self, X: Any) -> Iterator[FloatArray]:
        for W, b, Q in zip(self.coefs_, self.intercepts_, self.leaves_, strict=True):
            yield leaf_weights(special.expit(np.asarray(X @ W) + b)) @ Q

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """Forests of different sizes are the first trees of the largest."""
        if param != "n_estimators" or isinstance(self.random_state, np.random.RandomState) or self.random_state is None:
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        self.set_params(n_estimators=max(values))._fit(X, D, sample_weight)
        sums = np.cumsum(list(self._trees(X_new)), axis=0)
        yield from (sums[value - 1] / value for value in values)
