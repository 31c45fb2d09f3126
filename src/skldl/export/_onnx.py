"""Export to ONNX: encoder and estimator as one graph, which is compared with the model in onnxruntime.

Everything is computed in double precision, with two exceptions: the trees of `RandomForestLDL`, `GradientBoostingLDL`
and scikit-learn compare features in single precision, as the models do, and onnxruntime adds up the leaves of all trees
in single precision.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pandas as pd
from onnx import TensorProto, helper, numpy_helper
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

import skldl
from skldl._algorithms import names_with
from skldl.data._cells import BOOLEAN, CATEGORY, DATE, TEXT
from skldl.ensemble._pool import MIN_DEGREE
from skldl.exceptions import DataError
from skldl.neural._cpnn import _parts, label_codes
from skldl.tabular import TableEncoder
from skldl.tabular._encoder_fit import MISSING_CATEGORY
from skldl.tabular._explain import softmax_weights
from skldl.trees._flat_trees import FlatTrees
from skldl.trees._newton_tree import NewtonTree
from skldl.utils.files import whole_file
from skldl.utils.typing import IntArray

ML = "ai.onnx.ml"
OPSETS = {"": 18, ML: 3}
"""Versions of the operators by their domain, and below that of the file format: old ones, for old runtimes."""
IR_VERSION = 9
DOUBLE = TensorProto.DOUBLE
MAX_DIFFERENCE = 1e-5
"""Largest difference between a degree of the graph and of the model. Chosen by hand: single precision has 7 digits."""
N_CHECKED = 200
"""Rows on which graph and model are compared; chosen by hand."""
OUTPUT = "distribution"


def to_onnx(pipeline: Any, path: str | os.PathLike[str], *, check: pd.DataFrame | None = None) -> float:
    """Write a model as an ONNX graph, unless its predictions differ from those of the model.

    Parameters
    ----------
    pipeline : Pipeline
        A `TableEncoder` and an estimator, fitted.
    path : str or path
        Where to write it.
    check : DataFrame, default=None
        Rows to compare with; by default rows drawn from the ranges and categories of the training table, with missing
        cells and unknown categories.

    Returns
    -------
    float
        The largest difference of a degree between onnxruntime and the model, at most 1e-5.

    Raises
    ------
    DataError
        If a part of the model cannot be exported, or if the predictions differ by more than 1e-5.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from skldl.export import to_onnx
    >>> from skldl.tabular import fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     difference = to_onnx(fitted.model, Path(folder) / "model.onnx")
    >>> difference < 1e-5
    True
    """
    encoder = pipeline.steps[0][1]
    if len(pipeline.steps) != 2 or not isinstance(encoder, TableEncoder):
        raise not_expressible("A pipeline with further steps", "only an encoder and an estimator of skldl fit can be")
    model = _graph(encoder, pipeline.steps[-1][1])
    rows = _rows(encoder) if check is None else check
    difference = _difference(model, pipeline, encoder, rows)
    if not difference <= MAX_DIFFERENCE:
        raise DataError(
            f"The graph differs from the model by {difference:.2g} in a degree, more than {MAX_DIFFERENCE:g}: nothing "
            "was written. The model file itself works in skldl serve and skldl.load."
        )
    with whole_file(path) as stream:
        stream.write(model.SerializeToString())
    return difference


def _graph(encoder: TableEncoder, estimator: Any) -> Any:
    if OUTPUT in encoder.kinds_:
        raise not_expressible(f"The column {OUTPUT!r}", "the output of the graph has this name. Rename the column")
    graph = Graph()
    result = graph.normalized(add_estimator(graph, estimator, _add_encoder(graph, encoder)))
    graph.nodes.append(helper.make_node("Identity", [result], [OUTPUT], name=OUTPUT))
    labels = [str(name) for name in estimator.label_names_]
    output = helper.make_tensor_value_info(OUTPUT, DOUBLE, ["rows", len(labels)])
    whole = helper.make_graph(graph.nodes, "skldl", _inputs(encoder), [output], graph.constants)
    made = helper.make_model(
        whole,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS.items()],
        producer_name="scikit-ldl",
        producer_version=skldl.__version__,
        ir_version=IR_VERSION,
    )
    helper.set_model_props(made, {"labels": "\n".join(labels)})
    onnx.checker.check_model(made)
    return made


def feeds_of(encoder: TableEncoder, table: pd.DataFrame) -> dict[str, Any]:
    """Return the inputs of a graph for the rows of a table: an array of shape (n_rows, 1) for each column."""
    return {name: cells[:, np.newaxis] for name, cells in encoder.typed_cells(table).items()}


def _difference(model: Any, pipeline: Any, encoder: TableEncoder, rows: pd.DataFrame) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (predicted,) = session.run([OUTPUT], feeds_of(encoder, rows))
    return float(np.abs(predicted - np.asarray(pipeline.predict(rows))).max())


def _rows(encoder: TableEncoder) -> pd.DataFrame:
    """Draw rows with numbers inside and outside the ranges, known and unknown categories, and missing cells."""
    generator = np.random.default_rng(0)
    cells: dict[str, Any] = {}
    for name, kind in encoder.kinds_.items():
        if kind == CATEGORY:
            words = [*encoder.categories_[name], *encoder.rare_categories_[name]]
            words = [word for word in words if word != MISSING_CATEGORY]
            column = generator.choice(np.array([*words, "\x00unknown"], dtype=object), N_CHECKED)
        elif kind == BOOLEAN:
            column = generator.choice([True, False], N_CHECKED).astype(object)
        else:
            low, high = encoder.ranges_.get(name, (0.0, 1.0))
            width = high - low
            column = generator.uniform(low - 0.5 * width, high + 0.5 * width, N_CHECKED).astype(object)
        column[generator.random(N_CHECKED) < 0.05] = None
        cells[name] = column
    return pd.DataFrame(cells)


class NotExpressible(DataError):
    """A part of a model that cannot be exported to ONNX. To fix it, use the model file itself."""


def not_expressible(part: str, why: str) -> NotExpressible:
    """Return the error for a part that cannot be exported."""
    return NotExpressible(
        f"{part} cannot be exported to ONNX: {why}. The model file itself works in skldl serve and skldl.load."
    )


class Graph:
    """Nodes and constants of a graph.

    Examples
    --------
    >>> graph = Graph()
    >>> graph.add("Softmax", "scores", axis=1)
    'skldl/Softmax_1'
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = 0

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Append a node with one output, whose name is returned."""
        self._count += 1
        name = f"skldl/{kind}_{self._count}"  # a prefix that names of columns do not have
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Append a constant array, and return its name."""
        self._count += 1
        name = f"skldl/constant_{self._count}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def cast(self, name: str, to: int) -> str:
        """Append a conversion to another type."""
        return self.add("Cast", name, to=to)

    def normalized(self, name: str) -> str:
        """Append the division of each row by its sum."""
        return self.add("Div", name, self.add("ReduceSum", name, self.constant([1], np.int64), keepdims=1))


