"""Problem transformation: label distributions as weighted single-label examples."""

from skldl.transformation._ptsvm import PTSVM

__all__ = ["PTSVM"]
