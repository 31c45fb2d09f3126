"""What an estimator takes over from rows in chunks before it learns from them."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skldl._algorithms import names_with
from skldl.chunks._rows import Rows
from skldl.exceptions import DataError


def refuse_rows(estimator: BaseEstimator, X: Any) -> None:
    """Raise if X is a source of rows in chunks, for estimators that need all rows at once."""
    if isinstance(X, Rows):
        raise DataError(
            f"{type(estimator).__name__} cannot learn from rows in chunks. Pass arrays, or use {names_with('chunks')}."
        )


def refuse_more(rows: Rows, y: Any, sample_weight: Any) -> None:
    """Raise if distributions or weights are given beside rows in chunks."""
    if y is not None or sample_weight is not None:
        raise DataError(
            "X is a source of rows in chunks, which brings its own distributions and weights: give them to "
            f"{type(rows).__name__}, and leave y and sample_weight out."
        )


def keep_names(estimator: BaseEstimator, rows: Rows, y: Any, sample_weight: Any) -> None:
    """Check what was given to ``fit`` besides the rows, and keep numbers and names of features and labels."""
    refuse_more(rows, y, sample_weight)
    layout = rows.layout
    if layout.n_labels is None:
        raise DataError(
            f"The {type(rows).__name__} holds no label distributions to learn from. Say which columns are labels, or "
            "pass y to it."
        )
    estimator.n_features_in_ = layout.n_features
    for name in ("feature_names_in_", "_integer_columns"):
        estimator.__dict__.pop(name, None)
    if layout.feature_names is not None:
        estimator.feature_names_in_ = np.array(layout.feature_names, dtype=object)
    names = layout.label_names or [f"label_{j}" for j in range(layout.n_labels)]
    estimator.label_names_ = np.array(names, dtype=object)
    estimator.n_labels_ = layout.n_labels
