"""SABFGS: the common checks, the oracle, the paper's special cases and data that are hard."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, special
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skldl import SABFGS, SABFGSCV, MeanDistribution
from skldl.maxent import _moments, _search
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions

# Many of these tests fit centred features without intercept on purpose; one test below holds the warning itself.
pytestmark = pytest.mark.filterwarnings("ignore:SABFGS without intercept")


def _excess(model, X, D, **settings):
    """Loss above the optimum, which comes from a much longer run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rounding may end the long run
        best = SABFGS(**{**model.get_params(), "tol": 1e-14, "whiten": True, "solver": "lbfgs", **settings}).fit(X, D)
    return model.loss_curve_[-1] - best.loss_curve_[-1]


@pytest.mark.parametrize(
    "model",
    [
        SABFGS(),
        SABFGS(alpha=1e-2, fit_intercept=True),
        SABFGS(whiten=False),
        SABFGS(solver="bfgs", alpha=1e-3),
        SABFGS(whiten=False, fit_intercept=True, solver="bfgs"),
    ],
    ids=str,
)
def test_common_checks(model):
    check_estimator(model)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_same_optimum_as_logistic_regression_on_weighted_copies(alpha, fit_intercept):
    X, D = make_distributions(60, 4, 3, random_state=5)
    X = X - 0.3
    n, c = D.shape
    weight = np.random.default_rng(0).uniform(0.5, 2, size=n)
    ours = SABFGS(alpha, fit_intercept=fit_intercept, tol=1e-14).fit(X, D, sample_weight=weight)
    copies, labels = np.repeat(X, c, axis=0), np.tile(np.arange(c), n)
    theirs = LogisticRegression(
        C=1 / (alpha * weight.sum()), fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000
    ).fit(copies, labels, sample_weight=(D * weight[:, None]).ravel())
    np.testing.assert_allclose(ours.coef_, theirs.coef_ - theirs.coef_.mean(axis=0), atol=2e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict_proba(X), atol=1e-5)


def test_one_hot_rows_give_maximum_likelihood():
    """Equation 2 of the paper: with single labels the objective is the log-likelihood."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    labels = (X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(200, 3))).argmax(axis=1)
    model = SABFGS(tol=1e-13).fit(X, np.eye(3)[labels])
    likelihood = np.log(model.predict(X)[np.arange(200), labels]).mean()
    assert model.loss_curve_[-1] == pytest.approx(-likelihood, abs=1e-10)
    theirs = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, labels)
    np.testing.assert_allclose(model.predict(X), theirs.predict_proba(X), atol=1e-5)


def test_label_sets_give_entropy_based_label_assignment():
    """Equation 3 of the paper: a set of m labels counts as m copies, each with weight 1/m."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 3))
    sets = rng.uniform(size=(80, 4)) < 0.5
    sets[np.arange(80), rng.integers(4, size=80)] = True
    sizes = sets.sum(axis=1, keepdims=True)
    rows, labels = np.nonzero(sets)
    whole = SABFGS(tol=1e-13).fit(X, sets / sizes)
    copies = SABFGS(tol=1e-13).fit(X[rows], np.eye(4)[labels], sample_weight=1 / sizes[rows, 0])
    np.testing.assert_allclose(whole.coef_, copies.coef_, atol=1e-5)


@given(seed=st.integers(0, 10_000), n=st.integers(2, 30), q=st.integers(1, 12), c=st.integers(2, 6), b=st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_data_end_within_tol_of_the_optimum(seed, n, q, c, b):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, q)) * 10.0 ** rng.integers(-3, 4, size=q)
    D = rng.dirichlet(np.ones(c), size=n)
    model = SABFGS(alpha=1e-3, fit_intercept=b).fit(X, D)
    assert _excess(model, X, D) <= 1e-8
    assert np.all(np.diff(model.loss_curve_) <= 1e-12)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-9 * (1 + np.abs(model.coef_).max()))


