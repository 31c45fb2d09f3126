"""Tables with several rows for each item: what belongs to the item, and the answers with one column for each rater."""

from collections.abc import Sequence

import pandas as pd

from skldl.data._cells import as_words, refuse_missing
from skldl.exceptions import DuplicateVoteError, MissingLabelError, Parameter, TableError
from skldl.utils.column_names import list_names, no_column

MOST_CELLS = 50_000_000
"""Items times raters: a larger table of answers would not fit into memory."""


def votes_in_columns(
    frame: pd.DataFrame, item: str | None, annotator: str | None, label: Sequence[str]
) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Turn one row for each vote into one row for each item, with one column for each rater.

    Returns the table, with the columns that have one value for each item, without ``item``; the names of the raters in
    the order of their first votes; and notes.

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
    refuse_empty(frame, item, annotator)
    rows, notes = one_row_each(frame, item, [annotator, label[0]])
    who = as_words(frame[annotator], "")
    raters = list(dict.fromkeys(who))
    taken = [name for name in raters if name in rows.columns]
    if taken:
        raise TableError(f"The rater {taken[0]!r} has the name of a column. Rename one of them.")
    if len(rows) * len(raters) > MOST_CELLS:
        raise TableError(
            f"{len(rows):,} items of {len(raters):,} raters make too large a table. Turn the votes into distributions "
            "with skldl.data.convert_table first."
        )
    answers = as_words(frame[label[0]], "")
    given = answers != ""
    twice = pd.DataFrame({"item": frame[item], "who": who})[given].duplicated()
    if twice.any():
        first = frame[given].iloc[int(twice.to_numpy().argmax())]
        raise DuplicateVoteError(
            f"{first[annotator]} answered twice to item {first[item]} ({int(twice.sum())} such cases in all). Keep "
            "one answer, or use skldl.data.convert_table, which takes several as one answer of several labels."
        )
    place = pd.MultiIndex.from_arrays([frame[item][given], who[given]])
    wide = pd.Series(answers[given].to_numpy(), index=place, dtype=object).unstack()
    wide = wide.reindex(index=rows.index, columns=raters).astype(object)
    wide = wide.where(wide.notna(), None)
    return pd.concat([rows.drop(columns=item), wide], axis=1).reset_index(drop=True), raters, notes


def refuse_empty(frame: pd.DataFrame, *names: str) -> None:
    """Refuse rows without an item or annotator."""
    for name in names:
        refuse_missing(frame[name], "Every row needs a value there.", MissingLabelError)


def one_row_each(frame: pd.DataFrame, item: str, used: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """One row for each item, with the columns that have one value for each; and which columns do not."""
    groups = frame.drop(columns=used).groupby(item, sort=False, dropna=False)
    single = groups.nunique(dropna=False).le(1).all()
    varied = [name for name in single.index if not single[name]]
    rows = groups.head(1).drop(columns=[*used, *varied], errors="ignore")
    notes = [f"Left out, since they differ between the rows of one item: {list_names(varied)}."] if varied else []
    return rows.set_axis(rows[item].to_numpy(), axis=0), notes
