"""Cases of the frozen numbers: fixed data, fixed settings, public imports only.

The same file runs on any version of the package that can be imported, so that two versions can be compared:
``case.compute()`` gives an array of float64, or the name of the class of the error that the call raises.
"""

import dataclasses
import fnmatch
import functools
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io, sparse

import skldl
from skldl import chunks
from skldl.data import load_lexicon, make_missing
from skldl.exceptions import ParameterError
from skldl.testing import make_distributions

PAPER_SETS = {"SJAFFE": "SJAFFE", "SJAFFE all columns": "SJAFFE", "Yeast_spo5": "Yeast_spo5"}
"""From sets of the paper to their files in the folder that SKLDL_DATA names; they may not be passed on."""
LARGE_SETS = {name: name for name in ("Yeast_alpha", "SBU_3DFE", "Natural_Scene", "Movie")} | {
    "many rows": "",
    "levels": "",
}
"""The same for larger sets, of which at most 3,000 rows are taken; two are made."""
SETS = (*PAPER_SETS, "lexicon", "sparse", "missing", "weighted")
MAX_ROWS, MAX_LARGE_ROWS = 300, 3000
TOLERANCE = 1e-8
"""For another processor or another version of NumPy or SciPy; compare.py compares on one machine, to 1e-12."""
AMPLIFIED = {
    "SABFGS(max_iter=15) on lexicon*": 1e-5,  # without a penalty, and stopped far from the optimum
    "LDLM(*) on lexicon": 1e-6,  # stopped far from the optimum
    "LDSVR(width=2.0, *) on lexicon": 1e-6,
    "enhancer GLLE": 1e-6,
    "PTClassifier(classifier=_logistic) on weighted": 1e-5,
    "choice of measures": 1e-6,
    "StackingLDL(*, pool='linear') on lexicon": 1e-7,  # `SABFGS` inside; other kernels change the weights by 9.4e-9
    "dirichlet spread": 1e-5,  # a scalar minimisation that is exact to the root of the precision
}
"""Cases in which rounding is amplified: ten times what OpenBLAS's kernels for other processors change, at least."""
CHUNK_ROWS = 37
"""Not a divisor of any number of rows here, so that the last chunk is shorter."""


