"""Columns with the uncertainty of predictions: ``low_<label>``, ``high_<label>`` and ``radius``."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from skldl.exceptions import DataError, Message, Parameter
from skldl.tabular._prediction import _free_name
from skldl.uncertainty._intervals import Intervals
from skldl.utils.parameters import number
from skldl.utils.typing import FloatArray

LEVEL = 0.9
"""Probability of coverage, unless another is asked for."""
COVERS = ("given", "true")


def intervals_of(model: Any, level: float, covers: str = "given") -> Intervals:
    """The calibration that a model keeps; one error if it keeps none, or the level, a probability of coverage, is none.

    ``covers`` says what the intervals are for: distributions like those in the training table ("given"), which are
    shares of as many votes if it holds votes, or the true distributions behind the votes ("true").
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
            "The model does not know the votes behind its calibration rows, so its intervals cannot be "
            "for the true distribution. Leave out ",
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
    """Add intervals to a table of predictions that `predict_table` gave.

    They are ``low_<label>`` and ``high_<label>``, between which all degrees are jointly with the probability ``level``,
    and ``radius``, the total variation distance from the prediction that is not exceeded with that probability. An
    underscore is added to a name that is taken.
    """
    columns = interval_columns(table[list(labels)].to_numpy(), intervals, labels, set(table.columns), level)
    return pd.concat([table, pd.DataFrame(columns, index=table.index)], axis=1)


def interval_columns(
    D: FloatArray, intervals: Intervals, labels: Sequence[str], taken: set[str], level: float
) -> dict[str, FloatArray]:
    """The columns that `with_intervals` adds, by name, where there is no DataFrame; ``taken`` are existing names."""
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
    """Say that there are too few calibration rows for a level, if there are."""
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
