"""The choice of a model, how good it says it is, and the pipeline that comes out."""

import weakref

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import skldl
from skldl import AutoLDL
from skldl.data import Columns, from_table
from skldl.exceptions import DataError, StudyError, TableError, UnknownNameError
from skldl.metrics import kullback_leibler
from skldl.names import find_candidate
from skldl.selection import BASELINE, Candidate, assign_folds, pairs_of
from skldl.tabular import AUTO, FitOptions, TableEncoder, choose_model, fit_table

QUICK = [BASELINE, find_candidate("sa-bfgs")]


@pytest.fixture(scope="module")
def dataset(faces):
    return from_table(faces, Columns("emo_*", groups="person"))


def fitted(faces, model, settings=None, **options):
    """A named model of the faces, in two folds."""
    columns = Columns("emo_*", drop=["person"])
    return fit_table(faces, columns, model=model, settings=settings, options=FitOptions(folds=2, **options))


def test_settings_are_python_values(faces):
    linear = fitted(faces, "sabfgs", {"alpha": 0.5, "solver": "bfgs"})
    assert linear.model[-1].get_params() | {"alpha": 0.5, "solver": "bfgs"} == linear.model[-1].get_params()
    assert linear.choice.best.setting == {}
    (alpha,) = fitted(faces, "sabfgs", {"tol": 1e-4}).choice.best.setting.values()
    assert alpha not in find_candidate("sabfgs").grid["alpha"]  # searched between the values of the grid
    with pytest.raises(UnknownNameError, match=r"SA-BFGS has no parameter 'k'\. It has alpha, "):
        fitted(faces, "sabfgs", {"k": 3})
    with pytest.raises(StudyError, match="fit_intercept = 'no' must be true or false"):
        fitted(faces, "sabfgs", {"fit_intercept": "no"})
    with pytest.raises(UnknownNameError, match="No algorithm is called 'svm9'"):
        fitted(faces, "svm9")


@pytest.mark.parametrize(("n_rows", "expected"), [(120, {20, 10, 5}), (12, {5}), (6, {3})])
def test_numbers_of_neighbours_fit_the_table(faces, n_rows, expected):
    """In two folds, half of the rows are left to learn from."""
    found = fitted(faces.iloc[:n_rows], "aaknn").choice.best.setting["n_neighbors"]
    assert found in expected


class Flat(skldl.MeanDistribution):
    """A model that takes dense features only and predicts too little for the first label."""

    _accept_sparse = False

    def _predict(self, X):
        assert isinstance(X, np.ndarray)
        return super()._predict(X) * np.r_[0.5, np.ones(self.n_labels_ - 1)]


def test_dense_features_where_a_model_needs_them(faces):
    table = faces.assign(town=[f"t{row % 40}" for row in range(len(faces))])
    dataset = from_table(table, Columns("emo_*", drop=["person"]))
    assert make_pipeline(TableEncoder(dense=True), Flat()).fit(dataset.X, dataset.D).predict(dataset.X).shape == (
        120,
        3,
    )
    choice = choose_model(dataset, [Candidate("Flat", Flat())], TableEncoder())
    assert choice.skill[0] < 0


def test_the_choice_agrees_with_cross_validation_by_hand(dataset):
    choice = choose_model(dataset, QUICK, TableEncoder(), random_state=3)
    assert choice.best.candidate.name == "SA-BFGS"
    assert choice.beats_mean
    assert [trial.candidate.name for trial in choice.candidates] == ["SA-BFGS", "Mean"]
    means = []
    for train, test in pairs_of(assign_folds(120, 5, random_state=3, groups=dataset.groups)):
        assert not set(dataset.groups[train]) & set(dataset.groups[test])
        model = make_pipeline(TableEncoder(), skldl.SABFGS(fit_intercept=True, **choice.best.setting))
        model.fit(dataset.X.iloc[train], dataset.D[train])
        means.append(kullback_leibler(dataset.D[test], model.predict(dataset.X.iloc[test])))
    assert choice.best.divergence == pytest.approx(np.mean(means), rel=1e-4)
    assert choice.skill[1] < choice.skill[0] < choice.skill[2]


