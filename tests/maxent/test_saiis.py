"""SAIIS: increments against a root-finder, monotone iterations, the common checks and the path.

The equations of one iteration are tested themselves (`Scaling`, `Nodes`): iterations correct what one increment misses,
and stored weights are centred, so that fits do not show a root that has lost digits.
"""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, special
from sklearn.exceptions import ConvergenceWarning

from skldl import SABFGS, SAIIS
from skldl.chunks._arrays import CheckedRows  # the input of Scaling
from skldl.maxent import _blocks, _saiis
from skldl.maxent._saiis import Nodes, Scaling, chebyshev_nodes, node_count  # reason: see above
from skldl.testing import check_estimator, make_distributions


def _fit(X, D, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # many tests look at the first iterations only
        return SAIIS(**settings).fit(X, D)


def _equation(x, p, g, weight, target):
    return lambda delta: np.sum(weight * p * x * np.exp(delta * np.sign(x) * g)) - target


def _residual(X, weight, P, target, delta):
    """Largest residual of the paper's equation, relative to the sizes of its terms."""
    g = np.abs(X).sum(axis=1)
    worst = 0.0
    for k, j in np.ndindex(target.shape):
        terms = weight * P[:, j] * X[:, k] * np.exp(delta[k, j] * np.sign(X[:, k]) * g)
        size = np.abs(terms).sum() + abs(target[k, j])
        worst = max(worst, abs(terms.sum() - target[k, j]) / size if size > 0 else 0.0)
    return worst


def _problem(X, seed=0, n_labels=3, form=np.asarray, zero=()):
    """Increments at random weights of moderate scores, with all that the paper's equation holds."""
    rng = np.random.default_rng(seed)
    D = rng.dirichlet(np.ones(n_labels), size=len(X))
    D[:, zero] = 0.0
    D /= D.sum(axis=1, keepdims=True)
    weight = rng.uniform(0.5, 1.5, size=len(X))
    theta = rng.normal(size=(X.shape[1], n_labels)) / np.abs(X).sum(axis=1).max()
    scaling = Scaling(CheckedRows(form(X), D, weight))
    delta, _ = scaling.increments(scaling.state(theta))
    weight = weight / weight.sum()
    return weight, special.softmax(X @ theta, axis=1), X.T @ (D * weight[:, None]), delta


RNG = np.random.default_rng(7)
FEATURES = {
    "non-negative": RNG.uniform(size=(40, 4)),
    "both signs": RNG.normal(size=(40, 4)),
    "negative": -RNG.uniform(size=(40, 3)),
    "one sum": RNG.dirichlet(np.ones(4), size=40),
    "one sum, both signs": RNG.dirichlet(np.ones(4), size=40) * RNG.choice([-1, 1], size=(40, 4)),
    "few sums": (RNG.uniform(size=(40, 5)) < 0.5).astype(float) + np.eye(5)[0],
    "few sums, both signs": ((RNG.uniform(size=(40, 5)) < 0.5) + np.eye(5)[0]) * RNG.choice([-1.0, 1.0], size=(40, 5)),
    "thousands": RNG.lognormal(3, 3, size=(40, 3)),
    "wide range": RNG.uniform(size=(40, 3)) * np.logspace(-3, 3, 40)[:, None],
    "wide range, both signs": RNG.normal(size=(40, 3)) * np.logspace(-3, 3, 40)[:, None],
    "one feature": RNG.uniform(size=(40, 1)),
    "mixed scales": RNG.uniform(size=(40, 3)) * [1e6, 1.0, 1e-6],
}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("name", FEATURES)
def test_increments_are_the_roots_of_the_papers_equation(name, form):
    X = FEATURES[name]
    weight, P, target, delta = _problem(X, form=form)
    assert _residual(X, weight, P, target, delta) < 1e-12
    g = np.abs(X).sum(axis=1)
    for k, j in np.ndindex(target.shape):
        function = _equation(X[:, k], P[:, j], g, weight, target[k, j])
        width = max(abs(delta[k, j]), 1e-12)
        root = optimize.brentq(function, delta[k, j] - width, delta[k, j] + width, xtol=1e-300, rtol=1e-14)
        assert delta[k, j] == pytest.approx(root, rel=1e-8)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 25),
    q=st.integers(1, 6),
    negative=st.booleans(),
    spread=st.sampled_from([0.0, 1.0, 4.0]),
)
@settings(max_examples=80, deadline=None)
def test_increments_of_any_data(seed, n, q, negative, spread):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.01, 1, size=(n, q)) * 10.0 ** rng.uniform(-spread, spread, size=(n, 1))
    if negative:
        X *= rng.choice([-1.0, 1.0], size=X.shape)
    assert _residual(X, *_problem(X, seed)) < 1e-12


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 30),
    q=st.integers(1, 8),
    c=st.integers(2, 5),
    accelerate=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_loss_never_rises(seed, n, q, c, accelerate):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, q)) * 10.0 ** rng.integers(-2, 3, size=q)
    X[rng.uniform(size=X.shape) < 0.3] = 0.0
    D = rng.dirichlet(np.full(c, 0.3), size=n)
    model = _fit(X, D, max_iter=15, tol=0.0, accelerate=accelerate)
    assert np.all(np.diff(model.loss_curve_) <= 0)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("model", [SAIIS(max_iter=60), SAIIS(accelerate=True)], ids=str)
