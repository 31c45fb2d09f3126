"""Fits that can be resumed: the result of each pass is stored, and reused when the fit is repeated.

An estimator in chunks accesses the rows only through `Rows.sum`; everything else is computed from these sums. So the
results of the passes so far are the whole state of the fit. A repeated fit that reads them in the same order reaches
the same point, to the last digit, with any estimator. Each pass is written atomically to a file of its own.
"""

import hashlib
import pickle
import zipfile
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from skldl.chunks._rows import Chunk, Layout, Merge, Piece, Rows, Sums
from skldl.exceptions import DataError
from skldl.utils.files import whole_file


class Journal(Protocol):
    """Storage of the results of passes, by the number of the pass from 1.

    Any class with these two methods can be used; `FolderJournal` is one.

    Examples
    --------
    >>> class InMemory(dict):
    ...     def put(self, number, key, sums):
    ...         self[number] = key, sums
    >>> from skldl import MeanDistribution
    >>> from skldl.chunks import ArrayRows, RecordedRows
    >>> journal = InMemory()
    >>> model = MeanDistribution().fit(RecordedRows(ArrayRows([[0.0], [1.0]], [[0.5, 0.5], [0.1, 0.9]]), journal))
    >>> sorted(journal)
    [1]
    """

    def get(self, number: int) -> tuple[str, Sums] | None:
        """Read the key and the result of a pass.

        Parameters
        ----------
        number : int
            Number of the pass, from 1.

        Returns
        -------
        tuple or None
            Key and sums; None if the pass is not stored.
        """

    def put(self, number: int, key: str, sums: Sums) -> None:
        """Store the key and the result of a pass.

        Parameters
        ----------
        number : int
            Number of the pass, from 1.
        key : str
            Digest of everything that the result depends on.
        sums : tuple
            The result: arrays and numbers.
        """


class FolderJournal(Journal):
    """Results of passes in files ``pass-00001.npz``, ``pass-00002.npz``, … of a folder.

    Files are written atomically. A damaged file counts as missing.

    Parameters
    ----------
    folder : str or path
        The folder; it is created if it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> journal = FolderJournal(tempfile.mkdtemp())
    >>> journal.put(1, "key", (2.0, 3.0))
    >>> key, sums = journal.get(1)
    >>> key, [float(part) for part in sums], journal.get(2)
    ('key', [2.0, 3.0], None)
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def get(self, number: int) -> tuple[str, Sums] | None:
        try:
            with self._file(number).open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                key, count = stored["arr_0"]  # the number of arrays shows whether a damaged archive lost some
                sums = (stored[f"arr_{k}"] for k in range(1, int(count) + 1))
                return str(key), tuple(part[()] if part.ndim == 0 else part for part in sums)
        except (OSError, EOFError, TypeError, ValueError, LookupError, RuntimeError, zipfile.BadZipFile):
            return None  # missing or damaged: the pass is computed again

    def put(self, number: int, key: str, sums: Sums) -> None:
        with whole_file(self._file(number)) as stream:
            np.savez(stream, np.array([key, str(len(sums))]), *(np.asarray(part) for part in sums))

    def clear(self) -> None:
        """Remove all passes, when the fit is done."""
        for file in self.folder.glob("pass-*.npz"):
            file.unlink(missing_ok=True)

    def _file(self, number: int) -> Path:
        return self.folder / f"pass-{number:05d}.npz"


class RecordedRows(Rows):
    """Rows whose passes are recorded, so that an interrupted fit can be resumed.

    Parameters
    ----------
    rows : Rows
        The source of the rows.
    journal : Journal, str or path
        Storage for the results of the passes; a path stands for a `FolderJournal`.
    fingerprint : str, default=""
        Identifies the data, such as names and sizes of files.
    on_pass : callable, default=None
        Called after each pass with its number and whether it was read from the journal.

    Notes
    -----
    A pass is read from the journal if number, function, arguments, columns and fingerprint are the same. Otherwise it
    is computed and replaces the stored one, so a journal of other data or hyper-parameters is not used by mistake. The
    fingerprint must differ for different data with the same columns. `read` is not recorded.

    Examples
    --------
    >>> import tempfile
    >>> from skldl import SABFGS
    >>> from skldl.chunks import ArrayRows, RecordedRows
    >>> X, D = [[0.0], [1.0], [2.0]], [[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]]
    >>> folder = tempfile.mkdtemp()
    >>> first = RecordedRows(ArrayRows(X, D), folder)
    >>> model = SABFGS(fit_intercept=True).fit(first)
    >>> again = RecordedRows(ArrayRows(X, D), folder)
    >>> bool((SABFGS(fit_intercept=True).fit(again).coef_ == model.coef_).all()), again.rows.n_passes
    (True, 0)
    """

    def __init__(
        self,
        rows: Rows,
        journal: Journal | str | PathLike[str],
        *,
        fingerprint: str = "",
        on_pass: Callable[[int, bool], None] | None = None,
    ) -> None:
        if not isinstance(rows, Rows):
            raise DataError(f"rows is a {type(rows).__name__}, not a source of rows in chunks.")
        self.rows = rows
        self.journal = FolderJournal(journal) if isinstance(journal, str | PathLike) else journal
        self.fingerprint = fingerprint
        self.on_pass = on_pass

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        return self.rows._pieces(labels)

    def _known_layout(self) -> Layout:
        return self.rows.layout

    def _chunks(self, labels: bool) -> Iterator[Chunk]:
        return self.rows.read(labels=labels)

    def _name(self) -> str:
        return self.rows._name()

    @property
    def n_rows(self) -> int | None:
        """Number of rows, where it is known."""
        return self.rows.n_rows

    def _pass(self, function: Callable[..., Sums], arguments: tuple[Any, ...], merge: Merge, labels: bool) -> Sums:
        """One pass, read from the journal if it is stored there."""
        self.n_passes += 1
        key = self._key(function, arguments)
        known = self.journal.get(self.n_passes)
        replayed = known is not None and known[0] == key
        if known is not None and replayed:
            sums = known[1]
        else:
            self.rows.progress = self.progress and self._progress
            sums = self.rows.sum(function, *arguments, merge=merge, labels=labels)
            self.journal.put(self.n_passes, key, sums)
        if self.on_pass is not None:
            self.on_pass(self.n_passes, replayed)
        return sums

    def _progress(self, _: int, n_read: int) -> None:
        if self.progress is not None:
            self.progress(self.n_passes, n_read)

    def _key(self, function: Callable[..., Sums], arguments: tuple[Any, ...]) -> str:
        """Digest of everything that the result of a pass depends on."""
        digest = hashlib.sha256(pickle.dumps((self.fingerprint, self.layout, arguments), protocol=5))
        digest.update(f"{function.__module__}.{function.__qualname__}".encode())
        return digest.hexdigest()
