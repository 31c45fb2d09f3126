"""LDLHVLC: common checks, the objective with neighbours and correlations by loops, ties, many columns, limits."""

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.neighbors import NearestNeighbors

from skldl import SABFGS
from skldl.correlation import LDLHVLC
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


def neighbour_means(X, D, k, new=None):
    """Mean distribution of the k nearest rows, other than the row itself, and of all that are as near as the last."""
    means = []
    for i, x in enumerate(X if new is None else new):
        distances = np.sqrt(((X - x) ** 2).sum(axis=1))
        if new is None:
            distances[i] = np.inf
        limit = np.sort(distances)[min(k, len(X) - 1) - 1]
        means.append(D[distances <= limit + 1e-9].mean(axis=0))
    return np.array(means)


def correlation(a, b, weight):
    """Weighted Pearson correlation; 0 where one of the two is constant."""
    covariance = np.cov(a, b, aweights=weight, ddof=0)
    scale = np.sqrt(covariance[0, 0] * covariance[1, 1])
    return covariance[0, 1] / scale if scale > 1e-12 else 0.0


@pytest.mark.parametrize("constant", [None, "row", "column"])
@pytest.mark.parametrize(("shape", "fit_intercept"), [((40, 3, 3), True), ((14, 20, 3), False)])
def test_objective_by_loops(shape, fit_intercept, constant):
    X, D = make_distributions(*shape)
    n, q, c = shape
    if constant == "row":
        D[2] = 1 / c
    elif constant == "column":
        D = np.column_stack([np.full(n, 0.3), 0.7 * D[:, :2] / D[:, :2].sum(axis=1, keepdims=True)])
    else:
        X = np.rint(X)  # copies and equal distances
    weight = np.random.default_rng(0).uniform(0.5, 2, n)
    settings = {"alpha": 1e-2, "alpha_neighbours": 3e-2, "horizontal_weight": 0.5, "vertical_weight": 0.1}
    model = LDLHVLC(n_neighbors=3, fit_intercept=fit_intercept, tol=1e-11, **settings).fit(X, D, weight)
    share = weight / weight.sum()
    C = neighbour_means(X, D, 3)
    rho = [correlation(mean, d, np.ones(c)) for mean, d in zip(C, D, strict=True)]
    R = np.array([[correlation(D[:, j], D[:, k], weight) for j in range(c)] for k in range(c)])

    def objective(flat):
        parameters = flat.reshape(q + c + 1, c)
        W, M, b = parameters[:q], parameters[q : q + c], parameters[-1]
        P = softmax(X @ W + C @ M + b * fit_intercept)
        total = 0.5 * 1e-2 * (W**2).sum() + 0.5 * 3e-2 * (M**2).sum()
        for w, p, d, mean, r in zip(share, P, D, C, rho, strict=True):
            vertical = sum(R[j, k] * (p[j] - p[k]) ** 2 for j in range(c) for k in range(c))
            total += w * ((d * np.log(d / p)).sum() + 0.5 * r * ((p - mean) ** 2).sum() + 0.1 * vertical)
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


@pytest.mark.parametrize("k", [1, 4, 29, 50])
def test_neighbours_of_new_rows_with_ties_by_loops(k):
    rng = np.random.default_rng(1)
    X, D = rng.integers(0, 3, size=(30, 2)).astype(float), rng.dirichlet(np.ones(3), size=30)
    new = rng.integers(0, 3, size=(20, 2)) + 0.25
    model = LDLHVLC(n_neighbors=k).fit(X, D)
    C = neighbour_means(X, D, k, new)
    expected = softmax(new @ model.coef_.T + C @ model.neighbour_coef_.T + model.intercept_)
    np.testing.assert_allclose(model.predict(new), expected, atol=1e-12)


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
def test_more_than_5000_columns(form):
    """A rotation of the features into the space of the rows changes neither distances nor penalties."""
    _, D = make_distributions(40, 6, 3)
    X = sparse.random_array((40, 5001), density=0.02, rng=np.random.default_rng(0)).toarray()
    U, values, _ = np.linalg.svd(X, full_matrices=False)
    settings = {"alpha": 1e-2, "alpha_neighbours": 1e-2, "tol": 1e-10}
    expected = LDLHVLC(**settings).fit(U * values, D).predict(U * values)
    np.testing.assert_allclose(LDLHVLC(**settings).fit(form(X), D).predict(X), expected, atol=1e-4)


def test_a_vertical_term_that_outweighs_the_divergence_warns():
    """Two labels correlate with -1: the term -2 (p_1 - p_2)² has the curvature -16 in p_1, beside 1/m_1 + 1/m_2."""
    draw = np.random.default_rng(0)
    X, first = draw.normal(size=(60, 2)), draw.uniform(0.2, 0.6, 60)
    D, mean = np.column_stack([first, 1 - first]), first.mean()
    limit = 0.5 * (1 / mean + 1 / (1 - mean)) / 16
    LDLHVLC(alpha=1e-2, vertical_weight=0.99 * limit).fit(X, D)
    with pytest.warns(UserWarning, match=rf"cancels 5\d% .*vertical_weight=.* Choose at most {limit:.1g}"):
        LDLHVLC(alpha=1e-2, vertical_weight=1.1 * limit).fit(X, D)


def test_bad_hyperparameters():
    X, D = make_distributions()
    with pytest.raises(ValueError, match="n_neighbors"):
        LDLHVLC(n_neighbors=0).fit(X, D)
    with pytest.raises(ValueError, match="at least 2 rows"):
        LDLHVLC().fit(X[:1], D[:1])
