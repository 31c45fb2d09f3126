"""Crafted model files: each attack on compiled code or memory is rejected with one clear error before its first use."""

import io
import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

import skldl
from skldl.testing import make_distributions

X, D = make_distributions()
FOREST = skldl.AARegressor(RandomForestRegressor(2, random_state=0)).fit(X, D)
BOOSTING = skldl.AARegressor(HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=5)).fit(X, D)
NEIGHBORS = skldl.AAKNN(n_neighbors=3, algorithm="kd_tree").fit(X, D)
VECTORS = skldl.AARegressor(MultiOutputRegressor(SVR())).fit(X, D)
MEAN = skldl.MeanDistribution().fit(X, D)
SPARSE_ROWS = skldl.AAKNN(n_neighbors=3).fit(sparse.csr_matrix(np.where(X < 0.5, 0, X)), D)


def test_the_helper_writes_what_it_read(opened):
    for model in (FOREST, BOOSTING, NEIGHBORS, VECTORS, SPARSE_ROWS):
        np.testing.assert_array_equal(skldl.load(opened(model).write()).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("left_child", 10**6, "child in a tree is outside"),
        ("right_child", -7, "child in a tree is outside"),
        ("left_child", 0, "a tree has a cycle"),
        ("feature", 4, "feature of a tree is outside of 0 to 3"),
        ("feature", -2, "feature of a tree is outside"),
    ],
)
def test_nodes_of_trees(opened, field, value, match):
    file = opened(FOREST)
    nodes = file.array("nodes")
    nodes[field][np.flatnonzero(nodes["left_child"] >= 0)[0]] = value
    file.put_array("nodes", nodes)
    file.rejects(match)


def test_a_node_with_two_parents_and_a_tree_without_nodes(opened):
    file = opened(FOREST)
    nodes = file.array("nodes")
    nodes["left_child"][0] = nodes["right_child"][0]
    file.put_array("nodes", nodes)
    file.rejects("a tree has a cycle")
    file = opened(FOREST)
    for name in ("nodes", "values"):
        file.put_array(name, file.array(name)[:0])
    file.put_value("node_count", 0)
    file.rejects("no nodes")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("node_count", 10**9, "another number of nodes"),
        ("max_depth", 0, "deeper than it states"),
        ("n_features_in_", 2, "other features than its"),
        ("n_outputs_", 10**9, "other outputs than its forest"),
    ],
)
def test_what_trees_say_of_themselves(opened, name, value, match):
    file = opened(FOREST)
    file.put_value(name, value)
    file.rejects(match)


def test_constructor_of_trees(opened):
    for place, value, match in [(2, 10**9, "another number of outputs"), (0, "4", "numbers of features")]:
        file = opened(FOREST)
        for _, node in file.nodes(loader="TreeNode"):
            node["__reduce__"]["args"]["content"][place]["content"] = json.dumps(value)
            node["__reduce__"]["args"]["content"][place]["__id__"] = f"changed {id(node)}"
        file.rejects(match)
    file = opened(FOREST)
    file.put_array("values", file.array("values")[:-1])
    file.rejects("another number of values")


def test_classes_of_forests(opened):
    file = opened(skldl.PTClassifier(RandomForestClassifier(2, random_state=0)).fit(X, D))
    file.put_value("n_classes_", 10**8)
    file.rejects("other classes than its forest")


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("left", 10**6, "child in a tree is outside"),
        ("right", 0, "cycle"),
        ("feature_idx", 99, "feature of a tree is outside"),
        ("is_categorical", 1, "on categories is not checked"),
    ],
)
def test_nodes_of_gradient_boosting(opened, field, value, match):
    file = opened(BOOSTING)
    nodes = file.array("nodes")
    nodes[field][0] = value
    file.put_array("nodes", nodes)
    file.rejects(match)


def test_neighbour_trees_are_built_again(opened):
    file = opened(NEIGHBORS)
    tree = next(node for _, node in file.nodes(**{"class": "KDTree"}))
    arrays = [node for node in tree["content"]["content"] if "file" in node]
    buffer = io.BytesIO()
    np.save(buffer, np.full(len(X), 2**40))
    file.members[arrays[1]["file"]] = buffer.getvalue()  # positions of the training rows
    np.testing.assert_array_equal(skldl.load(file.write()).predict(X), NEIGHBORS.predict(X))


