"""`RandomForestLDL`: out-of-bag predictions by hand, groups, calibration, missing values, model files."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

import skldl
from skldl.exceptions import LengthMismatchError, ModelFileError, NonFiniteError
from skldl.metrics import kullback_leibler
from skldl.testing import CHECKS, check_estimator, make_distributions
from skldl.trees import RandomForestLDL
from skldl.trees._forest import choose_calibration  # the spread of the votes, one of its arguments, is not kept

X, D = make_distributions(150, 5, 4)
X_NEW = make_distributions(40, 5, 4, random_state=1)[0]
COPIES = "two copies of a row are drawn independently"
FIXED = {"kind": "extra", "max_features": 1.0, "min_samples_leaf": 3}
PLAIN = {"sharpness": 1.0, "mean_share": 0.0}


def test_passes_the_common_checks():
    expected = dict.fromkeys(
        (
            "check_weight_two_is_row_twice",
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ),
        COPIES,
    )
    check_estimator(RandomForestLDL(6, **FIXED), expected_failed_checks=expected)


@pytest.mark.parametrize("check", ["check_label_permutation", "check_zero_mass_labels", "check_float32"])
@pytest.mark.parametrize("kind", ["auto", "both"])
def test_passes_our_checks_with_everything_chosen(check, kind):
    CHECKS[check](RandomForestLDL(10, kind=kind, n_trial_estimators=3))


@pytest.mark.parametrize("kind", ["extra", "random"])
@pytest.mark.parametrize("criterion", ["squared_error", "hellinger"])
@pytest.mark.parametrize(("weighted", "group_size"), [(False, 1), (True, 1), (False, 10), (True, 10)])
def test_predictions_in_and_out_of_bag_by_hand(kind, criterion, weighted, group_size):
    """One scikit-learn tree after another, with the bootstrap of each drawn from its own seed."""
    groups = np.arange(150) // group_size
    n_drawn = round(75 / group_size)  # whole groups are drawn
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(D)) if weighted else None
    forest = RandomForestLDL(
        7,
        kind=kind,
        max_features=0.5,
        min_samples_leaf=2,
        criterion=criterion,
        max_samples=0.5,
        random_state=3,
        **PLAIN,
    ).fit(X, D, sample_weight=weight, groups=None if group_size == 1 else [f"person {g:02}" for g in groups])
    unit = np.ones(len(D)) if weight is None else weight / weight.mean()
    order = np.argsort(D.sum(axis=0))
    targets = (np.sqrt(D) if criterion == "hellinger" else D)[:, order]
    total, votes, seen_by = np.zeros((len(X_NEW), 4)), np.zeros(D.shape), np.zeros(len(D))
    for seed in np.random.RandomState(3).randint(np.iinfo(np.int32).max, size=7):
        random = np.random.RandomState(seed)
        drawn = random.randint(150 // group_size, size=n_drawn)
        counts = np.array([(drawn == g).sum() for g in groups]) * unit
        grow = ExtraTreeRegressor if kind == "extra" else DecisionTreeRegressor
        tree = grow(max_features=0.5, min_samples_leaf=2, random_state=random)
        tree.fit(X, np.round(targets, 10), sample_weight=counts)
        leaf, new_leaf = tree.apply(X), tree.apply(X_NEW)
        mean = {k: np.average(D[leaf == k], axis=0, weights=counts[leaf == k]) for k in set(leaf)}
        total += np.array([mean[k] for k in new_leaf])
        for row in np.flatnonzero(counts == 0):
            votes[row] += mean[leaf[row]]
            seen_by[row] += 1
    np.testing.assert_allclose(forest.predict(X_NEW), total / 7, atol=1e-12)
    np.testing.assert_array_equal(forest.n_votes_, seen_by)
    out = seen_by > 0
    np.testing.assert_allclose(forest.oob_predictions_[out], votes[out] / seen_by[out, None], atol=1e-12)
    others = np.array([np.average(D[groups != g], axis=0, weights=unit[groups != g]) for g in groups])
    np.testing.assert_allclose(forest.oob_predictions_[~out], others[~out], atol=1e-12)


def test_squared_error_leaves_are_those_of_scikit_learn_itself():
    """Without randomness and bootstrap noise one tree on all rows is scikit-learn's own multi-output tree."""
    groups = np.arange(len(D))
    forest = RandomForestLDL(
        1, kind="random", max_features=None, min_samples_leaf=5, criterion="squared_error", random_state=0, **PLAIN
    ).fit(X, D, groups=groups)
    random = np.random.RandomState(np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=1)[0])
    counts = np.bincount(random.randint(len(D), size=len(D)), minlength=len(D))
    tree = DecisionTreeRegressor(min_samples_leaf=5, random_state=0).fit(X, D, sample_weight=counts)
    np.testing.assert_allclose(forest.predict(X_NEW), tree.predict(X_NEW), atol=1e-9)


