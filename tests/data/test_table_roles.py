"""Which column is what: labels of every kind, weights, groups, and what is odd about a table."""

import numpy as np
import pandas as pd
import pytest

from skldl.data import Columns, find_columns, from_table, label_values, read_labels
from skldl.exceptions import (
    NegativeDegreeError,
    NonFiniteError,
    NotNumericError,
    RowSumError,
    SampleWeightError,
    SingleLabelError,
    TableError,
    UnknownLabelError,
    ZeroRowError,
)

TABLE = pd.DataFrame(
    {
        "x": [1.0, 2.0, 3.0, 4.0],
        "who": ["a", "a", "b", "b"],
        "w": [1, 2, 0.5, 1],
        "n_joy": [3, 0, 1, 2],
        "n_fear": [1, 2, 1, 0],
    }
)


def test_roles():
    dataset = from_table(
        TABLE, Columns("n_*", kind="counts", weight="w", groups="who"), name="faces", source="faces.csv"
    )
    assert list(dataset.X) == ["x"]
    np.testing.assert_allclose(dataset.D, [[0.75, 0.25], [0, 1], [0.5, 0.5], [1, 0]])
    assert dataset.label_names == ("n_joy", "n_fear")
    assert dataset.counts.tolist() == TABLE[["n_joy", "n_fear"]].to_numpy().tolist()
    assert dataset.sample_weight.tolist() == [1, 2, 0.5, 1]
    assert dataset.groups.tolist() == [0, 0, 1, 1]
    assert (dataset.name, dataset.source) == ("faces", "faces.csv")
    part = dataset.take(np.array([0, 3]))
    assert part.X["x"].tolist() == [1, 4]
    assert part.groups.tolist() == [0, 1]
    bare = from_table(TABLE, Columns(["n_fear", "n_joy"], kind="counts", drop=["w*", "who"]))
    assert (bare.label_names, bare.sample_weight, bare.groups) == (("n_fear", "n_joy"), None, None)


@pytest.mark.parametrize("labels", ["n_*", "n_", ["n_joy", "n_fear"], ["n_?*"]])
def test_patterns_beginnings_and_names(labels):
    assert from_table(TABLE, Columns(labels, kind="counts")).label_names == ("n_joy", "n_fear")


def test_a_name_comes_before_a_pattern_and_a_beginning():
    assert find_columns("n", ["n", "n_joy", "n_fear"], "labels") == ["n"]
    assert find_columns("a*", ["a*", "ab"], "labels") == ["a*"]
    with pytest.raises(TableError, match="labels='n_j': the table has no such column"):
        find_columns("n_j", ["n_joy", "n_fear"], "labels")  # one column is no common beginning


@pytest.mark.parametrize(
    ("kind", "columns", "names", "first"),
    [
        ("distribution", {"a": ["0.25", "1"], "b": ["0.75", "0"]}, ["a", "b"], [0.25, 0.75]),
        ("distribution", {"a": [0.2504, 1], "b": [0.75, 0]}, ["a", "b"], [0.2504 / 1.0004, 0.75 / 1.0004]),
        ("counts", {"a": [1, 0], "b": [3, 2]}, ["a", "b"], [0.25, 0.75]),
        ("scores", {"a": [0.5, 1], "b": [1.5, 1]}, ["a", "b"], [0.25, 0.75]),
        ("votes", {"ann": ["joy", "fear"], "bob": ["fear", None]}, ["fear", "joy"], [0.5, 0.5]),
        ("votes", {"ann": [10, 2], "bob": [9, 2]}, ["2", "9", "10"], [0, 0.5, 0.5]),
        ("label", {"says": ["joy", "fear"]}, ["fear", "joy"], [0, 1]),
        ("label", {"stars": [10, 9]}, ["9", "10"], [0, 1]),
    ],
)
def test_kinds_of_labels(kind, columns, names, first):
    D = read_labels(pd.DataFrame(columns), kind)
    assert list(D) == names
    np.testing.assert_allclose(D.iloc[0], first)
    np.testing.assert_allclose(D.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("kind", "columns", "error", "message"),
    [
        ("distribution", {"a": [0.5, 3], "b": [0.5, 1]}, RowSumError, "sum to 4, not 1, in row 2.*kind='counts'"),
        ("distribution", {"a": [5, 3], "b": [5, 1]}, RowSumError, r"row 1 \(2 rows in all\)"),
        ("distribution", {"a": [0, 1], "b": [0, 0]}, ZeroRowError, "all labels are zero in row 1"),
        ("counts", {"a": [0, 1], "b": [0, 0]}, ZeroRowError, "kind='counts': all labels are zero in row 1"),
        ("counts", {"a": [1, 1], "b": [0, -2]}, NegativeDegreeError, "Row 2 of column 'b', a label, is -2"),
        ("scores", {"a": [1, None], "b": [0, 2]}, NonFiniteError, "Row 2 of column 'a', a label, is empty"),
        ("counts", {"a": [1, "many"], "b": [0, 2]}, NotNumericError, "Row 2 of column 'a' holds 'many'"),
        ("counts", {"a": [1, 2]}, SingleLabelError, "only one label, 'a'.*kind='label'"),
        ("label", {"a": ["joy", "joy"]}, SingleLabelError, "only one label, 'joy'"),
        ("label", {"a": ["joy", "fear"], "b": ["x", "y"]}, TableError, "kind='label' needs one column.*votes"),
        ("votes", {"a": ["joy", "joy"]}, SingleLabelError, "only one label, 'joy'"),
        ("stars", {"a": [1, 2], "b": [1, 2]}, TableError, "The kinds are distribution, counts"),
    ],
)
def test_bad_labels_are_named(kind, columns, error, message):
    with pytest.raises(error, match=message):
        read_labels(pd.DataFrame(columns), kind)