@dataclasses.dataclass(frozen=True)
class Set:
    """Rows to learn from, rows to predict, and weights or None."""

    X: Any
    D: np.ndarray
    X_new: Any
    D_new: np.ndarray
    sample_weight: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Case:
    """One call whose numbers are frozen.

    Attributes
    ----------
    name : str
        What is called, with which settings, on which set: the key in the file of numbers.
    function : callable
        Returns the numbers, as anything that `numpy.asarray` takes.
    data : str
        File of the paper's data that is needed; empty if none is.
    tolerance : float
        How far the numbers may be from the committed ones.
    slow : bool
        Whether the case belongs to the comparison of two versions alone, and not to ``make test``.
    """

    name: str
    function: Callable[[], Any]
    data: str = ""
    slow: bool = False

    @property
    def tolerance(self) -> float:
        patterns = (pattern for pattern in AMPLIFIED if fnmatch.fnmatchcase(self.name, pattern))
        return max((AMPLIFIED[pattern] for pattern in patterns), default=TOLERANCE)

    def compute(self) -> np.ndarray | str:
        """Compute the numbers, or the name of the class of the error that is raised instead."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # short fits do not converge
            try:
                return np.asarray(self.function(), dtype=np.float64)
            except ParameterError:  # a setting here that the estimator does not have
                raise
            except (ValueError, TypeError) as error:
                return type(error).__name__


@functools.cache
def load(name: str) -> Set:
    """Load a set by name, at most MAX_ROWS or MAX_LARGE_ROWS rows of it; two thirds of them are learned from."""
    weight, max_rows = None, MAX_LARGE_ROWS if name in LARGE_SETS else MAX_ROWS
    data = (PAPER_SETS | LARGE_SETS).get(name, "")
    if data:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            content = io.loadmat(Path(os.environ["SKLDL_DATA"]) / f"{data}.mat")
        X, D = content["features"].astype(np.float64), content["labels"].astype(np.float64)
        if name == "Movie":
            X = sparse.csr_matrix(X)
        if name == "SJAFFE":
            X = X[:, ::5]  # 49 of 243 features: fits are fast, and columns are as correlated as in the whole set
    elif name == "lexicon":
        dataset = load_lexicon()
        rows = np.arange(0, dataset.D.shape[0], dataset.D.shape[0] // MAX_ROWS)
        X, D = dataset.X.tocsc()[:, :60].tocsr()[rows], dataset.D[rows]
    elif name == "many rows":
        X, D = make_distributions(MAX_LARGE_ROWS, 8, 4, random_state=4)
    elif name == "levels":  # ties and duplicates
        X, D = make_distributions(1200, 4, 3, random_state=5)
        X = np.floor(3 * X)
    elif name == "sparse":
        generator = np.random.default_rng(1)
        values, D = make_distributions(150, 25, 4, random_state=1)
        X = sparse.csr_matrix(np.where(generator.random(values.shape) < 0.7, 0.0, values - 0.3))
    elif name == "missing":
        X, D = make_distributions(120, 5, 4, random_state=2)
        D = make_missing(D, 0.3, random_state=0)
    else:  # zeros in D, constant, duplicate and badly scaled columns, weights with zeros
        X, D = make_distributions(90, 6, 5, random_state=3)
        X[:, 1], X[:, 2], X[:, 3] = 1.0, X[:, 0], 30 * X[:, 3]
        X[10:20] = X[:10]
        D[::7, 3] = 0.0
        D[:, 4] = np.where(np.arange(90) < 80, 0.0, D[:, 4])
        D /= D.sum(axis=1, keepdims=True)
        weight = np.random.default_rng(3).integers(0, 4, size=90).astype(float)
    X, D = X[:max_rows], D[:max_rows]
    end = 2 * X.shape[0] // 3
    return Set(X[:end], D[:end], X[end:], D[end:], None if weight is None else weight[:end])


def _fresh(class_name: str, **params: Any) -> Any:
    """An estimator with random_state=0 where it has one; callables among the parameters make nested estimators."""
    params = {name: value() if callable(value) else value for name, value in params.items()}
    estimator = getattr(skldl, class_name)(**params)
    if "random_state" in estimator.get_params(deep=False):
        estimator.set_params(random_state=0)
    return estimator


def _ridge() -> Any:
    from sklearn.linear_model import Ridge

    return Ridge(tol=1e-12)


def _forest() -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(5, min_samples_leaf=5, random_state=0)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=0.1, tol=1e-12, max_iter=2000)


def _tree_classifier() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=4, random_state=0)


def _linear() -> Any:
    return skldl.SABFGS(alpha=1e-3, fit_intercept=True)


def _members() -> Any:
    return [("linear", _linear()), ("neighbours", skldl.AAKNN(20)), ("mean", skldl.MeanDistribution())]


SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "MeanDistribution": ({},),
    "SABFGS": (
        {"max_iter": 15},
        {"alpha": 1e-2, "fit_intercept": True},
        {"alpha": 1e-3, "fit_intercept": True, "whiten": False, "max_iter": 30},
        {"alpha": 1e-2, "solver": "bfgs"},
    ),
    "SABFGSCV": ({}, {"alphas": (1e-1, 1e-2), "cv": 3, "scaling": "raw"}, {"cv": 3, "one_standard_error": True}),
    "SAIIS": ({"max_iter": 20}, {"max_iter": 20, "accelerate": True}),
    "AAKNN": (
        {},
        {"n_neighbors": 7, "weights": "distance"},
        {"metric": "manhattan"},
        {"metric": "cosine", "n_neighbors": 11},
        {"algorithm": "kd_tree"},
        {"algorithm": "brute"},
    ),
    "AABP": (
        {"hidden_layer_sizes": (6,), "max_iter": 15, "early_stopping": False},
        {"hidden_layer_sizes": (5, 4), "activation": "relu", "solver": "adam", "max_iter": 5},
        {"hidden_layer_sizes": (5,), "max_iter": 15, "loss": "kullback_leibler"},
    ),
    "PTBayes": (
        {},
        {"covariance": "full"},
        {"covariance": "diag"},
        {"resample": "multinomial"},
    ),
    "PTSVM": (
        {"gamma": "scale"},
        {"kernel": "linear", "C": 0.1},
        {"gamma": "scale", "equal_mass": False},
        {"gamma": "scale", "max_samples": 60},
    ),
    "PTClassifier": ({"classifier": _logistic}, {"classifier": _tree_classifier, "resample": "multinomial"}),
    "AARegressor": ({"regressor": _ridge}, {"regressor": _forest}),
    "AutoLDL": ({"members": ("linear", "neighbours")},),
    "StackingLDL": ({"estimators": _members, "n_folds": 3}, {"estimators": _members, "n_folds": 3, "pool": "linear"}),
    "KernelRidgeLDL": (
        {"n_screen": 80, "n_landmarks": 50},
        {"target": "degrees", "kernel": "rbf", "alpha": 1e-2},
        {"target": "clr", "kernel": "laplacian", "alpha": 1e-2},
        {"solver": "nystroem", "n_landmarks": 30, "n_screen": 60},
        {"solver": "cg", "kernel": "exponential", "target": "clr", "alpha": 1e-2},
    ),
    "AAKNNCV": ({}, {"n_neighbors": 9}),
    "RandomForestLDL": (
        {"n_estimators": 8, "n_trial_estimators": 4},
        {"n_estimators": 6, "min_samples_leaf": 4, "max_features": 0.5, "n_trial_estimators": 3},
    ),
    "GradientBoostingLDL": ({"max_iter": 12, "n_folds": 2},),
    "LDLLDM": ({"alpha": 1e-3, "max_iter": 20},),
    "LDLSCL": ({"alpha": 1e-3, "max_iter": 15, "n_rounds": 2},),
    "LDLLRR": ({"alpha": 1e-3, "max_iter": 15},),
    "LDLLC": ({"alpha": 1e-3, "max_iter": 15, "max_rounds": 2},),
    "LDLHVLC": ({"alpha": 1e-3, "max_iter": 15},),
    "LDLDPA": ({"alpha": 1e-3, "max_iter": 15},),
    "BDLDL": ({"alpha": 1e-3}, {}),
    "IncomLDL": (
        {"alpha": 1e-1, "max_iter": 20},
        {"method": "prox", "alpha": 1e-1, "max_iter": 20},
        {"n_folds": 2, "max_iter": 10},
    ),
    "WInLDL": ({"max_iter": 10}, {"ridge": 1e-2, "max_iter": 10}),
    "SmoothLossLDL": (
        {"alpha": 1e-3, "max_iter": 20},
        {"loss": "squared_error", "alpha": 1e-3, "max_iter": 20},
        {"loss": "cjs", "alpha": 1e-3, "max_iter": 20},
        {"alpha": "auto", "max_iter": 20},
    ),
    "DirichletLDL": ({"alpha": 1e-3, "max_iter": 15}, {"alpha": 1e-3, "max_iter": 15, "loss": "likelihood"}),
    "LDL4C": ({"alpha": 1e-3, "max_iter": 15},),
    "LDLHR": ({"alpha": 1e-3, "max_iter": 15},),
    "LDLM": ({"alpha": 1e-3, "max_iter": 15},),
    "LDSVR": ({"max_iter": 20}, {"width": 2.0, "alpha": 1e-2, "max_iter": 20}),
    "CPNN": (
        {"n_hidden": 6, "alpha": 1e-3, "max_iter": 15},
        {"n_hidden": 5, "alpha": 1e-3, "label_code": "one_hot", "max_iter": 10},
    ),
    "LDLF": ({"n_estimators": 2, "max_depth": 3, "n_rounds": 2, "n_leaf_updates": 5, "n_split_steps": 4},),
    "LDLogitBoost": ({"n_estimators": 8},),
    "StructRF": ({"n_estimators": 4, "max_depth": 6},),
    "CalibratedLDL": (
        {"estimator": _linear, "n_folds": 3},
        {"estimator": _linear, "n_folds": 3, "method": "temperature"},
    ),
    "ConformalLDL": ({"estimator": _linear}, {"estimator": _linear, "method": "cv+", "n_folds": 3}),
    "DirichletSpread": ({"estimator": _linear, "n_folds": 3},),
    "LDLClassifier": ({"estimator": _linear, "cv": 3},),
}
"""Settings by class: small enough for short fits, different enough to take each branch."""

SLOW = {("SABFGSCV", "lexicon"), ("AutoLDL", "lexicon")}
"""Classes and sets whose fits take seconds."""
LEARN_FROM_CHUNKS = ("MeanDistribution", "SABFGS", "SABFGSCV", "SAIIS", "PTBayes")


def _fit(class_name: str, params: dict[str, Any], data: Set) -> Any:
    weighted = {} if data.sample_weight is None else {"sample_weight": data.sample_weight}
    return _fresh(class_name, **params).fit(data.X, data.D, **weighted)


def _predictions(class_name: str, params: dict[str, Any], set_name: str) -> Any:
    data = load(set_name)
    if class_name == "LDLClassifier":  # it learns from classes
        data = dataclasses.replace(data, D=data.D.argmax(axis=1))
        return _fit(class_name, params, data).predict_proba(data.X_new)
    return _fit(class_name, params, data).predict(data.X_new)


def _predictions_of_chunks(class_name: str, params: dict[str, Any], set_name: str) -> Any:
    data = load(set_name)
    chunk_rows = CHUNK_ROWS if data.D.shape[0] <= MAX_ROWS else 10 * CHUNK_ROWS
    rows = chunks.ArrayRows(data.X, data.D, data.sample_weight, chunk_rows=chunk_rows)
    model = _fresh(class_name, **params).fit(rows)
    return model.predict(chunks.ArrayRows(data.X_new, chunk_rows=CHUNK_ROWS))


LARGE: dict[str, tuple[dict[str, Any], ...]] = {
    "MeanDistribution": ({},),
    "SABFGS": ({"alpha": 1e-3, "fit_intercept": True}, {"max_iter": 20}),
    "SABFGSCV": ({"cv": 3},),
    "SAIIS": ({"max_iter": 5},),
    "PTBayes": ({}, {"covariance": "full"}),
    "AAKNN": ({"n_neighbors": 20}, {"n_neighbors": 9, "metric": "manhattan"}, {"n_neighbors": 9, "metric": "cosine"}),
    "AAKNNCV": ({},),
    "PTSVM": ({"gamma": "scale", "max_samples": 500}, {"kernel": "linear", "C": 0.1, "max_samples": 500}),
    "KernelRidgeLDL": ({"n_screen": 200},),
    "RandomForestLDL": ({"n_estimators": 4, "n_trial_estimators": 2},),
    "LDLLDM": ({"alpha": 1e-3, "max_iter": 5},),
    "BDLDL": ({"alpha": 1e-3},),
}
"""Settings for sets of some thousand rows, whose sizes lead to other code than 300 rows do."""


def large_cases() -> Iterator[Case]:
    """Estimators on large sets, in memory and in chunks, for the comparison of two versions alone."""
    for class_name, settings in LARGE.items():
        for params in settings:
            for set_name in LARGE_SETS:
                for way, compute in (("", _predictions), (" in chunks", _predictions_of_chunks)):
                    is_slow = class_name == "SABFGSCV" and set_name in ("Natural_Scene", "Movie")
                    if way and (class_name not in LEARN_FROM_CHUNKS or is_slow):
                        continue
                    function = functools.partial(compute, class_name, params, set_name)
                    name = f"{class_name}({_shown(params)}) on {set_name}{way}"
                    yield Case(name, function, LARGE_SETS[set_name], slow=True)


def _shown(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={getattr(value, '__name__', repr(value))}" for name, value in params.items())


def estimator_cases() -> Iterator[Case]:
    """Each estimator with each of its settings on each set; those that learn from chunks also in chunks."""
    for class_name, settings in SETTINGS.items():
        for params in settings:
            for set_name in SETS:
                data = PAPER_SETS.get(set_name, "")
                call = f"{class_name}({_shown(params)})"
                function = functools.partial(_predictions, class_name, params, set_name)
                slow = set_name == "SJAFFE all columns" or (class_name, set_name) in SLOW
                yield Case(f"{call} on {set_name}", function, data, slow)
                if class_name in LEARN_FROM_CHUNKS:
                    function = functools.partial(_predictions_of_chunks, class_name, params, set_name)
                    yield Case(f"{call} on {set_name} in chunks", function, data, slow)
