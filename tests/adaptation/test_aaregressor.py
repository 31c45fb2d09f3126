"""AARegressor: what the regressor predicts, on the simplex; one or many outputs; weights passed on or rejected."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR

from skldl import AAKNN, AARegressor
from skldl.exceptions import SampleWeightError
from skldl.simplex import project
from skldl.testing import CHECKS, check_estimator, check_keeps_copies, make_distributions


def test_passes_the_common_checks():
    check_estimator(AARegressor(LinearRegression()))


RANDOM = {
    "check_label_permutation",
    "check_weight_two_is_row_twice",
    "check_weight_zero_is_no_row",
    "check_equal_weights_are_no_weights",
    "check_sparse",
}


@pytest.mark.parametrize("check", sorted(CHECKS.keys() - RANDOM))
def test_passes_our_checks_with_a_forest(check):
    CHECKS[check](AARegressor(RandomForestRegressor(5, random_state=0)))


@pytest.mark.parametrize("check", sorted(CHECKS.keys() - {"check_weight_two_is_row_twice", "check_odd_shapes"}))
def test_passes_our_checks_with_one_boosting_for_each_label(check):
    CHECKS[check](AARegressor(GradientBoostingRegressor(n_estimators=3, random_state=0)))


def test_prediction_is_the_nearest_distribution():
    X, D = make_distributions(40, 3, 4)
    D = np.eye(4)[D.argmax(axis=1)]  # so steep that a linear fit leaves the simplex
    raw = Ridge(1e-3).fit(X, D).predict(3 * X)
    assert raw.min() < 0
    np.testing.assert_allclose(AARegressor(Ridge(1e-3)).fit(X, D).predict(3 * X), project(raw), atol=1e-12)


def test_predictions_that_are_distributions_stay_as_they_are():
    X, D = make_distributions(40, 3, 4)
    forest = AARegressor(RandomForestRegressor(7, random_state=0)).fit(X, D)
    np.testing.assert_allclose(forest.predict(X), forest.regressor_.predict(X), atol=1e-15)
    neighbors = AARegressor(KNeighborsRegressor(5)).fit(X, D)
    np.testing.assert_allclose(neighbors.predict(X), AAKNN(5).fit(X, D).predict(X), atol=1e-14)


@pytest.mark.parametrize("regressor", [SVR(), HistGradientBoostingRegressor(max_iter=3, random_state=0)])
def test_one_output_is_wrapped(regressor):
    X, D = make_distributions(40, 3, 3)
    model = AARegressor(regressor).fit(X, D, np.linspace(1, 2, 40))
    assert isinstance(model.regressor_, MultiOutputRegressor)
    raw = np.column_stack([regressor.fit(X, d, np.linspace(1, 2, 40)).predict(X) for d in D.T])
    np.testing.assert_allclose(model.predict(X), project(raw), atol=1e-12)


def test_sample_weight_reaches_the_regressor():
    X, D = make_distributions()
    weight = np.linspace(0.1, 5, len(X))
    raw = Ridge().fit(X, D, weight).predict(X)
    np.testing.assert_allclose(AARegressor(Ridge()).fit(X, D, weight).predict(X), project(raw), atol=1e-12)
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight"):
        AARegressor(KNeighborsRegressor()).fit(X, D, weight)


@pytest.mark.parametrize("scale", [1e-40, 1e-20, 1e-5, 1e20, 1e40])
def test_weights_that_no_penalty_can_stand_beside_are_rejected(scale):
    X, D = make_distributions(60, 4, 3)
    with pytest.raises(SampleWeightError, match=r"sample_weight sums to .*use weights of the order of 1"):
        AARegressor(Ridge()).fit(X, D, np.full(60, scale))


def test_sparse_features_only_where_the_regressor_takes_them():
    X, D = make_distributions()
    assert AARegressor(Ridge()).fit(sparse.csr_matrix(X), D).predict(sparse.csr_matrix(X)).shape == D.shape
    with pytest.raises(TypeError, match="dense"):
        AARegressor(HistGradientBoostingRegressor()).fit(sparse.csr_matrix(X), D)


def test_nested_parameters_in_a_grid_search():
    X, D = make_distributions(300, 4, 3)
    search = GridSearchCV(AARegressor(Ridge()), {"regressor__alpha": [1e-2, 1e6]}, cv=3).fit(X, D)
    assert search.best_params_ == {"regressor__alpha": 1e-2}


def test_a_classifier_is_rejected():
    with pytest.raises(ValueError, match=r"PTClassifier\(LogisticRegression"):
        AARegressor(LogisticRegression()).fit(*make_distributions())


def test_predictions_that_are_not_finite_are_rejected():
    class Broken(LinearRegression):
        def predict(self, X):
            return np.full((len(X), 3), np.nan)

    X, D = make_distributions()
    with pytest.raises(ValueError, match="Broken predicted degrees that are not finite"):
        AARegressor(Broken()).fit(X, D).predict(X)


def test_regressors_that_keep_their_rows_get_copies():
    check_keeps_copies(AARegressor(KNeighborsRegressor(5, algorithm="brute")))
