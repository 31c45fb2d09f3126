"""Pools of label distribution learners: `StackingLDL` of given members, `AutoLDL` of automatically chosen ones."""

from skldl.ensemble._auto import AutoLDL
from skldl.ensemble._stacking import StackingLDL

__all__ = ["AutoLDL", "StackingLDL"]
