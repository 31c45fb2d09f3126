"""Names of columns: those of labels and features, and the treatment of tables whose columns are in another order."""

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from skldl.exceptions import DuplicateLabelError, FeatureMismatchError, LabelMismatchError


def column_names(table: Any) -> list[Any]:
    """Names of a DataFrame's columns (pandas or polars), or an empty list for anything else."""
    columns = getattr(table, "columns", None)
    if columns is None or not hasattr(table, "shape") or isinstance(table, np.ndarray):
        return []
    return list(columns)


def matching_columns(pattern: str, columns: Collection[str]) -> list[str]:
    """Columns that a text stands for: their name, a pattern such as ``emo_*``, or what two or more names begin with.

    Examples
    --------
    >>> [matching_columns(text, ["emo_a", "emo_b", "age"]) for text in ("age", "*a*", "emo_", "emo_c")]
    [['age'], ['emo_a', 'age'], ['emo_a', 'emo_b'], []]
    """
    if pattern in columns:
        return [pattern]
    matches = [name for name in columns if fnmatchcase(name, pattern)]
    if not matches and pattern and not re.search(r"[*?\[]", pattern):
        begin = [name for name in columns if name.startswith(pattern)]
        matches = begin if len(begin) > 1 else []
    return matches


def label_names(D: Any, n_labels: int) -> npt.NDArray[np.object_]:
    """Names of the labels: the columns of a DataFrame, all different, else label_0, label_1, …."""
    names = column_names(D)
    seen: dict[str, int] = {}
    for position, name in enumerate(names):
        if str(name) in seen:
            raise DuplicateLabelError(
                f"The label name {str(name)!r} is used for columns {seen[str(name)]} and {position}. "
                "Rename one of them, or add them up if they mean the same."
            )
        seen[str(name)] = position
    if len(names) != n_labels:
        names = [f"label_{j}" for j in range(n_labels)]
    return np.array([str(name) for name in names], dtype=object)


def order_of_labels(expected: list[Any], found: list[Any], *, name: str) -> npt.NDArray[np.intp] | None:
    """Order of the columns ``found`` that matches ``expected``; None if they match already.

    Tables without names, such as arrays and DataFrames whose columns are 0, 1, 2, …, are compared by position. It is an
    error if both have names and the names differ.
    """
    if not expected or not found or expected == found:
        return None
    place = {str(label): position for position, label in enumerate(found)}
    lacking = [str(label) for label in expected if str(label) not in place]
    if not lacking:
        order = np.array([place[str(label)] for label in expected], dtype=np.intp)
        return None if np.array_equal(order, np.arange(len(order))) else order
    nameless = list(range(len(expected)))
    if expected == nameless or found == nameless:
        return None
    wanted = {str(label) for label in expected}
    further = next((label for label in place if label not in wanted), None)
    instead = "" if further is None else f"; it has {further!r} instead"
    raise LabelMismatchError(
        f"There should be a label {lacking[0]!r}, but {name} has no such column{instead}. Rename the columns, or pass "
        f"{name} as an array if the columns mean the same in the same order."
    )


def check_integer_columns(estimator: BaseEstimator, columns: list[Any], *, reset: bool) -> None:
    """Treat column names that are whole numbers as scikit-learn treats names that are text."""
    are_integers = bool(columns) and all(isinstance(name, int | np.integer) for name in columns)
    found = [int(name) for name in columns] if are_integers else None
    if reset:
        estimator.__dict__.pop("_integer_columns", None)
        if found is not None:
            estimator._integer_columns = found
        return
    known = getattr(estimator, "_integer_columns", None)
    if known is None or found is None or known == found or found == list(range(len(found))) != sorted(known):
        return
    what = "in another order than" if sorted(known) == sorted(found) else "with other names than"
    raise FeatureMismatchError(
        f"X has its columns {what} in fit: {_shortened(found)} instead of {_shortened(known)}.\n"
        "Pass the columns that fit saw, in the same order, or X.to_numpy() if their names mean nothing."
    )


def _shortened(names: list[int]) -> str:
    return ", ".join(str(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
