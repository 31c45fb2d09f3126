"""Few rows in memory: for what needs all rows at once and is wanted only where they are few."""

from typing import Any

import numpy as np
from scipy import sparse

from skldl._typing import FloatArray
from skldl.chunks._rows import Rows


def in_memory(rows: Rows) -> tuple[Any, FloatArray, FloatArray | None]:
    """X, D and weights of all rows with weight."""
    chunks = [chunk.with_weight() for chunk in rows.read()]
    X = [chunk.X for chunk in chunks]
    weights = [chunk.weight for chunk in chunks if chunk.weight is not None]
    return (
        sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X),
        np.concatenate([chunk.D for chunk in chunks if chunk.D is not None]),
        np.concatenate(weights) if weights else None,
    )
