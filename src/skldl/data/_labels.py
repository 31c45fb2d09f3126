"""Label columns of a table as distributions, by the converters of `skldl.distributions`.

Votes come with one column for each rater, or with one row for each vote (`votes_in_columns`).
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from skldl.data._cells import as_words, cell_error, check_present, checked_numbers, first_of, row_of
from skldl.distributions import Votes, from_counts, from_labels, from_scores, from_votes
from skldl.exceptions import (
    DuplicateVoteError,
    MissingLabelError,
    NegativeDegreeError,
    NonFiniteError,
    Parameter,
    RowSumError,
    SingleLabelError,
    TableError,
    UnknownLabelError,
    ZeroRowError,
)
from skldl.utils.column_names import list_names, no_column
from skldl.utils.missing import check_partial_distributions
from skldl.utils.typing import AnyArray, BoolArray
from skldl.utils.validation import SUM_TOLERANCE, check_distributions

MAX_CELLS = 50_000_000
"""Items times raters: a larger table of answers would not fit into memory; chosen by hand."""
KINDS = ("distribution", "counts", "scores", "votes", "label")


def rows_with_labels(labels: pd.DataFrame) -> BoolArray:
    """Mark the rows with at least one label cell that is not empty."""
    return labels.notna().any(axis=1).to_numpy()


def read_labels(labels: pd.DataFrame, kind: str, *, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Turn label columns into distributions.

    Parameters
    ----------
    labels : DataFrame
        The label columns.
    kind : {"distribution", "counts", "scores", "votes", "label"}
        Content of the cells: fractions that sum to one; counts, one column for each label; intensities, one column for
        each label; the answers of annotators, one column for each of them; or, in a single column, the label of the
        row.
    names : sequence of str, default=None
        The labels, in the order of the result, such as those of a model. By default the columns; for votes and single
        labels, those that occur.

    Returns
    -------
    DataFrame
        One column for each label; rows sum to one. An empty cell in a row of fractions stays empty: it is a degree that
        was not observed, see `skldl.SABFGS`.

    Examples
    --------
    >>> import pandas as pd
    >>> votes = pd.DataFrame({"ann": ["joy", "joy"], "bob": ["joy", "fear"]})
    >>> read_labels(votes, "votes").to_dict("list")
    {'fear': [0.0, 0.5], 'joy': [1.0, 0.5]}
    """
    if kind not in KINDS:
        raise TableError(Parameter("kind", kind), f" is not known. The kinds are {', '.join(KINDS)}.")
    if kind == "label":
        return _from_one_column(labels, names)
    if kind == "votes":
        return read_votes(labels, names)[0].D
    _at_least_two(list(labels))
    numbers = label_numbers(labels if names is None else labels[list(names)], allow_gaps=kind == "distribution")
    if kind == "distribution":
        return _distributions(numbers)
    _check_no_zero_rows(numbers, kind)
    return from_counts(numbers) if kind == "counts" else from_scores(numbers)


def look_like_shares(counts: AnyArray) -> bool:
    """Whether cells that should be counts look like fractions: not all are whole numbers, and each row sums to one.

    Examples
    --------
    >>> import numpy as np
    >>> look_like_shares(np.array([[0.2, 0.8], [0.0, 1.0]])), look_like_shares(np.array([[0.0, 1.0], [1.0, 0.0]]))
    (True, False)
    """
    sums_to_one = np.abs(counts.sum(axis=1) - 1.0) <= SUM_TOLERANCE
    return bool(sums_to_one.all() and (counts != np.rint(counts)).any())


def read_votes(labels: pd.DataFrame, names: Sequence[str] | None = None) -> tuple[Votes, AnyArray]:
    """Read the answers of annotators, one column for each; cells with equal numbers are the same label.

    By default the labels are those that occur. Returns the votes, and the answers as words, None where one is missing.
    """
    words = labels.apply(lambda column: as_words(column, ""))
    known = known_labels(set(words.to_numpy().ravel()) - {""}, names)
    words = words.where(words != "", None)
    return from_votes(words, labels=known), words.to_numpy()


