"""Trees."""

from skldl.trees._ldlf import LDLF
from skldl.trees._ldlogitboost import LDLogitBoost
from skldl.trees._structrf import StructRF

__all__ = ["LDLF", "LDLogitBoost", "StructRF"]
