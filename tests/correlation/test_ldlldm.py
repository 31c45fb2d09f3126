"""LDLLDM: common checks, reconstruction weights against scikit-learn, the objective by loops, limits."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.manifold._locally_linear import barycenter_weights

from skldl import SABFGS
from skldl.correlation import LDLLDM
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(LDLLDM())


def reconstruction_weights(D, weight):
    """Weights Z, a column for each label, by scikit-learn's code for locally linear embedding."""
    n_labels, points = D.shape[1], (D * np.sqrt(weight / weight.sum())[:, None]).T
    others = np.array([[k for k in range(n_labels) if k != j] for j in range(n_labels)])
    Z = np.zeros((n_labels, n_labels))
    for j, found in enumerate(barycenter_weights(points, points, others, reg=1e-3)):
        Z[others[j], j] = found
    return Z


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_objective_by_loops(check_optimum, fit_intercept):
    X, D = make_distributions(40, 3, 4)
    groups = np.arange(40) % 3
    D = 0.3 * D + 0.7 * np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]])[groups]
    weight = np.random.default_rng(0).uniform(0.5, 2, 40)
    model = LDLLDM(1e-3, global_weight=0.7, local_weight=0.4, n_clusters=3, fit_intercept=fit_intercept, tol=1e-10)
    model.fit(X, D, weight)
    clusters = KMeans(3, n_init=10, random_state=0).fit_predict(D)  # far apart: every algorithm finds them
    Z = reconstruction_weights(D, weight)
    Z_of = [reconstruction_weights(D[clusters == g], weight[clusters == g]) for g in range(3)]

    def objective(P, W, weight):
        total = 0.0
        for i in range(40):
            total += weight[i] * (D[i] * np.log(D[i] / P[i])).sum()
            total += weight[i] * 0.7 * ((P[i] - P[i] @ Z) ** 2).sum()
            total += weight[i] * 0.4 * ((P[i] - P[i] @ Z_of[clusters[i]]) ** 2).sum()
        return total

    check_optimum(model, X, objective, weight)


def test_without_relations_it_is_sabfgs():
    X, D = make_distributions(60, 4, 3)
    expected = SABFGS(1e-3, fit_intercept=True, tol=1e-12).fit(X, D).predict(X)
    plain = LDLLDM(1e-3, global_weight=0, local_weight=0, tol=1e-12).fit(X, D)
    np.testing.assert_allclose(plain.predict(X), expected, atol=1e-6)
    one_cluster = LDLLDM(1e-3, global_weight=0, local_weight=5.0, n_clusters=1, tol=1e-12).fit(X, D)
    np.testing.assert_allclose(one_cluster.predict(X), expected, atol=1e-6)


def test_stronger_weights_keep_the_relations_better():
    X, D = make_distributions(80, 3, 5)
    Z = reconstruction_weights(D, np.ones(80))

    def gap(strength):
        P = LDLLDM(1e-3, global_weight=strength, local_weight=0).fit(X, D).predict(X)
        return ((P - P @ Z) ** 2).sum()

    assert gap(10.0) < 0.5 * gap(0.1) < 0.5 * gap(0.0)


def test_paths_agree_with_single_fits():
    X, D = make_distributions(50, 4, 3)
    for param, values in {"global_weight": [0.0, 1.0], "n_clusters": [1, 3], "alpha": [0.0, 1e-2]}.items():
        path = LDLLDM().predict_path(X, D, X[:5], param=param, values=values)
        for value, P in zip(values, path, strict=True):
            expected = LDLLDM().set_params(**{param: value}).fit(X, D).predict(X[:5])
            np.testing.assert_allclose(P, expected, atol=1e-10)


@pytest.mark.parametrize("bad", [{"global_weight": -1}, {"local_weight": np.inf}, {"n_clusters": 0}])
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        LDLLDM(**bad).fit(X, D)
