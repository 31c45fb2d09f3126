"""PT-SVM as a whole: sanity, routes, weights, resampling, paths, bad parameters, common checks."""

import pickle

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from skldl import PTSVM, MeanDistribution
from skldl.testing import check_estimator, make_distributions
from skldl.transformation import _gaussian, _newton_svm, _pair_fit, _pairwise_svm
from skldl.transformation._coupling import couple
from skldl.transformation._platt import fit_sigmoids

ROW_TWICE = "copies of a row may end up in different folds of the out-of-fold step"


@pytest.fixture(params=["newton", "libsvm"])
def solver(request, monkeypatch):
    """What begins with the pairs without a closed form, whatever the number of rows."""
    monkeypatch.setattr(_pair_fit, "FEW_ROWS", 0 if request.param == "newton" else 10**9)
    return request.param


def smooth_set(n_samples=120, seed=0):
    """Distributions that are a smooth function of two features, without noise."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n_samples, 2))
    D = np.exp(np.column_stack([2 * X[:, 0], -X[:, 0] + X[:, 1] ** 2, -2 * X[:, 1]]))
    return X, D / D.sum(axis=1, keepdims=True)


def by_hand(X, D, X_new, kernel, C, n_folds=5):
    """The docstring of PTSVM, step by step: explicit copies, one SVC for each pair and fold, Platt, coupling."""
    n_samples, n_labels = D.shape
    first, second = np.triu_indices(n_labels, 1)
    counts = n_labels * D

    def decide(train, new, a, b):
        scale = n_samples / counts[train].sum(axis=0)
        copies = np.concatenate([train, train])
        cost = C * np.concatenate([scale[a] * counts[train, a], scale[b] * counts[train, b]])
        model = SVC(kernel="precomputed", C=1.0, tol=1e-9)
        model.fit(kernel(X[copies], X[copies]), np.repeat([1, -1], len(train)), sample_weight=cost)
        return model.decision_function(kernel(new, X[copies]))

    rows = np.arange(n_samples)
    probabilities = []
    for a, b in zip(first, second, strict=True):
        held_out = np.empty(n_samples)
        for fold in range(n_folds):
            test = rows % n_folds == fold
            held_out[test] = decide(rows[~test], X[test], a, b)
        slope, intercept = fit_sigmoids(held_out[:, None], counts[:, [a]], counts[:, [b]])
        probabilities.append(expit(slope * decide(rows, X_new, a, b) + intercept))
    return couple(np.column_stack(probabilities), n_labels)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_equals_the_method_done_by_hand(kernel):
    X, D = make_distributions(n_samples=43, n_labels=4)
    X_new = make_distributions(n_samples=9, random_state=1)[0]
    function = linear_kernel if kernel == "linear" else lambda A, B: rbf_kernel(A, B, gamma=1 / 4)
    model = PTSVM(kernel=kernel, C=5.0).fit(X, D)
    assert len(model.solved_pairs_) == 6
    np.testing.assert_allclose(model.predict(X_new), by_hand(X, D, X_new, function, C=5.0), atol=2e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_closed_form_is_the_limit_of_small_c(kernel):
    """Between the margins C does not matter: Platt's posterior sets the scale."""
    X, D = smooth_set()
    small, smaller = (PTSVM(kernel=kernel, C=C).fit(X, D) for C in (1e-3, 1e-5))
    assert len(small.solved_pairs_) == 0
    np.testing.assert_allclose(small.predict(X), smaller.predict(X), atol=1e-6)


@pytest.mark.parametrize("parameters", [{}, {"C": 1e-3}, {"C": 30.0, "gamma": "scale"}, {"kernel": "linear"}])
def test_learns(parameters):
    X, D = smooth_set()
    X_new, D_new = smooth_set(seed=1)
    mean = MeanDistribution().fit(X, D).score(X_new, D_new)
    assert PTSVM(**parameters).fit(X, D).score(X_new, D_new) > 0.35 * mean


def test_learns_single_labels():
    X, D = smooth_set(n_samples=200)
    labels = D.argmax(axis=1)
    model = PTSVM(C=10.0, gamma=2.0).fit(X, np.eye(3)[labels])
    assert (model.predict(X).argmax(axis=1) == labels).mean() > 0.95


def test_without_equal_mass_every_pair_is_solved(solver):
    X, D = make_distributions()
    model = PTSVM(C=1e-2, equal_mass=False).fit(X, D)
    np.testing.assert_array_equal(model.solved_pairs_, [[0, 1], [0, 2], [1, 2]])
    assert np.isfinite(model.predict(X)).all()


