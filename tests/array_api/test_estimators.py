"""Estimators on arrays of other libraries: the results of NumPy, in the library, device and precision of X."""

import numpy as np
import pytest
import sklearn

from skldl import AABP, AAKNN, SABFGS, SABFGSCV, SAIIS, KernelRidgeLDL, MeanDistribution
from skldl.exceptions import DeviceError
from skldl.maxent import _blocks, _moments, _saiis

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few iterations are compared

ESTIMATORS = {
    "mean": MeanDistribution(),
    "sa-bfgs": SABFGS(),
    "sa-bfgs with intercept": SABFGS(alpha=1e-3, fit_intercept=True),
    "sa-bfgs without whitening": SABFGS(alpha=1e-3, whiten=False),
    "sa-bfgs-cv": SABFGSCV(alphas=(1e-2, 1e-4), cv=3),
    "sa-iis": SAIIS(max_iter=30),
    "aa-knn": AAKNN(n_neighbors=4),
    "aa-knn by distance": AAKNN(n_neighbors=4, weights="distance"),
    "aa-bp": AABP(max_iter=20, random_state=0),
    "aa-bp with adam": AABP(solver="adam", batch_size=32, max_iter=5, random_state=0),
    "kernel ridge": KernelRidgeLDL(kernel="rbf", width=1.0, scaling="standard"),
    "kernel ridge, χ²": KernelRidgeLDL(kernel="chi2", width=1.0, scaling="raw", target="clr"),
}
SLOW = {"kernel ridge, all chosen": KernelRidgeLDL(n_screen=40, random_state=0)}
NAMES = [*ESTIMATORS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
ESTIMATORS |= SLOW


def on_numpy(model, *arguments):
    with sklearn.config_context(array_api_dispatch=False):
        return sklearn.clone(model).fit(*arguments)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_double_precision_agrees_with_numpy(name, weighted, backend, problem):
    X, D, weight, new = problem
    reference = on_numpy(ESTIMATORS[name], X, D, *([weight] if weighted else []))
    arguments = [backend.array(part) for part in ((X, D, weight) if weighted else (X, D))]
    model = sklearn.clone(ESTIMATORS[name]).fit(*arguments)
    predicted = model.predict(backend.array(new))
    assert backend.owns(predicted)
    assert predicted.dtype == backend.xp.float64
    with sklearn.config_context(array_api_dispatch=False):
        np.testing.assert_allclose(backend.numpy(predicted), reference.predict(new), rtol=0, atol=1e-10)
        score = reference.score(X, D)
    assert abs(model.score(*arguments[:2]) - score) < 1e-10


def test_iterative_scaling_with_roots_far_away(backend, monkeypatch):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 3)) * np.logspace(-1, 1, 60)[:, None]
    D = generator.dirichlet(np.ones(3), size=60)
    model = SAIIS(max_iter=3, init=generator.normal(size=(3, 3)))
    calls, far_sums = [], _saiis._far_sums
    monkeypatch.setattr(_saiis, "_far_sums", lambda *parts: calls.append(None) or far_sums(*parts))
    monkeypatch.setattr(_blocks, "DEVICE_CELLS", 300)  # several blocks
    found = sklearn.clone(model).fit(backend.array(X), backend.array(D))
    assert len(calls) > 5  # Newton's method over all rows
    np.testing.assert_allclose(found.coef_, on_numpy(model, X, D).coef_, rtol=1e-9)


def test_many_columns_take_the_diagonal(backend, problem, monkeypatch):
    X, D, _, new = problem
    monkeypatch.setattr(_moments, "MAX_MATRIX", 3)
    for model in (SABFGS(1e-2, fit_intercept=True, tol=1e-12), SABFGS(1e-2, whiten=False, tol=1e-12)):
        expected = on_numpy(model, X, D).predict(new)
        found = model.fit(backend.array(X), backend.array(D)).predict(backend.array(new))
        np.testing.assert_allclose(backend.numpy(found), expected, rtol=0, atol=1e-7)


def test_iterative_scaling_with_few_sums_of_rows(backend):
    generator = np.random.default_rng(0)
    D = generator.dirichlet(np.ones(3), size=60)
    few_sums = (generator.random((60, 3)) < 0.5).astype(float)
    for X in (np.eye(3)[generator.integers(0, 3, 60)], few_sums, few_sums * generator.choice([-1, 1], (60, 3))):
        found = SAIIS(max_iter=4).fit(backend.array(X), backend.array(D)).coef_
        np.testing.assert_allclose(found, on_numpy(SAIIS(max_iter=4), X, D).coef_, atol=1e-12)
    zeros = np.zeros((60, 2))
    assert not SAIIS().fit(backend.array(zeros), backend.array(D)).coef_.any()


