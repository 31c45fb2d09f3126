"""`to_onnx`: a pipeline of encoder and estimator as an ONNX graph, checked against the original in onnxruntime."""

import os
from typing import Any

import numpy as np
import onnx
import pandas as pd
from onnx import helper

import skldl
from skldl.data._cells import BOOLEAN, CATEGORY
from skldl.exceptions import DataError
from skldl.export._encoder_nodes import add_encoder, inputs_of
from skldl.export._estimator_nodes import add_estimator
from skldl.export._graph import DOUBLE, ML, Graph, refuse
from skldl.tabular import TableEncoder
from skldl.tabular._encoder_steps import MISSING_CATEGORY, typed_columns
from skldl.tabular._known_categories import known_categories
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
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs", folds=2)
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
    result = graph.normalized(add_estimator(graph, estimator, add_encoder(graph, encoder)))
    graph.nodes.append(helper.make_node("Identity", [result], [OUTPUT], name=OUTPUT))
    labels = [str(name) for name in estimator.label_names_]
    output = helper.make_tensor_value_info(OUTPUT, DOUBLE, ["rows", len(labels)])
    whole = helper.make_graph(graph.nodes, "skldl", inputs_of(encoder), [output], graph.constants)
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
    """The inputs of a graph for the rows of a table: an array of shape (n_rows, 1) for each column."""
    typed = typed_columns(encoder, table)
    return {
        name: typed[name].to_numpy(dtype=object if kind == CATEGORY else np.float64)[:, None]
        for name, kind in encoder.kinds_.items()
    }


def _difference(model: Any, pipeline: Any, encoder: TableEncoder, rows: pd.DataFrame) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (predicted,) = session.run([OUTPUT], feeds_of(encoder, rows))
    return float(np.abs(predicted - np.asarray(pipeline.predict(rows))).max())


def _rows(encoder: TableEncoder) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    known = known_categories(encoder.encoder_)
    cells: dict[str, Any] = {}
    for name, kind in encoder.kinds_.items():
        if kind == CATEGORY:
            words = [word for word in known[name].every if word != MISSING_CATEGORY]
            column = generator.choice(np.array([*words, "\x00unknown"], dtype=object), N_CHECKED)
        elif kind == BOOLEAN:
            column = generator.choice([True, False], N_CHECKED).astype(object)
        else:
            least, most = getattr(encoder, "ranges_", {}).get(name, (0.0, 1.0))
            width = most - least
            column = generator.uniform(least - 0.5 * width, most + 0.5 * width, N_CHECKED).astype(object)
        column[generator.random(N_CHECKED) < 0.05] = None
        cells[name] = column
    return pd.DataFrame(cells)
