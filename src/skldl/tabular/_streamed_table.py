"""A table in files that is read chunk by chunk, as often as needed, taken apart as `skldl.data.from_table` does it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skldl.data._cells import as_words, cell_place, refuse_missing, row_of
from skldl.data._labels import known_labels, label_numbers, read_labels, read_votes
from skldl.data._roles import feature_columns, usable_rows
from skldl.data._tables import TableFiles
from skldl.exceptions import DataError, NonFiniteError, Parameter, TableError
from skldl.utils.column_names import find_columns, list_names
from skldl.utils.typing import AnyArray, FloatArray

MOST_LABELS = 10_000
"""Votes and single labels with more different words are no labels."""


@dataclass(frozen=True, eq=False)
class TableChunk:
    """Some rows of one file that have a label and weight; ``first`` is the number of such rows before these.

    The index of X is the number of the row in the file, from 0; ``groups`` are hashes.
    """

    place: str
    X: pd.DataFrame
    answers: pd.DataFrame
    weight: FloatArray | None
    groups: AnyArray | None
    first: int


class StreamedTable:
    """Files with one table, and what each of its columns is, as for `skldl.data.from_table`.

    ``label_names`` of votes and single labels are known after `learn_labels`; ``notes``, ``rows_of_files`` (rows with a
    label and weight) and ``left_out`` (number of other rows by the reason) after one pass.
    """

    def __init__(
        self,
        files: TableFiles,
        labels: Sequence[str],
        *,
        kind: str = "distribution",
        weight: str | None = None,
        groups: str | None = None,
        drop: Sequence[str] = (),
        text: Sequence[str] = (),
        categories: Sequence[str] = (),
        chunk_rows: int = 20_000,
    ) -> None:
        self.files, self.kind, self.weight, self.groups, self.chunk_rows = files, kind, weight, groups, chunk_rows
        self.drop, self.text, self.categories = list(drop), tuple(text), tuple(categories)
        self.label_columns = find_columns(labels, files.columns, "labels")
        self.features, self.notes = feature_columns(
            files.columns, self.label_columns, weight, groups, drop, text, categories
        )
        self._by_words = kind in ("votes", "label")
        self.label_names = None if self._by_words else self.label_columns
        self._words: set[str] = set()
        self.left_out: Counter[str] = Counter()
        self.rows_of_files: dict[str, int] = {}

    def chunks(self) -> Iterator[TableChunk]:
        """Read all rows that have a label and weight once."""
        self.left_out.clear()
        self.rows_of_files = dict.fromkeys(self.files.files, 0)
        for chunk in self.chunks_of(None, 0):
            self.rows_of_files[chunk.place] += len(chunk.X)
            yield chunk
        if not any(self.rows_of_files.values()):
            raise TableError(f"No row of {self.files.name} has a label and weight.")

    def chunks_of(self, file: str | None, first: int) -> Iterator[TableChunk]:
        """The rows of one file, or of all, that have a label and weight; ``first`` such rows come before them."""
        for place, frame in self.files.pieces(self.chunk_rows, file):
            with naming(place):
                chunk = self._taken_apart(place, frame, first)
            if len(chunk.X):
                first += len(chunk.X)
                yield chunk

    def _taken_apart(self, place: str, frame: pd.DataFrame, first: int) -> TableChunk:
        frame, weight, left_out = usable_rows(frame, self.label_columns, self.weight)
        self.left_out.update(left_out)
        groups = None if self.groups is None else _hashed(frame[self.groups])
        return TableChunk(place, frame[self.features], frame[self.label_columns], weight, groups, first)

    def learn_labels(self, chunk: TableChunk) -> None:
        """Look at the label columns of a chunk: collect the words of votes and single labels, check all others."""
        if not self._by_words:
            self.distributions(chunk)
            return
        for name in self.label_columns:
            self._words |= set(as_words(chunk.answers[name], "")) - {""}
        if len(self._words) > MOST_LABELS:
            raise TableError(
                f"The columns {list_names(self.label_columns)} hold more than {MOST_LABELS:,} different "
                "words. Are they labels? ",
                Parameter("kind", self.kind),
                " takes each word for a label.",
            )

    def end_of_labels(self) -> None:
        """All chunks have been looked at: fix the names of the labels."""
        if self._by_words:
            self.label_names = known_labels(self._words)

    def distributions(self, chunk: TableChunk) -> pd.DataFrame:
        """The distributions of a chunk; an error names the file and the row."""
        with naming(chunk.place):
            if self.kind == "distribution":
                _refuse_gaps(chunk.answers)
            return read_labels(chunk.answers, self.kind, names=self.label_names if self._by_words else None)

    def counts(self, chunk: TableChunk) -> FloatArray | None:
        """Counts of votes behind the distributions, where they are known."""
        if self.kind == "counts":
            return np.asarray(label_numbers(chunk.answers).to_numpy(), dtype=np.float64)
        if self.kind == "votes":
            return np.asarray(read_votes(chunk.answers, self.label_names)[0].counts, dtype=np.float64)
        return None


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Put the name of the file before errors about the rows of a chunk."""
    try:
        yield
    except DataError as error:
        if place in str(error):
            raise
        raise error.prefixed(f"{place}: ") from error


def _refuse_gaps(answers: pd.DataFrame) -> None:
    gaps = answers.isna().to_numpy()
    if gaps.any():
        row, column = (int(place) for place in np.argwhere(gaps)[0])
        raise NonFiniteError(
            f"{cell_place(answers.iloc[:, column], row)}, a label, is empty. Models that read a table "
            "in chunks need every degree: write 0 where the label does not apply, or fit in memory a "
            "model that learns from missing degrees (sa-bfgs-cv without ",
            Parameter("stream", True),
            ").",
            row=row_of(answers.iloc[:, column], row),
        )


def _hashed(column: pd.Series) -> AnyArray:
    refuse_missing(column, "Every row needs a group.")
    words: Any = as_words(column, "").astype(object).to_numpy()
    return np.asarray(pd.util.hash_array(words, categorize=True), dtype=np.uint64)
