"""Arithmetic of `skldl.simplex` without validation, for arrays that the package itself has computed.

NumPy arrays are computed in double precision, arrays of other libraries where they are and in their own precision. The
last axis has the labels.
"""

from typing import Any

import numpy as np
from scipy import special

from skldl.utils.arrays import is_device_array, namespace, space
from skldl.utils.typing import FloatArray


def softmax(scores: Any) -> Any:
    """Distributions proportional to exp(scores)."""
    if is_device_array(scores):
        xp = namespace(scores)
        values = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        return values / xp.sum(values, axis=-1, keepdims=True)
    values = np.array(scores, dtype=np.float64)
    values -= values.max(axis=-1, keepdims=True)  # exponentials of numbers up to 0 cannot overflow
    np.exp(values, out=values)
    values /= values.sum(axis=-1, keepdims=True)
    return values


def log_softmax(scores: Any) -> Any:
    """Logarithms of the distributions proportional to exp(scores)."""
    if is_device_array(scores):
        xp = namespace(scores)
        shifted = scores - xp.max(scores, axis=-1, keepdims=True)
        return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))
    return np.asarray(special.log_softmax(np.asarray(scores, dtype=np.float64), axis=-1))


def entropy(rows: Any) -> Any:
    """Shannon entropy of each row in nats, with 0 ln 0 = 0."""
    if not is_device_array(rows):
        return np.asarray(special.entr(np.asarray(rows, dtype=np.float64)).sum(axis=-1))
    xp = namespace(rows)
    if hasattr(xp, "special") and hasattr(xp.special, "entr"):
        return xp.sum(xp.special.entr(rows), axis=-1)
    return -xp.sum(xp.where(rows > 0, rows, 0.0) * xp.log(xp.where(rows > 0, rows, 1.0)), axis=-1)


def project(rows: Any) -> Any:
    """Nearest distribution to each row in Euclidean distance: one threshold is subtracted, and the rest cut at zero.

    With the degrees of a row in descending order u, the threshold is (u_1 + … + u_k − 1) / k for the largest k for
    which u_k is above it.
    """
    if is_device_array(rows):
        return _project_on_device(rows)
    values = np.array(rows, dtype=np.float64)
    if _moved_to_sum_one(values):  # nothing is cut, as in most predictions: no need to sort
        return values
    with np.errstate(over="ignore"):  # differences of huge numbers are cut in the next line
        values -= values.max(axis=-1, keepdims=True)  # the projection does not depend on a common shift
    np.maximum(values, -1.0, out=values)  # what is one below the largest degree is cut anyway: no sum overflows
    if _moved_to_sum_one(values):
        return values
    descending = -np.sort(-values, axis=-1)
    excess = np.cumsum(descending, axis=-1) - 1.0
    counts = np.arange(1, values.shape[-1] + 1)
    support = (descending * counts > excess).sum(axis=-1, keepdims=True)
    threshold = np.take_along_axis(excess, support - 1, axis=-1) / support
    values -= threshold
    np.maximum(values, 0.0, out=values)
    values /= values.sum(axis=-1, keepdims=True)  # the sum is one up to the rounding of the threshold
    return values


def _moved_to_sum_one(values: FloatArray) -> bool:
    """Add one number to each row, in place, so that it sums to one, and return True, if all degrees become positive.

    Rows are left alone if one has a large sum, in which the one would be lost in rounding, or is not finite.
    """
    sums, n_labels = np.einsum("...j->...", values)[..., None], values.shape[-1]
    threshold = (sums - 1.0) / n_labels
    if not ((np.abs(sums) <= n_labels + 1.0).all() and (values > threshold).all()):
        return False
    values -= threshold
    values /= np.einsum("...j->...", values)[..., None]
    return True


def _project_on_device(rows: Any) -> Any:
    xp, device = space(rows)
    values = rows - xp.max(rows, axis=-1, keepdims=True)
    descending = xp.sort(values, axis=-1, descending=True)
    excess = xp.cumulative_sum(descending, axis=-1) - 1.0
    counts = xp.arange(1, values.shape[-1] + 1, dtype=values.dtype, device=device)
    support = xp.sum(xp.astype(descending * counts > excess, xp.int64), axis=-1, keepdims=True)
    threshold = xp.take_along_axis(excess, support - 1, axis=-1) / xp.astype(support, values.dtype)
    values = xp.clip(values - threshold, 0.0)
    return values / xp.sum(values, axis=-1, keepdims=True)
