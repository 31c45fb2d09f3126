"""Kernel methods."""

from skldl.kernel._ldsvr import LDSVR

__all__ = ["LDSVR"]
