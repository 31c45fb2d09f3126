"""Rows of the training table in a model file: only if requested by ``keep_rows=``.

Estimators that predict from training rows hold them, encoded, in any case: `rows_in` names them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skldl.data._dataset import Dataset
from skldl.exceptions import DataError, Parameter

MOST_KEPT = 100_000


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