def test_values_of_ordered_labels():
    assert label_values(["-1", "0.5"]) == [-1.0, 0.5]
    assert label_values(["a", "b"]) is None
    assert label_values(["1", "nan"]) is None
    assert label_values(["a", "b"], [1, 2]) == [1.0, 2.0]
    for given, message in (([1], "1 numbers for 2"), ([1, "x"], "one number for each"), ([1, np.inf], "be finite")):
        with pytest.raises(TableError, match=message):
            label_values(["a", "b"], given)


def test_rows_without_labels_are_left_out_with_a_note():
    table = pd.DataFrame({"x": [1, 2, 3], "a": [0.5, None, 1], "b": [0.5, None, 0]})
    training = from_table(table, ["a", "b"])
    assert training.X["x"].tolist() == [1, 3]
    assert training.notes == ("1 of 3 rows have no label and are left out.",)
    with pytest.raises(TableError, match="No row has a label"):
        from_table(table.assign(a=None, b=None), ["a", "b"])


def test_rows_of_weight_zero_are_left_out_with_a_note():
    training = from_table(TABLE.assign(w=[0, 1, 1, 1]), Columns("n_*", kind="counts", weight="w", drop=["who"]))
    assert training.X["x"].tolist() == [2, 3, 4]
    assert training.notes == ("1 of 4 rows have weight zero and are left out.",)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weight": "ww"}, TableError, "weight='ww': the table has no such column"),
        ({"groups": "ww"}, TableError, "groups='ww': the table has no such column"),
        ({"drop": ["q*"]}, TableError, r"drop='q\*': the table has no such column"),
        ({"weight": "n_joy"}, TableError, "'n_joy' is a label"),
        ({"text": ["n_joy"]}, TableError, "'n_joy' is a label"),
        ({"drop": ["x", "w*", "neg", "hole", "zero"]}, TableError, "No column is left"),
        ({"weight": "neg"}, SampleWeightError, "Row 2 of column 'neg' is negative"),
        ({"weight": "hole"}, SampleWeightError, "Row 1 of column 'hole' is empty"),
        ({"weight": "zero"}, SampleWeightError, "All weights in column 'zero' are zero"),
        ({"groups": "hole"}, TableError, "Row 1 of column 'hole' is empty. Every row needs a group"),
    ],
)
def test_wrong_roles(options, error, message):
    table = TABLE.assign(neg=[1, -1, 1, 1], hole=[None, 1, 1, 1], zero=0)
    with pytest.raises(error, match=message):
        from_table(table, Columns("n_*", kind="counts", **options))


def odd_table():
    n_rows = 20
    return pd.DataFrame(
        {
            "key": [f"id{i}" for i in range(n_rows)],
            "fine": ["u", "v"] * 10,
            "number": range(0, 2 * n_rows, 2),
            "text_number": [str(i) for i in range(n_rows)],
            "a": 0.5,
            "b": 0.5,
        }
    )


def test_odd_columns_are_mentioned():
    notes = from_table(odd_table(), ["a", "b"]).notes
    assert len(notes) == 1
    assert "'key' holds a different text in every row" in notes[0]
    assert not from_table(odd_table(), Columns(["a", "b"], text=["key"])).notes


def test_a_number_with_a_few_bad_cells_is_refused():
    table = odd_table().assign(age=[*map(str, range(17)), "unknown", None, "?"], key=1)
    message = (
        r"'age' is mostly numbers, but holds 'unknown' \(row 18\), '\?' \(row 20\)\. .*na_values=.*categories=\['age'"
    )
    with pytest.raises(TableError, match=message):
        from_table(table, ["a", "b"])
    assert not from_table(table, Columns(["a", "b"], categories=["age"])).notes
    half = table.assign(age=["1", "x"] * 10)
    assert not from_table(half, ["a", "b"]).notes