def test_common_checks(model):
    check_estimator(model)


@pytest.mark.parametrize("accelerate", [False, True])
def test_optimum_is_that_of_sabfgs(accelerate):
    X, D = make_distributions(50, 2, 3)
    model = _fit(X, D, max_iter=3000, tol=1e-14, accelerate=accelerate)
    best = SABFGS(tol=1e-13).fit(X, D)
    assert model.loss_curve_[-1] == pytest.approx(best.loss_curve_[-1], abs=1e-9)
    np.testing.assert_allclose(model.predict(X), best.predict(X), atol=1e-4)


def test_acceleration_needs_fewer_iterations():
    X, D = make_distributions(100, 5, 4)
    plain, fast = (_fit(X, D, max_iter=200, tol=0.0, accelerate=accelerate) for accelerate in (False, True))
    reached = next(i for i, loss in enumerate(fast.loss_curve_) if loss <= plain.loss_curve_[-1])
    assert reached < 100


def test_loss_curve_holds_the_mean_cross_entropy():
    X, D = make_distributions(40, 4, 3)
    X[3] = 0.0  # a row without features stays uniform, and counts in the loss
    model = _fit(X, D, max_iter=7, tol=0.0)
    assert model.n_iter_ == 7
    assert model.loss_curve_[0] == pytest.approx(np.log(3))
    assert model.loss_curve_[-1] == pytest.approx(-(D * np.log(model.predict(X))).sum(axis=1).mean())
    np.testing.assert_allclose(model.predict(np.zeros((1, 4))), 1 / 3)


