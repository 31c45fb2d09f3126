"""What an unfinished ``skldl fit --stream`` keeps beside its model, so that the same command goes on where it stopped.

The folder ``MODEL.resume`` holds ``state.json`` (what the state belongs to), ``encoder.skldl``, one file for each pass
of the fit (`skldl.chunks.FolderJournal`) and the encoded rows (`skldl.tabular._table_chunks`). Nothing in it is code.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

import skldl
from skldl.chunks import FolderJournal, Journal
from skldl.cli._screen import note
from skldl.exceptions import DataError, DatasetError, ModelFileError
from skldl.persistence import read, save
from skldl.tabular import TableEncoder
from skldl.utils.files import whole_file

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

_ENCODER, _ABOUT, _LOCK = "encoder.skldl", "state.json", "lock"


class ResumeFolder:
    """The state of a fit in a folder beside the model; use it in a ``with`` block around the fit.

    The fingerprint holds names, sizes and times of change of ``files``, and ``options``, everything else that the
    result depends on, in plain values. ``found`` is whether there was a state already, of the "same" fit or of an
    "other" one. When the block ends with an error, what is worth keeping stays, so that the same command goes on there.
    """

    def __init__(self, out: Path, files: Sequence[str], options: Mapping[str, Any]) -> None:
        self.folder = out.parent / f"{out.name}.resume"
        stamps = [(os.path.realpath(file), os.stat(file).st_size, os.stat(file).st_mtime_ns) for file in files]
        content = json.dumps([skldl.__version__, stamps, options], sort_keys=True, default=str)
        self.fingerprint = hashlib.sha256(content.encode()).hexdigest()
        if self.folder.exists() and not self.folder.is_dir():
            raise DatasetError(f"{self.folder} is a file: the state of the fit belongs there. Move it away.")
        with writing(self.folder):
            self.folder.mkdir(exist_ok=True)
        self._lock = self._locked()
        self.found = self._what_is_there()
        if self.found == "other":
            self.clear()
        self.journal: Journal = _Journal(self.folder)

    def __enter__(self) -> Self:
        if self.found == "same":
            note(f"Going on from {self.folder}, which holds {self.n_passes()} passes of this fit.")
        elif self.found == "other":
            note(f"{self.folder} held the state of another fit, of other files or options: it is begun anew.")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None:
            return
        if isinstance(error, ConnectionError):  # of a cluster
            self.close()
            raise DatasetError(f"{error} What was found so far is kept in {self.folder}.") from error
        if not self.n_passes() and (isinstance(error, DataError) or not self.has_encoder()):
            self.remove()  # nothing is worth keeping
        elif isinstance(error, KeyboardInterrupt):
            note(f"{self.n_passes()} passes are kept in {self.folder}: the same command goes on from there.")
        self.close()

    def _locked(self) -> IO[bytes] | None:
        """Keep a second fit from writing to the same state; the system lifts the lock however this process ends."""
        if fcntl is None:
            return None
        with writing(self.folder):
            stream = (self.folder / _LOCK).open("wb")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            stream.close()
            raise DatasetError(
                f"Another skldl fit is writing to {self.folder}. Wait for its end, or name another --out."
            ) from error
        return stream

    def _what_is_there(self) -> str:
        try:
            known = json.loads((self.folder / _ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return "other" if any(file.name != _LOCK for file in self.folder.iterdir()) else ""
        return "same" if isinstance(known, dict) and known.get("fingerprint") == self.fingerprint else "other"

    def load(self) -> tuple[TableEncoder, dict[str, Any]] | None:
        """The encoder and the facts that were kept, or None."""
        if self.found != "same":
            return None
        try:
            about, encoder = read(self.folder / _ENCODER)
        except (OSError, ModelFileError):
            return None
        return encoder, about["description"]

    def save(self, encoder: TableEncoder, facts: dict[str, Any]) -> None:
        """Keep the encoder and the facts."""
        with writing(self.folder):
            with whole_file(self.folder / _ABOUT) as stream:
                stream.write(json.dumps({"fingerprint": self.fingerprint}).encode())
            save(encoder, self.folder / _ENCODER, description=facts)

    def has_encoder(self) -> bool:
        """Whether the encoder is kept."""
        return (self.folder / _ENCODER).is_file()

    def n_passes(self) -> int:
        """Number of passes of the fit that are kept."""
        return len(list(self.folder.glob("pass-*.npz")))

    def clear(self) -> None:
        """Forget what was kept."""
        for pattern in ("pass-*.npz", ".*.part", "rows.*", _ENCODER, _ABOUT):
            for file in self.folder.glob(pattern):
                file.unlink(missing_ok=True)

    def remove(self) -> None:
        """Take the state away; a folder that holds anything else stays."""
        self.clear()
        self.close()
        with contextlib.suppress(OSError):
            (self.folder / _LOCK).unlink(missing_ok=True)
            self.folder.rmdir()

    def close(self) -> None:
        """Let another fit use the state."""
        if self._lock is not None:
            self._lock.close()


class _Journal(FolderJournal):
    """A journal whose errors say what could not be written."""

    def put(self, number: int, key: str, sums: Any) -> None:
        with writing(self.folder):
            super().put(number, key, sums)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say what could not be written, and what to do."""
    try:
        yield
    except OSError as error:
        raise DatasetError(
            f"The state of the fit cannot be written to {folder}: {error.strerror or error}. Make room, or name a "
            "model on another disk with --out. What was written before is kept; the same command goes on from there."
        ) from error
