"""CPNN: common checks, the network by loops, its gradient by differences, blocks, paths, the automatic penalty."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skldl.baseline import MeanDistribution
from skldl.metrics import kullback_leibler
from skldl.neural import CPNN
from skldl.neural._cpnn import ACTIVATIONS, loss_and_gradient  # an error in a gradient only slows the training
from skldl.selection import hold_out
from skldl.simplex import softmax
from skldl.testing import check_estimator, make_distributions
from skldl.utils.scaling import standardize

ALPHAS = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
SMALL = {"n_hidden": 3, "max_iter": 30}
BY_NUMBER = {"check_label_permutation": "labels enter by their number"}
SPLIT = "a copy of a row and a weight of two give another set of held-out rows"
HELD_OUT = {
    "check_sample_weight_equivalence_on_dense_data": SPLIT,
    "check_sample_weight_equivalence_on_sparse_data": SPLIT,
}


def test_common_checks():
    check_estimator(CPNN(**SMALL, alpha=1e-3), expected_failed_checks=BY_NUMBER)


def test_common_checks_with_one_hot_labels():
    check_estimator(CPNN(**SMALL, label_code="one_hot", alpha=1e-3))


def test_common_checks_with_the_automatic_penalty():
    check_estimator(CPNN(**SMALL, label_code="one_hot"), expected_failed_checks=HELD_OUT)


CODES = {"number": np.linspace(-1, 1, 4)[:, None], "one_hot": np.eye(4)}


@pytest.mark.parametrize("kind", ["number", "one_hot"])
def test_predictions_by_loops(kind):
    X, D = make_distributions(30, 3, 4)
    model = _quiet_fit(CPNN(5, label_code=kind, alpha=1e-3, max_iter=5, random_state=0), X, D)
    codes, theta = CODES[kind], model.theta_
    A, U = theta[:15].reshape(3, 5), theta[15 : 15 + 5 * codes.shape[1]].reshape(-1, 5)
    c, v = theta[-10:-5], theta[-5:]
    scores = [[v @ np.tanh(x @ A + codes[j] @ U + c) for j in range(4)] for x in X]
    np.testing.assert_allclose(model.predict(X), softmax(scores), rtol=1e-10)


@pytest.mark.parametrize("activation", ["tanh", "logistic", "identity"])
@pytest.mark.parametrize("kind", ["number", "one_hot"])
def test_gradient_by_differences(kind, activation, monkeypatch):
    monkeypatch.setattr("skldl.neural._cpnn.BLOCK_CELLS", 45)  # several blocks of rows
    rng, codes = np.random.default_rng(0), CODES[kind]
    theta, X, D = rng.normal(size=5 * (5 + codes.shape[1])), rng.normal(size=(6, 3)), rng.dirichlet(np.ones(4), 6)
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


@pytest.mark.parametrize("alpha", [1e-3, "auto"])
def test_path_over_steps(alpha):
    X, D = make_distributions(40, 3, 3)
    model = CPNN(3, alpha=alpha, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        path = list(model.predict_path(X, D, X[:4], param="max_iter", values=[3, 9]))
    for value, P in zip([3, 9], path, strict=True):
        with pytest.warns(ConvergenceWarning):
            expected = clone(model).set_params(max_iter=value).fit(X, D).predict(X[:4])
        np.testing.assert_allclose(P, expected, atol=1e-12)


def _noisy(noise, n=120, q=20, c=4):
    """Scores that are linear in one of many features, plus noise; the mean distribution is far from uniform."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, q))
    D = np.exp(np.linspace(0, 2, c) + 0.7 * X[:, :1] * np.linspace(-1, 1, c) + noise * rng.normal(size=(n, c)))
    return X, D / D.sum(axis=1, keepdims=True)


