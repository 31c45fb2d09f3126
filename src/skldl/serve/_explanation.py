"""Why the service predicts one row as it does: contributions, neighbours, nearest rows of the training table."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.metrics import pairwise_distances

from skldl.serve._frames import frame_of_records
from skldl.tabular import explain_row
from skldl.tabular._explain_row import CONTRIBUTIONS, NEIGHBOURS, REPLACEMENT, replacement_effects
from skldl.tabular._interval_columns import LEVEL

if TYPE_CHECKING:
    from skldl.serve._model import ServedModel

MOST_FEATURES_SHOWN = 30
NEAREST_ROWS = 5
_MEANINGS = {
    CONTRIBUTIONS: "What each feature adds to the logarithm of each degree",
    REPLACEMENT: "What each column adds to each degree, compared with its typical value in the training table",
}


def explain(model: "ServedModel", record: Any) -> dict[str, Any]:
    """Explain one row; see `ServedModel.explain`."""
    frame = frame_of_records([record], model.columns)
    answer = model.with_intervals(model.predict_records([record]), LEVEL)
    explained = explain_row(model.pipeline, frame, 0, typical=model.typical)
    how, effects = explained.how, explained.table
    result: dict[str, Any] = {"prediction": {name: cells[0] for name, cells in answer.columns.items()}}
    if how == NEIGHBOURS:
        result["neighbours"] = effects.to_dict("records")
        how, effects = REPLACEMENT, replacement_effects(model.pipeline, frame, explained.prediction, model.typical)
    shown = effects.head(MOST_FEATURES_SHOWN)
    result["how"], result["meaning"] = how, _MEANINGS[how]
    result["features"] = [
        {"feature": str(name), "effects": dict(zip(model.labels, map(float, row), strict=True))}
        for name, row in zip(shown.index, shown.to_numpy(), strict=True)
    ]
    if model._kept_rows is not None:
        result["nearest"] = _nearest(model, frame)
    return result


def training_rows(model: "ServedModel") -> tuple[pd.DataFrame | None, Any]:
    """The rows that the model keeps, and their features; None if it keeps none."""
    kept = model.description.get("kept_rows")
    if not kept:
        return None, None
    rows = pd.DataFrame(kept["rows"], columns=[*model.columns, *(f"label {name}" for name in model.labels)])
    return rows, model.encoder.transform(rows[model.columns])


def _nearest(model: "ServedModel", frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of the training table whose features are nearest by Euclidean distance, the nearest first."""
    assert model._kept_rows is not None
    encoded, known = model.encoder.transform(frame), model._kept_features
    if sparse.issparse(encoded) != sparse.issparse(known):
        encoded, known = (part.toarray() if sparse.issparse(part) else part for part in (encoded, known))
    distances = pairwise_distances(encoded, known)[0]
    order = np.argsort(distances, kind="stable")[:NEAREST_ROWS]
    rows = model._kept_rows.iloc[order]
    features = rows[model.columns].astype(object).where(rows[model.columns].notna(), None).to_dict("records")
    shares = rows.iloc[:, len(model.columns) :].to_numpy(dtype=np.float64).tolist()
    return [
        {"distance": float(distances[at]), "row": row, "labels": dict(zip(model.labels, share, strict=True))}
        for at, row, share in zip(order, features, shares, strict=True)
    ]
