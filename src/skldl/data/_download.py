"""Files of datasets: search in folders, and downloads with limits of size and time."""

import hashlib
import os
import struct
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from skldl.exceptions import DatasetError, DatasetNotFoundError, Parameter

FOLDER_VARIABLE = "SKLDL_DATA"
MAX_BYTES = 200 * 2**20
MAX_SECONDS = 600.0
MAX_UNPACKED = 2 * 2**30  # of a compressed MATLAB file
_COMPRESSED = 15  # type of a compressed element in a MATLAB 5 file
_CONNECTION_TIMEOUT = 30
_PIECE = 65_536


def cache_folder() -> Path:
    """Default folder of `fetch_dataset`."""
    import pooch  # imported only to search or download a file

    return Path(pooch.os_cache("skldl"))


def find_in_folders(
    look: Callable[[Path], Path | None], file_name: str, data_home: Any, download: str, terms: str
) -> Path:
    """Find a file in the first folder that has it; the error lists the folders and how to get the file.

    ``look`` returns the file in a folder, or None; ``download`` is the call that downloads it.
    """
    places = [
        ("data_home", data_home),
        (f"the environment variable {FOLDER_VARIABLE}", os.environ.get(FOLDER_VARIABLE) or None),
        ("the cache", cache_folder()),
    ]
    looked = []
    for called, place in places:
        if place is None:
            looked.append(f"{called} is not set")
            continue
        folder = Path(place).expanduser()
        path = look(folder)
        if path is not None:
            return path
        looked.append(f"{called}: {folder}{'' if folder.is_dir() else ' (no such folder)'}")
    raise DatasetNotFoundError(
        f"{file_name} was not found ({'; '.join(looked)}). Download it with {download}, or set {FOLDER_VARIABLE} to "
        f"the folder that holds it. {terms}"
    )


def download(url: str, path: Path, *, max_bytes: int | None = None) -> None:
    """Download an address to a file, in at most `MAX_SECONDS` and with at most ``max_bytes`` (default `MAX_BYTES`).

    The transfer runs in a separate thread, so that the time limit includes name resolution, connection, headers and
    slow servers. Compressed transfers raise an error, since their unpacked size is not known in advance. A failure
    raises `OSError` with the reason; then the content of the file is undefined, so use a temporary folder.
    """
    limit = MAX_BYTES if max_bytes is None else max_bytes
    cancelled = threading.Event()
    failure: list[BaseException] = []
    # not opened in the thread, which could otherwise create a file in a removed folder after an interrupt
    stream = path.open("wb")

    def transfer() -> None:
        try:
            with stream:
                _transfer(url, stream, limit, cancelled)
        except BaseException as error:  # raised again by the caller's thread
            failure.append(error)

    thread = threading.Thread(target=transfer, name="skldl-download", daemon=True)
    thread.start()
    try:
        thread.join(MAX_SECONDS)
    finally:
        cancelled.set()  # also when the user interrupts
    if thread.is_alive():
        raise OSError(f"it took more than {MAX_SECONDS:g} seconds")
    if failure:
        raise failure[0]


def _transfer(url: str, stream: IO[bytes], max_bytes: int, cancelled: threading.Event) -> None:
    import requests  # slow to import; a dependency of pooch

    headers = {"Accept-Encoding": "identity"}
    with requests.get(url, stream=True, timeout=_CONNECTION_TIMEOUT, headers=headers) as response:
        response.raise_for_status()
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise OSError(f"the server sent it with the content encoding {encoding!r}, which was not asked for")
        announced = response.headers.get("Content-Length", "")
        if announced.isdigit() and int(announced) > max_bytes:
            raise OSError(f"it has {int(announced):,} bytes, more than the limit of {max_bytes:,}")
        received = 0
        while not cancelled.is_set():
            piece = _next_piece(response.raw)
            if not piece:
                break
            received += len(piece)
            if received > max_bytes:
                raise OSError(f"it has more bytes than the limit of {max_bytes:,}")
            stream.write(piece)
        if announced.isdigit() and received != int(announced) and not cancelled.is_set():
            raise OSError(f"the connection broke off after {received:,} of {int(announced):,} bytes")


