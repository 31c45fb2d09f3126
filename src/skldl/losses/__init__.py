"""Smooth losses between distributions, also for ordered labels, and linear models fitted to them."""

from skldl.losses._dirichletldl import DirichletLDL
from skldl.losses._rows import COMBINATIONS, LOSSES, resolve_loss
from skldl.losses._smoothlossldl import SmoothLossLDL

__all__ = ["COMBINATIONS", "LOSSES", "DirichletLDL", "SmoothLossLDL", "resolve_loss"]
