"""`AARegressor`: any regressor becomes a label distribution learner.

Algorithm adaptation in its plainest form: regress the degrees on the features and move each prediction to the nearest
distribution, min ‖p − f(x)‖² over p ≥ 0 with Σⱼ pⱼ = 1. Where the regressor averages training rows, as forests and
neighbours do, its predictions are distributions already and stay as they are.
"""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import has_fit_parameter

from skldl.base import BaseLDL
from skldl.utils.parameters import has_methods
from skldl.utils.simplex import project
from skldl.utils.typing import FloatArray

ROUNDING = 1e-9
"""A prediction that is non-negative and sums to one up to this is a distribution already, and stays as it is."""


class AARegressor(BaseLDL):
    """Turn a regressor into a label distribution learner by projection onto the simplex.

    Parameters
    ----------
    regressor : estimator
        Any regressor with the interface of scikit-learn. It is cloned and not changed. One that predicts a single
        target, such as gradient boosting, is wrapped in `sklearn.multioutput.MultiOutputRegressor`: one model for each
        label.

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor, or the `MultiOutputRegressor` around it.
    n_features_in_ : int
        Number of features seen by ``fit``.
    n_labels_ : int
        Number of labels.
    label_names_ : ndarray of str
        Names of the labels.

    Notes
    -----
    Randomness belongs to the regressor: set ``regressor__random_state``.

    The regressor gets ``sample_weight`` as it is, so that a penalty such as ``alpha`` of a ridge regression counts
    beside the sum of the weights. A sum below 1e-3 or above 1e15 is an error.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from skldl import AARegressor
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> forest = RandomForestRegressor(n_estimators=10, bootstrap=False, random_state=0)
    >>> AARegressor(forest).fit(X, D).predict([[0.0], [2.9]])
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """

    _hands_weights_on = True
    _onnx = "regressor_trees"
    _constraints: ClassVar = {"regressor": has_methods("a regressor", "fit", "predict", "get_params")}

    def __init__(self, regressor: BaseEstimator) -> None:
        self.regressor = regressor

    @property
    def _accept_sparse(self) -> bool:  # type: ignore[override]  # an attribute elsewhere; here the regressor decides
        return bool(get_tags(self.regressor).input_tags.sparse)

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        name = type(self.regressor).__name__
        if get_tags(self.regressor).estimator_type != "regressor":
            raise ValueError(
                f"regressor={name} is not a regressor. To use a classifier, take skldl.PTClassifier({name}(...))."
            )
        if sample_weight is not None and not has_fit_parameter(self.regressor, "sample_weight"):
            raise ValueError(
                f"regressor={name} takes no sample_weight in fit. Leave the weights out or choose another."
            )
        self.regressor_ = clone(self.regressor)
        if not get_tags(self.regressor).target_tags.multi_output:
            self.regressor_ = MultiOutputRegressor(self.regressor_)
        X, D = X.copy(), D.copy()  # a regressor may keep these arrays, as neighbours do, and the caller may change them
        if sample_weight is None:
            self.regressor_.fit(X, D)
        else:
            self.regressor_.fit(X, D, sample_weight=sample_weight)

    def _predict(self, X: Any) -> FloatArray:
        values = np.array(self.regressor_.predict(X), dtype=np.float64)
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).all(axis=1)))
            raise ValueError(f"{type(self.regressor).__name__} predicted degrees that are not finite (row {row}).")
        outside = (values.min(axis=1) < 0) | (np.abs(values.sum(axis=1) - 1) > ROUNDING)
        values[outside] = project(values[outside])
        return values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.regressor)
        tags.input_tags.positive_only = inner.input_tags.positive_only
        tags.non_deterministic = inner.non_deterministic
        return tags
