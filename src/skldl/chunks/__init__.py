"""Rows that are read in chunks: training data that need not fit into memory.

An estimator that can learn from sums over rows takes such a source instead of arrays:
``SABFGS(alpha=1e-4, fit_intercept=True).fit(ParquetRows("ratings/", labels="r_*"))``. Sources are `ArrayRows` (arrays,
memory maps, sparse matrices), `IterableRows` (any Python code), `ParquetRows` and `DaskRows`; a source of your own
derives from `Rows`. `RecordedRows` keeps the result of every pass, so that a fit can go on after it was stopped.
"""

from skldl.chunks._arrays import ArrayRows
from skldl.chunks._dask import DaskRows
from skldl.chunks._iterables import IterableRows
from skldl.chunks._layout import Layout, Piece
from skldl.chunks._parquet import ParquetRows
from skldl.chunks._recorded import FolderJournal, Journal, RecordedRows
from skldl.chunks._rows import Chunk, Rows

__all__ = [
    "ArrayRows",
    "Chunk",
    "DaskRows",
    "FolderJournal",
    "IterableRows",
    "Journal",
    "Layout",
    "ParquetRows",
    "Piece",
    "RecordedRows",
    "Rows",
]
