"""Fitted estimators as ONNX nodes: maximum entropy, networks, forests, boosting, and pools of these.

Everything is computed in double precision but the trees of `RandomForestLDL`, `GradientBoostingLDL` and scikit-learn,
which compare features in single precision here as there. A threshold t in double precision becomes the largest number
of single precision that is not above it: a feature x of single precision is at most t if and only if it is at most
that.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from skldl._algorithms import names_with
from skldl.ensemble._pool import FLOOR
from skldl.export._graph import DOUBLE, ML, Graph, refuse
from skldl.neural._cpnn import _parts, label_codes
from skldl.tabular._softmax_weights import softmax_weights
from skldl.trees._flat_trees import FlatTrees
from skldl.trees._newton_tree import NewtonTree
from skldl.utils.typing import IntArray

_ACTIVATIONS = {"tanh": "Tanh", "logistic": "Sigmoid", "relu": "Relu", "identity": "Identity"}


def add_estimator(graph: Graph, model: Any, features: str) -> str:
    """Append the nodes of a fitted estimator of these features; return the name of its distributions, doubles, too.

    The class attribute ``_onnx`` of the estimator says which nodes those are.
    """
    add = _WRITERS.get(getattr(type(model), "_onnx", ""))
    if add is None:
        raise refuse(
            f"The estimator {type(model).__name__}",
            f"what can be are {names_with('ONNX')}, and pools of these. Fit one: skldl fit --model sa-bfgs-cv",
        )
    return add(graph, model, features)


def _linear(graph: Graph, model: Any, features: str) -> str:
    weights = softmax_weights(model)
    assert weights is not None
    scores = graph.add("MatMul", features, graph.constant(weights[0]))
    return graph.add("Softmax", graph.add("Add", scores, graph.constant(weights[1])), axis=1)


def _mean(graph: Graph, model: Any, features: str) -> str:
    zeros = graph.constant(np.zeros((model.n_features_in_, model.n_labels_)))
    return graph.add("Add", graph.add("MatMul", features, zeros), graph.constant(model.distribution_))


def _network(graph: Graph, model: Any, features: str) -> str:
    net = features
    for depth, (weights, intercepts) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        if depth:
            net = graph.add(_ACTIVATIONS[model.activation], net)
        net = graph.add("Add", graph.add("MatMul", net, graph.constant(weights)), graph.constant(intercepts))
    return graph.add("Softmax", net, axis=1)


def _conditional_network(graph: Graph, model: Any, features: str) -> str:
    codes = label_codes(model.n_labels_, model.label_code)
    A, U, c, v = _parts(model.theta_, model.n_features_in_, codes.shape[1], int(model.n_hidden))
    of_rows = graph.add("Unsqueeze", graph.add("MatMul", features, graph.constant(A)), graph.constant([1], np.int64))
    hidden = graph.add(_ACTIVATIONS[model.activation], graph.add("Add", of_rows, graph.constant(codes @ U + c)))
    scores = graph.add("MatMul", hidden, graph.constant(v[:, None]))
    return graph.add("Softmax", graph.add("Squeeze", scores, graph.constant([2], np.int64)), axis=1)


def _forest(graph: Graph, model: Any, features: str) -> str:
    votes = _tree_sum(graph, model.trees_, features, model.n_labels_)
    shares = graph.add("Div", votes, graph.constant(float(len(model.trees_))))
    if model.sharpness_ != 1.0:
        shares = graph.normalized(graph.add("Pow", shares, graph.constant(model.sharpness_)))
    own = graph.add("Mul", shares, graph.constant(1.0 - model.mean_share_))
    return graph.add("Add", own, graph.constant(model.mean_share_ * model.mean_))


def _boosting(graph: Graph, model: Any, features: str) -> str:
    total = ""
    for base, trees in zip(model.bases_, model.trees_, strict=True):
        scores = graph.constant([base])
        if len(trees):
            scores = graph.add("Add", _tree_sum(graph, trees, features, len(base)), scores)
        else:
            zeros = graph.constant(np.zeros((model.n_features_in_, len(base))))
            scores = graph.add("Add", graph.add("MatMul", features, zeros), scores)
        shares = graph.add("Softmax", scores, axis=1)
        total = graph.add("Add", total, shares) if total else shares
    order = graph.constant(np.argsort(model.label_order_), np.int64)
    return graph.add("Div", graph.add("Gather", total, order, axis=1), graph.constant(float(len(model.bases_))))


def _averaging_regressor(graph: Graph, model: Any, features: str) -> str:
    """A forest of scikit-learn: its trees average rows of D, so that nothing is left to project."""
    regressor = model.regressor_
    if not isinstance(regressor, RandomForestRegressor | ExtraTreesRegressor):
        raise refuse(
            f"The regressor {type(regressor).__name__} in AARegressor", "its predictions need a projection by sorting"
        )
    trees = [tree.tree_ for tree in regressor.estimators_]
    flat = FlatTrees.from_scikit_learn(trees, [tree.value[:, :, 0] for tree in trees])
    return graph.normalized(_tree_sum(graph, flat, features, model.n_labels_))


def _pool(graph: Graph, model: Any, features: str) -> str:
    total = ""
    parts = zip(model.members_, model.mean_shares_, model.member_weights_, strict=True)
    for member, mean_share, weight in parts:
        if weight <= 0:
            continue
        shares = add_estimator(graph, member, features)
        own = graph.add("Mul", shares, graph.constant(1.0 - mean_share))
        shares = graph.add("Add", own, graph.constant(mean_share * model.mean_distribution_))
        if model.pool_kind_ != "linear":
            shares = graph.add("Log", graph.add("Max", shares, graph.constant(FLOOR)))
        shares = graph.add("Mul", shares, graph.constant(weight))
        total = graph.add("Add", total, shares) if total else shares
    if not total:
        raise refuse(f"The estimator {type(model).__name__}", "none of its members has any weight")
    if model.pool_kind_ == "linear":
        return total
    return graph.add("Softmax", graph.add("Add", total, graph.constant(model.offset_)), axis=1)


def _structured_forest(graph: Graph, model: Any, features: str) -> str:
    """Append the nodes of a fitted `StructRF`: the mean of what its trees predict."""
    every = np.arange(model.n_labels_)
    total = _newton_sum(graph, [(tree, every) for tree in model.trees_], features, model.n_labels_)
    return graph.add("Div", total, graph.constant(float(len(model.trees_))))


def _logit_boosting(graph: Graph, model: Any, features: str) -> str:
    """Append the nodes of a fitted `LDLogitBoost`: softmax of its start and its trees.

    Scores that are centred in each round are centred once here, since centring is linear.
    """
    n_labels = model.n_labels_
    if model.method == "aoso":
        trees = [(tree, np.arange(n_labels)) for tree in model.trees_]
    else:
        trees = [(tree, np.array([label])) for one_round in model.trees_ for label, tree in enumerate(one_round)]
    steps = _newton_sum(graph, trees, features, n_labels)
    if model.method != "aoso":
        centring = (np.eye(n_labels) - 1.0 / n_labels) * (n_labels - 1) / n_labels
        steps = graph.add("MatMul", steps, graph.constant(centring))
    scores = graph.add("Mul", steps, graph.constant(float(model.learning_rate)))
    return graph.add("Softmax", graph.add("Add", scores, graph.constant([model.start_])), axis=1)


def _soft_forest(graph: Graph, model: Any, features: str) -> str:
    """Append the nodes of a fitted `LDLF`: leaves, weighted by the ways that lead to them, in the mean over trees."""
    one = graph.constant(1.0)
    total = ""
    for W, b, Q in zip(model.coefs_, model.intercepts_, model.leaves_, strict=True):
        scores = graph.add("Add", graph.add("MatMul", features, graph.constant(W)), graph.constant(b))
        decisions = graph.add("Sigmoid", scores)
        ways = ""
        width = 1
        while width < len(Q):
            nodes = graph.constant(np.arange(width - 1, 2 * width - 1), np.int64)
            left = graph.add("Gather", decisions, nodes, axis=1)
            sides = [left, graph.add("Sub", one, left)]
            if ways:
                sides = [graph.add("Mul", ways, side) for side in sides]
            last = graph.constant([2], np.int64)
            pairs = graph.add("Concat", *(graph.add("Unsqueeze", side, last) for side in sides), axis=2)
            width *= 2
            ways = graph.add("Reshape", pairs, graph.constant([0, width], np.int64))
        shares = graph.add("MatMul", ways, graph.constant(Q))
        total = graph.add("Add", total, shares) if total else shares
    return graph.add("Div", total, graph.constant(float(len(model.leaves_))))


def _tree_sum(graph: Graph, trees: FlatTrees, features: str, n_labels: int) -> str:
    """Sum over the trees of what their leaves hold; leaves of one number serve the labels in turn."""
    sizes = trees.sizes
    tree = np.repeat(np.arange(len(sizes)), sizes)
    node = np.arange(len(tree)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_leaf = trees.left == -1
    leaves = np.flatnonzero(is_leaf)
    in_turn = trees.values.shape[1] == 1
    width = 1 if in_turn else n_labels
    targets = tree[leaves] % n_labels if in_turn else np.tile(np.arange(n_labels), len(leaves))
    attributes: dict[str, Any] = {
        "n_targets": n_labels,
        "aggregate_function": "SUM",
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": node.tolist(),
        "nodes_featureids": np.where(is_leaf, 0, trees.feature).tolist(),
        "nodes_values": np.where(is_leaf, 0.0, _not_above(trees.threshold)).astype(np.float32).tolist(),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": np.where(is_leaf, 0, trees.left).tolist(),
        "nodes_falsenodeids": np.where(is_leaf, 0, trees.right).tolist(),
        "target_treeids": np.repeat(tree[leaves], width).tolist(),
        "target_nodeids": np.repeat(node[leaves], width).tolist(),
        "target_ids": targets.tolist(),
        "target_weights": trees.values[trees.leaf[leaves]].astype(np.float32).ravel().tolist(),
    }
    single = graph.cast(features, TensorProto.FLOAT)
    return graph.cast(graph.add("TreeEnsembleRegressor", single, domain=ML, **attributes), DOUBLE)


def _not_above(threshold: Any) -> Any:
    """The largest number of single precision that is not above each threshold."""
    with np.errstate(over="ignore"):
        single = threshold.astype(np.float32)
    above = single.astype(np.float64) > threshold
    return np.where(above, np.nextafter(single, np.float32(-np.inf)), single)


def _newton_sum(graph: Graph, trees: list[tuple[NewtonTree, IntArray]], features: str, n_labels: int) -> str:
    """Sum over trees of what their leaves hold; each tree comes with the labels that its leaves have numbers for."""
    sizes = np.array([len(tree.feature) for tree, _ in trees])
    number = np.repeat(np.arange(len(trees)), sizes)
    node = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    feature, threshold, left, right = (
        np.concatenate([getattr(tree, name) for tree, _ in trees]) for name in ("feature", "threshold", "left", "right")
    )
    is_leaf = feature < 0
    labels = [targets for tree, targets in trees for place in tree.feature if place < 0]
    weights = [value for tree, _ in trees for place, value in zip(tree.feature, tree.value, strict=True) if place < 0]
    width = [len(targets) for targets in labels]
    attributes: dict[str, Any] = {
        "n_targets": n_labels,
        "aggregate_function": "SUM",
        "nodes_treeids": number.tolist(),
        "nodes_nodeids": node.tolist(),
        "nodes_featureids": np.where(is_leaf, 0, feature).astype(np.int64).tolist(),
        "nodes_values_as_tensor": _doubles("nodes_values", np.where(is_leaf, 0.0, threshold)),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": np.where(is_leaf, 0, left).astype(np.int64).tolist(),
        "nodes_falsenodeids": np.where(is_leaf, 0, right).astype(np.int64).tolist(),
        "target_treeids": np.repeat(number[is_leaf], width).tolist(),
        "target_nodeids": np.repeat(node[is_leaf], width).tolist(),
        "target_ids": np.concatenate(labels).astype(np.int64).tolist(),
        "target_weights_as_tensor": _doubles("target_weights", np.concatenate(weights)),
    }
    return graph.cast(graph.add("TreeEnsembleRegressor", features, domain=ML, **attributes), DOUBLE)


def _doubles(name: str, values: Any) -> Any:
    return numpy_helper.from_array(np.asarray(values, dtype=np.float64), name)


_WRITERS: dict[str, Callable[[Graph, Any, str], str]] = {
    "linear": _linear,
    "mean": _mean,
    "network": _network,
    "conditional_network": _conditional_network,
    "forest": _forest,
    "boosting": _boosting,
    "regressor_trees": _averaging_regressor,
    "pool": _pool,
    "newton_forest": _structured_forest,
    "newton_boosting": _logit_boosting,
    "soft_forest": _soft_forest,
}
"""From the class attribute ``_onnx`` of estimators to the function that appends their nodes."""
