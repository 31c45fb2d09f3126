"""Tables from files: dialects, encodings, broken files, pipes, chunks."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skldl.data import TableFile
from skldl.exceptions import DataError, TableError

FRAME = pd.DataFrame({"name": ["Ärger, groß", "tea"], "price": [1.5, -0.25], "n": [3, 40]})


def write(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "dialect"),
    [
        (FRAME.to_csv(index=False).encode(), ("utf-8", ",", ".")),
        (pl.from_pandas(FRAME).write_csv().encode(), ("utf-8", ",", ".")),
        (FRAME.to_csv(index=False).encode("utf-8-sig"), ("utf-8-sig", ",", ".")),
        (FRAME.to_csv(index=False).encode("cp1252"), ("cp1252", ",", ".")),
        (FRAME.to_csv(index=False, sep="\t").encode("utf-16"), ("utf-16", "\t", ".")),
        (FRAME.to_csv(index=False, sep=";", decimal=",").encode(), ("utf-8", ";", ",")),
        (FRAME.to_csv(index=False, sep="|", lineterminator="\r\n").encode(), ("utf-8", "|", ".")),
        (FRAME.to_csv(index=False, quoting=1).encode(), ("utf-8", ",", ".")),
    ],
    ids=["pandas", "polars", "excel-bom", "windows", "utf16-tabs", "decimal-comma", "bar-crlf", "quoted"],
)
def test_dialects(tmp_path, content, dialect):
    table = TableFile(write(tmp_path, content))
    assert (table.dialect.encoding, table.dialect.separator, table.dialect.decimal) == dialect
    frame = table.read()
    assert list(frame) == ["name", "price", "n"]
    assert frame["name"].tolist() == FRAME["name"].tolist()
    np.testing.assert_array_equal(frame["price"].astype(float), FRAME["price"])


def test_row_names_of_r(tmp_path):
    """R's write.csv2: semicolons, decimal commas, and row names under an empty heading."""
    frame = TableFile(write(tmp_path, '"";"a";"b"\n"1";0,5;"x"\n"2";1,25;"y"\n')).read()
    assert list(frame) == ["Unnamed: 0", "a", "b"]
    assert frame["a"].tolist() == [0.5, 1.25]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a;b\n1.234,5;1,5 kg\n-3,25e2;x\n", {"a": [1234.5, -325], "b": ["1,5 kg", "x"]}),
        ("a;b\n5.123;x\n5.123,4;y\n", {"a": [5123, 5123.4], "b": ["x", "y"]}),
        ("a;b\n5.123;1,5\n7.000;2,25\n", {"a": [5123, 7000], "b": [1.5, 2.25]}),
        ("a;b\n5,123;1.5\n7,000;2.25\n", {"a": [5123, 7000], "b": [1.5, 2.25]}),
        ("a;b\n1,234,567;x\n5,123;y\n", {"a": [1234567, 5123], "b": ["x", "y"]}),
        ("a;b\n1.5;0,5\n2.5;1,5\n", {"a": [1.5, 2.5], "b": [0.5, 1.5]}),
        ('a,b\n"1,000",0.25\n"2,500",0.5\n', {"a": [1000, 2500], "b": [0.25, 0.5]}),
        ("a,b\n1.123,2.345\n5.678,9.012\n", {"a": [1.123, 5.678], "b": [2.345, 9.012]}),
        ("a;b\n+5;-0,5\n 6 ; ,25\n", {"a": [5, 6], "b": [-0.5, 0.25]}),
        ("a;b\n0,5;x\n1e-15;y\n", {"a": [0.5, 1e-15], "b": ["x", "y"]}),
    ],
)
def test_the_decimal_mark_is_that_of_the_column_and_of_the_file(tmp_path, content, expected):
    assert TableFile(write(tmp_path, content)).read().to_dict("list") == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a;b\n5.1;x\n7,2;y\n", "column 'a' holds '7,2' and '5.1': which mark is the decimal one"),
        ("a;b\n5.123;x\n7,245;y\n", "column 'a' holds '7,245' and '5.123'"),
        ("a;b\n5,123;x\n7,000;y\n", "column 'a' holds '5,123', which can be a number with thousands"),
        ("a;b;c\n5,123;0,5;0.5\n", "column 'a' holds '5,123', which can be"),
        ("a;b;c\n5.123;0,5;0.5\n", "column 'a' holds '5.123', which can be"),
        (
            "a;b\n" + "1;0,5\n" * 600 + "1.5;0,5\n",
            r"row 601 of column 'a' holds '1\.5', while other numbers have a dec",
        ),
    ],
)
def test_ambiguous_decimal_marks_are_refused(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(TableError, match=message + r".*decimal='\.' or decimal=','"):
        TableFile(path).read()


def test_the_row_of_an_ambiguous_mark_counts_from_the_start_of_the_file(tmp_path):
    path = write(tmp_path, "a;b\n" + "1;0,5\n" * 600 + "1.5;0,5\n")
    with pytest.raises(TableError, match=r"row 601 of column 'a' holds '1\.5'") as caught:
        list(TableFile(path).chunks(rows=100))
    assert caught.value.row == 600


@pytest.mark.parametrize("decimal", [";", "", "comma"])
def test_a_decimal_mark_is_a_point_or_a_comma(tmp_path, decimal):
    with pytest.raises(TableError, match=r"decimal=.* is not known\. Use a point or a comma"):
        TableFile(write(tmp_path, "a;b\n5;x\n"), decimal=decimal)


@pytest.mark.parametrize("lone", [".", ",", "..", "-."])
def test_a_mark_in_a_cell_without_digits_is_not_a_decimal_mark(tmp_path, lone):
    table = TableFile(write(tmp_path, "a;b\n" + "0;x\n" * 9 + f"{lone};y\n")).read()
    assert table["a"].astype(str).iloc[-1] == lone
    assert len(table) == 10


def test_the_decimal_mark_can_be_said(tmp_path):
    path = write(tmp_path, "a;b\n5,123;x\n7,000;y\n")
    assert TableFile(path, decimal=".").read()["a"].tolist() == [5123, 7000]
    assert TableFile(path, decimal=",").read()["a"].tolist() == [5.123, 7]


def test_a_point_that_may_separate_thousands_is_noted(tmp_path):
    table = TableFile(write(tmp_path, "a;b\n5.123;x\n7.000;y\n"))
    assert table.read()["a"].tolist() == [5.123, 7]
    assert "Column 'a' holds '5.123', read as a number with a decimal point" in table.notes[0]


def test_a_comma_that_comes_late_is_no_number(tmp_path):
    frame = TableFile(write(tmp_path, "a;b\n" + "1;x\n" * 600 + "5,123;x\n")).read()
    assert frame["a"].iloc[-1] == "5,123"  # from_table rejects such a column


def test_codes_stay_text(tmp_path):
    table = TableFile(write(tmp_path, "post,id,n\n01234,1234567890123456789,1\n89073,7,2\n"))
    frame = table.read()
    assert frame["post"].tolist() == ["01234", "89073"]
    assert frame["id"].tolist() == ["1234567890123456789", "7"]
    assert frame["n"].dtype == np.int64
    assert [note.partition(",")[0] for note in table.notes] == [
        "Column 'post' holds codes with leading zeros or more than 15 digits",
        "Column 'id' holds codes with leading zeros or more than 15 digits",
    ]


def test_a_column_is_text_if_any_piece_of_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("skldl.data._tables.CHUNK_ROWS", 1)
    frame = TableFile(write(tmp_path, "a,b\n" + "1.50,2\n" * 20 + "x,\n")).read()
    assert frame["a"].tolist() == ["1.5"] * 20 + ["x"]
    assert frame["b"].tolist()[:20] == [2] * 20
    assert np.isnan(frame["b"].iloc[20])


def test_words_that_mean_missing_are_noted_and_can_be_said(tmp_path):
    path = write(tmp_path, "land,n\nNA,1\nDE,NA\nNA,\n")
    table = TableFile(path)
    frame = table.read()
    assert frame["land"].isna().tolist() == [True, False, True]
    assert frame.attrs["notes"] == tuple(table.notes)
    assert len(table.notes) == 1
    assert "Column 'land': 'NA' (2 cells) taken as missing" in table.notes[0]
    frame = TableFile(path, na_values=[]).read()
    assert frame["land"].tolist() == ["NA", "DE", "NA"]
    assert frame["n"].isna().tolist() == [False, True, True]  # among numbers it can mean nothing else
    assert TableFile(path, na_values=["DE"]).read()["land"].isna().tolist() == [False, True, False]


def test_the_encoding_is_guessed_with_a_note_or_said(tmp_path):
    path = write(tmp_path, "名前,n\n日本,1\n".encode("shift_jis"))
    guessed = TableFile(path)
    assert "read as cp1252 (Western European Windows), which is a guess" in guessed.notes[0]
    guessed.close()
    table = TableFile(path, encoding="shift_jis")
    assert table.read().to_dict("list") == {"名前": ["日本"], "n": [1]}
    assert not table.notes
    with pytest.raises(TableError, match=r"line 2 is not utf-8 text|line 1 is not utf-8 text"):
        TableFile(path, encoding="utf-8")


def test_a_single_column_keeps_its_empty_rows(tmp_path):
    frame = TableFile(write(tmp_path, "a\n1\n\n3\n")).read()
    assert frame["a"].isna().tolist() == [False, True, False]


def test_thirty_thousand_columns(tmp_path):
    n_columns = 30_000
    lines = [",".join(f"column{place}" for place in range(n_columns)), *[",".join(["1.5"] * n_columns)] * 3]
    frame = TableFile(write(tmp_path, "\n".join(lines) + "\n")).read()
    assert frame.shape == (3, n_columns)
    assert frame.dtypes.nunique() == 1


def test_blanks_before_quotation_marks(tmp_path):
    frame = TableFile(write(tmp_path, 'a, b\n1, "x, y"\n2, "two\nlines"\n')).read()
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x, y", "two\nlines"]}


def test_columns_can_be_left_as_they_are_written(tmp_path):
    [chunk] = TableFile(write(tmp_path, "id,x\n007,1\n8.50,2\n")).chunks(text=["id"])
    assert chunk["id"].tolist() == ["007", "8.50"]


def test_a_header_can_be_looked_for(tmp_path):
    table = TableFile(write(tmp_path, "1,2\n3,4\n"), header=None)
    assert not table.has_header
    assert table.read().to_dict("list") == {"1": [1, 3], "2": [2, 4]}
    with TableFile(write(tmp_path, "1,b\n3,4\n"), header=None) as table:
        assert table.columns == ["1", "b"]


@pytest.mark.parametrize("make", [lambda f, p: f.to_parquet(p), lambda f, p: pl.from_pandas(f).write_parquet(p)])
def test_parquet(tmp_path, make):
    path = tmp_path / "t.parquet"
    make(FRAME, path)
    table = TableFile(path)
    assert table.dialect is None
    assert table.columns == list(FRAME)
    chunks = list(table.chunks(rows=1))
    assert [chunk.index[0] for chunk in chunks] == [0, 1]
    assert table.fraction_read() == 1
    pd.testing.assert_frame_equal(pd.concat(chunks), FRAME, check_dtype=False)
    with TableFile(path) as again:
        assert list(again.empty()) == list(FRAME)


def test_parquet_with_an_index_of_pandas(tmp_path):
    """Row numbers left over from a filter are no column; an index with a name is one."""
    path = tmp_path / "t.parquet"
    FRAME.iloc[[1, 0]].to_parquet(path)
    table = TableFile(path)
    assert table.columns == list(FRAME)
    assert table.read()["n"].tolist() == [40, 3]
    FRAME.set_index("name").to_parquet(path)
    with TableFile(path) as table:
        assert sorted(table.columns) == sorted(table.empty()) == sorted(FRAME)
        assert table.read()["n"].tolist() == [3, 40]


def test_missing_cells_quotes_and_lines_in_cells(tmp_path):
    frame = TableFile(write(tmp_path, 'a,b\nNA,"x, y"\n,"two\nlines"\n"say ""hi""",null\n')).read()
    assert frame["a"].isna().tolist() == [True, True, False]
    assert frame["a"].iloc[2] == 'say "hi"'
    assert frame["b"].tolist()[:2] == ["x, y", "two\nlines"]


def test_places_without_a_table(tmp_path):
    with pytest.raises(TableError, match="is a folder"):
        TableFile(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nothing\.csv"):
        TableFile(tmp_path / "nothing.csv")


def test_errors_are_data_errors():
    assert issubclass(TableError, DataError)


def test_a_csv_table_without_rows(tmp_path):
    with TableFile(write(tmp_path, "a,b\n")) as table:
        assert list(table.empty()) == ["a", "b"]
        assert not sum(len(chunk) for chunk in table.chunks())


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Z")), min_size=1, max_size=5).map(
    "w{}".format
)
numbers = st.one_of(st.floats(-1e9, 1e9), st.integers(-(10**6), 10**6).map(float), st.just(np.nan))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(st.tuples(numbers, numbers, words), min_size=1, max_size=8),
    dialect=st.sampled_from([(",", "."), (";", "."), (";", ","), ("\t", ","), ("|", ".")]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    quoting=st.sampled_from([0, 1, 2]),
)
def test_what_was_written_is_read_or_refused(tmp_path, cells, dialect, encoding, quoting):
    """A number is never read as another one: a decimal comma that may separate thousands is rejected."""
    written = pd.DataFrame(cells, columns=["x", "y", "word"])
    path = tmp_path / "t.csv"
    separator, decimal = dialect
    written.to_csv(path, index=False, sep=separator, decimal=decimal, encoding=encoding, quoting=quoting)
    complaint = ""
    try:
        frame = TableFile(path).read()
    except TableError as error:
        complaint = str(error)
    if complaint:
        assert "decimal=" in complaint
        assert decimal == ","
        frame = TableFile(path, decimal=decimal).read()
    np.testing.assert_array_equal(frame[["x", "y"]].astype(float), written[["x", "y"]])
    assert frame["word"].tolist() == written["word"].tolist()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'[{"x": 1}]', "JSON"),
        (b'{"x": {"0": 1}}', "JSON"),
        (b"[[1, 2], [3, 4]]", "JSON"),
        (b"\n<!DOCTYPE html><html></html>", "HTML or XML"),
        (b"<table border=1>\n<tr><td>x</td></tr></table>", "HTML or XML"),
    ],
)
def test_other_text_formats_are_named(tmp_path, content, kind):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(TableError, match=f"t.csv holds {kind}, not a table. Export the table as CSV"):
        TableFile(tmp_path / "t.csv")


def test_a_header_in_brackets_is_no_json(tmp_path):
    (tmp_path / "t.csv").write_text("[1],[2]\n1,2\n3,4\n")
    assert TableFile(tmp_path / "t.csv").read()["[1]"].tolist() == [1, 3]
