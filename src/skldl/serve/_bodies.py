"""Bodies of requests and answers: JSON records, CSV and Parquet.

CSV is read by `skldl.data.TableFile` and written by `skldl.data.TableWriter`, so that an answer is what ``skldl
predict`` would have written. Parquet is read here, since a body of a few bytes can expand to gigabytes: sizes are
checked before cells are read.
"""

import io
import re
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import orjson
import pandas as pd

from skldl.data import TableFile, TableWriter, _formats
from skldl.exceptions import TableError
from skldl.serve._errors import Check, RequestError, go_on
from skldl.serve._model import Answer

JSON, CSV, PARQUET = "application/json", _formats.CSV.media_type, _formats.PARQUET.media_type
_TABLES = {format_.media_type: format_ for format_ in _formats.FORMATS if format_.media_type}
FORMATS = {"json": JSON} | {format_.name.lower(): media_type for media_type, format_ in _TABLES.items()}
_SYNONYMS = {"text/json": JSON} | {
    word: media_type for media_type, format_ in _TABLES.items() for word in format_.media_synonyms
}
_UNTYPED = ("", "application/octet-stream", "application/x-www-form-urlencoded")
DIGITS = 6
NAME = "the body"
PIECE_BYTES = 2**16
"""Long JSON bodies are parsed in pieces of about this size, so that the objects stay in the cache of the processor."""
PIECE_ROWS = 256
"""Rows of an answer that become JSON at a time, for the same reason."""
_BETWEEN_OBJECTS = re.compile(rb"\},[ \t\r\n]*\{")


class NotInPieces(Exception):
    """A JSON body must be read as a whole."""


def format_of_body(content_type: str, body: bytes) -> str:
    """Find out the media type of a body, by the header Content-Type or, where that says nothing, by its first bytes.

    Examples
    --------
    >>> format_of_body("text/csv; charset=utf-8", b"a,b"), format_of_body("", b"[{}]")
    ('text/csv', 'application/json')
    """
    word = content_type.partition(";")[0].strip().lower()
    if word in _UNTYPED:
        if (found := _formats.format_of_content(body)).first_bytes and found.media_type:
            return found.media_type
        if body.lstrip()[:1] in (b"[", b"{"):
            return JSON
        word = word or "none"
    word = _SYNONYMS.get(word, word)
    if word not in FORMATS.values():
        raise RequestError(415, f"Content-Type {word} is not known. Send one of {', '.join(FORMATS.values())}.")
    return word


def format_of_answer(accept: str, wanted: str, given: str) -> str:
    """Choose the media type of the answer: that of ``?format=`` or of the header Accept, else that of the request.

    Examples
    --------
    >>> format_of_answer("text/html, */*", "", "text/csv"), format_of_answer("application/json", "", "text/csv")
    ('text/csv', 'application/json')
    """
    if wanted:
        if wanted not in FORMATS:
            raise RequestError(400, f"format={wanted} is not known. Use one of {', '.join(FORMATS)}.")
        return FORMATS[wanted]
    if not accept or accept == "*/*" or accept == given:
        return given
    words = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    for word in words:
        if _SYNONYMS.get(word, word) in FORMATS.values():
            return _SYNONYMS.get(word, word)
    if any(word in ("*/*", "text/*", "application/*") for word in words):
        return given
    raise RequestError(406, f"Accept: {accept[:100]} cannot be met. Ask for one of {', '.join(FORMATS.values())}.")


def read_records(body: bytes, max_rows: int) -> list[Any]:
    """Parse a JSON body, a list of rows or one row. Whether each row is an object is checked later."""
    try:
        records = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"The body is not JSON: {error}. Send a list with one object for each row.") from None
    if isinstance(records, dict):
        return [records]
    if not isinstance(records, list):
        raise RequestError(422, "The body is JSON, but neither a list of objects, one for each row, nor one object.")
    check_n_rows(len(records), max_rows)
    return records


def record_pieces(body: bytes, max_rows: int, check: Check = go_on) -> Iterator[list[Any]]:
    """Parse a long JSON list of rows piece by piece; raise `NotInPieces` if the body must be read as a whole.

    The objects of all rows would take several times the memory of the body. The body is cut between two objects, at
    ``},{`` or ``}, {``. After a cut inside a text or a nested list, one of the pieces is not valid JSON; if all pieces
    are valid, so is the whole.
    """
    at, end = body.find(b"[") + 1, body.rfind(b"]")
    if at == 0 or end <= at or body[: at - 1].strip() or body[end + 1 :].strip():
        raise NotInPieces
    n_rows = 0
    while at < end:
        found = _BETWEEN_OBJECTS.search(body, at + PIECE_BYTES, end) if end - at > PIECE_BYTES else None
        last = end if found is None else found.start() + 1
        try:
            records: list[Any] = orjson.loads(b"[%b]" % body[at:last])
        except orjson.JSONDecodeError:
            raise NotInPieces from None
        if not records:
            raise NotInPieces
        n_rows += len(records)
        check_n_rows(n_rows, max_rows)
        check()
        yield records
        at = end if found is None else found.end() - 1


