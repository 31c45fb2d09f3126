"""Label distribution learning in Python, in the shape of scikit-learn.

Every estimator is importable from here. Names are loaded when they are first used, so that ``import skldl`` is quick
and needs no optional dependency.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME_OF = {
    "AABP": "skldl.neural",
    "AAKNN": "skldl.neighbors",
    "AARegressor": "skldl.adaptation",
    "BaseLDL": "skldl.base",
    "LDLClassifier": "skldl.classification",
    "MeanDistribution": "skldl.baseline",
    "PTBayes": "skldl.transformation",
    "PTClassifier": "skldl.transformation",
    "PTSVM": "skldl.transformation",
    "SABFGS": "skldl.maxent",
    "SABFGSCV": "skldl.maxent",
    "SAIIS": "skldl.maxent",
}
ESTIMATORS = tuple(name for name in _HOME_OF if name != "BaseLDL")
"""Names of all estimators of this package."""

_HOME_OF |= {"AutoLDL": "skldl.ensemble", "StackingLDL": "skldl.ensemble"}
_HOME_OF |= dict.fromkeys(("save", "load"), "skldl.persistence")
_SUBMODULES = ("data", "distributions", "exceptions", "experiments", "metrics", "simplex", "testing")

__all__ = ["ESTIMATORS", "__version__", *_HOME_OF, *_SUBMODULES]

if TYPE_CHECKING:
    from skldl.adaptation import AARegressor as AARegressor
    from skldl.base import BaseLDL as BaseLDL
    from skldl.baseline import MeanDistribution as MeanDistribution
    from skldl.classification import LDLClassifier as LDLClassifier
    from skldl.maxent import SABFGS as SABFGS
    from skldl.maxent import SABFGSCV as SABFGSCV
    from skldl.maxent import SAIIS as SAIIS
    from skldl.neighbors import AAKNN as AAKNN
    from skldl.neural import AABP as AABP
    from skldl.persistence import load as load
    from skldl.persistence import save as save
    from skldl.transformation import PTSVM as PTSVM
    from skldl.transformation import PTBayes as PTBayes
    from skldl.transformation import PTClassifier as PTClassifier


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"skldl.{name}")
    else:
        raise AttributeError(f"module 'skldl' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
