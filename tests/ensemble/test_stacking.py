"""`StackingLDL`: held-out predictions are held out, weights find the better member, groups stay together."""

import numpy as np
import pytest
from sklearn.base import clone

from skldl import AAKNN, SABFGS, BaseLDL, MeanDistribution
from skldl.ensemble import StackingLDL
from skldl.exceptions import DataError, ParameterError
from skldl.metrics import kullback_leibler
from skldl.selection import assign_folds, pairs_of
from skldl.testing import check_estimator, make_distributions

MEMBERS = [("linear", SABFGS(alpha=1e-3)), ("mean", MeanDistribution())]
NOT_COPIES = "the folds and the number of rows in the penalty differ between weights and copies"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": NOT_COPIES,
    "check_sample_weight_equivalence_on_sparse_data": NOT_COPIES,
    "check_weight_two_is_row_twice": NOT_COPIES,
}


@pytest.fixture(scope="module")
def rows():
    return make_distributions(n_samples=120)


class Memory(BaseLDL):
    """Predicts exactly what it has seen, and the uniform distribution for everything else."""

    def _fit(self, X, D, sample_weight):
        self.seen_ = {tuple(row): degrees for row, degrees in zip(X, D, strict=True)}

    def _predict(self, X):
        uniform = np.full(self.n_labels_, 1 / self.n_labels_)
        return np.array([self.seen_.get(tuple(row), uniform) for row in X])


def test_common_checks():
    check_estimator(StackingLDL(MEMBERS, random_state=0), expected_failed_checks=EXPECTED)


def test_a_member_that_only_remembers_gets_no_credit_for_rows_that_it_has_seen(rows):
    X, D = rows
    model = StackingLDL([("linear", SABFGS(alpha=1e-3)), ("memory", Memory())], random_state=0).fit(X, D)
    assert model.member_scores_[1] > model.member_scores_[0]
    assert model.member_weights_[0] > 0.5
    assert -model.score(X, D) > 0.2 * model.member_scores_[0]  # the memory does not leak into the pool


def test_held_out_predictions_are_those_of_models_without_the_row(rows):
    X, D = rows
    model = StackingLDL([("only", AAKNN(3))], pool="linear", random_state=0).fit(X, D)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    expected = np.empty_like(D)
    for train, test in pairs_of(assign_folds(len(X), 5, random_state=seed)):
        expected[test] = AAKNN(3).fit(X[train], D[train]).predict(X[test])
    share = model.mean_shares_[0]
    others = (D.sum(axis=0) - D) / (len(D) - 1)  # the mean without the row
    np.testing.assert_allclose(model.oof_predictions_, (1 - share) * expected + share * others, atol=1e-12)
    assert model.pool_score_ == pytest.approx(kullback_leibler(D, model.oof_predictions_), rel=1e-9)


class KeepsItsOwn(MeanDistribution):
    """Keeps held-out predictions itself."""

    def _fit(self, X, D, sample_weight):
        super()._fit(X, D, sample_weight)
        self.oof_predictions_ = (D.sum(axis=0) - D) / (len(D) - 1)
        self.n_fits_ = 1


def test_held_out_predictions_that_a_member_keeps_are_used(rows):
    X, D = rows
    model = StackingLDL([("own", KeepsItsOwn())], pool="linear", random_state=0).fit(X, D)
    kept = model.members_[0].oof_predictions_
    np.testing.assert_allclose(model.oof_predictions_, kept, atol=1e-12)


def test_groups_are_held_out_together(rows):
    X, D = rows
    people = np.repeat(np.arange(24), 5)
    copies, degrees = (
        X[people],
        D[people],
    )  # five equal rows of each person: neighbours cheat unless people are held out
    by_rows = StackingLDL([("near", AAKNN(1)), *MEMBERS], random_state=0).fit(copies, degrees)
    by_groups = StackingLDL([("near", AAKNN(1)), *MEMBERS], random_state=0).fit(copies, degrees, groups=people)
    assert by_rows.member_scores_[0] < 1e-3
    assert by_groups.member_scores_[0] > 10 * by_rows.member_scores_[0]
    with_zero = np.where(np.arange(len(people)) < 5, 0.0, 1.0)
    StackingLDL(MEMBERS, random_state=0).fit(copies, degrees, sample_weight=with_zero, groups=people)


def test_predictions_are_never_zero_where_neighbours_saw_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    D = np.eye(3)[(X[:, 0] > 0).astype(int) + (X[:, 1] > 1)]
    model = StackingLDL([("near", AAKNN(3)), ("mean", MeanDistribution())], random_state=0).fit(X, D)
    assert model.predict(X).min() > 0
    assert model.mean_shares_[0] > 0


def test_parameters_of_members_can_be_set(rows):
    model = StackingLDL(MEMBERS, random_state=0)
    model.set_params(linear__alpha=0.5, mean=AAKNN(2))
    assert model.get_params()["linear__alpha"] == 0.5
    assert isinstance(dict(model.estimators)["mean"], AAKNN)
    assert clone(model).get_params()["linear__alpha"] == 0.5
    model.fit(*rows)
    assert model.member_names_ == ["linear", "mean"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimators": []}, "pairs"),
        ({"estimators": [("a", SABFGS()), ("a", SABFGS())]}, "unique names"),
        ({"estimators": "SABFGS"}, "pairs"),
        ({"pool": "geometric"}, "'log-linear' or 'linear'"),
        ({"n_folds": 1}, "at least 2"),
        ({"penalty": -1.0}, "at least 0"),
    ],
)
def test_bad_parameters(rows, options, message):
    with pytest.raises(ParameterError, match=message):
        StackingLDL(**{"estimators": MEMBERS, **options}).fit(*rows)


def test_members_must_be_label_distribution_learners(rows):
    from sklearn.linear_model import Ridge

    with pytest.raises(ParameterError, match=r"'ridge'.*AARegressor"):
        StackingLDL([("ridge", Ridge())]).fit(*rows)


@pytest.mark.parametrize("groups", [[0] * 120, [[0, 1]] * 60, [0, 1] * 10, [None] * 120])
def test_bad_groups(rows, groups):
    with pytest.raises(DataError, match="group"):
        StackingLDL(MEMBERS).fit(*rows, groups=groups)


@pytest.mark.parametrize("name", ["pool", "n_folds", "estimators"])
def test_a_member_may_not_have_the_name_of_a_parameter(rows, name):
    with pytest.raises(ParameterError, match=f"named '{name}', which is also a parameter of StackingLDL"):
        StackingLDL([(name, MeanDistribution())]).fit(*rows)