def test_automatic_penalty_is_the_best_on_the_held_out_rows():
    """The whole table of penalties, by fits with a fixed one to the rows that are not held out."""
    X, D = _noisy(0.5)
    settings = {"n_hidden": 8, "label_code": "one_hot", "max_iter": 100, "random_state": 3}
    random = np.random.RandomState(3)
    random.uniform(size=20 * 8 + 8 + 8)  # the initial weights
    _, held = hold_out(len(X), 0.2, random_state=random.randint(2**31 - 1))
    weight = np.ones(len(X))
    weight[held] = 1e-12  # nothing is learned from them
    losses = [
        kullback_leibler(
            D[held], _quiet_fit(CPNN(**settings, alpha=alpha), X, D, sample_weight=weight).predict(X[held])
        )
        for alpha in ALPHAS
    ]
    best = ALPHAS[int(np.argmin(losses))]
    assert ALPHAS[0] > best > ALPHAS[-1]  # the choice is inside of the table
    chosen = _quiet_fit(CPNN(**settings), X, D)
    assert chosen.alpha_ == best
    fixed = _quiet_fit(CPNN(**settings, alpha=best), X, D)
    np.testing.assert_array_equal(chosen.theta_, fixed.theta_)  # learned from all rows, from the same start


def test_automatic_penalty_grows_with_the_noise():
    models = [_quiet_fit(CPNN(8, label_code="one_hot", random_state=0), *_noisy(noise)) for noise in (0.02, 1.0)]
    assert models[0].alpha_ < models[1].alpha_


def test_search_goes_on_as_long_as_the_uniform_distribution_is_predicted(monkeypatch):
    """Penalties that leave nothing but zeros tie; the search must not take them for the end of the path."""
    X, D = _noisy(0.1)
    monkeypatch.setattr("skldl.neural._cpnn.ALPHAS", (30.0, 10.0, 3.0, 1.0, 1e-3))
    model = _quiet_fit(CPNN(8, label_code="one_hot", random_state=0), X, D)
    assert model.alpha_ == 1e-3


def test_search_ends_after_two_worse_penalties(monkeypatch):
    X, D = _noisy(1.0)
    tried = []
    minimised = CPNN._minimise
    monkeypatch.setattr(
        CPNN,
        "_minimise",
        lambda self, rows, start, alpha, callback=None: (
            tried.append((alpha, len(rows.D))) or minimised(self, rows, start, alpha, callback)
        ),
    )
    model = _quiet_fit(CPNN(8, label_code="one_hot", random_state=0), X, D)
    place = ALPHAS.index(model.alpha_)
    assert tried == [*((alpha, 96) for alpha in ALPHAS[: place + 3]), (model.alpha_, 120)]
    assert len(tried) < 1 + len(ALPHAS)


def test_groups_are_held_out_together():
    """Rows of a group are copies: only whole groups that are held out show that nothing is learned for others."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 10)
    X, D = rng.normal(size=(12, 8))[groups], rng.dirichlet(np.ones(3), 12)[groups]
    by_rows, by_groups = (
        _quiet_fit(CPNN(8, label_code="one_hot", random_state=0), X, D, **given) for given in ({}, {"groups": groups})
    )
    assert by_rows.alpha_ == ALPHAS[-1]
    assert by_groups.alpha_ > 10 * by_rows.alpha_


def test_weights_count_on_held_out_rows():
    """Rows without weight in one half of the data, whose labels are exchanged, do not change the choice."""
    X, D = _noisy(0.5)
    weight = np.ones(len(X))
    weight[::2] = 1e-12
    wrong = D.copy()
    wrong[::2] = D[::2, ::-1]
    right, other = (
        _quiet_fit(CPNN(4, label_code="one_hot", random_state=0), X, rows, sample_weight=weight) for rows in (D, wrong)
    )
    assert right.alpha_ == other.alpha_
    np.testing.assert_allclose(right.predict(X), other.predict(X), atol=1e-5)


def test_one_row_cannot_be_held_out():
    model = _quiet_fit(CPNN(3, random_state=0), [[1.0, 2.0]], [[0.2, 0.8]])
    assert model.alpha_ == 1e-3


def _quiet_fit(model, X, D, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, D, **arguments)


@pytest.mark.parametrize(
    "bad", [{"n_hidden": 0}, {"label_code": "rank"}, {"activation": "sine"}, {"alpha": -1}, {"alpha": "best"}]
)
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        CPNN(**bad).fit(X, D)
