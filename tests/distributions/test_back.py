"""Conversions of distributions to labels, sets and ranks: rules, ties, round trips, weighted examples, bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from skldl.distributions import (
    expected_value,
    from_label_sets,
    from_labels,
    rank_labels,
    to_label_sets,
    to_labels,
    to_weighted_examples,
)
from skldl.exceptions import DataError, DimensionError, LengthMismatchError, RowSumError, SampleWeightError

DISTRIBUTIONS = (
    hnp.arrays(np.float64, (4, 5), elements=st.floats(0, 1))
    .map(lambda a: a + 1e-3)
    .map(lambda a: a / a.sum(axis=1, keepdims=True))
)
D = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.4, 0.4, 0.2]])
FRAME = pd.DataFrame(D, columns=["a", "b", "c"], index=["x", "y", "z"])


@given(st.lists(st.sampled_from("abc"), min_size=1))
def test_labels_there_and_back(y):
    assert list(to_labels(from_labels(y, list("abc")), classes=list("abc"))) == y


@given(st.lists(st.sets(st.sampled_from("abcd"), min_size=1), min_size=1))
def test_sets_there_and_back(sets):
    there = from_label_sets(sets, list("abcd"))
    for rule in ({"mass": 1.0}, {"threshold": 1 / 8}):
        back = to_label_sets(there, classes=list("abcd"), output="sets", **rule)
        assert [set(row) for row in back] == sets


@given(DISTRIBUTIONS, st.floats(0.01, 1), st.integers(1, 5))
def test_sets_satisfy_their_rule(P, mass, top):
    chosen = to_label_sets(P, mass=mass).astype(bool)
    held = np.where(chosen, P, 0).sum(axis=1)
    assert (held >= mass - 1e-9).all()
    smallest = np.where(chosen, P, np.inf).min(axis=1)
    assert (held - smallest < mass).all()  # one label fewer is not enough
    assert (np.where(chosen, 0, P).max(axis=1) <= smallest).all()
    assert (to_label_sets(P, top=top).sum(axis=1) == top).all()
    np.testing.assert_array_equal(to_label_sets(P, threshold=0.2), P >= 0.2)
    np.testing.assert_array_equal(to_label_sets(P, top=1).argmax(axis=1), to_labels(P))


def test_ties_go_to_the_first_column():
    assert list(to_labels(D)) == [0, 2, 0]
    np.testing.assert_array_equal(to_label_sets(D, top=1)[2], [1, 0, 0])
    np.testing.assert_array_equal(to_label_sets(D, mass=0.4)[2], [1, 0, 0])
    np.testing.assert_array_equal(to_label_sets(D, threshold=0.4)[2], [1, 1, 0])
    assert to_label_sets(D, threshold=0.55, output="sets") == [[], [2], []]
    np.testing.assert_array_equal(rank_labels(D), [[1, 2, 3], [2.5, 2.5, 1], [1.5, 1.5, 3]])
    np.testing.assert_array_equal(rank_labels(D, ties="min"), [[1, 2, 3], [2, 2, 1], [1, 1, 3]])
    np.testing.assert_array_equal(rank_labels(D, ties="ordinal")[2], [1, 2, 3])


def test_tables_keep_names_and_index():
    assert to_labels(FRAME).to_dict() == {"x": "a", "y": "c", "z": "a"}
    assert list(to_labels(pl.from_pandas(FRAME))) == ["a", "c", "a"]
    sets = to_label_sets(FRAME, top=2)
    assert (list(sets.columns), list(sets.index)) == (["a", "b", "c"], ["x", "y", "z"])
    assert expected_value(FRAME, [1, 2, 3]).to_dict() == pytest.approx({"x": 1.7, "y": 2.4, "z": 1.8})
    assert isinstance(rank_labels(pl.from_pandas(FRAME)), pl.DataFrame)
    assert list(to_labels(D, classes=["a", 2, ("c", 3)])) == ["a", ("c", 3), "a"]


@given(DISTRIBUTIONS)
def test_expected_value_lies_between_the_values(P):
    values = np.array([-1.0, 0.0, 2.0, 5.0, 9.0])
    mean = expected_value(P, values)
    np.testing.assert_allclose(mean, P @ values)
    assert ((mean >= -1 - 1e-9) & (mean <= 9 + 1e-9)).all()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: to_labels([[1, 2]]), RowSumError, "from_counts"),
        (lambda: to_labels(D, classes=["a", "b"]), LengthMismatchError, "names 2 labels"),
        (lambda: to_label_sets(D), ValueError, "exactly one"),
        (lambda: to_label_sets(D, mass=0.5, top=1), ValueError, "exactly one"),
        (lambda: to_label_sets(D, mass=0), ValueError, "mass=0"),
        (lambda: to_label_sets(D, threshold=2), ValueError, "threshold=2"),
        (lambda: to_label_sets(D, top=4), ValueError, "top=4"),
        (lambda: to_label_sets(D, top=1.5), ValueError, "top=1.5"),
        (lambda: to_label_sets(D, top=1, output="list"), ValueError, "output='list'"),
        (lambda: expected_value(D, [1, 2]), LengthMismatchError, "3 labels"),
        (lambda: expected_value(D, [1, 2, np.nan]), ValueError, "finite"),
        (lambda: rank_labels(D, ties="first"), ValueError, "ties='first'"),
        (lambda: to_weighted_examples([1, 2, 3], D), DimensionError, "needs two"),
        (lambda: to_weighted_examples([[1], [2]], D), LengthMismatchError, "2 rows"),
        (lambda: to_weighted_examples([[1], [2], [3]], D, [1, 1]), SampleWeightError, "2 entries"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("kind", ["array", "csr", "coo", "pandas", "polars"])
def test_weighted_examples_of_any_table(kind):
    X = np.arange(6.0).reshape(3, 2)
    P = np.array([[0.25, 0.75], [0.0, 1.0], [0.5, 0.5]])
    table = {
        "array": lambda: X,
        "csr": lambda: sparse.csr_matrix(X),
        "coo": lambda: sparse.coo_array(X),
        "pandas": lambda: pd.DataFrame(X, columns=["p", "q"], index=[7, 8, 9]),
        "polars": lambda: pl.DataFrame(X, schema=["p", "q"]),
    }[kind]()
    repeated, y, weight = to_weighted_examples(table, P, sample_weight=[2, 1, 0])
    dense = repeated.toarray() if sparse.issparse(repeated) else np.asarray(repeated)
    np.testing.assert_array_equal(dense, X[[0, 0, 1]])
    np.testing.assert_array_equal(y, [0, 1, 1])
    np.testing.assert_allclose(weight, [0.5, 1.5, 1.0])
    if kind == "pandas":
        assert list(repeated.index) == [7, 7, 8]


@given(DISTRIBUTIONS)
def test_weights_of_one_row_sum_to_one(P):
    rows, y, weight = to_weighted_examples(np.arange(4.0)[:, None], P)
    back = np.zeros_like(P)
    back[rows.ravel().astype(int), y] = weight
    np.testing.assert_allclose(back, P)


def test_expected_value_goes_by_the_names_of_a_series_and_a_dict():
    D = pd.DataFrame([[0.5, 0.25, 0.25]], columns=["low", "middle", "high"])
    values = pd.Series({"high": 3.0, "low": 1.0, "middle": 2.0})
    assert expected_value(D, values).tolist() == [1.75]
    assert expected_value(D, values.to_dict()).tolist() == [1.75]
    assert expected_value(D, [1, 2, 3]).tolist() == [1.75]
    assert expected_value(D.to_numpy(), pd.Series([1, 2, 3])).tolist() == [1.75]
    assert expected_value(pl.DataFrame(D.to_dict("list")), {"high": 3, "low": 1, "middle": 2}).to_list() == [1.75]
    with pytest.raises(DataError, match=r"without a value are \['high'\], unknown are \['top'\]"):
        expected_value(D, values.rename({"high": "top"}))
    with pytest.raises(DataError, match="is a Series with an index"):
        expected_value(D.to_numpy(), values)
    with pytest.raises(DataError, match="twice"):
        expected_value(D, pd.Series([1.0, 2.0, 3.0], index=["low", "low", "high"]))
    with pytest.raises(DataError, match="Complex"):
        expected_value(D, [1j, 2, 3])


def test_names_that_are_numbers_of_two_kinds_stay_numbers():
    assert to_labels([[0.2, 0.8], [0.9, 0.1]], classes=[1.0, 2.5]).dtype == np.float64