def test_out_of_bag_with_groups_is_honest_where_rows_flatter():
    """Rows of one person are copies, from which nothing can be learned about other persons."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 6)
    features, distributions = rng.normal(size=(20, 4))[groups], rng.dirichlet(np.ones(3), 20)[groups]
    by_rows = RandomForestLDL(60, random_state=0, **FIXED).fit(features, distributions)
    by_groups = RandomForestLDL(60, random_state=0, **FIXED).fit(features, distributions, groups=groups)
    of_the_mean = skldl.MeanDistribution().fit(features, distributions).score(features, distributions)
    assert by_rows.oob_score_ > 0.3 * of_the_mean
    assert by_groups.oob_score_ < 0.8 * of_the_mean


def test_a_group_in_every_bag_gets_the_mean_of_the_others():
    model = RandomForestLDL(1, random_state=0, **FIXED, **PLAIN).fit(X, D, groups=np.arange(150) % 2)
    never = model.n_votes_ == 0
    assert never.any()
    for g in (0, 1):
        rows = never & (np.arange(150) % 2 == g)
        np.testing.assert_allclose(
            model.oob_predictions_[rows], np.tile(D[1 - g :: 2].mean(axis=0), (rows.sum(), 1)), atol=1e-12
        )


def test_rows_without_weight_are_predicted_by_the_whole_forest():
    weight = (np.arange(150) % 3 > 0).astype(float)
    model = RandomForestLDL(15, random_state=0, **FIXED).fit(X, D, sample_weight=weight)
    fewer = RandomForestLDL(15, random_state=0, **FIXED).fit(X[weight > 0], D[weight > 0])
    np.testing.assert_allclose(model.oob_predictions_[weight > 0], fewer.oob_predictions_, atol=1e-12)
    np.testing.assert_allclose(model.oob_predictions_[weight == 0], model.predict(X[weight == 0]), atol=1e-12)
    assert (model.n_votes_[weight == 0] == 15).all()
    groups = np.arange(150) // 5
    grouped = RandomForestLDL(15, random_state=0, **FIXED).fit(X, D, sample_weight=weight, groups=groups)
    assert len(grouped.n_votes_) == 150


def test_settings_are_the_best_of_the_trials():
    model = RandomForestLDL(20, n_trial_estimators=8, random_state=0).fit(X, D)
    assert len(model.trials_) == 10
    assert {trial[:2] for trial in model.trials_} == {
        ("extra", 0.33), ("extra", 1.0), ("random", "sqrt"), ("random", 0.33)
    }  # fmt: skip
    best = min(model.trials_, key=lambda trial: trial[3])
    assert best[:2] == (model.kind_, model.max_features_)
    of_the_best = [trial for trial in model.trials_ if trial[:2] == best[:2]]
    assert {trial[2] for trial in of_the_best} == {1, 3, 8, 20}
    assert min(of_the_best, key=lambda trial: trial[3])[2] == model.min_samples_leaf_
    assert model.oob_score_ == pytest.approx(-kullback_leibler(D, model.oob_predictions_), abs=1e-12)
    assert not RandomForestLDL(3, **FIXED).fit(X, D).trials_


def test_both_kinds_are_half_of_each():
    settings = {"max_features": 1.0, "min_samples_leaf": 3, "random_state": 0, **PLAIN}

    def votes(kind, n_trees):
        return n_trees * RandomForestLDL(n_trees, kind=kind, **settings).fit(X, D).predict(X_NEW)

    expected = votes("extra", 10) + votes("random", 20) - votes("random", 10)  # each tree has a seed of its own
    np.testing.assert_allclose(votes("both", 20), expected, atol=1e-12)
    model = RandomForestLDL(20, kind="both", n_trial_estimators=8, random_state=0).fit(X, D)
    assert model.kind_ == ("extra", "random")
    for kind, max_features, size in zip(model.kind_, model.max_features_, model.min_samples_leaf_, strict=True):
        of_kind = [trial for trial in model.trials_ if trial[0] == kind]
        assert min(of_kind, key=lambda trial: trial[3])[1:3] == (max_features, size)
    assert model.oob_score_ == pytest.approx(-kullback_leibler(D, model.oob_predictions_), abs=1e-12)
    assert len(RandomForestLDL(1, kind="both", **settings).fit(X, D).trees_) == 1


def test_few_trees_estimate_what_many_would_reach():
    """The divergence recorded for a trial is closer to that of the whole forest than the trees' own."""
    settings = {"kind": "extra", "max_features": 1.0, **PLAIN}
    reached = -RandomForestLDL(300, **settings, min_samples_leaf=1, random_state=9).fit(X, D).oob_score_
    few, promised = [], []
    for seed in range(4):
        few.append(-RandomForestLDL(30, **settings, min_samples_leaf=1, random_state=seed).fit(X, D).oob_score_)
        tried = RandomForestLDL(300, **settings, n_trial_estimators=30, random_state=seed).fit(X, D)
        promised += [divergence for *_, size, divergence in tried.trials_ if size == 1]
    assert len(promised) == 4
    assert np.mean(few) > reached
    assert abs(np.mean(promised) - reached) < 0.75 * (np.mean(few) - reached)