# --- the encoder ---

_NO_NODES = {
    TEXT: "its n-grams depend on a tokeniser that ONNX does not have",
    DATE: "ONNX has no calendar. Turn it into numbers before skldl fit",
}


def _inputs(encoder: TableEncoder) -> list[Any]:
    """Describe the inputs of the graph, one for each column of the training table.

    Each has the shape (rows, 1): doubles for numbers and truth values, with NaN for missing cells, and text for
    categories, with ``(missing)`` for missing cells.
    """
    text = helper.np_dtype_to_tensor_dtype(np.dtype(object))
    return [
        helper.make_tensor_value_info(str(name), text if kind == CATEGORY else DOUBLE, ["rows", 1])
        for name, kind in encoder.kinds_.items()
    ]


def _add_encoder(graph: Graph, encoder: TableEncoder) -> str:
    """Append the nodes of a fitted encoder; return the name of its features, doubles of shape (rows, n_features)."""
    for name, kind in encoder.kinds_.items():
        if kind in _NO_NODES:
            raise not_expressible(f"The {kind} column {name!r}", _NO_NODES[kind])
    parts = [_add_numbers(graph, encoder)] if encoder.numbers_ else []
    parts += [_add_categories(graph, encoder, name) for name in encoder.categories_]
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _add_numbers(graph: Graph, encoder: TableEncoder) -> str:
    """Imputation by medians, indicators of missing cells, and standardisation."""
    columns = encoder.numbers_
    cells = columns[0] if len(columns) == 1 else graph.add("Concat", *columns, axis=1)
    missing = graph.add("IsNaN", cells)
    features = graph.add("Where", missing, graph.constant([encoder.medians_]), cells)
    if len(encoder.with_missing_):
        shown = graph.add("Gather", missing, graph.constant(encoder.with_missing_, np.int64), axis=1)
        features = graph.add("Concat", features, graph.cast(shown, DOUBLE), axis=1)
    centred = graph.add("Sub", features, graph.constant([encoder.means_]))
    return graph.add("Div", centred, graph.constant([encoder.scales_]))


