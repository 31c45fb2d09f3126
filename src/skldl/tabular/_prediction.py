"""Predictions as a table: a column for each label, columns that summarise the row, and columns of intervals."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skldl.data._cells import as_frame
from skldl.exceptions import DataError, Message, Parameter, TableError
from skldl.uncertainty._intervals import Intervals
from skldl.utils.column_names import no_column
from skldl.utils.parameters import number
from skldl.utils.simplex import entropy
from skldl.utils.typing import FloatArray

LEVEL = 0.9
"""Default probability of coverage."""
COVERS = ("given", "true")


def predict_table(
    model: Any,
    table: Any,
    *,
    labels: Sequence[str],
    values: Sequence[float] | None = None,
    keep: Iterable[str] = (),
) -> pd.DataFrame:
    """Predict the distribution for each row of a table.

    Parameters
    ----------
    model : fitted pipeline
        Its ``predict`` takes the table.
    table : DataFrame
        The rows; the result for a table without rows is empty.
    labels : sequence of str
        Names of the labels.
    values : sequence of float, default=None
        Numbers that ordered labels represent.
    keep : iterable of str, default=()
        Columns of the table that are copied to the result, before the predictions.

    Returns
    -------
    DataFrame
        The kept columns; the predicted degree of each label, under the label's name; ``top``, the label with the
        highest degree; ``entropy``, in nats; and, if there are values, ``expected``, their mean under the distribution.
        If a label or a kept column has one of these three names, an underscore is added: ``top_``.

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
    """Names of the predicted columns; underscores make them different from the names of kept columns."""
    taken = {*labels, *kept}
    return [*labels, *(_free_name(name, taken) for name in ("top", "entropy", "expected")[: 2 + has_values])]


def checked_keep(keep: Iterable[str], columns: Iterable[str], labels: Iterable[str]) -> list[str]:
    """The columns to copy, without duplicates; a missing column and the name of a label are errors."""
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


def intervals_of(model: Any, level: float, covers: str = "given") -> Intervals:
    """The calibrated intervals in a model; an error if there are none, or if ``level`` is not a probability.

    Intervals cover, for ``covers`` "given", distributions like those in the training table (for votes the fractions of
    as many votes), and for "true" the true distributions from which the votes are drawn.
    """
    if not number(above=0, below=1).accepts(level):
        raise DataError(
            Parameter("level", level), " must lie between 0 and 1: it is the probability of coverage, such as 0.9."
        )
    if covers not in COVERS:
        raise DataError(Parameter("covers", covers), f" is not one of {', '.join(COVERS)}.")
    found = getattr(model, "intervals_", None)
    if found is None:
        raise DataError(
            "The model keeps no calibration rows, so its predictions have no intervals. Make it again with "
            "skldl fit --intervals, in Python with fit_table(options=FitOptions(intervals=True))."
        )
    if covers == "given":
        return found
    true = getattr(model, "true_intervals_", None)
    if true is None:
        raise DataError(
            "The votes of the calibration rows are not known, so that the model has no intervals for the true "
            "distribution. Leave out ",
            Parameter("covers", "true"),
            ", or make the model again from votes, with ",
            Parameter("intervals", True),
            " and ",
            Parameter("kind", "counts"),
            " or ",
            Parameter("kind", "votes"),
            ".",
        )
    return true


def with_intervals(table: pd.DataFrame, intervals: Intervals, labels: Sequence[str], level: float) -> pd.DataFrame:
    """Add columns of intervals to a table of predictions from `predict_table`.

    With the probability ``level``, all degrees lie jointly between ``low_<label>`` and ``high_<label>``, and the total
    variation distance from the prediction is at most ``radius``. An underscore is added to a name that exists already.
    """
    columns = interval_columns(table[list(labels)].to_numpy(), intervals, labels, set(table.columns), level)
    return pd.concat([table, pd.DataFrame(columns, index=table.index)], axis=1)


def interval_columns(
    D: FloatArray, intervals: Intervals, labels: Sequence[str], taken: set[str], level: float
) -> dict[str, FloatArray]:
    """The columns that `with_intervals` adds, by name, for predictions in an array; ``taken`` are existing names."""
    lower, upper, radius = intervals.around(D, level)
    sides = (("low", lower), ("high", upper))
    wanted = [(f"{side}_{label}", ends[:, place]) for place, label in enumerate(labels) for side, ends in sides]
    columns: dict[str, FloatArray] = {}
    used = set(taken)
    for name, cells in (*wanted, ("radius", radius)):
        name = _free_name(name, used)
        used.add(name)
        columns[name] = cells
    return columns


def few_rows_note(intervals: Intervals, level: float) -> list[str]:
    """A note if there are too few calibration rows for a level."""
    if intervals.is_enough_for(level):
        return []
    by_row = intervals.groups_ is None or len(set(intervals.groups_.tolist())) == intervals.n_rows_
    unit = "rows" if by_row else "rows in groups"
    return [
        Message(
            f"{intervals.n_rows_} calibration {unit} are too few for the level {level:g}: every "
            "interval reaches from 0 to 1. Use a lower ",
            Parameter("level"),
            ", or train on more rows.",
        )
    ]
