"""Nearest neighbours adapted to label distributions."""

from skldl.neighbors._aaknn import AAKNN
from skldl.neighbors._aaknncv import AAKNNCV

__all__ = ["AAKNN", "AAKNNCV"]
