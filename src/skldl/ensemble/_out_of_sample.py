"""Predictions for the rows of the training set by models that did not learn from them."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import rel_entr
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

from skldl._typing import FloatArray, IntArray
from skldl.data._dataset import rows_of
from skldl.exceptions import EmptyDataError

KEPT_BY_ESTIMATORS = ("loo_predictions_", "oob_predictions_", "oof_predictions_")
"""Attributes under which a fitted estimator keeps held-out predictions: leave-one-out, out-of-bag, out-of-fold."""
MEAN_SHARES = (0.0, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5)


def make_folds(n_folds: int, n_rows: int, groups: Any, random_state: int) -> list[tuple[IntArray, IntArray]]:
    """Shuffled folds in which rows of one group stay together.

    Parameters
    ----------
    n_folds : int
        Number of folds; fewer if there are fewer rows or groups.
    n_rows : int
        Number of rows.
    groups : array of shape (n_rows,) or None
        Group of each row.
    random_state : int
        Seed of the shuffling.

    Returns
    -------
    list of (train, test)
        Arrays of row numbers; each row is held out once.
    """
    if n_rows < 2:
        raise EmptyDataError("n_samples = 1: no row can be held out. At least two rows are needed.")
    kind, units = (KFold, n_rows) if groups is None else (GroupKFold, len(np.unique(groups)))
    splitter = kind(min(n_folds, units), shuffle=True, random_state=random_state)
    return list(splitter.split(np.empty((n_rows, 0)), groups=groups))


def fit_with(model: Any, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: Any) -> Any:
    """Fit a model; weights and groups are passed on where there are any, groups only to models that take them."""
    extra: dict[str, Any] = {} if sample_weight is None else {"sample_weight": sample_weight}
    if groups is not None and "groups" in inspect.signature(model.fit).parameters:
        extra["groups"] = groups
    return model.fit(X, D, **extra)


def out_of_sample(
    model: Any,
    X: Any,
    D: FloatArray,
    sample_weight: FloatArray | None,
    groups: Any,
    folds: Sequence[tuple[IntArray, IntArray]],
) -> tuple[Any, FloatArray]:
    """Fit a model on all rows, and predict each row by a model that did not learn from it.

    Parameters
    ----------
    model : estimator
        A label distribution learner, unfitted.
    X, D, sample_weight, groups : arrays
        The training set.
    folds : sequence of pairs of arrays of int
        Used where the estimator does not keep held-out predictions itself.

    Returns
    -------
    fitted : estimator
        The model, fitted on all rows.
    predictions : ndarray of shape (n_samples, n_labels)
        Held-out predictions.
    """
    fitted = fit_with(clone(model), X, D, sample_weight, groups)
    for attribute in KEPT_BY_ESTIMATORS:
        kept = getattr(fitted, attribute, None)
        if kept is not None:
            return fitted, np.asarray(kept, dtype=np.float64)
    predictions = np.empty_like(D)
    for train, test in folds:
        part = fit_with(
            clone(model), rows_of(X, train), D[train], rows_of(sample_weight, train), rows_of(groups, train)
        )
        predictions[test] = part.predict(rows_of(X, test))
    return fitted, predictions


def choose_mean_share(predictions: FloatArray, D: FloatArray, share: FloatArray, mean: FloatArray) -> float:
    """Share of the mean distribution to mix into predictions, by the divergence of held-out rows.

    Parameters
    ----------
    predictions, D : ndarray of shape (n_samples, n_labels)
        Held-out predictions and the truth.
    share : ndarray of shape (n_samples,)
        Weights of the rows, with sum one.
    mean : ndarray of shape (n_labels,)
        Mean distribution.

    Returns
    -------
    float
        The best of a few shares; 0 only where no prediction is zero against a positive truth.
    """
    losses = [share @ rel_entr(D, mix(predictions, mean, s)).sum(axis=1) for s in MEAN_SHARES]
    return MEAN_SHARES[int(np.argmin(losses))]


def mix(predictions: FloatArray, mean: FloatArray, mean_share: float) -> FloatArray:
    """Mix the mean distribution into predictions."""
    return predictions if mean_share == 0 else (1.0 - mean_share) * predictions + mean_share * mean
