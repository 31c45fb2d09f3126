"""Bodies of requests and answers: JSON records, CSV and Parquet.

CSV is read by `skldl.data.TableFile` and written as `skldl.data.TableWriter` writes it, so that an answer is what
``skldl predict`` would have written. Parquet is read here, since a body of a few bytes can describe gigabytes: sizes
are checked before cells are made.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import orjson
import pandas as pd

from skldl.data import TableFile, TableWriter, _formats
from skldl.exceptions import TableError
from skldl.serve._errors import RequestError
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
PIECE = 2**16
"""Long JSON bodies are read about this many bytes at a time, and written `ROWS_AT_A_TIME` rows at a time."""
ROWS_AT_A_TIME = 256
_BETWEEN_OBJECTS = re.compile(rb"\},[ \t\r\n]*\{")


class NotInPieces(Exception):
    """A JSON body that must be read as a whole."""


def format_of_body(content_type: str, body: bytes) -> str:
    """Find out the media type of a body: by the header, or by its first bytes if a program sent no informative one.

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
    """The rows of a JSON body, a list of objects or one object; they need not be objects here."""
    try:
        records = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"The body is no JSON: {error}. Send a list with one object for each row.") from None
    if isinstance(records, dict):
        return [records]
    if not isinstance(records, list):
        raise RequestError(422, "The body is JSON, but neither a list of objects, one for each row, nor one object.")
    check_n_rows(len(records), max_rows)
    return records


def record_pieces(body: bytes, max_rows: int) -> Iterator[list[Any]]:
    """The rows of a long JSON list, some at a time; `NotInPieces` is raised if the body must be read as a whole.

    The objects of all rows would take several times the memory of the body, and more time than those of a few rows that
    stay in the cache of the processor. The body is cut between two objects, at ``},{`` or ``}, {``. A cut inside a text
    or a nested list leaves a piece that is no JSON; if all pieces are, so is the whole.
    """
    at, end = body.find(b"[") + 1, body.rfind(b"]")
    if at == 0 or end <= at or body[: at - 1].strip() or body[end + 1 :].strip():
        raise NotInPieces
    n_rows = 0
    while at < end:
        found = _BETWEEN_OBJECTS.search(body, at + PIECE, end) if end - at > PIECE else None
        last = end if found is None else found.start() + 1
        try:
            records: list[Any] = orjson.loads(b"[%b]" % body[at:last])
        except orjson.JSONDecodeError:
            raise NotInPieces from None
        if not records:
            raise NotInPieces
        n_rows += len(records)
        check_n_rows(n_rows, max_rows)
        yield records
        at = end if found is None else found.end() - 1


def read_table(body: bytes, kind: str, *, columns: Sequence[str], keep: Sequence[str], max_rows: int) -> pd.DataFrame:
    """The rows of a CSV or Parquet body with the columns that the model needs and those to copy to the answer."""
    if kind == PARQUET:
        return _read_parquet(body, {*columns, *keep}, max_rows)
    stream = io.BytesIO(body)
    stream.name = NAME
    with TableFile(stream) as table:
        pieces, n_rows = [], 0
        for piece in table.chunks(text=set(keep) - set(columns)):
            n_rows += len(piece)
            check_n_rows(n_rows, max_rows)
            pieces.append(piece)
        if not pieces:
            return table.empty()
    return pieces[0] if len(pieces) == 1 else pd.concat(pieces)


def check_n_rows(n_rows: int, max_rows: int) -> None:
    """Refuse more rows than the service accepts in one request."""
    if n_rows > max_rows:
        raise RequestError(413, f"The body has more than {max_rows:,} rows. Send fewer at a time.")


def _read_parquet(body: bytes, wanted: set[str], max_rows: int) -> pd.DataFrame:
    """Read the columns that are wanted, text as dictionaries first: their cells may be many times their size."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    limit = max(2**26, 20 * len(body))
    try:
        file = pq.ParquetFile(io.BytesIO(body))
        meta = file.metadata
        check_n_rows(meta.num_rows, max_rows)
        groups = [meta.row_group(place) for place in range(meta.num_row_groups)]
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
        raise TableError(f"The body is no Parquet file that can be read: {reason}.") from None


def _is_text(pa: Any, kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


def write_answer(answer: Answer, kind: str, digits: int = DIGITS) -> bytes:
    """Write predictions as a body; the digits are those of numbers in CSV, since JSON and Parquet keep all.

    Examples
    --------
    >>> write_answer(Answer({"yes": [0.25], "top": ["no"]}, 1, {}), "application/json")
    b'[{"yes":0.25,"top":"no"}]'
    """
    if kind == JSON:
        return b"[" + b",".join(_json_rows(answer)) + b"]"
    if kind == CSV and not answer.kept and (text := _quick_csv(answer, digits)) is not None:
        return text
    stream = io.BytesIO()
    stream.name = f"answer{_TABLES[kind].suffixes[0]}"
    with TableWriter(stream, digits=digits, exact=answer.kept) as writer:
        writer.write(pd.DataFrame(answer.columns))
    return stream.getvalue()


def _json_rows(answer: Answer) -> Iterator[bytes]:
    """Objects of some rows at a time, separated by commas."""
    names, columns = list(answer.columns), list(answer.columns.values())
    for first in range(0, answer.n_rows, ROWS_AT_A_TIME):
        cells = zip(*(column[first : first + ROWS_AT_A_TIME] for column in columns), strict=True)
        yield orjson.dumps(list(map(dict, map(zip, repeat(names), cells))), default=str)[1:-1]


def _quick_csv(answer: Answer, digits: int) -> bytes | None:
    """What `TableWriter` writes for floats and text, several times faster; None if there are other cells."""
    quoted: dict[str, str] = {}
    cells, template = [], []
    for column in answer.columns.values():
        kinds = set(map(type, column))
        if kinds <= {float}:
            if any(value != value for value in column):  # an empty cell
                return None
            template.append(f"%.{digits}g")
        elif kinds == {str}:
            quoted |= {word: _csv_line([word]) for word in set(column) - quoted.keys()}
            column = [quoted[word] for word in column]
            template.append("%s")
        else:
            return None
        cells.append(column)
    pattern = ",".join(template) + "\n"
    return (_csv_line(list(answer.columns)) + "\n" + "".join(map(pattern.__mod__, zip(*cells, strict=True)))).encode()


def _csv_line(words: list[str]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(words)
    return stream.getvalue()
