"""The Gaussian kernel of PT-SVM: its width, and digits that rows far from zero, or from each other, must not lose."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from skldl import PTSVM
from skldl.testing import make_distributions
from skldl.transformation import _gaussian
from skldl.transformation._gaussian import gaussian_kernel

FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])


def test_widths_of_the_kernel():
    X, D = make_distributions()
    assert PTSVM().fit(X, D).gamma_ == 1 / 4
    assert PTSVM(gamma="scale").fit(X, D).gamma_ == pytest.approx(1 / (4 * X.var()))
    assert PTSVM(gamma="scale").fit(sparse.csr_matrix(X), D).gamma_ == pytest.approx(1 / (4 * X.var()))
    assert PTSVM(gamma="scale").fit(np.zeros_like(X), D).gamma_ == 1.0
    assert PTSVM(gamma=3).fit(X, D).gamma_ == 3.0
    assert PTSVM(kernel="linear").fit(X, D).gamma_ is None


@FORMS
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(("C", "n_samples"), [(1e-3, 60), (3.0, 60), (100.0, 320)])
def test_where_the_features_are_zero_does_not_matter(kernel, C, n_samples, form):
    """2³⁰ has so many digits that a kernel computed from squared norms would be noise."""
    X, D = make_distributions(n_samples=n_samples)
    X = np.round(X * 256) / 256  # so that X + 2³⁰ is exact
    model = PTSVM(kernel=kernel, C=C, gamma="scale")
    expected = model.fit(X, D).predict(X)
    found = model.fit(form(X + 2.0**30), D).predict(form(X + 2.0**30))
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_scaling_of_a_far_column_does_not_hide_the_others():
    """Only one column is far from zero, in a sparse matrix where the others keep their zeros."""
    X, D = make_distributions(n_samples=60)
    X[X < 0.3] = 0.0
    X = np.round(X * 256) / 256
    expected = PTSVM(C=3.0).fit(X, D).predict(X)
    X[:, 1] += 2.0**30
    rows = sparse.csr_matrix(X)
    np.testing.assert_allclose(PTSVM(C=3.0).fit(rows, D).predict(rows), expected, atol=1e-9)


@FORMS
@pytest.mark.parametrize("factor", [2.0**-480, 2.0**480])
def test_small_and_large_features_have_a_width(form, factor):
    X, D = make_distributions()
    model = PTSVM(gamma="scale", C=3.0)
    expected = model.fit(X, D).predict(X)
    np.testing.assert_allclose(model.fit(form(factor * X), D).predict(form(factor * X)), expected, atol=1e-7)


def clusters(n_rows, distances, n_features=6):
    """Rows around a few points at some distances from zero, every third of them the same as another."""
    rng = np.random.default_rng(len(distances))
    points = rng.normal(size=(len(distances), n_features)) * np.reshape(distances, (-1, 1))
    points[:, ::3] = 0.0
    X = points[rng.integers(len(distances), size=n_rows)] + rng.normal(size=(n_rows, n_features))
    X[::3] = X[rng.integers(n_rows, size=len(X[::3]))]
    return X


@pytest.mark.parametrize("few", [(0, 1), (4, 1000), (100, 1000)], ids=["groups", "both", "pairs"])
@pytest.mark.parametrize("distances", [[1e6, -1e6], [1e3, 1e6, 1e9], [1e9, 1e9, 1.0], [0.0, 1e5]])
@FORMS
def test_rows_of_clusters_far_apart_keep_their_digits(form, distances, few, monkeypatch):
    monkeypatch.setattr(_gaussian, "FEW_COLUMNS", few[0])
    monkeypatch.setattr(_gaussian, "FEW_PAIRS", few[1])
    X = clusters(90, distances)
    new = np.vstack([X[::2], clusters(20, [*distances, 50.0])])
    expected = np.exp(-0.3 * cdist(new, X, "sqeuclidean"))
    assert 0.1 < (expected > 1e-9).mean() < 0.9
    np.testing.assert_allclose(gaussian_kernel(form(new), form(X), 0.3), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(gaussian_kernel(new, form(X), 0.3), expected, rtol=0, atol=1e-11)


def test_within_a_group_digits_can_be_lost_again():
    """Points 10¹⁰ from zero: rows 10⁴ apart cannot be told from equal ones, and are too far apart for rows 1 apart."""
    X = clusters(90, [1e10, 2e10])
    X[:45, 1] += 1e4
    expected = np.exp(-0.3 * cdist(X, X, "sqeuclidean"))
    np.testing.assert_allclose(gaussian_kernel(X, X, 0.3), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(gaussian_kernel(sparse.csr_matrix(X), X, 0.3), expected, rtol=0, atol=1e-11)


def test_two_clusters_far_apart_are_learned_as_if_they_were_near():
    """Between the clusters the kernel is 0, wherever they are; sparse, since both have zeros in every column."""
    X, D = make_distributions(n_samples=80)
    X = np.round(X * 256) / 256  # so that sums with 2²⁰ are exact
    near, far = np.zeros((80, 8)), np.zeros((80, 8))
    near[:40, :4], near[40:, 4:] = X[:40] + 2.0**5, X[40:] + 2.0**5
    far[:40, :4], far[40:, 4:] = X[:40] + 2.0**20, X[40:] + 2.0**20
    model = PTSVM(C=3.0, gamma=1.0)
    expected = model.fit(near, D).predict(near)
    for form in (np.asarray, sparse.csr_matrix):
        np.testing.assert_allclose(model.fit(form(far), D).predict(form(far)), expected, atol=1e-8)


def test_matrix_products_take_the_place_of_pairs(monkeypatch):
    """Of two clusters far apart nearly all pairs are near each other; one after the other, they take much longer."""
    sizes = []
    monkeypatch.setattr(
        _gaussian,
        "row_norms",
        lambda rows, squared, own=_gaussian.row_norms: sizes.append(rows.shape[0]) or own(rows, squared=squared),
    )
    X = sparse.csr_matrix(clusters(400, [1e6, -1e6]))
    gaussian_kernel(X, X, 0.3)
    assert sum(sizes) < 3000  # of 160,000 pairs
