"""Label enhancement: each enhancer against an oracle of its definition, and the common interface."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.manifold._locally_linear import barycenter_kneighbors_graph
from sklearn.metrics import pairwise_distances

from skldl import SABFGS, MeanDistribution
from skldl.distributions import from_label_sets, to_label_sets
from skldl.enhancement import FCM, GLLE, KM, LESC, ML, EnhancedLDL, PropagationEnhancer
from skldl.exceptions import DataError, LengthMismatchError, ParameterError
from skldl.testing import check_estimator, make_distributions

X, Y = make_multilabel_classification(n_samples=60, n_classes=4, n_features=5, allow_unlabeled=False, random_state=0)
Z = (X - X.mean(axis=0)) / X.std(axis=0)
ALL = [FCM(), KM(), ML(), GLLE(), LESC(), PropagationEnhancer()]


def softmax(scores):
    powers = np.exp(scores)
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("enhancer", ALL, ids=lambda one: type(one).__name__)
def test_one_interface(enhancer):
    frame = pd.DataFrame(Y, columns=list("abcd"), index=np.arange(60) + 7)
    D = clone(enhancer).fit_transform(X, frame)
    assert list(D.columns) == list("abcd")
    assert list(D.index) == list(frame.index)
    values = D.to_numpy()
    np.testing.assert_allclose(values.sum(axis=1), 1.0)
    assert values.min() >= 0
    np.testing.assert_array_equal(clone(enhancer).fit_transform(X, Y), values)
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(clone(enhancer).fit_transform(X, Y[:, order]), values[:, order], atol=1e-6)
    relevant = np.where(Y == 1, values, np.nan)
    others = np.where(Y == 0, values, np.nan)
    mixed = (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < 4)
    assert (np.nanmean(relevant[mixed], axis=1) > np.nanmean(others[mixed], axis=1)).mean() > 0.8
    with pytest.raises(LengthMismatchError):
        clone(enhancer).fit(X, Y[:5])
    with pytest.raises(DataError, match="requires y"):
        clone(enhancer).fit(X, None)


@pytest.mark.parametrize("enhancer", ALL[:5], ids=lambda one: type(one).__name__)
def test_scale_of_the_features_does_not_matter_and_odd_tables_pass(enhancer):
    expected = clone(enhancer).fit_transform(X, Y)
    np.testing.assert_allclose(clone(enhancer).fit_transform(X * [1, 10, 100, 1e3, 1e-3] + 5, Y), expected, atol=1e-6)
    for table in (np.ones_like(X), X[:1]):
        D = clone(enhancer).fit_transform(table, Y[: len(table)])
        np.testing.assert_allclose(D.sum(axis=1), 1.0)
    with pytest.raises(DataError):
        clone(enhancer).fit(X, Y + 0.5)


def test_fcm_is_a_fixed_point_of_the_definition():
    model = FCM(n_clusters=3, max_iter=2000, tol=1e-12).fit(X, Y)
    distances = pairwise_distances(Z, model.centres_)
    U = 1 / ((distances[:, :, None] / distances[:, None, :]) ** 2).sum(axis=2)
    np.testing.assert_allclose((U**2).T @ Z / (U**2).sum(axis=0)[:, None], model.centres_, atol=1e-8)
    A = U.T @ Y
    A = A / A.sum(axis=1, keepdims=True)
    expected = np.array([[max(min(U[i, k], A[k, j]) for k in range(3)) for j in range(4)] for i in range(60)])
    np.testing.assert_allclose(model.prototypes_, A, atol=1e-8)
    np.testing.assert_allclose(model.distributions_, softmax(expected), atol=1e-7)
    np.testing.assert_allclose(model.transform(X), model.distributions_, atol=1e-7)


def test_a_row_at_a_centre_belongs_to_it_alone():
    model = FCM(n_clusters=2).fit([[0.0], [1.0]], [[1, 0], [1, 1]])
    own = [int(np.argmin(np.abs(model.centres_[:, 0] - z))) for z in (-1, 1)]
    np.testing.assert_allclose(model.prototypes_[own], [[1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_allclose(model.distributions_, softmax(model.prototypes_[own]))


def test_km_is_the_definition():
    width = pairwise_distances(Z).sum() / (60 * 59)
    K = np.exp(-(pairwise_distances(Z) ** 2) / (2 * width**2))
    scores = np.zeros(Y.shape)
    for label in range(4):
        members = np.flatnonzero(Y[:, label])
        square = [K[i, i] - 2 * K[i, members].mean() + K[np.ix_(members, members)].mean() for i in range(60)]
        radius = np.sqrt(np.array(square)[members].max())
        scores[members, label] = 1 - np.sqrt(np.array(square)[members] / (radius**2 + 1e-3))
    model = KM().fit(X, Y)
    assert model.width_ == pytest.approx(width)
    np.testing.assert_allclose(model.distributions_, softmax(scores), atol=1e-10)
    np.testing.assert_allclose(model.transform(X[:7], Y[:7]), model.distributions_[:7], atol=1e-12)
    sets = [[j for j in range(4) if row[j]] for row in Y[:7]]
    np.testing.assert_allclose(KM().fit(X, Y).transform(X[:7], sets), model.distributions_[:7], atol=1e-12)


def test_ml_solves_the_bounded_problem():
    model = ML(n_neighbors=6, max_iter=5000, tol=1e-10).fit(X, Y)
    residual = np.eye(60) - barycenter_kneighbors_graph(Z, n_neighbors=6, reg=1e-3).toarray()
    scores = np.empty(Y.shape)
    for label in range(4):
        sign = np.where(Y[:, label] > 0, 1.0, -1.0)
        nu = optimize.lsq_linear(residual * sign, np.zeros(60), bounds=(1.0, np.inf), tol=1e-14, max_iter=2000).x
        scores[:, label] = sign * nu
    np.testing.assert_allclose(model.distributions_, softmax(scores), atol=1e-4)


def test_ml_warns_when_it_stops_early():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        ML(max_iter=2).fit(X, Y)


def test_glle_is_the_minimum_over_kernel_weights():
    """ΦW for the W that solves the normal equations of the definition; the kernel cancels."""
    model = GLLE(alpha=0.5, n_neighbors=5, width=0.7).fit(X, Y)
    Phi = np.exp(-(pairwise_distances(Z) ** 2) / (2 * 0.7**2))
    nearest = np.argsort(pairwise_distances(Z) + 1e9 * np.eye(60), axis=1)[:, :5]
    tied = np.zeros((60, 60), dtype=bool)
    np.put_along_axis(tied, nearest, True, axis=1)
    affinity = np.where(tied | tied.T, Phi, 0.0)
    G = np.diag(affinity.sum(axis=1)) - affinity
    W = np.linalg.solve(Phi.T @ Phi + 0.5 * Phi.T @ G @ Phi, Phi.T @ Y)
    np.testing.assert_allclose(model.scores_, Phi @ W, atol=1e-7)
    np.testing.assert_allclose(model.distributions_, softmax(Phi @ W), atol=1e-7)
    np.testing.assert_allclose(model.transform(X), model.distributions_, atol=1e-5)


def test_lesc_closed_forms_are_minima():
    rows = np.column_stack([Z, np.ones(60)])
    tau, weight = 0.5, 0.8
    U, values, _ = np.linalg.svd(rows, full_matrices=False)
    gamma = np.maximum(1 - 1 / (tau * values**2), 0.0)
    low = (U * gamma) @ U.T

    def loss(C):
        return np.linalg.norm(C, "nuc") + tau / 2 * ((rows - C @ rows) ** 2).sum()

    C = np.zeros((60, 60))  # proximal gradient steps on the definition end at the closed form
    step = 1 / (tau * values[0] ** 2)
    for _ in range(3000):
        left, size, right = np.linalg.svd(C + step * tau * (rows - C @ rows) @ rows.T)
        C = (left * np.maximum(size - step, 0)) @ right
    assert loss(low) <= loss(C) + 1e-8
    np.testing.assert_allclose(low, C, atol=1e-3)
    rest = np.eye(60) - low
    F = np.linalg.solve(np.eye(60) + weight * rest.T @ rest, Y.astype(float))
    model = LESC(weight, tau=tau).fit(X, Y)
    np.testing.assert_allclose(model.distributions_, softmax(F), atol=1e-10)
    assert model.rank_ == int((gamma > 0).sum())


def test_glle_transforms_training_rows_to_a_smoother_table_where_features_are_few():
    """With one feature the kernel matrix is numerically singular: no weights give the scores of the training rows."""
    generator = np.random.default_rng(0)
    labels = np.eye(3, dtype=int)[generator.integers(0, 3, 300)]
    for n_features, least, most in ((1, 0.02, 0.3), (12, 0.0, 1e-3)):
        features = generator.normal(size=(300, n_features))
        model = GLLE().fit(features, labels)
        assert least <= np.abs(model.transform(features) - model.distributions_).max() < most
        np.testing.assert_array_equal(GLLE().fit_transform(features, labels), model.distributions_)


@pytest.mark.parametrize("enhancer", [FCM(), GLLE(), KM()], ids=repr)
def test_later_changes_of_the_arrays_do_not_reach_the_enhancer(enhancer):
    features, labels = X.copy(), Y.astype(np.float64)
    expected = np.asarray(enhancer.fit(features, labels).transform(X[:7], Y[:7]))
    features[:], labels[:] = 0.0, 1.0
    np.testing.assert_array_equal(enhancer.transform(X[:7], Y[:7]), expected)


def test_new_rows_need_a_fitted_enhancer_and_few_enough_rows(monkeypatch):
    for enhancer in (FCM(), GLLE()):
        with pytest.raises(NotFittedError):
            enhancer.transform(X)
    monkeypatch.setattr("skldl.enhancement._glle.MAX_KERNEL_ROWS", 10)
    with pytest.raises(DataError, match="60 training rows"):
        GLLE().fit(X, Y).transform(X)
    with pytest.raises(ParameterError, match="alpha=-1"):
        GLLE(-1).fit(X, Y)


@pytest.mark.parametrize("enhancer", [FCM(), GLLE(), KM(), PropagationEnhancer()], ids=repr)
def test_new_rows_are_enhanced_with_one_signature(enhancer):
    enhancer.fit(X, Y)
    P = np.asarray(enhancer.transform(X[:7], Y[:7]))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    if not isinstance(enhancer, KM):
        np.testing.assert_array_equal(P, enhancer.transform(X[:7]))


def test_kernels_are_computed_in_blocks():
    features, labels = np.tile(X, (70, 1)), np.tile(Y, (70, 1))
    features += 1e-3 * np.random.default_rng(0).normal(size=features.shape)
    tracemalloc.start()
    model = KM().fit(features, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.75 * 8 * len(features) ** 2  # the whole kernel matrix
    np.testing.assert_allclose(model.transform(features[:50], labels[:50]), model.distributions_[:50])


def test_enhanced_ldl_recovers_and_learns():
    features, D = make_distributions(50, 3, 5)
    L = to_label_sets(D, mass=0.5)
    np.testing.assert_allclose(EnhancedLDL().fit(features, D).predict(features), from_label_sets(L))
    recovered = EnhancedLDL(GLLE()).fit(features, D)
    np.testing.assert_allclose(recovered.predict(features), GLLE().fit_transform(features, L))
    with pytest.raises(DataError, match="rows that fit saw"):
        recovered.predict(features[:5])
    learner = EnhancedLDL(GLLE(), SABFGS(0.01)).fit(features, D)
    expected = SABFGS(0.01).fit(features, GLLE().fit_transform(features, L)).predict(features[:5])
    np.testing.assert_allclose(learner.predict(features[:5]), expected)


def test_enhanced_ldl_passes_the_checks_that_it_can():
    hidden = {"check_odd_shapes": "its degrees are hidden: equal rows give another distribution back"}
    check_estimator(EnhancedLDL(estimator=MeanDistribution()), expected_failed_checks=hidden)
