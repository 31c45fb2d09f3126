"""Algorithms for data whose distributions end in a decision for one label."""

from skldl.decision._ldl4c import LDL4C
from skldl.decision._ldlhr import LDLHR
from skldl.decision._ldlm import LDLM

__all__ = ["LDL4C", "LDLHR", "LDLM"]