def test_prior_returns_with_the_posterior():
    """Features that tell nothing: the prediction is near the mean distribution, rare labels included."""
    X = np.random.default_rng(0).normal(size=(300, 2))
    D = np.tile([0.9, 0.08, 0.02], (300, 1))
    np.testing.assert_allclose(PTSVM(C=1e-3).fit(X, D).predict(X[:5]), D[:5], atol=0.01)


def test_max_samples_bounds_the_rows():
    X, D = smooth_set(n_samples=200)
    model = PTSVM(max_samples=50, random_state=3).fit(X, D)
    assert len(np.unique(model.support_)) == 50
    np.testing.assert_array_equal(PTSVM(max_samples=50, random_state=3).fit(X, D).predict(X), model.predict(X))
    other = PTSVM(max_samples=50, random_state=4).fit(X, D)
    assert set(other.support_) != set(model.support_)
    chosen = np.sort(model.support_)
    np.testing.assert_allclose(PTSVM().fit(X[chosen], D[chosen]).predict(X), model.predict(X), atol=1e-12)
    assert len(PTSVM(max_samples=None).fit(X, D).support_) == 200


def test_heavy_rows_are_drawn_first():
    X, D = smooth_set(n_samples=200)
    weight = np.where(np.arange(200) < 40, 1.0, 1e-9)
    model = PTSVM(max_samples=40, random_state=0).fit(X, D, sample_weight=weight)
    np.testing.assert_array_equal(np.sort(model.support_), np.arange(40))


def test_weights_move_the_prediction():
    X, D = smooth_set()
    weight = np.where(D.argmax(axis=1) == 0, 20.0, 1.0)
    assert PTSVM().fit(X, D, weight).predict(X)[:, 0].mean() > PTSVM().fit(X, D).predict(X)[:, 0].mean() + 0.05


def test_resampling():
    X, D = smooth_set()
    drawn = PTSVM(C=1e-3, resample="multinomial", random_state=0).fit(X, D)
    again = PTSVM(C=1e-3, resample="multinomial", random_state=0).fit(X, D)
    np.testing.assert_array_equal(drawn.predict(X), again.predict(X))
    counts = drawn._examples.weights
    assert counts.sum() == 3 * len(X)
    np.testing.assert_array_equal(counts, counts.round())
    expected = PTSVM(C=1e-3).fit(X, D)
    np.testing.assert_allclose(expected._examples.weights.sum(), 3 * len(X))
    difference = np.abs(drawn.predict(X) - expected.predict(X)).max()
    assert 1e-6 < difference < 0.2


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_libsvm_finds_the_same(monkeypatch, kernel):
    X, D = make_distributions()
    monkeypatch.setattr(_pair_fit, "FEW_ROWS", 0)
    expected = PTSVM(kernel=kernel, C=3.0).fit(X, D)
    assert len(expected.solved_pairs_)
    monkeypatch.setattr(_newton_svm, "MOST_FREE_ROWS", -1)
    found = PTSVM(kernel=kernel, C=3.0).fit(X, D)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-4)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_many_rows_reach_libsvm_as_they_are(monkeypatch, kernel, form, solver):
    X, D = make_distributions()
    expected = PTSVM(kernel=kernel, C=3.0).fit(X, D)
    assert len(expected.solved_pairs_)
    monkeypatch.setattr(_pair_fit, "MOST_KERNEL_ROWS", 10)
    monkeypatch.setattr(_newton_svm, "MOST_FREE_ROWS", -1)
    found = PTSVM(kernel=kernel, C=3.0).fit(form(X), D)
    np.testing.assert_allclose(found.predict(form(X)), expected.predict(X), atol=1e-4)


@pytest.mark.parametrize("C", [1e-3, 3.0])
def test_small_blocks_change_nothing(monkeypatch, C, solver):
    X, D = make_distributions(n_labels=5)
    expected = PTSVM(C=C).fit(X, D).predict(X)
    monkeypatch.setattr(_gaussian, "BLOCK", 130)
    monkeypatch.setattr(_pair_fit, "SOLVER_BLOCK", 130)
    np.testing.assert_allclose(PTSVM(C=C).fit(X, D).predict(X), expected, atol=1e-7)


def test_jobs_change_nothing(solver):
    X, D = make_distributions(n_labels=4)
    with parallel_config(backend="threading"):
        found = PTSVM(C=3.0, n_jobs=2).fit(X, D).predict(X)
    np.testing.assert_allclose(found, PTSVM(C=3.0).fit(X, D).predict(X), atol=1e-7)


