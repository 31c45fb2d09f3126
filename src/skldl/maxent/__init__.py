"""Maximum entropy models with soft targets: one model, fitted by quasi-Newton steps or by iterative scaling."""

from skldl.maxent._sabfgs import SABFGS
from skldl.maxent._sabfgscv import SABFGSCV
from skldl.maxent._saiis import SAIIS

__all__ = ["SABFGS", "SABFGSCV", "SAIIS"]
