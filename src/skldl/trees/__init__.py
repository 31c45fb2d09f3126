"""Trees."""

from skldl.trees._ldlf import LDLF

__all__ = ["LDLF"]
