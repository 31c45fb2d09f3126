"""Row arithmetic: properties on random rows, an independent solver for the projection, and the edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize, stats

from skldl import simplex
from skldl.exceptions import DataError, NegativeDegreeError, ZeroRowError

ROWS = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8)


def finite(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False)


@given(hnp.arrays(np.float64, ROWS, elements=finite(1e-6, 1e6)))
def test_normalize_keeps_ratios(rows):
    shares = simplex.normalize(rows)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(shares * rows[:, :1], shares[:, :1] * rows, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e308, 1e-308, 5e-324])
def test_normalize_survives_extreme_magnitudes(scale):
    np.testing.assert_allclose(simplex.normalize([[scale, scale]]), [[0.5, 0.5]])


def test_normalize_says_what_is_wrong():
    with pytest.raises(NegativeDegreeError, match=r"Cell \(1, 0\) is -2.*simplex\.project"):
        simplex.normalize([[1, 1], [-2, 3]])
    with pytest.raises(ZeroRowError, match="Row 1 is all zero"):
        simplex.normalize([[1, 1], [0, 0]])


def test_inputs_stay_as_they_are():
    rows = np.array([[1.0, 3.0], [0.5, -0.5]])
    before = rows.copy()
    for function in (simplex.project, simplex.softmax, simplex.log_softmax, simplex.smooth_zeros):
        function(rows)
        np.testing.assert_array_equal(rows, before)
    simplex.normalize(np.abs(rows))


@given(hnp.arrays(np.float64, ROWS, elements=finite(-1e3, 1e3)))
def test_project_gives_distributions_and_is_idempotent(rows):
    once = simplex.project(rows)
    assert once.min() >= 0
    np.testing.assert_allclose(once.sum(axis=1), 1, atol=1e-13)
    np.testing.assert_allclose(simplex.project(once), once, atol=1e-13)


def test_project_is_the_nearest_point():
    generator = np.random.default_rng(0)
    for row in generator.normal(size=(5, 6)):
        best = optimize.minimize(
            lambda p, row=row: ((p - row) ** 2).sum(),
            np.full(6, 1 / 6),
            jac=lambda p, row=row: 2 * (p - row),
            bounds=[(0, None)] * 6,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14},
        ).x
        np.testing.assert_allclose(simplex.project(row[None])[0], best, atol=1e-6)


@pytest.mark.parametrize("row", [[0.0, -1e308, -1e308], [1e308, -1e308, 0.0], [0.0, -1.0, -1.7e308], [2.0, 1.0, 0.5]])
def test_project_cuts_what_is_one_below_the_largest_degree(row):
    """Differences and sums of such numbers may be beyond the largest number."""
    np.testing.assert_array_equal(simplex.project([row]), [[1.0, 0.0, 0.0]])


def test_project_of_a_common_shift_is_the_same():
    rows = np.random.default_rng(1).normal(size=(4, 5))
    np.testing.assert_allclose(simplex.project(rows + 1e9), simplex.project(rows), atol=1e-6)


@pytest.mark.parametrize("shift", [-0.01, 0.0, 0.3, 40.0, -1e5])
def test_project_only_shifts_where_nothing_is_cut(shift):
    P = np.random.default_rng(2).dirichlet(np.full(6, 9.0), 50)
    projected = simplex.project(P + shift)
    np.testing.assert_allclose(projected, P, rtol=0, atol=1e-14 + 1e-15 * abs(shift))
    np.testing.assert_allclose(projected.sum(axis=1), 1.0, rtol=0, atol=1e-15)


@given(hnp.arrays(np.float64, ROWS, elements=finite(-1e5, 1e5)))
def test_softmax_and_its_logarithm_agree(scores):
    P = simplex.softmax(scores)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(np.exp(simplex.log_softmax(scores)), P, atol=1e-14)


def test_smooth_zeros_mixes_with_uniform():
    smooth = simplex.smooth_zeros([[1.0, 0.0, 0.0, 0.0]], amount=0.4)
    np.testing.assert_allclose(smooth, [[0.7, 0.1, 0.1, 0.1]])
    np.testing.assert_array_equal(simplex.smooth_zeros([[0.2, 0.8]], amount=0), [[0.2, 0.8]])
    with pytest.raises(ValueError, match=r"amount=1\.5"):
        simplex.smooth_zeros([[1.0, 0.0]], amount=1.5)


def test_entropy_against_scipy():
    D = np.random.default_rng(2).dirichlet([0.3] * 7, size=20)
    D[0] = np.eye(7)[3]
    np.testing.assert_allclose(simplex.entropy(D), stats.entropy(D, axis=1), atol=1e-14)


@pytest.mark.parametrize("function", ["normalize", "project", "log_softmax", "softmax", "smooth_zeros", "entropy"])
@pytest.mark.parametrize(
    "rows",
    [
        [[0.5, np.nan]],
        [[0.5, np.inf]],
        [[0.5, -np.inf]],
        [[0.5, 0.5j]],
        np.ma.masked_array([[0.5, 0.5]], [[False, True]]),
        np.array([["2020-01-01", "2020-01-02"]], dtype="M8[D]"),
        np.array([[1, 2]], dtype="m8[s]"),
        [["a", "b"]],
        [[0.5], [0.5, 0.5]],
    ],
    ids=["nan", "inf", "minus inf", "complex", "masked", "dates", "durations", "text", "ragged"],
)
def test_what_is_no_finite_number_is_rejected(function, rows):
    with pytest.raises(DataError):
        getattr(simplex, function)(rows)


def test_masked_arrays_without_masked_cells_and_huge_numbers_pass():
    np.testing.assert_allclose(simplex.normalize(np.ma.masked_array([[1.0, 3.0]])), [[0.25, 0.75]])
    np.testing.assert_allclose(simplex.softmax([[1e308, 1e308]]), [[0.5, 0.5]])
