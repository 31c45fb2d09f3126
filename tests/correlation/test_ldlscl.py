"""LDLSCL: common checks, both halves of the alternation against finite differences and scipy, codes of new rows."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import Ridge

from skldl.correlation import LDLSCL
from skldl.correlation._ldlscl import attraction, code_loss, settle_codes
from skldl.losses._rows import divergence_plus
from skldl.simplex import log_softmax, softmax
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(LDLSCL(n_clusters=3, n_rounds=1))


def _setting(n=8, m=3, c=4):
    rng = np.random.default_rng(0)
    S, V = rng.normal(size=(n, c)), rng.normal(size=(m, c))
    codes, centres = rng.uniform(0.2, 2, size=(n, m)), rng.dirichlet(np.ones(c), size=m)
    return S, V, codes, rng.dirichlet(np.ones(c), size=n), centres


def paper_terms(S, V, codes, D, centres, strength, barrier):
    P = softmax(S + codes @ V)
    total = np.zeros(len(D))
    for i in range(len(D)):
        total[i] = -(D[i] * np.log(P[i])).sum()
        for j in range(len(centres)):
            total[i] += strength * codes[i, j] * ((P[i] - centres[j]) ** 2).sum() + barrier / codes[i, j]
    return total


def test_loss_of_codes_and_its_gradient():
    S, V, codes, D, centres = _setting()
    values, gradient, _ = code_loss(S, V, codes, D, centres, 0.3, 0.05)
    np.testing.assert_allclose(values, paper_terms(S, V, codes, D, centres, 0.3, 0.05), rtol=1e-12)
    for j in range(codes.shape[1]):
        up, down = codes.copy(), codes.copy()
        up[:, j] *= np.exp(1e-6)
        down[:, j] *= np.exp(-1e-6)
        change = paper_terms(S, V, up, D, centres, 0.3, 0.05) - paper_terms(S, V, down, D, centres, 0.3, 0.05)
        np.testing.assert_allclose(gradient[:, j], change / 2e-6, rtol=1e-5, atol=1e-8)


def test_attraction_and_its_gradient():
    S, V, codes, D, centres = _setting()
    loss = divergence_plus(D, attraction(codes, centres, 0.3))
    values, gradient = loss(log_softmax(S), D)
    constant = (D * np.log(D)).sum(axis=1)
    np.testing.assert_allclose(values, paper_terms(S, 0 * V, codes, D, centres, 0.3, 0.0) + constant, rtol=1e-10)
    for j in range(S.shape[1]):
        step = np.zeros_like(S)
        step[:, j] = 1e-6
        change = loss(log_softmax(S + step), D)[0] - loss(log_softmax(S - step), D)[0]
        np.testing.assert_allclose(gradient[:, j], change / 2e-6, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("barrier", [0.1, 1e-4])
def test_scipy_finds_no_better_codes_nearby(barrier):
    S, V, codes, D, centres = _setting()
    settled = settle_codes(S, V, codes, D, centres, 0.3, barrier)
    for i in range(len(D)):

        def objective(logs, i=i):
            row = slice(i, i + 1)
            return paper_terms(S[row], V, np.exp(logs)[None], D[row], centres, 0.3, barrier)[0]

        lower = optimize.minimize(objective, np.log(settled[i]), method="BFGS", options={"gtol": 1e-9}).fun
        assert objective(np.log(settled[i])) - lower < 1e-9
        assert objective(np.log(settled[i])) <= objective(np.log(codes[i]))


def test_weights_are_optimal_for_the_codes():
    X, D = make_distributions(40, 3, 3)
    weight = np.random.default_rng(0).uniform(0.5, 2, 40)
    model = LDLSCL(1e-2, alpha_codes=2e-2, local_weight=0.1, n_clusters=3, tol=1e-11).fit(X, D, weight)
    share = weight / weight.sum()

    def objective(flat):
        W, V = flat[:9].reshape(3, 3), flat[9:].reshape(3, 3)
        rows = paper_terms(X @ W, V, model.codes_, D, model.centres_, 0.1, 0.0)
        constant = share @ (D * np.log(D)).sum(axis=1)
        return share @ rows + constant + 0.5e-2 * (W**2).sum() + 1e-2 * (V**2).sum()

    end = np.vstack([model.coef_.T, model.code_coef_.T]).ravel()
    assert objective(end) == pytest.approx(model.loss_curve_[-1], rel=1e-9)
    assert objective(end) - optimize.minimize(objective, end, method="BFGS", options={"gtol": 1e-8}).fun < 1e-8


@pytest.mark.parametrize("shape", [(40, 3, 3), (12, 15, 3)])
def test_new_rows_get_codes_by_ridge_regression(shape, monkeypatch):
    X, D = make_distributions(*shape)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    monkeypatch.setattr("skldl.correlation._ldlscl.ridge_penalty", lambda *_: 0.03)
    model = LDLSCL(n_clusters=3).fit(X, D, weight)
    X_new = X if shape[0] < shape[1] else make_distributions(10, shape[1], 3, random_state=1)[0]
    codes = Ridge(0.03 * weight.sum()).fit(X, model.codes_, weight).predict(X_new)
    expected = softmax(X_new @ model.coef_.T + codes @ model.code_coef_.T)
    np.testing.assert_allclose(model.predict(X_new), expected, atol=1e-6)


@pytest.mark.parametrize("bad", [{"local_weight": 0}, {"barrier": 0}, {"n_rounds": 0}, {"alpha_codes": -1}])
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        LDLSCL(**bad).fit(X, D)
