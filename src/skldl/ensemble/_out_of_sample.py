"""Predictions for the rows of the training set by models that did not learn from them."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

from skldl._typing import FloatArray, IntArray
from skldl.data._dataset import rows_of
from skldl.exceptions import EmptyDataError

KEPT_BY_ESTIMATORS = ("loo_predictions_", "oob_predictions_", "oof_predictions_")
"""Attributes under which a fitted estimator keeps held-out predictions: leave-one-out, out-of-bag, out-of-fold."""


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
    rows = np.empty((n_rows, 0))
    if groups is None:
        return list(KFold(min(n_folds, n_rows), shuffle=True, random_state=random_state).split(rows))
    n_folds = min(n_folds, len(np.unique(groups)))
    return list(GroupKFold(n_folds, shuffle=True, random_state=random_state).split(rows, groups=groups))


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
        Held-out predictions; NaN in rows that a member on very many rows did not predict.
    """
    fitted = fit_with(clone(model), X, D, sample_weight, groups)
    for attribute in KEPT_BY_ESTIMATORS:
        kept = getattr(fitted, attribute, None)
        if kept is not None:
            predictions = np.full(D.shape, np.nan)
            predictions[getattr(fitted, "loo_rows_", slice(None))] = kept
            return fitted, predictions
    predictions = np.empty_like(D)
    for train, test in folds:
        part = fit_with(
            clone(model), rows_of(X, train), D[train], rows_of(sample_weight, train), rows_of(groups, train)
        )
        predictions[test] = np.asarray(part.predict(rows_of(X, test)))
    return fitted, predictions
