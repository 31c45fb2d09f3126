"""Tables that come in pieces, through pipes, or broken."""

import io
import os
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from skldl.data import TableFile
from skldl.exceptions import TableError

FRAME = pd.DataFrame({"name": ["Ärger, groß", "tea"], "price": [1.5, -0.25], "n": [3, 40]})


def write(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def feed(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def read_from_pipe(tmp_path, pieces):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write_slowly():
        with open(pipe, "wb", buffering=0) as stream:
            for piece in pieces:
                stream.write(piece)

    writer = threading.Thread(target=write_slowly)
    writer.start()
    frame = TableFile(pipe).read()
    writer.join()
    return frame


def test_chunks_count_rows_through_the_file(tmp_path):
    path = write(tmp_path, "a\n" + "\n".join(str(i) for i in range(10)) + "\n")
    table = TableFile(path)
    assert table.fraction_read() == 0
    chunks = list(table.chunks(rows=4))
    assert [list(chunk.index) for chunk in chunks] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert table.fraction_read() == 1


def test_short_lines_are_cut_into_few_rows_at_a_time(tmp_path):
    """Eight megabytes of them would be half a million rows, whose cells take many times the memory of the text."""
    path = write(tmp_path, "a,b,c\n" + "17.5,Ulm,yes\n" * 300_000)
    with TableFile(path) as table:
        sizes = [len(batch) for batch in table._reader._rows.batches(1000)]
    assert sum(sizes) == 300_000
    assert max(sizes) <= 2**20 // len("17.5,Ulm,yes\n") + 1  # what is read from the file at once


def test_standard_input(monkeypatch, tmp_path):
    feed(monkeypatch, b"a;b\n1,5;x\n")
    table = TableFile("-")
    assert table.name == "standard input"
    assert table.fraction_read() is None
    assert table.read().to_dict("records") == [{"a": 1.5, "b": "x"}]
    FRAME.to_parquet(tmp_path / "t.parquet")
    feed(monkeypatch, (tmp_path / "t.parquet").read_bytes())
    assert TableFile("-").read()["n"].tolist() == [3, 40]
    feed(monkeypatch, b"")
    with pytest.raises(TableError, match="standard input is empty"):
        TableFile("-")


def test_a_named_pipe_that_is_written_slowly(tmp_path):
    frame = read_from_pipe(tmp_path, [b"a,", b"b\n1", b",2\n3,4\n"])
    assert frame.to_numpy().tolist() == [[1, 2], [3, 4]]


def test_parquet_through_a_pipe(tmp_path):
    big = pd.DataFrame({"a": np.random.default_rng(0).random(100_000)})
    big.to_parquet(tmp_path / "t.parquet")
    frame = read_from_pipe(tmp_path, [(tmp_path / "t.parquet").read_bytes()])
    pd.testing.assert_frame_equal(frame, big)


class Dripping(io.BytesIO):
    """A stream that returns few bytes at a time."""

    def __init__(self, content, size):
        super().__init__(content)
        self.size = size

    def read(self, size):
        return super().read(self.size)


def test_pieces_end_with_rows_wherever_lines_break(monkeypatch):
    """Line breaks inside quotation marks, and marks inside cells, at every place relative to the ends of pieces."""
    monkeypatch.setattr("skldl.data._csv.BLOCK_BYTES", 1)
    monkeypatch.setattr("skldl.data._tables.SAMPLE_LINES", 1)
    expected = pd.DataFrame({"a": range(300), "b": ["x\n" * (i % 7) + '6" pipe' for i in range(300)]})
    content = expected.to_csv(index=False)
    for size in (7, 64, 1000):
        monkeypatch.setattr("skldl.data._tables.SAMPLE_BYTES", size)
        table = TableFile(Dripping(content.encode(), size))
        pd.testing.assert_frame_equal(table.read(), expected, check_dtype=False)


def test_a_huge_cell_does_not_break_the_sniffing(tmp_path):
    path = write(tmp_path, 'a,b\n1,"' + "x" * 200_000 + '"\n')
    assert len(TableFile(path).read()["b"].iloc[0]) == 200_000


def test_bytes_that_break_after_the_sample(tmp_path):
    path = write(tmp_path, b"a,b\n" + b"1,2\n" * 100_000 + b"\xff\xfe\xfd,2\n")
    with pytest.raises(TableError, match="line 100002 is not utf-8 text"):
        TableFile(path).read()


def test_a_damaged_parquet_file(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": np.random.default_rng(0).random(50_000)}).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)
    with pytest.raises(TableError, match="cannot be read"):
        TableFile(path).read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("  \n\n", "is empty"),
        ("a,b\n", "has a header but no rows"),
        ("a,b,a\n1,2,3\n", "two columns called 'a'"),
        ("a,,b\n1,2,3\n", "column 2 has no name"),
        ("a,b\n1,2\n1,2,3\n", r"line 3 has 3 cells, the header 2.*quotation marks"),
        ("a,b\n1,2,3\n4,5,6\n7,8,9\n", "line 2 has 3 cells"),
        (b"a,b\n\x00\x01,2\n", "is not text. Export the table as CSV, TSV or Parquet"),
        (b"PAR1 but not really", "cannot be read as Parquet"),
        (b"a,b\n" + "é".encode() * 5 + b"\xff\x81\x8d,2\n" * 3, "line 2 is not cp1252 text"),
        ('a,b\n"never closed,2\n3,4\n', "is never closed"),
    ],
)
def test_broken_files_are_told(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(TableError, match=message):
        TableFile(path).read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3\n4,5\n", "line 3 has 1 cells, the header 2"),
        ('a,b\n1,"x\ny"\n\n3\n4,5\n', "line 5 has 1 cells, the header 2"),
        ("sep=,\na,b\n1,2\n3\n", "line 4 has 1 cells, the header 2"),
        ('a,b\n1,2\n3,"cut he', "line 3 has a cell that opens with a quotation mark, which is never closed"),
        ('a,b\n1,2\n3,"cut\nhere,5\n6,7\n', "line 3 has a cell.* never closed"),
        ('"a,b\n1,2\n3,4\n', "line 1 has a cell.* never closed"),
        ('"a,b\n1,2\n"x,3\n', "line 3 has text .*, which opens in line 1"),
        ("a,b,c\n1,2,3\n4,5", "line 3 has 2 cells, the header 3"),
    ],
)
def test_short_rows_and_files_cut_off_are_refused(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(TableError, match=message):
        TableFile(path).read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('a,b\n"wow,1\nx,2\ny,3\n"wow,4\nz,5\n', "line 5 has text after the closing .*, which opens in line 2"),
        ('a,b\n1,"wow\n\n2,x\n3,"wow\n', "line 5 has text .*, which opens in line 2"),
        ('a,b\n1,"x\ny"\n2,"x\ny"z\n', "line 5 has text .*, which opens in line 4"),
        ('a,b\r\n1,2\r\n3,"x"y\r\n', "line 3 has text after the closing quotation mark of a cell. Close"),
        ('a\tb\r1\t"x"\r3\t"x"y\r', "line 3 has text"),
        ('sep=;\na;b\n1; "x" y\n', "line 3 has text"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 2**23])
