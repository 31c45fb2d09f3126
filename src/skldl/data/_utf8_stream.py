"""The text of a CSV file of any encoding as Arrow requires it: UTF-8."""

import codecs
import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import IO

from skldl.data._dialect import Beginning, not_text, split_lines
from skldl.exceptions import TableError


class Utf8Stream:
    """What follows the header of a CSV file, as UTF-8; reading happens in the thread that iterates.

    Attributes
    ----------
    n_bytes : int
        How many bytes of the file have been read.
    ends_with_newline : bool
        Whether the last piece ended with a line break.
    """

    def __init__(self, begun: Beginning, start: bytes, source: IO[bytes], name: str) -> None:
        self._begun, self._start, self._source, self._name = begun, start, source, name
        self.n_bytes = 0
        self.ends_with_newline = True

    def __iter__(self) -> Iterator[bytes]:
        separator = self._begun.dialect.separator
        texts: Iterator[str] = self._texts()
        if re.search(rf'{re.escape(separator)} +"', self._begun.rest):  # Arrow wants quotation marks without blanks
            texts = _requoted(texts, separator, self._name)
        return (text.encode() for text in texts)

    def _texts(self) -> Iterator[str]:
        encoding = self._begun.dialect.encoding
        decoder = codecs.getincrementaldecoder(encoding)()
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
                raise not_text(self._name, encoding, line) from error
        if text:
            yield text


def _requoted(texts: Iterable[str], separator: str, name: str) -> Iterator[str]:
    """The same table, in pieces of whole rows, without blanks between a separator and a quotation mark."""
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
