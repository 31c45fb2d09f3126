"""BaseLDL, the mean baseline, and the public checks that other people's estimators run through."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skldl import (
    AAKNN,
    AAKNNCV,
    PTSVM,
    SABFGS,
    SABFGSCV,
    SAIIS,
    BaseLDL,
    KernelRidgeLDL,
    MeanDistribution,
    PTBayes,
    RandomForestLDL,
)
from skldl.base import GroupedLDL
from skldl.exceptions import DataError, LengthMismatchError, UnknownNameError
from skldl.metrics import kullback_leibler
from skldl.names import CAPABILITIES, algorithm_titles
from skldl.testing import CHECKS, check_estimator, make_distributions

X, D = make_distributions()


def test_mean_distribution_passes_every_check():
    report = check_estimator(MeanDistribution())
    assert set(CHECKS) <= set(report)
    assert all(outcome != "passed" or name.startswith("check_") for name, outcome in report.items())


def test_mean_is_the_best_constant_prediction():
    weight = np.random.default_rng(0).uniform(0.1, 3, size=len(X))
    model = MeanDistribution().fit(X, D, sample_weight=weight)
    best = -model.score(X, D, sample_weight=weight)
    for other in np.random.default_rng(1).dirichlet(np.ones(3), size=50):
        assert kullback_leibler(D, np.tile(other, (len(D), 1)), sample_weight=weight) >= best
    np.testing.assert_allclose(model.distribution_, (weight[:, None] * D).sum(axis=0) / weight.sum())


def test_y_is_required():
    with pytest.raises(DataError, match="requires y to be passed"):
        MeanDistribution().fit(X, None)


class Tempered(BaseLDL):
    """An algorithm from outside the package: the mean distribution to a power."""

    def __init__(self, power=1.0):
        self.power = power

    def _fit(self, X, D, sample_weight):
        self.distribution_ = np.average(D, axis=0, weights=sample_weight) ** self.power

    def _predict(self, X):
        return np.tile(self.distribution_, (X.shape[0], 1))


def test_predict_path_equals_one_fit_per_value():
    values = [0.5, 2.0, 1.0]
    model = Tempered(power=9.0)
    path = list(model.predict_path(X, D, X[:4], param="power", values=values))
    for value, P in zip(values, path, strict=True):
        np.testing.assert_array_equal(P, clone(model).set_params(power=value).fit(X, D).predict(X[:4]))
    assert model.power == 9.0
    assert not hasattr(model, "distribution_")
    with pytest.raises(UnknownNameError, match="no hyper-parameter 'strength'"):
        next(model.predict_path(X, D, X, param="strength", values=[1]))


def test_an_estimator_from_outside_can_be_checked():
    assert check_estimator(Tempered(power=1.0))["check_label_permutation"] == "passed"


class Unnormalised(Tempered):
    def predict(self, X):
        return 2 * super().predict(X)


class Careless(Tempered):
    """Takes no notice of weights."""

    def _fit(self, X, D, sample_weight):
        super()._fit(X, D, None)


class Nonsense(Tempered):
    """Mass for a label that never has any, another model at each fit, and a broken path."""

    def _predict(self, X):
        return np.full((X.shape[0], self.n_labels_), 1 / self.n_labels_)

    def _predict_path(self, X, D, sample_weight, X_new, param, values):
        yield np.full((X_new.shape[0], self.n_labels_), 1 / self.n_labels_)


def test_the_checks_can_fail():
    with pytest.raises(AssertionError, match="check_rows_sum_to_one: AssertionError: a predicted row misses"):
        check_estimator(Unnormalised())
    with pytest.raises(AssertionError, match="check_weight_two_is_row_twice"):
        check_estimator(Careless())
    with pytest.raises(AssertionError, match=r"(?s)check_zero_mass_labels.*check_predict_path"):
        check_estimator(Nonsense())


class SameForAll(Tempered):
    """A path that ignores its values."""

    def _predict_path(self, X, D, sample_weight, X_new, param, values):
        self._fit(X, D, sample_weight)
        for _ in values:
            yield self._predict(X_new)


class OutOfOrder(Tempered):
    """A path that gives the right predictions in another order."""

    def _predict_path(self, X, D, sample_weight, X_new, param, values):
        yield from super()._predict_path(X, D, sample_weight, X_new, param, sorted(values))


@pytest.mark.parametrize("wrong", [SameForAll, OutOfOrder])
def test_a_path_that_ignores_its_values_fails(wrong):
    CHECKS["check_predict_path"](Tempered())
    with pytest.raises(AssertionError, match="predict_path over power"):
        CHECKS["check_predict_path"](wrong())


class Lenient(MeanDistribution):
    """Never fails, where it should."""

    def fit(self, X, y, sample_weight=None):
        try:
            return super().fit(X, y, sample_weight)
        except DataError:
            return self


def test_an_estimator_that_swallows_bad_input_fails():
    with pytest.raises(AssertionError, match=r"check_bad_input.*should have raised DataError"):
        check_estimator(Lenient())


def test_expected_failures_are_strict():
    reason = "takes no notice of weights"
    report = check_estimator(
        Careless(),
        expected_failed_checks={
            "check_weight_two_is_row_twice": reason,
            "check_sample_weight_equivalence_on_dense_data": reason,
            "check_sample_weight_equivalence_on_sparse_data": reason,
        },
    )
    assert report["check_weight_two_is_row_twice"] == f"expected to fail: {reason}"
    with pytest.raises(AssertionError, match="check_float32 passes but is expected to fail"):
        check_estimator(MeanDistribution(), expected_failed_checks={"check_float32": "no reason"})
    with pytest.raises(AssertionError, match="check_flying is expected to fail but never ran"):
        check_estimator(MeanDistribution(), expected_failed_checks={"check_flying": "no reason"})
    with pytest.raises(ValueError, match="no names of checks"):
        check_estimator(MeanDistribution(), expected_failed_checks={"flying": "no reason"})


def test_checks_for_estimators_without_sparse_features():
    class Dense(MeanDistribution):
        _accept_sparse = False

    CHECKS["check_sparse"](Dense())


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.nan, 1.0], [-0.5, 1.5], [np.inf, 1.0]])
def test_a_prediction_that_is_no_distribution_is_an_error(row):
    class Broken(MeanDistribution):
        def _predict(self, X):
            return np.vstack([[0.5, 0.5], row])

    model = Broken().fit([[0.0], [1.0]], [[0.5, 0.5], [1.0, 0.0]])
    with pytest.raises(ValueError, match=r"Broken predicted .* for row 1 \(1 such rows\)"):
        model.predict([[0.0], [1.0]])


OWN_ALGORITHMS = [
    AAKNN(3),
    MeanDistribution(),
    PTBayes(),
    PTBayes("full"),
    PTSVM(C=0.1),
    SABFGS(alpha=0.1),
    SAIIS(max_iter=5, tol=1.0),
]


@pytest.mark.parametrize("estimator", OWN_ALGORITHMS, ids=str)
@pytest.mark.parametrize("factor", [7.0, 1e-300, 1e-308, 1e300, 5e307])
def test_all_weights_times_a_constant_change_nothing(estimator, factor):
    X, D = make_distributions()
    weight = np.linspace(1, 3, len(D))
    expected = clone(estimator).fit(X, D, weight).predict(X)
    found = clone(estimator).fit(X, D, factor * weight).predict(X)
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("estimator", OWN_ALGORITHMS, ids=str)
def test_one_huge_weight_is_that_row_alone(estimator):
    X, D = make_distributions()
    weight = np.ones(len(D))
    weight[:5] = 1e90
    found = clone(estimator).fit(X, D, weight).predict(X[:1])
    np.testing.assert_allclose(found.sum(axis=1), 1)
    if not isinstance(estimator, AAKNN | PTSVM):  # these look at the other rows where they are near, or in other folds
        np.testing.assert_allclose(found, clone(estimator).fit(X[:5], D[:5]).predict(X[:1]), atol=1e-6)


def test_ordinary_weights_stay_as_they_are():
    """A penalty of a wrapped learner is measured against the sum of the weights."""
    X, D = make_distributions()
    seen = []

    class Listener(MeanDistribution):
        def _fit(self, X, D, sample_weight):
            seen.append(sample_weight)
            super()._fit(X, D, sample_weight)

    weight = np.linspace(0, 40, len(D))
    Listener().fit(X, D, weight)
    np.testing.assert_array_equal(seen[0], weight[1:])


@pytest.mark.parametrize("estimator", [SABFGS(), SABFGSCV(cv=2), PTSVM(), AAKNN(2)], ids=str)
def test_a_refit_that_fails_leaves_the_model_as_it_was(estimator):
    X, D = make_distributions()
    model = clone(estimator).fit(X, D)
    expected, state = model.predict(X), set(vars(model))
    bad = {"SABFGS": {"alpha": -1.0}, "SABFGSCV": {"alphas": [-1]}, "PTSVM": {"C": -1.0}, "AAKNN": {"n_neighbors": 500}}
    model.set_params(**bad[type(model).__name__])
    with pytest.raises(ValueError, match=r"-1|500"):
        model.fit(X[:, :2], D[:, :2] / D[:, :2].sum(axis=1, keepdims=True))
    model.set_params(**estimator.get_params())
    np.testing.assert_array_equal(model.predict(X), expected)
    assert set(vars(model)) == state
    with pytest.raises(DataError):
        model.fit(X[:, :2], D + 1)
    np.testing.assert_array_equal(model.predict(X), expected)
    fresh = clone(estimator)
    with pytest.raises(DataError):
        fresh.fit(X, D + 1)
    assert not [name for name in vars(fresh) if name.endswith("_")]


def test_score_never_exceeds_zero():
    X, D = make_distributions()
    model = MeanDistribution().fit(X, D)
    constant = np.tile(model.predict(X[:1]), (len(D), 1))
    assert model.score(X, constant) <= 0
    assert model.score(X, 0.9991 * constant) <= 0
    assert model.score(X, 0.9991 * constant) == pytest.approx(0, abs=1e-12)


class Listener(GroupedLDL):
    """Keeps the groups that reach the algorithm."""

    def _fit_grouped(self, X, D, sample_weight, groups):
        self.seen_ = groups

    def _predict(self, X):
        return np.full((X.shape[0], self.n_labels_), 1 / self.n_labels_)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (None, [1, 0, 1, 2, 0]),
        (2.0, [1, 0, 1, 2, 0]),
        ([1, 0, 1, 2, 0], [0, 0, 1]),
        ([1, 1e-50, 1, 1e40, 1], [1, 0, 1, 2, 0]),
    ],
)
@pytest.mark.parametrize("groups", ["babca", [7, 3, 7, 9, 3], np.array([2.5, 1, 2.5, 3, 1], dtype=object)], ids=str)
def test_groups_are_numbered_without_rows_of_no_weight(groups, weight, expected):
    model = Listener().fit(X[:5], D[:5], weight, list(groups))
    np.testing.assert_array_equal(model.seen_, expected)
    assert Listener().fit(X, D).seen_ is None


@pytest.mark.parametrize(
    ("groups", "weight", "kind", "message"),
    [
        ([1, 2], None, LengthMismatchError, r"shape \(2,\), but there are 5 rows"),
        ([1, 2, 1, 2], [0, 1, 1, 1, 1], LengthMismatchError, "but there are 5 rows"),  # as many as rows with weight
        ([[1, 2]] * 5, None, LengthMismatchError, "groups has shape"),
        ([1] * 5, None, DataError, "one group"),
        ([1, 2, 2, 2, 2], [0, 1, 1, 1, 1], DataError, "one group"),
        ([1, 2, None, 2, 2], None, DataError, "missing"),
        ([1, 2, np.nan, 2, 2], None, DataError, "missing"),
        (np.array(["a", "b", np.nan, "b", "a"], dtype=object), None, DataError, "missing values, the first in row 2"),
        (pd.Series([1, 2, pd.NA, 2, 1], dtype="Int64"), None, DataError, "missing values, the first in row 2"),
        (pd.Series(pd.to_datetime(["2020-01-01", None, "2020-01-02", None, None])), None, DataError, r"3 in all"),
        (
            pd.Series([pd.Timestamp(0), "b", pd.NaT, "b", "a"], dtype=object),
            None,
            DataError,
            "missing values, the first in row 2",
        ),
        (np.ma.array([1, 2, 1, 2, 2], mask=[0, 0, 0, 1, 0]), None, DataError, "missing values, the first in row 3"),
    ],
)
@pytest.mark.parametrize("kind_of", [Listener, SABFGSCV, KernelRidgeLDL, AAKNNCV, RandomForestLDL])
def test_groups_that_cannot_be_held_out_are_rejected(kind_of, groups, weight, kind, message):
    estimator = kind_of()
    with pytest.raises(kind, match=message):
        estimator.fit(X[:5], D[:5], weight, groups=groups)
    assert not [name for name in vars(estimator) if name.endswith("_")]


def test_what_a_class_can_do_follows_from_its_methods():
    """A subclass that predicts in another way is not exported as the class above it, and needs no list of its own."""

    class Rounded(SABFGS):
        def _predict(self, X):
            return super()._predict(X).round(2)

    class Renamed(SABFGS):
        pass

    assert SABFGS._linear_scores
    assert SABFGS._onnx == Renamed._onnx == "linear"
    assert not Rounded._linear_scores
    assert not Rounded._onnx
    assert Rounded._chunks
    assert not AAKNN._chunks
    assert {name for name in CAPABILITIES if "Mean" in algorithm_titles(name)} == {
        *("sparse", "missing degrees", "chunks", "device", "ONNX")
    }
