"""Sums over rows, block by block, for the maximum entropy objective and the moments of X.

The rows are a NumPy array, a CSR matrix or an array on a device. With scores S = X U + 1 bᵀ, weights w and P =
softmax(S) row by row, `softmax_sums` computes

    Σ_i w_i ln Σ_j exp s_ij,    Xᵀ diag(w) P,    Σ_i w_i p_i

for several parameters (U, b) together, so that the rows are read once for all of them. Scores have the shape (requests,
labels, rows), so that operations on the rows of one label run along memory.

Dense NumPy rows are processed in blocks whose scores stay in the cache, and single precision is converted to double
block by block. Rows on a device keep their precision, and sums over them are in double precision.
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from skldl.utils.arrays import (
    as_double,
    as_type_of,
    exp_in_place,
    is_device_array,
    namespace,
    product_over_rows,
    row_blocks,
    sum_in_double,
    weighted_row_sum,
)
from skldl.utils.missing import rest_of
from skldl.utils.typing import FloatArray

SAFE_SCORES = {4: 60.0, 8: 500.0}
"""Scores up to this size can be exponentiated without a shift, by bytes of a number: sums and products of a few
exp(±60) in single or exp(±500) in double precision neither overflow nor underflow."""
CACHE_CELLS = 1 << 16
"""Scores of one block of NumPy rows, labels × rows: half a megabyte, which stays in the cache of one core."""
GRAM_CELLS = 1 << 18
"""Numbers in one block of NumPy rows when products of columns are summed: 2 MiB."""
MIN_ROWS = 64
"""Minimum number of NumPy rows in a block: with fewer, the calls cost more than the arithmetic."""
DEVICE_CELLS = 1 << 26
"""Scores of one block on a device: large enough for full speed, small enough to leave memory to the rows."""


def blocks(X: Any, cells_per_row: int, cells: int) -> Iterator[slice]:
    """Cut rows into consecutive blocks of about ``cells`` numbers in NumPy, of `DEVICE_CELLS` on a device."""
    cells = DEVICE_CELLS if is_device_array(X) else max(cells, MIN_ROWS * cells_per_row)
    return row_blocks(X.shape[0], cells_per_row, cells)


def in_threads(function: Callable[[Any], Any], items: Iterable[Any], n_threads: int) -> Iterator[Any]:
    """Results of a function of each item, in the order of the items.

    With several threads the linear algebra library is limited to one thread in each: on a busy machine the threads of
    two pools would wait for each other actively.
    """
    if n_threads == 1:
        yield from map(function, items)
        return
    with _libraries().limit(limits=1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(function, items)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looking for them takes milliseconds


def weighted_softmax(scores: Any, weight: Any, *, safe: bool | None = None, factors: Any = None) -> Any:
    """Turn scores (…, n_labels, n_rows) into w_i p_ij in place, and return Σ_i w_i ln Σ_j exp s_ij of shape (…).

    Parameters
    ----------
    scores : array of shape (…, n_labels, n_rows)
        Scores; -inf for labels that are excluded.
    weight : array of shape (n_rows,) or None
        Weights in double precision; None stands for ones.
    safe : bool or None, default=None
        Whether exp can neither overflow nor underflow; None computes the largest score.
    factors : array of shape (…, n_labels, 1) or None, default=None
        Multiplied to the exponentials.
    """
    xp = namespace(scores)
    if safe is None:
        safe = max(float(xp.max(scores)), -float(xp.min(scores))) < SAFE_SCORES[8]
    shift = None
    if not safe:
        shift = xp.max(scores, axis=-2, keepdims=True)
        scores -= shift  # the largest becomes 0: exponentials cannot overflow, and their sum is at least 1
    exp_in_place(scores, xp)
    if factors is not None:
        scores *= factors
    totals = sum_in_double(scores, axis=-2)
    scale = 1.0 / totals if weight is None else weight / totals
    scores *= as_type_of(scale, scores)[..., None, :]
    logarithms = xp.log(totals)
    if shift is not None:
        logarithms += shift[..., 0, :]
    return xp.sum(logarithms, axis=-1) if weight is None else logarithms @ weight


class SoftmaxSums(NamedTuple):
    """Sums over rows for an evaluation, for each request.

    Attributes
    ----------
    log_partition : array of shape (n_requests,)
        Σ_i w_i ln Σ_j exp s_ij; for missing degrees see `skldl.maxent._objective`.
    gradient : array of shape (n_requests, n_labels, n_columns)
        Its gradient over U, transposed.
    gradient_of_b : array of shape (n_requests, n_labels)
        Its gradient over b: without missing degrees Σ_i w_i p_ij.
    hidden : array of shape (n_requests, n_labels)
        Σ_i w_i p_ij minus ``gradient_of_b``; zero without missing degrees.
    """

    log_partition: Any
    gradient: Any
    gradient_of_b: Any
    hidden: Any


def softmax_sums(
    X: Any,
    weight: Any,
    U: FloatArray,
    intercept: "Intercept | None" = None,
    *,
    safe: bool | None = None,
    degrees: tuple[FloatArray, str] | None = None,
    gradient: bool = True,
    n_threads: int = 1,
) -> SoftmaxSums:
    """Sum over rows for several parameters.

    Parameters
    ----------
    X : ndarray, CSR matrix or array on a device, of shape (n_rows, n_columns)
        Rows, at least one.
    weight : array of shape (n_rows,) or None
        Their weights in double precision, where X is; None stands for ones.
    U : ndarray of shape (n_requests, n_columns, n_labels)
        Weights of the columns.
    intercept : Intercept or None, default=None
        Intercepts; they must be added to the log-partition afterwards, see `split_intercept`.
    safe : bool or None, default=None
        Whether all scores without intercept can be exponentiated without a shift; None computes the largest score.
    degrees : tuple of ndarray and str, default=None
        Distributions with NaN and the meaning of NaN, if there are missing degrees.
    gradient : bool, default=True
        Whether the gradient over U is needed; without it, it has no columns.
    n_threads : int, default=1
        Number of blocks of dense rows in memory that are processed at once. They are added in the same order, so that
        it changes no digit.
    """
    n_requests, n_columns, n_labels = U.shape
    shape = (n_requests, n_labels, -1)
    is_sparse, is_device = sparse.issparse(X), is_device_array(X)
    across = U.transpose(0, 2, 1).reshape(n_requests * n_labels, n_columns)
    across = as_type_of(across, X) if is_device else np.ascontiguousarray(across)
    if intercept is not None:
        values = intercept.values[:, :, None]
        intercept = Intercept(as_type_of(values, X) if is_device else values, intercept.is_factor)
    if is_sparse:
        X = X.astype(np.float64, copy=False)

    def contribution(some: slice) -> SoftmaxSums:
        rows = X if is_sparse else _block(X, some)
        scores = np.ascontiguousarray((rows @ across.T).T) if is_sparse else across @ rows.T
        xp = namespace(scores)
        scores = xp.reshape(scores, shape)
        own = None if weight is None else weight[some]
        if degrees is not None:
            part, hidden = _missing_softmax(scores, own, degrees[0][some], degrees[1], intercept)
        else:
            part, hidden = _softmax(scores, own, intercept, safe=safe), np.zeros((n_requests, n_labels))
        sums = sum_in_double(scores, axis=-1)
        scores = xp.reshape(scores, (n_requests * n_labels, -1))
        if not gradient:
            rows = rows[:, :0]
        # in memory (Xᵀ Pᵀ)ᵀ is up to twice as fast as P X: BLAS prefers the long axis of rows inside
        products = product_over_rows(scores, rows) if is_device else np.asarray(rows.T @ scores.T).T
        return SoftmaxSums(part, products, sums, hidden)

    pieces = [slice(None)] if is_sparse else blocks(X, n_requests * n_labels, CACHE_CELLS)
    parts = in_threads(contribution, pieces, 1 if is_sparse or is_device else n_threads)
    total = next(parts)
    for part in parts:
        total = SoftmaxSums(*map(operator.iadd, total, part))
    of_U = namespace(total.gradient).reshape(total.gradient, (n_requests, n_labels, n_columns if gradient else 0))
    return total._replace(gradient=of_U)


def is_single(X: Any) -> bool:
    """Whether rows are computed in single precision: on a device alone."""
    return is_device_array(X) and X.dtype == namespace(X).float32


class Intercept(NamedTuple):
    """Intercepts as factors of the exponentials or, if they are large, as summands of the scores.

    Added to scores of single precision they would be rounded in the same direction in all rows, and the loss would jump
    by 1e-8 from one b to the next.

    Attributes
    ----------
    values : array of shape (n_requests, n_labels)
        Factors or summands.
    is_factor : bool
        Whether they are factors.
    """

    values: Any
    is_factor: bool


def split_intercept(b: FloatArray, *, single: bool) -> tuple[Intercept, FloatArray]:
    """Intercepts in the form that the rows use, and the remainder of b.

    The remainder is the largest intercept of each request, so that no factor exceeds 1, and the rounding error.
    """
    rest = b - b.max(axis=1, keepdims=True)
    is_factor = -float(rest.min()) < SAFE_SCORES[4 if single else 8]
    values = np.exp(rest) if is_factor else rest
    if single:
        values = values.astype(np.float32).astype(np.float64)
    return Intercept(values, is_factor), b - (np.log(values) if is_factor else values)


def _softmax(scores: Any, weight: Any, intercept: Intercept | None, *, safe: bool | None) -> Any:
    """`weighted_softmax` of scores with their intercept."""
    if intercept is None:
        return weighted_softmax(scores, weight, safe=safe)
    if intercept.is_factor:
        return weighted_softmax(scores, weight, safe=safe, factors=intercept.values)
    scores += intercept.values
    return weighted_softmax(scores, weight, safe=False)


def _missing_softmax(
    scores: FloatArray, weight: FloatArray | None, D: FloatArray, missing: str, intercept: Intercept | None
) -> tuple[FloatArray, FloatArray]:
    """`weighted_softmax` of rows with missing degrees, and ``hidden`` of `SoftmaxSums`.

    The scores become w_i p_ij over the observed labels alone ("renormalised"), or w_i (p_ij − r_i q_ij) with the rest r
    of the mass and the softmax q over the missing labels ("degrees").
    """
    gaps = np.ascontiguousarray(np.isnan(D).T)
    if missing == "renormalised":
        scores[:, gaps] = -np.inf
        return _softmax(scores, weight, intercept, safe=False), np.zeros(scores.shape[:2])
    rest = rest_of(D)
    some = np.flatnonzero(rest > 0)
    hidden = np.where(gaps[:, some], scores[..., some], -np.inf)
    part = _softmax(scores, weight, intercept, safe=None)
    if not len(some):
        return part, np.zeros(scores.shape[:2])
    part -= _softmax(hidden, rest[some] if weight is None else weight[some] * rest[some], intercept, safe=False)
    scores[..., some] -= hidden
    return part, hidden.sum(axis=-1)


def gram(X: Any, weight: Any, mean: Any, n_threads: int = 1) -> Any:
    """Σ_i w_i (x_i − mean)(x_i − mean)ᵀ in double precision; a mean of None stands for zero.

    For sparse rows Σ_i w_i x_i x_iᵀ, so that they stay sparse; the caller subtracts the product of the means.
    """
    if sparse.issparse(X):
        X = X.astype(np.float64, copy=False)
        rooted = X if weight is None else X.multiply(np.sqrt(weight)[:, None]).tocsr()
        return np.asarray((rooted.T @ rooted).toarray())
    xp = namespace(X)

    def contribution(some: slice) -> Any:
        rows = _block(X, some)
        if mean is not None:
            rows = rows - mean  # before it is squared, so that no digits cancel afterwards
        if weight is not None:
            rows = rows * as_type_of(xp.sqrt(weight[some]), rows)[:, None]
        return product_over_rows(rows.T, rows)

    return _sum(contribution, X, n_threads)


def variances(X: Any, weight: Any, mean: Any) -> Any:
    """Σ_i w_i (x_ik − mean_k)² of each column k in double precision; for sparse rows Σ_i w_i x_ik²."""
    if sparse.issparse(X):
        squares = X.data.astype(np.float64, copy=False) ** 2
        return row_sum(sparse.csr_matrix((squares, X.indices, X.indptr), X.shape), weight)  # X.power copies the indices

    def contribution(some: slice) -> Any:
        rows = _block(X, some)
        squares = as_double(rows if mean is None else rows - mean) ** 2
        return row_sum(squares, None if weight is None else weight[some])

    return _sum(contribution, X)


def row_sum(table: Any, weight: Any) -> Any:
    """Σ_i w_i table_i in double precision, of a table of any kind; a weight of None counts each row once."""
    if is_device_array(table):
        return sum_in_double(table, axis=0) if weight is None else weighted_row_sum(table, weight)
    return np.asarray((np.ones(table.shape[0]) if weight is None else weight) @ table, dtype=np.float64)


def row_products(X: Any, D: Any, weight: Any) -> Any:
    """Σ_i w_i x_i d_iᵀ in double precision."""
    if not is_device_array(X):
        X = X.astype(np.float64, copy=False) if sparse.issparse(X) else X
        return np.asarray(X.T @ (D if weight is None else D * weight[:, None]))

    def contribution(some: slice) -> Any:
        of_labels = D[some, ...]
        if weight is not None:
            of_labels = of_labels * as_type_of(weight[some], D)[:, None]
        return product_over_rows(X[some, ...].T, of_labels)

    return _sum(contribution, X)


def _block(X: Any, some: slice) -> Any:
    """A block of dense rows: NumPy rows in double precision, rows of a device in their own."""
    return X[some, ...] if is_device_array(X) else X[some].astype(np.float64, copy=False)


def _sum(contribution: Callable[[slice], Any], X: Any, n_threads: int = 1) -> Any:
    """Sum of a function of blocks of rows."""
    parts = in_threads(contribution, blocks(X, X.shape[1], GRAM_CELLS), 1 if is_device_array(X) else n_threads)
    total = next(parts)
    for part in parts:
        total += part
    return total