def _next_piece(raw: Any) -> bytes:
    """The bytes that have arrived, or with an old urllib3 a complete piece."""
    try:
        read = raw.read1 if hasattr(raw, "read1") else raw.read
        return bytes(read(_PIECE, decode_content=False))
    except OSError:
        raise
    except Exception as error:  # errors of urllib3 are not derived from OSError
        raise OSError(f"{type(error).__name__}: {error}") from error


def fetch_whole(
    url: str, path: Path, check: Callable[[Path], None], *, hint: str, max_bytes: int | None = None
) -> None:
    """Download a file to a temporary folder, check it, and move it to its path.

    ``check`` raises `DatasetError` if the file is not the expected one; ``hint`` is advice for users without a network,
    for the message.
    """
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # the thread of a download that timed out may still have its file open
        workplace = tempfile.TemporaryDirectory(prefix=".skldl-", dir=folder, ignore_cleanup_errors=True)
    except OSError as error:
        raise DatasetError(
            f"{folder} cannot be written to ({error.strerror or error}). Name another folder with ",
            Parameter("data_home"),
            ".",
        ) from error
    with workplace as temporary:
        part = Path(temporary, path.name)
        try:
            download(url, part, max_bytes=max_bytes)
        except (OSError, ValueError) as error:  # no network, no such page, connection lost, invalid address
            raise DatasetError(
                f"{url} could not be downloaded ({short_reason(error)}). Nothing was written. Without a network: get "
                f"the file on another machine and {hint}"
            ) from error
        try:
            check(part)
        except DatasetError as error:
            reason = str(error).replace(str(part), part.name)
            raise DatasetError(f"The file from {url} was deleted: {reason}") from error
        os.replace(part, path)


def check_sha256(path: Path, sha256: str, hint: str, of: str = "") -> None:
    """Raise an error if the checksum of a file differs from the published one."""
    with path.open("rb") as stream:
        got = hashlib.file_digest(stream, "sha256").hexdigest()
    if got != sha256:
        raise DatasetError(f"{path} is not the published file{of}: its sha256 is {got}, not {sha256}. {hint}")


def check_unpacked_size(path: Path, max_unpacked: int | None = None) -> None:
    """Raise an error if the compressed parts of a MATLAB file unpack to more than a limit, `MAX_UNPACKED` by default.

    They are unpacked piece by piece and discarded, so that little memory is used. Files of other formats pass: their
    reader raises an error.
    """
    limit = MAX_UNPACKED if max_unpacked is None else max_unpacked
    unpacked = 0
    with path.open("rb") as stream:
        header = stream.read(128)
        if len(header) < 128 or header[126:128] not in (b"IM", b"MI"):
            return
        order = "<" if header[126:128] == b"IM" else ">"
        while len(tag := stream.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            if kind != _COMPRESSED:
                stream.seek(size, os.SEEK_CUR)
                continue
            for length in _unpacked_lengths(stream, size):
                unpacked += length
                if unpacked > limit:
                    raise DatasetError(f"{path} unpacks to more than {limit:,} bytes, far more than any known dataset.")


def _unpacked_lengths(stream: Any, size: int) -> Iterator[int]:
    """Yield the lengths of the unpacked pieces of a compressed part, up to a damaged piece."""
    unpacker = zlib.decompressobj()
    left = size
    while left > 0 and (packed := stream.read(min(_PIECE, left))):
        left -= len(packed)
        while packed:
            try:
                yield len(unpacker.decompress(packed, _PIECE * 16))
            except zlib.error:
                stream.seek(left, os.SEEK_CUR)
                return
            packed = unpacker.unconsumed_tail


def short_reason(error: Exception) -> str:
    """The message of an error on one line of at most 200 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}…"
