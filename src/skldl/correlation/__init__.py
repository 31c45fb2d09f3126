"""Algorithms that use correlations between labels or rows: most add terms to the objective of maximum entropy."""

from skldl.correlation._bdldl import BDLDL
from skldl.correlation._ldldpa import LDLDPA
from skldl.correlation._ldlhvlc import LDLHVLC
from skldl.correlation._ldllc import LDLLC
from skldl.correlation._ldlldm import LDLLDM
from skldl.correlation._ldllrr import LDLLRR
from skldl.correlation._ldlscl import LDLSCL

__all__ = ["BDLDL", "LDLDPA", "LDLHVLC", "LDLLC", "LDLLDM", "LDLLRR", "LDLSCL"]
