"""Neural networks adapted to label distributions (algorithm adaptation)."""

from skldl.neural._aabp import AABP
from skldl.neural._cpnn import CPNN

__all__ = ["AABP", "CPNN"]
