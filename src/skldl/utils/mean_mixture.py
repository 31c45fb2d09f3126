"""Mixtures of predictions with the mean distribution of the training rows: (1 − s)P + s·mean.

A fraction s > 0 makes every degree positive, so that the Kullback-Leibler divergence is finite. When a row (or its
group) is held out, the mean is that of the other rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from skldl.utils.arrays import (
    as_double,
    as_type_of,
    is_device_array,
    namespace,
    row_blocks,
    to_numpy,
    weighted_mean,
)
from skldl.utils.typing import FloatArray, IntArray

MEAN_FRACTIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
"""Fractions of the mean distribution to choose from; chosen by hand, each about twice the one before."""
SCREENING_FRACTIONS = (0.001, 0.01, 0.05, 0.2)
"""A coarser grid, also chosen by hand, for first comparisons of settings."""
MIN_DEGREE = 1e-12
"""Minimum degree of the mean distribution: a label that no training row has would make a divergence infinite."""
BLOCK_CELLS = 2**17
"""Tables of predictions are scored in blocks of about this many numbers, small enough for the cache."""


def row_weights(n_samples: int, sample_weight: FloatArray | None) -> FloatArray:
    """Weights that sum to one."""
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples)
    scaled = sample_weight / sample_weight.max()  # a sum of huge weights must not overflow
    return np.asarray(scaled / scaled.sum())


def mean_distribution(D: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Weighted mean of the rows, with every degree at least `MIN_DEGREE`."""
    return _raised(weighted_mean(D, weight)[None])[0]


def means_without(D: FloatArray, weight: FloatArray | None, codes: IntArray | None) -> FloatArray:
    """For each row the mean distribution of the rows that remain when it, or its whole group, is held out.

    Where all rows are one row or one group, nothing remains: then it is their own mean.
    """
    if is_device_array(D):  # NumPy sums over groups; the table is small beside the matrices of the callers
        host = means_without(to_numpy(as_double(D)), None if weight is None else to_numpy(weight), codes)
        return as_type_of(host, as_double(D))
    w = np.ones(len(D)) if weight is None else weight
    own = np.arange(len(D)) if codes is None else codes
    weighted = w[:, None] * D
    removed_weight = np.bincount(own, w)
    removed = np.column_stack([np.bincount(own, column) for column in weighted.T])
    total_weight = w.sum()
    rest = np.maximum(weighted.sum(axis=0) - removed, 0.0)  # rounding can make the difference negative
    rest_weight = total_weight - removed_weight
    heaviest = int(removed_weight.argmax())
    if removed_weight[heaviest] > total_weight / 2:  # the difference would lose digits: add the other rows up instead
        others = own != heaviest
        if not others.any():  # nothing remains
            return _raised(removed / removed_weight[:, None])[own]
        rest[heaviest], rest_weight[heaviest] = weighted[others].sum(axis=0), w[others].sum()
    return _raised(rest / rest_weight[:, None])[own]


def _raised(means: FloatArray) -> FloatArray:
    means = np.maximum(means, MIN_DEGREE)
    return np.asarray(means / means.sum(axis=1, keepdims=True))


def mix(P: FloatArray, means: FloatArray, fraction: float) -> FloatArray:
    """Mix predictions with the mean distribution: (1 − fraction)·P + fraction·means."""
    return (1 - fraction) * P + fraction * means


def best_fraction(
    D: FloatArray, P: FloatArray, means: FloatArray, weight: FloatArray | None, fractions: Sequence[float]
) -> tuple[float, float]:
    """Return the least mean Kullback-Leibler divergence from D to the mixtures, and the fraction that reaches it."""
    divergences = mixture_divergences(D, P[None], means, weight, fractions)[0]
    position = first_best(divergences)
    return float(divergences[position]), float(fractions[position])


def mixture_divergences(
    D: FloatArray, tables: FloatArray, means: FloatArray, weight: FloatArray | None, fractions: Sequence[float]
) -> FloatArray:
    """Mean Kullback-Leibler divergence of each table of predictions (n_tables × n × c) mixed with each fraction."""
    if is_device_array(D):
        return _mixture_divergences_on_device(D, tables, means, weight, fractions)
    row_weight = row_weights(len(D), weight)
    weighted = row_weight[:, None] * D
    constant = -float(row_weight @ special.entr(D).sum(axis=1))
    divergences = np.empty((len(tables), len(fractions)))
    step = max(1, BLOCK_CELLS // D.size)
    for start in range(0, len(tables), step):
        block = slice(start, start + step)
        for column, fraction in enumerate(fractions):
            mixed = mix(tables[block], means, fraction)
            if fraction > 0:
                score = np.einsum("tnc,nc->t", np.log(mixed, out=mixed), weighted)
            else:  # degrees of zero can remain: infinitely bad where the label has mass, 0 ln 0 = 0 where it has none
                score = special.xlogy(weighted, mixed).sum(axis=(1, 2))
            divergences[block, column] = constant - score
    return divergences


def _mixture_divergences_on_device(
    D: Any, tables: Any, means: Any, weight: Any, fractions: Sequence[float]
) -> FloatArray:
    xp = namespace(D)
    D = as_double(D)
    weighted = D / D.shape[0] if weight is None else (weight / xp.sum(weight))[:, None] * D
    constant = xp.sum(xp.where(D > 0, weighted * xp.log(xp.where(D > 0, D, 1.0)), 0.0))
    found = []
    for block in row_blocks(tables.shape[0], D.shape[0] * D.shape[1]):
        columns = []
        for fraction in fractions:
            logarithm = xp.log(mix(tables[block, ...], means, float(fraction)))
            terms = xp.where(weighted > 0, weighted * logarithm, 0.0)
            columns.append(constant - xp.sum(xp.sum(terms, axis=2), axis=1))
        found.append(to_numpy(xp.stack(columns, axis=1)))
    return np.concatenate(found)


def first_best(divergences: npt.ArrayLike) -> int:
    """Position of the first value that equals the least up to rounding, so that the last bit decides no tie."""
    values = np.asarray(divergences, dtype=np.float64)
    least = values.min()
    # 1e-9 of the least is far above the rounding of a mean and far below a difference that matters; 1e-15: a least of 0
    return int(np.argmax(values <= least + 1e-9 * abs(least) + 1e-15))