def test_the_estimate_judges_each_fold_by_the_choice_of_the_others(dataset):
    grid = (1.0, 1e-2, 1e-4)
    candidate = Candidate("SA-BFGS", "skldl:SABFGS", {"fit_intercept": True}, {"alpha": grid}, "alpha")
    choice = choose_model(dataset, [candidate], TableEncoder(), folds=4, random_state=1)
    pairs = list(pairs_of(assign_folds(120, 4, random_state=1, groups=dataset.groups)))
    losses = np.empty((3, 4), dtype=object)
    for fold, (train, test) in enumerate(pairs):
        for place, alpha in enumerate(grid):
            model = make_pipeline(TableEncoder(), skldl.SABFGS(alpha=alpha, fit_intercept=True))
            predicted = model.fit(dataset.X.iloc[train], dataset.D[train]).predict(dataset.X.iloc[test])
            losses[place, fold] = kullback_leibler.rowwise(dataset.D[test], predicted)
    expected, total, reference = [], 0.0, 0.0
    for fold, (train, test) in enumerate(pairs):
        others = [np.mean([losses[place, other].mean() for other in range(4) if other != fold]) for place in range(3)]
        expected.append(("SA-BFGS", {"alpha": grid[int(np.argmin(others))]}))
        total += losses[int(np.argmin(others)), fold].sum()
        mean = np.tile(dataset.D[train].mean(axis=0), (len(test), 1))
        reference += kullback_leibler.rowwise(dataset.D[test], mean).sum()
    assert list(choice.estimate.choices) == expected
    assert choice.estimate.loss == pytest.approx(total / 120, rel=1e-4)
    assert choice.skill[0] == pytest.approx(1 - total / reference, rel=1e-3)


def noise_table(seed, n=40):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("vwxyz"))
    return X.join(pd.DataFrame(rng.dirichlet([1, 1, 1], size=n), columns=["a", "b", "c"]))


@pytest.mark.slow
def test_the_estimate_promises_nothing_on_pure_noise():
    candidates = [*QUICK, Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (20, 10, 5)}, path="n_neighbors")]
    honest, naive = [], []
    for seed in range(24):
        choice = choose_model(from_table(noise_table(seed), list("abc")), candidates, TableEncoder(), random_state=seed)
        honest.append(choice.skill[0])
        naive.append(1 - choice.best.divergence / choice.estimate.reference_loss)
    assert np.mean(naive) > 0.005  # the least of many divergences: what must not be reported
    assert np.mean(honest) < 0
    assert np.mean(np.array(honest) > 0) <= 0.25


def test_the_penalty_is_searched_between_the_values_of_the_grid():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 30))
    logits = X[:, :3] @ rng.normal(size=(3, 3)) + rng.normal(scale=0.8, size=(80, 3))
    D = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(30)]).join(pd.DataFrame(D, columns=list("abc")))
    dataset = from_table(table, list("abc"))
    coarse = Candidate("SA-BFGS", "skldl:SABFGS", {"fit_intercept": True}, {"alpha": (1.0, 1e-3, 1e-6)}, "alpha")
    fine = Candidate("SA-BFGS", "skldl:SABFGS", coarse.params, coarse.grid, "alpha", refine="alpha")
    one, other = (choose_model(dataset, [candidate], TableEncoder()).best for candidate in (coarse, fine))
    assert other.divergence < 0.98 * one.divergence
    assert other.setting["alpha"] not in coarse.grid["alpha"]
    low = Candidate("SA-BFGS", "skldl:SABFGS", coarse.params, {"alpha": (1e-3, 1e-4)}, "alpha", refine="alpha")
    assert choose_model(dataset, [low], TableEncoder()).best.setting["alpha"] > 1e-3  # beyond an end, too


def test_weights_count_in_the_choice(faces):
    table = faces.drop(columns="person").assign(w=np.arange(120) % 3 + 1.0)
    weighted = choose_model(from_table(table, Columns("emo_*", weight="w")), QUICK, TableEncoder())
    plain = choose_model(from_table(table, Columns("emo_*", drop=["w"])), QUICK, TableEncoder())
    assert weighted.estimate.reference_loss != pytest.approx(plain.estimate.reference_loss, rel=1e-6)
    forest = choose_model(from_table(table, Columns("emo_*", weight="w")), [AUTO[3]], TableEncoder(), folds=2)
    assert forest.skill[0] > 0


