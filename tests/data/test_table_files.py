"""Several files as one table."""

import numpy as np
import pandas as pd
import pytest

from skldl.cli import main
from skldl.data import TableFiles
from skldl.exceptions import DatasetNotFoundError, TableError


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("parts", "parts/inner", "parts/.hidden"):
        (tmp_path / folder).mkdir()
    pd.DataFrame({"x": [1, 2], "town": ["Ulm", None]}).to_csv("parts/a.csv", index=False)
    pd.DataFrame({"town": [7, 8], "x": [3.5, 4.0]}).to_parquet("parts/b.parquet")
    pd.DataFrame({"x": [5], "town": ["Rom"]}).to_csv("parts/inner/c.tsv", index=False, sep="\t")
    pd.DataFrame({"x": [9], "town": ["no"]}).to_csv("parts/.hidden/d.csv", index=False)
    pd.DataFrame({"x": [9], "town": ["no"]}).to_csv("parts/_e.csv", index=False)
    (tmp_path / "parts" / "readme.md").write_text("no table")
    return tmp_path


def test_files_of_a_folder_and_a_pattern(here):
    every = ["parts/a.csv", "parts/b.parquet", "parts/inner/c.tsv"]
    assert TableFiles(["parts"]).files == every
    assert TableFiles(["parts/a.csv", "parts/*.csv"]).files == ["parts/a.csv", "parts/_e.csv"]
    assert TableFiles("parts/**/*.tsv").files == ["parts/inner/c.tsv"]
    (here / "odd[1].csv").write_text("x\n1\n")
    assert TableFiles("odd[1].csv").files == ["odd[1].csv"]  # a file that is there is no pattern
    (here / "empty").mkdir()
    with pytest.raises(DatasetNotFoundError, match="a folder without tables"):
        TableFiles("empty")


def test_rows_follow_each_other_and_columns_go_by_name(here):
    with TableFiles("parts") as table:
        assert table.columns == ["x", "town"]
        assert table.n_bytes > 0
        frame = table.read()
        assert table.fraction_read() == 1.0
        places = [(file, chunk.index[0]) for file, chunk in table.pieces(rows=1)]
    assert frame["x"].tolist() == [1, 2, 3.5, 4, 5]
    assert frame["town"].tolist()[2:] == ["7", "8", "Rom"]  # numbers are words where other files hold words
    assert frame["town"].iloc[0] == "Ulm"
    assert places == [
        ("parts/a.csv", 0),
        ("parts/a.csv", 1),
        ("parts/b.parquet", 0),
        ("parts/b.parquet", 1),
        ("parts/inner/c.tsv", 0),
    ]
    assert [table.place_of(row) for row in (1, 2, 4)] == [
        ("parts/a.csv", 1),
        ("parts/b.parquet", 0),
        ("parts/inner/c.tsv", 0),
    ]


def test_what_was_read_shows_in_the_share(here):
    table = TableFiles(["parts/a.csv", "parts/inner/c.tsv"])
    shares = [table.fraction_read() for _ in table.pieces(rows=1)]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 1


def test_several_files_in_memory_name_the_file_of_a_bad_row(here, capsys):
    D = np.full((30, 2), 0.5)
    for name in ("u", "v"):
        frame = pd.DataFrame({"x": np.arange(30), "r_a": D[:, 0], "r_b": D[:, 1]})
        frame.loc[4, "r_a"] = 0.9 if name == "v" else 0.5
        frame.to_csv(f"{name}.csv", index=False)
    assert main(["fit", "u.csv", "v.csv", "--labels", "r_*", "--model", "mean", "--out", "m.skldl"]) == 2
    assert "in row 35" in (printed := capsys.readouterr().err)
    assert "Row 35 of the table is row 5 of v.csv" in printed


def test_files_without_rows(here):
    (here / "none.csv").write_text("x,town\n")
    table = TableFiles(["none.csv"])
    with pytest.raises(TableError, match=r"none\.csv has a header but no rows"):
        table.read()
