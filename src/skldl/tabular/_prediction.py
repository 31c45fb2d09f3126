"""Predictions as a table: one column for each label, and columns that summarise the row."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skldl.data._cells import as_frame
from skldl.exceptions import Parameter, TableError
from skldl.utils.column_names import no_column
from skldl.utils.simplex import entropy


def predict_table(
    model: Any,
    table: Any,
    *,
    labels: Sequence[str],
    values: Sequence[float] | None = None,
    keep: Iterable[str] = (),
) -> pd.DataFrame:
    """Predict for each row of a table.

    Parameters
    ----------
    model : fitted pipeline
        Its ``predict`` takes the table.
    table : DataFrame
        The rows; a table without rows gives a result without rows.
    labels : sequence of str
        Names of the labels.
    values : sequence of float, default=None
        Numbers that ordered labels represent.
    keep : iterable of str, default=()
        Columns of the table to copy to the front of the result.

    Returns
    -------
    DataFrame
        The kept columns; the predicted degree of each label, under the label's name; ``top``, the label with the
        highest degree; ``entropy``, in nats; and, if there are values, ``expected``, their mean under the distribution.
        Where a label or kept column has one of these three names, an underscore is added: ``top_``.

    Examples
    --------
    >>> import pandas as pd
    >>> import skldl
    >>> model = skldl.MeanDistribution().fit(pd.DataFrame({"x": [0.0, 1.0]}), [[0.25, 0.75]] * 2)
    >>> predict_table(model, pd.DataFrame({"x": [5.0]}), labels=["1", "2"], values=[1, 2]).round(3)
          1     2 top  entropy  expected
    0  0.25  0.75   2    0.562      1.75
    """
    frame = as_frame(table)
    kept = frame[checked_keep(keep, frame.columns, labels)]
    D = np.asarray(model.predict(frame)) if len(frame) else np.empty((0, len(labels)))
    columns: list[Any] = [np.asarray(labels, dtype=object)[D.argmax(axis=1)] if len(D) else []]
    columns.append(entropy(D) if len(D) else [])
    if values is not None:
        columns.append(D @ np.asarray(values, dtype=np.float64))
    names = answer_names(labels, values is not None, kept.columns)
    summary = pd.DataFrame(dict(zip(names[len(labels) :], columns, strict=True)), index=frame.index)
    degrees = pd.DataFrame(D, index=frame.index, columns=list(labels))
    return pd.concat([kept, degrees, summary], axis=1)


def answer_names(labels: Sequence[str], has_values: bool, kept: Iterable[str] = ()) -> list[str]:
    """Return the names of the predicted columns, which differ from those of the kept ones."""
    taken = {*labels, *kept}
    return [*labels, *(_free_name(name, taken) for name in ("top", "entropy", "expected")[: 2 + has_values])]


def checked_keep(keep: Iterable[str], columns: Iterable[str], labels: Iterable[str]) -> list[str]:
    """The columns to copy, each once; one that is missing or has the name of a label is an error."""
    names, present = list(dict.fromkeys(keep)), list(columns)
    for name in names:
        if name not in present:
            raise no_column("keep", name, present)
        if name in set(labels):
            raise TableError(
                Parameter("keep", name), ": a label has this name too, and its column holds the prediction."
            )
    return names


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