def test_text_after_a_closing_quotation_mark(monkeypatch, content, message, block_bytes):
    """Two marks that are not closed would make one cell of all rows between them."""
    monkeypatch.setattr("skldl.data._csv.BLOCK_BYTES", block_bytes)
    monkeypatch.setattr("skldl.data._tables.SAMPLE_LINES", 1)
    for size in (14, 2**18):
        monkeypatch.setattr("skldl.data._tables.SAMPLE_BYTES", size)
        with pytest.raises(TableError, match=message):
            TableFile(Dripping(content.encode(), size)).read()


def test_text_after_a_closing_quotation_mark_far_below(tmp_path):
    lines = ["a,b", *['"one, two\nthree",4'] * 150_000]
    lines[100_000] = lines[149_000] = '"one, two,4'
    content = "\n".join(lines) + "\n"
    before = 1 + content[: content.index('"one, two,4')].count("\n")
    with pytest.raises(TableError, match=f"which opens in line {before}"):
        TableFile(write(tmp_path, content)).read()


def test_blanks_around_quotation_marks_below_the_sample(tmp_path):
    content = "a,b\n" + "1,2\n" * 100_000 + '3, "x, y" \n"4" ,"say ""hi"" , ok"\n5,6" pipe\n'
    frame = TableFile(write(tmp_path, content)).read()
    assert frame["b"].tolist()[-3:] == ["x, y", 'say "hi" , ok', '6" pipe']
    assert frame["a"].tolist()[-3:] == [3, 4, 5]


def test_a_last_line_that_may_be_cut_is_noted(tmp_path):
    table = TableFile(write(tmp_path, "a,b\n1,2\n3,4"))
    assert table.read()["b"].tolist() == [2, 4]
    assert "does not end with a line break" in table.notes[0]


def test_a_process_without_standard_input(monkeypatch, tmp_path):
    """Services and windows programs have none; a file does not need it."""
    monkeypatch.setattr(sys, "stdin", None)
    assert len(TableFile(write(tmp_path, "a,b\n1,2\n")).read()) == 1
