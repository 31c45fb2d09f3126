"""The strategy of algorithm adaptation for any regressor.

The two algorithms that the paper adapts are in packages of their own: `skldl.neighbors` and `skldl.neural` hold the
searches and networks that their other members share. This package holds the strategy itself.
"""

from skldl.adaptation._aaregressor import AARegressor

__all__ = ["AARegressor"]