@pytest.mark.parametrize("scale", [1e300, 1e-310])
def test_weights_of_any_size(scale, backend, problem):
    X, D, weight, _ = problem
    X, D = backend.array(X), backend.array(D)
    expected = SABFGS(0.1).fit(X, D, backend.array(weight)).coef_
    np.testing.assert_allclose(SABFGS(0.1).fit(X, D, backend.array(weight * scale)).coef_, expected, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_agrees_with_numpy_in_double(name, backend, problem):
    X, D, _, new = problem
    X, D, new = (part.astype(np.float32) for part in (X, D, new))
    exact = D.astype(np.float64)
    reference = on_numpy(ESTIMATORS[name], X.astype(np.float64), exact / exact.sum(axis=1, keepdims=True))
    model = sklearn.clone(ESTIMATORS[name]).fit(backend.array(X, "float32"), backend.array(D, "float32"))
    predicted = model.predict(backend.array(new, "float32"))
    assert backend.owns(predicted)
    assert predicted.dtype == backend.xp.float32
    with sklearn.config_context(array_api_dispatch=False):
        expected = reference.predict(new.astype(np.float64))
    np.testing.assert_allclose(backend.numpy(predicted), expected, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sa-bfgs", "sa-bfgs with intercept", "sa-bfgs without whitening", "aa-bp"])
def test_single_precision_agrees_with_numpy_where_rows_are_many(name, backend):
    """So many rows are computed in single precision indeed; fewer in double, whatever their own precision."""
    generator = np.random.default_rng(1)
    X = generator.random((2**17, 4)).astype(np.float32)
    scores = X @ generator.normal(size=(4, 3)) + 0.3 * generator.normal(size=(len(X), 3))
    D = (np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)).astype(np.float32)
    exact = D.astype(np.float64)
    reference = on_numpy(ESTIMATORS[name], X.astype(np.float64), exact / exact.sum(axis=1, keepdims=True))
    model = sklearn.clone(ESTIMATORS[name]).fit(backend.array(X, "float32"), backend.array(D, "float32"))
    predicted = backend.numpy(model.predict(backend.array(X[:500], "float32")))
    with sklearn.config_context(array_api_dispatch=False):
        expected = reference.predict(X[:500].astype(np.float64))
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name.startswith("sa-")])
def test_single_precision_in_pieces_of_rows(name, backend, problem, monkeypatch):
    """The way of many rows, on few: sums in single precision, products piece by piece."""
    monkeypatch.setattr("skldl.maxent._search.SINGLE_ROWS", 64)
    monkeypatch.setattr("skldl.utils.arrays.PRODUCT_ROWS", 16)
    test_single_precision_agrees_with_numpy_in_double(name, backend, problem)


