"""The maximum entropy objective over rows that are read in chunks: one evaluation is one pass over the rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from skldl.chunks import Chunk, Rows
from skldl.chunks._rows import Sums
from skldl.maxent import _blocks
from skldl.maxent._folds import ALL_TOGETHER
from skldl.maxent._objective import CrossEntropy
from skldl.maxent._row_moments import Moments, read_moments
from skldl.maxent._whitening import LARGEST_MATRIX, Factorisation
from skldl.utils.typing import FloatArray

Evaluate = Callable[[FloatArray, FloatArray | None], tuple[float, FloatArray, FloatArray]]
"""From U and b to Σ ω ln Σ exp s, its gradient over U, and the mean prediction."""


class RowsCrossEntropy(CrossEntropy):
    """`CrossEntropy` of rows that are read in chunks.

    Parameters
    ----------
    evaluate : callable
        One pass over the rows; see `Evaluate`.
    moments : Moments
        Of the same rows.
    factors : ndarray of shape (n_features,), default=None
        What the columns are multiplied by; None leaves them as they are.
    alpha : float, default=0.0
        Strength of the penalty.
    fit_intercept : bool, default=False
        Whether the last row of the parameters is the intercept.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        moments: Moments,
        *,
        factors: FloatArray | None = None,
        alpha: float = 0.0,
        fit_intercept: bool = False,
    ) -> None:
        self.evaluate, self.moments, self.alpha, self.fit_intercept = evaluate, moments, alpha, fit_intercept
        self.factors = None if factors is None else factors[:, None]
        self.n_columns, n_labels = moments.target.shape
        self.shape = (self.n_columns + fit_intercept, n_labels)
        self.entropy = moments.entropy / moments.total
        self.mean_target = moments.mass / moments.total
        self.target = np.empty(self.shape)
        self.target[: self.n_columns] = self._scaled(moments.target / moments.total)
        if fit_intercept:
            self.target[-1] = self.mean_target
        self.mean_prediction = np.full(n_labels, 1.0 / n_labels)
        self.loss_at_zero = float(np.log(n_labels))
        self._last = None

    def _scaled(self, table: FloatArray) -> FloatArray:
        return table if self.factors is None else table * self.factors

    def column_means(self) -> FloatArray:
        """Weighted mean of the columns of X."""
        return self._scaled(self.moments.mean[:, None])[:, 0]

    def along(self, u: FloatArray, goal: FloatArray) -> Callable[[float], tuple[float, FloatArray]]:
        """A function from a size to loss (without penalty) and mean prediction at U = size · u goalᵀ, without b.

        What it finds is kept, so that the search that begins there needs no further pass for it.
        """

        def at(size: float) -> tuple[float, FloatArray]:
            parameters = np.multiply.outer(u, size * goal)
            self._last = (parameters, *self._without_penalty(parameters))
            return self._last[1], self._last[3]

        return at

    def squared_scores(self, parameters: FloatArray) -> float:
        """Σ_i ω_i Σ_j p̄_j s_ij², from the products of the columns where they are known."""
        U = self._scaled(parameters[: self.n_columns])
        second = self.moments.second(centred=self.fit_intercept)
        if second.ndim == 1:
            raise ValueError(
                f"whiten=False needs the products of all {self.n_columns:,} columns where rows come in chunks, and "
                "takes at most 5000. Use whiten=True."
            )
        shift = self.moments.mean @ U + parameters[-1] if self.fit_intercept else np.zeros(U.shape[1])
        return float((np.einsum("kj,kj->j", U, second @ U) + shift**2) @ self.mean_prediction)

    def _without_penalty(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Loss and gradient without the penalty, and the mean prediction: one pass over the rows."""
        b = parameters[-1] if self.fit_intercept else None
        log_partition, of_features, mean = self.evaluate(self._scaled(parameters[: self.n_columns]), b)
        gradient = np.empty(self.shape)
        gradient[: self.n_columns] = self._scaled(of_features)
        if self.fit_intercept:
            gradient[-1] = mean
        gradient -= self.target
        return log_partition - float(np.vdot(self.target, parameters)), gradient, mean


def few_rows(n_rows: int | None, n_features: int) -> bool:
    """Whether rows are few enough, and features many, so that all rows are whitened at once, in memory."""
    return n_rows is not None and n_rows < n_features and n_rows <= LARGEST_MATRIX


def rows_problem(rows: Rows, alpha: float, *, fit_intercept: bool) -> tuple[RowsCrossEntropy, Factorisation] | None:
    """Objective and factorisation of rows in chunks, after one pass; None if `few_rows`."""
    if few_rows(rows.n_rows, rows.n_features):
        return None
    (moments,) = read_moments(rows, ALL_TOGETHER, about_mean=fit_intercept)
    if few_rows(moments.count, rows.n_features):
        return None
    evaluate = pass_over(rows, moments)
    objective = RowsCrossEntropy(evaluate, moments, alpha=alpha, fit_intercept=fit_intercept)
    return objective, moments.factorisation(None, fit_intercept=fit_intercept)


def pass_over(rows: Rows, moments: Moments) -> Evaluate:
    """One evaluation as one pass over all rows."""

    def evaluate(U: FloatArray, b: FloatArray | None) -> tuple[float, FloatArray, FloatArray]:
        log_partition, gradient, mean = rows.sum(loss_sums, U, b, moments.total, labels=False)
        return float(log_partition), gradient, mean

    return evaluate


def loss_sums(chunk: Chunk, U: FloatArray, b: FloatArray | None, total: float) -> Sums:
    """What one chunk contributes to an evaluation."""
    return sums_of_rows(chunk.X, chunk.weights() / total, U, b)


def sums_of_rows(X: Any, weight: FloatArray, U: FloatArray, b: FloatArray | None) -> Sums:
    """What some rows contribute to Σ ω ln Σ exp s, to its gradient over U and to the mean prediction."""
    if sparse.issparse(X):
        X = X.astype(np.float64, copy=False)

    def normalise(scores: Any, some: slice) -> Any:
        return _blocks.weighted_softmax(scores, weight[some])

    return _blocks.sum_of_blocks(X, U, b, normalise, _blocks.cache_rows(U.shape[1]))