def test_a_large_table_is_represented_by_some_rows_and_says_so(dataset, faces):
    for selection_rows in (50, 60):  # whole groups, of three rows each
        choice = choose_model(dataset, QUICK, TableEncoder(), selection_rows=selection_rows)
        assert choice.n_rows in (selection_rows, selection_rows + 1, selection_rows + 2)
        assert choice.n_rows % 3 == 0
    no_groups = from_table(pd.DataFrame({"x": range(30), "a": 0.5, "b": 0.5}), ["a", "b"])
    assert choose_model(no_groups, QUICK, TableEncoder(), selection_rows=10).n_rows == 10
    fitted = fit_table(faces, Columns("emo_*", drop=["person"]), model="sa-bfgs", options=FitOptions(selection_rows=60))
    assert fitted.description["score"]["rows"] == 60
    assert any("chosen on 60 of 120 rows" in line and "selection_rows=" in line for line in fitted.warnings)


def test_nothing_beats_the_mean_where_there_is_nothing_to_learn():
    generator = np.random.default_rng(2)
    table = pd.DataFrame({"x": generator.random(100), "a": generator.random(100)})
    pool = fit_table(table.assign(b=1 - table["a"]), ["a", "b"])
    assert not pool.choice.beats_mean
    assert any("mean distribution" in line for line in pool.warnings)
    fitted = fit_table(table.assign(b=1 - table["a"]), ["a", "b"], options=FitOptions(preset="fast"))
    assert fitted.choice.best.candidate.name == "Mean"
    assert any("No model is better than predicting the mean" in line for line in fitted.warnings)
    assert fitted.description["score"]["skill"] <= 0


def test_a_doubtful_gain_is_told():
    generator = np.random.default_rng(1)
    x = generator.random(40)
    a = np.clip(0.5 + 0.12 * (x - 0.5) + generator.normal(0, 0.1, 40), 0, 1)
    fitted = fit_table(pd.DataFrame({"x": x, "a": a, "b": 1 - a}), ["a", "b"], model="aa-knn")
    assert any("not clearly better" in line or "This model is not better" in line for line in fitted.warnings)


def test_a_candidate_that_fails_is_told_and_left_out(dataset, faces):
    broken = Candidate("SA-BFGS", "skldl:SABFGS", {"max_iter": -1})
    choice = choose_model(dataset, [BASELINE, broken], TableEncoder())
    assert {failure.candidate for failure in choice.failures} == {"SA-BFGS"}
    assert "max_iter=-1" in choice.failures[0].reason
    assert [trial.candidate.name for trial in choice.candidates] == ["Mean"]
    with pytest.raises(DataError, match=r"SA-BFGS could not be fitted: .*max_iter=-1"):
        choose_model(dataset, [broken], TableEncoder())


class Greedy(skldl.MeanDistribution):
    """Wants more memory than there is for one of its settings."""

    def __init__(self, missing="auto", size=1):
        super().__init__(missing)
        self.size = size

    def _fit(self, X, D, sample_weight):
        if self.size > 1:
            raise MemoryError("too big")
        super()._fit(X, D, sample_weight)


def test_lack_of_memory_ends_the_choice(dataset):
    with pytest.raises(MemoryError, match="too big"):
        choose_model(dataset, [Candidate("greedy", Greedy(), grid={"size": (2, 1)})], TableEncoder())


def test_some_settings_that_fail_are_told(faces):
    fitted = fit_table(faces, Columns("emo_*", drop=["person"]), model="mean")
    assert fitted.description["failures"] == []
    choice = choose_model(
        from_table(faces, Columns("emo_*", drop=["person"])),
        [Candidate("kNN", "skldl:AAKNN", grid={"n_neighbors": (5, 5000)}, path="n_neighbors")],
        TableEncoder(),
    )
    assert choice.best.setting == {"n_neighbors": 5}


def test_fast_choice_says_why(faces):
    steps = []
    fitted = fit_table(
        faces.drop(columns="person"),
        "emo_*",
        on_progress=steps.append,
        options=FitOptions(preset="fast"),
    )
    assert {trial.candidate.name for trial in fitted.choice.candidates} == {"Mean", "SA-BFGS", "AA-kNN", "Forest"}
    best = fitted.choice.best.candidate.name
    assert best != "Mean"
    assert fitted.why[0].startswith(best)
    assert "The others: " in fitted.why[1]
    assert "95 % interval" in fitted.why[2]
    assert "The interval is for the models judged here" in fitted.why[2]
    assert "to be expected on new rows" in fitted.why[2]
    assert steps[0] == "fold 1 of 5: Mean"
    assert steps[-1] == f"fit of {best} on all rows"
    assert fitted.description["features"] == {"age": "number", "town": "category", "smoker": "boolean"}
    assert fitted.description["labels"] == ["emo_joy", "emo_anger", "emo_fear"]
    assert fitted.description["values"] is None
    assert list(fitted.model[-1].label_names_) == fitted.description["labels"]
    np.testing.assert_allclose(fitted.model.predict(faces).sum(axis=1), 1)


