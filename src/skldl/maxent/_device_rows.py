"""The maximum entropy objective on rows that lie on a device: sums over blocks of rows there, small arrays on the host.

An evaluation sends U and b to the device and brings back loss, gradient and mean prediction in one copy; the optimiser
works on these in NumPy. Products of rows have the precision of the rows; sums over the rows of a block are added up in
double precision. What a block contributes is computed by the functions of `skldl.maxent._blocks`.
"""

from typing import Any

import numpy as np

from skldl.maxent import _blocks
from skldl.maxent._constant_columns import CONSTANT_COLUMN
from skldl.maxent._row_moments import Moments
from skldl.maxent._rows_objective import RowsCrossEntropy, few_rows
from skldl.maxent._whitening import LARGEST_MATRIX, Factorisation
from skldl.utils.arrays import (
    as_double,
    as_type_of,
    namespace,
    product_over_rows,
    row_blocks,
    space,
    sum_in_double,
    to_numpy,
    weighted_row_sum,
)
from skldl.utils.simplex import entropy
from skldl.utils.typing import FloatArray

SCORE_CELLS = 2**26
"""Scores of one block, labels × rows: large enough for full speed, small enough to leave memory to the rows."""
SINGLE_ROWS = 2**17
"""Fewer rows are computed in double precision always: their rounding errors would not average out in the loss."""
SAFE_SCORES = {4: 60.0, 8: _blocks.SAFE_SCORE}
"""Scores up to this size, by bytes of a number, can be exponentiated as they are."""
CONSTANT_COLUMNS = {4: 1e-12, 8: CONSTANT_COLUMN}
"""Variances up to this share of the squared mean, by bytes of a number, are nothing but rounding error."""


