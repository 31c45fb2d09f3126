"""Label distribution learning in Python, with the interface of scikit-learn.

Every estimator is importable from here. Names are loaded when they are first used, so that ``import skldl`` is quick
and needs no optional dependency.
"""

from importlib import import_module
from typing import Any

from skldl._algorithms import ALGORITHMS
from skldl.utils.dependencies import import_with_extra

__version__ = "0.2.0"

_HOME_OF = {algorithm.class_name: algorithm.module for algorithm in ALGORITHMS}
ESTIMATORS = tuple(_HOME_OF)
"""Names of all estimators of this package."""

_HOME_OF |= {
    "BaseLDL": "skldl.base",
    "load": "skldl.persistence",
    "save": "skldl.persistence",
    "show_versions": "skldl.utils.dependencies",
}
_SUBMODULES = (
    "annotators",
    "chunks",
    "data",
    "distributions",
    "enhancement",
    "exceptions",
    "experiments",
    "incomplete",
    "metrics",
    "names",
    "selection",
    "simplex",
    "tabular",
    "testing",
    "uncertainty",
)
_EXTRA_OF = {"plots": "plot"}  # submodules that cannot be imported without an optional dependency

__all__ = ["ESTIMATORS", "__version__", *_HOME_OF, *_SUBMODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"skldl.{name}")
    elif name in _EXTRA_OF:
        value = import_with_extra(f"skldl.{name}", _EXTRA_OF[name])
    else:
        raise AttributeError(f"module 'skldl' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_EXTRA_OF})
