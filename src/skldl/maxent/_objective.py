"""The maximum entropy objective with soft targets: loss and gradient together, in one pass over the rows.

With scores S = X U + 1 bᵀ, row weights ω that sum to one and P = softmax(S) row by row:

    loss(U, b) = Σ_i ω_i [ln Σ_j exp s_ij − Σ_j d_ij s_ij] + alpha/2 ‖U‖²
    ∂/∂U = Xᵀ diag(ω) (P − D) + alpha U        ∂/∂b = Σ_i ω_i (p_i − d_i)

This is the weighted mean cross-entropy: mean Kullback-Leibler divergence plus the entropy of D, which does not depend
on the parameters. With weights of 1 and without penalty ∂/∂U is the gradient of Geng (2016), equation 15. D enters
through Xᵀ diag(ω) D alone, so it is read once.

Shapes: X is (n_samples, n_columns), dense or CSR; parameters and gradient are (n_columns, n_labels), with one more row
at the end for b if there is an intercept. Inside, scores are (n_labels, n_samples), so that sums over labels run along
memory; dense rows are taken in blocks that stay in the cache, and single precision becomes double block by block
(`skldl.maxent._blocks`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from skldl.maxent import _blocks
from skldl.maxent._blocks import weighted_softmax as weighted_softmax
from skldl.utils.arrays import as_type_of, is_device_array, row_blocks, space
from skldl.utils.mean_mixture import row_weights as row_weights
from skldl.utils.simplex import entropy, softmax
from skldl.utils.typing import FloatArray


class CrossEntropy:
    """Weighted mean cross-entropy of softmax scores, plus alpha/2 ‖U‖².

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_columns)
        Features.
    D : ndarray of shape (n_samples, n_labels)
        Distributions.
    weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    alpha : float, default=0.0
        Strength of the penalty on U; the intercept is free.
    fit_intercept : bool, default=False
        Whether the last row of the parameters is the intercept.

    Attributes
    ----------
    entropy : float
        Weighted mean entropy of D: the loss never falls below it.
    mean_target : ndarray of shape (n_labels,)
        Weighted mean of D.
    mean_prediction : ndarray of shape (n_labels,)
        Weighted mean of P at the last evaluation.
    loss_at_zero : float
        The loss of the uniform prediction.
    n_threads : int
        Number of blocks of dense rows to work on at once; it changes no number.
    """

    n_threads: int = 1

    def __init__(
        self, X: Any, D: FloatArray, weight: FloatArray, *, alpha: float = 0.0, fit_intercept: bool = False
    ) -> None:
        self.X, self.weight, self.alpha, self.fit_intercept = X, weight, alpha, fit_intercept
        self.is_sparse = sparse.issparse(X)
        if self.is_sparse:
            self.X = X.astype(np.float64, copy=False)
        weighted = D * weight[:, None]
        self.entropy = float(weight @ entropy(D))
        self.n_columns = X.shape[1]
        self.shape = (X.shape[1] + fit_intercept, D.shape[1])
        self.target = np.empty(self.shape)  # Xᵀ diag(ω) D, and the mean of D for the intercept
        self.target[: X.shape[1]] = self.X.T @ weighted
        self.mean_target = weighted.sum(axis=0)
        if fit_intercept:
            self.target[-1] = self.mean_target
        self.mean_prediction = np.full(D.shape[1], 1.0 / D.shape[1])
        self.loss_at_zero = float(np.log(D.shape[1]))
        # the last point and what was found there: the next run on a path of alphas begins where the one before ended
        self._last: tuple[FloatArray, float, FloatArray, FloatArray] | None = None
        self._block = _blocks.cache_rows(D.shape[1])

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss and its gradient, which has the shape of the parameters."""
        if self._last is None or not np.array_equal(parameters, self._last[0]):
            self._last = (parameters.copy(), *self._without_penalty(parameters))
        _, loss, gradient, self.mean_prediction = self._last
        if self.alpha:
            U = parameters[: self.n_columns]
            loss += 0.5 * self.alpha * float(np.vdot(U, U))
            gradient = gradient.copy()
            gradient[: self.n_columns] += self.alpha * U
        return loss, gradient

    def column_means(self) -> FloatArray:
        """Weighted mean of the columns of X."""
        return np.asarray(self.weight @ self.X, dtype=np.float64)

    def along(self, u: FloatArray, goal: FloatArray) -> Callable[[float], tuple[float, FloatArray]]:
        """A function from a size to loss (without penalty) and mean prediction at U = size · u goalᵀ, without b."""
        scores = np.asarray(self.X @ u, dtype=np.float64)

        def at(size: float) -> tuple[float, FloatArray]:
            P = np.multiply.outer(size * goal, scores)
            loss = weighted_softmax(P, self.weight) - size * float(goal @ (u @ self.target))
            return loss, P.sum(axis=1)

        return at

    def squared_scores(self, parameters: FloatArray) -> float:
        """Σ_i ω_i Σ_j p̄_j s_ij², with the mean prediction p̄."""
        scores = self.X @ parameters[: self.n_columns]
        if self.fit_intercept:
            scores = scores + parameters[-1]
        scores *= scores
        return float(self.weight @ (scores @ self.mean_prediction))

    def _without_penalty(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Loss and gradient without the penalty, and the mean prediction: what takes a pass over the rows."""
        n_columns = self.n_columns
        b = parameters[n_columns] if self.fit_intercept else None
        gradient = np.empty(self.shape)
        log_partition, gradient[:n_columns], mean = _blocks.sum_of_blocks(
            self.X, parameters[:n_columns], b, self._normalise, self._block, self.n_threads
        )
        if self.fit_intercept:
            gradient[-1] = mean
        gradient -= self.target
        return log_partition - float(np.vdot(self.target, parameters)), gradient, mean

    def _normalise(self, scores: FloatArray, rows: slice) -> float:
        """Turn the scores of some rows into ω_i p_ij in place, and return Σ ω_i ln Σ_j exp s_ij."""
        return weighted_softmax(scores, self.weight[rows])


def probabilities(X: Any, W: FloatArray, b: FloatArray | None = None) -> FloatArray:
    """Softmax of X W (+ b) for feature weights W of shape (n_features, n_labels), in double precision."""
    if is_device_array(X):
        return _device_probabilities(X, W, b)
    scores = X @ W
    return softmax(scores if b is None else scores + b)


def _device_probabilities(X: Any, W: FloatArray, b: FloatArray | None) -> Any:
    """The same on a device, in the precision of X."""
    xp, device = space(X)
    weights, shift = as_type_of(W, X), None if b is None else as_type_of(b, X)
    P = xp.empty((X.shape[0], W.shape[1]), dtype=X.dtype, device=device)
    for some in row_blocks(X.shape[0], W.shape[1]):
        scores = X[some, ...] @ weights
        P[some, ...] = softmax(scores if shift is None else scores + shift)
    return P
