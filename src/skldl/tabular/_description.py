"""The description of a model in its file: training data, choice, quality, and training rows on request.

The description has a hash of each training row, so that ``skldl explain`` can leave out these rows: a row cannot be
computed from its hash, but anybody who has a row can check whether it was in the training table. Rows are stored only
on request; estimators that predict from training rows contain them, encoded, in any case (`rows_in`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from skldl.data._dataset import Dataset
from skldl.exceptions import DataError, Parameter
from skldl.tabular._choice import Choice, failures_of
from skldl.utils.typing import BoolArray

MAX_KEPT_ROWS = 100_000  # chosen by hand
MAX_HASHED_ROWS = 100_000
"""For larger tables there are no hashes, which would be larger than the model; chosen by hand."""
_HASH_BYTES = 6  # two of 100,000 rows have the same hash with a probability of 2e-5


@dataclass(eq=False)
class Made:
    """The results of a fit in memory or in chunks.

    ``rows`` are the parts of the description with training rows or their hashes, and ``floor`` the numbers of the noise
    floor of the votes.
    """

    pipeline: Pipeline
    choice: Choice
    why: list[str]
    notes: list[str]
    source: str
    label_names: list[str]
    label_columns: list[str]
    n_rows: int
    rows: dict[str, Any]
    floor: dict[str, Any]
    n_held_out: int | None = None
    n_calibration: int = 0


def described_model(
    pipeline: Pipeline, choice: Choice, why: list[str], floor_numbers: Mapping[str, Any]
) -> dict[str, Any]:
    """Describe the model, its candidates and its expected score in plain values."""
    return {
        "features": dict(pipeline[0].kinds_),
        "rows_in_model": rows_in(pipeline),
        "model": choice.best.candidate.name,
        "estimator": " ".join(repr(pipeline[-1]).split()),
        "why": why,
        "candidates": [
            {
                "model": trial.candidate.name,
                "setting": _plain_setting(trial.setting),
                "kullback_leibler": trial.divergence,
            }
            for trial in choice.candidates
        ],
        "failures": failures_of(choice),
        "score": {
            "kullback_leibler": choice.estimate.loss,
            "kullback_leibler_of_mean": choice.estimate.reference_loss,
            "skill": choice.skill[0],
            "skill_low": choice.skill[1],
            "skill_high": choice.skill[2],
            "nested": choice.nested,
            "folds": choice.n_folds,
            "rows": choice.n_rows,
            **floor_numbers,
        },
    }


def _plain_setting(setting: Mapping[str, Any]) -> dict[str, Any]:
    """A setting in plain values, without the steps of the pipeline in the names."""
    return {
        name.rpartition("__")[2]: value if isinstance(value, int | float | str) else repr(value)
        for name, value in setting.items()
    }


def row_hashes(encoder: Any, table: Any, D: Any) -> list[str]:
    """Hash the features and the distribution of each row, labels in the order of the model.

    The hash does not depend on the order of the columns, on further columns, or on the format of the file: numbers are
    rounded to nine digits, degrees to six.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import TableEncoder
    >>> table = pd.DataFrame({"age": [31, 54], "town": ["Ulm", "Bonn"]})
    >>> encoder = TableEncoder().fit(table)
    >>> turned = pd.DataFrame({"town": ["Bonn"], "more": [1], "age": ["54.0"]})
    >>> row_hashes(encoder, table, [[0.2, 0.8], [0.5, 0.5]])[1] == row_hashes(encoder, turned, [[0.5, 0.5]])[0]
    True
    """
    typed = encoder.typed_cells(table).values()
    cells = [[f"{cell:.9g}" if isinstance(cell, float) else str(cell) for cell in column.tolist()] for column in typed]
    degrees = [[f"{degree:.6g}" for degree in column] for column in np.asarray(D, dtype=np.float64).T.tolist()]
    rows = zip(*cells, *degrees, strict=True)
    return [blake2b(repr(row).encode(), digest_size=_HASH_BYTES).hexdigest() for row in rows]


def unseen_rows(hashes: Iterable[str], known: str) -> BoolArray:
    """Mark the rows that were not in the training table; ``known`` are the hashes of the training table as one text."""
    width = 2 * _HASH_BYTES
    seen = {known[start : start + width] for start in range(0, len(known), width)}
    return np.array([row not in seen for row in hashes], dtype=bool)


def kept_rows(dataset: Dataset, kinds: dict[str, str], n_rows: int, seed: int) -> dict[str, Any]:
    """Draw rows of the training table that are stored with the model, in plain types.

    ``positions`` are their positions in the table; each of the ``rows`` has its features and then its degrees.
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
    """Raise an error if the number of rows to store in a model file is not valid."""
    if not 0 < n_rows <= MAX_KEPT_ROWS:
        raise DataError(
            Parameter("keep_rows", n_rows), f" must be from 1 to {MAX_KEPT_ROWS:,}, or left out to keep none."
        )


def rows_in(estimator: Any) -> list[str]:
    """Names of the parts of a fitted estimator that contain encoded training rows, such as ``["AAKNN"]``."""
    return sorted({type(part).__name__ for part in _parts(estimator) if getattr(type(part), "_keeps_rows", False)})


def _parts(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield an estimator and the estimators in its attributes, also in lists and tuples."""
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