def test_path_over_c_equals_single_fits(solver):
    X, D = smooth_set()
    X_new = smooth_set(n_samples=20, seed=1)[0]
    values = [10.0, 1e-3, 0.3, 10.0]
    model = PTSVM(max_samples=60, random_state=0)
    path = list(model.predict_path(X, D, X_new, param="C", values=values))
    for value, P in zip(values, path, strict=True):
        expected = clone(model).set_params(C=value).fit(X, D).predict(X_new)
        np.testing.assert_allclose(P, expected, atol=1e-7)
    assert not list(model.predict_path(X, D, X_new, param="C", values=[]))
    path = list(model.predict_path(X, D, X_new, param="gamma", values=[0.1, 1.0]))
    np.testing.assert_allclose(path[1], clone(model).set_params(gamma=1.0).fit(X, D).predict(X_new), atol=1e-12)
    with pytest.raises(ValueError, match="C=-1"):
        list(model.predict_path(X, D, X_new, param="C", values=[1.0, -1]))


@pytest.mark.parametrize("n_samples", [1, 2, 3, 6])
def test_few_rows(n_samples):
    X, D = make_distributions(n_samples=n_samples)
    P = PTSVM().fit(X, D).predict(X)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert P.min() >= 0


def test_identical_rows_give_the_mean_whatever_rounding_does():
    D = make_distributions(n_samples=200, n_labels=7)[1]
    P = PTSVM().fit(np.full((200, 3), 0.1), D).predict(np.full((4, 3), 0.1))
    np.testing.assert_allclose(P, np.tile(D.mean(axis=0), (4, 1)), atol=0.01)


def test_two_labels_without_mass():
    X, D = make_distributions(n_labels=3)
    D = np.hstack([D, np.zeros((len(D), 2))])
    P = PTSVM().fit(X, D).predict(X)
    assert P[:, 3:].max() < 0.05
    np.testing.assert_allclose(P[:, 3], P[:, 4], atol=1e-12)


def test_many_labels_in_closed_form():
    X, D = make_distributions(n_samples=20, n_labels=150)
    model = PTSVM(C=1e-3).fit(X, D)
    assert len(model.solved_pairs_) == 0
    P = model.predict(X[:3])
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert P.min() > 0


def test_refuses_more_machines_than_max_machines():
    X, D = make_distributions()
    with pytest.raises(ValueError, match=r"at least 18 support vector machines.* max_machines=17.*C=1e-3"):
        PTSVM(C=3.0, max_machines=17).fit(X, D)
    assert len(PTSVM(C=3.0, max_machines=None).fit(X, D).solved_pairs_) == 3
    assert len(PTSVM(C=1e-3, max_machines=1).fit(X, D).solved_pairs_) == 0


def test_machines_of_the_folds_are_counted_one_by_one(monkeypatch):
    """A fold can need a solver for pairs that all rows do not need it for."""
    X, D = make_distributions(n_samples=40, n_labels=5)
    n_machines, closed_forms = [], _pair_fit._closed_forms

    def count(*args, **options):
        fit = closed_forms(*args, **options)
        n_machines.append(len(fit.solved))
        return fit

    monkeypatch.setattr(_pair_fit, "_closed_forms", count)
    PTSVM(C=0.22).fit(X, D)
    assert len(n_machines) == 6
    assert len(set(n_machines)) > 1
    total = sum(n_machines)
    PTSVM(C=0.22, max_machines=total).fit(X, D)
    with pytest.raises(ValueError, match=f"at least {total} support vector machines.* max_machines={total - 1}:"):
        PTSVM(C=0.22, max_machines=total - 1).fit(X, D)


def test_a_thousand_labels_are_refused_where_a_solver_would_be_needed():
    X, D = make_distributions(n_samples=12, n_labels=1000)
    with pytest.raises(ValueError, match="max_machines=20,000"):
        PTSVM(C=100.0).fit(X, D)