@pytest.mark.parametrize("groups", [None, np.arange(90) // 3])
def test_one_penalty_by_cholesky_factorisation(groups, backend, problem, monkeypatch):
    X, D, weight, new = problem
    settings = KernelRidgeLDL(kernel="rbf", width=1.0, scaling="standard", alpha=1e-3, solver="exact")
    with sklearn.config_context(array_api_dispatch=False):
        reference = sklearn.clone(settings).fit(X, D, weight, groups=groups)
    monkeypatch.setattr("skldl.kernel._kernelridge.EIGEN_ROWS", 10)
    model = sklearn.clone(settings).fit(*(backend.array(part) for part in (X, D, weight)), groups=groups)
    assert (reference.solver_, model.solver_) == ("eigen", "cholesky")
    assert backend.owns(model.loo_predictions_)
    np.testing.assert_allclose(backend.numpy(model.loo_predictions_), reference.loo_predictions_, rtol=0, atol=1e-10)
    with sklearn.config_context(array_api_dispatch=False):
        expected = reference.predict(new)
    np.testing.assert_allclose(backend.numpy(model.predict(backend.array(new))), expected, rtol=0, atol=1e-10)


def test_groups_are_left_out_together(backend, problem):
    X, D, _, _ = problem
    groups = np.arange(90) // 3
    settings = KernelRidgeLDL(kernel="linear", scaling="raw", target="degrees")
    with sklearn.config_context(array_api_dispatch=False):
        reference = sklearn.clone(settings).fit(X, D, groups=groups)
    model = sklearn.clone(settings).fit(backend.array(X), backend.array(D), groups=groups)
    assert model.alpha_ == reference.alpha_
    np.testing.assert_allclose(backend.numpy(model.loo_predictions_), reference.loo_predictions_, rtol=0, atol=1e-10)


def test_a_matrix_without_cholesky_factor_is_told(backend, problem, monkeypatch):
    X, D, _, _ = problem
    monkeypatch.setattr("skldl.kernel._kernelridge.EIGEN_ROWS", 10)
    model = KernelRidgeLDL(kernel="linear", scaling="raw", alpha=1e-18, solver="exact")
    with pytest.raises(ValueError, match=r"not positive definite\. Pass a larger alpha"):
        model.fit(backend.array(X), backend.array(D))


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda distances: 1 / (1 + distances)])
def test_neighbours_are_those_of_numpy_in_the_same_order(weights, backend, problem):
    X, D, weight, new = problem
    settings = AAKNN(n_neighbors=4, weights=weights)
    reference = on_numpy(settings, X, D, weight)
    model = sklearn.clone(settings).fit(*(backend.array(part) for part in (X, D, weight)))
    near = backend.array(np.vstack([new, X[:5]]))
    distances, neighbors = model.kneighbors(near)
    with sklearn.config_context(array_api_dispatch=False):
        expected, places = reference.kneighbors(np.vstack([new, X[:5]]))
        tables = reference.predict_all(new, 6)
        path = list(reference.predict_path(X, D, new, param="n_neighbors", values=[1, 3]))
    np.testing.assert_array_equal(backend.numpy(neighbors), places)
    np.testing.assert_allclose(backend.numpy(distances), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(backend.numpy(model.predict_all(backend.array(new), 6)), tables, rtol=0, atol=1e-10)
    left_out = model.leave_one_out(5)
    np.testing.assert_allclose(backend.numpy(left_out), reference.leave_one_out(5), rtol=0, atol=1e-10)
    arrays = [backend.array(part) for part in (X, D, new)]
    for ours, theirs in zip(model.predict_path(*arrays, param="n_neighbors", values=[1, 3]), path, strict=True):
        np.testing.assert_allclose(backend.numpy(ours), theirs, rtol=0, atol=1e-10)


def test_neighbours_are_found_in_groups_and_blocks(backend, monkeypatch):
    """Blocks of a device hold gigabytes: small ones show that nothing is lost between them."""
    monkeypatch.setattr("skldl.neighbors._search.DeviceSearch._group", 8)
    monkeypatch.setattr("skldl.neighbors._search.DeviceSearch._min_queries", 20)
    monkeypatch.setattr("skldl.neighbors._search.DeviceSearch._product_cells", 20 * 1000)
    monkeypatch.setattr("skldl.neighbors._search.DeviceSearch._cells", 2**10)
    generator = np.random.default_rng(2)
    X = generator.integers(0, 6, (1300, 3)).astype(np.float64)  # many distances are equal
    D = generator.dirichlet(np.ones(3), len(X))
    reference = on_numpy(AAKNN(n_neighbors=3), X, D)
    model = AAKNN(n_neighbors=3).fit(backend.array(X), backend.array(D))
    distances, neighbors = model.kneighbors(backend.array(X[:50]))
    with sklearn.config_context(array_api_dispatch=False):
        expected, places = reference.kneighbors(X[:50])
    np.testing.assert_array_equal(backend.numpy(neighbors), places)
    np.testing.assert_array_equal(backend.numpy(distances), expected)


@pytest.mark.parametrize(("param", "values"), [("alpha", [1e-1, 1e-3]), ("max_iter", [2, 5])])
def test_a_path_of_settings(param, values, backend, problem):
    X, D, _, new = problem
    model = SABFGS(alpha=1e-2)
    with sklearn.config_context(array_api_dispatch=False):
        expected = list(model.predict_path(X, D, new, param=param, values=values))
    arrays = [backend.array(part) for part in (X, D, new)]
    for ours, theirs in zip(model.predict_path(*arrays, param=param, values=values), expected, strict=True):
        assert backend.owns(ours)
        np.testing.assert_allclose(backend.numpy(ours), theirs, rtol=0, atol=1e-10)


def test_more_features_than_rows(backend):
    generator = np.random.default_rng(3)
    X, D = generator.random((12, 20)), generator.dirichlet(np.ones(3), 12)
    for settings in (SABFGS(alpha=1e-2), SABFGSCV(alphas=(1e-1, 1e-2), cv=3)):
        reference = on_numpy(settings, X, D)
        model = sklearn.clone(settings).fit(backend.array(X), backend.array(D))
        with sklearn.config_context(array_api_dispatch=False):
            expected = reference.predict(X)
        np.testing.assert_allclose(backend.numpy(model.predict(backend.array(X))), expected, rtol=0, atol=1e-10)


def test_a_model_fitted_on_a_device_predicts_numpy_where_it_holds_small_arrays_only(backend, problem):
    X, D, _, new = problem
    arrays = backend.array(X), backend.array(D)
    for model in (SABFGS(alpha=1e-3), MeanDistribution(), AABP(max_iter=3, random_state=0)):
        there = backend.numpy(model.fit(*arrays).predict(backend.array(new)))
        np.testing.assert_allclose(model.predict(new), there, rtol=0, atol=1e-12)
    for model in (AAKNN(), KernelRidgeLDL(kernel="linear")):
        with pytest.raises(DeviceError, match="keeps its training rows there: move X there, or fit where X is"):
            model.fit(*arrays).predict(new)
