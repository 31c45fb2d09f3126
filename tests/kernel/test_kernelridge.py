"""`KernelRidgeLDL`: refits, copies, permutations, solvers, errors."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skldl.kernel import KernelRidgeLDL, fit_each_target
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, check_keeps_copies, make_distributions

FIXED = {"kernel": "exponential", "width": 1.0, "alpha": 1e-3, "scaling": "standard", "mean_share": 0.01}
COPIES = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
        "check_weight_two_is_row_twice",
    ),
    "a row is left out with its whole weight, a copy of it would stay",
)


def exponential(A, B):
    return np.exp(-np.sqrt(((A[:, None] - B) ** 2).sum(axis=2)))


def assert_same_choice(model, other):
    for name in ("target_", "kernel_", "scaling_", "width_", "alpha_", "mean_share_"):
        assert getattr(model, name) == getattr(other, name), name


def test_estimator_checks():
    check_estimator(KernelRidgeLDL(), expected_failed_checks=COPIES)


@pytest.mark.parametrize("solver", ["exact", "cg", "nystroem"])
def test_estimator_checks_with_fixed_settings_where_weights_are_copies(solver):
    # There are landmarks enough for all rows, so copies do not change the span of their kernel functions.
    check_estimator(KernelRidgeLDL("degrees", solver=solver, tol=1e-12, **FIXED))


@pytest.mark.parametrize("target", ["degrees", "clr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_left_out_predictions_equal_refits(target, weighted, grouped):
    X, D = make_distributions(30)
    weight = np.arange(30) % 3 + 0.5 if weighted else np.ones(30)
    groups = np.arange(30) % 8 if grouped else np.arange(30)
    model = KernelRidgeLDL(target, kernel=exponential)
    model.fit(X, D, weight if weighted else None, groups=groups if grouped else None)
    for group in np.unique(groups):
        out = groups == group
        alpha = model.alpha_ * weight.sum() / weight[~out].sum()  # the penalty beside the sum of squares stays
        refit = KernelRidgeLDL(target, kernel=exponential, alpha=alpha, mean_share=model.mean_share_)
        expected = refit.fit(X[~out], D[~out], weight[~out]).predict(X[out])
        np.testing.assert_allclose(model.loo_predictions_[out], expected, atol=1e-10)
    divergence = kullback_leibler(D, model.loo_predictions_, sample_weight=weight)
    assert model.loo_divergence_ == pytest.approx(divergence, rel=1e-10)


def test_integer_weights_equal_copies_left_out_together():
    X, D = make_distributions(50)
    weight = np.arange(50) % 3
    rows = np.repeat(np.arange(50), weight)
    weighted = KernelRidgeLDL().fit(X, D, weight)
    copied = KernelRidgeLDL().fit(X[rows], D[rows], groups=rows)
    assert_same_choice(weighted, copied)
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), atol=1e-9)
    first = np.unique(rows, return_index=True)[1]
    np.testing.assert_allclose(weighted.loo_predictions_, copied.loo_predictions_[first], atol=1e-9)


def test_the_best_setting_wins():
    X, D = make_distributions(60)
    model = KernelRidgeLDL().fit(X, D)
    assert model.loo_divergence_ == min(record["divergence"] for record in model.candidates_ if record["n_rows"] == 60)
    for alpha in (1e-6, 1e-1):
        for share in (0.001, 0.2):
            fixed = clone(model).set_params(
                target=model.target_, kernel=model.kernel_, scaling=model.scaling_, width=model.width_
            )
            fixed.set_params(alpha=alpha, mean_share=share).fit(X, D)
            assert fixed.loo_divergence_ >= model.loo_divergence_ - 1e-12


def test_order_of_rows_and_features_and_units_do_not_matter():
    X, D = make_distributions(60)
    model = KernelRidgeLDL().fit(X, D)
    rows, columns = np.random.default_rng(1).permutation(60), [2, 0, 3, 1]
    other = KernelRidgeLDL().fit(X[rows][:, columns], D[rows])
    assert_same_choice(model, other)
    np.testing.assert_allclose(other.predict(X[:, columns]), model.predict(X), atol=1e-9)
    np.testing.assert_allclose(other.loo_predictions_, model.loo_predictions_[rows], atol=1e-9)
    units = np.array([1.0, 10.0, 0.01, 300.0])
    standard = KernelRidgeLDL(scaling="standard", kernel="laplacian").fit(X, D)
    rescaled = KernelRidgeLDL(scaling="standard", kernel="laplacian").fit(X * units, D)
    np.testing.assert_allclose(rescaled.predict(X * units), standard.predict(X), atol=1e-8)
    raw = KernelRidgeLDL(scaling="raw", kernel="rbf").fit(X, D)  # the width is relative to the median distance
    larger = KernelRidgeLDL(scaling="raw", kernel="rbf").fit(1000 * X, D)
    np.testing.assert_allclose(larger.predict(1000 * X), raw.predict(X), atol=1e-8)


@pytest.mark.parametrize("kernel", ["exponential", "laplacian", "rbf", "chi2", "linear", exponential])
def test_every_kernel_beats_the_mean_and_predicts_positive_degrees(kernel):
    X, D = make_distributions(60)
    D[:, 1] = 0.0
    D /= D.sum(axis=1, keepdims=True)
    model = KernelRidgeLDL(kernel=kernel).fit(X, D)
    assert model.kernel_ == kernel
    assert (model.predict(np.r_[X, 50 * X]) > 0).all()
    assert (model.loo_predictions_ > 0).all()
    mean = np.tile(D.mean(axis=0), (60, 1))
    assert model.loo_divergence_ < 0.8 * kullback_leibler(D, mean)


@pytest.mark.parametrize("target", ["degrees", "clr"])
@pytest.mark.parametrize("grouped", [False, True])
def test_solvers_agree_with_the_exact_one(target, grouped, monkeypatch):
    X, D = make_distributions(400, random_state=3)
    groups = np.arange(400) // 4 if grouped else None
    settings = {"kernel": "laplacian", "width": 0.5, "scaling": "standard"}
    exact = KernelRidgeLDL(target, **settings).fit(X, D, groups=groups)
    monkeypatch.setattr("skldl.kernel._kernelridge.EIGEN_ROWS", 100)
    monkeypatch.setattr("skldl.kernel._kernels.BLOCK_CELLS", 20_000)
    fixed = settings | {"alpha": exact.alpha_, "mean_share": exact.mean_share_}
    cholesky = KernelRidgeLDL(target, **fixed).fit(X, D, groups=groups)
    conjugate = KernelRidgeLDL(target, **fixed, max_bytes=1_500_000, tol=1e-11, n_landmarks=200)
    conjugate.fit(X, D, groups=groups)
    assert (exact.solver_, cholesky.solver_, conjugate.solver_) == ("eigen", "cholesky", "cg")
    assert conjugate.n_iter_ > 1
    np.testing.assert_allclose(cholesky.predict(X), exact.predict(X), atol=1e-10)
    np.testing.assert_allclose(cholesky.loo_predictions_, exact.loo_predictions_, atol=1e-10)
    np.testing.assert_allclose(conjugate.predict(X), exact.predict(X), atol=1e-8)
    assert kullback_leibler(exact.loo_predictions_, conjugate.loo_predictions_) < 0.02 * exact.loo_divergence_
    for solver in ("exact", "cg", "nystroem"):
        chosen = KernelRidgeLDL(target, solver=solver, n_landmarks=150, **settings).fit(X, D, groups=groups)
        assert chosen.loo_divergence_ < 1.03 * exact.loo_divergence_
        assert len(chosen.dual_coef_) == (150 if solver == "nystroem" else 400)


def test_auto_takes_landmarks_beyond_the_rows_for_conjugate_gradients(monkeypatch):
    X, D = make_distributions(60)
    monkeypatch.setattr("skldl.kernel._kernelridge.CG_ROWS", 50)
    model = KernelRidgeLDL(max_bytes=40_000, n_landmarks=1000).fit(X, D)
    assert model.solver_ == "nystroem"
    assert len(model.X_fit_) == 40_000 // (24 * 60)


def test_conjugate_gradients_warn_when_they_stop_early():
    X, D = make_distributions(100)
    model = KernelRidgeLDL("degrees", solver="cg", n_landmarks=5, max_iter=2, **(FIXED | {"alpha": 1e-6}))
    with pytest.warns(ConvergenceWarning, match="stopped after 2 steps"):
        model.fit(X, D)


def test_screening_on_few_rows_finds_a_setting_nearly_as_good():
    X, D = make_distributions(610, random_state=1)
    fixed = {"target": "degrees", "scaling": "standard"}
    everything = KernelRidgeLDL(**fixed).fit(X, D)
    few = KernelRidgeLDL(n_screen=150, **fixed).fit(X, D)
    assert few.loo_divergence_ < 1.03 * everything.loo_divergence_
    assert {record["n_rows"] for record in everything.candidates_} == {300, 610}
    assert {record["n_rows"] for record in few.candidates_} == {150, 610}


def test_groups_of_unequal_size_are_screened_with_at_least_two():
    X, D = make_distributions(80)
    groups = np.r_[np.zeros(79), 1]
    model = KernelRidgeLDL("degrees", n_screen=20).fit(X, D, groups=groups)
    mean_of_others = D[-1]
    np.testing.assert_allclose(model.loo_predictions_[0], mean_of_others, atol=1e-8)


def test_a_group_that_the_first_round_misses_is_added_to_it(monkeypatch):
    X, D = make_distributions(601)
    groups = np.r_[np.zeros(600), 1]  # every second row up to the 600th would be one group
    model = KernelRidgeLDL("degrees", kernel="rbf", alpha=1e-3, mean_share=0.01, scaling="raw")
    monkeypatch.setattr("skldl.kernel._kernelridge.FIRST_ROUND_KEEPS", 2)
    model.fit(X, D, groups=groups)
    np.testing.assert_allclose(model.loo_predictions_[0], D[-1], atol=1e-8)


def test_both_targets_from_one_decomposition():
    X, D = make_distributions(60)
    groups = np.arange(60) // 3
    weight = np.arange(60) % 2 + 1.0
    estimator = KernelRidgeLDL(kernel="rbf", width=1.0, scaling="raw")
    models = fit_each_target(estimator, X, D, weight, groups=groups)
    assert list(models) == ["degrees", "clr"]
    for target, model in models.items():
        alone = KernelRidgeLDL(target, kernel="rbf", width=1.0, scaling="raw").fit(X, D, weight, groups=groups)
        assert_same_choice(model, alone)
        np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-12)
        np.testing.assert_allclose(model.loo_predictions_, alone.loo_predictions_, atol=1e-12)
        assert {record["target"] for record in model.candidates_} == {target}
    best = KernelRidgeLDL(kernel="rbf", width=1.0, scaling="raw").fit(X, D, weight, groups=groups)
    assert best.loo_divergence_ == min(model.loo_divergence_ for model in models.values())


def test_dense_features_that_are_nearly_all_zero_are_stored_sparsely():
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(80, 120)) < 0.03).astype(float)
    D = np.exp(np.column_stack([X[:, :40].sum(axis=1), np.zeros(80)]))
    D /= D.sum(axis=1, keepdims=True)
    dense, thin = KernelRidgeLDL().fit(X, D), KernelRidgeLDL().fit(sparse.csr_matrix(X), D)
    assert sparse.issparse(dense.X_fit_)
    assert_same_choice(dense, thin)
    np.testing.assert_allclose(dense.predict(X), thin.predict(sparse.csc_matrix(X)), atol=1e-12)
    assert "chi2" not in {record["kernel"] for record in dense.candidates_}


def test_slow_distances_are_not_tried(monkeypatch):
    X, D = make_distributions(60)
    monkeypatch.setattr("skldl.kernel._kernelridge.MAX_OPERATIONS", 60 * 60 * 2)
    kernels = {record["kernel"] for record in KernelRidgeLDL().fit(X, D).candidates_}
    assert kernels == {"exponential", "rbf", "linear"}


def test_a_share_of_zero_may_leave_zeros_and_counts_as_infinitely_bad():
    X, D = make_distributions(40)
    one_hot = np.eye(3)[D.argmax(axis=1)]
    model = KernelRidgeLDL("degrees", mean_share=0.0, kernel="rbf", width=0.25, alpha=1e-9).fit(X, one_hot)
    assert model.predict(X).min() == 0.0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"target": "log"}, "target='log' must be 'auto' or 'degrees' or 'clr'"),
        ({"kernel": "poly"}, "or a callable"),
        ({"scaling": None}, "scaling=None must be 'auto' or"),
        ({"solver": "lu"}, "solver='lu' must be 'auto' or"),
        ({"width": 0.0}, "width=0.0 must be None or a finite number above 0"),
        ({"alpha": -1}, "alpha=-1 must be None or a finite number above 0"),
        ({"tol": None}, "tol=None must be a finite number above 0"),
        ({"mean_share": 1.5}, "mean_share=1.5 must be None or a finite number of at least 0 and of at most 1"),
        ({"n_screen": 0}, "n_screen=0 must be a whole number"),
        ({"kernel": "chi2"}, "needs non-negative features"),
        ({"scaling": "sqrt"}, "needs non-negative features"),
    ],
)
def test_bad_settings_are_rejected(params, message):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=message):
        KernelRidgeLDL(**params).fit(X - 0.5, D)


def test_one_row_cannot_be_left_out():
    with pytest.raises(ValueError, match="n_samples=1"):
        KernelRidgeLDL().fit([[1.0]], [[0.5, 0.5]])


def test_accuracy_on_faces(paper_data):
    X, D = paper_data("SJAFFE")
    folds = np.array_split(np.random.default_rng(0).permutation(len(D)), 10)
    test, train = folds[0], np.concatenate(folds[1:])
    models = fit_each_target(KernelRidgeLDL(), X[train], D[train])
    for model in models.values():
        assert kullback_leibler(D[test], model.predict(X[test])) < 0.040
        assert model.loo_divergence_ < 0.0365


@pytest.mark.parametrize("scaling", ["raw", "standard", "sqrt"])
@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_keeps_copies(scaling, solver):
    check_keeps_copies(KernelRidgeLDL(scaling=scaling, kernel="rbf", solver=solver))