def label_values(names: Sequence[str], given: Sequence[float] | None = None) -> list[float] | None:
    """Return the numbers that ordered labels represent.

    Parameters
    ----------
    names : list of str
        Names of the labels.
    given : sequence of float, default=None
        One number for each label; by default the names, if all of them are numbers.

    Returns
    -------
    list of float or None
        One number for each label; None if the labels have no order.

    Examples
    --------
    >>> label_values(["1", "2", "3"]), label_values(["bad", "good"]), label_values(["bad", "good"], [-1, 1])
    ([1.0, 2.0, 3.0], None, [-1.0, 1.0])
    """
    try:
        values = [float(value) for value in (names if given is None else given)]
    except (TypeError, ValueError) as error:
        if given is not None:
            raise TableError(
                Parameter("values", given), f": {error}. Give one number for each label, as in 1,2,3."
            ) from None
        return None
    if len(values) != len(names):
        raise TableError(
            Parameter("values"), f" gives {len(values)} numbers for {len(names)} labels: {list_names(names)}."
        )
    if not np.isfinite(values).all():
        if given is not None:
            raise TableError(Parameter("values", given), ": every value must be finite.")
        return None
    return values


def _from_one_column(labels: pd.DataFrame, names: Sequence[str] | None) -> pd.DataFrame:
    if labels.shape[1] != 1:
        raise TableError(
            Parameter("kind", "label"),
            f" needs one column that names the label of each row, not {labels.shape[1]}: "
            f"{list_names(labels.columns)}. If each column belongs to an annotator, use ",
            Parameter("kind", "votes"),
            ".",
        )
    words = as_words(labels.iloc[:, 0], "")
    return from_labels(words, classes=known_labels(set(words), names))


def known_labels(found: set[str], names: Sequence[str] | None = None) -> list[str]:
    """The labels that occur, sorted; or the names that are given, which must include all that occur."""
    if names is None:
        return _at_least_two(in_order(found))
    unknown = sorted(found - set(names))
    if unknown:
        raise UnknownLabelError(f"The label {unknown[0]!r} is not among those of the model: {', '.join(names)}.")
    return list(names)


def in_order(names: Iterable[str]) -> list[str]:
    """Sort the names of labels: by value if all are numbers, else alphabetically.

    Examples
    --------
    >>> in_order(["10", "9", "-1"]), in_order(["b", "a"])
    (['-1', '9', '10'], ['a', 'b'])
    """
    words = sorted(names)
    try:
        return sorted(words, key=float)
    except ValueError:
        return words


def _at_least_two(names: list[str]) -> list[str]:
    if len(names) < 2:
        raise SingleLabelError(
            f"There is only one label, {names[0]!r}: nothing to distribute. Name two or more label "
            "columns; if one column names the label of each row, use ",
            Parameter("kind", "label"),
            ".",
        )
    return names


def label_numbers(labels: pd.DataFrame, *, allow_gaps: bool = False) -> pd.DataFrame:
    """Convert label columns to numbers; raise an error for text, negative numbers and, by default, empty cells."""
    numbers = pd.DataFrame({name: checked_numbers(labels[name]) for name in labels})
    for name in numbers:
        column = numbers[name]
        empty, negative = column.isna(), column < 0
        if empty.any() and not allow_gaps:
            advice = ", a label, is empty. Fill in a number, 0 if the label does not apply."
            raise cell_error(NonFiniteError, column, first_of(empty), advice)
        if negative.any():
            place = first_of(negative)
            trouble = f", a label, is {column.iloc[place]:g}. Degrees are at least zero."
            raise cell_error(NegativeDegreeError, column, place, trouble)
    return numbers


def _first_row(labels: pd.DataFrame, wrong: AnyArray) -> tuple[int, str]:
    """Position of the first row that is marked as wrong, and its place in words."""
    row = row_of(labels.iloc[:, 0], first_of(wrong))
    more = f" ({int(wrong.sum())} rows in all)" if wrong.sum() > 1 else ""
    return row, f"row {row + 1}{more}"


def _check_no_zero_rows(numbers: pd.DataFrame, kind: str) -> None:
    empty = (numbers.sum(axis=1) == 0).to_numpy()
    if empty.any():
        row, place = _first_row(numbers, empty)
        raise ZeroRowError(Parameter("kind", kind), f": all labels are zero in {place}. Delete such rows.", row=row)


