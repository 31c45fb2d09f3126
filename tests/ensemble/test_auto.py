"""`AutoLDL`: what takes part, what the pool gains, what a budget drops, and that it is the same for the same seed."""

import numpy as np
import pytest

import skldl
from skldl import AAKNN, AutoLDL, ConformalLDL, MeanDistribution
from skldl.ensemble._auto import parse_budget  # no fit shows how many seconds it was granted
from skldl.exceptions import ParameterError
from skldl.metrics import kullback_leibler
from skldl.tabular import column_effects, explain_row
from skldl.testing import check_estimator

QUICK = [("mean", MeanDistribution()), ("near", AAKNN(5))]
NOT_COPIES = "the folds and the number of rows in the penalty differ between weights and copies"


@pytest.fixture(scope="module")
def rows():
    """Labels that depend on a line, a circle and noise, so that no single kind of member sees all of it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 4))
    scores = np.c_[X[:, 0], np.sin(3 * X[:, 1]) * 2, (X[:, 2] > 0) * X[:, 3]] + rng.normal(scale=0.4, size=(300, 3))
    D = np.exp(scores)
    return X, D / D.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def fitted(rows):
    X, D = rows
    return AutoLDL(random_state=0).fit(X[:200], D[:200])


def test_common_checks():
    check_estimator(
        AutoLDL(members=QUICK, random_state=0),
        expected_failed_checks={
            "check_sample_weight_equivalence_on_dense_data": NOT_COPIES,
            "check_sample_weight_equivalence_on_sparse_data": NOT_COPIES,
            "check_weight_two_is_row_twice": NOT_COPIES,
        },
    )


def test_the_pool_is_no_worse_than_its_best_member(fitted, rows):
    X, D = rows
    best = min(entry["divergence"] for entry in fitted.report_ if entry["divergence"] is not None)
    assert fitted.pool_score_ <= best * (1 + 1e-12)
    alone = [kullback_leibler(D[200:], member.predict(X[200:])) for member in fitted.members_]
    mean = kullback_leibler(D[200:], np.tile(D[:200].mean(axis=0), (100, 1)))
    assert kullback_leibler(D[200:], fitted.predict(X[200:])) < min(alone) + 0.05 * mean


def test_the_estimate_is_near_what_new_rows_show(fitted, rows):
    X, D = rows
    losses = kullback_leibler.rowwise(D[200:], fitted.predict(X[200:]))
    assert abs(losses.mean() - fitted.pool_score_) < 4 * losses.std() / np.sqrt(len(losses))


def test_the_report_tells_everything(fitted):
    assert [entry["member"] for entry in fitted.report_[-1:]] == ["boosting"]
    assert "fewer than 50 features" in fitted.report_[-1]["note"]
    members = {entry["member"] for entry in fitted.report_}
    assert members == {"linear", "neighbours", "kernel", "kernel-clr", "forest", "boosting"}
    divergences = [entry["divergence"] for entry in fitted.report_[:-1]]
    assert divergences == sorted(divergences)
    weights = {entry["member"]: entry["weight"] for entry in fitted.report_}
    for name, weight in zip(fitted.member_names_, fitted.member_weights_, strict=True):
        assert weights[name] == weight > 0


@pytest.fixture(scope="module")
def pooled(rows):
    """Rows as a table, and a pool of several members, kept although the forest alone is as good."""
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(rows[0], columns=list("abcd"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skldl.ensemble._auto.divergence_of", lambda rows, held_out: 0.0)
        patch.setattr("skldl.ensemble._auto.MIN_WEIGHT", 0.0)
        model = AutoLDL(members=["linear", "neighbours", "forest"], random_state=0).fit(table[:200], rows[1][:200])
    assert len(model.members_) == 3
    return table, model


def test_a_pool_has_files_explanations_and_regions(pooled, rows, tmp_path):
    """Nothing of what other estimators can do ends at a pool."""
    pytest.importorskip("skops")
    (table, model), D = pooled, rows[1]
    loaded = skldl.load(skldl.save(model, tmp_path / "pool.skldl"))
    np.testing.assert_array_equal(loaded.predict(table[200:]), model.predict(table[200:]))
    effects = column_effects(model, table[200:], D[200:])
    assert sorted(effects.columns) == list("abcd")
    assert (effects.importance > 0).all()
    explained = explain_row(model, table, 5).prediction.to_numpy()
    np.testing.assert_allclose(explained, model.predict(table[5:6])[0], atol=1e-12)
    regions = ConformalLDL(model, method="prefit").fit(table[200:250], D[200:250])
    assert regions.predict_region(table[250:], level=0.8).contains(D[250:]).mean() > 0.6


def test_prediction_in_blocks_is_that_of_all_rows(pooled, monkeypatch):
    """Memory is bounded however many rows there are."""
    table, model = pooled
    whole = model.predict(table)
    monkeypatch.setattr("skldl.ensemble._members.BLOCK_CELLS", 7 * 3 * len(model.members_))
    np.testing.assert_allclose(model.predict(table), whole, atol=1e-12)


def test_the_same_seed_gives_the_same_model(rows):
    X, D = rows
    one, two = (AutoLDL(random_state=7).fit(X[:120], D[:120]).predict(X[200:]) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_a_pool_that_gains_nothing_leaves_the_best_member_alone(rows, monkeypatch):
    X, D = rows
    monkeypatch.setattr("skldl.ensemble._auto.divergence_of", lambda rows, held_out: np.inf)
    model = AutoLDL(members=QUICK, random_state=0).fit(X, D)
    assert model.member_names_ == ["near"]
    np.testing.assert_array_equal(model.member_weights_, [1.0])
    share = model.mean_shares_[0]
    expected = (1 - share) * AAKNN(5).fit(X, D).predict(X) + share * D.mean(axis=0)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-12)


def test_a_budget_drops_members_and_says_so(rows, monkeypatch):
    X, D = (np.concatenate([table] * 4) for table in rows)
    model = AutoLDL(budget=1e-3, random_state=0).fit(X, D)
    assert model.member_names_ == ["linear"]
    assert all("dropped" in entry["note"] for entry in model.report_[1:] if entry["member"] != "boosting")
    clock = iter(np.arange(0.0, 1e6, 2.0))  # every look at the clock takes two seconds: nothing but trial fits
    monkeypatch.setattr("skldl.ensemble._auto.time.perf_counter", lambda: next(clock))
    model = AutoLDL(budget="20s", members=[*QUICK, ("again", AAKNN(3))], random_state=0).fit(X, D)
    assert any("estimated at" in entry["note"] for entry in model.report_)


@pytest.mark.parametrize("name", ["linear", "neighbours", "kernel", "forest", "boosting"])
def test_groups_reach_every_inner_split(rows, name):
    """Each row stands five times: a member that held out single rows would know its copies."""
    X, D = rows
    people = np.repeat(np.arange(40), 5)
    by_rows = AutoLDL(members=[name], random_state=0).fit(X[people], D[people])
    by_groups = AutoLDL(members=[name], random_state=0).fit(X[people], D[people], groups=people)
    assert len(by_rows.report_) == len(by_groups.report_)
    scores = [{entry["member"]: entry["divergence"] for entry in model.report_} for model in (by_rows, by_groups)]
    limit = 0.9 if name == "linear" else 0.1
    assert all(scores[0][member] < limit * scores[1][member] for member in scores[0])
    assert all(len(set(by_groups.fold_of_[people == person])) == 1 for person in range(40))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("1.5 min", 90.0), ("2h", 7200.0), (3, 3.0), (None, None)]
)
def test_budgets(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("budget", ["soon", "-3", -1.0, 0, True, np.inf, "10 days"])
def test_bad_budgets(rows, budget):
    with pytest.raises(ParameterError, match="budget"):
        AutoLDL(budget=budget).fit(*rows)


class NeverFits(MeanDistribution):
    """Raises an error whatever the data."""

    def _fit(self, X, D, sample_weight):
        raise ValueError("not these data")


@pytest.mark.parametrize("budget", [None, 60])
def test_a_member_that_fails_is_named_and_does_not_end_the_fit(rows, budget):
    X, D = (np.concatenate([table] * 4) for table in rows)  # enough rows for trial fits
    model = AutoLDL(budget, [*QUICK, ("broken", NeverFits())], random_state=0).fit(X, D)
    assert [(entry["member"], entry["note"]) for entry in model.report_][-1] == ("broken", "failed: not these data")


@pytest.mark.parametrize(
    "members",
    [
        [],
        ["trees"],
        ["linear", "linear"],
        [("a", object())],
        [("pool", MeanDistribution())],
        ["kernel", ("kernel-clr", MeanDistribution())],
        ["kernel", ("kernel", MeanDistribution())],
    ],
)
def test_bad_members(rows, members):
    with pytest.raises(ParameterError, match="member"):
        AutoLDL(members=members).fit(*rows)


def test_progress_is_said_when_asked_for(rows, capsys):
    X, D = rows
    AutoLDL(members=QUICK, verbose=True, random_state=0).fit(X, D)
    assert "fitting near (2 of 2)" in capsys.readouterr().err
    AutoLDL(members=QUICK, random_state=0).fit(X, D)
    assert capsys.readouterr().err == ""