def test_empty_rows_and_columns_change_nothing():
    X, D = make_distributions(40, 4, 3)
    expected = _fit(X, D, max_iter=20)
    more = _fit(np.column_stack([X, np.zeros(40)]), D, max_iter=20)
    np.testing.assert_allclose(more.coef_[:, :4], expected.coef_, atol=1e-12)
    np.testing.assert_array_equal(more.coef_[:, 4], 0.0)
    rows = SAIIS(max_iter=20, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=20"):
        rows.fit(np.vstack([X, np.zeros((5, 4))]), np.vstack([D, D[:5]]))
    np.testing.assert_allclose(rows.predict(X), _fit(X, D, max_iter=20, tol=0.0).predict(X), atol=1e-12)


def test_features_without_any_information():
    model = SAIIS().fit(np.zeros((3, 2)), [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert model.n_iter_ == 0


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("name", ["non-negative", "one sum", "few sums", "wide range"])
def test_target_zero_moves_the_weight_by_the_cap(name, sign):
    X = sign * FEATURES[name]
    weight, P, target, delta = _problem(X, zero=[1])
    np.testing.assert_allclose(delta[:, 1], -sign * 10 / np.abs(X).sum(axis=1).max())
    assert _residual(X, weight, P[:, [0, 2]], target[:, [0, 2]], delta[:, [0, 2]]) < 1e-12


def test_far_roots_are_solved_in_blocks(monkeypatch):
    X = FEATURES["wide range, both signs"]
    expected = _problem(X)[-1]
    monkeypatch.setattr(_saiis, "FAR_CELLS", 1)
    monkeypatch.setattr(_blocks, "MIN_ROWS", 1)
    np.testing.assert_allclose(_problem(X)[-1], expected, rtol=1e-12)


@pytest.mark.parametrize("exponent", [0.0, 1e-3, 0.1, 1.0, 3.0])
def test_number_of_nodes_is_enough_and_not_much_more(exponent):
    t = np.linspace(-1, 1, 201)

    def error(count):
        weights = Nodes("nodes", count=count).interpolation_weights(t)
        return np.abs(np.exp(exponent * chebyshev_nodes(0.0, 1.0, count)[0]) @ weights / np.exp(exponent * t) - 1).max()

    count = node_count(exponent)
    assert error(count) < 2e-13
    assert count <= 24
    if count > 4:
        assert error(count - 4) > 1e-14


def test_single_precision_is_computed_in_double():
    X, D = make_distributions(40, 4, 3)
    X32 = X.astype(np.float32)
    np.testing.assert_array_equal(_fit(X32, D, max_iter=10).coef_, _fit(X32.astype(np.float64), D, max_iter=10).coef_)


@pytest.mark.parametrize("accelerate", [False, True])
def test_path_over_max_iter_equals_single_fits(accelerate):
    X, D = make_distributions(40, 4, 3)
    values = [7, 2, 4000, 30]
    path = list(SAIIS(accelerate=accelerate, tol=1e-5).predict_path(X, D, X, param="max_iter", values=values))
    for value, P in zip(values, path, strict=True):
        np.testing.assert_array_equal(P, _fit(X, D, max_iter=value, accelerate=accelerate, tol=1e-5).predict(X))


def test_path_over_max_iter_is_one_run(monkeypatch):
    calls = []
    original = Scaling.improve
    monkeypatch.setattr(Scaling, "improve", lambda self, state: calls.append(1) or original(self, state))
    X, D = make_distributions(40, 4, 3)
    list(SAIIS(tol=0.0).predict_path(X, D, X, param="max_iter", values=[10, 20, 30]))
    assert len(calls) == 30
    with pytest.raises(ValueError, match="max_iter=0"):
        list(SAIIS().predict_path(X, D, X, param="max_iter", values=[3, 0]))


def test_path_over_another_parameter_fits_each():
    X, D = make_distributions(40, 4, 3)
    path = list(SAIIS(tol=1e-4).predict_path(X, D, X, param="tol", values=[1e-4, 1e-3]))
    np.testing.assert_array_equal(path[1], SAIIS(tol=1e-3).fit(X, D).predict(X))


def test_warning_names_the_parameter():
    X, D = make_distributions()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2.*Raise max_iter, set accelerate=True, or use SABFGS"):
        SAIIS(max_iter=2).fit(X, D)
    with pytest.warns(ConvergenceWarning, match=r"Raise max_iter\.$"):
        SAIIS(max_iter=2, accelerate=True).fit(X, D)


@pytest.mark.parametrize("settings", [{"max_iter": -1}, {"tol": "small"}])
def test_invalid_parameters_are_rejected(settings):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(settings))):
        SAIIS(**settings).fit(X, D)


@pytest.mark.parametrize("name", ["Yeast_alpha", "SBU_3DFE", "Natural_Scene"])
def test_residuals_on_the_papers_data(name, paper_data):
    X, D = paper_data(name)
    X, D = X[:400, :30], D[:400]
    scaling = Scaling(CheckedRows(X, D))
    state = scaling.state(np.zeros((X.shape[1], D.shape[1])))
    for _ in range(3):
        P = special.softmax(X @ state.theta, axis=1)
        delta, _ = scaling.increments(state)
        assert _residual(X, np.full(len(D), 1 / len(D)), P, scaling.target, delta) < 1e-12
        before, state = state, scaling.improve(state)
        assert state.loss < before.loss


def test_memory_does_not_grow_with_iterations():
    X, D = make_distributions(n_samples=2000, n_labels=30)
    peaks = []
    for max_iter in (4, 40):
        tracemalloc.start()
        assert _fit(X, D, max_iter=max_iter, tol=0.0).n_iter_ == max_iter
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
