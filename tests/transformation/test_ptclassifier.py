"""PTClassifier: equal to the classifier on copies, without copies where sums suffice, and clear about what it needs."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skldl import AARegressor, PTBayes, PTClassifier
from skldl.exceptions import SampleWeightError
from skldl.testing import CHECKS, check_estimator, make_distributions

LOGISTIC = LogisticRegression(solver="newton-cg", tol=1e-10, max_iter=1000)


@pytest.mark.filterwarnings("ignore:.*line search")  # of LogisticRegression in single precision
def test_passes_the_common_checks():
    expected = {"check_equal_weights_are_no_weights": "the penalty of LogisticRegression weighs against all weights"}
    check_estimator(PTClassifier(LOGISTIC), expected_failed_checks=expected)


@pytest.mark.parametrize("check", sorted(CHECKS.keys() - {"check_odd_shapes"}))
def test_passes_our_checks_with_naive_bayes(check):
    CHECKS[check](PTClassifier(GaussianNB()))


TIES_BETWEEN_SPLITS = {  # which of two equal splits a tree takes depends on rounding and on its random numbers
    "check_label_permutation",
    "check_weight_two_is_row_twice",
    "check_equal_weights_are_no_weights",
    "check_odd_shapes",
    "check_sparse",
}


@pytest.mark.parametrize("check", sorted(CHECKS.keys() - TIES_BETWEEN_SPLITS))
def test_passes_our_checks_with_a_forest(check):
    CHECKS[check](PTClassifier(RandomForestClassifier(5, random_state=0)))


def copies_in_eighths(n_samples=60, n_labels=3):
    X, D = make_distributions(n_samples, 4, n_labels)
    counts = np.stack([np.random.default_rng(i).multinomial(8, d) for i, d in enumerate(D)])
    rows = np.repeat(np.arange(n_samples).repeat(n_labels), counts.ravel())
    labels = np.repeat(np.tile(np.arange(n_labels), n_samples), counts.ravel())
    return X, counts / 8, X[rows], labels


def test_weights_are_copies():
    X, D, X_copies, labels = copies_in_eighths()
    oracle = LogisticRegression(C=1 / 8, solver="newton-cg", tol=1e-10, max_iter=1000).fit(X_copies, labels)
    np.testing.assert_allclose(PTClassifier(LOGISTIC).fit(X, D).predict(X), oracle.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("classifier", [GaussianNB(), MultinomialNB(), BernoulliNB(binarize=0.5), ComplementNB()])
def test_naive_bayes_learns_label_by_label_what_it_learns_from_copies(classifier, form, monkeypatch):
    if isinstance(classifier, GaussianNB) and form is not np.asarray:
        with pytest.raises(TypeError, match="dense"):
            PTClassifier(classifier).fit(form(np.eye(3)), np.full((3, 2), 0.5))
        return
    X, D = make_distributions(40, 4, 3)
    D = np.column_stack([D, np.zeros(40)])
    weight = np.linspace(1, 2, 40)
    P = PTClassifier(classifier).fit(form(X), D, weight).predict(form(X))
    monkeypatch.setattr("skldl.transformation._ptclassifier.SUMS_OVER_ROWS", ())
    np.testing.assert_allclose(P, PTClassifier(classifier).fit(form(X), D, weight).predict(form(X)), atol=1e-9)
    assert np.all(P[:, 3] == 0)


def test_gaussian_naive_bayes_is_ptbayes():
    X, D = make_distributions(40, 4, 3)
    P = PTClassifier(GaussianNB(var_smoothing=0.1)).fit(X, D).predict(X)
    np.testing.assert_allclose(P, PTBayes("diag", pooling=0, reg=0.1).fit(X, D).predict(X), atol=1e-9)


def test_a_tree_on_weighted_examples_is_a_regression_tree_on_distributions():
    X, D = make_distributions(80, 3, 4)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    regression_tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    np.testing.assert_allclose(
        PTClassifier(tree).fit(X, D).predict(X), AARegressor(regression_tree).fit(X, D).predict(X), atol=1e-9
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    "make", [DecisionTreeClassifier, ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier]
)
def test_trees_get_the_table_in_the_precision_they_compute_in(make, form, monkeypatch):
    class Watched(make):
        def fit(self, X, y, sample_weight=None):
            self.given_ = X.dtype
            return super().fit(X, y, sample_weight)

    X, D = make_distributions(60, 4, 3)
    settings = {"max_depth": 4, "random_state": 0}
    model = PTClassifier(Watched(**settings)).fit(form(X), D)
    assert model.classifier_.given_ == np.float32
    monkeypatch.setattr("skldl.transformation._ptclassifier.ROUND_FEATURES", ())
    np.testing.assert_array_equal(model.predict(X), PTClassifier(make(**settings)).fit(form(X), D).predict(X))


def test_draws_tend_to_the_weights_and_serve_classifiers_without_weights():
    X, D = make_distributions(5, 3, 3)
    X, D = np.tile(X, (2000, 1)), np.tile(D, (2000, 1))
    drawn = PTClassifier(KNeighborsClassifier(4000), resample="multinomial", random_state=0).fit(X, D)
    np.testing.assert_allclose(drawn.predict(X[:5]), D[:5], atol=0.05)


def test_draws_are_seeded():
    X, D = make_distributions()
    first, again, other = (
        PTClassifier(GaussianNB(), resample="multinomial", random_state=seed).fit(X, D).predict(X) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_max_samples_bounds_the_draws():
    X, D = make_distributions(40, 4, 3)
    for max_samples, expected in ((50, 50), (10_000, 120), (None, 120)):
        model = PTClassifier(KNeighborsClassifier(1), resample="multinomial", max_samples=max_samples, random_state=0)
        assert model.fit(X, D).classifier_.n_samples_fit_ == expected


def test_sample_weight_counts_when_drawing():
    X, D = make_distributions(40, 3, 3)
    weight = np.where(np.arange(40) < 20, 1e9, 1.0)
    model = PTClassifier(KNeighborsClassifier(1), resample="multinomial", random_state=0).fit(X, D, weight)
    drawn = model.classifier_._fit_X
    assert all(any(np.array_equal(row, x) for x in X[:20]) for row in drawn)


@pytest.mark.parametrize("scale", [1e-40, 1e-20, 1e-5, 1e20, 1e40])
@pytest.mark.parametrize("classifier", [LOGISTIC, GaussianNB()])
def test_weights_that_no_penalty_can_stand_beside_are_rejected(classifier, scale):
    X, D = make_distributions(60, 4, 3)
    weight = scale * np.linspace(0.5, 1.5, 60)
    with pytest.raises(SampleWeightError, match=r"sample_weight sums to .*use weights of the order of 1"):
        PTClassifier(classifier).fit(X, D, weight)
    drawn = PTClassifier(classifier, resample="multinomial", random_state=0)  # ratios of weights alone count
    np.testing.assert_allclose(drawn.fit(X, D, weight).predict(X), drawn.fit(X, D, weight / scale).predict(X))


@pytest.mark.parametrize("scale", [1e-3, 1e-1, 1e12])
def test_other_weights_are_handed_on_as_they_are(scale):
    X, D = make_distributions(60, 4, 3)
    weight = scale * np.linspace(0.5, 1.5, 60)
    model = PTClassifier(LogisticRegression(C=1 / scale, tol=1e-10)).fit(X, D, weight)
    expected = PTClassifier(LogisticRegression(C=1.0, tol=1e-10)).fit(X, D, weight / scale)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-4)


def test_boosting_takes_part():
    X, D = make_distributions(60, 4, 3)
    model = PTClassifier(HistGradientBoostingClassifier(max_iter=3, random_state=0)).fit(X, D)
    assert model.score(X, D) > -0.2


def test_nested_parameters_in_a_grid_search():
    X, D = make_distributions()
    pipeline = make_pipeline(StandardScaler(), PTClassifier(LOGISTIC))
    search = GridSearchCV(pipeline, {"ptclassifier__classifier__C": [1e-6, 1.0]}, cv=3).fit(X, D)
    assert search.best_params_ == {"ptclassifier__classifier__C": 1.0}
    assert LOGISTIC.C == 1.0
    assert not hasattr(LOGISTIC, "coef_")


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PTClassifier(GaussianNB(), resample="once"), "resample='once'"),
        (PTClassifier(GaussianNB(), max_samples=10), "bounds the draws"),
        (PTClassifier(GaussianNB(), resample="multinomial", max_samples=0), "max_samples=0"),
        (PTClassifier(RidgeClassifier()), "RidgeClassifier.* must be a classifier with .*predict_proba"),
        (PTClassifier(SGDClassifier(loss="hinge")), "SGDClassifier.* must be a classifier with .*predict_proba"),
        (PTClassifier(SVC()), "CalibratedClassifierCV"),
        (PTClassifier(KNeighborsClassifier()), "resample='multinomial'"),
        (PTClassifier(make_pipeline(StandardScaler(), LogisticRegression())), "in front of PTClassifier"),
    ],
)
def test_unfit_classifiers_are_rejected(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*make_distributions())


def test_probabilities_that_are_not_finite_are_rejected():
    class Broken(GaussianNB):
        def predict_proba(self, X):
            return np.full((len(X), 3), np.nan)

    X, D = make_distributions()
    with pytest.raises(ValueError, match="Broken predicted probabilities that are not finite"):
        PTClassifier(Broken()).fit(X, D).predict(X)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_table_of_examples_that_takes_much_memory_is_announced(form, monkeypatch):
    X, D = make_distributions(40, 4, 3)
    needed = 40 * 3 * 4 * (8 if form is np.asarray else 12)
    monkeypatch.setattr("skldl.transformation._ptclassifier.MAX_QUIET_BYTES", needed)
    PTClassifier(LogisticRegression()).fit(form(X), D)
    monkeypatch.setattr("skldl.transformation._ptclassifier.MAX_QUIET_BYTES", needed - 1)
    with pytest.warns(UserWarning, match=r"120 examples.*max_samples.*SABFGS"):
        PTClassifier(LogisticRegression()).fit(form(X), D)
    PTClassifier(GaussianNB()).fit(X, D)  # sees X itself
