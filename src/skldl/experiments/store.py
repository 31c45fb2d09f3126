"""Durable records: one JSON object on one line per task, appended completely or not at all.

A line reaches the file by a single write to a descriptor opened for appending, and is forced to the disk before the
next task is counted as done. A process killed at any moment leaves whole lines and at most one torn last line.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skldl.exceptions import Parameter, RecordsError

try:
    import fcntl
except ImportError:  # Windows: writing is as safe, but two processes can write to one folder
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

FORMAT = 2
FILE_NAME = "records.jsonl"
Record = dict[str, Any]


def encode(record: Mapping[str, Any]) -> bytes:
    """Write a record as one line that ends with its checksum. JSON has no infinity: such numbers become text.

    Examples
    --------
    >>> encode({"clark": 0.5, "kullback_leibler": float("inf")})
    b'{"clark": 0.5, "kullback_leibler": "inf", "checksum": "..."}\\n'
    """
    ready = {key: value for key, value in json_ready(record).items() if key != "checksum"}
    return (_text(ready | {"checksum": checksum(ready)}) + "\n").encode()


def checksum(record: Mapping[str, Any]) -> str:
    """Hash all of a record but its checksum."""
    text = _text({key: value for key, value in record.items() if key != "checksum"})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False)


def json_ready(value: Any) -> Any:
    """Plain values that JSON can hold; infinity and NaN as text, tuples as lists."""
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def read_records(path: Path) -> tuple[list[Record], bytes]:
    """Read a record file: its records, the header first, and the torn last line if the writing process was killed."""
    if not path.is_file():
        raise RecordsError(f"There are no records in {path.parent}: {path} does not exist.")
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    records: list[Record] = []
    for number, line in enumerate(content[:end].splitlines(), start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or "kind" not in record or not _is_whole(record):
            raise RecordsError(
                f"Line {number} of {path} is not a record: the file was changed or damaged after it was written. "
                "Delete this line to run its task again with ",
                Parameter("resume", True),
                ", or start in another folder.",
            )
        records.append(record)
    if records:
        _check_header(records[0], path)
    return records, content[end:]


def _is_whole(record: Record) -> bool:
    """Whether the checksum of a record is right; the checksum is removed from the record."""
    found = record.pop("checksum", None)
    return bool(found == checksum(record))


def _check_header(header: Record, path: Path) -> None:
    if header["kind"] != "header":
        raise RecordsError(f"{path} does not begin with the header of a study: it is not a record file of skldl bench.")
    if header.get("format") != FORMAT:
        raise RecordsError(
            f"{path} has record format {header.get('format')}, written by scikit-ldl {header.get('skldl')}; this "
            f"version reads format {FORMAT}. Use that version, or run the study again in another "
            "folder."
        )


class MemoryStore:
    """Records that live as long as the process."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.notices: list[str] = []

    def append(self, record: Mapping[str, Any]) -> None:
        """Keep a record."""
        self._keep(encode(record))

    def _keep(self, line: bytes) -> None:
        record = json.loads(line)
        del record["checksum"]
        self.records.append(record)

    def close(self) -> None:
        """Do nothing: there is no file."""


class FileStore(MemoryStore):
    """Records in a file, which no other process can write at the same time.

    With ``resume``, records that are there are continued; otherwise there must be none. A file
    without a whole record, left by a process that was killed when it began, holds none.
    """

    def __init__(self, folder: Path, *, resume: bool) -> None:
        super().__init__()
        self.path = folder / FILE_NAME
        if not resume and self.path.exists() and b"\n" in self.path.read_bytes():
            raise RecordsError(
                f"{self.path} holds the records of a study. Continue it with ",
                Parameter("resume", True),
                ", or name another folder.",
            )
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(self.path, flags, 0o644)
        try:
            self._lock()
            self.records, torn = read_records(self.path)
            if torn:
                self._cut_off(torn)
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RecordsError(
                f"Another process is writing {self.path}. Wait until it ends, or name another folder."
            ) from None

    def _cut_off(self, torn: bytes) -> None:
        """Remove a torn last line, and keep its bytes in a second file."""
        aside = self.path.with_suffix(".torn")
        with aside.open("ab") as stream:
            stream.write(torn + b"\n")
        os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - len(torn))
        os.fsync(self._descriptor)
        self.notices.append(
            f"The last line of {self.path} was torn: the writing process was killed. Its {len(torn)} bytes are now in "
            f"{aside.name}; its task runs again."
        )

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a record: afterwards the whole of it is on the disk."""
        line = encode(record)
        size = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes could be written")
            os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, size)
            raise RecordsError(
                f"Could not append to {self.path}: {error}. The records so far are safe. Free space, then use ",
                Parameter("resume", True),
                ".",
            ) from error
        self._keep(line)

    def close(self) -> None:
        """Close the file and release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
