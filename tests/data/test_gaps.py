"""`make_missing`: how much is hidden, what is hidden, and what stays."""

import numpy as np
import pytest

from skldl.data import make_missing
from skldl.exceptions import DataError, ParameterError


@pytest.fixture(scope="module")
def D():
    return np.random.default_rng(0).dirichlet(np.ones(8), size=500)


@pytest.mark.parametrize("mechanism", ["uniform", "degree"])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5])
def test_rate_is_the_share_of_hidden_cells(D, mechanism, rate):
    hidden = make_missing(D, rate, mechanism=mechanism)
    assert np.isnan(hidden).mean() == pytest.approx(rate, abs=0.01)
    seen = ~np.isnan(hidden)
    np.testing.assert_allclose(hidden[seen], D[seen])


def test_uniform_hides_all_degrees_alike_and_degree_the_small_ones(D):
    uniform, degree = (np.isnan(make_missing(D, mechanism=mechanism)) for mechanism in ("uniform", "degree"))
    assert D[uniform].mean() == pytest.approx(D[~uniform].mean(), rel=0.1)
    assert D[degree].mean() < 0.9 * D[~degree].mean()


def test_first_cell_drawn_by_degree_has_probability_in_proportion_to_one_minus_d():
    row = np.array([0.7, 0.2, 0.1])
    gaps = np.isnan(make_missing(np.tile(row, (40_000, 1)), 1 / 3, mechanism="degree"))
    number = gaps.sum(axis=1)
    first = gaps[number == 1].mean(axis=0)
    np.testing.assert_allclose(first, (1 - row) / (1 - row).sum(), atol=0.01)


def test_label_hides_whole_labels_in_nine_tenths_of_the_rows(D):
    gaps = np.isnan(make_missing(D, 0.5, mechanism="label"))
    assert sorted(gaps.mean(axis=0)) == [0.0] * 4 + [0.9] * 4
    assert (gaps.sum(axis=1) == 0).sum() == 50


@pytest.mark.parametrize("mechanism", ["uniform", "degree", "label"])
def test_two_labels_stay_and_ratios_too(D, mechanism):
    hidden = make_missing(D, 1.0, mechanism=mechanism, renormalise=True)
    assert (~np.isnan(hidden)).sum(axis=1).min() == 2
    np.testing.assert_allclose(np.nansum(hidden, axis=1), 1.0)
    seen = ~np.isnan(hidden)
    ratios = np.where(seen, D, 0.0)
    np.testing.assert_allclose(np.nan_to_num(hidden), ratios / ratios.sum(axis=1, keepdims=True))


def test_rows_keep_some_mass_and_seeds_repeat():
    D = np.tile([1.0, 0.0, 0.0, 0.0], (100, 1))
    assert (np.nansum(make_missing(D, 0.5), axis=1) == 1).all()
    np.testing.assert_array_equal(make_missing(D, random_state=3), make_missing(D, random_state=3))


def test_bad_arguments_are_named(D):
    with pytest.raises(ParameterError, match="rate=2"):
        make_missing(D, 2)
    with pytest.raises(ParameterError, match="mechanism='rows'"):
        make_missing(D, mechanism="rows")
    with pytest.raises(DataError, match="keep=9"):
        make_missing(D, keep=9)
