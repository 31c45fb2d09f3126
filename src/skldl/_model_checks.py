"""A loaded model, checked before its first use.

Compiled code of scikit-learn and SciPy does not check the index arrays of a fitted model. `check_loaded` visits all
objects of a model that was rebuilt from a file and requires that such arrays stay inside the arrays that they index.
Neighbour trees are built again from their data. An algorithm of this package can add checks: the method
``_check_fitted_state(self)`` of its class is called, and raises `ValueError` if a check fails.
"""

from collections.abc import Callable, Set
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.neighbors import BallTree, KDTree, KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import Tree

from skldl._model_archive import NeighbourTree, check_branches, check_range
from skldl.base import BaseLDL
from skldl.neighbors._search import StableSearch

VETTED_MODULES = (
    "sklearn._loss.",
    "sklearn.compose._column_transformer",
    "sklearn.compose._target",
    "sklearn.cross_decomposition.",
    "sklearn.decomposition._pca",
    "sklearn.decomposition._truncated_svd",
    "sklearn.discriminant_analysis",
    "sklearn.dummy",
    "sklearn.ensemble._bagging",
    "sklearn.ensemble._forest.ExtraTreesClassifier",
    "sklearn.ensemble._forest.ExtraTreesRegressor",
    "sklearn.ensemble._forest.RandomForestClassifier",
    "sklearn.ensemble._forest.RandomForestRegressor",
    "sklearn.ensemble._hist_gradient_boosting.",
    "sklearn.ensemble._stacking",
    "sklearn.ensemble._voting",
    "sklearn.feature_extraction.text",
    "sklearn.feature_selection.",
    "sklearn.gaussian_process.",
    "sklearn.impute._base",
    "sklearn.kernel_ridge",
    "sklearn.linear_model.",
    "sklearn.multiclass",
    "sklearn.multioutput",
    "sklearn.naive_bayes",
    "sklearn.neighbors._classification.KNeighborsClassifier",
    "sklearn.neighbors._regression.KNeighborsRegressor",
    "sklearn.neighbors._unsupervised.",
    "sklearn.neural_network._multilayer_perceptron",
    "sklearn.pipeline",
    "sklearn.preprocessing._data",
    "sklearn.preprocessing._discretization",
    "sklearn.preprocessing._encoders",
    "sklearn.preprocessing._function_transformer",
    "sklearn.preprocessing._label",
    "sklearn.preprocessing._target_encoder",
    "sklearn.svm._classes.LinearSVC",
    "sklearn.svm._classes.LinearSVR",
    "sklearn.svm._classes.SVC",
    "sklearn.svm._classes.SVR",
    "sklearn.tree._classes.",
)
"""Parts of scikit-learn whose fitted models work through NumPy, which checks every index, or are checked here."""

MOST_JOBS = 1024
LONGEST_N_GRAM = 20


def check_loaded(model: Any, trusted: Set[str]) -> None:
    """Check every object of a model that was rebuilt, and build its neighbour trees; `ValueError` says what is wrong.

    ``trusted`` are full names of types that the caller vouches for: they are not looked into.
    """
    if not isinstance(model, BaseEstimator) and full_name(type(model)) not in trusted:
        raise ValueError(f"it holds a {type(model).__name__}, which is no estimator")
    waiting, seen = [model], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, _HARMLESS):
            continue
        seen.add(id(item))
        if isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, list | tuple | set):
            waiting += item
        elif isinstance(item, np.ndarray):
            waiting += list(item.flat) if item.dtype == object else []
        elif full_name(type(item)) not in trusted:
            waiting += _checked(item)


_HARMLESS = (type(None), bool, int, float, str, slice, type, np.generic, np.dtype, np.ufunc, Tree, BallTree, KDTree)


