"""Names of columns: columns found by names and patterns, label names, and tables whose columns are in another order."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from skldl.exceptions import (
    DuplicateLabelError,
    FeatureMismatchError,
    LabelMismatchError,
    Parameter,
    TableError,
)

Names = str | Sequence[str] | None
UNNAMED = "Unnamed: 0"
"""Name of the first column where a file has none: R and pandas write row labels under an empty heading."""


def column_names(table: Any) -> list[Any]:
    """Names of a table's columns (pandas, polars, pyarrow), or an empty list for anything else."""
    if type(table).__module__.startswith("pyarrow") and hasattr(table, "column_names"):
        return list(table.column_names)  # its attribute `columns` holds the data
    if isinstance(table, np.ndarray) or not hasattr(table, "shape"):
        return []
    columns = getattr(table, "columns", None)
    return [] if columns is None else list(columns)


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


def find_columns(patterns: str | Sequence[str], columns: Iterable[str], role: str) -> list[str]:
    """Find columns by names, patterns and beginnings.

    Parameters
    ----------
    patterns : str or sequence of str
        Each is the name of a column; else a pattern in which ``*`` stands for any text and ``?`` for any character;
        else what the names of two or more columns begin with.
    columns : iterable of str
        The columns of the table.
    role : str
        The parameter that the message names.

    Returns
    -------
    list of str
        The columns, each once, in the order of the patterns and then of the table.

    Examples
    --------
    >>> find_columns(["c", "a*"], ["a2", "a1", "b", "c"], "labels")
    ['c', 'a2', 'a1']
    >>> find_columns("emo_", ["emo_joy", "emo_fear", "age"], "labels")
    ['emo_joy', 'emo_fear']
    """
    present = dict.fromkeys(columns)
    found: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matches = matching_columns(pattern, present)
        if not matches and pattern == "" and UNNAMED in present:
            matches = [UNNAMED]
        if not matches:
            raise no_column(role, pattern, present)
        found |= dict.fromkeys(matches)
    return list(found)


@dataclass(frozen=True)
class Columns:
    """Names of the columns of labels and of features, and of the one of weights."""

    labels: tuple[str, ...]
    features: tuple[str, ...]
    weight: str | None


def assign_columns(names: Sequence[str], labels: Names, features: Names, weight: str | None, *, place: str) -> Columns:
    """Find the columns of labels, of features (by default all others) and of weights by names and patterns.

    Errors begin with ``place``, the name of the table.

    Examples
    --------
    >>> assign_columns(["age", "r_a", "r_b"], "r_*", None, None, place="a table")
    Columns(labels=('r_a', 'r_b'), features=('age',), weight=None)
    """
    try:
        if len(set(names)) < len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise TableError(f"two columns are named {twice!r}. Rename one of them.")
        if weight is not None and weight not in names:
            raise no_column("weight", weight, names)
        of_labels = tuple(find_columns(labels or (), names, "labels"))
        used = {*of_labels, weight}
        if features is None:
            of_features = tuple(name for name in names if name not in used)
        else:
            of_features = tuple(find_columns(features, names, "features"))
            if both := [name for name in of_features if name in used]:
                raise TableError(f"column {both[0]!r} is named as a feature and as a label or weight.")
        if not of_features:
            raise TableError(f"no column is left for features. It has {list_names(names)}.")
    except TableError as error:
        raise TableError(f"{place}: ", *error.parts) from error
    return Columns(of_labels, of_features, weight)


def list_names(names: Iterable[Any]) -> str:
    """Write names for a message: the first eight, and how many more there are.

    Examples
    --------
    >>> list_names(["a", "b"])
    "'a', 'b'"
    """
    quoted = [repr(str(name)) for name in names]
    return ", ".join(quoted[:8]) + (f" and {len(quoted) - 8} more" if len(quoted) > 8 else "")


def no_column(role: str, name: str, columns: Iterable[Any]) -> TableError:
    """The error for a column that is named and does not exist."""
    return TableError(Parameter(role, name), f": the table has no such column. It has {list_names(columns)}.")


def check_columns(needed: Iterable[str], columns: Iterable[str]) -> None:
    """Raise an error unless a table has all columns that a model needs; further ones do not matter.

    Examples
    --------
    >>> check_columns(["age"], ["Age"])
    Traceback (most recent call last):
        ...
    skldl.exceptions.TableError: The table lacks the column 'age', which the model was trained with. It has 'Age'.
    """
    present = dict.fromkeys(columns)
    lacking = [name for name in needed if name not in present]
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise TableError(
            f"The table lacks the column {lacking[0]!r}{more}, which the model was trained with. "
            f"It has {list_names(present) or 'no column'}.",
            column=lacking[0],
        )


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


def given_names(names: Iterable[Any]) -> list[Any]:
    """Names of labels as a list, empty if they are label_0, label_1, …, which stand for labels without names."""
    found = list(names)
    return [] if found == [f"label_{j}" for j in range(len(found))] else found


def order_of_labels(expected: list[Any], found: list[Any], *, name: str) -> npt.NDArray[np.intp] | None:
    """Order of the columns ``found`` that matches ``expected``; None if they match already.

    Tables without names, such as arrays and DataFrames whose columns are 0, 1, 2, …, are compared by position. It is an
    error if both have names and the names differ.
    """
    if not expected or not found or expected == found:
        return None
    positions = {str(label): position for position, label in enumerate(found)}
    lacking = [str(label) for label in expected if str(label) not in positions]
    if not lacking:
        order = np.array([positions[str(label)] for label in expected], dtype=np.intp)
        return None if np.array_equal(order, np.arange(len(order))) else order
    nameless = list(range(len(expected)))
    if expected == nameless or found == nameless:
        return None
    wanted = {str(label) for label in expected}
    further = next((label for label in positions if label not in wanted), None)
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
    # 0, 1, 2, … are the names that pandas makes itself: they name nothing, unless fit saw them in another order
    if known is None or found is None or known == found or found == list(range(len(found))) != sorted(known):
        return
    what = "in another order than" if sorted(known) == sorted(found) else "with other names than"
    raise FeatureMismatchError(
        f"X has its columns {what} in fit: {_shortened(found)} instead of {_shortened(known)}.\n"
        "Pass the columns that fit saw, in the same order, or X.to_numpy() if their names mean nothing."
    )


def _shortened(names: list[int]) -> str:
    return ", ".join(str(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
