"""Ordered labels: integrals against numerical integration, limits, circles, bad input."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from skldl.distributions import from_neighbours
from skldl.exceptions import (
    DataError,
    EmptyDataError,
    LengthMismatchError,
    MissingLabelError,
    NotNumericError,
    SingleLabelError,
    UnknownLabelError,
)

SHAPES = ["gaussian", "triangular", "laplace"]
DENSITY = {
    "gaussian": stats.norm.pdf,
    "triangular": lambda x: np.maximum(1 - abs(x), 0),
    "laplace": stats.laplace.pdf,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_degrees_are_integrals_over_uneven_intervals(shape):
    labels, y, scale = [1.0, 2.0, 4.0, 5.0], 2.6, 1.3
    edges = [0.5, 1.5, 3.0, 4.5, 5.5]
    mass = [
        integrate.quad(lambda t: DENSITY[shape]((t - y) / scale), low, high, points=[y] if low < y < high else None)[0]
        for low, high in itertools.pairwise(edges)
    ]
    np.testing.assert_allclose(from_neighbours([y], labels, scale, shape)[0], np.array(mass) / sum(mass), atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@given(y=st.lists(st.integers(0, 9), min_size=1, max_size=8), scale=st.floats(0.3, 20))
def test_degrees_fall_with_the_distance_and_sum_to_one(shape, y, scale):
    D = from_neighbours(y, range(10), scale, shape)
    np.testing.assert_allclose(D.sum(axis=1), 1)
    assert list(D.argmax(axis=1)) == y
    for row, centre in zip(D, y, strict=True):
        assert (np.diff(row[:centre]) >= -1e-12).all()
        assert (np.diff(row[centre:]) <= 1e-12).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_no_width_gives_one_label_and_a_tie_gives_two(shape):
    for scale in (0.0, 1e-9):
        np.testing.assert_allclose(from_neighbours([0, 2.2], range(4), scale, shape), np.eye(4)[[0, 2]])
        np.testing.assert_allclose(from_neighbours([1.5], range(4), scale, shape), [[0, 0.5, 0.5, 0]])
    np.testing.assert_allclose(from_neighbours([-0.5], range(3), 0.0, shape), [[1, 0, 0]])
    mixed = from_neighbours([1, 1], range(3), [0.0, 1.0], shape)
    np.testing.assert_array_equal(mixed[0], [0, 1, 0])
    assert mixed[1, 0] > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_great_width_gives_the_lengths_of_the_intervals(shape):
    np.testing.assert_allclose(from_neighbours([2], [1, 2, 4], 1e6, shape), [[1 / 4.5, 1.5 / 4.5, 2 / 4.5]], rtol=1e-4)
    np.testing.assert_allclose(from_neighbours([2], range(4), 1e6, shape, circular=True), [[0.25] * 4], rtol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
@given(shift=st.integers(-20, 20), scale=st.floats(0.1, 10))
def test_turning_the_circle_turns_the_degrees(shape, shift, scale):
    base = from_neighbours([3], range(8), scale, shape, circular=True)[0]
    np.testing.assert_allclose(base[3 + 1 :][:3], base[:3][::-1], atol=1e-12)
    turned = from_neighbours([3 + shift], range(8), scale, shape, circular=8)[0]
    np.testing.assert_allclose(turned, np.roll(base, shift), atol=1e-9)


def test_circle_with_uneven_labels_takes_its_period():
    D = from_neighbours([350], [0, 10, 180], 5, circular=360)[0]
    assert D[0] > 0.4  # from 275 to 5, around the zero
    np.testing.assert_allclose(from_neighbours([0], [0, 10, 180], 1e-6, circular=360), [[1, 0, 0]])
    with pytest.raises(DataError, match="Pass the period"):
        from_neighbours([0], [0, 10, 180], 5, circular=True)
    for period in (100, np.inf):
        with pytest.raises(ValueError, match="period"):
            from_neighbours([0], [0, 10, 180], 5, circular=period)


def test_order_of_labels_and_tables():
    straight, backward = from_neighbours([2], [1, 2, 4], 1.0), from_neighbours([2], [4, 2, 1], 1.0)
    np.testing.assert_allclose(backward, straight[:, ::-1])
    D = from_neighbours(pd.Series([1, 2], index=["p", "q"]), [1, 2, 3], 0.5)
    assert (list(D.columns), list(D.index)) == ([1, 2, 3], ["p", "q"])
    assert from_neighbours(pl.Series([1, 2]), [1, 2, 3], 0.5).columns == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([9], [1, 2, 3], 1), UnknownLabelError, r"y\[0\] is 9, beyond the labels.*0.5 to 3.5"),
        ((["x"], [1, 2, 3], 1), NotNumericError, r"y\[0\] is 'x'"),
        ((["1"], [1, 2, 3], 1), NotNumericError, r"y\[0\] is '1'"),
        (([np.inf], [1, 2, 3], 1), NotNumericError, r"y\[0\] is inf"),
        (([None], [1, 2, 3], 1), MissingLabelError, r"y\[0\] is missing"),
        (([], [1, 2, 3], 1), EmptyDataError, "no rows"),
        (([1], [1], 1), SingleLabelError, "one class"),
        (([1], ["a", "b"], 1), NotNumericError, r"labels\[0\]"),
        (([1], [1, 2], -1), ValueError, "scale"),
        (([1], [1, 2], [1, 2]), LengthMismatchError, "scale has shape"),
        (([1], [1, 2], 1, "box"), ValueError, "shape='box'"),
    ],
)
def test_bad_input(arguments, error, words):
    with pytest.raises(error, match=words):
        from_neighbours(*arguments)
