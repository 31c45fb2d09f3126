"""Which column is what: labels of every kind, weights, groups, and what is odd about a table."""

import numpy as np
import pandas as pd
import pytest

from skldl.exceptions import (
    NegativeDegreeError,
    NonFiniteError,
    NotNumericError,
    RowSumError,
    SampleWeightError,
    SingleLabelError,
    TableError,
    ZeroRowError,
)
from skldl.tabular import label_values, read_labels, training_set

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
    training = training_set(TABLE, "n_*", kind="counts", weight="w", groups="who")
    assert list(training.X) == ["x"]
    np.testing.assert_allclose(training.D, [[0.75, 0.25], [0, 1], [0.5, 0.5], [1, 0]])
    assert list(training.D) == ["n_joy", "n_fear"] == training.label_columns
    assert training.weight.tolist() == [1, 2, 0.5, 1]
    assert training.groups.tolist() == [0, 0, 1, 1]
    part = training.take(np.array([0, 3]))
    assert part.X["x"].tolist() == [1, 4]
    assert part.groups.tolist() == [0, 1]
    bare = training_set(TABLE, ["n_fear", "n_joy"], kind="counts", drop=["w*", "who"]).take(np.array([1]))
    assert (list(bare.D), bare.weight, bare.groups) == (["n_fear", "n_joy"], None, None)


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
        ("distribution", {"a": [0.5, 3], "b": [0.5, 1]}, RowSumError, "sum to 4, not 1, in Row 2.*--kind counts"),
        ("distribution", {"a": [5, 3], "b": [5, 1]}, RowSumError, r"Row 1 \(2 rows in all\)"),
        ("distribution", {"a": [0, 1], "b": [0, 0]}, ZeroRowError, "all labels are zero in Row 1"),
        ("counts", {"a": [0, 1], "b": [0, 0]}, ZeroRowError, "--kind counts: all labels are zero in Row 1"),
        ("counts", {"a": [1, 1], "b": [0, -2]}, NegativeDegreeError, "Row 2 of column 'b', a label, is -2"),
        ("scores", {"a": [1, None], "b": [0, 2]}, NonFiniteError, "Row 2 of column 'a', a label, is empty"),
        ("counts", {"a": [1, "many"], "b": [0, 2]}, NotNumericError, "Row 2 of column 'a' holds 'many'"),
        ("counts", {"a": [1, 2]}, SingleLabelError, "only one label, 'a'.*--kind label"),
        ("label", {"a": ["joy", "joy"]}, SingleLabelError, "only one label, 'joy'"),
        ("label", {"a": ["joy", "fear"], "b": ["x", "y"]}, TableError, "--kind label needs one column.*votes"),
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
    assert label_values(["a", "b"], "1, 2") == [1.0, 2.0]
    for given, message in (("1", "1 numbers for 2"), ("1,x", "one number for each"), ("1,inf", "must be finite")):
        with pytest.raises(TableError, match=message):
            label_values(["a", "b"], given)


def test_rows_without_labels_are_left_out_with_a_note():
    table = pd.DataFrame({"x": [1, 2, 3], "a": [0.5, None, 1], "b": [0.5, None, 0]})
    training = training_set(table, ["a", "b"])
    assert training.X["x"].tolist() == [1, 3]
    assert training.notes == ["1 of 3 rows have no label and are left out."]
    with pytest.raises(TableError, match="No row has a label"):
        training_set(table.assign(a=None, b=None), ["a", "b"])


def test_rows_of_weight_zero_are_left_out_with_a_note():
    training = training_set(TABLE.assign(w=[0, 1, 1, 1]), "n_*", kind="counts", weight="w", drop=["who"])
    assert training.X["x"].tolist() == [2, 3, 4]
    assert training.notes == ["1 of 4 rows have weight zero and are left out."]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weight": "ww"}, TableError, "--weight: the table has no column 'ww'"),
        ({"groups": "ww"}, TableError, "--groups: the table has no column 'ww'"),
        ({"drop": ["q*"]}, TableError, r"--drop: the table has no column 'q\*'"),
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
        training_set(table, "n_*", kind="counts", **options)


def test_odd_columns_are_mentioned():
    n_rows = 20
    table = pd.DataFrame(
        {
            "key": [f"id{i}" for i in range(n_rows)],
            "age": [*map(str, range(n_rows - 1)), "unknown"],
            "fine": ["u", "v"] * 10,
            "number": range(n_rows),
            "text_number": [str(i) for i in range(n_rows)],
            "a": 0.5,
            "b": 0.5,
        }
    )
    notes = training_set(table, ["a", "b"]).notes
    assert len(notes) == 2
    assert "'key' holds a different text in every row" in notes[0]
    assert "'age' is mostly numbers, but Row 20 of column 'age' holds 'unknown' (1 such cells)" in notes[1]
    assert not training_set(table, ["a", "b"], text=["key"], categories=["age"]).notes
