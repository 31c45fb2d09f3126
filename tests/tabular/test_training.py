"""The choice of a model, how good it says it is, and the pipeline that comes out."""

import numpy as np
import pandas as pd
import pytest

import skldl
from skldl.exceptions import DataError, StudyError, TableError, UnknownNameError
from skldl.experiments import Candidate
from skldl.metrics import kullback_leibler
from skldl.tabular import AUTO, TableEncoder, choose_model, find_model, fit_table, training_set
from skldl.tabular import _choice as choice_module
from skldl.tabular._choice import _sample, skill_interval
from skldl.tabular._models import in_pipeline, limited_to, table_pipeline, with_settings

QUICK = [find_model("mean"), find_model("sa-bfgs")]


@pytest.fixture(scope="module")
def training(faces):
    return training_set(faces, "emo_*", groups="person")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        *((word, "SA-BFGS") for word in ("sa-bfgs", "SABFGS", "sabfgs", "SA_BFGS")),
        ("aaknn", "AA-kNN"),
        ("forest", "Forest"),
        ("AARegressor", "Forest"),
        ("pt-bayes", "PT-Bayes"),
        ("sa-iis", "SA-IIS"),
        ("skldl.baseline:MeanDistribution", "MeanDistribution"),
    ],
)
def test_models_by_any_spelling(word, name):
    assert find_model(word).name == name


def test_unknown_models_and_parameters():
    with pytest.raises(UnknownNameError, match=r"No algorithm is called 'svm9'.*SA-BFGS.*or auto"):
        find_model("svm9")
    with pytest.raises(UnknownNameError, match=r"SA-BFGS has no parameter 'k'\. It has alpha, "):
        with_settings(find_model("sabfgs"), ["k=3"])
    for wrong in ("alpha", "alpha=", "=3"):
        with pytest.raises(TableError, match="write it as name=value"):
            with_settings(find_model("sabfgs"), [wrong])


def test_settings_as_typed():
    linear = with_settings(find_model("sabfgs"), ["alpha=0.5", "solver=bfgs"])
    assert linear.make().get_params() | {"alpha": 0.5, "solver": "bfgs"} == linear.make().get_params()
    assert linear.grid == {}
    assert linear.path == ""
    assert with_settings(find_model("sabfgs"), ["tol=1e-4"]).path == "alpha"
    assert with_settings(find_model("mean"), []) is find_model("mean")


def test_numbers_of_neighbours_fit_the_table():
    assert limited_to(find_model("aaknn"), 25).grid["n_neighbors"] == (20, 10, 5)
    assert limited_to(find_model("aaknn"), 3).grid["n_neighbors"] == (3,)
    assert limited_to(find_model("sabfgs"), 3) is find_model("sabfgs")


def test_candidates_in_a_pipeline():
    candidate = in_pipeline(find_model("aaknn"), TableEncoder(), 10)
    assert candidate.grid == {"model__n_neighbors": (10, 5)}
    assert candidate.class_name == "AAKNN"
    assert candidate.path == "model__n_neighbors"
    assert in_pipeline(AUTO[3], TableEncoder(), 10).path == "model__regressor__min_samples_leaf"
    assert in_pipeline(AUTO[0], TableEncoder(), 10).path == ""
    with pytest.raises(StudyError, match="PTClassifier cannot be built"):
        in_pipeline(Candidate("PTClassifier", "skldl:PTClassifier"), TableEncoder(), 10)


@pytest.mark.parametrize("word", ["aaknn", "sabfgs"])
def test_a_path_encodes_once_and_predicts_the_same(training, word):
    candidate = in_pipeline(find_model(word), TableEncoder(), 60)
    train, test = np.arange(60), np.arange(60, 120)
    X, D, new = training.X.iloc[train], training.D.to_numpy()[train], training.X.iloc[test]
    weight = np.arange(60) % 2 + 1.0
    values = candidate.grid[candidate.path][:2]
    path = candidate.make().predict_path(X, D, new, param=candidate.path, values=values, sample_weight=weight)
    for value, predicted in zip(values, path, strict=True):
        model = candidate.make({candidate.path: value}).fit(X, D, model__sample_weight=weight)
        np.testing.assert_allclose(predicted, model.predict(new), atol=1e-4)


class Flat(skldl.MeanDistribution):
    """A model that takes dense features only and predicts too little for the first label."""

    _accept_sparse = False

    def _predict(self, X):
        assert isinstance(X, np.ndarray)
        return super()._predict(X) * np.r_[0.5, np.ones(self.n_labels_ - 1)]


def test_dense_features_where_a_model_needs_them(faces):
    table = faces.assign(town=[f"t{row % 40}" for row in range(len(faces))])
    training = training_set(table, "emo_*", drop=["person"])
    assert table_pipeline(Flat(), TableEncoder()).fit(training.X, training.D).predict(training.X).shape == (120, 3)
    choice = choose_model(training, [Candidate("Flat", Flat())], TableEncoder())
    assert choice.skill[0] < 0


def test_the_choice_agrees_with_cross_validation_by_hand(training):
    choice = choose_model(training, QUICK, TableEncoder(), seed=3)
    assert choice.best.candidate.name == "SA-BFGS"
    assert choice.beats_mean
    assert [trial.candidate.name for trial in choice.candidates] == ["SA-BFGS", "Mean"]
    folds = choice_module.assign_folds(120, 5, seed=3, groups=training.groups)
    losses = np.empty(120)
    for fold in range(5):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        assert not set(training.groups[train]) & set(training.groups[test])
        model = table_pipeline(skldl.SABFGS(fit_intercept=True, **choice.best.setting), TableEncoder())
        model.fit(training.X.iloc[train], training.D.iloc[train])
        losses[test] = kullback_leibler.rowwise(training.D.iloc[test], model.predict(training.X.iloc[test]))
    assert choice.best.divergence == pytest.approx(losses.mean(), rel=1e-4)
    assert choice.skill[0] == pytest.approx(1 - losses.mean() / choice.mean_divergence, rel=1e-4)
    assert choice.skill[1] < choice.skill[0] < choice.skill[2]


