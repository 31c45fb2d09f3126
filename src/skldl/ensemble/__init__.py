"""Pools of label distribution learners: `StackingLDL` with members of your choice, `AutoLDL` with its own."""

from skldl.ensemble._auto import AutoLDL
from skldl.ensemble._stacking import StackingLDL

__all__ = ["AutoLDL", "StackingLDL"]
