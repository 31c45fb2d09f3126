"""Medians by passes against those of NumPy, in every kind of column."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skldl.exceptions import DataError
from skldl.tabular._medians import MedianSearch

LEAST = 5e-324


def searched(values, *, sample=None, n_buckets=4096, chunk=97):
    """The search when it has ended, and how many passes it took."""
    search, passes = MedianSearch(sample, n_buckets), 0
    while search.median is None:
        for start in range(0, len(values), chunk):
            search.update(values[start : start + chunk])
        search.end_pass()
        passes += 1
    return search, passes


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.floats(-10, 10), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, LEAST])
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(2, 9),
)
def test_any_numbers(values, n_buckets):
    values = np.array(values)
    middle = np.sort(values)[[(len(values) - 1) // 2, len(values) // 2]]
    search, _ = searched(values, n_buckets=n_buckets, chunk=7)
    assert search.upper == middle[1]
    with np.errstate(over="ignore"):
        np.testing.assert_equal(search.median + 0.0, (middle[0] + middle[1]) / 2 + 0.0)


@pytest.mark.parametrize("n_values", [20_000, 20_001])
@pytest.mark.parametrize("kind", ["normal", "whole", "two values", "constant", "years of seconds", "mostly zero"])
def test_columns_as_people_have_them(kind, n_values):
    rng = np.random.default_rng(0)
    values = {
        "normal": lambda: rng.normal(size=n_values),
        "whole": lambda: rng.integers(18, 90, n_values).astype(float),
        "two values": lambda: rng.integers(0, 2, n_values).astype(float),
        "constant": lambda: np.full(n_values, 3.7),
        "years of seconds": lambda: rng.uniform(1.6e9, 1.7e9, n_values).round(),
        "mostly zero": lambda: np.where(rng.random(n_values) < 0.6, 0.0, rng.lognormal(size=n_values)),
    }[kind]()
    for sample in (None, rng.permutation(values)[:1000]):
        search, passes = searched(values, sample=sample, chunk=5000)
        assert search.median == np.median(values)
        assert passes <= 3


def test_a_sample_saves_passes_and_a_wrong_one_does_no_harm():
    values = np.random.default_rng(1).normal(size=100_000)
    assert searched(values, sample=values[:5000], chunk=20_000)[1] == 2
    for wrong in (values[:5000] + 50, values[:5000] - 50):
        search, passes = searched(values, sample=wrong, chunk=20_000)
        assert search.median == np.median(values)
        assert 2 < passes <= 5


def test_no_value_and_a_table_that_changes():
    assert np.isnan(searched(np.empty(0))[0].median)
    search = MedianSearch(n_buckets=2)
    search.update(np.arange(50.0))
    search.end_pass()
    search.update(np.arange(49.0))
    with pytest.raises(DataError, match="had 50 values and has 49 now"):
        search.end_pass()