def test_weights_count_in_the_choice(faces):
    table = faces.drop(columns="person").assign(w=np.arange(120) % 3 + 1.0)
    weighted = choose_model(training_set(table, "emo_*", weight="w"), QUICK, TableEncoder())
    plain = choose_model(training_set(table, "emo_*", drop=["w"]), QUICK, TableEncoder())
    assert weighted.mean_divergence != pytest.approx(plain.mean_divergence, rel=1e-6)
    forest = choose_model(training_set(table, "emo_*", weight="w"), [AUTO[3]], TableEncoder(), folds=2)
    assert forest.skill[0] > 0


def test_a_large_table_is_represented_by_some_rows(training):
    rows = _sample(training, 50, seed=0)
    assert 50 <= len(rows) <= 53
    assert np.isin(training.groups, training.groups[rows]).sum() == len(rows)
    choice = choose_model(training, QUICK, TableEncoder(), max_rows=60)
    assert 60 <= choice.n_rows <= 63
    no_groups = training_set(pd.DataFrame({"x": range(30), "a": 0.5, "b": 0.5}), ["a", "b"])
    assert len(_sample(no_groups, 10, seed=0)) == 10


def test_interval_of_the_skill():
    generator = np.random.default_rng(0)
    reference = generator.random(400) + 0.5
    losses = reference * 0.6 + generator.normal(0, 0.05, 400)
    skill, low, high = skill_interval(losses, reference, None, None, 0)
    assert low < skill < high
    assert skill == pytest.approx(0.4, abs=0.02)
    grouped = skill_interval(
        np.repeat(losses[:40], 10), np.repeat(reference[:40], 10), None, np.repeat(range(40), 10), 0
    )
    assert grouped[2] - grouped[1] > 2 * (high - low)
    assert skill_interval(losses, np.zeros(400), None, None, 0)[0] == 0


def test_nothing_beats_the_mean_where_there_is_nothing_to_learn():
    generator = np.random.default_rng(2)
    table = pd.DataFrame({"x": generator.random(100), "a": generator.random(100)})
    fitted = fit_table(table.assign(b=1 - table["a"]), ["a", "b"])
    assert fitted.choice.best.candidate.name == "Mean"
    assert any("Nothing beats predicting the mean" in line for line in fitted.warnings)
    assert fitted.description["score"]["skill"] == 0


def test_a_doubtful_gain_is_told():
    generator = np.random.default_rng(1)
    x = generator.random(40)
    a = np.clip(0.5 + 0.12 * (x - 0.5) + generator.normal(0, 0.1, 40), 0, 1)
    fitted = fit_table(pd.DataFrame({"x": x, "a": a, "b": 1 - a}), ["a", "b"], model="aa-knn")
    assert any("not clearly better" in line or "Nothing beats" in line for line in fitted.warnings)


def test_a_candidate_that_fails_is_told_and_left_out(training):
    broken = with_settings(find_model("sabfgs"), ["max_iter=-1"])
    choice = choose_model(training, [find_model("mean"), broken], TableEncoder())
    assert "max_iter=-1" in choice.failures["SA-BFGS"]
    with pytest.raises(DataError, match="SA-BFGS could not be fitted: max_iter=-1"):
        choose_model(training, [broken], TableEncoder())


def test_auto_says_why(faces):
    steps = []
    fitted = fit_table(faces.drop(columns="person"), "emo_*", source="faces.csv", on_progress=steps.append)
    assert {trial.candidate.name for trial in fitted.choice.candidates} == {"Mean", "SA-BFGS", "AA-kNN", "Forest"}
    best = fitted.choice.best.candidate.name
    assert best != "Mean"
    assert fitted.why[0].startswith(best)
    assert "The others: " in fitted.why[1]
    assert "95 % interval" in fitted.why[2]
    assert steps[0] == "fold 1 of 5: Mean"
    assert steps[-1] == f"fit of {best} on all rows"
    assert fitted.description["features"] == {"age": "number", "town": "category", "smoker": "boolean"}
    assert fitted.description["labels"] == ["emo_joy", "emo_anger", "emo_fear"]
    assert fitted.description["values"] is None
    assert list(fitted.model[-1].label_names_) == fitted.description["labels"]
    np.testing.assert_allclose(fitted.model.predict(faces).sum(axis=1), 1)


def test_ordered_labels_have_values():
    table = pd.DataFrame({"x": range(20), "1": [0.25, 0.75] * 10, "2": [0.75, 0.25] * 10})
    assert fit_table(table, ["1", "2"], model="mean").description["values"] == [1.0, 2.0]


def test_an_estimator_of_your_own(faces):
    fitted = fit_table(faces, "emo_*", drop=["person"], model="skldl.maxent:SABFGS", settings=["alpha=0.1"])
    assert fitted.choice.candidates[0].setting == {}
    assert fitted.description["estimator"] == "SABFGS(alpha=0.1)"
    with pytest.raises(StudyError, match="Ridge is no label distribution learner"):
        fit_table(faces, "emo_*", drop=["person"], model="sklearn.linear_model:Ridge")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "1 folds: at least 2"),
        ({"seed": -1}, "seed = -1 must be 0 or more"),
        ({"settings": ["alpha=1"]}, "parameters belong to a model"),
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
        fit_table(two.assign(g="one"), ["a", "b"], groups="g")