def test_compiled_code_is_not_given_the_state_of_neighbour_trees(opened):
    """A short tuple, or another distance, made the process end."""
    for place, change in [(11, "EuclideanDistance32"), (12, "1")]:
        file = opened(NEIGHBORS)
        tree = next(node for _, node in file.nodes(**{"class": "KDTree"}))
        part = tree["content"]["content"][place]
        part["__class__" if place == 11 else "content"] = change
        file.rejects("weights, or a distance other than euclidean, manhattan, chebyshev")
    file = opened(NEIGHBORS)
    tree = next(node for _, node in file.nodes(**{"class": "KDTree"}))
    tree["content"]["content"] = tree["content"]["content"][:3]
    file.rejects("IndexError")
    for place, value, match in [(4, -1, "size of its leaves"), (0, [1.0], "no data")]:
        file = opened(NEIGHBORS)
        tree = next(node for _, node in file.nodes(**{"class": "KDTree"}))
        tree["content"]["content"][place] = {
            "__class__": "str",
            "__module__": "builtins",
            "__loader__": "JsonNode",
            "content": json.dumps(value),
        }
        file.rejects(match)


def test_losses_and_seeds(opened):
    file = opened(BOOSTING)
    for _, node in file.nodes(loader="LossNode"):
        node["content"] = node["__reduce__"]["args"] = {
            **node["content"],
            "content": [file.attribute("n_features_in_")],
        }
    file.rejects("a loss holds more")
    file = opened(BOOSTING)
    for _, node in file.nodes(loader="RandomGeneratorNode"):
        node["content"]["seed_seq"]["content"]["pool_size"].update(content="1000000000", __id__="large")
    file.rejects("a seed of another size")


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("_fit_X", "differ in number from what it states|two sets|described in two ways"),
        ("data", "is outside|invalid|indices"),
    ],
)
def test_training_rows_of_neighbours(opened, name, match):
    if name == "_fit_X":
        file = opened(NEIGHBORS)
        file.put_array("_fit_X", file.array("_fit_X")[:, :2].copy())
        file.rejects(match)
        return
    file = opened(SPARSE_ROWS)
    matrices = [node for _, node in file.nodes(loader="SparseMatrixNode")]
    for matrix in matrices:
        content = dict(np.load(io.BytesIO(file.members[matrix["file"]])))
        content["indices"] = np.full_like(content["indices"], 10**6)
        buffer = io.BytesIO()
        np.savez(buffer, **content)
        file.members[matrix["file"]] = buffer.getvalue()
    file.rejects("cannot be rebuilt")