@pytest.mark.parametrize("shape", [(60, 5, 4), (20, 50, 3), (300, 8, 30)])
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize("whiten", [True, False])
def test_converged_means_within_tol(shape, alpha, whiten):
    X, D = make_distributions(*shape, random_state=3)
    model = SABFGS(alpha, whiten=whiten, tol=1e-6, max_iter=5000).fit(X, D)
    assert model.excess_ <= 1e-6
    assert -1e-12 <= _excess(model, X, D) <= 1e-6


@pytest.mark.parametrize("solver", ["lbfgs", "bfgs"])
def test_plain_path_and_whitened_path_meet(solver):
    X, D = make_distributions(80, 5, 3)
    plain = SABFGS(whiten=False, solver=solver, tol=1e-13, fit_intercept=True).fit(X, D)
    whitened = SABFGS(solver=solver, tol=1e-13, fit_intercept=True).fit(X, D)
    np.testing.assert_allclose(plain.predict(X), whitened.predict(X), atol=1e-6)
    np.testing.assert_allclose(plain.intercept_, whitened.intercept_, atol=1e-4)
    assert whitened.n_evaluations_ < plain.n_evaluations_


def test_search_begins_at_zero():
    X, D = make_distributions(50, 4, 5)
    for whiten in (True, False):
        assert SABFGS(whiten=whiten).fit(X, D).loss_curve_[0] == pytest.approx(np.log(5))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_samples", [200, 12])
def test_scale_of_features_does_not_matter(form, n_samples):
    X, D = make_distributions(n_samples, 20, 4)
    scale = 10.0 ** np.random.default_rng(0).integers(-6, 7, size=20)
    expected, scaled = SABFGS().fit(form(X), D), SABFGS().fit(form(X * scale), D)
    assert scaled.n_evaluations_ <= 50
    assert scaled.n_evaluations_ == expected.n_evaluations_
    np.testing.assert_allclose(scaled.predict(X * scale), expected.predict(X), atol=1e-6)


def test_dependent_constant_and_empty_columns():
    X, D = make_distributions(100, 4, 3)
    more = np.column_stack([X, X[:, 0] + X[:, 1], np.full(100, 1e6), np.zeros(100), X[:, 2]])
    model = SABFGS().fit(more, D)
    assert (model.coef_[:, 6] == 0).all()
    expected = SABFGS(tol=1e-12).fit(np.column_stack([X, np.ones(100)]), D)
    np.testing.assert_allclose(model.predict(more), expected.predict(np.column_stack([X, np.ones(100)])), atol=1e-4)
    with_intercept = SABFGS(fit_intercept=True).fit(more, D)
    assert (with_intercept.coef_[:, [5, 6]] == 0).all()
    np.testing.assert_allclose(with_intercept.predict(more), model.predict(more), atol=2e-4)


