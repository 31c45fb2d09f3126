"""Nearest neighbours adapted to label distributions (algorithm adaptation); both members share one search."""

from skldl.neighbors._aaknn import AAKNN
from skldl.neighbors._aaknncv import AAKNNCV

__all__ = ["AAKNN", "AAKNNCV"]
