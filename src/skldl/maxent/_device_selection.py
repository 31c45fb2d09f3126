"""The choice of alpha by cross-validation on a device, fold by fold; see `skldl.SABFGSCV`."""

from typing import Any

import numpy as np

from skldl.maxent._device_rows import DeviceRows, column_facts
from skldl.maxent._feature_scaling import rare_columns
from skldl.maxent._fitting import Settings, Weights
from skldl.maxent._rows_selection import fit_scaled, scaled_path
from skldl.utils.arrays import as_double, as_type_of, namespace, row_blocks, take_rows
from skldl.utils.simplex import entropy, log_softmax
from skldl.utils.typing import BoolArray, FloatArray, IntArray


def held_out_on_device(
    X: Any,
    D: Any,
    sample_weight: Any,
    train: IntArray,
    test: IntArray,
    alphas: FloatArray,
    settings: Settings,
    scaling: str,
    keep: bool,
) -> tuple[FloatArray, list[Any]]:
    """Held-out mean Kullback-Leibler divergence of one fold for each alpha, and the predictions if they are kept."""
    xp = namespace(X)
    rows = DeviceRows(*(None if part is None else take_rows(part, train) for part in (X, D, sample_weight)))
    moments = rows.moments(about_mean=True, columns=scaling == "mixed")
    X_test, D_test = take_rows(X, test), take_rows(D, test)
    share = None
    if sample_weight is not None:
        share = take_rows(sample_weight, test)
        share = share / xp.sum(share)
    minus_entropy = -_mean(as_double(entropy(D_test)), share)
    divergences = np.empty(len(alphas))
    predictions: list[Any] = [None] * len(alphas)
    for place, weights, intercept in scaled_path(rows.evaluate, moments, alphas, scaling, settings):
        W, b = as_type_of(weights, X), as_type_of(intercept, X)
        crossed, parts = [], []
        for some in row_blocks(X_test.shape[0], D.shape[1]):
            log_P = log_softmax(X_test[some, ...] @ W + b)
            crossed.append(xp.sum(as_double(D_test[some, ...] * log_P), axis=1))
            if keep:
                parts.append(xp.exp(log_P))
        divergences[place] = minus_entropy - _mean(xp.concat(crossed), share)
        if keep:
            predictions[place] = xp.concat(parts)
    return divergences, predictions


def _mean(values: Any, share: Any) -> float:
    xp = namespace(values)
    return float(xp.mean(values) if share is None else xp.sum(share * values))


def fit_on_device(
    X: Any, D: Any, sample_weight: Any, alpha: float, scaling: str, settings: Settings
) -> tuple[Weights, FloatArray]:
    """Fit all rows; see `fit_scaled`."""
    rows = DeviceRows(X, D, sample_weight)
    moments = rows.moments(about_mean=True, columns=scaling == "mixed")
    return fit_scaled(rows.evaluate, moments, alpha, scaling, settings)


def together(tests: list[IntArray], predictions: list[Any]) -> Any:
    """Predictions of all folds in the order of the rows; each row is held out once."""
    xp = namespace(predictions[0])
    order = np.argsort(np.concatenate(tests), kind="stable")
    return take_rows(xp.concat(predictions), order)


def device_rare_columns(X: Any) -> BoolArray:
    """Columns with two values, or with more than nine zeros in ten."""
    n_nonzero, low, high, inside = column_facts(X)
    return rare_columns((low < high) & (inside == 0), n_nonzero, X.shape[0])