def _add_categories(graph: Graph, encoder: TableEncoder, name: str) -> str:
    """One feature for each category; rare categories share one, and unknown ones are rare or have none."""
    positions, of_unknown = encoder.category_positions(name)
    keys, values = list(positions), list(positions.values())
    code = graph.add("LabelEncoder", name, domain=ML, keys_strings=keys, values_int64s=values, default_int64=of_unknown)
    every = graph.constant([range(len(encoder.category_features(name)))], np.int64)
    return graph.cast(graph.add("Equal", code, every), DOUBLE)


# --- estimators ---

_ACTIVATIONS = {"tanh": "Tanh", "logistic": "Sigmoid", "relu": "Relu", "identity": "Identity"}


def add_estimator(graph: Graph, model: Any, features: str) -> str:
    """Append the nodes of a fitted estimator; return the name of its distributions, doubles like the features.

    The class attribute ``_onnx`` of the estimator selects the function that does it.
    """
    add = _WRITERS.get(getattr(type(model), "_onnx", ""))
    if add is None:
        raise not_expressible(
            f"The estimator {type(model).__name__}",
            f"supported are {names_with('ONNX')}, and pools of these. Fit one: skldl fit --model sa-bfgs-cv",
        )
    return add(graph, model, features)


def _linear(graph: Graph, model: Any, features: str) -> str:
    weights = softmax_weights(model)
    assert weights is not None
    scores = graph.add("MatMul", features, graph.constant(weights[0]))
    return graph.add("Softmax", graph.add("Add", scores, graph.constant(weights[1])), axis=1)


def _mean(graph: Graph, model: Any, features: str) -> str:
    # zero times the features plus the distribution: ONNX has no simpler way to repeat a row for each row of an input
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
    degrees = graph.add("Div", votes, graph.constant(float(len(model.trees_))))
    if model.sharpness_ != 1.0:
        degrees = graph.normalized(graph.add("Pow", degrees, graph.constant(model.sharpness_)))
    own = graph.add("Mul", degrees, graph.constant(1.0 - model.mean_share_))
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
        degrees = graph.add("Softmax", scores, axis=1)
        total = graph.add("Add", total, degrees) if total else degrees
    order = graph.constant(np.argsort(model.label_order_), np.int64)
    return graph.add("Div", graph.add("Gather", total, order, axis=1), graph.constant(float(len(model.bases_))))


