"""Fitted estimators as ONNX nodes: maximum entropy, networks, forests, boosting, and pools of these.

Everything is computed in double precision but the trees of `RandomForestLDL`, `GradientBoostingLDL` and scikit-learn,
which compare features in single precision here as there. A threshold t in double precision becomes the largest number
of single precision that is not above it: a feature x of single precision is at most t if and only if it is at most
that.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from skldl.adaptation import AARegressor
from skldl.baseline import MeanDistribution
from skldl.ensemble._members import PooledLDL
from skldl.ensemble._pool import FLOOR
from skldl.export._graph import DOUBLE, ML, Graph, refuse
from skldl.export._tree_nodes import add_logit_boosting, add_soft_forest, add_structured_forest
from skldl.neural import AABP, CPNN
from skldl.neural._cpnn import _parts, label_codes
from skldl.tabular._softmax_weights import softmax_weights
from skldl.trees import LDLF, GradientBoostingLDL, LDLogitBoost, RandomForestLDL, StructRF
from skldl.trees._flat_trees import FlatTrees

_ACTIVATIONS = {"tanh": "Tanh", "logistic": "Sigmoid", "relu": "Relu", "identity": "Identity"}


def add_estimator(graph: Graph, model: Any, features: str) -> str:
    """Append the nodes of a fitted estimator of these features; return the name of its distributions, doubles, too."""
    if (weights := softmax_weights(model)) is not None:
        scores = graph.add("MatMul", features, graph.constant(weights[0]))
        return graph.add("Softmax", graph.add("Add", scores, graph.constant(weights[1])), axis=1)
    own = getattr(type(model), "_predict", None)
    for kind, add in _WRITERS.items():
        if own is kind._predict:
            return add(graph, model, features)
    raise refuse(
        f"The estimator {type(model).__name__}",
        "what can be are maximum entropy models, AABP, CPNN, RandomForestLDL, StructRF, LDLF, GradientBoostingLDL, "
        "LDLogitBoost, forests of scikit-learn, and pools of these. Fit one: skldl fit --model sa-bfgs-cv",
    )


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


_WRITERS: dict[Any, Callable[[Graph, Any, str], str]] = {
    MeanDistribution: _mean,
    AABP: _network,
    CPNN: _conditional_network,
    RandomForestLDL: _forest,
    GradientBoostingLDL: _boosting,
    AARegressor: _averaging_regressor,
    PooledLDL: _pool,
    StructRF: add_structured_forest,
    LDLogitBoost: add_logit_boosting,
    LDLF: add_soft_forest,
}
