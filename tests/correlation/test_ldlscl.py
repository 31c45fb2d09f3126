"""LDLSCL: common checks, both halves of the alternation against finite differences and scipy, codes of new rows."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import Ridge

from skldl.correlation import LDLSCL
from skldl.simplex import softmax
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(LDLSCL(n_clusters=3, n_rounds=1))


def paper_terms(S, V, codes, D, centres, strength, barrier):
    P = softmax(S + codes @ V)
    total = np.zeros(len(D))
    for i in range(len(D)):
        total[i] = -(D[i] * np.log(P[i])).sum()
        for j in range(len(centres)):
            total[i] += strength * codes[i, j] * ((P[i] - centres[j]) ** 2).sum() + barrier / codes[i, j]
    return total


@pytest.mark.parametrize("n_rounds", [1, 2])
def test_alternation_written_out(n_rounds):
    """Weights for fixed codes, and codes for fixed weights, by scipy; the barrier falls by ten from round to round."""
    X, D = make_distributions(12, 2, 3)
    settings = {"alpha_codes": 2e-2, "local_weight": 0.3, "n_clusters": 2, "barrier": 0.05}
    model = LDLSCL(1e-2, n_rounds=n_rounds, tol=1e-13, max_iter=3000, **settings).fit(X, D)
    centres, barrier = model.centres_, 0.05
    nearest = ((D[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    codes = np.where(np.arange(2) == nearest[:, None], 1.0, 0.1)
    parameters = np.zeros((4, 3))

    def of_weights(flat):
        W, V = flat[:6].reshape(2, 3), flat[6:].reshape(2, 3)
        rows = paper_terms(X @ W, V, codes, D, centres, 0.3, 0.0)
        return rows.mean() + 0.5e-2 * (W**2).sum() + 1e-2 * (V**2).sum()

    def of_codes(logs, i):
        row = slice(i, i + 1)
        return paper_terms(X[row] @ parameters[:2], parameters[2:], np.exp(logs)[None], D[row], centres, 0.3, barrier)[
            0
        ]

    for _ in range(n_rounds):
        found = optimize.minimize(of_weights, parameters.ravel(), method="BFGS", options={"gtol": 1e-9})
        parameters = found.x.reshape(4, 3)
        before = codes.copy()
        for i in range(12):
            codes[i] = np.exp(optimize.minimize(of_codes, np.log(before[i]), (i,), "BFGS", options={"gtol": 1e-9}).x)
        barrier /= 10
    np.testing.assert_allclose(model.codes_, codes, rtol=2e-3)


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
def test_new_rows_get_codes_by_ridge_regression(shape):
    X, D = make_distributions(*shape)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = LDLSCL(n_clusters=3).fit(X, D, weight)
    centred = X - np.average(X, axis=0, weights=weight)
    unit = np.average((centred**2).sum(axis=1), weights=weight) / min(shape[0] - 1, shape[1])  # the mean eigenvalue
    ridges = [Ridge(alpha * weight.sum()).fit(X, model.codes_, weight) for alpha in unit * np.logspace(-10, 2, 25)]
    ridge = min(ridges, key=lambda ridge: np.abs(ridge.coef_ - model.regression_coef_).max())
    X_new = X if shape[0] < shape[1] else make_distributions(10, shape[1], 3, random_state=1)[0]
    expected = softmax(X_new @ model.coef_.T + ridge.predict(X_new) @ model.code_coef_.T)
    np.testing.assert_allclose(model.predict(X_new), expected, atol=1e-6)


@pytest.mark.parametrize("bad", [{"local_weight": 0}, {"barrier": 0}, {"n_rounds": 0}, {"alpha_codes": -1}])
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        LDLSCL(**bad).fit(X, D)