def test_best_choice_is_a_pool_or_its_best_member(faces):
    steps = []
    fitted = fit_table(faces.drop(columns="person"), "emo_*", on_progress=steps.append)
    names = [trial.candidate.name for trial in fitted.choice.candidates]
    assert {"linear", "neighbours", "kernel", "kernel-clr", "forest"} <= set(names)
    assert steps[0] == "fitting linear (1 of 5)"
    model = fitted.model[-1]
    assert isinstance(model, AutoLDL) == (names[0] == "Pool")
    assert list(model.label_names_) == fitted.description["labels"]
    assert "95 % interval" in fitted.why[-1]
    assert 0 < fitted.choice.skill[0] < 1
    np.testing.assert_allclose(fitted.model.predict(faces).sum(axis=1), 1)


def sums_and_products(n=240, seed=0):
    """A linear part, which the linear member sees best, and a product, which the others do."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.uniform(-2, 2, size=(n, 4)), columns=list("abcd"))
    scores = np.c_[table.a, np.sin(3 * table.b) * 2, (table.c > 0) * table.d] + rng.normal(scale=0.3, size=(n, 3))
    D = np.exp(scores)
    labels = pd.DataFrame(D / D.sum(axis=1, keepdims=True), columns=["l_x", "l_y", "l_z"])
    return pd.concat([table, labels], axis=1)


def test_a_pool_that_gains_is_kept_and_one_that_does_not_is_not(pool_of, monkeypatch):
    table = sums_and_products()
    pool_of("linear", "neighbours")
    with monkeypatch.context() as patch:
        patch.setattr("skldl.ensemble._auto.divergence_of", lambda rows, held_out: 0.0)  # a pool that gains everything
        pooled = fit_table(table, "l_*")
    assert isinstance(pooled.model[-1], AutoLDL)
    assert pooled.why[0].startswith("A pool with the weights ")
    assert {trial.candidate.name for trial in pooled.choice.candidates} == {"Pool", "linear", "neighbours", "Mean"}
    monkeypatch.setattr("skldl.tabular._choice.MIN_GAIN", 0.99)
    alone = fit_table(table, "l_*")
    assert not isinstance(alone.model[-1], AutoLDL)
    assert "gains less than 1 %" in alone.why[1]
    new = sums_and_products(seed=1)
    losses = kullback_leibler.rowwise(new[["l_x", "l_y", "l_z"]].to_numpy(), pooled.model.predict(new))
    assert abs(losses.mean() - pooled.choice.estimate.loss) < 5 * losses.std() / np.sqrt(len(losses))


def test_the_pool_holds_groups_out_together():
    table = sums_and_products(80)
    copies = pd.concat([table] * 4, ignore_index=True).assign(person=list(range(80)) * 4)
    apart = fit_table(copies.drop(columns="person"), "l_*")
    together = fit_table(copies, Columns("l_*", groups="person"))
    assert together.choice.estimate.loss > 2 * apart.choice.estimate.loss
    assert "groups held out together" in together.why[0]


def test_presets_and_budgets(faces, monkeypatch):
    with pytest.raises(DataError, match="preset='quick'"):
        fit_table(faces, "emo_*", options=FitOptions(preset="quick"))
    with pytest.raises(DataError, match="belong to model='auto'"):
        fit_table(faces, "emo_*", model="mean", options=FitOptions(preset="best"))
    with pytest.raises(DataError, match="budget= belongs"):
        fit_table(faces, "emo_*", options=FitOptions(preset="fast", budget="10s"))
    for option in ({"folds": 3}, {"selection_rows": 50}):
        with pytest.raises(DataError, match="has no part in preset='best'"):
            fit_table(faces, "emo_*", options=FitOptions(**option))
    hurried = fit_table(faces.drop(columns="person"), "emo_*", options=FitOptions(budget=0.001))
    assert any(line.startswith("Left out: kernel (dropped") for line in hurried.why)
    assert hurried.choice.best.candidate.name == "linear"
    monkeypatch.setattr("skldl.tabular._fit.MAX_ROWS", 10)
    assert fit_table(faces.drop(columns="person"), "emo_*").choice.candidates[0].candidate.name in {
        "SA-BFGS",
        "AA-kNN",
        "Forest",
    }


def test_ordered_labels_have_values():
    table = pd.DataFrame({"x": range(20), "1": [0.25, 0.75] * 10, "2": [0.75, 0.25] * 10})
    assert fit_table(table, ["1", "2"], model="mean").description["values"] == [1.0, 2.0]
    given = fit_table(table, ["1", "2"], model="mean", options=FitOptions(values=[-1, 1]))
    assert given.description["values"] == [-1.0, 1.0]


def test_an_estimator_of_your_own(faces):
    fitted = fit_table(faces, Columns("emo_*", drop=["person"]), model="skldl.maxent:SABFGS", settings={"alpha": 0.1})
    assert fitted.choice.candidates[0].setting == {}
    assert fitted.description["estimator"] == "SABFGS(alpha=0.1)"
    with pytest.raises(StudyError, match="Ridge is not a label distribution learner"):
        fit_table(faces, Columns("emo_*", drop=["person"]), model="sklearn.linear_model:Ridge")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"options": FitOptions(folds=1)}, "folds=1: at least 2"),
        ({"random_state": -1}, "random_state=-1 must be 0 or more"),
        ({"settings": {"alpha": 1}}, "parameters belong to a model"),
        ({"options": FitOptions(selection_rows=1)}, "selection_rows=1: at least 2 rows"),
    ],
)
def test_wrong_options(faces, options, message):
    with pytest.raises(DataError, match=message):
        fit_table(faces, "emo_*", **options)


def test_the_smallest_tables():
    two = pd.DataFrame({"x": [0, 1], "a": [0.4, 0.6], "b": [0.6, 0.4]})
    assert fit_table(two, ["a", "b"]).choice.n_folds == 2
    with pytest.raises(TableError, match="a single row"):
        fit_table(two.iloc[:1], ["a", "b"])
    with pytest.raises(TableError, match="a single group"):
        fit_table(two.assign(g="one"), Columns(["a", "b"], groups="g"))


def test_the_forest_is_left_out_of_the_quick_choice_for_very_large_tables(monkeypatch):
    monkeypatch.setattr("skldl.tabular._models.FOREST_CELLS", 100)
    table = pd.DataFrame({"x": range(60), "z": 0.5}).assign(no=lambda t: 1 - t.x / 80, yes=lambda t: t.x / 80)
    fitted = fit_table(table, ["no", "yes"], options=FitOptions(preset="fast"))
    assert "Forest" not in {trial.candidate.name for trial in fitted.choice.candidates}
    assert any("Forest was not tried" in warning for warning in fitted.warnings)
    assert not any("Forest" in warning for warning in fit_table(table, ["no", "yes"], model="sa-bfgs").warnings)


def test_parameters_of_a_step_have_short_names(faces):
    """Nobody has to know that the forest is a regressor inside of another."""
    forest = fitted(faces, "forest", {"min_samples_leaf": 7})
    assert forest.model[-1].regressor.min_samples_leaf == 7
    assert not any("min_samples_leaf" in name for name in forest.choice.best.setting)
    with pytest.raises(UnknownNameError, match="no parameter 'k'") as caught:
        fitted(faces, "forest", {"k": 7})
    assert "__" not in str(caught.value)


def test_the_table_goes_before_the_model_learns(faces, monkeypatch, tmp_path):
    """A large one would be in memory twice, as columns and as features."""
    faces.to_csv(tmp_path / "faces.csv", index=False)
    columns = Columns("emo_*", drop=["person"])
    tables, alive = [], []
    fit, know = skldl.MeanDistribution.fit, TableEncoder.know_columns

    def known(self, X):
        tables.append(weakref.ref(X))
        return know(self, X)

    def watched(self, X, D, *arguments):
        alive.append(tables[0]() is not None)
        return fit(self, X, D, *arguments)

    monkeypatch.setattr(TableEncoder, "know_columns", known)
    monkeypatch.setattr(skldl.MeanDistribution, "fit", watched)
    fitted = fit_table(tmp_path / "faces.csv", columns, model="mean")
    assert alive == [*[True] * (len(alive) - 1), False]
    in_memory = fit_table(faces, columns, model="mean")
    assert fitted.description | {"source": ""} == in_memory.description
