"""Rows that are read in chunks: training data that need not fit into memory.

Estimators that learn from sums over rows accept a source of rows instead of arrays:
``SABFGS(alpha=1e-4, fit_intercept=True).fit(ParquetRows("ratings/", labels="r_*"))``. Sources are `ArrayRows` (arrays,
memory maps, sparse matrices), `IterableRows` (any Python code), `ParquetRows` and `DaskRows`; further sources derive
from `Rows`. With `ClusterRows` the workers of a Dask cluster read the rows and keep them in memory. `RecordedRows`
stores the result of each pass, so that an interrupted fit can be resumed.

`predict` yields predictions chunk by chunk, while ``model.predict(rows)`` returns them in one array; `evaluate` and
`skill` judge a model on rows in chunks, `evaluate_pairs` and `skill_of_pairs` predictions that come in chunks.
"""

from importlib import import_module
from typing import Any

from skldl.chunks._arrays import ArrayRows
from skldl.chunks._dask import ClusterRows, DaskRows
from skldl.chunks._iterables import IterableRows
from skldl.chunks._recorded import FolderJournal, Journal, RecordedRows
from skldl.chunks._rows import Chunk, Layout, Piece, Rows

__all__ = [
    "ArrayRows",
    "Chunk",
    "ClusterRows",
    "DaskRows",
    "FolderJournal",
    "IterableRows",
    "Journal",
    "Layout",
    "ParquetRows",
    "Piece",
    "RecordedRows",
    "Rows",
    "evaluate",
    "evaluate_pairs",
    "predict",
    "skill",
    "skill_of_pairs",
]

_FROM_LAYERS_ABOVE = {
    "ParquetRows": "skldl.data._parquet",
    "evaluate": "skldl.metrics._in_chunks",
    "evaluate_pairs": "skldl.metrics._in_chunks",
    "predict": "skldl.metrics._in_chunks",
    "skill": "skldl.metrics._in_chunks",
    "skill_of_pairs": "skldl.metrics._in_chunks",
}
"""Public names of this package that are defined above it, with their modules; imported when they are first used."""


def __getattr__(name: str) -> Any:
    if name not in _FROM_LAYERS_ABOVE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_FROM_LAYERS_ABOVE[name]), name)
