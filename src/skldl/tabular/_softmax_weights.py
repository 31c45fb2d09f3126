"""Estimators whose prediction is softmax(X W + b): the service computes it itself, and ONNX has nodes for it."""

from typing import Any

import numpy as np

from skldl.utils.typing import FloatArray


def softmax_weights(estimator: Any) -> tuple[FloatArray, FloatArray] | None:
    """Weights (n_features, n_labels) and intercepts of an estimator that predicts softmax(X W + b); None for others.

    Examples
    --------
    >>> import skldl
    >>> W, b = softmax_weights(skldl.SABFGS().fit([[0.0], [1.0]], [[0.5, 0.5], [0.2, 0.8]]))
    >>> W.shape, b.shape
    ((1, 2), (2,))
    >>> softmax_weights(skldl.MeanDistribution()) is None
    True
    """
    if not getattr(type(estimator), "_linear_scores", False):
        return None
    coef = np.asarray(estimator.coef_, dtype=np.float64)
    intercept = getattr(estimator, "intercept_", np.zeros(len(coef)))
    return np.ascontiguousarray(coef.T), np.asarray(intercept, dtype=np.float64)
