"""A feed-forward network with softmax output: values, loss and gradient; the training is in `AABP`.

Shapes: X is n × q; layer l has weights W_l (units in × units out) and intercepts b_l; the last layer has one unit for
each label. All weights are parts of one flat vector, so that any optimiser can change them; `unflatten` returns views.
With η the net input of the output units and z = softmax(η), the loss of a row is a function of ln z and d that also
returns its derivative in η: one of `skldl.losses`, by default E = ‖z − d‖² with ∂E/∂η = 2 [z ∘ (z − d) − z ⟨z, z − d⟩].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse, special
from sklearn.preprocessing import StandardScaler

from skldl.losses._rows import RowLoss, squared_error
from skldl.utils.arrays import (
    as_double,
    at_least,
    is_device_array,
    mean_and_variance,
    namespace,
    product_over_rows,
    row_blocks,
    space,
    sum_in_double,
)
from skldl.utils.scaling import StandardizedFeatures
from skldl.utils.simplex import log_softmax
from skldl.utils.typing import FloatArray

Layers = list[tuple[FloatArray, FloatArray]]

BLOCK_ROWS = 1024
"""Rows in a block: few enough that the values of the units stay in the processor's cache."""


@dataclass(frozen=True)
class Activation:
    """A function of the net input, and its derivative as a function of its value."""

    value: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]


ACTIVATIONS = {
    "tanh": Activation(lambda net: namespace(net).tanh(net), lambda value: 1 - value**2),
    "logistic": Activation(lambda net: _expit(net), lambda value: value * (1 - value)),
    "relu": Activation(lambda net: at_least(net, 0), lambda value: _is_positive(value)),
    "identity": Activation(lambda net: net, lambda value: namespace(value).ones_like(value)),
}


def _expit(net: Any) -> Any:
    return special.expit(net) if isinstance(net, np.ndarray) else 1.0 / (1.0 + namespace(net).exp(-net))


def _is_positive(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (value > 0).astype(np.float64)
    return namespace(value).astype(value > 0, value.dtype)


@dataclass(frozen=True)
class Standardisation:
    """Mean and standard deviation of the columns; names as in scikit-learn's `StandardScaler`."""

    mean_: FloatArray
    scale_: FloatArray


def standardisation(X: Any, sample_weight: Any) -> Any:
    """Mean and standard deviation of the columns: by scikit-learn, on a device by its rules for constant columns."""
    if not is_device_array(X):
        return StandardScaler(with_mean=not sparse.issparse(X)).fit(X, sample_weight=sample_weight)
    n_rows = float(X.shape[0]) if sample_weight is None else float(namespace(X).sum(sample_weight))
    mean, variance = mean_and_variance(X, sample_weight)
    eps = float(np.finfo(np.float64).eps)
    # scikit-learn's rule: a variance within the rounding error of a sum over the rows is that of a constant column
    constant = variance <= n_rows * eps * variance + (n_rows * mean * eps) ** 2
    return Standardisation(mean, np.where(constant, 1.0, np.sqrt(variance)))


def unflatten(theta: FloatArray, sizes: Sequence[int]) -> Layers:
    """Return weights and intercepts of each layer as views of the flat vector."""
    layers, start = [], 0
    for n_in, n_out in pairwise(sizes):
        middle, end = start + n_in * n_out, start + (n_in + 1) * n_out
        weights = theta[start:middle]
        shape = (n_in, n_out)
        weights = weights.reshape(shape) if isinstance(theta, np.ndarray) else namespace(theta).reshape(weights, shape)
        layers.append((weights, theta[middle:end]))
        start = end
    return layers


def initial_weights(sizes: Sequence[int], mean: FloatArray, random: np.random.RandomState) -> FloatArray:
    """Draw hidden weights uniformly within Glorot's bounds; the output layer starts as the mean distribution.

    The output weights are zero and so equal for all labels: training does not depend on the order of the labels.
    """
    theta = np.zeros(sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes)))
    layers = unflatten(theta, sizes)
    for weights, _ in layers[:-1]:  # Glorot and Bengio (2010)
        bound = np.sqrt(6 / sum(weights.shape))
        weights[:] = random.uniform(-bound, bound, size=weights.shape)
    layers[-1][1][:] = np.log(np.maximum(mean, 1e-10))  # finite, but low, for a label without mass
    return theta


def log_outputs(layers: Layers, features: Any, activation: Activation) -> FloatArray:
    """Return the log of the predicted distributions; ``features`` is an array, CSR matrix or StandardizedFeatures."""
    return log_softmax(_net_outputs(layers, features, activation)[-1])


