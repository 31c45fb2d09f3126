"""`load_dataset` on tables: every way to write one, roles of columns, and what is wrong with bad ones."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skldl.data import load_dataset
from skldl.exceptions import DatasetError

PLAIN = "age,height,label_happy,label_sad\n31,1.75,0.75,0.25\n58,1.5,0.5,0.5\n"
X = [[31, 1.75], [58, 1.5]]
D = [[0.75, 0.25], [0.5, 0.5]]


def load(tmp_path, text, name="moods.csv", encoding="utf-8", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return load_dataset(path, **options)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", ";").replace(".", ","),
        PLAIN.replace(",", "\t").replace(".", ","),
        PLAIN.replace(",", " , "),
        "sep=;\n" + PLAIN.replace(",", ";"),
        "sep=|\r\n" + PLAIN.replace(",", "|"),
        "\n" + PLAIN + "\n\n",
        '"age","height","label_happy","label_sad"\n"31","1,75","0,75","0,25"\n"58","1,5","0,5","0,5"',
        PLAIN.replace("31", "3.1e1"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_ways_to_write_the_same_table(tmp_path, text, encoding):
    dataset = load(tmp_path, text, encoding=encoding)
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(dataset.D, D)
    assert dataset.feature_names == ("age", "height")
    assert dataset.label_names == ("happy", "sad")


def test_tsv_and_capitals(tmp_path):
    assert load(tmp_path, PLAIN.replace(",", "\t"), name="moods.TSV").n_labels == 2
    assert load(tmp_path, PLAIN.replace("label_", "Label_")).label_names == ("happy", "sad")


@pytest.mark.parametrize("prefix", ["label_", "label:", "label.", "d_", "y_"])
def test_default_beginnings(tmp_path, prefix):
    assert load(tmp_path, PLAIN.replace("label_", prefix)).label_names == ("happy", "sad")


def test_label_wins_over_shorter_beginnings(tmp_path):
    text = PLAIN.replace("age", "d_one").replace("height", "d_two")
    assert load(tmp_path, text).feature_names == ("d_one", "d_two")


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["happy", "sad"], ("happy", "sad")),
        (["sad", "happy"], ("sad", "happy")),
        (2, ("happy", "sad")),
        ("*a[pd]*", ("happy", "sad")),
    ],
)
def test_labels_can_be_named(tmp_path, labels, names):
    dataset = load(tmp_path, PLAIN.replace("label_", ""), labels=labels)
    assert dataset.label_names == names
    assert dataset.D[0].tolist() == [{"happy": 0.75, "sad": 0.25}[name] for name in names]
    assert dataset.feature_names == ("age", "height")


@pytest.mark.parametrize("labels", ["mood_", "mood_*"])
def test_common_beginning_is_cut_off(tmp_path, labels):
    assert load(tmp_path, PLAIN.replace("label_", "mood_"), labels=labels).label_names == ("happy", "sad")


def test_beginning_stays_where_nothing_would_be_left(tmp_path):
    text = "x,mood,mood2\n1,0.5,0.5\n"
    assert load(tmp_path, text, labels="mood*").label_names == ("mood", "mood2")


def test_features_can_be_named_and_columns_dropped(tmp_path):
    text = ",id,age,label_a,label_b\n0,anna,31,0.75,0.25\n1,bo,58,0.5,0.5\n"
    dataset = load(tmp_path, text, drop=["", "id"])
    assert dataset.feature_names == ("age",)
    assert not dataset.notes
    np.testing.assert_array_equal(load(tmp_path, text, features=["age"]).X, [[31], [58]])
    np.testing.assert_array_equal(load(tmp_path, text, drop="i*").X, dataset.X)


def test_a_column_of_row_names_is_left_out_with_a_note(tmp_path):
    dataset = load(tmp_path, ",age,label_a,label_b\n0,31,0.75,0.25\n1,58,0.5,0.5\n")
    assert dataset.feature_names == ("age",)
    assert "has no name" in dataset.notes[0]


def test_table_without_header(tmp_path):
    dataset = load(tmp_path, "31,1.75,0.75,0.25\n58,1.5,0.5,0.5\n", labels=2)
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(dataset.D, D)
    assert dataset.feature_names is None
    assert dataset.label_names == ("label_0", "label_1")


def test_blank_lines_do_not_shift_line_numbers(tmp_path):
    with pytest.raises(DatasetError, match="line 5 has 3 cells, the header 4"):
        load(tmp_path, "age,height,label_a,label_b\n\n31,1.75,0.5,0.5\n\n58,0.5,0.5\n")


HEAD = "age,height,label_happy,label_sad\n31,1.75,0.75,0.25\n"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "is empty"),
        ("  \n \n", {}, "is empty"),
        ("sep=;\n", {}, "is empty"),
        ("age,label_a,label_b\n", {}, "has a header but no rows"),
        (HEAD + "58,1.5,half,0.5\n", {}, "Row 2 of column 'label_happy' holds 'half', where a number belongs"),
        (HEAD + "58,1.5,,0.5\n", {"kind": "counts"}, "Row 2 of column 'label_happy', a label, is empty"),
        (HEAD + "58,inf,0.5,0.5\n", {}, "Row 2 of column 'height' is infinite"),
        (HEAD + "58,1.5,0.5\n", {}, "line 3 has 3 cells, the header 4.*comments must be taken out"),
        (HEAD + "58,1.5,0.5,0.5,\n", {}, "line 3 has 5 cells"),
        (HEAD + "58,1.5,0.9,0.5\n", {}, r"sum to 1\.4, not 1, in row 2.*kind='counts'"),
        (HEAD + "58,1.5,1.5,-0.5\n", {}, "Row 2 of column 'label_sad', a label, is -0.5"),
        (HEAD + "58,1.5,0,0\n", {}, "all labels are zero in row 2"),
        (HEAD + '58,"1,5",0.5,0.5\n', {}, "column 'height' holds '1,5' and '1.75': which mark is the decimal one"),
        (HEAD + '58,"1.5,0.5,0.5\n', {}, "line 3 has a cell that opens with a quotation mark, which is never closed"),
        (HEAD.replace("height", "age"), {}, "two columns called 'age', columns 1 and 2"),
        (HEAD.replace("height", ""), {}, "column 2 has no name"),
        (HEAD.replace("label_", ""), {}, r"which columns are the labels\? .* 'age', 'height', 'happy', 'sad'"),
        (HEAD.replace("label_sad", "sad"), {}, "which columns are the labels"),
        (HEAD, {"labels": ["happy", "sad"]}, "labels='happy': the table has no such column. It has 'age'"),
        (HEAD, {"labels": "emotion_"}, "labels='emotion_': the table has no such column"),
        (HEAD, {"labels": "label_h*"}, "only one label, 'label_happy'"),
        (HEAD, {"labels": 1}, "labels=1 means the last 1 of 4 columns"),
        (HEAD, {"labels": 4}, "at least two labels and one feature"),
        (HEAD, {"drop": ["weight"]}, "drop='weight': the table has no such column"),
        (HEAD, {"drop": ["age", "height"]}, "No column is left to learn from"),
        (HEAD, {"features": "*"}, "column 'label_happy' cannot be a label and also a feature"),
        ("1,2,0.5,0.5\n", {}, r"has no header.* labels=3"),
        ("1,2,0.5,0.5\n", {"labels": 9}, "labels=9 means the last 9 of 4 columns"),
        ("age height label_a label_b\n1 2 0.5 0.5\n", {}, "has only one column.*commas, semicolons, tabs or bars"),
        (HEAD.encode() + b"58,1.5,0.5,0.5\x81\n", {}, "line 3 is not cp1252 text.*encoding="),
        (b"PK\x00\x00", {}, "is not text"),
        (HEAD, {"decimal": "'"}, "Use a point or a comma"),
    ],
)
def test_errors_name_file_and_place(tmp_path, text, options, message):
    with pytest.raises(DatasetError, match=message) as caught:
        load(tmp_path, text, **options)
    assert "moods.csv" in str(caught.value)


def test_large_table_round_trips(tmp_path):
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(300, 20)), rng.dirichlet(np.ones(5), size=300)
    header = [f"x{j}" for j in range(20)] + [f"label_{j}" for j in range(5)]
    lines = [",".join(header)] + [",".join(map(repr, row)) for row in np.hstack([features, labels]).tolist()]
    dataset = load(tmp_path, "\n".join(lines))
    np.testing.assert_array_equal(dataset.X, features)
    np.testing.assert_allclose(dataset.D, labels, rtol=1e-15)


def test_thousands_follow_the_rest_of_the_file(tmp_path):
    dataset = load(tmp_path, 'income,label_a,label_b\n"1,000",0.25,0.75\n')
    assert dataset.X.tolist() == [[1000]]


def test_numpy_integers_count_labels(tmp_path):
    assert load(tmp_path, PLAIN, labels=np.int64(2)).n_labels == 2
    assert load(tmp_path, "1,0.25,0.75\n2,0.5,0.5\n", labels=np.int64(2)).n_labels == 2


def test_a_comment_is_named_as_a_reason(tmp_path):
    with pytest.raises(DatasetError, match="has only one column, '# made by hand'"):
        load(tmp_path, "# made by hand\n" + PLAIN)


def test_an_encoding_that_nobody_knows(tmp_path):
    path = tmp_path / "moods.csv"
    path.write_text(PLAIN)
    with pytest.raises(DatasetError, match="encoding='klingon' is not known"):
        load_dataset(path, encoding="klingon")


def test_parquet_and_csv_are_one_road(tmp_path):
    frame = pd.DataFrame({"age": [31, 58], "label_a": [0.75, 0.5], "label_b": [0.25, 0.5]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    loaded = [load_dataset(tmp_path / name) for name in ("t.parquet", "t.csv")]
    assert loaded[0].fingerprint == loaded[1].fingerprint
    assert loaded[0].label_names == loaded[1].label_names == ("a", "b")


def test_tables_that_are_not_all_numbers_stay_tables(tmp_path):
    text = "age,town,label_a,label_b\n31,Ulm,0.75,0.25\n,Bonn,0.5,0.5\n"
    dataset = load(tmp_path, text)
    assert list(dataset.X) == ["age", "town"]
    gaps = load(tmp_path, text, drop=["town"])
    assert list(gaps.X) == ["age"]
    assert "cells are empty in 'age'" in gaps.notes[-1]
    assert list(load(tmp_path, PLAIN, categories=["age"]).X) == ["age", "height"]


def test_roles_of_columns(tmp_path):
    text = "who,w,age,n_a,n_b\nx,1,31,3,1\ny,2,58,0,2\ny,1,40,1,1\n"
    dataset = load(tmp_path, text, labels="n_", kind="counts", weight="w", groups="who")
    assert dataset.label_names == ("a", "b")
    assert dataset.counts.tolist() == [[3, 1], [0, 2], [1, 1]]
    assert dataset.groups.tolist() == [0, 1, 1]
    assert dataset.sample_weight.tolist() == [1, 2, 1]
    np.testing.assert_allclose(dataset.D, [[0.75, 0.25], [0, 1], [0.5, 0.5]])
    votes = load(tmp_path, "x,r1,r2\n1,4,5.0\n2,4.0,\n", labels=["r1", "r2"], kind="votes")
    assert votes.label_names == ("4", "5")
    assert votes.votes.tolist() == [["4", "5"], ["4", None]]
    assert votes.counts.tolist() == [[1, 1], [1, 0]]


def test_wide_tables_of_zeros_become_sparse(tmp_path):
    header = [*(f"x{place}" for place in range(600)), "label_a", "label_b"]
    row = ["1.5", *["0"] * 599, "0.5", "0.5"]
    dataset = load(tmp_path, "\n".join(",".join(cells) for cells in (header, row, row)) + "\n")
    assert sparse.issparse(dataset.X)
    assert dataset.X.shape == (2, 600)


def test_a_converter_for_the_labels(tmp_path):
    text = PLAIN.replace("0.75,0.25", "3,1").replace("0.5,0.5", "2,2")
    np.testing.assert_array_equal(load(tmp_path, text, convert=lambda C: C / 4).D, D)
