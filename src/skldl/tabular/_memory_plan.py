"""How many rows to read at a time, so that a fit in chunks stays within a bound on memory.

The figures were measured, and are rather too large than too small: ``tests/cli/test_fit_stream_memory.py`` holds them.
"""

import re

from skldl.exceptions import DataError, Parameter

GIB, MIB = 2**30, 2**20
BASE = 440 * MIB
"""What the libraries take, whatever the table: half of it the one that writes model files."""
LEAST = 64 * MIB
"""What the rows of a chunk must have at least."""
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

    The units are B, KiB, MiB, GiB and TiB; K, M, G, T and KB, MB, GB, TB mean the same. ``name`` is the parameter, for
    messages.

    Examples
    --------
    >>> parse_size("1GiB"), parse_size("512m"), parse_size("1.5 GB"), parse_size(0)
    (1073741824, 536870912, 1610612736, 0)
    """
    match = _SIZE.fullmatch(str(text))
    if match is None:
        raise DataError(Parameter(name, text), ": write a number with a unit, such as 1GiB or 500MiB.")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def memory_for_rows(memory: int, reading: int) -> int:
    """What a bound on memory leaves for the rows of a chunk and the model; an error if that is next to nothing.

    ``reading`` bytes are what the reader of the files takes.
    """
    left = memory - BASE - reading
    if left < LEAST:
        needed = -(-(BASE + reading + LEAST) // (10 * MIB)) * 10
        raise DataError(
            Parameter("memory", f"{memory // MIB}MiB"),
            f" is too little: the libraries take {BASE // MIB} MiB, and reading these files takes {reading // MIB} "
            "MiB. Set ",
            Parameter("memory", f"{needed}MiB"),
            " or more.",
        )
    return left


def rows_to_scan(left: int, n_columns: int, n_texts: int) -> int:
    """Rows in a chunk while the columns, ``n_texts`` of them prose, are looked at."""
    return _bounded(left // (CELL * n_columns + TEXT_CELL * n_texts))


def rows_to_fit(left: int, scanned: int, n_features: int, n_labels: int, *, dense: bool, folded: bool) -> int:
    """Rows in a chunk while the model is fitted; an error if the model itself does not fit into the bound.

    They are not more than were scanned. ``dense`` says that the encoded rows are arrays, not sparse matrices, and
    ``folded`` that the model chooses its penalty by folds.
    """
    matrices = (FOLDED_MATRICES if folded else MATRICES) * n_features**2 if dense else 0
    model = NUMBER * (matrices + (400 if folded else 40) * n_features * n_labels)
    if model > 3 * left // 4:
        raise DataError(
            f"The table makes {n_features:,} features, and the model of them takes {model // MIB} MiB "
            f"whatever the number of rows, where {left // MIB} MiB are left. Say ",
            Parameter("memory"),
            f" with {(model * 4 // 3 - left) // MIB + 1} MiB more, or leave out columns with ",
            Parameter("drop"),
            ".",
        )
    if not dense:
        return scanned
    return min(scanned, _bounded((left - model) // (NUMBER * (COPIES * n_features + 12 * n_labels))))


def _bounded(n_rows: int) -> int:
    return max(FEWEST_ROWS, min(MOST_ROWS, int(n_rows)))