def full_name(kind: type) -> str:
    """Module and name of a class, as model files write it."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _checked(item: Any) -> list[Any]:
    """Check one object, and give what it holds."""
    if sparse.issparse(item):
        if item.format not in ("csr", "csc"):
            raise ValueError(f"a sparse matrix has the format {item.format}")
        item.check_format(full_check=True)
        return []
    if isinstance(item, np.random.RandomState):
        check_range(np.array([item.get_state(legacy=False)["state"]["pos"]]), 625, "position in random numbers")
        return []
    if isinstance(item, np.random.Generator):
        if type(item.bit_generator) is not np.random.PCG64:
            raise ValueError(f"random numbers come from {type(item.bit_generator).__name__}")
        return []
    if not hasattr(item, "__dict__"):  # distances and losses in compiled code hold numbers only
        return []
    state = vars(item)
    _check_settings(item, state)
    _require(not isinstance(item, NeighbourTree), "a neighbour tree is in the wrong place")
    for name, value in state.items():
        if isinstance(value, NeighbourTree):
            setattr(item, name, value.build())
    for kind, check in CHECKS.items():
        if isinstance(item, kind):
            check(item)
    if hasattr(item, "_check_fitted_state"):
        item._check_fitted_state()
    return list(state.values())


def _require(condition: Any, text: str) -> None:
    if not condition:
        raise ValueError(text)


def _check_settings(item: Any, state: dict[str, Any]) -> None:
    _require(state.get("memory") is None, f"{type(item).__name__} has a cache on disk (memory=), which can hold code")
    n_jobs = state.get("n_jobs")
    _require(n_jobs is None or abs(n_jobs) <= MOST_JOBS, f"n_jobs={n_jobs!r} is more than {MOST_JOBS}")
    shadowed = [name for name in state if callable(getattr(type(item), name, None))]
    _require(not shadowed, f"an attribute replaces {type(item).__name__}.{', '.join(shadowed)}")
    if "n_features_in_" in state:
        size = state["n_features_in_"]
        _require(_is_whole(size) and size >= 0, f"n_features_in_={size!r} is no number of features")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_learner(model: BaseLDL) -> None:
    names = np.asarray(model.label_names_) if hasattr(model, "label_names_") else None
    if names is not None:
        _require(names.ndim == 1 and model.n_labels_ == len(names), "the labels are not as many as their names")


def _check_decision_tree(model: Any) -> None:
    if hasattr(model, "tree_"):
        _require(type(model.tree_) is Tree, "a decision tree holds no tree")
        _require(model.tree_.n_features == model.n_features_in_, "a tree has other features than its estimator")


def _check_forest(model: Any) -> None:
    for tree in getattr(model, "estimators_", ()):
        _require(isinstance(tree, DecisionTreeRegressor | DecisionTreeClassifier), "a forest holds something else")
        _require(tree.tree_.n_features == model.n_features_in_, "a tree has other features than its forest")
        _require(tree.tree_.n_outputs == model.n_outputs_, "a tree has other outputs than its forest")
        if hasattr(model, "n_classes_"):
            same = np.array_equal(np.atleast_1d(model.n_classes_), tree.tree_.n_classes)
            _require(same, "a tree has other classes than its forest")


def _check_boosting(model: Any) -> None:
    if not hasattr(model, "_predictors"):
        return
    _require(model._preprocessor is None, "gradient boosting on categories is not checked")
    _require(not np.any(model._bin_mapper.is_categorical_), "gradient boosting on categories is not checked")
    _require(len(model._bin_mapper.is_categorical_) == model.n_features_in_, "the bins are for other features")
    n_trees = model.n_trees_per_iteration_
    for iteration in model._predictors:
        _require(len(iteration) == n_trees, "an iteration of gradient boosting has another number of trees")
        for predictor in iteration:
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            check_branches(nodes["left"], nodes["right"], leaf)
            check_range(nodes["feature_idx"][~leaf], model.n_features_in_, "feature of a tree")
            _require(not nodes["is_categorical"].any(), "gradient boosting on categories is not checked")
    _require(np.asarray(model._baseline_prediction).size == n_trees, "gradient boosting starts at another size")


def _check_neighbors(model: Any) -> None:
    if not hasattr(model, "_fit_X"):
        return
    shape = (model.n_samples_fit_, model.n_features_in_)
    _require(
        model._fit_X.shape == shape, "the training rows of a neighbour search differ in number from what it states"
    )
    tree = getattr(model, "_tree", None)
    if tree is not None:
        _require(isinstance(tree, BallTree | KDTree), "a neighbour search holds something that is no tree")
        _require(np.asarray(tree.data).shape == shape, "a neighbour tree has other rows than its search")
    _require(isinstance(model.effective_metric_, str), "a neighbour search has no metric")


def _check_search(search: StableSearch) -> None:
    index = search._index
    _require(index is None or isinstance(index, NearestNeighbors), "a neighbour search holds something else")
    same = index is None or search._X.shape == index._fit_X.shape
    _require(same, "a neighbour search has two sets of training rows")
    _require(search.n_samples == search._X.shape[0], "a neighbour search has another number of training rows")


def _check_categories(encoder: Any) -> None:
    """Demand that every code of a category has a column: SciPy believes column indices."""
    if not hasattr(encoder, "categories_"):
        return
    for values in encoder.categories_:
        if values.dtype.kind != "O":  # found by bisection
            known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
            _require((known[1:] > known[:-1]).all(), "categories are not sorted")
    if not isinstance(encoder, OneHotEncoder):
        return
    _require(encoder.drop is None and encoder.drop_idx_ is None, "OneHotEncoder(drop=...) is not checked")
    rare = encoder._infrequent_indices if encoder._infrequent_enabled else [None] * len(encoder.categories_)
    grouped = encoder._default_to_infrequent_mappings if encoder._infrequent_enabled else rare
    columns = zip(encoder.categories_, encoder._n_features_outs, rare, grouped, strict=True)
    for values, n_columns, others, codes in columns:
        if others is not None:
            check_range(np.asarray(others), len(values), "rare category")
        codes = np.arange(len(values)) if codes is None else np.asarray(codes)
        _require(len(codes) == len(values) and codes.dtype.kind == "i", "categories and their codes differ in number")
        check_range(codes, n_columns, "category")


def _check_text(vectorizer: Any) -> None:
    _require(vectorizer.input == "content", "a text encoder reads files")
    _require(vectorizer.analyzer in ("word", "char", "char_wb"), "a text encoder has an analyzer of its own")
    _require(vectorizer.token_pattern in (None, r"(?u)\b\w\w+\b"), "a text encoder has a pattern of its own")
    low, high = vectorizer.ngram_range
    _require(_is_whole(low) and _is_whole(high) and 1 <= low <= high <= LONGEST_N_GRAM, "n-grams are too long")
    if hasattr(vectorizer, "vocabulary_"):
        places = sorted(vectorizer.vocabulary_.values())
        _require(places == list(range(len(places))), "the places of words are no numbers from 0")


def _check_support_vectors(model: Any) -> None:
    """LIBSVM is given pointers and believes the number of support vectors of each class."""
    if not hasattr(model, "support_vectors_"):
        return
    _require(model.kernel in ("linear", "poly", "rbf", "sigmoid") and not model._sparse, "an SVM is not checked")
    n_support = np.asarray(model._n_support)
    n_vectors, n_classes = len(model.support_), len(n_support)
    _require(n_support.dtype == np.int32 and n_support.min(initial=0) >= 0 and n_classes >= 2, "an SVM has no classes")
    _require(
        isinstance(model, SVR) or n_support.sum() == n_vectors, "support vectors differ in number from what it states"
    )
    _require(isinstance(model, SVC) or n_classes == 2, "an SVM for regression has classes")
    shapes = {
        "support_vectors_": (n_vectors, model.n_features_in_),
        "_dual_coef_": (n_classes - 1, n_vectors),
        "_intercept_": (n_classes * (n_classes - 1) // 2,),
    }
    for name, shape in shapes.items():
        array = getattr(model, name)
        _require(array.shape == shape and array.dtype == np.float64, f"{name} of an SVM has another shape")
    _require(model.support_.dtype == np.int32 and model.shape_fit_[1] == model.n_features_in_, "an SVM is inconsistent")
    _require(not model._probA.size and not model._probB.size, "an SVM with probabilities is not checked")
    classes = getattr(model, "classes_", None)
    _require(classes is None or len(classes) == n_classes, "an SVM has other classes than it states")


CHECKS: dict[Any, Callable[[Any], None]] = {
    BaseLDL: _check_learner,
    (DecisionTreeClassifier, DecisionTreeRegressor): _check_decision_tree,
    (ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor): _check_forest,
    (HistGradientBoostingClassifier, HistGradientBoostingRegressor): _check_boosting,
    (NearestNeighbors, KNeighborsClassifier, KNeighborsRegressor): _check_neighbors,
    StableSearch: _check_search,
    (OneHotEncoder, OrdinalEncoder): _check_categories,
    (CountVectorizer, HashingVectorizer): _check_text,
    (SVC, SVR): _check_support_vectors,
}
"""What each kind of object must satisfy."""
