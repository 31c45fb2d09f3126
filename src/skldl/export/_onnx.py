"""`to_onnx`: a pipeline of encoder and estimator as an ONNX graph, checked against the original in onnxruntime."""

import os
from typing import Any

import numpy as np
import onnx
import pandas as pd
from onnx import helper

import skldl
from skldl.data._cells import BOOLEAN, CATEGORY, DATE, TEXT
from skldl.exceptions import DataError
from skldl.export._estimators import add_estimator
from skldl.export._graph import DOUBLE, ML, Graph, refuse
from skldl.tabular import TableEncoder
from skldl.tabular._encoder_fit import MISSING_CATEGORY
from skldl.utils.files import whole_file

OPSETS = {"": 18, ML: 3}
IR_VERSION = 9
TOLERANCE = 1e-5
N_CHECKED = 200
OUTPUT = "distribution"


def to_onnx(pipeline: Any, path: str | os.PathLike[str], *, check: pd.DataFrame | None = None) -> float:
    """Write a model as an ONNX graph, if it gives the same predictions there.

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
        That names the part that cannot be expressed, or how far the predictions differ.

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
        raise refuse("A pipeline with further steps", "only encoder and estimator of skldl fit are")
    model = _graph(encoder, pipeline.steps[-1][1])
    rows = _rows(encoder) if check is None else check
    difference = _difference(model, pipeline, encoder, rows)
    if not difference <= TOLERANCE:
        raise DataError(
            f"The graph differs from the model by {difference:.2g} in a degree, more than {TOLERANCE:g}: nothing was "
            "written. The model file itself works in skldl serve and skldl.load."
        )
    with whole_file(path) as stream:
        stream.write(model.SerializeToString())
    return difference


def _graph(encoder: TableEncoder, estimator: Any) -> Any:
    if OUTPUT in encoder.kinds_:
        raise refuse(f"The column {OUTPUT!r}", "the output of the graph has this name. Rename the column")
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


_NO_NODES = {
    TEXT: "its n-grams depend on a tokeniser that ONNX does not have",
    DATE: "ONNX has no calendar. Turn it into numbers before skldl fit",
}


def _inputs(encoder: TableEncoder) -> list[Any]:
    """Descriptions of the inputs of the graph, one for each column of the training table.

    Each has the shape (rows, 1): doubles for numbers and truth values, with NaN for a missing cell, and text for
    categories, with ``(missing)`` for a missing cell.
    """
    text = helper.np_dtype_to_tensor_dtype(np.dtype(object))
    return [
        helper.make_tensor_value_info(str(name), text if kind == CATEGORY else DOUBLE, ["rows", 1])
        for name, kind in encoder.kinds_.items()
    ]


def _add_encoder(graph: Graph, encoder: TableEncoder) -> str:
    """Append the nodes of a fitted encoder; return the name of the features, doubles of shape (rows, n_features)."""
    for name, kind in encoder.kinds_.items():
        if kind in _NO_NODES:
            raise refuse(f"The {kind} column {name!r}", _NO_NODES[kind])
    parts = [_add_numbers(graph, encoder)] if encoder.numbers_ else []
    parts += [_add_categories(graph, encoder, name) for name in encoder.categories_]
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _add_numbers(graph: Graph, encoder: TableEncoder) -> str:
    """Medians for missing cells, indicators of them, and standardisation."""
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
    """One feature for each category; rare ones share one, and an unknown one counts as rare or has none."""
    positions, of_unknown = encoder.category_positions(name)
    keys, values = list(positions), list(positions.values())
    code = graph.add("LabelEncoder", name, domain=ML, keys_strings=keys, values_int64s=values, default_int64=of_unknown)
    every = graph.constant([range(len(encoder.category_features(name)))], np.int64)
    return graph.cast(graph.add("Equal", code, every), DOUBLE)


def feeds_of(encoder: TableEncoder, table: pd.DataFrame) -> dict[str, Any]:
    """The inputs of a graph for the rows of a table: an array of shape (n_rows, 1) for each column."""
    return {name: cells[:, np.newaxis] for name, cells in encoder.typed_cells(table).items()}


def _difference(model: Any, pipeline: Any, encoder: TableEncoder, rows: pd.DataFrame) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (predicted,) = session.run([OUTPUT], feeds_of(encoder, rows))
    return float(np.abs(predicted - np.asarray(pipeline.predict(rows))).max())


def _rows(encoder: TableEncoder) -> pd.DataFrame:
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
            least, most = encoder.ranges_.get(name, (0.0, 1.0))
            width = most - least
            column = generator.uniform(least - 0.5 * width, most + 0.5 * width, N_CHECKED).astype(object)
        column[generator.random(N_CHECKED) < 0.05] = None
        cells[name] = column
    return pd.DataFrame(cells)
