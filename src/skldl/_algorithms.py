"""The table of registration: one entry for each estimator of this package.

To add an estimator, write its file, its test and its entry in `ALGORITHMS`. From the entry follow the name in ``import
skldl``, the name on the command line and in study files with the grid that selection searches, the types that model
files may hold, and, through ``make docs``, the stub for type checkers, the lists in the documentation and the layer of
its package in the import contracts. What an estimator can do is declared in its class (`CAPABILITIES`). This module
imports estimators only when a function needs them, so that ``import skldl`` stays fast.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Algorithm(NamedTuple):
    """One entry of the table.

    Attributes
    ----------
    module : str
        Module that defines the class.
    class_name : str
        Name of the class; it becomes ``skldl.<class_name>``.
    title : str
        Name on the command line and heading in tables. Empty for an estimator that is not a candidate of selection:
        no label distribution learner, or a wrapper of one.
    params : mapping
        Hyper-parameters that are fixed for a candidate of this name. A mapping with the key ``estimator`` stands for a
        nested estimator.
    grid : mapping
        Values that selection tries, the simpler first: in a tie the earlier value is chosen.
    path : str
        Hyper-parameter of the grid whose values share work in ``predict_path``; empty if none does.

    Examples
    --------
    >>> from skldl.names import ALGORITHMS
    >>> row = next(row for row in ALGORITHMS if row.title == "SA-BFGS")
    >>> row.module, row.class_name
    ('skldl.maxent._sabfgs', 'SABFGS')
    """

    module: str
    class_name: str
    title: str = ""
    params: Mapping[str, Any] = {}
    grid: Mapping[str, tuple[Any, ...]] = {}
    path: str = ""


_LEAST_SQUARES = {"estimator": "sklearn.linear_model:Ridge"}
_FOREST = {"estimator": "sklearn.ensemble:RandomForestRegressor", "max_features": 0.5}
_LOGISTIC = {"estimator": "sklearn.linear_model:LogisticRegression", "max_iter": 1000}
_PENALTIES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)

MODEL_PARTS: tuple[str, ...] = (
    "skldl.annotators._dawid_skene.DawidSkene",
    "skldl.annotators._triples.Triples",
    "skldl.distributions._propagation.PropagationEnhancer",
    "skldl.enhancement._enhancedldl.EnhancedLDL",
    "skldl.enhancement._fcm.FCM",
    "skldl.enhancement._glle.GLLE",
    "skldl.enhancement._km.KM",
    "skldl.enhancement._lesc.LESC",
    "skldl.enhancement._ml.ML",
    "skldl.tabular._drift.TrainingReference",
    "skldl.tabular._encoder.TableEncoder",
    "skldl.uncertainty._intervals.Intervals",
)
"""Further classes of this package that a model file may hold: public ones that are no registered estimators, and parts
of fitted models."""

ALGORITHMS: tuple[Algorithm, ...] = (
    Algorithm("skldl.baseline", "MeanDistribution", "Mean"),
    Algorithm(
        "skldl.maxent._sabfgs",
        "SABFGS",
        "SA-BFGS",
        params={"fit_intercept": True},
        grid={"alpha": (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5)},
        path="alpha",
    ),
    Algorithm("skldl.maxent._sabfgscv", "SABFGSCV", "SA-BFGS-CV"),
    Algorithm(
        "skldl.maxent._saiis", "SAIIS", "SA-IIS", grid={"max_iter": (5, 10, 20, 50, 100, 200, 500)}, path="max_iter"
    ),
    Algorithm(
        "skldl.neighbors._aaknn",
        "AAKNN",
        "AA-kNN",
        grid={"n_neighbors": (300, 200, 130, 80, 50, 30, 20, 10, 5)},
        path="n_neighbors",
    ),
    Algorithm(
        "skldl.neural._aabp",
        "AABP",
        "AA-BP",
        grid={"hidden_layer_sizes": ((10,), (30,), (100,)), "alpha": (1.0, 0.1, 0.01, 1e-3)},
    ),
    Algorithm(
        "skldl.transformation._ptbayes",
        "PTBayes",
        "PT-Bayes",
        params={"covariance": "tied"},
        grid={"reg": (1.0, 0.1, 0.01)},
    ),
    Algorithm(
        "skldl.transformation._ptsvm",
        "PTSVM",
        "PT-SVM",
        params={"gamma": "scale"},
        grid={"C": (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)},
        path="C",
    ),
    Algorithm(
        "skldl.transformation._ptclassifier",
        "PTClassifier",
        "PT-Classifier",
        params={"classifier": _LOGISTIC},
        grid={"classifier__C": (0.01, 0.1, 1.0, 10.0)},
    ),
    Algorithm(
        "skldl.adaptation._aaregressor",
        "AARegressor",
        "AA-Regressor",
        params={"regressor": _LEAST_SQUARES},
        grid={"regressor__alpha": (100.0, 10.0, 1.0, 0.1)},
    ),
    Algorithm(
        "skldl.adaptation._aaregressor",
        "AARegressor",
        "Forest",
        params={"regressor": _FOREST},
        grid={"regressor__min_samples_leaf": (20, 5)},
    ),
    Algorithm("skldl.ensemble._auto", "AutoLDL", "Auto"),
    Algorithm("skldl.ensemble._stacking", "StackingLDL"),
    Algorithm("skldl.kernel._kernelridge", "KernelRidgeLDL", "Kernel-Ridge"),
    Algorithm(
        "skldl.neighbors._aaknncv",
        "AAKNNCV",
        "AA-kNN-CV",
    ),
    Algorithm(
        "skldl.trees._forest",
        "RandomForestLDL",
        "Random-Forest",
    ),
    Algorithm(
        "skldl.trees._boosting",
        "GradientBoostingLDL",
        "Gradient-Boosting",
    ),
    Algorithm("skldl.correlation._ldlldm", "LDLLDM", "LDL-LDM", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.correlation._ldlscl", "LDLSCL", "LDL-SCL", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.correlation._ldllrr", "LDLLRR", "LDL-LRR", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.correlation._ldllc", "LDLLC", "LDLLC", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.correlation._ldlhvlc", "LDLHVLC", "LDL-HVLC", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.correlation._ldldpa", "LDLDPA", "LDL-DPA", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.correlation._bdldl", "BDLDL", "BD-LDL", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.incomplete._incomldl", "IncomLDL", "IncomLDL"),
    Algorithm("skldl.incomplete._winldl", "WInLDL", "WInLDL"),
    Algorithm("skldl.losses._smoothlossldl", "SmoothLossLDL", "Smooth-Loss", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.losses._dirichletldl", "DirichletLDL", "Dirichlet", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.decision._ldl4c", "LDL4C", "LDL4C", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.decision._ldlhr", "LDLHR", "LDL-HR", grid={"alpha": _PENALTIES}),
    Algorithm("skldl.decision._ldlm", "LDLM", "LDLM", grid={"alpha": _PENALTIES}),
    Algorithm(
        "skldl.kernel._ldsvr",
        "LDSVR",
        "LDSVR",
        grid={"width": (1.0, 0.5, 2.0), "alpha": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)},
    ),
    Algorithm("skldl.neural._cpnn", "CPNN", "CPNN", grid={"alpha": (1e-1, 1e-2, 1e-3, 1e-4)}),
    Algorithm("skldl.trees._ldlf", "LDLF", "LDLF", grid={"max_depth": (3, 4, 5, 6)}),
    Algorithm(
        "skldl.trees._ldlogitboost",
        "LDLogitBoost",
        "LDLogitBoost",
        grid={"n_estimators": (100, 200, 500)},
    ),
    Algorithm(
        "skldl.trees._structrf",
        "StructRF",
        "StructRF",
    ),
    Algorithm("skldl.uncertainty._calibrated", "CalibratedLDL"),
    Algorithm("skldl.uncertainty._conformal", "ConformalLDL"),
    Algorithm(
        "skldl.uncertainty._spread",
        "DirichletSpread",
    ),
    Algorithm("skldl.classification", "LDLClassifier"),
)
"""Every estimator, in the order of the documentation. A class with several entries is found under its first."""


def estimator_class(algorithm: Algorithm) -> type:
    """The class of an entry; its module is imported."""
    kind: type = getattr(import_module(algorithm.module), algorithm.class_name)
    return kind


CAPABILITIES: Mapping[str, str] = {
    "sparse": "_accept_sparse",
    "missing features": "_allow_nan",
    "missing degrees": "_allow_missing_degrees",
    "chunks": "_chunks",
    "device": "_array_api",
    "linear scores": "_linear_scores",
    "keeps rows": "_keeps_rows",
    "ONNX": "_onnx",
}
"""What estimators can do, and the class attributes that say so (see `skldl.base.BaseLDL`)."""


def can(algorithm: Algorithm, capability: str) -> bool:
    """Whether an estimator has one of `CAPABILITIES`; its module is imported."""
    return bool(getattr(estimator_class(algorithm), CAPABILITIES[capability], False))


def names_with(capability: str) -> str:
    """Names of the estimators that have a capability, for messages; imports all estimators.

    Examples
    --------
    >>> names_with("chunks")
    'MeanDistribution, SABFGS, SABFGSCV, SAIIS or PTBayes'
    """
    *names, last = dict.fromkeys(algorithm.class_name for algorithm in ALGORITHMS if can(algorithm, capability))
    return f"{', '.join(names)} or {last}"


def hint_on_missing_degrees(class_name: str) -> str:
    """What to do about NaN in y where an estimator needs every degree."""
    return (
        f"{class_name} needs every degree. Remove such rows, fill them in with skldl.incomplete.complete, or learn "
        f"from what was observed with {names_with('missing degrees')}."
    )
