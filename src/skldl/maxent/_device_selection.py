"""The choice of alpha by cross-validation on a device, fold by fold; see `skldl.SABFGSCV`."""

from typing import Any

import numpy as np

from skldl._array_api import as_double, as_type_of, entropies, log_softmax, namespace, row_blocks, take_rows
from skldl._typing import BoolArray, FloatArray, IntArray
from skldl.maxent._device_rows import DeviceRows, column_facts
from skldl.maxent._fitting import Settings, Weights, fit_objective, walk_path
from skldl.maxent._row_moments import Moments
from skldl.maxent._rows_objective import RowsCrossEntropy
from skldl.maxent._rows_selection import scaling_factors


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
    minus_entropy = -_mean(as_double(entropies(D_test)), share)
    divergences = np.empty(len(alphas))
    predictions: list[Any] = [None] * len(alphas)
    for place, weights, factors in _path(rows, moments, alphas, settings, scaling):
        W, b = as_type_of(weights.W * factors[:, None], X), as_type_of(weights.b, X)
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


def _path(rows: DeviceRows, moments: Moments, alphas: FloatArray, settings: Settings, scaling: str) -> Any:
    """Place, weights of the scaled features and factors for each alpha."""
    factors = scaling_factors(moments, scaling)
    objective = RowsCrossEntropy(rows.evaluate, moments, factors=factors, fit_intercept=True)
    factorisation = moments.factorisation(factors, fit_intercept=True)

    def fit_zero() -> Weights:
        objective.alpha = 0.0
        return fit_objective(objective, factorisation, settings)

    for place, weights in walk_path(objective, factorisation, list(alphas), settings, fit_zero):
        yield place, weights, factors


def fit_scaled(
    X: Any, D: Any, sample_weight: Any, alpha: float, scaling: str, settings: Settings
) -> tuple[Weights, FloatArray]:
    """Fit all rows; the weights of the scaled features, and what the columns were multiplied by."""
    rows = DeviceRows(X, D, sample_weight)
    moments = rows.moments(about_mean=True, columns=scaling == "mixed")
    factors = scaling_factors(moments, scaling)
    objective = RowsCrossEntropy(rows.evaluate, moments, factors=factors, alpha=alpha, fit_intercept=True)
    return fit_objective(objective, moments.factorisation(factors, fit_intercept=True), settings), factors


def together(tests: list[IntArray], predictions: list[Any]) -> Any:
    """Predictions of all folds in the order of the rows; each row is held out once."""
    xp = namespace(predictions[0])
    order = np.argsort(np.concatenate(tests), kind="stable")
    return take_rows(xp.concat(predictions), order)


def rare_columns(X: Any) -> BoolArray:
    """Columns with two values, or with more than nine zeros in ten."""
    n_nonzero, low, high, inside = column_facts(X)
    return np.asarray(((low < high) & (inside == 0)) | (n_nonzero < 0.1 * X.shape[0]))
