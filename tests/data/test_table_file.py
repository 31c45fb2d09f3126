"""Tables from files: dialects, encodings, broken files, pipes, chunks."""

import io
import os
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skldl.data._table_file import Dialect
from skldl.exceptions import DataError, TableError
from skldl.tabular import Table

FRAME = pd.DataFrame({"name": ["Ärger, groß", "tea"], "price": [1.5, -0.25], "n": [3, 40]})


def write(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def r_style(frame):
    return frame.to_csv(sep=";", decimal=",", index=True).replace('""', "").encode()


@pytest.mark.parametrize(
    ("content", "dialect"),
    [
        (FRAME.to_csv(index=False).encode(), Dialect("utf-8", ",", ".")),
        (pl.from_pandas(FRAME).write_csv().encode(), Dialect("utf-8", ",", ".")),
        (FRAME.to_csv(index=False).encode("utf-8-sig"), Dialect("utf-8-sig", ",", ".")),
        (FRAME.to_csv(index=False).encode("cp1252"), Dialect("cp1252", ",", ".")),
        (FRAME.to_csv(index=False, sep="\t").encode("utf-16"), Dialect("utf-16", "\t", ".")),
        (FRAME.to_csv(index=False, sep=";", decimal=",").encode(), Dialect("utf-8", ";", ",")),
        (FRAME.to_csv(index=False, sep="|", lineterminator="\r\n").encode(), Dialect("utf-8", "|", ".")),
        (FRAME.to_csv(index=False, quoting=1).encode(), Dialect("utf-8", ",", ".")),
    ],
    ids=["pandas", "polars", "excel-bom", "windows", "utf16-tabs", "decimal-comma", "bar-crlf", "quoted"],
)
def test_dialects(tmp_path, content, dialect):
    table = Table(write(tmp_path, content))
    assert table.dialect == dialect
    frame = table.read()
    assert list(frame) == ["name", "price", "n"]
    assert frame["name"].tolist() == FRAME["name"].tolist()
    np.testing.assert_array_equal(frame["price"].astype(float), FRAME["price"])


def test_row_names_of_r(tmp_path):
    """R's write.csv2: semicolons, decimal commas, and row names under an empty heading."""
    frame = Table(write(tmp_path, '"";"a";"b"\n"1";0,5;"x"\n"2";1,25;"y"\n')).read()
    assert list(frame) == ["Unnamed: 0", "a", "b"]
    assert frame["a"].tolist() == ["0.5", "1.25"]


def test_thousands_with_a_decimal_comma(tmp_path):
    frame = Table(write(tmp_path, "a;b\n1.234,5;1,5 kg\n-3,25e2;x\n")).read()
    assert frame["a"].tolist() == ["1234.5", "-3.25e2"]
    assert frame["b"].tolist() == ["1,5 kg", "x"]


@pytest.mark.parametrize("make", [lambda f, p: f.to_parquet(p), lambda f, p: pl.from_pandas(f).write_parquet(p)])
def test_parquet(tmp_path, make):
    path = tmp_path / "t.parquet"
    make(FRAME, path)
    table = Table(path)
    assert table.dialect is None
    assert table.columns == list(FRAME)
    chunks = list(table.chunks(rows=1))
    assert [chunk.index[0] for chunk in chunks] == [0, 1]
    assert table.share_read() == 1
    pd.testing.assert_frame_equal(pd.concat(chunks), FRAME, check_dtype=False)
    with Table(path) as again:
        assert list(again.nothing()) == list(FRAME)


def test_parquet_with_an_index_of_pandas(tmp_path):
    """Row numbers left over from a filter are no column; an index with a name is one."""
    path = tmp_path / "t.parquet"
    FRAME.iloc[[1, 0]].to_parquet(path)
    table = Table(path)
    assert table.columns == list(FRAME)
    assert table.read()["n"].tolist() == [40, 3]
    FRAME.set_index("name").to_parquet(path)
    with Table(path) as table:
        assert sorted(table.columns) == sorted(table.nothing()) == sorted(FRAME)
        assert table.read()["n"].tolist() == [3, 40]


def test_missing_cells_quotes_and_lines_in_cells(tmp_path):
    frame = Table(write(tmp_path, 'a,b\nNA,"x, y"\n,"two\nlines"\n"say ""hi""",null\n')).read()
    assert frame["a"].isna().tolist() == [True, True, False]
    assert frame["a"].iloc[2] == 'say "hi"'
    assert frame["b"].tolist()[:2] == ["x, y", "two\nlines"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("  \n\n", "is empty"),
        ("a,b\n", "has a header but no rows"),
        ("a,b,a\n1,2,3\n", "two columns called 'a'"),
        ("a,,b\n1,2,3\n", "column 2 has no name"),
        ("a,b\n1,2\n1,2,3\n", r"line 3 has 3 fields, the header 2.*quotation marks"),
        ("a,b\n1,2,3\n4,5,6\n7,8,9\n", "more fields than the header|has 3 fields"),
        (b"a,b\n\x00\x01,2\n", "neither text nor Parquet"),
        (b"PAR1 but not really", "starts like a Parquet file"),
        (b"a,b\n" + "é".encode() * 5 + b"\xff\x81\x8d,2\n" * 3, "is not all cp1252|cannot be read"),
        ('a,b\n"never closed,2\n3,4\n', "cannot be read as a table"),
    ],
)
def test_broken_files_are_told(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(TableError, match=message):
        Table(path).read()


def test_bytes_that_break_after_the_sample(tmp_path):
    path = write(tmp_path, b"a,b\n" + b"1,2\n" * 100_000 + b"\xff\xfe\xfd,2\n")
    with pytest.raises(TableError, match="is not all utf-8"):
        Table(path).read()


def test_a_damaged_parquet_file(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": np.random.default_rng(0).random(50_000)}).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)
    with pytest.raises(TableError, match="cannot be read"):
        Table(path).read()


def test_places_without_a_table(tmp_path):
    with pytest.raises(TableError, match="is a folder"):
        Table(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nothing\.csv"):
        Table(tmp_path / "nothing.csv")


def test_chunks_count_rows_through_the_file(tmp_path):
    path = write(tmp_path, "a\n" + "\n".join(str(i) for i in range(10)) + "\n")
    table = Table(path)
    assert table.share_read() == 0
    chunks = list(table.chunks(rows=4))
    assert [list(chunk.index) for chunk in chunks] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert table.share_read() == 1


def feed(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_standard_input(monkeypatch, tmp_path):
    feed(monkeypatch, b"a;b\n1,5;x\n")
    table = Table("-")
    assert table.name == "standard input"
    assert table.share_read() is None
    assert table.read().to_dict("records") == [{"a": "1.5", "b": "x"}]
    FRAME.to_parquet(tmp_path / "t.parquet")
    feed(monkeypatch, (tmp_path / "t.parquet").read_bytes())
    assert Table("-").read()["n"].tolist() == [3, 40]
    feed(monkeypatch, b"")
    with pytest.raises(TableError, match="standard input is empty"):
        Table("-")


def read_from_pipe(tmp_path, pieces):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write_slowly():
        with open(pipe, "wb", buffering=0) as stream:
            for piece in pieces:
                stream.write(piece)

    writer = threading.Thread(target=write_slowly)
    writer.start()
    frame = Table(pipe).read()
    writer.join()
    return frame


def test_a_named_pipe_that_is_written_slowly(tmp_path):
    frame = read_from_pipe(tmp_path, [b"a,", b"b\n1", b",2\n3,4\n"])
    assert frame.to_numpy().tolist() == [["1", "2"], ["3", "4"]]


def test_parquet_through_a_pipe(tmp_path):
    big = pd.DataFrame({"a": np.random.default_rng(0).random(100_000)})
    big.to_parquet(tmp_path / "t.parquet")
    frame = read_from_pipe(tmp_path, [(tmp_path / "t.parquet").read_bytes()])
    pd.testing.assert_frame_equal(frame, big)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_while_pandas_reads_is_not_lost(tmp_path, monkeypatch, error):
    table = Table(write(tmp_path, b"a,b\n" + b"1,2\n" * 100_000))

    def interrupt(size):
        raise error

    monkeypatch.setattr(table, "_source", SimpleNamespace(close=table._source.close))
    table._again._rest = SimpleNamespace(read=interrupt)
    with pytest.raises(error):
        table.read()


def test_an_error_of_pandas_itself_is_not_hidden(tmp_path, monkeypatch):
    table = Table(write(tmp_path, "a,b\n1,2\n"))
    monkeypatch.setattr(pd, "read_csv", lambda *arguments, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        table.read()


def test_a_huge_cell_does_not_break_the_sniffing(tmp_path):
    path = write(tmp_path, 'a,b\n1,"' + "x" * 200_000 + '"\n')
    assert len(Table(path).read()["b"].iloc[0]) == 200_000


def test_errors_are_data_errors():
    assert issubclass(TableError, DataError)


def test_a_csv_table_without_rows(tmp_path):
    with Table(write(tmp_path, "a,b\n")) as table:
        assert list(table.nothing()) == ["a", "b"]
        assert not sum(len(chunk) for chunk in table.chunks())