def test_more_features_than_rows_reaches_zero_divergence():
    X, D = make_distributions(20, 60, 3)
    for form in (np.asarray, sparse.csr_matrix):
        model = SABFGS().fit(form(X), D)
        assert kullback_leibler(D, model.predict(X)) < 1e-8


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("whiten", [False, True])
def test_wide_sparse_equals_wide_dense(fit_intercept, whiten):
    X, D = make_distributions(15, 40, 3)
    X = np.where(X < 0.5, 0.0, X)
    dense = SABFGS(1e-2, fit_intercept=fit_intercept, whiten=whiten, tol=1e-12).fit(X, D)
    thin = SABFGS(1e-2, fit_intercept=fit_intercept, whiten=whiten, tol=1e-12).fit(sparse.csr_matrix(X), D)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(thin.intercept_, dense.intercept_, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_diagonal_preconditioner_reaches_the_same_optimum(monkeypatch, alpha):
    X, D = make_distributions(60, 8, 3)
    X = sparse.csr_matrix(np.where(X < 0.5, 0.0, X))
    expected = SABFGS(alpha, fit_intercept=True, tol=1e-12).fit(X, D).predict(X)
    monkeypatch.setattr(_moments, "MAX_MATRIX", 3)
    np.testing.assert_allclose(SABFGS(alpha, fit_intercept=True, tol=1e-12).fit(X, D).predict(X), expected, atol=1e-5)


@pytest.mark.parametrize(("n_samples", "n_features"), [(6000, 1000), (6000, 4000), (2000, 4000), (6000, 20_000)])
@pytest.mark.parametrize("whiten", [True, False])
def test_sparse_features_never_become_dense(n_samples, n_features, whiten):
    """Besides X and some arrays of the size of D, at most forty arrays of the size of the weights."""
    rng = np.random.default_rng(0)
    places = rng.integers(n_samples, size=40_000), rng.integers(n_features, size=40_000)
    X = sparse.csr_matrix((rng.uniform(size=40_000), places), shape=(n_samples, n_features))
    D = rng.dirichlet(np.ones(3), size=n_samples)
    model = SABFGS(1 / n_samples, fit_intercept=True, whiten=whiten, max_iter=1000 if whiten else 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the plain search stops early
        tracemalloc.start()
        model.fit(X, D)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + 4 * D.nbytes + 40 * model.coef_.nbytes
    if n_features == 1000 and whiten:  # the optimum does not depend on the metric
        expected = SABFGS(1 / n_samples, fit_intercept=True).fit(X.toarray(), D).loss_curve_[-1]
        assert model.loss_curve_[-1] == pytest.approx(expected, abs=2e-8)


@pytest.mark.parametrize("n_samples", [400, 5000])
def test_cross_validation_of_many_sparse_features_stays_sparse(n_samples):
    """Fewer rows than columns or more: a matrix of the columns would take 72 MB, one of 400 rows 1.3 MB."""
    rng = np.random.default_rng(0)
    places = rng.integers(n_samples, size=20_000), rng.integers(3000, size=20_000)
    X = sparse.csr_matrix((np.ones(20_000), places), shape=(n_samples, 3000))
    D = rng.dirichlet(np.ones(3), size=n_samples)
    tracemalloc.start()
    model = SABFGSCV([1e-3, 1e-2], cv=3, scaling="raw").fit(X, D)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6
    if n_samples == 400:
        dense = SABFGSCV([1e-3, 1e-2], cv=3, scaling="raw").fit(X.toarray(), D)
        np.testing.assert_allclose(model.cv_scores_, dense.cv_scores_, rtol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": True}, {"solver": "bfgs"}, {"whiten": False}], ids=str)
def test_separable_one_hot_rows_end_with_a_finite_model(settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    D = np.eye(3)[(X @ rng.normal(size=(3, 3))).argmax(axis=1)]
    model = SABFGS(**settings).fit(X, D)
    assert np.isfinite(model.coef_).all()
    assert model.loss_curve_[-1] < 1e-7
    assert model.n_iter_ < 100


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_dead", [1, 2])
def test_labels_without_mass_vanish_in_few_steps(fit_intercept, n_dead):
    X, D = make_distributions(100, 4, 5)
    D[:, :n_dead] = 0.0
    D /= D.sum(axis=1, keepdims=True)
    model = SABFGS(fit_intercept=fit_intercept).fit(X, D)
    assert model.n_iter_ <= 40
    P = model.predict(X)
    assert P[:, :n_dead].mean() < 1e-7
    rest = SABFGS(fit_intercept=fit_intercept).fit(X, D[:, n_dead:])
    assert model.loss_curve_[-1] == pytest.approx(rest.loss_curve_[-1], abs=2e-8)


def test_label_without_mass_where_features_cannot_say_so():
    X, D = make_distributions(100, 4, 3)
    D[:, 0] = 0.0
    D /= D.sum(axis=1, keepdims=True)
    X -= X.mean(axis=0)
    model = SABFGS().fit(X, D)
    assert _excess(model, X, D) < 1e-8


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_all_mass_on_one_label(fit_intercept):
    X, _ = make_distributions(50, 3, 3)
    model = SABFGS(fit_intercept=fit_intercept).fit(X, np.tile([0.0, 1.0, 0.0], (50, 1)))
    np.testing.assert_allclose(model.predict(X)[:, 1], 1.0, atol=1e-5)


def test_features_without_any_information():
    D = np.array([[0.2, 0.8], [0.4, 0.6], [0.3, 0.7]])
    np.testing.assert_allclose(SABFGS().fit(np.zeros((3, 2)), D).predict([[1.0, 2.0]]), 0.5)
    for columns in (2, 5):
        model = SABFGS(fit_intercept=True).fit(np.zeros((3, columns)), D)
        np.testing.assert_allclose(model.predict(np.ones((1, columns))), [[0.3, 0.7]], atol=1e-6)


def test_rare_labels_do_not_slow_the_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    D = special.softmax(X @ rng.normal(size=(10, 30)) * 0.3 + 4 * rng.normal(size=30), axis=1)
    model = SABFGS(fit_intercept=True).fit(X, D)
    assert model.n_evaluations_ < 80
    assert _excess(model, X, D) <= 1e-8


def test_start_that_overshoots_is_shortened():
    """The features hold a constant only roughly, and following a very rare label would cost more than it gains."""
    rng = np.random.default_rng(0)
    X = rng.normal(loc=0.4, size=(200, 1))
    D = np.tile([0.5, 0.5 - 1e-9, 1e-9], (200, 1))
    model = SABFGS().fit(X, D)
    assert np.all(np.diff(model.loss_curve_) < 0)
    assert _excess(model, X, D) <= 1e-8


def test_warning_names_the_parameter():
    X, D = make_distributions(100, 6, 4)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2.*Raise max_iter, or set alpha > 0"):
        model = SABFGS(max_iter=2).fit(X, D)
    assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3.*Raise max_iter\.$"):
        SABFGS(max_iter=3, alpha=1e-4, whiten=False).fit(X, D)
    with pytest.warns(ConvergenceWarning, match=r"found no lower loss.*raise tol"):
        SABFGS(tol=0.0).fit(X, D)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": -1.0}, r"alpha=-1\.0 must be a finite number of at least 0"),
        ({"alpha": "big"}, r"alpha='big' must be"),
        ({"alpha": np.inf}, r"alpha=inf must be"),
        ({"solver": "sag"}, r"solver='sag' must be 'lbfgs' or 'bfgs'"),
        ({"max_iter": 0}, r"max_iter=0 must be a whole number"),
        ({"max_iter": 2.5}, r"max_iter=2\.5 must be a whole number"),
        ({"max_iter": True}, r"max_iter=True must be a whole number"),
        ({"tol": -1e-3}, r"tol=-0\.001 must be a finite number of at least 0"),
        ({"tol": np.nan}, r"tol=nan must be"),
    ],
)
def test_invalid_parameters_are_rejected(settings, message):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=message):
        SABFGS(**settings).fit(X, D)
    (name, value), good = next(iter(settings.items())), {"alpha": 0.1, "max_iter": 5}
    if name in good:
        with pytest.raises(ValueError, match=message):
            list(SABFGS().predict_path(X, D, X, param=name, values=[good[name], value]))


def test_dense_inverse_that_would_not_fit_is_rejected(monkeypatch):
    monkeypatch.setattr(_search, "MAX_DENSE_INVERSE", 10)
    X, D = make_distributions()
    with pytest.raises(ValueError, match=r"matrix of 12 × 12 numbers.*Use solver='lbfgs'"):
        SABFGS(solver="bfgs").fit(X, D)


def test_unregularised_optimum_loses_to_the_mean_on_sjaffe(paper_data):
    """As the README states, the optimum without penalty overfits."""
    X, D = paper_data("SJAFFE")
    test = np.arange(len(D)) % 10 == 0
    model = SABFGS().fit(X[~test], D[~test])
    mean = np.tile(D[~test].mean(axis=0), (test.sum(), 1))
    assert kullback_leibler(D[test], model.predict(X[test])) > kullback_leibler(D[test], mean)


@pytest.mark.parametrize(
    ("name", "evaluations"),
    [("Yeast_alpha", 8), ("SBU_3DFE", 12), ("SJAFFE", 16), ("Natural_Scene", 250), ("Movie", 250)],
)
def test_evaluations_on_the_papers_data(name, evaluations, paper_data):
    X, D = paper_data(name)
    model = SABFGS().fit(X, D)
    assert model.n_evaluations_ <= evaluations
    assert model.excess_ <= 1e-8
    if name != "Movie":
        assert _excess(model, X, D, tol=1e-12) <= 1e-8


@pytest.mark.parametrize("n_features", [3, 300])
def test_sparse_columns_far_from_zero_are_rejected_where_digits_are_lost(n_features):
    X, D = make_distributions(n_samples=100, n_features=n_features)
    for shift in (0.0, 1e3):
        X[:, 1] += shift
        dense, csr = (SABFGS(0.1, fit_intercept=True).fit(form(X), D) for form in (np.asarray, sparse.csr_matrix))
        np.testing.assert_allclose(csr.predict(sparse.csr_matrix(X)), dense.predict(X), atol=1e-3)
    X[:, 1] += 1e7
    with pytest.raises(ValueError, match=r"Column 1 of the sparse X .* dense X"):
        SABFGS(0.0, fit_intercept=True).fit(sparse.csr_matrix(X), D)
    X[:, 1] = 1e7  # a constant column carries no information
    model = SABFGS(0.1, fit_intercept=True).fit(sparse.csr_matrix(X), D)
    np.testing.assert_allclose(model.predict(X), SABFGS(0.1, fit_intercept=True).fit(X, D).predict(X), atol=1e-3)


@pytest.mark.parametrize("n_features", [3, 300])
@pytest.mark.parametrize("tiny", [1e-7, 1e-9, 1e-12])
def test_a_row_of_tiny_weight_without_an_entry_never_drops_a_sparse_column(n_features, tiny):
    """Its zero is not stored: the column looks constant although its entries vary. Dense rows are fitted exactly."""
    X, D = make_distributions(n_samples=100, n_features=n_features)
    X[1:, 1] += 1e7
    X[0, 1] = 0.0
    weight = np.ones(100)
    weight[0] = tiny
    model = SABFGS(0.1, fit_intercept=True, tol=1e-6)
    if tiny == 1e-7:  # the variance keeps enough digits
        dense = clone(model).fit(X, D, weight)
        sparse_fit = model.fit(sparse.csr_matrix(X), D, weight)
        np.testing.assert_allclose(sparse_fit.coef_, dense.coef_, atol=1e-3)
    else:
        with pytest.raises(ValueError, match=r"Column 1 of the sparse X .* values from 0 to 1\d+.* dense X"):
            model.fit(sparse.csr_matrix(X), D, weight)
    weight[0] = 0.0  # a row without weight does not count
    X[:, 1] = 1e7 * (np.arange(100) > 0)
    model.fit(sparse.csr_matrix(X), D, weight)


def test_a_fit_without_intercept_that_is_worse_than_the_mean_warns():
    X, D = make_distributions(200, 4, 3)
    D = 0.2 * D + 0.8 * np.array([0.7, 0.2, 0.1])
    centred = X - X.mean(axis=0)
    with pytest.warns(UserWarning, match=r"without intercept .* the mean distribution alone .* fit_intercept=True"):
        worse = SABFGS().fit(centred, D)
    mean = MeanDistribution().fit(centred, D)
    assert worse.score(centred, D) < 1.25 * mean.score(centred, D)
    assert SABFGS(fit_intercept=True).fit(centred, D).score(centred, D) > mean.score(centred, D)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SABFGS().fit(X + 3, D).score(X + 3, D) > mean.score(X, D)  # features away from zero