def _distributions(numbers: pd.DataFrame) -> pd.DataFrame:
    if numbers.isna().any(axis=None):
        D, _ = check_partial_distributions(numbers.to_numpy(), "auto", name="the labels", to_learn=False)
        return pd.DataFrame(D, index=numbers.index, columns=numbers.columns)
    _check_no_zero_rows(numbers, "distribution")
    sums = numbers.sum(axis=1).to_numpy()
    wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
    if wrong.any():
        row, place = _first_row(numbers, wrong)
        raise RowSumError(
            f"The labels sum to {sums[first_of(wrong)]:.6g}, not 1, in {place}. If they are counts of votes, use ",
            Parameter("kind", "counts"),
            "; if intensities, ",
            Parameter("kind", "scores"),
            ".",
            row=row,
        )
    return pd.DataFrame(check_distributions(numbers.to_numpy()), index=numbers.index, columns=numbers.columns)


def votes_in_columns(
    frame: pd.DataFrame, item: str | None, annotator: str | None, label: Sequence[str]
) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Reshape a table with one row for each vote to one row for each item and one column for each rater.

    Returns the table, without the column ``item`` and the columns that differ between the rows of an item; the names of
    the raters in the order of their first votes; and notes.

    Examples
    --------
    >>> import pandas as pd
    >>> votes = pd.DataFrame({"id": [1, 1, 2], "age": [8, 8, 9], "who": ["a", "b", "a"], "says": ["x", "y", "x"]})
    >>> votes_in_columns(votes, "id", "who", ["says"])[0]
       age  a     b
    0    8  x     y
    1    9  x  None
    """
    if item is None or annotator is None or len(label) != 1:
        raise TableError(
            "Votes in rows need three columns: ",
            Parameter("item"),
            ", ",
            Parameter("annotator"),
            " and one ",
            Parameter("labels"),
            ", the column with the answer.",
        )
    for role, name in (("item", item), ("annotator", annotator)):
        if name not in frame.columns:
            raise no_column(role, name, frame.columns)
    if len({item, annotator, label[0]}) < 3:
        raise TableError(
            Parameter("item", item),
            ", ",
            Parameter("annotator", annotator),
            " and ",
            Parameter("labels", label[0]),
            " must be three columns.",
        )
    check_filled(frame, item, annotator)
    rows, notes = one_row_each(frame, item, [annotator, label[0]])
    who = as_words(frame[annotator], "")
    raters = list(dict.fromkeys(who))
    taken = [name for name in raters if name in rows.columns]
    if taken:
        raise TableError(f"The rater {taken[0]!r} has the name of a column. Rename one of them.")
    if len(rows) * len(raters) > MAX_CELLS:
        raise TableError(
            f"{len(rows):,} items of {len(raters):,} raters make too large a table. Turn the votes into distributions "
            "with skldl.data.convert_table first."
        )
    answers = as_words(frame[label[0]], "")
    given = answers != ""
    twice = pd.DataFrame({"item": frame[item], "who": who})[given].duplicated()
    if twice.any():
        first = frame[given].iloc[first_of(twice)]
        raise DuplicateVoteError(
            f"{first[annotator]} answered twice to item {first[item]} ({int(twice.sum())} such cases in all). Keep "
            "one answer, or use skldl.data.convert_table, which takes several as one answer of several labels."
        )
    place = pd.MultiIndex.from_arrays([frame[item][given], who[given]])
    wide = pd.Series(answers[given].to_numpy(), index=place, dtype=object).unstack()
    wide = wide.reindex(index=rows.index, columns=raters).astype(object)
    wide = wide.where(wide.notna(), None)
    return pd.concat([rows.drop(columns=item), wide], axis=1).reset_index(drop=True), raters, notes


def check_filled(frame: pd.DataFrame, *names: str) -> None:
    """Raise an error for rows without an item or annotator."""
    for name in names:
        check_present(frame[name], "Every row needs a value there.", MissingLabelError)


def one_row_each(frame: pd.DataFrame, item: str, used: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """One row for each item, with the columns that have one value for each item; a note names the others."""
    groups = frame.drop(columns=used).groupby(item, sort=False, dropna=False)
    single = groups.nunique(dropna=False).le(1).all()
    varied = [name for name in single.index if not single[name]]
    rows = groups.head(1).drop(columns=[*used, *varied], errors="ignore")
    notes = [f"Left out, since they differ between the rows of one item: {list_names(varied)}."] if varied else []
    return rows.set_axis(rows[item].to_numpy(), axis=0), notes
