"""Tables to files, in pieces, whole or not at all."""

import pandas as pd
import pytest

from skldl.data import TableFile, TableWriter, convert_table
from skldl.exceptions import TableError

PIECES = [pd.DataFrame({"a": [1.5, 2.0], "b": ["x", "y,z"]}), pd.DataFrame({"a": [3.25], "b": [None]})]


def write_all(writer, pieces):
    for piece in pieces:
        writer.write(piece)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_pieces_come_together(tmp_path, ending):
    target = tmp_path / f"t.{ending}"
    with TableWriter(target) as writer:
        assert not writer.written
        for piece in PIECES:
            writer.write(piece)
            assert writer.written
        assert not target.exists()
    frame = TableFile(target).read()
    assert frame["a"].astype(float).tolist() == [1.5, 2.0, 3.25]
    assert frame["b"].tolist()[:2] == ["x", "y,z"]
    assert pd.isna(frame["b"].iloc[2])
    assert [file.name for file in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_failure_leaves_the_old_file(tmp_path, ending):
    target = tmp_path / f"t.{ending}"
    target.write_text("old")
    with pytest.raises(AttributeError), TableWriter(target) as writer:
        write_all(writer, [PIECES[0], "no table"])
    assert target.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == [target.name]


def test_parquet_keeps_its_schema_from_piece_to_piece(tmp_path):
    target = tmp_path / "t.parquet"
    with TableWriter(target) as writer:
        writer.write(pd.DataFrame({"words": [None, None], "n": [1, 2]}))
        writer.write(pd.DataFrame({"words": ["x", None], "n": [3.0, None]}))
    frame = TableFile(target).read()
    assert frame["words"].tolist()[2] == "x"
    assert frame["n"].tolist()[:3] == [1, 2, 3]
    with pytest.raises(TableError, match=r"changed their type.*\.csv"), TableWriter(target) as writer:
        write_all(writer, [pd.DataFrame({"n": [1]}), pd.DataFrame({"n": ["x"]})])
    assert len(TableFile(target).read()) == 4


def test_standard_output(capsys):
    with TableWriter("-") as writer:
        for piece in PIECES:
            writer.write(piece)
    assert capsys.readouterr().out == 'a,b\n1.5,x\n2.0,"y,z"\n3.25,\n'
    with pytest.raises(RuntimeError), TableWriter("-"):
        raise RuntimeError


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"Use \.csv, \.txt, \.tsv, \.parquet or \.pq"):
        TableWriter(tmp_path / "t.xlsx")


def test_digits_and_formulas(capsys):
    piece = pd.DataFrame(
        {"=key": ["=1+1", "-5", "+x", "@y", "a"], "exact": [1 / 3, None, 0, 1, 2], "short": [1 / 3] * 5}
    )
    with TableWriter("-", digits=3, exact=["exact"], escape_formulas=True) as writer:
        writer.write(piece)
    assert capsys.readouterr().out.splitlines() == [
        "'=key,exact,short",
        "'=1+1,0.3333333333333333,0.333",
        "-5,,0.333",
        "'+x,0.0,0.333",
        "'@y,1.0,0.333",
        "a,2.0,0.333",
    ]


def test_a_column_may_be_called_self(tmp_path):
    with TableWriter(tmp_path / "t.csv", digits=3, exact=["self"], escape_formulas=True) as writer:
        writer.write(pd.DataFrame({"self": [0.123456], "=x": ["=1"]}))
    assert (tmp_path / "t.csv").read_text() == "self,'=x\n0.123456,'=1\n"
    votes = pd.DataFrame({"id": [1, 1], "who": ["a", "b"], "self": ["joy", "fear"]})
    assert list(convert_table(votes, "votes", item="id", annotator="who", label="self").table) == ["id", "fear", "joy"]
