"""Arrays in a ``.mat`` or ``.npz`` file as a table: a column for each feature and label, and for what has one value
for each row."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pandas as pd

from skldl.data._content import numeric_table
from skldl.data._read_arrays import FEATURE_KEYS, LABEL_KEYS, array_variables, find_key, names_in, one_per_row
from skldl.exceptions import DatasetError


class ArrayTable:
    """A file of arrays (``.mat`` or ``.npz``) with the methods of `TableFile`.

    ``labels`` names the array of labels, if it has no usual name such as labels or D; there need not be one. Arrays in
    ``also``, such as weights and groups, become columns. Columns are named by the arrays ``feature_names`` and
    ``label_names`` of the file, or else feature_0, … and label_0, ….

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "votes.npz"
    ...     np.savez(file, X=[[31.0], [54.0]], D=[[3, 1], [0, 2]], person=["ann", "bob"])
    ...     ArrayTable(file, also=["person"]).read()
       feature_0  label_0  label_1 person
    0       31.0        3        1    ann
    1       54.0        0        2    bob
    """

    def __init__(self, source: str | Path, *, labels: str | None = None, also: Sequence[str] = ()) -> None:
        path = Path(source)
        self.name = str(source)
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {source}.")
        variables = array_variables(path)
        features = find_key(path, variables, None, FEATURE_KEYS, "features")
        X = _columns(path, variables, features, "feature")
        has_labels = labels is not None or any(key.lower() in LABEL_KEYS for key in variables)
        parts = [X]
        if has_labels:
            parts.append(_columns(path, variables, find_key(path, variables, labels, LABEL_KEYS, "labels"), "label"))
        self.label_columns = list(parts[-1]) if has_labels else []
        parts += [pd.DataFrame({key: one_per_row(path, variables, key, len(X))}) for key in dict.fromkeys(also)]
        for part in parts:
            if len(part) != len(X):
                raise DatasetError(
                    f"{path}: {features!r} has {len(X)} rows and the labels have {len(part)}; each needs one row per "
                    "instance."
                )
        self._frame = pd.concat(parts, axis=1)
        self.columns = list(self._frame)
        self._rows_read = 0

    def read(self) -> pd.DataFrame:
        """All rows; a second call returns no rows."""
        frame, self._frame = self._frame, self._frame.iloc[:0]
        return frame

    def chunks(self, rows: int = 20_000, *, text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """The rows in pieces; ``text`` is there for `TableFile`."""
        for start in range(0, len(self._frame), rows):
            piece = self._frame.iloc[start : start + rows]
            self._rows_read = start + len(piece)
            yield piece

    def nothing(self) -> pd.DataFrame:
        """A table with the same columns and no rows."""
        return self._frame.iloc[:0]

    def share_read(self) -> float | None:
        """Share of the rows that has been returned."""
        return self._rows_read / max(1, len(self._frame))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: the arrays are in memory."""


def _columns(path: Path, variables: dict[str, Any], key: str, what: str) -> pd.DataFrame:
    values = numeric_table(path, variables[key], key, keep_sparse=False)
    names = names_in(path, variables, f"{what}_names") or tuple(f"{what}_{place}" for place in range(values.shape[1]))
    if len(names) != values.shape[1]:
        raise DatasetError(f"{path}: '{what}_names' has {len(names)} entries for {values.shape[1]} columns.")
    return pd.DataFrame(values, columns=list(names))