class DeviceRows:
    """Rows on a device, with their distributions and weights.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Features.
    D : array of shape (n_samples, n_labels)
        Distributions, of the same dtype.
    weight : array of shape (n_samples,) or None
        Weights in double precision; None counts every row once.
    """

    def __init__(self, X: Any, D: Any, weight: Any) -> None:
        if X.shape[0] < SINGLE_ROWS:
            X, D = as_double(X), as_double(D)
        self.X, self.D, self.weight = X, D, weight
        self.n_rows, self.n_features = X.shape
        self.n_labels = D.shape[1]
        self.total = float(self.n_rows) if weight is None else float(namespace(weight).sum(weight))
        self.bytes = 4 if X.dtype == namespace(X).float32 else 8
        self._largest: FloatArray | None = None

    def largest(self) -> FloatArray:
        """Largest absolute value of each column."""
        if self._largest is None:
            xp = namespace(self.X)
            low, high = (to_numpy(as_double(bound(self.X, axis=0))) for bound in (xp.min, xp.max))
            self._largest = np.maximum(np.abs(low), np.abs(high))
        return self._largest

    def share(self, rows: slice) -> Any:
        """Weights of some rows, such that all weights sum to one; a number if they are equal."""
        return 1.0 / self.total if self.weight is None else self.weight[rows] / self.total

    def is_safe(self, U: FloatArray) -> bool:
        """Whether no score of any row can overflow or vanish in an exponential, by a bound that needs no row."""
        return float((self.largest() @ np.abs(U)).max()) < SAFE_SCORES[self.bytes]

    def evaluate(self, U: FloatArray, b: FloatArray | None) -> tuple[float, FloatArray, FloatArray]:
        """Σ ω ln Σ exp s, its gradient over U, and the mean prediction: one pass over the rows.

        The intercept is multiplied to the exponentials. Added to scores of single precision, it would be rounded in the
        same direction in all rows, and the loss would jump by 1e-8 from one b to the next.
        """
        xp, device = space(self.X)
        across = as_type_of(U.T, self.X)
        safe = self.is_safe(U)
        top = 0.0 if b is None else float(b.max())
        intercept, factors = None, None
        if b is not None and np.ptp(b) < SAFE_SCORES[self.bytes]:
            factors = as_type_of(np.exp(b - top)[:, None], self.X)
        elif b is not None:
            intercept, safe = as_type_of((b - top)[:, None], self.X), False
        log_partition = xp.zeros((), dtype=xp.float64, device=device)
        gradient = xp.zeros((self.n_labels, self.n_features), dtype=xp.float64, device=device)
        mean = xp.zeros((self.n_labels,), dtype=xp.float64, device=device)

        def normalise(scores: Any, some: slice) -> Any:
            return _blocks.weighted_softmax(scores, self.share(some), xp, safe=safe, factors=factors)

        for some in row_blocks(self.n_rows, self.n_labels, SCORE_CELLS):
            part, products, sums = _blocks.dense_block(self.X[some, ...], across, intercept, normalise, some, xp)
            log_partition += part
            gradient += products
            mean += sums
        found = to_numpy(xp.concat([log_partition[None], mean, xp.reshape(gradient, (-1,))]))
        value, means = float(found[0]), found[1 : 1 + self.n_labels]
        slope = np.ascontiguousarray(found[1 + self.n_labels :].reshape(gradient.shape).T)
        if self.bytes == 4:  # the device saw rounded weights: without this term the loss would not be smooth in U
            value += float(np.vdot(slope, U - U.astype(np.float32)))
        if b is not None:
            seen = b - top if factors is None else np.log(to_numpy(as_double(factors))[:, 0])
            value += top + float(means @ (b - top - seen))
        return value, slope, means

    def moments(self, *, about_mean: bool, columns: bool = False) -> Moments:
        """Moments of the rows, as `skldl.maxent._row_moments` reads them from chunks.

        Parameters
        ----------
        about_mean : bool
            Whether products of columns are taken about the mean.
        columns : bool, default=False
            Whether to count zeros and to look for two-valued columns, which takes two more passes.
        """
        xp, device = space(self.X)
        p, c = self.n_features, self.n_labels
        sums = self._weighted_sums(self.X)
        mean = sums / self.total if about_mean else None
        centre = None if mean is None else as_type_of(mean, self.X)
        square = p <= LARGEST_MATRIX
        products = xp.zeros((p, p) if square else (p,), dtype=xp.float64, device=device)
        target = xp.zeros((p, c), dtype=xp.float64, device=device)
        entropy_of_D = xp.zeros((), dtype=xp.float64, device=device)
        for some in row_blocks(self.n_rows, max(p, c), SCORE_CELLS):
            rows, D = self.X[some, ...], self.D[some, ...]
            weight = None if self.weight is None else self.weight[some]
            contribution = _blocks.block_gram if square else _blocks.block_variances
            products += contribution(rows, weight, centre, xp)
            of_rows = entropy(D)
            if weight is not None:
                of_rows = as_double(of_rows) * weight
                D = D * xp.astype(weight, D.dtype, copy=False)[:, None]
            target += product_over_rows(rows.T, D)
            entropy_of_D += sum_in_double(of_rows)
        n_nonzero, low, high, inside = column_facts(self.X) if columns else (np.zeros(p),) * 4
        return Moments(
            count=self.n_rows,
            total=self.total,
            sums=sums,
            measured=sums,
            products=to_numpy(products),
            target=to_numpy(target),
            mass=self._weighted_sums(self.D),
            entropy=float(entropy_of_D),
            n_nonzero=n_nonzero,
            low=low,
            high=high,
            inside=inside,
            about_mean=about_mean,
            is_sparse=False,
            constant=CONSTANT_COLUMNS[self.bytes],
        )

    def _weighted_sums(self, table: Any) -> FloatArray:
        """Σ_i w_i table_i, in double precision."""
        if self.weight is None:
            return to_numpy(sum_in_double(table, axis=0))
        return to_numpy(weighted_row_sum(table, self.weight))


def column_facts(X: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Of each column: numbers other than zero, least and largest value, and whether others lie between them."""
    xp = namespace(X)
    low, high = xp.min(X, axis=0), xp.max(X, axis=0)
    n_nonzero, inside = 0, 0
    for some in row_blocks(X.shape[0], X.shape[1], SCORE_CELLS):
        rows = X[some, ...]
        n_nonzero = n_nonzero + xp.sum(xp.astype(rows != 0, xp.int64), axis=0)
        inside = inside + xp.sum(xp.astype((rows != low) & (rows != high), xp.int64), axis=0)
    return (
        to_numpy(n_nonzero).astype(np.float64),
        to_numpy(as_double(low)),
        to_numpy(as_double(high)),
        (to_numpy(inside) > 0).astype(np.float64),
    )


def device_problem(
    X: Any, D: Any, weight: Any, alpha: float, *, fit_intercept: bool
) -> tuple[RowsCrossEntropy, Factorisation] | None:
    """Objective and factorisation of rows on a device; None if the rows are few: these are whitened on the host."""
    if few_rows(X.shape[0], X.shape[1]):
        return None
    rows = DeviceRows(X, D, weight)
    moments = rows.moments(about_mean=fit_intercept)
    objective = RowsCrossEntropy(rows.evaluate, moments, alpha=alpha, fit_intercept=fit_intercept)
    return objective, moments.factorisation(None, fit_intercept=fit_intercept)
