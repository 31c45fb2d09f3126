"""The text of a CSV file as Arrow takes it: UTF-8, whatever the encoding, with a mark at its end."""

import codecs
import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any

from skldl.data._dialect import Beginning, not_text, split_lines
from skldl.exceptions import TableError

END_OF_TABLE = "\x04end of table\x04"
"""First cell of a last row of our own: if it is missing, an open quotation mark has swallowed it."""


class Utf8Stream(io.RawIOBase):
    """What follows the header as UTF-8, then a row of our own; it remembers why reading failed."""

    def __init__(self, begun: Beginning, start: bytes, source: IO[bytes], name: str) -> None:
        self._begun, self._start, self._source, self._name = begun, start, source, name
        self._ready = b""
        texts = self._texts()
        separator = begun.dialect.separator
        if re.search(rf'{re.escape(separator)} +"', begun.rest):  # Arrow takes quotation marks only without blanks
            texts = _requoted(texts, separator, name)
        self._blocks = (text.encode() for text in texts)
        self.n_bytes = 0
        self.ends_with_newline = True
        self.failure: BaseException | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            while not self._ready:
                self._ready = next(self._blocks)
        except StopIteration:
            return 0
        except BaseException as error:
            self.failure = error
            raise
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _texts(self) -> Iterator[str]:
        dialect = self._begun.dialect
        decoder = codecs.getincrementaldecoder(dialect.encoding)()
        decoder.decode(self._start)
        text, block = self._begun.rest, self._start
        n_lines = self._begun.n_lines
        while block:
            self.n_bytes += len(block)
            if text:
                self.ends_with_newline = text[-1] in "\r\n"
                n_lines += text.count("\n")
                yield text
            block = self._source.read(2**20)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError as error:
                line = 1 + n_lines + block.count(b"\n", 0, getattr(error, "start", 0))
                raise not_text(self._name, dialect.encoding, line) from error
        end = f"{END_OF_TABLE}{dialect.separator * (len(self._begun.columns) - 1)}\n"
        yield end if self.ends_with_newline else f"\n{end}"


def _requoted(texts: Iterable[str], separator: str, name: str) -> Iterator[str]:
    """The same table with quotation marks that stand right behind a separator, without blanks.

    Parameters
    ----------
    texts : iterable of str
        The table, in pieces of any length.
    separator : str
        What stands between two cells.
    name : str
        What messages call the file.

    Yields
    ------
    str
        The table, in pieces of whole rows.
    """
    reader = csv.reader(_lines(texts), delimiter=separator, skipinitialspace=True)
    try:
        while rows := list(itertools.islice(reader, 1000)):
            piece = io.StringIO()
            csv.writer(piece, delimiter=separator, lineterminator="\n").writerows(rows)
            yield piece.getvalue()
    except csv.Error as error:
        raise TableError(
            f"{name}: line {reader.line_num} below the header cannot be cut into cells ({error})."
        ) from error


def _lines(texts: Iterable[str]) -> Iterator[str]:
    unfinished = ""
    for text in texts:
        *lines, unfinished = split_lines(unfinished + text) or [""]
        if unfinished.endswith("\n"):
            lines, unfinished = [*lines, unfinished], ""
        yield from lines
    if unfinished:
        yield unfinished
