"""Training data in a model file: typical values always, whole rows only if requested.

Typical values are medians of numbers and dates and the most frequent category: what a form begins with and what an
explanation compares with. Text columns have none, since a text is a row of the table. Rows are kept by ``keep_rows=``.
Estimators that predict from training rows hold them, encoded, in any case: `rows_in` names them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from skldl.data._cells import BOOLEAN, CATEGORY, DATE, NUMBER, as_numbers, as_words, checked_truth
from skldl.data._dataset import Dataset
from skldl.data._dates import as_dates, show_date
from skldl.exceptions import DataError, Parameter

MOST_KEPT = 100_000


def typical_values(
    table: pd.DataFrame, kinds: dict[str, str], dates: dict[str, tuple[str, list[str]]]
) -> dict[str, Any]:
    """A typical value of each column, in plain types; ``kinds`` and ``dates`` are those of a fitted `TableEncoder`.

    Median, most frequent category or truth value, or None; an empty text for columns of text.

    Examples
    --------
    >>> import pandas as pd
    >>> typical_values(pd.DataFrame({"age": ["3", "5", None]}), {"age": "number"}, {})
    {'age': 4.0}
    """
    typical: dict[str, Any] = {}
    for name, kind in kinds.items():
        column = table[name]
        if not column.notna().any():
            typical[name] = None
        elif kind == NUMBER:
            typical[name] = float(as_numbers(column).median())
        elif kind == BOOLEAN:
            typical[name] = bool(checked_truth(column).mean() > 0.5)
        elif kind == CATEGORY:
            typical[name] = str(as_words(column.dropna(), "").mode().iloc[0])
        elif kind == DATE:
            written = dates[name][0]
            middle = as_dates(column, written).dropna().sort_values().iloc[column.notna().sum() // 2]
            typical[name] = show_date(middle, written)
        else:
            typical[name] = ""
    return typical


def kept_rows(dataset: Dataset, kinds: dict[str, str], n_rows: int, seed: int) -> dict[str, Any]:
    """Rows of the training table to be kept with the model, drawn at random where it has more.

    In plain types: ``positions`` in the table, and ``rows``, features and then degrees.
    """
    check_number_kept(n_rows)
    every = np.arange(dataset.n_samples)
    drawn = every if len(every) <= n_rows else np.sort(np.random.default_rng(seed).choice(every, n_rows, replace=False))
    features = dataset.X.iloc[drawn][list(kinds)]
    cells = features.astype(object).where(features.notna(), None).to_numpy().tolist()
    rows = [
        [*map(_plain, row), *degrees] for row, degrees in zip(cells, np.asarray(dataset.D)[drawn].tolist(), strict=True)
    ]
    return {"positions": drawn.tolist(), "rows": rows}


def check_number_kept(n_rows: int) -> None:
    """Refuse numbers of rows that no model file keeps."""
    if not 0 < n_rows <= MOST_KEPT:
        raise DataError(Parameter("keep_rows", n_rows), f" must be from 1 to {MOST_KEPT:,}, or left out to keep none.")


def rows_in(estimator: Any) -> list[str]:
    """Names of the parts of a fitted estimator that hold training rows, encoded as numbers, such as ``["AAKNN"]``."""
    return sorted({type(part).__name__ for part in _parts(estimator) if getattr(type(part), "_keeps_rows", False)})


def _parts(value: Any, depth: int = 0) -> Iterator[Any]:
    """An estimator and the estimators in its attributes, lists and tuples among them."""
    if isinstance(value, BaseEstimator):
        yield value
        value = vars(value)
    if depth < 6 and isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _parts(inner, depth + 1)


def _plain(cell: Any) -> Any:
    if cell is None or isinstance(cell, str | bool | int):
        return cell
    return float(cell) if isinstance(cell, float | np.floating | np.integer) else str(cell)
