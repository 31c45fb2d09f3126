"""Counts and intensities: hand cases, properties, tables, bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skldl.distributions import from_counts, from_scores
from skldl.exceptions import (
    DimensionError,
    DuplicateLabelError,
    LengthMismatchError,
    NegativeDegreeError,
    NonFiniteError,
    NotNumericError,
    SingleLabelError,
    ZeroRowError,
)

COUNTS = hnp.arrays(
    np.int64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6), elements=st.integers(0, 99)
)


@given(COUNTS, st.floats(0.01, 10))
def test_smoothed_counts_are_the_mean_of_the_dirichlet_posterior(C, alpha):
    D, weight = from_counts(C, smoothing=alpha, return_weight=True)
    np.testing.assert_allclose(D, (C + alpha) / (C + alpha).sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(weight, C.sum(axis=1))


@given(COUNTS)
def test_shares_do_not_depend_on_the_number_of_votes(C):
    C = C + 1
    np.testing.assert_allclose(from_counts(3 * C), from_counts(C))


def test_prior_per_label_decides_rows_without_votes():
    np.testing.assert_allclose(from_counts([[0, 0], [2, 0]], smoothing=[1, 3]), [[0.25, 0.75], [0.5, 0.5]])


def test_frames_keep_names_and_index():
    D = from_counts(pd.DataFrame({"no": [1, 2], "yes": [3, 2]}, index=["p", "q"]))
    pd.testing.assert_frame_equal(D, pd.DataFrame({"no": [0.25, 0.5], "yes": [0.75, 0.5]}, index=["p", "q"]))
    D = from_scores(pl.DataFrame({"no": [1.0], "yes": [3.0]}))
    assert isinstance(D, pl.DataFrame)
    assert D.to_dict(as_series=False) == {"no": [0.25], "yes": [0.75]}


@pytest.mark.parametrize(
    ("C", "options", "error", "words"),
    [
        ([[1, -1]], {}, NegativeDegreeError, "Row 0 holds the negative count -1 for label 1"),
        ([[1, 1], [0, 0]], {}, ZeroRowError, "Row 1 of C counts no vote.*smoothing"),
        ([[1, np.nan]], {}, NonFiniteError, "NaN"),
        ([["a", "b"]], {}, NotNumericError, "'a'"),
        ([1, 2], {}, DimensionError, "two"),
        ([[1], [2]], {}, SingleLabelError, "at least two"),
        ([[1, 2]], {"smoothing": -1}, ValueError, "smoothing=-1"),
        ([[1, 2]], {"smoothing": [1, 2, 3]}, LengthMismatchError, "2 labels"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, DuplicateLabelError, "'a'"),
    ],
)
def test_bad_counts(C, options, error, words):
    with pytest.raises(error, match=words):
        from_counts(C, **options)


SCORES = hnp.arrays(np.float64, (3, 4), elements=st.floats(0.01, 1e3))


@given(SCORES, st.floats(0.2, 3))
def test_shares_of_a_power_are_a_softmax_of_logarithms(S, power):
    expected = from_scores(np.log(S), method="softmax", temperature=1 / power)
    np.testing.assert_allclose(from_scores(S, power=power), expected, rtol=1e-9)


def test_scores_that_would_overflow_and_shifted_ratings():
    np.testing.assert_allclose(from_scores([[1e300, 1e300]], power=3), [[0.5, 0.5]])
    np.testing.assert_allclose(from_scores([[-4, 0, 4]], shift=4), [[0, 1 / 3, 2 / 3]])


def test_rows_of_zeros():
    S = [[0, 0], [1, 3]]
    with pytest.raises(ZeroRowError, match="Row 0"):
        from_scores(S)
    np.testing.assert_allclose(from_scores(S, empty="uniform"), [[0.5, 0.5], [0.25, 0.75]])
    np.testing.assert_allclose(from_scores(S, empty="drop"), [[0.25, 0.75]])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, NegativeDegreeError, "negative score -1.*softmax"),
        ({"method": "max"}, ValueError, "method='max'"),
        ({"power": 0}, ValueError, "power=0"),
        ({"temperature": -1}, ValueError, "temperature=-1"),
        ({"empty": "no"}, ValueError, "empty='no'"),
    ],
)
def test_bad_scores(options, error, words):
    with pytest.raises(error, match=words):
        from_scores([[1, -1]], **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temperature": 2.0}, "temperature=2.0 has no effect with method='share'"),
        ({"method": "softmax", "power": 2.0}, "power=2.0 has no effect with method='softmax'"),
        ({"method": "softmax", "shift": 1.0}, "shift=1.0 has no effect with method='softmax'"),
        ({"shift": np.nan}, "shift=nan"),
    ],
)
def test_options_that_do_not_apply_are_rejected(options, words):
    with pytest.raises(ValueError, match=words):
        from_scores([[1.0, 2.0]], **options)
