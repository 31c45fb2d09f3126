"""Every version-dependent or private import from scikit-learn, alone in one file."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

__all__ = ["array_api_compat", "distribution_targets_in_estimator_checks", "validate_data"]


@cache
def array_api_compat() -> Any:
    """The package array-api-compat: the copy that scikit-learn carries from version 1.7 on, or the one installed."""
    for name in ("sklearn.externals.array_api_compat", "array_api_compat"):
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(
        "Arrays of other libraries than NumPy need scikit-learn 1.7 or later, or array-api-compat: "
        "pip install 'scikit-ldl[gpu]'",
        name="array_api_compat",
    )


@contextmanager
def distribution_targets_in_estimator_checks() -> Iterator[None]:
    """Make scikit-learn's estimator checks use three-label distributions as y.

    The checks make y as whole numbers or class labels. Each of these becomes one row here, equal values
    equal rows, through the hook by which the checks adapt y to an estimator's tags.
    """
    from sklearn.utils import estimator_checks

    original = estimator_checks._enforce_estimator_tags_y

    def enforce(estimator: Any, y: Any) -> Any:
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] > 1:
            return y
        y = np.asarray(original(estimator, y)).ravel()
        angle = np.unique(y, return_inverse=True)[1].astype(np.float64)
        if y.dtype.kind == "f":
            angle[~np.isfinite(y)] = np.nan
        rows = np.column_stack([2 + np.sin(angle), 2 + np.cos(angle), 1 + angle % 3])
        return rows / rows.sum(axis=1, keepdims=True)

    estimator_checks._enforce_estimator_tags_y = enforce
    try:
        yield
    finally:
        estimator_checks._enforce_estimator_tags_y = original
