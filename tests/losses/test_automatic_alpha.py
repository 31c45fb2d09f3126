"""``alpha="auto"``: the criterion against hat matrices, its limits, and what the choice must not depend on."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skldl.correlation import BDLDL, LDLDPA, LDLHVLC, LDLLC, LDLLDM, LDLLRR, LDLSCL
from skldl.decision import LDL4C, LDLHR, LDLM
from skldl.losses import DirichletLDL, SmoothLossLDL
from skldl.losses._automatic_alpha import count_different_rows  # one row more or less rarely changes a result
from skldl.metrics import kullback_leibler
from skldl.testing import make_distributions

LINEAR = [LDLDPA, LDLHVLC, LDLLC, LDLLDM, LDLLRR, LDLSCL, LDL4C, LDLHR, LDLM, SmoothLossLDL, DirichletLDL, BDLDL]


def scores_by_hat_matrices(X, Z, weight, curvature, alphas):
    """Σ_j p_j RSS_j / (1 − tr H_j / n)² from the hat matrix of each response; infinite above n/2 degrees of freedom."""
    scores = []
    for alpha in alphas:
        score = 0.0
        for p, z in zip(curvature, Z.T, strict=True):
            inner = p * (X.T * weight) @ X + alpha * np.eye(X.shape[1])
            H = p * X @ np.linalg.solve(inner, X.T * weight)
            score += p * (weight @ (z - H @ z) ** 2) / (1 - np.trace(H) / len(X)) ** 2
            score = np.inf if np.trace(H) > len(X) / 2 else score
        scores.append(score)
    return scores


def candidates(X, weight):
    """25 values from 1e-10 to 100 times the mean eigenvalue of the weighted mean of x xᵀ."""
    return weight @ (X**2).sum(axis=1) / min(X.shape) * np.logspace(-10, 2, 25)


@pytest.mark.parametrize(
    ("shape", "fit_intercept"),
    [((60, 4, 3), False), ((60, 4, 3), True), ((16, 30, 4), False), ((70, 60, 180), False)],
    ids=["columns", "intercept", "rows", "blocks"],  # of the factorisation; the last in two blocks of candidates
)
def test_choice_is_the_minimum_by_hat_matrices(shape, fit_intercept):
    X, D = make_distributions(*shape)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    share = weight / weight.sum()
    mean = share @ D
    centred = X - share @ X if fit_intercept else X
    alphas = candidates(centred, share)
    scores = scores_by_hat_matrices(centred, (D - mean) / mean, share, mean, alphas)
    chosen = SmoothLossLDL(fit_intercept=fit_intercept).fit(X, D, weight).alpha_
    assert chosen == pytest.approx(alphas[np.argmin(scores)], rel=1e-9)


@pytest.mark.parametrize("shape", [(60, 4, 3), (16, 30, 4)])
def test_choice_of_bdldl_is_that_of_ridge_regression_of_all_labels(shape):
    X, D = make_distributions(*shape)
    weight = np.full(len(X), 1 / len(X))
    alphas = candidates(X, weight)
    scores = scores_by_hat_matrices(X, D, weight, np.ones(shape[2]), alphas)
    assert BDLDL().fit(X, D).alpha_ == pytest.approx(alphas[np.argmin(scores)], rel=1e-9)


@pytest.mark.parametrize("kind", LINEAR)
def test_penalty_is_stored_and_a_path_over_it_is_one_fit_for_each(kind):
    X, D = make_distributions(60, 4, 3)
    values = ["auto", 1e-2, 1e-1]
    path = list(kind().predict_path(X, D, X[:5], param="alpha", values=values))
    for value, P in zip(values, path, strict=True):
        model = kind(alpha=value).fit(X, D)
        np.testing.assert_allclose(P, model.predict(X[:5]), atol=1e-5)
        assert model.alpha_ == value if value != "auto" else model.alpha_ > 0


@pytest.mark.parametrize("kind", [SmoothLossLDL, LDLLDM, LDL4C])
def test_unit_of_the_features_does_not_matter(kind):
    X, D = make_distributions(80, 4, 3)
    plain, scaled = kind(tol=1e-12).fit(X, D), kind(tol=1e-12).fit(1000 * X, D)
    assert scaled.alpha_ == pytest.approx(1e6 * plain.alpha_, rel=1e-6)
    np.testing.assert_allclose(scaled.predict(1000 * X), plain.predict(X), atol=1e-5)


def test_noise_is_shrunk_to_the_mean_and_signal_is_not():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(200, 30))
    D = rng.dirichlet(np.ones(4), size=200)
    model = SmoothLossLDL().fit(noise[:150], D[:150])
    free = SmoothLossLDL(alpha=1e-9).fit(noise[:150], D[:150])
    assert kullback_leibler(D[150:], model.predict(noise[150:])) < kullback_leibler(D[150:], free.predict(noise[150:]))
    np.testing.assert_allclose(model.predict(noise[150:]), np.tile(D[:150].mean(axis=0), (50, 1)), atol=0.05)
    X, D = make_distributions(200, 4, 3)
    assert SmoothLossLDL().fit(X, D).alpha_ < model.alpha_


def test_constant_features_one_row_and_more_columns_than_are_factorised():
    _, D = make_distributions(10, 2, 3)
    assert SmoothLossLDL().fit(np.ones((10, 2)), D).alpha_ == 1.0
    assert SmoothLossLDL(fit_intercept=False).fit([[2.0]], D[:1]).alpha_ == pytest.approx(4e-10)
    many = sparse.eye_array(5001, format="csr")
    model = SmoothLossLDL(fit_intercept=False).fit(many, np.tile([[0.4, 0.6]], (5001, 1)))
    assert model.alpha_ == pytest.approx(0.1 / 5001)  # a tenth of the mean square of the columns


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_copies_count_once(form, monkeypatch):
    monkeypatch.setattr("skldl.losses._automatic_alpha.BLOCK_CELLS", 20)
    X, D = make_distributions(30, 4, 3)
    X[X < 0.3] = 0
    X[5], D[5] = X[7], D[7]
    X[9] = X[3]  # with another distribution
    assert count_different_rows(form(X), D) == 29
    assert count_different_rows(form(np.vstack([X, X])), np.vstack([D, D])) == 29


def test_a_word_that_is_no_choice_is_rejected():
    X, D = make_distributions()
    for model in (SmoothLossLDL(), BDLDL(), LDLSCL()):
        with pytest.raises(ValueError, match=r"alpha='best' must be 'auto' or a finite number of at least 0"):
            clone(model).set_params(alpha="best").fit(X, D)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_labels", [2, 3, 6])
def test_different_rows_by_brute_force(form, n_labels):
    rng = np.random.default_rng(n_labels)
    D = np.eye(n_labels)[rng.integers(n_labels, size=200)]  # few different distributions: most rows share them
    D[:50] = rng.dirichlet(np.ones(n_labels), 50)
    D[50:60] = D[:10]
    X = rng.integers(0, 2, size=(200, 4)).astype(float)
    X[50:55] = X[:5]
    X[55:60] = X[5:10] + 1  # the same distribution, other features
    expected = len({(x.tobytes(), d.tobytes()) for x, d in zip(X, D, strict=True)})
    assert 60 < expected < 150
    assert count_different_rows(form(X), D) == expected


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_that_differ_in_the_sign_of_a_zero_are_equal(form):
    X, D = np.array([[1.0, 0.0], [1.0, -0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0]] * 4)
    D[2, 0] = -0.0
    assert count_different_rows(form(X), D) == 2


def test_stored_zeros_make_no_difference():
    X = sparse.csr_array((np.array([1.0, 2.0, 1.0, 0.0, 2.0]), [0, 2, 0, 1, 2], [0, 2, 5]), shape=(2, 3))
    assert count_different_rows(X, np.full((2, 2), 0.5)) == 1
    assert X.nnz == 5
