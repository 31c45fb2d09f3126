"""Single labels and sets of labels: hand cases, properties, tables, bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skldl.distributions import from_label_sets, from_labels
from skldl.exceptions import (
    DataError,
    DimensionError,
    DuplicateLabelError,
    EmptyDataError,
    LengthMismatchError,
    MissingLabelError,
    SingleLabelError,
    UnknownLabelError,
    ZeroRowError,
)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30))
def test_single_labels_give_the_whole_mass_to_the_label(y):
    classes = list(range(-5, 6))
    D = from_labels(y, classes=classes)
    assert D.shape == (len(y), 11)
    np.testing.assert_array_equal(D.sum(axis=1), 1)
    assert [classes[j] for j in D.argmax(axis=1)] == y


def test_labels_that_occur_are_sorted_and_kinds_may_mix():
    np.testing.assert_array_equal(from_labels(["b", "a"]), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(from_labels(["b", 1]), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(from_labels(np.array([7, 3, 7])), [[0, 1], [1, 0], [0, 1]])


def test_series_in_frame_out_with_names_and_index():
    series = pd.Series(["joy", "fear"], index=[10, 20])
    D = from_labels(series)
    assert isinstance(D, pd.DataFrame)
    assert list(D.columns) == ["fear", "joy"]
    assert list(D.index) == [10, 20]
    D = from_labels(pl.Series(["joy", "fear"]), classes=["joy", "fear"])
    assert isinstance(D, pl.DataFrame)
    assert D.columns == ["joy", "fear"]
    np.testing.assert_array_equal(D.to_numpy(), np.eye(2))
    assert list(from_labels(pd.Series([3, 1]))) == [1, 3]  # pandas keeps numbers as names


@pytest.mark.parametrize(
    ("y", "classes", "error", "words"),
    [
        (["a", "z"], ["a", "b"], UnknownLabelError, r"Row 1 of y holds the label 'z'.*'a', 'b'"),
        (["a", None], None, MissingLabelError, "Row 1"),
        ([1.0, float("nan")], None, MissingLabelError, "Row 1"),
        ([pd.NA, "a"], None, MissingLabelError, "Row 0"),
        ([["a"], ["b"]], None, DimensionError, "from_label_sets"),
        (np.eye(2), None, DimensionError, "from_label_sets"),
        ("text", None, DimensionError, "not a column of labels"),
        (3, None, DimensionError, "not a column of labels"),
        ([], ["a", "b"], EmptyDataError, "no rows"),
        (["a", "a"], None, SingleLabelError, "only one class"),
        (["a"], ["a", "b", "a"], DuplicateLabelError, "'a' twice"),
        (["a"], ["a", None], MissingLabelError, r"classes\[1\]"),
        (["a"], [], SingleLabelError, "no label at all"),
        (pd.DataFrame({"a": [1]}), None, DimensionError, "one of its columns"),
    ],
)
def test_bad_single_labels(y, classes, error, words):
    with pytest.raises(error, match=words):
        from_labels(y, classes)


SETS = st.lists(st.sets(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=20)


@given(SETS)
def test_each_label_of_a_set_has_the_same_share(sets):
    D = from_label_sets(sets, classes=list("abcde"))
    np.testing.assert_allclose(D.sum(axis=1), 1)
    for row, members in zip(D, sets, strict=True):
        assert {"abcde"[j] for j in np.flatnonzero(row)} == members
        assert np.ptp(row[row > 0]) == 0


@given(SETS)
def test_sets_lists_and_indicators_in_any_container_agree(sets):
    indicator = np.array([[letter in members for letter in "abcde"] for members in sets])
    expected = from_label_sets(sets, classes=list("abcde"))
    for same in (indicator, indicator.astype(float), indicator.astype(int).tolist(), sparse.csr_matrix(indicator)):
        np.testing.assert_array_equal(from_label_sets(same), expected)
    np.testing.assert_array_equal(from_label_sets([list(members) for members in sets], list("abcde")), expected)


def test_frames_of_indicators_and_series_of_sets_keep_names_and_index():
    frame = pd.DataFrame({"sky": [1, 0], "sea": [1, 1]}, index=["x", "y"])
    pd.testing.assert_frame_equal(
        from_label_sets(frame), pd.DataFrame({"sky": [0.5, 0.0], "sea": [0.5, 1.0]}, index=["x", "y"])
    )
    D = from_label_sets(pl.DataFrame({"sky": [1, 0], "sea": [1, 1]}), classes=["a", "b"])
    assert D.columns == ["a", "b"]
    D = from_label_sets(pd.Series([["sky"], ["sea", "sky"]], index=[5, 6]))
    assert (list(D.columns), list(D.index)) == (["sea", "sky"], [5, 6])


def test_rows_without_labels():
    sets = [["a"], [], ["b"]]
    with pytest.raises(ZeroRowError, match="Row 1 of Y holds no label"):
        from_label_sets(sets)
    np.testing.assert_array_equal(from_label_sets(sets, empty="uniform")[1], [0.5, 0.5])
    np.testing.assert_array_equal(from_label_sets(sets, empty="drop"), np.eye(2))
    frame = pd.DataFrame({"a": [1, 0, 0], "b": [0, 0, 1]}, index=list("xyz"))
    assert list(from_label_sets(frame, empty="drop").index) == ["x", "z"]
    with pytest.raises(ZeroRowError, match="nothing is left"):
        from_label_sets([[], []], classes=["a", "b"], empty="drop")
    with pytest.raises(ValueError, match="empty='zero'"):
        from_label_sets(sets, empty="zero")


@pytest.mark.parametrize(
    ("Y", "classes", "error", "words"),
    [
        ([["a", "z"]], ["a", "b"], UnknownLabelError, "Row 0 of Y holds the label 'z'"),
        ([["a", "a"], ["b"]], None, DuplicateLabelError, "'a' twice"),
        ([["a", None], ["b"]], None, MissingLabelError, "Row 0"),
        (["a", "b"], None, DimensionError, "from_labels"),
        ([["a"], None], ["a", "b"], DimensionError, "Row 1"),
        (np.array([[1, 2], [0, 1]]), None, DataError, "Row 0, column 1 of Y is 2.*from_counts"),
        (np.array([[1], [0]]), None, SingleLabelError, "one column"),
        (np.array([[1, 0]]), ["a"], SingleLabelError, "only one class"),
        (np.array([[1, 0]]), ["a", "b", "c"], LengthMismatchError, "names 3 labels"),
        ([], None, EmptyDataError, "no rows"),
        ([["a"], ["a"]], None, SingleLabelError, "only one class"),
    ],
)
def test_bad_label_sets(Y, classes, error, words):
    with pytest.raises(error, match=words):
        from_label_sets(Y, classes)


def test_an_index_of_pandas_is_a_list_of_labels():
    np.testing.assert_array_equal(from_labels(pd.Index(["b", "a"])), [[0, 1], [1, 0]])
    assert from_labels(pd.to_datetime(["2020-01-01", "2021-01-01"])).shape == (2, 2)


def test_equal_numbers_are_one_label():
    np.testing.assert_array_equal(from_labels([1, 2.0, 1.0]), from_labels([1, 2, 1]))
    frame = from_labels(pd.Series([1.0, 2.0, 1.0]))
    assert [repr(name) for name in frame.columns] == ["1", "2"]
    np.testing.assert_array_equal(from_labels(np.array([2.0, 1.0]), classes=[2, 1]), np.eye(2))
    np.testing.assert_array_equal(from_label_sets([[1, 2.0], [2]]), [[0.5, 0.5], [0, 1]])


@pytest.mark.parametrize("classes", [{"a", "b"}, frozenset("ab")])
def test_a_set_of_classes_has_no_order(classes):
    with pytest.raises(DataError, match=r"classes is a set.*classes=sorted"):
        from_labels(["a", "b"], classes=classes)
    with pytest.raises(DataError, match="classes is a set"):
        from_label_sets([["a", "b"]], classes=classes)
