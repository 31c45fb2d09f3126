"""Neural networks adapted to label distributions (algorithm adaptation); both members share training and losses."""

from skldl.neural._aabp import AABP
from skldl.neural._cpnn import CPNN

__all__ = ["AABP", "CPNN"]