def test_says_that_a_fit_will_be_long(monkeypatch):
    monkeypatch.setattr(_pair_fit, "LONG_FIT", 100)
    with pytest.warns(UserWarning, match="3 pairs of labels on .* rows: expect about"):
        PTSVM(C=1e-3).fit(*make_distributions())


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_beyond_the_memory_limit_a_factor_takes_the_place_of_the_kernel(monkeypatch, kernel, form, solver):
    X, D = smooth_set(n_samples=80)
    X = np.hstack([X, np.zeros((80, 100))]) if kernel == "linear" else X  # more columns than rows
    expected = PTSVM(kernel=kernel, C=3.0).fit(form(X), D)
    assert len(expected.solved_pairs_)
    assert expected.kernel_error_ == 0
    limit = 8 * 80 * 75 / 2**30
    with pytest.warns(UserWarning, match="kernel matrix of 80 rows .* factor of rank"):
        found = PTSVM(kernel=kernel, C=3.0, memory_limit=limit).fit(form(X), D)
    assert 0 <= found.kernel_error_ <= 1e-7
    np.testing.assert_allclose(found.predict(form(X)), expected.predict(form(X)), atol=1e-4)
    monkeypatch.setattr(_newton_svm, "MOST_FREE_ROWS", -1)
    with pytest.warns(UserWarning, match="factor of rank"):
        by_libsvm = PTSVM(kernel=kernel, C=3.0, memory_limit=limit).fit(form(X), D)
    np.testing.assert_allclose(by_libsvm.predict(form(X)), expected.predict(form(X)), atol=1e-3)


def test_a_coarse_factor_says_how_coarse():
    X, D = smooth_set(n_samples=80)
    with pytest.warns(UserWarning, match="factor of rank 5 .*kernel_error_"):
        model = PTSVM(C=3.0, memory_limit=8 * 80 * 5 / 2**30).fit(X, D)
    assert 1e-6 < model.kernel_error_ < 1
    np.testing.assert_allclose(model.predict(X).sum(axis=1), 1, atol=1e-12)


def test_approximate_kernel():
    X, D = smooth_set(n_samples=300)
    X_new = smooth_set(seed=1)[0]
    features = Nystroem(gamma=0.5, n_components=60, random_state=0)
    approximate = make_pipeline(features, PTSVM(kernel="linear", C=1e-2, max_samples=None)).fit(X, D)
    exact = PTSVM(gamma=0.5, C=1e-2).fit(X, D)
    np.testing.assert_allclose(approximate.predict(X_new), exact.predict(X_new), atol=1e-3)


def test_pickle_is_small():
    X, D = make_distributions(n_samples=100, n_labels=20)
    model = PTSVM(C=1e-3).fit(X, D)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert "fold_sums" not in vars(model._examples)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "poly"}, "kernel='poly'.*Nystroem"),
        ({"C": 0.0}, "C=0.0"),
        ({"C": float("nan")}, "C=nan"),
        ({"C": "1"}, "C='1'"),
        ({"gamma": -1.0}, "gamma=-1.0"),
        ({"gamma": "big"}, "gamma='big'"),
        ({"resample": "bootstrap"}, "resample='bootstrap'"),
        ({"max_samples": 1}, "max_samples=1"),
        ({"max_samples": 10.5}, "max_samples=10.5"),
        ({"n_folds": 1}, "n_folds=1"),
        ({"memory_limit": 0}, "memory_limit=0"),
        ({"max_machines": 0}, "max_machines=0"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        PTSVM(**parameters).fit(*make_distributions())


@pytest.mark.parametrize(
    "estimator", [pytest.param(PTSVM(), marks=pytest.mark.slow), PTSVM(kernel="linear", C=1e-3)], ids=str
)
def test_common_checks(estimator):
    check_estimator(
        estimator,
        expected_failed_checks={
            "check_weight_two_is_row_twice": ROW_TWICE,
            "check_sample_weight_equivalence_on_dense_data": ROW_TWICE,
            "check_sample_weight_equivalence_on_sparse_data": ROW_TWICE,
        },
    )


@pytest.mark.slow
def test_a_thousand_labels():
    X, D = make_distributions(n_samples=60, n_features=5, n_labels=1000)
    P = PTSVM(C=1e-3).fit(X, D).predict(X)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert P.min() > 0


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_unscaled_features_end_with_a_warning(monkeypatch, n_jobs):
    monkeypatch.setattr(_pairwise_svm, "LIBSVM_MOST_STEPS", 50)
    monkeypatch.setattr(_newton_svm, "MOST_STEPS", 3)
    X, D = make_distributions()
    model = PTSVM(kernel="linear", n_jobs=n_jobs)
    with (
        parallel_config(backend="threading"),
        pytest.warns(ConvergenceWarning, match=r"stopped (3 of 3|15 of 15) .*StandardScaler"),
    ):
        P = model.fit(1e8 * X, D).predict(1e8 * X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
