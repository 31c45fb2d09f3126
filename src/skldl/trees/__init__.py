"""Tree ensembles for label distributions: a forest whose leaves hold mean distributions, and softmax boosting."""

from skldl.trees._boosting import GradientBoostingLDL
from skldl.trees._forest import RandomForestLDL

__all__ = ["GradientBoostingLDL", "RandomForestLDL"]
