"""How many rows to read at a time, so that a fit in chunks stays within a bound on memory.

The figures were measured, and are rather too large than too small: ``tests/cli/test_fit_stream_memory.py`` holds them.
"""

import re

from skldl.exceptions import DataError

GIB, MIB = 2**30, 2**20
BASE = 330 * MIB
"""What the libraries and the reader of files take, whatever the table."""
LEAST = 448 * MIB
CELL = 400
"""Bytes for each cell of a chunk while it is read and encoded: text and its words at the worst."""
TEXT_CELL = 6000
"""Bytes for each cell of prose and its n-grams."""
NUMBER = 8
COPIES = 6
"""Arrays of the size of the encoded chunk that live at the same time."""
MOST_ROWS, FEWEST_ROWS = 100_000, 200
FOLDED_MATRICES, MATRICES = 16, 5
"""Matrices with a row and a column for each feature that the fit holds: with the folds of SA-BFGS-CV, and without."""
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)i?b?\s*", flags=re.IGNORECASE)


def parse_size(text: str | int, name: str = "memory") -> int:
    """Bytes from a text such as ``1GiB``.

    Parameters
    ----------
    text : str or int
        A number with a unit: B, KiB, MiB, GiB, TiB; K, M, G, T and KB, MB, GB, TB mean the same.
    name : str, default="memory"
        The parameter, for messages.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> parse_size("1GiB"), parse_size("512m"), parse_size("1.5 GB"), parse_size(0)
    (1073741824, 536870912, 1610612736, 0)
    """
    match = _SIZE.fullmatch(str(text))
    if match is None:
        raise DataError(f"{name}={text!r}: write a number with a unit, such as 1GiB or 500MiB.")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def parse_memory(text: str | int) -> int:
    """Bytes of a bound on memory, which must hold the libraries at least."""
    n_bytes = parse_size(text)
    if n_bytes < LEAST:
        raise DataError(
            f"memory={text!r} is too little: the libraries alone take {BASE // MIB} MiB. Say {LEAST // MIB}MiB or more."
        )
    return n_bytes


def rows_to_scan(memory: int, n_columns: int, n_texts: int) -> int:
    """Rows in a chunk while the columns are looked at.

    Parameters
    ----------
    memory : int
        The bound, in bytes.
    n_columns, n_texts : int
        Number of columns, and of columns of prose among them.

    Returns
    -------
    int
        Number of rows.
    """
    return _bounded((memory - BASE) // (CELL * n_columns + TEXT_CELL * n_texts))


def rows_to_fit(memory: int, scanned: int, n_features: int, n_labels: int, *, dense: bool, folded: bool) -> int:
    """Rows in a chunk while the model is fitted; an error if the model itself does not fit into the bound.

    Parameters
    ----------
    memory : int
        The bound, in bytes.
    scanned : int
        Rows in a chunk so far.
    n_features, n_labels : int
        Size of the model.
    dense : bool
        Whether the encoded rows are arrays, not sparse matrices.
    folded : bool
        Whether the model chooses its penalty by folds.

    Returns
    -------
    int
        Number of rows, not more than were scanned.
    """
    matrices = (FOLDED_MATRICES if folded else MATRICES) * n_features**2 if dense else 0
    model = NUMBER * (matrices + (400 if folded else 40) * n_features * n_labels)
    left = memory - BASE - model
    if left < (memory - BASE) // 4:
        needed = (BASE + model * 4 // 3) / GIB
        raise DataError(
            f"The table makes {n_features:,} features, and the model of them takes {model / GIB:.1f} GiB whatever the "
            f"number of rows. Say memory='{needed:.1f}GiB', or leave out columns with drop=."
        )
    if not dense:
        return scanned
    return min(scanned, _bounded(left // (NUMBER * (COPIES * n_features + 12 * n_labels))))


def _bounded(n_rows: int) -> int:
    return max(FEWEST_ROWS, min(MOST_ROWS, int(n_rows)))
