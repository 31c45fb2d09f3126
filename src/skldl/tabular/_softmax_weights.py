"""Estimators whose prediction is softmax(X W + b): the service computes it itself, and ONNX has nodes for it."""

from typing import Any

import numpy as np

from skldl.losses._linear_softmax import LinearSoftmaxLDL
from skldl.maxent import SABFGS, SABFGSCV, SAIIS
from skldl.utils.typing import FloatArray

_LINEAR = (SABFGS._predict, SABFGSCV._predict, SAIIS._predict, LinearSoftmaxLDL._predict)


def softmax_weights(estimator: Any) -> tuple[FloatArray, FloatArray] | None:
    """Weights (n_features, n_labels) and intercepts of an estimator that predicts softmax(X W + b); None for others.

    The method that predicts decides: a class that has weights may use them in another way.

    Examples
    --------
    >>> import skldl
    >>> W, b = softmax_weights(skldl.SABFGS().fit([[0.0], [1.0]], [[0.5, 0.5], [0.2, 0.8]]))
    >>> W.shape, b.shape
    ((1, 2), (2,))
    >>> softmax_weights(skldl.MeanDistribution()) is None
    True
    """
    if getattr(type(estimator), "_predict", None) not in _LINEAR:
        return None
    coef = np.asarray(estimator.coef_, dtype=np.float64)
    intercept = getattr(estimator, "intercept_", np.zeros(len(coef)))
    return np.ascontiguousarray(coef.T), np.asarray(intercept, dtype=np.float64)
