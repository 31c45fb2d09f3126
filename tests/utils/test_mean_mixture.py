"""Feature scalings and fractions of the mean distribution."""

import numpy as np
import pytest
from scipy import sparse

from skldl.metrics import kullback_leibler
from skldl.testing import make_distributions
from skldl.utils.arrays import weighted_mean
from skldl.utils.mean_mixture import best_fraction, first_best, mean_distribution, means_without, mix
from skldl.utils.scaling import Scaling, is_non_negative, standardisation, two_valued_columns


def test_means_without_rows_or_groups_equal_the_means_of_the_rest():
    _, D = make_distributions()
    weight = np.arange(len(D)) % 4 + 0.5
    codes = np.arange(len(D)) % 5
    for w in (None, weight):
        for groups in (None, codes):
            means = means_without(D, w, groups)
            labels = np.arange(len(D)) if groups is None else groups
            for row in (0, 7):
                rest = labels != labels[row]
                expected = np.average(D[rest], axis=0, weights=None if w is None else w[rest])
                np.testing.assert_allclose(means[row], expected, atol=1e-14)


def test_a_label_without_mass_keeps_a_positive_mean():
    D = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])
    assert mean_distribution(D, None)[2] == pytest.approx(1e-12)
    assert (means_without(D, None, None) > 0).all()


@pytest.mark.parametrize("n_rows", [1, 7, 100_000])
def test_the_mean_of_equal_rows_is_that_row(n_rows):
    """A plain sum of 100,000 equal numbers is wrong by 1e-12 of it."""
    row = np.array([0.1, 0.2, 0.7 - 1e-9, 1e-9])
    D = np.tile(row, (n_rows, 1))
    for weight in (None, np.linspace(0.3, 1, n_rows), np.full(n_rows, 1e300 / n_rows)):
        np.testing.assert_array_equal(weighted_mean(D, weight), row)
    np.testing.assert_allclose(weighted_mean(D.astype(np.float32), None), row.astype(np.float32), rtol=1e-15)


def test_the_mean_is_the_weighted_average_and_never_negative():
    generator = np.random.default_rng(0)
    D = generator.dirichlet(np.full(5, 0.05), 3000)
    D[1:, 0] = 0.0  # one row alone has the first label, and hardly counts
    for weight in (None, np.r_[1e-20, generator.random(2999)]):
        mean = weighted_mean(D, weight)
        np.testing.assert_allclose(mean, np.average(D, axis=0, weights=weight), rtol=1e-12)
        assert (mean >= 0).all()


def test_best_fraction_is_the_best_of_all_mixtures():
    X, D = make_distributions()
    P = np.roll(D, 1, axis=0)
    means = means_without(D, None, None)
    weight = X[:, 0] + 0.1
    P[3] = [0.0, 0.5, 0.5]
    fractions = (0.0, 0.01, 0.3, 0.6, 0.9)
    expected = [kullback_leibler(D, mix(P, means, fraction), sample_weight=weight) for fraction in fractions]
    divergence, fraction = best_fraction(D, P, means, weight, fractions)
    assert divergence == pytest.approx(min(expected), rel=1e-12)
    assert fraction == fractions[int(np.argmin(expected))]


def test_ties_up_to_rounding_go_to_the_first():
    assert first_best([2.0, 1.0 + 1e-15, 1.0]) == 1
    assert first_best([2.0, 1.0 + 1e-6, 1.0]) == 2


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_scalings(form):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=30), rng.integers(0, 2, 30) * 5.0, np.full(30, 3.0), np.zeros(30)])
    X[:, 0] *= rng.uniform(size=30) < 0.8
    weight = rng.integers(1, 4, 30).astype(float)
    np.testing.assert_array_equal(two_valued_columns(form(X)), [False, True, False, False])
    scaled = Scaling.fit("standard", form(X), weight).apply(form(X))
    scaled = scaled.toarray() if sparse.issparse(scaled) else scaled
    copies = np.repeat(X[:, 0], weight.astype(int))
    np.testing.assert_allclose(scaled[:, 0], X[:, 0] / copies.std(), rtol=1e-12)
    np.testing.assert_allclose(scaled[:, 1:], X[:, 1:] / [5.0, 1.0, 1.0])
    signed = X * np.where(np.arange(30) < 15, 1, -1)[:, None]
    rooted = Scaling.fit("sqrt", form(X), None).apply(form(signed))
    rooted = rooted.toarray() if sparse.issparse(rooted) else rooted
    np.testing.assert_allclose(rooted, np.sign(signed) * np.sqrt(np.abs(signed)))
    assert is_non_negative(form(X))
    assert not is_non_negative(form(signed))


@pytest.mark.parametrize("codes", [None, np.array([0, 1, 1, 2])])
def test_means_without_a_row_that_outweighs_all_others_by_far(codes):
    D = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1], [0.3, 0.7]])
    weight = np.array([1e20, 1.0, 2.0, 3.0])
    means = means_without(D, weight, codes)
    np.testing.assert_allclose(means[0], weight[1:] @ D[1:] / 6, rtol=1e-14)
    np.testing.assert_allclose(means[1:], np.tile(D[0], (3, 1)), rtol=1e-14)


def test_means_without_the_only_row_or_group_are_its_own():
    D = np.array([[0.5, 0.5], [0.2, 0.8]])
    np.testing.assert_allclose(means_without(D[:1], None, None), D[:1], rtol=1e-11)
    np.testing.assert_allclose(means_without(D, np.array([1.0, 3.0]), np.zeros(2, dtype=int)), [[0.275, 0.725]] * 2)


@pytest.mark.parametrize("n_samples", [50, 100_000])
def test_standardisation_knows_constant_columns_however_many_rows(n_samples):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 2, size=n_samples), np.full(n_samples, 0.1), np.zeros(n_samples)])
    weight = rng.uniform(1, 2, size=n_samples)
    mean, scale = standardisation(X, weight / weight.sum())
    np.testing.assert_allclose(mean, np.average(X, axis=0, weights=weight), rtol=1e-11)
    expected = 1 / np.sqrt(np.cov(X[:, 0], aweights=weight, ddof=0))
    np.testing.assert_allclose(scale, [expected, 0, 0], rtol=1e-11)
