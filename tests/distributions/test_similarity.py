"""Similarity: special cases, sets, names, bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skldl.distributions import from_label_sets, from_labels, from_similarity
from skldl.exceptions import (
    DataError,
    DimensionError,
    NegativeDegreeError,
    UnknownLabelError,
    ZeroRowError,
)

S = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 4.0]])
NAMES = ["sad", "calm", "glad"]


@given(st.lists(st.sampled_from(NAMES), min_size=1))
def test_the_identity_spreads_nothing(y):
    np.testing.assert_array_equal(from_similarity(y, np.eye(3), NAMES), from_labels(y, NAMES))


@given(
    st.lists(st.sets(st.sampled_from(NAMES), min_size=1), min_size=1),
    hnp.arrays(np.float64, (3, 3), elements=st.floats(0.01, 9)),
)
def test_a_set_is_the_mean_of_its_labels(sets, similarity):
    D = from_similarity(sets, similarity, NAMES)
    np.testing.assert_allclose(D.sum(axis=1), 1)
    for row, members in zip(D, sets, strict=True):
        np.testing.assert_allclose(row, from_similarity(sorted(members), similarity, NAMES).mean(axis=0))
    np.testing.assert_allclose(from_similarity(sets, np.eye(3), NAMES), from_label_sets(sets, NAMES))


def test_names_from_tables_and_forms_of_y():
    frame = pd.DataFrame(S, index=NAMES, columns=NAMES)
    expected = [[0.25, 0.5, 0.25]]
    np.testing.assert_allclose(from_similarity(["calm"], frame), expected)
    np.testing.assert_allclose(from_similarity([1], S), expected)
    np.testing.assert_allclose(from_similarity(np.array([[0, 1, 0]]), S), expected)
    assert list(from_similarity(pd.Series(["calm"], index=[7]), frame).index) == [7]
    D = from_similarity(pl.Series(["calm"]), pl.DataFrame(S, schema=NAMES))
    assert D.columns == NAMES
    sets = pd.DataFrame([[0, 1, 0]], columns=NAMES)
    np.testing.assert_allclose(from_similarity(sets, frame).to_numpy(), expected)


@pytest.mark.parametrize(
    ("y", "similarity", "classes", "error", "words"),
    [
        (["angry"], S, NAMES, UnknownLabelError, "'angry'.*the labels of S"),
        ([["angry"]], S, NAMES, UnknownLabelError, "'angry'"),
        (["sad"], S[:2], None, DimensionError, r"shape \(2, 3\)"),
        (["sad"], -S, NAMES, NegativeDegreeError, "'sad' and 'sad'"),
        (["sad"], S * [[0], [1], [1]], NAMES, ZeroRowError, "'sad' is similar to no label"),
        ([[], ["sad"]], S, NAMES, ZeroRowError, "Row 0 of y"),
        (["sad"], pd.DataFrame(S, index=NAMES[::-1], columns=NAMES), None, DataError, "same order"),
        (pd.DataFrame([[0, 1, 0]], columns=NAMES[::-1]), pd.DataFrame(S, columns=NAMES), None, DataError, "order"),
    ],
)
def test_bad_input(y, similarity, classes, error, words):
    with pytest.raises(error, match=words):
        from_similarity(y, similarity, classes)
