"""Which rows a model has learned from: a model file keeps a hash of each, so that ``skldl explain`` can leave them out.

A row cannot be computed from its hash, but who has a row can check whether it was in the training table.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np

from skldl.utils.typing import BoolArray

MOST_ROWS = 100_000
"""For larger tables no hashes are kept: they would need more space than the model."""
_BYTES = 6


def row_hashes(encoder: Any, table: Any, D: Any) -> list[str]:
    """Hash the features and the distribution of each row, labels in the order of the model.

    The hash does not depend on the order of the columns, on further columns, or on how the file was written: numbers
    are rounded to nine digits, degrees to six.

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
    return [blake2b(repr(row).encode(), digest_size=_BYTES).hexdigest() for row in rows]


def unseen_rows(hashes: Iterable[str], known: str) -> BoolArray:
    """Which rows a model has not learned from, given their `row_hashes` and, as one text, those of its training."""
    width = 2 * _BYTES
    seen = {known[start : start + width] for start in range(0, len(known), width)}
    return np.array([row not in seen for row in hashes], dtype=bool)
