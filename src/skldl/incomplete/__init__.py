"""Learners made for missing degrees, and `complete`, which fills a table of them.

`IncomLDL` and `WInLDL` are linear models whose predictions are on the simplex; `skldl.SABFGS`, `skldl.SABFGSCV` and
`skldl.MeanDistribution` learn from missing degrees, too, by the likelihood of what was observed.
"""

from skldl.incomplete._complete import complete
from skldl.incomplete._incomldl import IncomLDL
from skldl.incomplete._winldl import WInLDL

__all__ = ["IncomLDL", "WInLDL", "complete"]