def _averaging_regressor(graph: Graph, model: Any, features: str) -> str:
    """A forest of scikit-learn: its trees average rows of D, so that no projection to the simplex is needed."""
    regressor = model.regressor_
    if not isinstance(regressor, RandomForestRegressor | ExtraTreesRegressor):
        raise not_expressible(
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
        degrees = add_estimator(graph, member, features)
        own = graph.add("Mul", degrees, graph.constant(1.0 - mean_share))
        degrees = graph.add("Add", own, graph.constant(mean_share * model.mean_distribution_))
        if model.pool_kind_ != "linear":
            degrees = graph.add("Log", graph.add("Max", degrees, graph.constant(MIN_DEGREE)))
        degrees = graph.add("Mul", degrees, graph.constant(weight))
        total = graph.add("Add", total, degrees) if total else degrees
    if not total:
        raise not_expressible(f"The estimator {type(model).__name__}", "none of its members has any weight")
    if model.pool_kind_ == "linear":
        return total
    return graph.add("Softmax", graph.add("Add", total, graph.constant(model.offset_)), axis=1)


def _structured_forest(graph: Graph, model: Any, features: str) -> str:
    """`StructRF`: the mean of the predictions of its trees."""
    every = np.arange(model.n_labels_)
    total = _newton_sum(graph, [(tree, every) for tree in model.trees_], features, model.n_labels_)
    return graph.add("Div", total, graph.constant(float(len(model.trees_))))


def _logit_boosting(graph: Graph, model: Any, features: str) -> str:
    """`LDLogitBoost`: softmax of the initial scores plus the sum over its trees.

    The model centres the scores in each round; here this is done once, since centring is linear.
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
    """`LDLF`: the mean over trees of their leaves, weighted by the probabilities of the paths that lead to them."""
    one = graph.constant(1.0)
    total = ""
    for W, b, Q in zip(model.coefs_, model.intercepts_, model.leaves_, strict=True):
        scores = graph.add("Add", graph.add("MatMul", features, graph.constant(W)), graph.constant(b))
        decisions = graph.add("Sigmoid", scores)
        paths = ""
        width = 1
        while width < len(Q):
            nodes = graph.constant(np.arange(width - 1, 2 * width - 1), np.int64)
            left = graph.add("Gather", decisions, nodes, axis=1)
            sides = [left, graph.add("Sub", one, left)]
            if paths:
                sides = [graph.add("Mul", paths, side) for side in sides]
            last = graph.constant([2], np.int64)
            pairs = graph.add("Concat", *(graph.add("Unsqueeze", side, last) for side in sides), axis=2)
            width *= 2
            paths = graph.add("Reshape", pairs, graph.constant([0, width], np.int64))
        degrees = graph.add("MatMul", paths, graph.constant(Q))
        total = graph.add("Add", total, degrees) if total else degrees
    return graph.add("Div", total, graph.constant(float(len(model.leaves_))))


def _tree_sum(graph: Graph, trees: FlatTrees, features: str, n_labels: int) -> str:
    """Sum over the trees of the values of their leaves; if these are single numbers, trees take the labels in turn."""
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
    """Round thresholds down to single precision.

    For a feature x of single precision, x ≤ t holds if and only if x is at most the largest number of single precision
    that is not above t; rounding to the nearest number could send rows to the other side.
    """
    with np.errstate(over="ignore"):
        single = threshold.astype(np.float32)
    above = single.astype(np.float64) > threshold
    return np.where(above, np.nextafter(single, np.float32(-np.inf)), single)


def _newton_sum(graph: Graph, trees: list[tuple[NewtonTree, IntArray]], features: str, n_labels: int) -> str:
    """Sum over trees in double precision; each comes with the labels to which the values of its leaves belong."""
    sizes = np.array([len(tree.feature) for tree, _ in trees])
    number = np.repeat(np.arange(len(trees)), sizes)
    node = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    feature, threshold, left, right = (
        np.concatenate([getattr(tree, name) for tree, _ in trees]) for name in ("feature", "threshold", "left", "right")
    )
    is_leaf = feature < 0
    labels = [targets for tree, targets in trees for feature in tree.feature if feature < 0]
    weights = [
        value for tree, _ in trees for feature, value in zip(tree.feature, tree.value, strict=True) if feature < 0
    ]
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
"""Functions that append the nodes of an estimator, by the class attribute ``_onnx`` of its class."""
