"""CPNN: common checks, the network by loops, its gradient by differences, blocks, paths, better than the mean."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skldl.baseline import MeanDistribution
from skldl.metrics import kullback_leibler
from skldl.neural import CPNN, _cpnn
from skldl.neural._cpnn import label_codes, loss_and_gradient, scores
from skldl.neural._network import ACTIVATIONS, standardize
from skldl.testing import check_estimator, make_distributions

SMALL = {"n_hidden": 3, "max_iter": 30}


def test_common_checks():
    check_estimator(CPNN(**SMALL), expected_failed_checks={"check_label_permutation": "labels enter by their number"})


def test_common_checks_with_one_hot_labels():
    check_estimator(CPNN(**SMALL, label_code="one_hot"))


def _network(kind, n=6, q=3, c=4, hidden=5):
    rng = np.random.default_rng(0)
    codes = label_codes(c, kind)
    return (
        rng.normal(size=hidden * (q + codes.shape[1] + 2)),
        rng.normal(size=(n, q)),
        rng.dirichlet(np.ones(c), n),
        codes,
    )


@pytest.mark.parametrize("kind", ["number", "one_hot"])
def test_scores_by_loops(kind):
    theta, X, _, codes = _network(kind)
    A, U = theta[:15].reshape(3, 5), theta[15 : 15 + 5 * codes.shape[1]].reshape(-1, 5)
    c, v = theta[-10:-5], theta[-5:]
    expected = [[v @ np.tanh(x @ A + codes[j] @ U + c) for j in range(4)] for x in X]
    np.testing.assert_allclose(scores(theta, X, codes, 5, ACTIVATIONS["tanh"]), expected, rtol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "logistic", "identity"])
@pytest.mark.parametrize("kind", ["number", "one_hot"])
def test_gradient_by_differences(kind, activation, monkeypatch):
    monkeypatch.setattr(_cpnn, "BLOCK_CELLS", 45)  # several blocks of rows
    theta, X, D, codes = _network(kind)
    features = standardize(X, X.mean(axis=0), X.std(axis=0))
    arguments = (features, D, np.linspace(0.1, 0.3, 6), codes, 5, ACTIVATIONS[activation], 0.05)
    _, gradient = loss_and_gradient(theta, *arguments)
    for place in range(theta.size):
        step = np.zeros_like(theta)
        step[place] = 1e-6
        slope = (loss_and_gradient(theta + step, *arguments)[0] - loss_and_gradient(theta - step, *arguments)[0]) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_learns_ages():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 2))
    D = np.exp(-0.5 * (np.arange(7) - (3 + 2.5 * np.sin(3 * X[:, :1]))) ** 2)
    D /= D.sum(axis=1, keepdims=True)
    model = CPNN(16, alpha=1e-5, random_state=0, tol=1e-4, max_iter=1000).fit(X[:150], D[:150])
    mean = MeanDistribution().fit(X[:150], D[:150]).predict(X[150:])
    assert kullback_leibler(D[150:], model.predict(X[150:])) < 0.1 * kullback_leibler(D[150:], mean)
    assert np.all(np.diff(model.loss_curve_) <= 1e-12)


def test_rare_features_are_not_blown_up():
    """A column of zeros and a few ones, divided by its deviation, would make the rows that hold the ones outliers."""
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(400, 200)) < 0.02).astype(float)
    D = np.exp(0.5 * X @ rng.normal(size=(200, 4)) + 0.5 * rng.normal(size=(400, 4)))
    D /= D.sum(axis=1, keepdims=True)
    model = CPNN(8, label_code="one_hot", alpha=1e-2, max_iter=2000, random_state=0).fit(X[:300], D[:300])
    mean = MeanDistribution().fit(X[:300], D[:300]).predict(X[300:])
    assert kullback_leibler(D[300:], model.predict(X[300:])) < 0.8 * kullback_leibler(D[300:], mean)


def test_path_over_steps():
    X, D = make_distributions(40, 3, 3)
    model = CPNN(3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        path = list(model.predict_path(X, D, X[:4], param="max_iter", values=[3, 9]))
    for value, P in zip([3, 9], path, strict=True):
        with pytest.warns(ConvergenceWarning):
            expected = CPNN(3, max_iter=value, random_state=0).fit(X, D).predict(X[:4])
        np.testing.assert_allclose(P, expected, atol=1e-12)


@pytest.mark.parametrize("bad", [{"n_hidden": 0}, {"label_code": "rank"}, {"activation": "sine"}, {"alpha": -1}])
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        CPNN(**bad).fit(X, D)
