"""Weighted means of the distributions of neighbours, for one number of neighbours or for many; pure functions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from skldl.utils.arrays import as_double, as_type_of, namespace, row_blocks, take_rows
from skldl.utils.typing import FloatArray, IntArray

Weights = str | Callable[[FloatArray], FloatArray]

GATHER_CELLS = 2**15
"""Up to so many numbers the neighbours' distributions are copied: quicker than a sparse product, and 256 KiB."""


def average(weights: FloatArray, neighbors: IntArray, distributions: FloatArray) -> FloatArray:
    """Weighted mean of the neighbours' distributions."""
    n_new, n_neighbors = neighbors.shape
    n_samples, n_labels = distributions.shape
    if not isinstance(distributions, np.ndarray):
        return _average_on_device(weights, neighbors, distributions)
    if neighbors.size * n_labels <= GATHER_CELLS:
        total = np.einsum("ij,ijk->ik", weights, distributions.take(neighbors, axis=0))
        return np.asarray(total / weights.sum(axis=1, keepdims=True))
    starts = np.arange(0, n_new * n_neighbors + 1, n_neighbors)
    shape = (n_new, n_samples)
    chosen = sparse.csr_array((np.ravel(weights), np.ravel(neighbors), starts), shape=shape)  # gathers no copies
    return np.asarray(chosen @ distributions / weights.sum(axis=1, keepdims=True))


def _average_on_device(weights: Any, neighbors: Any, distributions: Any) -> Any:
    xp = namespace(distributions)
    n_neighbors, n_labels = neighbors.shape[1], distributions.shape[1]
    parts = []
    for rows in row_blocks(neighbors.shape[0], n_neighbors * n_labels):
        chosen = as_double(take_rows(distributions, xp.reshape(neighbors[rows, ...], (-1,))))
        chosen = xp.reshape(chosen, (-1, n_neighbors, n_labels))
        share = weights[rows, ...] / xp.sum(weights[rows, ...], axis=1, keepdims=True)
        parts.append(xp.sum(share[:, :, None] * chosen, axis=1))
    return xp.astype(xp.concat(parts), distributions.dtype, copy=False)


def averages(
    distances: FloatArray,
    neighbors: IntArray,
    counts: Sequence[int],
    distributions: FloatArray,
    weights: Weights,
    row_weight: FloatArray | None,
) -> FloatArray:
    """Predictions from the first k neighbours for each k in ``counts``: one table for each."""
    if callable(weights):  # it may look at a whole row of distances, so each k asks again
        tables = [
            average(
                neighbor_weights(distances[:, :k], neighbors[:, :k], weights, row_weight),
                neighbors[:, :k],
                distributions,
            )
            for k in counts
        ]
        return namespace(distributions).stack(tables)
    of_neighbors = neighbor_weights(distances, neighbors, weights, row_weight)
    places: dict[int, list[int]] = {}
    for place, k in enumerate(counts):
        places.setdefault(k, []).append(place)
    if not isinstance(distributions, np.ndarray):
        return _averages_on_device(of_neighbors, neighbors, places, distributions)
    table = np.empty((len(counts), len(neighbors), distributions.shape[1]))
    columns = np.ascontiguousarray(of_neighbors.T)[:, :, None]
    total, total_weight = np.zeros(table.shape[1:]), np.zeros((len(neighbors), 1))
    for k, (weight, rows) in enumerate(zip(columns, neighbors.T, strict=True), start=1):
        total += weight * distributions[rows]
        total_weight += weight
        for place in places.get(k, ()):
            np.divide(total, total_weight, out=table[place])
    return table


def _averages_on_device(weights: Any, neighbors: Any, places: dict[int, list[int]], distributions: Any) -> Any:
    xp = namespace(distributions)
    total, total_weight, tables = 0.0, 0.0, {}
    for k in range(1, max(places) + 1):
        weight = weights[:, k - 1 : k]
        total = total + weight * as_double(take_rows(distributions, neighbors[:, k - 1]))
        total_weight = total_weight + weight
        for place in places.get(k, ()):
            tables[place] = xp.astype(total / total_weight, distributions.dtype, copy=False)
    return xp.stack([tables[place] for place in sorted(tables)])


def neighbor_weights(
    distances: FloatArray, neighbors: IntArray, weights: Weights, row_weight: FloatArray | None
) -> FloatArray:
    """Weights of the neighbours up to a factor per row: by distance, times the weights of the training rows."""
    xp = namespace(distances)
    if callable(weights):
        found = _check_callable_weights(weights(distances), distances)
    elif weights == "distance":
        nearest = distances[:, :1]
        with np.errstate(invalid="ignore"):  # 0/0 where the nearest is at distance zero, replaced at once
            found = xp.where(nearest > 0, nearest / distances, as_double(distances == 0))
    else:
        found = xp.ones_like(distances)
    if row_weight is not None:
        if xp is np:
            of_rows = row_weight[neighbors]
        else:
            of_rows = xp.reshape(take_rows(row_weight, xp.reshape(neighbors, (-1,))), neighbors.shape)
        found = found * (of_rows / xp.max(of_rows, axis=1, keepdims=True))  # tiny weights must not vanish in sums
    return found


def _check_callable_weights(weights: Any, distances: FloatArray) -> FloatArray:
    xp, shape = namespace(distances), tuple(distances.shape)
    weights = np.asarray(weights, dtype=np.float64) if xp is np else as_type_of(weights, distances)
    if tuple(weights.shape) != shape:
        raise ValueError(
            f"weights returned shape {tuple(weights.shape)} for distances of shape {shape}: one weight for each."
        )
    if not bool(xp.all(xp.isfinite(weights))) or float(xp.min(weights)) < 0:
        raise ValueError("weights returned numbers that are negative or not finite. Weights are at least zero.")
    something = xp.any(weights != 0, axis=1)
    if not bool(xp.all(something)):
        row = int(xp.argmin(something if xp is np else xp.astype(something, xp.int32)))
        raise ValueError(f"weights gave no weight to any neighbour of row {row}. Let far neighbours keep some weight.")
    return weights