def _net_outputs(layers: Layers, features: Any, activation: Activation) -> list[FloatArray]:
    """Values of the hidden units, layer by layer, then the net input of the output units."""
    weights, intercepts = layers[0]
    if isinstance(features, StandardizedFeatures):
        product = features.times(weights)
    else:
        product = features @ weights if is_device_array(features) else np.asarray(features @ weights)
    values: list[FloatArray] = [product + intercepts]
    for weights, intercepts in layers[1:]:
        values[-1] = activation.value(values[-1])
        values.append(values[-1] @ weights + intercepts)
    return values


def loss_and_gradient(
    theta: FloatArray,
    sizes: Sequence[int],
    features: StandardizedFeatures,
    D: FloatArray,
    row_weight: FloatArray,
    activation: Activation,
    alpha: float,
    loss: RowLoss = squared_error,
) -> tuple[float, FloatArray]:
    """Return Σᵢ row_weightᵢ loss(zᵢ, dᵢ) + alpha/2 Σ_l ‖W_l‖² and its gradient in the flat vector."""
    if is_device_array(D):
        return _on_device(theta, sizes, features, D, row_weight, activation, alpha, loss)
    layers = unflatten(theta, sizes)
    gradient = np.zeros_like(theta)
    gradients = unflatten(gradient, sizes)
    total = 0.0
    for start in range(0, len(D), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        part = features if len(D) <= BLOCK_ROWS else features.take(rows)
        total += _backpropagate(layers, gradients, part, D[rows], row_weight[rows], activation, loss)
    for (weights, _), (weight_gradient, _) in zip(layers, gradients, strict=True):
        total += 0.5 * alpha * float(np.vdot(weights, weights))
        weight_gradient += alpha * weights
    return total, gradient


def _on_device(
    theta: Any,
    sizes: Sequence[int],
    features: StandardizedFeatures,
    D: Any,
    row_weight: Any,
    activation: Activation,
    alpha: float,
    loss: RowLoss,
) -> tuple[Any, Any]:
    """`loss_and_gradient` on a device, in large blocks; the gradient is in double precision, the loss an array."""
    xp, device = space(D)
    layers = unflatten(theta, sizes)
    working = unflatten(xp.astype(theta, D.dtype, copy=False), sizes)
    gradients = [tuple(xp.zeros(part.shape, dtype=xp.float64, device=device) for part in layer) for layer in layers]
    total = xp.zeros((), dtype=xp.float64, device=device)
    for rows in row_blocks(D.shape[0], sum(sizes)):
        part = features.take(rows)
        total += _backpropagate(working, gradients, part, D[rows, ...], row_weight[rows], activation, loss)
    for (weights, _), (weight_gradient, _) in zip(layers, gradients, strict=True):
        total += 0.5 * alpha * xp.sum(weights * weights)
        weight_gradient += alpha * weights
    return total, xp.concat([xp.reshape(part, (-1,)) for layer in gradients for part in layer])


def _backpropagate(
    layers: Layers,
    gradients: Layers,
    features: StandardizedFeatures,
    D: FloatArray,
    row_weight: FloatArray,
    activation: Activation,
    loss: RowLoss,
) -> float:
    """Return the weighted loss of some rows and add its gradient to ``gradients``."""
    *hidden, net = _net_outputs(layers, features, activation)
    # the loss returns its derivative in the net input, so that nothing is divided by a degree that may underflow
    if is_device_array(net):
        values, delta = loss(log_softmax(net), D)
        error = namespace(net).sum(as_double(values) * row_weight)
        delta = delta * namespace(net).astype(row_weight, delta.dtype, copy=False)[:, None]
    else:
        values, delta = loss(log_softmax(net), D)
        error = float(row_weight @ values)
        delta = delta * row_weight[:, None]
    for depth in range(len(layers) - 1, -1, -1):
        weight_gradient, intercept_gradient = gradients[depth]
        if is_device_array(delta):
            below = hidden[depth - 1] if depth else features.X
            weight_gradient += product_over_rows(below.T, delta)
            intercept_gradient += sum_in_double(delta, axis=0)
        else:
            weight_gradient += hidden[depth - 1].T @ delta if depth else features.transposed_times(delta)
            intercept_gradient += delta.sum(axis=0)
        if depth:
            delta = delta @ layers[depth][0].T
            delta *= activation.slope(hidden[depth - 1])  # as a function of the unit's value, which is known already
    return error
