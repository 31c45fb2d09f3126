"""The strategy of algorithm adaptation for any regressor."""

from skldl.adaptation._aaregressor import AARegressor

__all__ = ["AARegressor"]
