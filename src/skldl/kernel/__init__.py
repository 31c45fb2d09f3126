"""Kernel methods for label distributions."""

from skldl.kernel._kernelridge import KernelRidgeLDL, fit_each_target

__all__ = ["KernelRidgeLDL", "fit_each_target"]
