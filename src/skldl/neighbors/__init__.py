"""Nearest neighbours adapted to label distributions."""

from skldl.neighbors._aaknn import AAKNN

__all__ = ["AAKNN"]