@pytest.mark.parametrize(("sharpness", "mean_share"), [(1.0, 0.1), (0.5, 0.4), (1.5, 0.0)])
def test_predictions_are_sharpened_and_mixed_with_the_mean(sharpness, mean_share):
    plain = RandomForestLDL(10, random_state=0, **FIXED, **PLAIN).fit(X, D)
    model = RandomForestLDL(10, random_state=0, **FIXED, sharpness=sharpness, mean_share=mean_share).fit(X, D)
    for P, found in (
        (plain.predict(X_NEW), model.predict(X_NEW)),
        (plain.oob_predictions_, model.oob_predictions_),
    ):
        sharp = P**sharpness / (P**sharpness).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, (1 - mean_share) * sharp + mean_share * D.mean(axis=0), atol=1e-12)


def test_calibration_by_brute_force():
    rng = np.random.default_rng(0)
    P, mean, weight = rng.dirichlet(np.ones(4), 150), D.mean(axis=0), rng.uniform(size=150)
    found = choose_calibration(D, P, np.zeros_like(P), mean, weight, (0.5, 1.0), (0.1, 0.4))
    results = []
    for b in (0.5, 1.0):
        for s in (0.1, 0.4):
            Q = np.array([(1 - s) * p**b / sum(p**b) + s * mean for p in P])
            results.append((np.average((D * np.log(D / Q)).sum(axis=1), weights=weight), b, s))
    assert found == pytest.approx(min(results), abs=1e-12)


