"""Trees in double precision as ONNX nodes: StructRF, LDLogitBoost, and the soft trees of LDLF.

Their trees compare features in double precision, so that the nodes do, too; onnxruntime adds up the leaves in single
precision.
"""

from typing import Any

import numpy as np
from onnx import numpy_helper

from skldl.export._graph import DOUBLE, ML, Graph
from skldl.trees._newton_tree import NewtonTree
from skldl.utils.typing import IntArray


def add_structured_forest(graph: Graph, model: Any, features: str) -> str:
    """Append the nodes of a fitted `StructRF`: the mean of what its trees predict."""
    every = np.arange(model.n_labels_)
    total = _newton_sum(graph, [(tree, every) for tree in model.trees_], features, model.n_labels_)
    return graph.add("Div", total, graph.constant(float(len(model.trees_))))


def add_logit_boosting(graph: Graph, model: Any, features: str) -> str:
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


def add_soft_forest(graph: Graph, model: Any, features: str) -> str:
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
