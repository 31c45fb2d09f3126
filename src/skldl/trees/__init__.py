"""Trees."""

from skldl.trees._ldlf import LDLF
from skldl.trees._ldlogitboost import LDLogitBoost

__all__ = ["LDLF", "LDLogitBoost"]
