"""LDLHVLC: common checks, the objective by loops, its correlations against numpy, limits."""

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.neighbors import NearestNeighbors

from skldl import SABFGS
from skldl.correlation import LDLHVLC, _joined
from skldl.correlation._ldlhvlc import column_correlations, neighbour_means, row_correlations
from skldl.simplex import softmax
from skldl.testing import check_estimator, make_distributions

TWO_PLACES = "a copied row takes the place of two neighbours"


def test_common_checks():
    expected = {
        "check_weight_two_is_row_twice": TWO_PLACES,
        "check_sample_weight_equivalence_on_dense_data": TWO_PLACES,
        "check_sample_weight_equivalence_on_sparse_data": TWO_PLACES,
    }
    check_estimator(LDLHVLC(), expected_failed_checks=expected)


def _neighbour_means(X, D, k):
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    np.fill_diagonal(distances, np.inf)
    return D[np.argsort(distances, axis=1)[:, :k]].mean(axis=1)


def test_correlations_are_those_of_numpy():
    rng = np.random.default_rng(0)
    A, B = rng.dirichlet(np.ones(4), size=6), rng.dirichlet(np.ones(4), size=6)
    A[2] = 0.25
    expected = [0.0 if i == 2 else np.corrcoef(A[i], B[i])[0, 1] for i in range(6)]
    np.testing.assert_allclose(row_correlations(A, B), expected, atol=1e-12)
    np.testing.assert_allclose(column_correlations(B, np.full(6, 1 / 6)), np.corrcoef(B.T), atol=1e-12)
    B[:, 1] = 0.3
    assert not column_correlations(B, np.full(6, 1 / 6))[1].any()


@pytest.mark.parametrize(("shape", "fit_intercept"), [((40, 3, 3), True), ((14, 20, 3), False)])
def test_objective_by_loops(shape, fit_intercept):
    X, D = make_distributions(*shape)
    n, q, c = shape
    weight = np.random.default_rng(0).uniform(0.5, 2, n)
    settings = {"alpha": 1e-2, "alpha_neighbours": 3e-2, "horizontal_weight": 0.5, "vertical_weight": 0.2}
    model = LDLHVLC(n_neighbors=3, fit_intercept=fit_intercept, tol=1e-11, **settings).fit(X, D, weight)
    share = weight / weight.sum()
    C = _neighbour_means(X, D, 3)
    rho = row_correlations(C, D)
    R = column_correlations(D, share)

    def objective(flat):
        parameters = flat.reshape(q + c + 1, c)
        W, M, b = parameters[:q], parameters[q : q + c], parameters[-1]
        P = softmax(X @ W + C @ M + b * fit_intercept)
        total = 0.5 * 1e-2 * (W**2).sum() + 0.5 * 3e-2 * (M**2).sum()
        for w, p, d, mean, r in zip(share, P, D, C, rho, strict=True):
            vertical = sum(R[j, k] * (p[j] - p[k]) ** 2 for j in range(c) for k in range(c))
            total += w * ((d * np.log(d / p)).sum() + 0.5 * r * ((p - mean) ** 2).sum() + 0.2 * vertical)
        return total

    end = np.vstack([model.coef_.T, model.neighbour_coef_.T, model.intercept_]).ravel()
    assert objective(end) == pytest.approx(model.loss_curve_[-1], rel=1e-9)
    lower = optimize.minimize(objective, end, method="BFGS", options={"gtol": 1e-8, "maxiter": 30}).fun
    assert model.loss_curve_[-1] - lower < 1e-7


def test_new_rows_use_all_training_rows_as_neighbours():
    X, D = make_distributions(40, 3, 3)
    model = LDLHVLC(n_neighbors=1).fit(X, D)
    C = D[:5]  # the nearest training row of a training row is the row itself
    expected = softmax(X[:5] @ model.coef_.T + C @ model.neighbour_coef_.T + model.intercept_)
    np.testing.assert_allclose(model.predict(X[:5]), expected, atol=1e-12)


def test_equal_distances_depend_neither_on_the_order_of_the_rows_nor_on_sparsity():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(60, 4)).astype(float)  # copies and equal distances everywhere
    D = rng.dirichlet(np.ones(3), size=60)
    new = rng.integers(0, 2, size=(20, 4)) + 0.5
    settings = {"alpha": 1e-2, "alpha_neighbours": 1e-2, "n_neighbors": 3, "tol": 1e-12}
    expected = LDLHVLC(**settings).fit(X, D).predict(new)
    order = rng.permutation(60)
    np.testing.assert_allclose(LDLHVLC(**settings).fit(X[order], D[order]).predict(new), expected, atol=1e-6)
    stored = LDLHVLC(**settings).fit(sparse.csr_array(X), D)
    np.testing.assert_allclose(stored.predict(new), expected, atol=1e-6)
    np.testing.assert_allclose(stored.predict(sparse.csr_array(new)), expected, atol=1e-6)
    mixed = LDLHVLC(**settings).fit(X, D).predict(sparse.csr_array(new))
    np.testing.assert_allclose(mixed, expected, atol=1e-6)


def test_neighbour_means_with_ties_by_loops():
    rng = np.random.default_rng(1)
    X, D = rng.integers(0, 3, size=(30, 2)).astype(float), rng.dirichlet(np.ones(3), size=30)
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    for k in (1, 4, 29, 50):
        expected = []
        for i in range(30):
            others = [j for j in range(30) if j != i]
            limit = sorted(distances[i, others])[min(k, 29) - 1]
            expected.append(D[[j for j in others if distances[i, j] <= limit]].mean(axis=0))
        found = neighbour_means(NearestNeighbors().fit(X), X, D, None, k)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_search_is_kept_and_later_changes_of_the_arrays_do_not_reach_the_model(monkeypatch):
    X, D = make_distributions(40, 3, 3)
    model = LDLHVLC().fit(X, D)
    new = X[:5].copy()
    expected = model.predict(new)
    X[:], D[:] = 0.0, 1 / 3
    monkeypatch.setattr(NearestNeighbors, "fit", lambda *_: pytest.fail("predict must not build the search again"))
    np.testing.assert_array_equal(model.predict(new), expected)


def test_without_neighbours_weight_it_is_sabfgs():
    """A penalty on M that is strong enough leaves the features alone."""
    X, D = make_distributions(60, 4, 3)
    plain = LDLHVLC(1e-3, alpha_neighbours=1e9, horizontal_weight=0, vertical_weight=0, tol=1e-12).fit(X, D)
    np.testing.assert_allclose(
        plain.predict(X), SABFGS(1e-3, fit_intercept=True, tol=1e-12).fit(X, D).predict(X), atol=1e-5
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_many_columns_use_the_diagonal(monkeypatch, form):
    X, D = make_distributions(60, 6, 3)
    X[X < 0.5] = 0
    settings = {"alpha": 1e-2, "alpha_neighbours": 1e-2, "fit_intercept": True}
    expected = LDLHVLC(**settings).fit(X, D).predict(X)
    monkeypatch.setattr(_joined, "MAX_MATRIX", 5)
    np.testing.assert_allclose(LDLHVLC(**settings).fit(form(X), D).predict(X), expected, atol=1e-4)


def test_bad_hyperparameters():
    X, D = make_distributions()
    with pytest.raises(ValueError, match="n_neighbors"):
        LDLHVLC(n_neighbors=0).fit(X, D)
    with pytest.raises(ValueError, match="at least 2 rows"):
        LDLHVLC().fit(X[:1], D[:1])
