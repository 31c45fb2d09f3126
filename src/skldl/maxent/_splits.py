"""Splits into training and test rows that a caller gives as pairs."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.utils.typing import IntArray

Split = tuple[IntArray, IntArray]


def splits_of(cv: Any, kept: IntArray, n_samples: int) -> list[Split]:
    """The (train, test) pairs that were given as cv, or that a splitter makes, as places among the rows kept."""
    splits: list[Split] = []
    for fold, pair in enumerate(_items(cv, "cv")):
        parts = list(_items(pair, f"Item {fold} of cv"))
        if len(parts) != 2:
            raise ValueError(f"Item {fold} of cv holds {len(parts)} parts, not two: give (train, test) pairs.")
        train, test = (
            places_of(rows, kept, n_samples, f"{name} of cv pair {fold}")
            for name, rows in zip(("train", "test"), parts, strict=True)
        )
        splits.append((train, test))
    if not splits:
        raise ValueError(
            "cv gives no (train, test) pair. Give at least one, or a number of folds. An iterator gives its pairs only "
            "once: pass a list to fit again."
        )
    return splits


def _items(values: Any, name: str) -> Iterator[Any]:
    """Iterate over values, or say that they are no (train, test) pairs."""
    try:
        return iter(values)
    except TypeError:
        raise ValueError(
            f"{name} is {values!r}: give (train, test) pairs of row numbers, a splitter, or a number of folds."
        ) from None


def places_of(rows: Any, kept: IntArray, n_samples: int, where: str) -> npt.NDArray[np.intp]:
    """Where the rows stand among those kept, as often as they are given; rows without weight are left out."""
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n_samples,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            f"{where} has shape {rows.shape} and type {rows.dtype}: give row numbers, or a mask of {n_samples} rows."
        )
    if rows.size and not (rows.min() >= 0 and rows.max() < n_samples):
        wrong = rows[(rows < 0) | (rows >= n_samples)][0]
        raise ValueError(f"{where} holds row {wrong}, but rows are numbered from 0 to {n_samples - 1}.")
    place = np.full(n_samples, -1, dtype=np.intp)
    place[kept] = np.arange(len(kept))
    places = place[rows.astype(np.intp)]
    places = places[places >= 0]
    if not places.size:
        raise ValueError(f"{where} is empty (rows without weight do not count). Each part needs at least one row.")
    return places


def holds_out_once(splits: list[Split], n_rows: int) -> bool:
    """Whether each row is in the test part of exactly one split."""
    return bool(np.array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(n_rows)))
