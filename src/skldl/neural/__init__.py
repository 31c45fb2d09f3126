"""Neural networks adapted to label distributions."""

from skldl.neural._aabp import AABP

__all__ = ["AABP"]
