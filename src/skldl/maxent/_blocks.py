"""The maximum entropy objective and the moments of X as sums over blocks of rows.

Each function sees one block of rows and returns its contribution; a training set is the sum over its blocks, in the
order of the rows. The same lines so serve arrays in memory, chunks of files and partitions on a cluster. With scores
S = X U + 1 bᵀ, weights ω and P = softmax(S), a block contributes

    Σ_i ω_i ln Σ_j exp s_ij,    Pᵀ diag(ω) X (labels × columns),    Σ_i ω_i p_i

to loss, gradient and mean prediction, and Σ ω_i (x_i − m)(x_i − m)ᵀ (or its diagonal) to the curvature.

`dense_block`, `weighted_softmax`, `block_gram` and `block_variances` use operators, in-place operators and functions of
the array namespace ``xp`` alone, no indexing and nothing of SciPy. Block, parameters and weights come from ``xp``; the
log-partition is returned as an array of no dimensions of ``xp`` where a device would have to wait for a float.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from skldl.utils.arrays import as_double, exp_in_place, product_over_rows, sum_in_double
from skldl.utils.typing import FloatArray

SAFE_SCORE = 500.0
CACHE_CELLS = 1 << 16
"""Scores of one block of dense rows: labels × rows, so that they stay in the cache."""
GRAM_CELLS = 1 << 18
"""Numbers in one block of dense rows when products of columns are summed."""

Normalise = Callable[[Any, slice], Any]


def weighted_softmax(scores: Any, weight: Any, xp: Any = np, *, safe: bool | None = None, factors: Any = None) -> Any:
    """Turn scores (n_labels, n_samples) into ω_i p_ij in place, and return Σ ω_i ln Σ_j exp s_ij.

    ``safe`` says that exp can neither overflow nor vanish; None looks at the scores. On a device ``weight`` may be a
    number, ``factors`` (n_labels, 1) are multiplied to the exponentials, sums are in double precision, and the result
    is an array of no dimensions.
    """
    if safe is None:
        safe = max(float(xp.max(scores)), -float(xp.min(scores))) < SAFE_SCORE
    shift = None
    if not safe:
        shift = xp.max(scores, axis=0)
        scores -= shift
    if xp is not np:
        exp_in_place(scores, xp)
        if factors is not None:
            scores *= factors
        totals = sum_in_double(scores, axis=0)
        scores *= xp.astype(weight / totals, scores.dtype, copy=False)
        totals = xp.log(totals)
        return xp.sum(weight * (totals if shift is None else totals + shift))
    np.exp(scores, out=scores)
    totals = np.sum(scores, axis=0)
    scores *= weight / totals
    np.log(totals, out=totals)
    if shift is not None:
        totals += shift
    return float(weight @ totals)


def dense_block(
    rows: Any, across: Any, intercept: Any, normalise: Callable[[Any, Any], Any], which: Any, xp: Any = np
) -> tuple[Any, Any, Any]:
    """Contribution of one block of dense rows.

    Parameters
    ----------
    rows : array of shape (n_rows, n_columns), float64
        The block.
    across : array of shape (n_labels, n_columns)
        Uᵀ, contiguous.
    intercept : array of shape (n_labels, 1) or None
        b as a column.
    normalise : callable
        From scores (n_labels, n_rows) and ``which`` to their part of the log-partition; turns the scores into ω_i p_ij
        in place, as `weighted_softmax` does.
    which : any
        What ``normalise`` needs to know the rows by: their weights, or a slice.
    xp : module, default=numpy
        Namespace of the arrays.

    Returns
    -------
    log_partition : float or array of no dimensions
        Σ_i ω_i ln Σ_j exp s_ij.
    products : array of shape (n_labels, n_columns)
        Σ_i ω_i p_ij x_ik.
    mean : array of shape (n_labels,)
        Σ_i ω_i p_ij.
    """
    P = across @ rows.T
    if intercept is not None:
        P += intercept
    log_partition = normalise(P, which)
    if xp is not np:
        return log_partition, product_over_rows(P, rows), sum_in_double(P, axis=1)
    return log_partition, P @ rows, np.sum(P, axis=1)


def sparse_block(
    X: Any, U: FloatArray, intercept: FloatArray | None, normalise: Callable[[Any, Any], Any], which: Any
) -> tuple[Any, FloatArray, FloatArray]:
    """Contribution of one block of sparse rows; the products are (n_columns, n_labels)."""
    P = np.ascontiguousarray((X @ U).T)
    if intercept is not None:
        P += intercept
    log_partition = normalise(P, which)
    return log_partition, X.T @ P.T, P.sum(axis=1)


def sum_of_blocks(
    X: Any,
    U: FloatArray,
    b: FloatArray | None,
    normalise: Normalise,
    block_rows: int,
    n_threads: int = 1,
) -> tuple[float, FloatArray, FloatArray]:
    """Log-partition, gradient of it over U, and mean prediction of many rows, block by block.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_columns)
        Rows; a sparse matrix is one block, in double precision.
    U : ndarray of shape (n_columns, n_labels)
        Weights.
    b : ndarray of shape (n_labels,) or None
        Intercept.
    normalise : callable
        From the scores of some rows (n_labels, n_rows) and the slice of these rows to their part of the log-partition,
        as `weighted_softmax`.
    block_rows : int
        Number of dense rows in a block.
    n_threads : int, default=1
        Number of blocks of dense rows to work on at once. They are added in the same order, so that it changes nothing.

    Returns
    -------
    log_partition : float
        Σ_i ω_i ln Σ_j exp s_ij.
    gradient : ndarray of shape (n_columns, n_labels)
        Xᵀ diag(ω) P.
    mean : ndarray of shape (n_labels,)
        Weighted mean of P.
    """
    intercept = None if b is None else b[:, None]
    if sparse.issparse(X):
        part, gradient, mean = sparse_block(X, U, intercept, normalise, slice(None))
        return float(part), np.asarray(gradient), mean
    gradient = np.zeros(U.shape)
    log_partition = 0.0
    mean = np.zeros(U.shape[1])
    across = np.ascontiguousarray(U.T)

    def contribution(some: slice) -> tuple[Any, Any, Any]:
        rows = X[some].astype(np.float64, copy=False)
        return dense_block(rows, across, intercept, normalise, some)

    for part, products, sums in in_threads(contribution, row_blocks(X.shape[0], block_rows), n_threads):
        log_partition += float(part)
        gradient += products.T
        mean += sums
    return log_partition, gradient, mean


def in_threads(function: Callable[[slice], Any], blocks: Iterable[slice], n_threads: int) -> Iterator[Any]:
    """Results of a function of each block, in the order of the blocks.

    With several threads the products of each are left to one thread of the linear algebra library.
    """
    if n_threads == 1:
        yield from map(function, blocks)
        return
    with _libraries().limit(limits=1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(function, blocks)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looking for them takes milliseconds


def row_blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Cut rows into blocks, in their order."""
    return (slice(first, first + size) for first in range(0, n_rows, size))


