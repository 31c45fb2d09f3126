"""PT-SVM as a whole: sanity, routes, weights, resampling, paths, bad parameters, common checks."""

import pickle
import re
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from scipy.optimize import linprog, minimize
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from skldl import PTSVM, MeanDistribution
from skldl.testing import check_estimator, make_distributions

ROW_TWICE = "copies of a row may end up in different folds of the out-of-fold step"


def smooth_set(n_samples=120, seed=0):
    """Distributions that are a smooth function of two features, without noise."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n_samples, 2))
    D = np.exp(np.column_stack([2 * X[:, 0], -X[:, 0] + X[:, 1] ** 2, -2 * X[:, 1]]))
    return X, D / D.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("options", [{}, {"kernel": "linear"}, {"resample": "multinomial"}, {"max_samples": 30}])
def test_a_seeded_fit_leaves_the_global_random_numbers_alone(options):
    X, D = smooth_set(60)
    everybodys = check_random_state(None)
    before = everybodys.get_state()
    PTSVM(random_state=0, **options).fit(X, D)
    np.testing.assert_equal(everybodys.get_state(), before)


def platt(decisions, u, v, new):
    """Platt's posterior by a general optimiser, for decision values of rows seen u times and v times."""
    t_plus, t_minus = (u.sum() + 1) / (u.sum() + 2), 1 / (v.sum() + 2)
    target, spread = u * t_plus + v * t_minus, np.std(decisions)

    def cross_entropy(parameters):
        score = parameters[0] * decisions / spread + parameters[1]
        return -(target * log_expit(score) + (u + v - target) * log_expit(-score)).sum()

    slope, intercept = minimize(cross_entropy, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x
    return expit(slope * new / spread + intercept)


def coupled(r):
    """The p that minimises Σ_{i≠j} (r_ji p_i − r_ij p_j)² with Σ p = 1, by its Lagrange conditions."""
    Q = np.diag((r**2).sum(axis=0)) - r.T * r
    ones = np.ones((len(r), 1))
    return np.linalg.solve(np.block([[Q, ones], [ones.T, np.zeros((1, 1))]]), np.r_[np.zeros(len(r)), 1])[:-1]


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
    won = np.zeros((len(X_new), n_labels, n_labels))
    for a, b in zip(first, second, strict=True):
        held_out = np.empty(n_samples)
        for fold in range(n_folds):
            test = rows % n_folds == fold
            held_out[test] = decide(rows[~test], X[test], a, b)
        won[:, a, b] = platt(held_out, counts[:, a], counts[:, b], decide(rows, X_new, a, b))
        won[:, b, a] = 1 - won[:, a, b]
    return np.array([coupled(r) for r in won])


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


def test_without_equal_mass_every_pair_is_solved():
    X, D = make_distributions()
    model = PTSVM(C=1e-2, equal_mass=False).fit(X, D)
    np.testing.assert_array_equal(model.solved_pairs_, [[0, 1], [0, 2], [1, 2]])
    assert np.isfinite(model.predict(X)).all()


def test_prior_returns_with_the_posterior():
    """Features without information: the prediction is near the mean distribution, rare labels included."""
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


@pytest.mark.parametrize("C", [1e-3, 3.0])
def test_small_blocks_change_nothing(monkeypatch, C):
    X, D = make_distributions(n_labels=5)
    expected = PTSVM(C=C).fit(X, D).predict(X)
    monkeypatch.setattr("skldl.transformation._ptsvm.BLOCK", 130)
    monkeypatch.setattr("skldl.transformation._ptsvm.SOLVER_BLOCK", 130)
    np.testing.assert_allclose(PTSVM(C=C).fit(X, D).predict(X), expected, atol=1e-7)


def test_jobs_change_nothing():
    X, D = make_distributions(n_labels=4)
    with parallel_config(backend="threading"):
        found = PTSVM(C=3.0, n_jobs=2).fit(X, D).predict(X)
    np.testing.assert_allclose(found, PTSVM(C=3.0).fit(X, D).predict(X), atol=1e-7)


def test_path_over_c_equals_single_fits():
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


def test_rejects_more_machines_than_max_machines():
    X, D = make_distributions()
    with pytest.raises(ValueError, match=r"at least 18 support vector machines.* max_machines=17.*C=0\.001"):
        PTSVM(C=3.0, max_machines=17).fit(X, D)
    assert len(PTSVM(C=3.0, max_machines=None).fit(X, D).solved_pairs_) == 3
    assert len(PTSVM(C=1e-3, max_machines=1).fit(X, D).solved_pairs_) == 0


def test_machines_of_the_folds_are_counted_one_by_one():
    """All rows and the five folds need a solver for different numbers of pairs."""
    X, D = make_distributions(n_samples=40, n_labels=5)
    n_machines, errors = 1, []
    while True:
        try:
            model = PTSVM(C=0.22, max_machines=n_machines).fit(X, D)
            break
        except ValueError as error:  # the count of the fits so far, which grows with each of them
            errors.append(int(re.search(r"at least (\d+) support vector machines", str(error))[1]))
            n_machines = errors[-1]
    assert errors == sorted(set(errors))
    assert n_machines != 6 * len(model.solved_pairs_)


def test_a_thousand_labels_are_rejected_where_a_solver_would_be_needed():
    X, D = make_distributions(n_samples=12, n_labels=1000)
    with pytest.raises(ValueError, match="max_machines=20000"):
        PTSVM(C=100.0).fit(X, D)


def test_a_long_fit_is_announced(monkeypatch):
    monkeypatch.setattr("skldl.transformation._ptsvm.LONG_FIT", 100)
    with pytest.warns(UserWarning, match="3 pairs of labels on .* rows: expect about"):
        PTSVM(C=1e-3).fit(*make_distributions())


def test_more_rows_than_memory_limit_holds_are_an_error_where_a_solver_is_needed():
    X, D = smooth_set(n_samples=80)
    limit = 8 * 50**2 / 2**30
    with pytest.raises(ValueError, match=r"memory_limit=.* 80 rows.* max_samples=50 .*C=0\.001"):
        PTSVM(C=3.0, memory_limit=limit).fit(X, D)
    assert len(PTSVM(C=3.0, memory_limit=limit, max_samples=50).fit(X, D).support_) == 50
    assert len(PTSVM(C=1e-3, memory_limit=limit).fit(X, D).support_) == 80


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_columns", [0, 100])
def test_a_linear_kernel_has_no_memory_limit(form, n_columns):
    X, D = smooth_set(n_samples=80)
    X = np.hstack([X, np.zeros((80, n_columns))])
    expected = PTSVM(kernel="linear", C=3.0).fit(X, D)
    assert len(expected.solved_pairs_)
    found = PTSVM(kernel="linear", C=3.0, memory_limit=1e-9).fit(form(X), D)
    np.testing.assert_allclose(found.predict(form(X)), expected.predict(X), atol=1e-6)


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
    monkeypatch.setattr("skldl.transformation._svm_solver.MAX_STEPS", 3)
    X, D = make_distributions()
    model = PTSVM(kernel="linear", n_jobs=n_jobs)
    with (
        parallel_config(backend="threading"),
        pytest.warns(ConvergenceWarning, match=r"stopped (3 of 3|15 of 15) .*StandardScaler"),
    ):
        P = model.fit(1e8 * X, D).predict(1e8 * X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("gamma", [0.05, 2.0])
@pytest.mark.parametrize("C", [1.0, 10.0, 1e3])
@pytest.mark.parametrize("n_samples", [60, 250])
def test_labels_of_very_different_mass_are_solved(n_samples, C, gamma):
    """Without equal masses nearly all rows of some pairs lie on one margin; a warning would be an error here."""
    X, D = make_distributions(n_samples, 5, 5)
    D = D ** np.linspace(1, 12, 5)
    PTSVM(C=C, gamma=gamma, equal_mass=False).fit(X, D / D.sum(axis=1, keepdims=True))


def test_large_unscaled_features_come_near_the_optimum():
    """Linear kernel, features in the thousands: the least hinge loss is known by linear programming."""
    rng = np.random.default_rng(0)
    X, D = 1000 * rng.normal(size=(120, 5)), rng.dirichlet(np.ones(2), 120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = PTSVM(kernel="linear").fit(X, D)
    rows, weights = model._examples.rows, model._examples.weights * model._model.costs
    values = rows @ (rows.T @ model._model.coefficients[:, 0]) + model._model.offset[0]
    loss = (weights[:, 0] * np.maximum(0, 1 - values) + weights[:, 1] * np.maximum(0, 1 + values)).sum()
    least = least_hinge_loss(rows / 1000, *weights.T)
    assert least * (1 - 1e-6) <= loss <= 1.01 * least


def least_hinge_loss(X, first, second):
    """The least Σ u·max(0, 1 − f) + v·max(0, 1 + f) over linear f, by linear programming; ½‖w‖² is next to nothing."""
    n, q = X.shape
    rows = np.column_stack([X, np.ones(n)])
    upper = sparse.bmat([[-rows, -np.eye(n), None], [rows, None, -np.eye(n)]])
    cost = np.concatenate([np.zeros(q + 1), first, second])
    bounds = [(None, None)] * (q + 1) + [(0, None)] * (2 * n)
    return linprog(cost, A_ub=upper, b_ub=-np.ones(2 * n), bounds=bounds).fun


def test_widths_of_the_kernel():
    X, D = make_distributions()
    assert PTSVM().fit(X, D).gamma_ == 1 / 4
    assert PTSVM(gamma="scale").fit(X, D).gamma_ == pytest.approx(1 / (4 * X.var()))
    assert PTSVM(gamma="scale").fit(sparse.csr_matrix(X), D).gamma_ == pytest.approx(1 / (4 * X.var()))
    assert PTSVM(gamma="scale").fit(np.zeros_like(X), D).gamma_ == 1.0
    assert PTSVM(gamma=3).fit(X, D).gamma_ == 3.0
    assert PTSVM(kernel="linear").fit(X, D).gamma_ is None


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(("C", "n_samples"), [(1e-3, 60), (3.0, 60), (100.0, 320)])
def test_where_the_features_are_zero_does_not_matter(kernel, C, n_samples, form):
    """2³⁰ has so many digits that a kernel computed from squared norms would be noise."""
    X, D = make_distributions(n_samples=n_samples)
    X = np.round(X * 256) / 256  # so that X + 2³⁰ is exact
    model = PTSVM(kernel=kernel, C=C, gamma="scale")
    expected = model.fit(X, D).predict(X)
    found = model.fit(form(X + 2.0**30), D).predict(form(X + 2.0**30))
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("factor", [2.0**-480, 2.0**480])
def test_small_and_large_features_have_a_width(form, factor):
    X, D = make_distributions()
    model = PTSVM(gamma="scale", C=3.0)
    expected = model.fit(X, D).predict(X)
    np.testing.assert_allclose(model.fit(form(factor * X), D).predict(form(factor * X)), expected, atol=1e-7)
