"""The one search: what it tries, what it chooses, what it says about failures, and what ends it."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.preprocessing import StandardScaler

from skldl import AAKNN, BaseLDL, MeanDistribution
from skldl.data import Dataset
from skldl.exceptions import StudyError
from skldl.metrics import MEASURES, kullback_leibler, skill_of_losses, skill_ratio
from skldl.selection import (
    BASELINE,
    Candidate,
    assign_folds,
    estimate_choice,
    pairs_of,
    search,
)

GRID = Candidate("AA-kNN", "skldl:AAKNN", grid={"weights": ("uniform", "distance"), "n_neighbors": (2, 9)})


def make_dataset(n=48, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    D = np.exp(X @ rng.normal(size=(3, 4)) + rng.normal(scale=0.4, size=(n, 4)))
    return Dataset("d", X, D / D.sum(axis=1, keepdims=True), **options)


@pytest.fixture(scope="module")
def pairs():
    return list(pairs_of(assign_folds(48, 3, random_state=0)))


@pytest.mark.parametrize("criterion", ["kullback_leibler", "cosine"])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_separate_fits(pairs, criterion, weighted):
    weight = np.linspace(1, 3, 48) if weighted else None
    dataset = make_dataset(sample_weight=weight)
    (trials,) = search(dataset, [GRID], pairs, criterion=criterion).trials
    for number, (fit, validation) in enumerate(pairs):
        for place, setting in enumerate(GRID.settings):
            extra = {} if weight is None else {"sample_weight": weight[fit]}
            predicted = AAKNN(**setting).fit(dataset.X[fit], dataset.D[fit], **extra).predict(dataset.X[validation])
            held = None if weight is None else weight[validation]
            expected = MEASURES[criterion](dataset.D[validation], predicted, held)
            assert trials.values[number, place] == expected
            rows = MEASURES[criterion].rowwise(dataset.D[validation], predicted)
            np.testing.assert_array_equal(trials.rows[number][place], rows)
    best = np.argmax if criterion == "cosine" else np.argmin
    assert trials.best() == best(trials.values.mean(axis=0))


def test_an_encoder_learns_from_the_rows_to_fit_on_alone(pairs):
    dataset = make_dataset()
    (trials,) = search(dataset, [Candidate("k", "skldl:AAKNN")], pairs, encoder=StandardScaler()).trials
    fit, validation = pairs[0]
    scaler = StandardScaler().fit(dataset.X[fit])
    model = AAKNN().fit(scaler.transform(dataset.X[fit]), dataset.D[fit])
    predicted = model.predict(scaler.transform(dataset.X[validation]))
    assert trials.values[0, 0] == kullback_leibler(dataset.D[validation], predicted)


class OutOfMemoryError(RuntimeError):
    """As torch has it."""


class Moody(BaseLDL):
    """Works, fails, or runs out of memory or disk, as it is reported."""

    def __init__(self, mood="good"):
        self.mood = mood

    def _fit(self, X, D, sample_weight):
        errors = {"bad": ValueError, "memory": MemoryError, "disk": OSError, "stop": KeyboardInterrupt}
        errors["device"] = OutOfMemoryError
        if self.mood in errors:
            raise errors[self.mood](f"mood {self.mood}")
        self.mean_ = D.mean(axis=0)

    def _predict(self, X):
        return np.tile(self.mean_, (X.shape[0], 1))


@pytest.mark.parametrize("path", ["", "mood"])
def test_a_setting_that_fails_is_out_and_its_reason_is_kept(pairs, path):
    candidate = Candidate("m", Moody(), grid={"mood": ("bad", "good")}, path=path)
    result = search(make_dataset(), [candidate], pairs)
    trials, place = result.best()
    assert trials.settings[place] == {"mood": "good"}
    assert np.isnan(trials.means[0])
    own = [failure for failure in result.failures if "predict_path" not in failure.reason]
    assert [(f.candidate, dict(f.setting), f.reason) for f in own] == [
        ("m", {"mood": "bad"}, "ValueError: mood bad")
    ] * 3
    assert len(result.failures) - len(own) == (3 if path else 0)  # the path that broke is reported as well
    with pytest.raises(StudyError, match=r"No candidate could be fitted\. First: {'mood': 'bad'}: ValueError"):
        search(make_dataset(), [Candidate("m", Moody("good"), grid={"mood": ("bad",)})], pairs).best()


@pytest.mark.parametrize(
    ("mood", "error"),
    [("memory", MemoryError), ("device", OutOfMemoryError), ("disk", OSError), ("stop", KeyboardInterrupt)],
)
@pytest.mark.parametrize("path", ["", "mood"])
def test_faults_of_the_machine_end_the_search(pairs, mood, error, path):
    candidate = Candidate("m", Moody(), grid={"mood": ("good", mood)}, path=path)
    with pytest.raises(error, match=f"mood {mood}"):
        search(make_dataset(), [candidate], pairs)


class Parabola(MeanDistribution):
    """Its loss has its least at x = 0.02, whatever the data."""

    def __init__(self, x=1.0):
        self.x = x

    def _predict(self, X):
        worse = min(0.9, abs(np.log(self.x / 0.02)) / 20)
        rows = super()._predict(X)
        return (1 - worse) * rows + worse * np.eye(rows.shape[1])[0]


@pytest.mark.parametrize(
    ("grid", "least"),
    [((1.0, 0.1, 0.01, 0.001), 0.0125), ((100.0, 10.0), 0.0), ((1e-5, 1e-4), 0.0), ((0.001, 0.01, 0.1), 0.0125)],
)
def test_a_grid_is_refined_around_its_best_value(pairs, grid, least):
    candidate = Candidate("p", Parabola(), grid={"x": grid}, refine="x")
    trials, place = search(make_dataset(), [candidate], pairs).best()
    assert len(trials.settings) > len(grid)
    assert len({setting["x"] for setting in trials.settings}) == len(trials.settings)
    distance = abs(np.log(trials.settings[place]["x"] / 0.02))
    assert distance < min(abs(np.log(value / 0.02)) for value in grid)
    if least:
        assert distance < abs(np.log(least / 0.02))
    np.testing.assert_array_equal(
        trials.means[: len(grid)],
        search(make_dataset(), [Candidate("p", Parabola(), grid={"x": grid})], pairs).trials[0].means,
    )


def test_whole_numbers_stay_whole_when_refined(pairs):
    candidate = Candidate(
        "k", "skldl:AAKNN", grid={"n_neighbors": (1, 4, 16)}, path="n_neighbors", refine="n_neighbors"
    )
    (trials,) = search(make_dataset(), [candidate], pairs).trials
    assert all(isinstance(setting["n_neighbors"], int) and setting["n_neighbors"] > 0 for setting in trials.settings)
    assert len(trials.settings) > 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"refine": "y"}, "refine = 'y' is not a hyper-parameter of its grid"),
        ({"refine": "x", "grid": {"x": (0.0, 1.0)}}, "refine = 'x' needs a grid of positive numbers"),
        ({"refine": "x", "grid": {"x": ("a", "b")}}, "refine = 'x' needs a grid of positive numbers"),
        ({"natural": {"y": (1,)}}, "natural = 'y' is not a hyper-parameter of its grid"),
    ],
)
def test_refinement_needs_numbers(options, message):
    with pytest.raises(StudyError, match=message):
        Candidate("c", "skldl:AAKNN", **{"grid": {"x": (1.0, 2.0)}} | options)


def test_progress_names_fold_and_candidate(pairs):
    reported = []
    search(make_dataset(), [BASELINE, GRID], pairs, on_progress=reported.append)
    assert reported[:3] == ["fold 1 of 3: Mean", "fold 1 of 3: AA-kNN", "fold 2 of 3: Mean"]


def test_the_estimate_leaves_out_settings_that_failed_anywhere(pairs):
    class Fickle(Moody):
        def _fit(self, X, D, sample_weight):
            if self.mood == "bad" and X[0, 0] == dataset.X[pairs[1][0][0], 0]:
                raise ValueError("only here")
            self.mean_ = D.mean(axis=0)

    dataset = make_dataset()
    candidate = Candidate("m", Fickle(), grid={"mood": ("good", "bad")})
    result = search(dataset, [BASELINE, candidate], pairs)
    estimate = estimate_choice(dataset, result, result.trials[0])
    assert np.isfinite(estimate.losses).all()
    assert sorted(estimate.rows) == list(range(48))
    assert estimate.skill == pytest.approx(0, abs=1e-12)


def test_the_estimate_of_a_similarity_is_in_losses(pairs):
    dataset = make_dataset()
    result = search(dataset, [BASELINE, GRID], pairs, criterion="cosine")
    estimate = estimate_choice(dataset, result, result.trials[0])
    assert 0 < estimate.loss < estimate.reference_loss < 1
    assert 0 < estimate.skill.low < estimate.skill < estimate.skill.high


def test_skill_of_losses():
    generator = np.random.default_rng(0)
    reference = generator.random(400) + 0.5
    losses = reference * 0.6 + generator.normal(0, 0.05, 400)
    plain = skill_of_losses(losses, reference)
    assert plain == pytest.approx(0.4, abs=0.02)
    assert plain.low < plain < plain.high
    groups = np.repeat(np.arange(40), 10)
    grouped = skill_of_losses(np.repeat(losses[:40], 10), np.repeat(reference[:40], 10), groups=groups)
    assert grouped.high - grouped.low > 2 * (plain.high - plain.low)
    weighted = skill_of_losses([1.0, 3.0], [2.0, 4.0], sample_weight=[1.0, 3.0])
    assert weighted == pytest.approx(1 - 10 / 14)
    assert skill_of_losses([0.0, 0.0], [0.0, 0.0]) == 0
    np.testing.assert_array_equal(skill_ratio([0.1, np.nan, 0.2], [0.2, 0.0, 0.0]), [0.5, np.nan, -np.inf])


def test_nested_estimators_of_a_grid_are_copied_and_seeded():
    forests = (RandomForestRegressor(5), RandomForestRegressor(9))
    candidate = Candidate("forest", "skldl:AARegressor", params={"regressor": forests[0]}, grid={"regressor": forests})
    made = [candidate.make({"regressor": forests[1]}, seed) for seed in (3, 4)]
    assert [model.regressor.random_state for model in made] == [3, 4]
    assert forests[1].random_state is None


class Careless(Moody):
    """Its path gives one prediction more, or one fewer, than values."""

    def __init__(self, mood="good", k=0, extra=0):
        self.mood = mood
        self.k = k
        self.extra = extra

    def predict_path(self, X, y, X_new, *, param, values, sample_weight=None):
        yield from [np.full((len(X_new), 4), 0.25)] * (len(values) + self.extra)


@pytest.mark.parametrize(("extra", "reported"), [(1, "more than 2"), (-1, "1")])
def test_a_path_with_the_wrong_number_of_predictions_is_not_used(pairs, extra, reported):
    """Otherwise the predictions of all later settings would stand in the wrong places."""
    grid = {"mood": ("good", "fine"), "k": (1, 2)}
    candidate = Candidate("c", Careless(extra=extra), grid=grid, path="k")
    (trials,) = search(make_dataset(), [candidate], pairs).trials
    (alone,) = search(make_dataset(), [Candidate("c", Careless(), grid=grid)], pairs).trials
    np.testing.assert_array_equal(trials.values, alone.values)
    assert [failure.reason for failure in trials.failures] == [
        f"predict_path over k returned {reported} predictions for 2 values"
    ] * (2 * len(pairs))


def test_there_is_no_estimate_by_a_similarity_without_bound(pairs):
    dataset = make_dataset()
    result = search(dataset, [BASELINE, GRID], pairs, criterion="kulczynski_s")
    with pytest.raises(StudyError, match=r"has no upper bound.*Choose another criterion"):
        estimate_choice(dataset, result, result.trials[0])
