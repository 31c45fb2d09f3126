"""Tree ensembles for label distributions: forests of hard and of soft trees, and boosting."""

from skldl.trees._boosting import GradientBoostingLDL
from skldl.trees._forest import RandomForestLDL
from skldl.trees._ldlf import LDLF
from skldl.trees._ldlogitboost import LDLogitBoost
from skldl.trees._structrf import StructRF

__all__ = ["LDLF", "GradientBoostingLDL", "LDLogitBoost", "RandomForestLDL", "StructRF"]