def test_the_correction_is_the_second_order_effect_of_noise():
    """Divergences of noisy predictions, averaged, less the correction, are the divergence without noise."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(10 * np.ones(4), 150)
    mean, sharpness, share, concentration = D.mean(axis=0), (1.3,), (0.05,), 4000.0
    clean = choose_calibration(D, P, np.zeros_like(P), mean, None, sharpness, share)[0]
    noisy = [np.array([rng.dirichlet(concentration * p) for p in P]) for _ in range(40)]
    variance = P * (1 - P) / (concentration + 1)
    plain = np.mean([choose_calibration(D, Q, 0 * P, mean, None, sharpness, share)[0] for Q in noisy])
    corrected = np.mean([choose_calibration(D, Q, variance, mean, None, sharpness, share)[0] for Q in noisy])
    assert plain > clean
    assert abs(corrected - clean) < 0.5 * (plain - clean)


def test_predictions_are_strictly_positive_unless_the_mean_share_is_zero():
    one_hot = np.eye(4)[D.argmax(axis=1)]
    assert RandomForestLDL(10, random_state=0, **FIXED).fit(X, one_hot).predict(X_NEW).min() > 0
    assert RandomForestLDL(10, random_state=0, **FIXED, mean_share=0.0).fit(X, one_hot).predict(X_NEW).min() == 0


def test_missing_values_are_learnt_from():
    rng = np.random.default_rng(0)
    features = rng.uniform(size=(300, 3))
    missing = rng.uniform(size=300) < 0.5
    features[missing, 1] = np.nan
    distributions = np.where(missing[:, None], [0.8, 0.2], [0.3, 0.7])
    model = RandomForestLDL(30, random_state=0, kind="random", max_features=None, min_samples_leaf=5)
    np.testing.assert_allclose(model.fit(features, distributions).predict(features), distributions, atol=0.02)
    with pytest.raises(NonFiniteError):
        model.fit(sparse.csr_matrix(features), distributions)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_and_blocks_change_nothing(monkeypatch, n_jobs):
    expected = RandomForestLDL(25, random_state=0, **FIXED).fit(X, D)
    monkeypatch.setattr("skldl.trees._forest.ROWS_AT_ONCE", 7)
    model = RandomForestLDL(25, random_state=0, n_jobs=n_jobs, **FIXED).fit(X, D)
    np.testing.assert_array_equal(model.oob_predictions_, expected.oob_predictions_)
    np.testing.assert_allclose(model.predict(X_NEW), expected.predict(X_NEW), atol=1e-14)


def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setattr("skldl.trees._forest.MANY_ROWS", 50)
    model = RandomForestLDL(10, n_trial_estimators=3, random_state=0)
    assert (model._n_drawn(150), model._n_drawn(30)) == (50, 30)
    model.fit(X, D, sample_weight=np.linspace(1, 2, 150), groups=np.arange(150) // 2)
    assert model.n_votes_.mean() > 6  # about two of three rows are in no bag
    assert RandomForestLDL(max_samples=0.2)._n_drawn(150) == 30
    assert RandomForestLDL(max_samples=40)._n_drawn(150) == 40


def test_importances_find_the_feature_that_matters():
    distributions = np.column_stack([X[:, 2], 1 - X[:, 2]])
    model = RandomForestLDL(20, random_state=0, **FIXED).fit(X, distributions)
    assert model.feature_importances_.argmax() == 2
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert RandomForestLDL(2, **FIXED).fit(np.ones((9, 2)), D[:9]).feature_importances_.tolist() == [0, 0]


def test_a_single_row():
    model = RandomForestLDL(2, n_trial_estimators=2).fit(X[:1], D[:1])
    np.testing.assert_allclose(model.predict(X_NEW[:1]), D[:1], atol=1e-9)
    np.testing.assert_allclose(model.oob_predictions_, D[:1], atol=1e-9)


@pytest.mark.parametrize("kind", ["auto", "both"])
def test_model_file(tmp_path, kind):
    pytest.importorskip("skops")
    model = RandomForestLDL(5, random_state=0, **{**FIXED, "kind": kind}).fit(X, D)
    path = skldl.save(model, tmp_path / "forest.skldl")
    np.testing.assert_array_equal(skldl.load(path).predict(X_NEW), model.predict(X_NEW))


def test_a_damaged_model_file_is_rejected(tmp_path):
    pytest.importorskip("skops")
    model = RandomForestLDL(5, random_state=0, **FIXED).fit(X, D)
    model.trees_.left[0] = 0  # rows would turn round and round at the root
    path = skldl.save(model, tmp_path / "forest.skldl")
    with pytest.raises(ModelFileError, match="damaged"):
        skldl.load(path)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_estimators": 0}, "n_estimators=0"),
        ({"n_trial_estimators": 1.5}, "n_trial_estimators=1.5"),
        ({"kind": "deep"}, "kind='deep' must be 'auto' or 'extra' or 'random'"),
        ({"criterion": "gini"}, "criterion='gini'"),
        ({"min_samples_leaf": 0}, "min_samples_leaf=0 must be 'auto' or a whole number of at least 1"),
        ({"max_features": 1.2}, "max_features=1.2"),
        ({"max_samples": 0}, "max_samples=0"),
        ({"max_samples": 1.5}, "above 0 and of at most 1"),
        ({"sharpness": 0}, "sharpness=0 must be 'auto' or a finite number above 0"),
        ({"mean_share": -0.1}, "at least 0 and of at most 1"),
    ],
)
def test_wrong_hyper_parameters_are_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        RandomForestLDL(**parameters).fit(X, D)


def test_wrong_groups_are_rejected():
    with pytest.raises(LengthMismatchError, match="150 rows"):
        RandomForestLDL(2).fit(X, D, groups=[1, 2])
    with pytest.raises(ValueError, match="one group"):
        RandomForestLDL(2).fit(X, D, groups=np.zeros(150))


def test_many_rows_are_calibrated_on_rows_from_the_whole_file(monkeypatch):
    """Rows sorted by how hard they are to predict: the first ones alone would give no sign of the noise behind them."""
    monkeypatch.setattr("skldl.trees._forest.MANY_ROWS", 50)
    easy = np.arange(150) < 75
    one_hot = np.eye(3)[np.random.default_rng(0).integers(3, size=150)]
    noisy = np.where(easy[:, None], [0.2, 0.3, 0.5], one_hot)
    shares = []

    def spy(D, P, *rest):
        shares.append(float((D.max(axis=1) == 1).mean()))
        return choose_calibration(D, P, *rest)

    monkeypatch.setattr("skldl.trees._forest.choose_calibration", spy)
    RandomForestLDL(5, max_samples=1.0, random_state=0, **FIXED).fit(X, noisy)
    assert shares[-1] == pytest.approx(0.5, abs=0.1)