@pytest.mark.parametrize("metric", ["minkowski", "manhattan", "chebyshev"])
@pytest.mark.parametrize("algorithm", ["ball_tree", "kd_tree"])
def test_a_neighbour_search_of_scikit_learn(tmp_path, algorithm, metric):
    model = skldl.AARegressor(KNeighborsRegressor(3, algorithm=algorithm, metric=metric, leaf_size=1)).fit(X, D)
    again = skldl.load(skldl.save(model, tmp_path / "m.skldl"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_state_of_a_neighbour_tree(opened):
    model = skldl.AARegressor(KNeighborsRegressor(3, algorithm="kd_tree", metric="euclidean")).fit(X, D)
    file = opened(model)
    file.attribute("_tree")["content"]["content"][4] |= {"content": "0", "__id__": "other"}
    file.rejects("no size of its leaves")
    file = opened(model)  # with the placeholder that stands for a tree while a model is checked
    tree = file.attribute("_tree")
    state = tree["content"]["content"]
    kind, metric = ({**state[4], "__id__": name, "content": f'"{name}"'} for name in ("KDTree", "pyfunc"))
    parts = {"kind": kind, "data": state[0], "leaf_size": state[4], "metric": metric}
    words = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
    names = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": [words] * 4}
    content = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode", "key_types": names}
    tree |= {"__module__": "skldl._model_file_checks", "__class__": "NeighbourTree"}
    tree["content"] = {**content, "content": parts}
    file.rejects("unknown distance")


def test_neighbours_by_the_manhattan_distance(tmp_path):
    """Leave-one-out may choose this distance, so that the model of a plain ``skldl fit`` can hold it."""
    model = skldl.AAKNNCV(metric="manhattan", random_state=0).fit(X, D)
    again = skldl.load(skldl.save(model, tmp_path / "m.skldl"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_support_vectors(opened):
    for name, change in {
        "_n_support": lambda a: np.full(5, 10**8, dtype=np.int32),
        "support_vectors_": lambda a: a[:, :1].copy(),
        "_dual_coef_": lambda a: a[:, :2].copy(),
    }.items():
        file = opened(VECTORS)
        file.put_array(name, change(file.array(name)))
        file.rejects("SVM")
    model = make_pipeline(StandardScaler(), SVC()).fit(X, D.argmax(axis=1))
    file = opened(model)
    np.testing.assert_array_equal(skldl.load(file.write()).predict(X), model.predict(X))
    file.put_array("_n_support", np.array([1, 1, 1], dtype=np.int32))
    file.rejects("differ in number from what it states")


WORDS = np.array([["u"], ["v"], ["w"], ["w"]] * 10, dtype=object)


def test_columns_of_categories(opened):
    model = make_pipeline(OneHotEncoder(), skldl.MeanDistribution()).fit(WORDS, D)
    file = opened(model)
    file.put_value("_n_features_outs", [1])
    file.rejects("category is outside of 0 to 0")
    model = make_pipeline(OneHotEncoder(max_categories=2), skldl.SABFGS()).fit(WORDS, D)
    file = opened(model)
    np.testing.assert_array_equal(skldl.load(file.write()).predict(WORDS), model.predict(WORDS))
    file.put_value("_infrequent_indices", [[77]])
    file.rejects("rare category is outside")
    numbers = np.arange(4.0).repeat(10)[:, None]
    file = opened(make_pipeline(OneHotEncoder(), skldl.SABFGS()).fit(numbers, D))
    buffer = io.BytesIO()
    np.save(buffer, np.array([3.0, 1.0, 0.0, 2.0]))
    file.members[file.attribute("categories_")["content"][0]["file"]] = buffer.getvalue()
    file.rejects("categories are not sorted")
    file = opened(make_pipeline(OneHotEncoder(drop="first"), skldl.SABFGS()).fit(WORDS, D))
    file.rejects("drop")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("vocabulary_", {"u ": 10**6}, "positions of words"),
        ("token_pattern", "(a+)+$", "pattern of its own"),
        ("input", "filename", "reads files"),
        ("ngram_range", [1, 10**9], "n-grams are too long"),
        ("analyzer", "evil", "analyzer"),
    ],
)
def test_text(opened, name, value, match):
    model = make_pipeline(TfidfVectorizer(), skldl.SABFGS()).fit(["one two", "three"] * 20, D)
    file = opened(model)
    file.put_value(name, value)
    file.rejects(match)


def test_caches_on_disk_and_shadowed_methods_are_rejected(opened, tmp_path):
    file = opened(make_pipeline(StandardScaler(), skldl.MeanDistribution(), memory=str(tmp_path)).fit(X, D))
    file.rejects("cache on disk")
    file = opened(make_pipeline(StandardScaler(), skldl.MeanDistribution()).fit(X, D))
    file.put_value("n_features_in_", -3)
    file.rejects("not a number of features")
    file = opened(skldl.AAKNN(n_jobs=2).fit(X, D))
    file.put_value("n_jobs", 10**6)
    file.rejects("n_jobs=1000000")
    for name in ("predict", "_linear_scores"):  # a method, and what the class says that it can
        file = opened(MEAN)
        state = file.schema["content"]
        state["content"][name] = state["content"]["n_labels_"]
        state["key_types"]["content"].append(state["key_types"]["content"][0])
        file.rejects(f"an attribute replaces MeanDistribution.{name}")


def test_random_numbers(opened):
    model = make_pipeline(MLPRegressor(hidden_layer_sizes=(2,), max_iter=1000, random_state=0, solver="lbfgs")).fit(
        X, D
    )
    file = opened(model)
    np.testing.assert_array_equal(skldl.load(file.write()).predict(X), model.predict(X))
    file.put_value("pos", 10**6)
    file.rejects("position in random numbers")
    file = opened(BOOSTING)
    for key, node in list(file.nodes()):
        if key == "bit_generator" and node["__loader__"] == "JsonNode":
            node["content"] = '"Philox"'
    file.rejects("cannot be rebuilt|random numbers come from")


def test_labels_and_their_names(opened):
    file = opened(MEAN)
    file.put_value("n_labels_", 10**9)
    file.rejects("not as many as their names")


@pytest.mark.parametrize(("name", "place"), [("item", 10**12), ("rater", -1)])
def test_votes(opened, name, place):
    file = opened(skldl.annotators.DawidSkene().fit([["a", "b"], ["b", "b"], ["a", "a"]]))
    file.put_array(name, np.full_like(file.array(name), place))
    file.rejects("a vote is outside of the items, raters and labels")


def test_an_algorithm_checks_its_own_arrays_unless_it_is_trusted(opened, monkeypatch):
    def check(model):
        if model.distribution_.min() < 0:
            raise ValueError("a degree is negative")

    monkeypatch.setattr(skldl.MeanDistribution, "_check_fitted_state", check, raising=False)
    file = opened(MEAN)
    skldl.load(file.write())
    file.put_array("distribution_", -file.array("distribution_"))
    file.rejects("a degree is negative")
    skldl.load(file.path, trusted=["skldl.baseline.MeanDistribution"])


def test_without_skops_the_extra_is_named(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ModuleNotFoundError, match=r"^A model file needs skops, .*scikit-ldl\[save\]"):
        skldl.save(MEAN, tmp_path / "m.skldl")
