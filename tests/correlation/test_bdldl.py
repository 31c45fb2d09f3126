"""BDLDL: common checks, scipy's Sylvester solver, the objective, ridge as its limit."""

import numpy as np
import pytest
from scipy import linalg, optimize, sparse
from sklearn.linear_model import Ridge

from skldl.correlation import BDLDL
from skldl.simplex import project
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(BDLDL())


@pytest.mark.parametrize("shape", [(40, 4, 3), (10, 15, 3)])
def test_same_as_sylvester_solver(shape):
    X, D = make_distributions(*shape)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    fraction = (weight / weight.sum())[:, None]
    model = BDLDL(1e-2, backward_weight=0.3).fit(X, D, weight)
    G, H, B = X.T @ (fraction * X), D.T @ (fraction * D), X.T @ (fraction * D)
    W = linalg.solve_sylvester(G + 1e-2 * np.eye(X.shape[1]), 0.3 * H, 1.3 * B)
    np.testing.assert_allclose(model.coef_.T, W, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), project(X @ W), atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shape", [(40, 4, 3), (10, 15, 3)])
def test_equal_weights_are_no_weights(shape, form):
    X, D = make_distributions(*shape)
    plain, weighted = BDLDL().fit(form(X), D), BDLDL().fit(form(X), D, np.full(len(X), 3.0))
    assert plain.alpha_ == pytest.approx(weighted.alpha_, rel=1e-12)
    np.testing.assert_allclose(plain.coef_, weighted.coef_, atol=1e-10)


def test_minimises_its_objective():
    X, D = make_distributions(30, 3, 3)
    model = BDLDL(1e-2, backward_weight=0.5).fit(X, D)

    def objective(flat):
        W = flat.reshape(3, 3)
        there, back = ((X @ W - D) ** 2).sum(axis=1).mean(), ((X - D @ W.T) ** 2).sum(axis=1).mean()
        return there + 0.5 * back + 1e-2 * (W**2).sum()

    end = model.coef_.T.ravel()
    assert objective(end) - optimize.minimize(objective, end, method="BFGS").fun < 1e-12


def test_without_the_backward_term_it_is_ridge():
    X, D = make_distributions(30, 4, 3)
    ridge = Ridge(30 * 1e-2, fit_intercept=False).fit(X, D)
    np.testing.assert_allclose(BDLDL(1e-2, backward_weight=0).fit(X, D).coef_, ridge.coef_, atol=1e-10)


def test_path_and_sparse_features():
    X, D = make_distributions(30, 4, 3)
    X[X < 0.3] = 0
    for param in ("alpha", "backward_weight"):
        path = BDLDL().predict_path(sparse.csr_array(X), D, X[:5], param=param, values=[0.0, 0.1])
        for value, P in zip([0.0, 0.1], path, strict=True):
            np.testing.assert_allclose(P, BDLDL().set_params(**{param: value}).fit(X, D).predict(X[:5]), atol=1e-9)


def test_too_many_rows_and_columns_are_rejected():
    with pytest.raises(ValueError, match=r"at most\s+5000.*TruncatedSVD"):
        BDLDL().fit(sparse.eye_array(5001, format="csr"), np.full((5001, 2), 0.5))


def test_bad_hyperparameters():
    X, D = make_distributions()
    with pytest.raises(ValueError, match="backward_weight"):
        BDLDL(backward_weight=-1).fit(X, D)
