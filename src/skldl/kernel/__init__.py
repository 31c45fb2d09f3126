"""Kernel methods for label distributions."""

from skldl.kernel._kernelridge import KernelRidgeLDL, fit_each_target
from skldl.kernel._ldsvr import LDSVR

__all__ = ["LDSVR", "KernelRidgeLDL", "fit_each_target"]
