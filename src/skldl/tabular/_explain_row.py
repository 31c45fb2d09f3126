"""Explanation of the prediction of one row: by weights, by neighbours, or by replacing a cell with a typical value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from skldl.data._cells import NUMBER, as_frame, as_numbers, as_words, with_columns
from skldl.data._kinds import kind_of
from skldl.exceptions import TableError
from skldl.tabular._explain import centred_weights, columns_used, feature_names, heaviest_first, label_names, last_step

CONTRIBUTIONS, NEIGHBOURS, REPLACEMENT = "contributions", "neighbours", "replacement"


@dataclass(frozen=True)
class RowExplanation:
    """Explanation of the prediction of one row.

    Attributes
    ----------
    prediction : Series
        The predicted distribution.
    how : {"contributions", "neighbours", "replacement"}
        What the table holds.
    table : DataFrame
        Contributions: for each feature its weight times its value, centred over labels; with the row ``(intercept)``
        they add up to the logarithms of the degrees, up to a constant. Neighbours: rows of the training table, their
        distances, and their distributions. Replacement: for each column, the degree of each label less what it would be
        if the column had its typical value.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import explain_row, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> explanation = explain_row(fit_table(table, ["no", "yes"], model="sa-bfgs").model, table, 0)
    >>> explanation.how, list(explanation.prediction.index)
    ('contributions', ['no', 'yes'])
    """

    prediction: pd.Series
    how: str
    table: pd.DataFrame


def explain_row(model: Any, table: Any, row: int, *, typical: Mapping[str, Any] | None = None) -> RowExplanation:
    """Explain the prediction of one row.

    Parameters
    ----------
    model : fitted pipeline
        Any model.
    table : DataFrame
        The table that holds the row.
    row : int
        Position of the row, from 0.
    typical : mapping, default=None
        Typical values by the name of the column; by default those of this table (median, most frequent).

    Returns
    -------
    RowExplanation
        The prediction and what made it: contributions for a maximum entropy model, neighbours for a model that has
        some, replacement for any other.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import explain_row, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> explanation = explain_row(fit_table(table, ["no", "yes"], model="sa-bfgs").model, table, 0)
    >>> "(intercept)" in explanation.table.index
    True
    """
    frame = as_frame(table)
    if not 0 <= row < len(frame):
        raise TableError(f"There is no row {row + 1}: the table has {len(frame)} rows.")
    one = frame.iloc[[row]]
    step = last_step(model)
    labels = label_names(model)
    prediction = pd.Series(np.asarray(model.predict(one))[0], index=labels)
    if hasattr(step, "coef_"):
        return RowExplanation(prediction, CONTRIBUTIONS, _contributions(model, one))
    if hasattr(step, "kneighbors"):
        distances, rows = step.kneighbors(_encoded(model, one))
        neighbours = pd.DataFrame({"training row": np.asarray(rows)[0] + 1, "distance": np.asarray(distances)[0]})
        known = pd.DataFrame(step.distributions_[np.asarray(rows)[0]], columns=labels)
        return RowExplanation(prediction, NEIGHBOURS, pd.concat([neighbours, known], axis=1))
    if typical is None:
        kinds = _kinds(model, frame)
        typical = {name: _typical(frame[name], kinds[name]) for name in columns_used(model, frame)}
    return RowExplanation(prediction, REPLACEMENT, replacement_effects(model, one, prediction, typical))


def _contributions(model: Any, one: pd.DataFrame) -> pd.DataFrame:
    step = last_step(model)
    features = _encoded(model, one)
    values = np.asarray(features.toarray() if hasattr(features, "toarray") else features, dtype=np.float64)[0]
    labels = label_names(model)
    table = pd.DataFrame(values[:, None] * centred_weights(step), index=feature_names(model), columns=labels)
    intercept = np.asarray(getattr(step, "intercept_", np.zeros(len(labels))), dtype=np.float64)
    start = pd.DataFrame([intercept - intercept.mean()], index=["(intercept)"], columns=labels)
    return pd.concat([start, heaviest_first(table[(table != 0).any(axis=1)])])


def replacement_effects(
    model: Any, one: pd.DataFrame, prediction: pd.Series, typical: Mapping[str, Any]
) -> pd.DataFrame:
    """What each column of one row adds to each degree, compared with its typical value; the largest effects first.

    ``prediction`` is that of the row; a typical value of None is a missing cell.
    """
    names = columns_used(model, one)
    variants = pd.concat([with_columns(one, {name: typical[name]}).astype(object) for name in names])
    table = prediction.to_numpy() - np.asarray(model.predict(variants))
    return heaviest_first(pd.DataFrame(table, index=names, columns=list(prediction.index)))


def _encoded(model: Any, table: pd.DataFrame) -> Any:
    return model[:-1].transform(table) if isinstance(model, Pipeline) and len(model.steps) > 1 else table


def _kinds(model: Any, table: pd.DataFrame) -> dict[str, str]:
    """Kind of each column for the model; without an encoder, the kind that the column seems to have."""
    encoder = model.steps[0][1] if isinstance(model, Pipeline) else None
    return getattr(encoder, "kinds_", None) or {name: kind_of(table[name]) for name in columns_used(model, table)}


def _typical(column: pd.Series, kind: str) -> Any:
    """The median of numbers, whether typed or written; else the most frequent value."""
    present = column.dropna()
    if not len(present):
        return None
    if kind == NUMBER:
        return float(as_numbers(present).median())
    if pd.api.types.is_datetime64_any_dtype(column):
        return present.mode().iloc[0]
    return as_words(present, "").mode().iloc[0]
