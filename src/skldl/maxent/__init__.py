"""Maximum entropy models with soft targets: one model, fitted by quasi-Newton steps or by iterative scaling."""

from skldl.maxent._sabfgs import SABFGS

__all__ = ["SABFGS"]
