"""`skldl.tabular.TableEncoder` as ONNX nodes: numbers, truth values and categories.

Each column of the table is an input of shape (rows, 1): doubles for numbers and truth values, with NaN for a missing
cell, and text for categories, with ``(missing)`` for a missing cell.
"""

from typing import Any

import numpy as np
from onnx import helper

from skldl.data._cells import CATEGORY, DATE, TEXT
from skldl.export._graph import DOUBLE, ML, Graph, refuse
from skldl.tabular import TableEncoder
from skldl.tabular._known_categories import known_categories

_WHY = {
    TEXT: "its n-grams depend on a tokeniser that ONNX does not have",
    DATE: "ONNX has no calendar. Turn it into numbers before skldl fit",
}


def inputs_of(encoder: TableEncoder) -> list[Any]:
    """Descriptions of the inputs of the graph, one for each column of the training table."""
    text = helper.np_dtype_to_tensor_dtype(np.dtype(object))
    return [
        helper.make_tensor_value_info(str(name), text if kind == CATEGORY else DOUBLE, ["rows", 1])
        for name, kind in encoder.kinds_.items()
    ]


def add_encoder(graph: Graph, encoder: TableEncoder) -> str:
    """Append the nodes of a fitted encoder; return the name of the features, doubles of shape (rows, n_features)."""
    for name, kind in encoder.kinds_.items():
        if kind in _WHY:
            raise refuse(f"The {kind} column {name!r}", _WHY[kind])
    parts = []
    for label, step, columns in encoder.encoder_.transformers_:
        if label == "numbers":
            parts.append(_numbers(graph, step, list(columns)))
        elif label == "categories":
            parts += _categories(graph, encoder)
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _numbers(graph: Graph, step: Any, columns: list[str]) -> str:
    """Medians for missing cells, indicators of them, and standardisation."""
    imputer, scaler = step[0], step[1]
    cells = columns[0] if len(columns) == 1 else graph.add("Concat", *columns, axis=1)
    missing = graph.add("IsNaN", cells)
    medians = np.asarray(imputer.statistics_, dtype=np.float64)
    features = graph.add("Where", missing, graph.constant([np.where(np.isnan(medians), 0.0, medians)]), cells)
    if len(imputer.indicator_.features_):
        places = graph.constant(imputer.indicator_.features_, np.int64)
        shown = graph.cast(graph.add("Gather", missing, places, axis=1), DOUBLE)
        features = graph.add("Concat", features, shown, axis=1)
    centred = graph.add("Sub", features, graph.constant([scaler.mean_]))
    return graph.add("Div", centred, graph.constant([scaler.scale_]))


def _categories(graph: Graph, encoder: TableEncoder) -> list[str]:
    """One feature for each category; rare ones share one, and an unknown one counts as rare or as none of them."""
    parts = []
    for column, known in known_categories(encoder.encoder_).items():
        code = graph.add(
            "LabelEncoder",
            column,
            domain=ML,
            keys_strings=list(known.places),
            values_int64s=list(known.places.values()),
            default_int64=known.place_of_unknown,
        )
        every = graph.constant([range(len(known.features))], np.int64)
        parts.append(graph.cast(graph.add("Equal", code, every), DOUBLE))
    return parts
