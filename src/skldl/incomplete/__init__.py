"""Learners for tables with missing degrees, and `complete`, which fills in the missing degrees.

`IncomLDL` and `WInLDL` are linear models whose predictions are projected onto the simplex; `skldl.SABFGS`,
`skldl.SABFGSCV` and `skldl.MeanDistribution` learn from missing degrees, too, by the likelihood of the observed ones.
"""

from skldl.incomplete._complete import complete
from skldl.incomplete._incomldl import IncomLDL
from skldl.incomplete._winldl import WInLDL

__all__ = ["IncomLDL", "WInLDL", "complete"]
