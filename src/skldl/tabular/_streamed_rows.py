"""The rows of a table in files as `skldl.chunks.Rows`: encoded chunk by chunk, without those that are held out."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldl.chunks import Layout, Piece, Rows
from skldl.tabular._chunk_cache import ChunkCache
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._row_sample import drawn, mixed_keys, row_keys
from skldl.tabular._streamed_table import StreamedTable, TableChunk, naming
from skldl.utils.typing import BoolArray

_KEYS_AT_ONCE = 2**20


@dataclass(frozen=True)
class HeldOut:
    """Which rows judge the model instead of teaching it: a share of them, or of their groups, drawn by a hash."""

    share: float
    seed: int

    def of(self, chunk: TableChunk) -> BoolArray:
        """Which rows of a chunk are held out; this does not depend on how the table is cut."""
        if chunk.groups is not None:
            return drawn(mixed_keys(chunk.groups, self.seed), self.share)
        return drawn(row_keys(chunk.first, len(chunk.X), self.seed), self.share)

    def count(self, n_rows: int) -> int:
        """How many of the first so many rows are held out, if there are no groups."""
        starts = range(0, n_rows, _KEYS_AT_ONCE)
        parts = (row_keys(start, min(_KEYS_AT_ONCE, n_rows - start), self.seed) for start in starts)
        return sum(int(np.count_nonzero(drawn(keys, self.share))) for keys in parts)


class EncodedRows(Rows):
    """The training rows of a table as numbers, kept in a cache between passes; ``n_rows`` is None where unknown."""

    def __init__(
        self,
        table: StreamedTable,
        encoder: TableEncoder,
        held_out: HeldOut,
        n_rows: int | None,
        cache: ChunkCache | None = None,
    ) -> None:
        self.table, self.encoder, self.held_out, self.cache = table, encoder, held_out, cache
        self._n_rows = n_rows

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        if self.cache is None or self.cache.given_up:
            return self._encoded(self.table.chunks(), labels)
        if self.cache.is_complete():
            return self.cache.read()
        return self.cache.kept(self._encoded(self.table.chunks(), labels=True))

    def _tasks(self, client: Any) -> list[tuple[Any, ...]] | None:
        """For a cluster: each file is read and encoded by one worker, which must see it at the same place."""
        if client is None:
            return []
        table = copy(self.table)
        table.files = self.table.files.at_full_paths()
        shared = client.submit(_itself, EncodedRows(table, self.encoder, self.held_out, None), pure=False)
        counts = [self.table.rows_of_files[file] for file in self.table.files.files]
        firsts = np.cumsum([0, *counts])
        return [
            (_pieces_of_file, shared, file, int(first))
            for file, first, count in zip(table.files.files, firsts, counts, strict=False)
            if count
        ]

    def _encoded(self, chunks: Iterator[TableChunk], labels: bool) -> Iterator[Piece]:
        for chunk in chunks:
            kept = ~self.held_out.of(chunk)
            if not kept.any():
                continue
            D = self.table.distributions(chunk)[kept] if labels else None
            with naming(chunk.place):
                X = self.encoder.transform(chunk.X[kept])
            yield Piece(X, D, None if chunk.weight is None else chunk.weight[kept], chunk.place, int(chunk.X.index[0]))

    def _known_layout(self) -> Layout:
        names = tuple(self.table.label_names or ())
        is_sparse = self.encoder.is_sparse_
        return Layout(len(self.encoder.sources()), len(names), None, names, self.table.weight is not None, is_sparse)

    def _name(self) -> str:
        return self.table.files.name

    @property
    def n_rows(self) -> int | None:
        """Number of training rows, where it is known."""
        return self._n_rows


def _itself(rows: EncodedRows) -> EncodedRows:
    """A task whose result can be made again when its worker is lost."""
    return rows


def _pieces_of_file(rows: EncodedRows, file: str, first: int) -> Iterator[Piece]:
    """The encoded rows of one file, on a worker."""
    return rows._encoded(rows.table.chunks_of(file, first), labels=True)
