"""LDLClassifier: scikit-learn's checks, oracles, sets of labels and the virtual label, enhancers, bad input."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, hamming_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from skldl import AAKNN, SABFGS, LDLClassifier, MeanDistribution
from skldl.classification import best_threshold, label_probabilities
from skldl.distributions import PropagationEnhancer, from_similarity
from skldl.exceptions import DataError, MissingLabelError, SampleWeightError, SingleLabelError

X, y = load_iris(return_X_y=True)
X_SETS, SETS = make_multilabel_classification(n_samples=150, n_features=8, n_classes=4, random_state=0)

STRICT_PROBABILITIES = "probabilities may be 0 or 1; the check wants them strictly between"
WEIGHT_IS_NOT_A_COPY = "for nearest neighbours a row of weight two is not the row twice"


# classes that can be separated have the optimum of SA-BFGS without penalty at infinity
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("classifier", "expected"),
    [
        (LDLClassifier(SABFGS()), {"check_classifiers_multilabel_output_format_predict_proba": STRICT_PROBABILITIES}),
        (
            LDLClassifier(AAKNN()),
            {
                "check_classifiers_multilabel_output_format_predict_proba": STRICT_PROBABILITIES,
                "check_sample_weight_equivalence_on_dense_data": WEIGHT_IS_NOT_A_COPY,
                "check_sample_weight_equivalence_on_sparse_data": WEIGHT_IS_NOT_A_COPY,
            },
        ),
    ],
)
def test_estimator_checks_of_scikit_learn(classifier, expected):
    results = check_estimator(classifier, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert set(failed) == set(expected), failed


def test_single_labels_by_maximum_entropy_are_logistic_regression():
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    ours = LDLClassifier(SABFGS(alpha=0.01, fit_intercept=True, tol=1e-12)).fit(X, names)
    theirs = LogisticRegression(C=1 / (0.01 * len(X)), tol=1e-10, max_iter=5000).fit(X, names)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert list(ours.classes_) == list(theirs.classes_)
    assert (ours.predict(X) == theirs.predict(X)).all()
    np.testing.assert_array_equal(ours.predict_distribution(X), ours.predict_proba(X))


def test_sets_by_nearest_neighbours_are_the_share_of_neighbours():
    new = X_SETS + np.random.default_rng(0).normal(scale=0.1, size=X_SETS.shape)  # no ties
    ours = LDLClassifier(AAKNN(7), threshold=0.5).fit(X_SETS, SETS)
    theirs = KNeighborsClassifier(7).fit(X_SETS, SETS)
    expected = np.column_stack([share[:, 1] for share in theirs.predict_proba(new)])
    np.testing.assert_allclose(ours.predict_proba(new), expected, atol=1e-12)
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    D = ours.predict_distribution(new)
    np.testing.assert_allclose(D.sum(axis=1), 1)
    some = expected.sum(axis=1) > 0
    np.testing.assert_allclose(D[some], expected[some] / expected[some].sum(axis=1, keepdims=True))
    np.testing.assert_allclose(D[~some], 0.25)


def test_the_mean_gives_the_frequency_of_each_label_with_and_without_weights():
    model = LDLClassifier(MeanDistribution()).fit(X_SETS, SETS)
    np.testing.assert_allclose(model.predict_proba(X_SETS[:1])[0], SETS.mean(axis=0))
    weight = np.arange(1.0, 151.0)
    model = LDLClassifier(MeanDistribution()).fit(X_SETS, SETS, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X_SETS[:1])[0], np.average(SETS, axis=0, weights=weight))


def test_learnt_threshold_makes_fewer_mistakes_than_one_half():
    train, test = np.arange(150) % 3 > 0, np.arange(150) % 3 == 0
    learner = make_pipeline(StandardScaler(), LDLClassifier(SABFGS(alpha=1e-2, fit_intercept=True)))
    model = learner.fit(X_SETS[train], SETS[train])
    assert 0 < model[-1].threshold_ < 1
    assert f1_score(SETS[test], model.predict(X_SETS[test]), average="micro") > 0.6
    fixed = make_pipeline(StandardScaler(), LDLClassifier(SABFGS(alpha=1e-2, fit_intercept=True), threshold=0.5))
    fixed.fit(X_SETS[train], SETS[train])
    assert hamming_loss(SETS[train], model.predict(X_SETS[train])) <= hamming_loss(
        SETS[train], fixed.predict(X_SETS[train])
    )


def test_best_threshold_is_the_best_of_all_cuts():
    generator = np.random.default_rng(0)
    for _ in range(20):
        P = generator.choice([0.0, 0.1, 0.25, 0.4, 0.7, 1.0], size=(30, 3))
        members = generator.random((30, 3)) < P
        weight = generator.integers(1, 4, 30).astype(float)
        cuts = np.linspace(0.001, 0.999, 999)
        cost = [(((cut < P) != members) * weight[:, None]).sum() for cut in cuts]
        found = best_threshold(P, members, weight)
        assert (((found < P) != members) * weight[:, None]).sum() == min(cost)
    assert best_threshold(np.zeros((2, 2)), np.zeros((2, 2), dtype=bool), np.ones(2)) == 0.5
    assert best_threshold(np.array([[0.0, 1.0]]), np.array([[False, True]]), np.ones(1)) == 0.5


def test_probabilities_without_a_virtual_label_are_certain():
    P = label_probabilities(np.array([[0.5, 0.5, 0.0], [0.2, 0.0, 0.8], [0.6, 0.1, 0.3]]))
    np.testing.assert_allclose(P, [[1, 1], [0.25, 0], [1, 1 / 3]])


@pytest.mark.parametrize("target", ["array", "sparse", "pandas"])
def test_forms_of_an_indicator_matrix(target):
    Y = {"array": SETS, "sparse": sparse.csr_matrix(SETS), "pandas": pd.DataFrame(SETS, columns=list("abcd"))}[target]
    model = LDLClassifier(AAKNN(3)).fit(X_SETS, Y)
    assert list(model.classes_) == (list("abcd") if target == "pandas" else [0, 1, 2, 3])
    expected = LDLClassifier(AAKNN(3)).fit(X_SETS, SETS).predict(X_SETS)
    np.testing.assert_array_equal(model.predict(X_SETS), expected)


def test_enhancers():
    plain = LDLClassifier(AAKNN(5)).fit(X_SETS, SETS)
    smooth = LDLClassifier(AAKNN(5), enhance=PropagationEnhancer()).fit(X_SETS, SETS)
    assert not np.allclose(plain.predict_proba(X_SETS), smooth.predict_proba(X_SETS))
    assert f1_score(SETS, smooth.predict(X_SETS), average="micro") > 0.7
    confusion = np.array([[1.0, 0, 0], [0, 0.9, 0.1], [0, 0.1, 0.9]])

    def along_similarity(X, L):
        return from_similarity(L.astype(int), confusion)

    model = LDLClassifier(AAKNN(1), enhance=along_similarity).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[[0, 60]]), confusion[[0, 1]])
    with pytest.raises(TypeError, match="enhance='smooth'"):
        LDLClassifier(AAKNN(), enhance="smooth").fit(X, y)
    with pytest.raises(DataError, match=r"shape \(150, 2\)"):
        LDLClassifier(AAKNN(), enhance=lambda X, L: np.full((150, 2), 0.5)).fit(X, y)
    with pytest.raises(DataError, match="the result of enhance"):
        LDLClassifier(AAKNN(), enhance=lambda X, L: 2 * L).fit(X, y)


def test_model_selection_and_names_of_features():
    frame = pd.DataFrame(X, columns=list("pqrs"))
    search = GridSearchCV(LDLClassifier(AAKNN()), {"estimator__n_neighbors": [1, 5]}, cv=3).fit(frame, y)
    assert search.best_score_ > 0.9
    assert list(search.best_estimator_.feature_names_in_) == list("pqrs")
    scores = cross_val_score(LDLClassifier(AAKNN(), cv=KFold(3)), X_SETS, SETS, cv=3, scoring="f1_micro")
    assert scores.min() > 0.4


class _Unweighted(BaseEstimator):
    def fit(self, X, y):
        self.mean_ = y.mean(axis=0)
        return self

    def predict(self, X):
        return np.tile(self.mean_, (X.shape[0], 1))


def test_a_learner_without_weights_serves_until_weights_are_given():
    model = LDLClassifier(_Unweighted()).fit(X_SETS, SETS)
    assert model.predict(X_SETS).shape == SETS.shape
    with pytest.raises(SampleWeightError, match="_Unweighted takes no sample_weight"):
        LDLClassifier(_Unweighted()).fit(X_SETS, SETS, sample_weight=np.ones(150))


@pytest.mark.parametrize(
    ("options", "target", "error", "words"),
    [
        ({"threshold": 1.5}, SETS, ValueError, "threshold=1.5"),
        ({"threshold": "best"}, SETS, ValueError, "threshold='best'"),
        ({"cv": 1}, SETS, ValueError, "cv=1"),
        ({"cv": 200}, SETS, DataError, "too few .* with cv=200"),
        ({}, None, DataError, "None"),
        ({}, np.ones(150, dtype=int), SingleLabelError, "only one class"),
        ({}, SETS[:-1], DataError, "149"),
        ({}, np.arange(150) / 7, ValueError, "Unknown label type"),
    ],
)
def test_bad_input(options, target, error, words):
    with pytest.raises(error, match=words):
        LDLClassifier(AAKNN(), **options).fit(X_SETS, target)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1, np.inf, 0], "y holds inf in row 2"),
        ([0, np.nan, 1, 0], "y holds nan in row 1"),
        (["a", "b", "a", None], "y holds None in row 3"),
        ([[0, 1], [1, np.inf], [0, 1], [1, 1]], "y holds inf in row 1"),
    ],
)
def test_missing_and_infinite_labels_are_rejected_without_a_warning(labels, words):
    with pytest.raises(MissingLabelError, match=words):
        LDLClassifier(MeanDistribution()).fit(X[:4], labels)