def cache_rows(n_labels: int) -> int:
    """Number of dense rows in a block whose scores stay in the cache."""
    return max(64, CACHE_CELLS // n_labels)


def block_gram(rows: Any, weight: Any, mean: Any, xp: Any = np) -> Any:
    """Σ ω_i (x_i − mean)(x_i − mean)ᵀ of one block of dense rows, without the cancellation of a later subtraction."""
    if xp is not np:
        centred = rows if mean is None else rows - mean
        if weight is not None:
            centred = centred * xp.astype(xp.sqrt(weight), rows.dtype, copy=False)[:, None]
        return product_over_rows(centred.T, centred)
    centred = rows - mean
    centred *= np.sqrt(weight)[:, None]
    return centred.T @ centred


def block_variances(rows: Any, weight: Any, mean: Any, xp: Any = np) -> Any:
    """Σ ω_i (x_ik − mean_k)² of one block of dense rows, for each column k.

    On a device ``weight`` None counts each row once, and ``mean`` None stands for zero; so does `block_gram`.
    """
    if xp is not np:
        squares = as_double(rows if mean is None else rows - mean) ** 2
        return xp.sum(squares, axis=0) if weight is None else weight @ squares
    return weight @ (rows - mean) ** 2


def gram(X: Any, weight: FloatArray, mean: FloatArray, n_threads: int = 1) -> FloatArray:
    """Σ ω_i (x_i − mean)(x_i − mean)ᵀ of many rows.

    For sparse rows Σ ω_i x_i x_iᵀ, from which the caller subtracts the product of the means: sparse rows stay sparse.
    """
    if sparse.issparse(X):
        rooted = X.multiply(np.sqrt(weight)[:, None]).tocsr().astype(np.float64)
        return np.asarray((rooted.T @ rooted).toarray())
    total = np.zeros((X.shape[1], X.shape[1]))
    blocks = row_blocks(X.shape[0], gram_rows(X.shape[1]))
    for part in in_threads(lambda some: block_gram(X[some], weight[some], mean), blocks, n_threads):
        total += part
    return total


def variances(X: Any, weight: FloatArray, mean: FloatArray) -> FloatArray:
    """Σ ω_i (x_ik − mean_k)² of many rows; for sparse rows Σ ω_i x_ik²."""
    if sparse.issparse(X):
        return np.asarray(weight @ X.astype(np.float64, copy=False).power(2))
    total = np.zeros(X.shape[1])
    for some in row_blocks(X.shape[0], gram_rows(X.shape[1])):
        total += block_variances(X[some], weight[some], mean)
    return total


def gram_rows(n_columns: int) -> int:
    """Number of dense rows in a block when products of columns are summed."""
    return max(64, GRAM_CELLS // n_columns)