def read_table(
    body: bytes,
    kind: str,
    *,
    columns: Sequence[str],
    keep: Sequence[str],
    max_rows: int,
    max_columns: int,
    check: Check = go_on,
) -> pd.DataFrame:
    """Read a CSV or Parquet body, with the columns that the model needs and those to copy to the answer.

    Each column takes some 80 µs and 5 kB, whatever the number of rows: a header line of 4 MiB would take minutes.
    """
    max_columns = max(max_columns, 2 * len(columns))
    if kind == PARQUET:
        return _read_parquet(body, {*columns, *keep}, max_rows, max_columns)
    stream = io.BytesIO(body)
    stream.name = NAME
    with TableFile(stream) as table:
        check_n_columns(len(table.columns), max_columns)
        pieces, n_rows = [], 0
        for piece in table.chunks(text=set(keep) - set(columns)):
            check()
            n_rows += len(piece)
            check_n_rows(n_rows, max_rows)
            pieces.append(piece)
        if not pieces:
            return table.empty()
    return pieces[0] if len(pieces) == 1 else pd.concat(pieces)


def check_n_rows(n_rows: int, max_rows: int) -> None:
    """Raise an error for more rows than the service accepts in one request."""
    if n_rows > max_rows:
        raise RequestError(413, f"The body has more than {max_rows:,} rows. Send fewer at a time.")


def check_n_columns(n_columns: int, max_columns: int) -> None:
    """Raise an error for more columns than the service accepts in one request."""
    if n_columns > max_columns:
        raise RequestError(
            413, f"The body has {n_columns:,} columns, more than {max_columns:,}. Send those that the model needs."
        )


def _read_parquet(body: bytes, wanted: set[str], max_rows: int, max_columns: int) -> pd.DataFrame:
    """Read some columns of a Parquet body, and check their size first.

    Columns of text are read as dictionaries of their words, whose cells may take many times the memory.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    limit = max(2**26, 20 * len(body))  # 64 MiB, or 20 times the body: well-compressed tables stay below
    try:
        file = pq.ParquetFile(io.BytesIO(body))
        meta = file.metadata
        check_n_columns(meta.num_columns, max_columns)
        check_n_rows(meta.num_rows, max_rows)
        groups = [meta.row_group(number) for number in range(meta.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > limit:
            raise RequestError(
                413, f"The Parquet body would take more than {limit:,} bytes. Send fewer rows at a time."
            )
        schema = file.schema_arrow
        names = [name for name in dict.fromkeys(schema.names) if name in wanted]
        words = [name for name in names if _is_text(pa, schema.field(name).type)]
        table = pq.read_table(io.BytesIO(body), columns=names, read_dictionary=words, use_threads=False)
        check_n_rows(len(table), max_rows)
        for name in words:
            size = sum(
                pc.sum(pc.take(pc.cast(pc.binary_length(chunk.dictionary), pa.int64()), chunk.indices)).as_py() or 0
                for chunk in table.column(name).chunks
            )
            if size > limit:
                raise RequestError(
                    413, f"Column {name!r} of the Parquet body would take {size:,} bytes. Shorten its cells."
                )
            table = table.set_column(table.schema.get_field_index(name), name, table.column(name).cast(pa.string()))
        return table.to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, KeyError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise TableError(f"The body is not a readable Parquet file: {reason}.") from None


def _is_text(pa: Any, kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


def write_answer(answer: Answer, kind: str, digits: int = DIGITS) -> bytes:
    """Write predictions as a body. ``digits`` applies to numbers in CSV; JSON and Parquet keep all digits.

    Examples
    --------
    >>> write_answer(Answer({"yes": [0.25], "top": ["no"]}, 1, {}), "application/json")
    b'[{"yes":0.25,"top":"no"}]'
    """
    if kind == JSON:
        return b"[" + b",".join(_json_rows(answer)) + b"]"
    stream = io.BytesIO()
    stream.name = f"answer{_TABLES[kind].suffixes[0]}"
    with TableWriter(stream, digits=digits, exact=answer.kept) as writer:
        writer.write(pd.DataFrame(answer.columns))
    return stream.getvalue()


def _json_rows(answer: Answer) -> Iterator[bytes]:
    """Yield the objects of `PIECE_ROWS` rows at a time, separated by commas."""
    names, columns = list(answer.columns), list(answer.columns.values())
    for first in range(0, answer.n_rows, PIECE_ROWS):
        cells = zip(*(column[first : first + PIECE_ROWS] for column in columns), strict=True)
        yield orjson.dumps(list(map(dict, map(zip, repeat(names), cells))), default=str)[1:-1]