def test_dates_are_mentioned():
    table = odd_table().assign(key=pd.date_range("2024-01-01", periods=20), fine="03/04/2024")
    notes = from_table(table, ["a", "b"]).notes
    assert "'key' holds dates: models learn from their year, month" in notes[0]
    assert "'fine' holds dates such as '03/04/2024', and no cell shows which part is the month" in notes[1]


def test_notes_of_the_file_are_kept():
    table = odd_table().drop(columns="key")
    table.attrs["notes"] = ("It was a guess.",)
    assert from_table(table, ["a", "b"]).notes == ("It was a guess.",)


def leaky(n_rows=200):
    generator = np.random.default_rng(0)
    joy = generator.random(n_rows)
    return pd.DataFrame({"emo_joy": joy, "emo_fear": 1 - joy, "x": generator.random(n_rows), "one": 1})


@pytest.mark.parametrize(
    "forgotten",
    [
        lambda joy: 10 * joy,
        lambda joy: -np.exp(3 * joy),
        lambda joy: joy + np.random.default_rng(1).normal(0, 0.01, len(joy)),
        lambda joy: (10 * joy).map("{:.3f}".format),
    ],
)
def test_a_column_that_tells_the_labels_is_warned_of(forgotten):
    table = leaky().assign(leak=lambda t: forgotten(t["emo_joy"]))
    [note] = from_table(table, "emo_*").notes
    assert "Column 'leak' alone determines the label 'emo_joy' nearly completely" in note
    assert "drop=['leak']" in note


def test_categories_that_tell_the_label_are_warned_of():
    label = pd.Series(["joy", "fear", "rage"] * 40)
    table = pd.DataFrame({"says": label, "code": label.map({"joy": "J", "fear": "F", "rage": "R"}), "x": range(120)})
    notes = from_table(table.sample(frac=1, random_state=0), Columns("says", kind="label")).notes
    assert ["Column 'code' alone" in note for note in notes] == [True]


def test_what_tells_a_lot_but_not_all_is_not_warned_of():
    noise = np.random.default_rng(1).normal(0, 0.1, 200)
    assert not from_table(leaky().assign(leak=lambda t: t["emo_joy"] + noise), "emo_*").notes
    ordered = leaky().sort_values("emo_joy", ignore_index=True)
    assert not from_table(ordered, "emo_*").notes  # the constant column must not inherit the order of the rows


def test_features_that_are_called_like_the_labels_are_warned_of():
    table = leaky().assign(emo_rage=0.5, Emo_calm=1)
    [note] = from_table(table, ["emo_joy", "emo_fear"]).notes
    assert note.startswith("'emo_rage', 'Emo_calm' begin with 'emo_' as the labels do")
    assert "labels='emo_*'" in note


@pytest.mark.parametrize("role", ["text", "categories"])
def test_text_and_categories_are_features_of_the_table(role):
    table = leaky().assign(town="Ulm", w=1.0)
    with pytest.raises(TableError, match=f"{role}='typo': the table has no such column"):
        from_table(table, Columns("emo_*", **{role: ["typo"]}))
    for other in ({"drop": ["town"]}, {"groups": "town"}):
        with pytest.raises(TableError, match=f"{role}='town': the column has another role"):
            from_table(table, Columns("emo_*", **{role: ["town"]}, **other))


def test_a_leak_is_found_among_other_cells():
    table = leaky()
    words = pd.cut(table["emo_joy"], 60, labels=[f"w{i}" for i in range(60)]).astype(object)
    words[3] = "7"  # one number among words
    assert "Column 'leak' alone determines" in from_table(table.assign(leak=words), "emo_*").notes[0]
    gaps = (100 * table["emo_joy"]).where(table.index % 4 != 0)  # a quarter of the cells is empty
    assert "Column 'leak' alone determines" in from_table(table.assign(leak=gaps), "emo_*").notes[0]


def test_labels_that_a_model_knows_need_not_occur():
    one = pd.DataFrame({"says": ["joy", "joy"]})
    D = read_labels(one, "label", names=["fear", "joy"])
    assert D.to_dict("list") == {"fear": [0.0, 0.0], "joy": [1.0, 1.0]}
    assert read_labels(one, "votes", names=["fear", "joy"]).equals(D)
    with pytest.raises(UnknownLabelError, match=r"'joy' is not among those of the model: fear, rage"):
        read_labels(one, "label", names=["fear", "rage"])
