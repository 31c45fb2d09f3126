"""How good the model of `fit_table` says it is: nothing that has seen a row judges it, and rounding decides nothing."""

import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import softmax

import skldl
from skldl.data import Columns, from_table
from skldl.exceptions import TableError
from skldl.metrics import Skill, kullback_leibler, skill_ratio
from skldl.selection import BASELINE, Candidate, assign_folds, hold_out
from skldl.tabular import FitOptions, TableEncoder, choose_model, fit_table


class Flat(skldl.MeanDistribution):
    """A model that predicts too little for the first label."""

    def _predict(self, X):
        return super()._predict(X) * np.r_[0.5, np.ones(self.n_labels_ - 1)]


@pytest.mark.parametrize("degrees", [(0.3, 0.7), (0.1, 0.2, 0.7)])
@pytest.mark.parametrize(
    "options", [{}, {"options": FitOptions(preset="fast")}, {"model": "forest"}, {"model": "sa-bfgs"}]
)
def test_labels_that_never_vary_leave_nothing_to_gain(degrees, options):
    """Neither the model nor the mean has a loss but for rounding: the skill was 100 % or −∞ by chance."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(45, 3)), columns=list("abc"))
    for j, degree in enumerate(degrees):
        table[f"l{j}"] = degree
    fitted = fit_table(table, "l*", **options)
    assert fitted.choice.expectation == (
        "Skill 0.0% (95 % interval 0.0% to 0.0%) to be expected on new rows: divergence 0 against 0 of always "
        "predicting the mean."
    )
    assert fitted.choice.skill == (0, 0, 0)
    doubt = "This model is not better" if "model" in options else "No model is better"
    assert any(doubt in line for line in fitted.warnings)


def test_a_model_with_a_loss_against_a_mean_without_one():
    table = pd.DataFrame({"x": range(30), "a": 0.5, "b": 0.5})
    choice = choose_model(from_table(table, ["a", "b"]), [Candidate("flat", Flat())], TableEncoder())
    assert choice.skill == (-np.inf, -np.inf, -np.inf)
    assert choice.expectation.startswith("Skill −∞ (95 % interval −∞ to −∞)")


def sums_and_products(n=240, seed=0):
    """A linear part, which the linear member sees best, and a product, which the others do."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.uniform(-2, 2, size=(n, 4)), columns=list("abcd"))
    scores = np.c_[table.a, np.sin(3 * table.b) * 2, (table.c > 0) * table.d] + rng.normal(scale=0.3, size=(n, 3))
    D = np.exp(scores)
    labels = pd.DataFrame(D / D.sum(axis=1, keepdims=True), columns=["l_x", "l_y", "l_z"])
    return pd.concat([table, labels], axis=1)


def flattered(rows):
    """A member whose held-out predictions are perfect, but that predicts the mean: its settings have seen every row."""
    return skldl.MeanDistribution().fit(rows.X, rows.D), 0.0, rows.D.copy()


def noise(n=40, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    scores = np.exp(0.8 * rng.normal(size=(n, 4)))
    return table.join(pd.DataFrame(scores / scores.sum(axis=1, keepdims=True), columns=["l_w", "l_x", "l_y", "l_z"]))


def test_the_estimate_of_a_small_table_rests_on_nothing_that_has_seen_the_row(pool_of, monkeypatch):
    pool_of(made=flattered)
    table, steps = noise(), []
    fitted = fit_table(table, "l_*", on_progress=steps.append)
    assert fitted.choice.best.divergence == 0
    assert fitted.choice.nested
    assert fitted.choice.skill[0] == pytest.approx(0, abs=1e-9)  # what it predicts is the mean, also of the other folds
    assert fitted.choice.estimate.choices == (("linear", {}),) * 5
    assert steps[-1] == "estimate: the choice without fold 5 of 5"
    assert "For each fold settings, pool weights and model were chosen on the other folds" in fitted.why[-1]
    assert (fitted.choice.n_folds, fitted.choice.n_rows) == (5, 40)
    monkeypatch.setattr("skldl.tabular._choice.NESTED_ROWS", 39)
    larger = fit_table(table, "l_*")
    assert not larger.choice.nested
    assert larger.choice.skill[0] == 1
    assert "the skill is slightly too high" in larger.why[-1]


def test_the_nested_estimate_is_that_of_a_plain_loop(pool_of, monkeypatch):
    pool_of("linear", "neighbours")
    table = sums_and_products(60).assign(person=np.repeat(np.arange(20), 3), w=np.linspace(0.5, 2, 60))
    estimate = fit_table(table, Columns("l_*", weight="w", groups="person"), random_state=3).choice.estimate
    fold_of = assign_folds(60, 5, random_state=3, groups=table["person"].to_numpy())
    monkeypatch.setattr("skldl.tabular._choice.NESTED_ROWS", 0)
    for fold in range(5):
        part, own = table[fold_of != fold].reset_index(drop=True), table[fold_of == fold]
        model = fit_table(part, Columns("l_*", weight="w", groups="person"), random_state=3).model
        D = own[["l_x", "l_y", "l_z"]].to_numpy()
        rows = fold_of == fold
        np.testing.assert_allclose(estimate.losses[rows], kullback_leibler.rowwise(D, model.predict(own)), rtol=1e-6)
        mean = np.average(part[["l_x", "l_y", "l_z"]], axis=0, weights=part["w"])
        reference = kullback_leibler.rowwise(D, np.tile(mean, (len(D), 1)))
        np.testing.assert_allclose(estimate.reference[rows], reference, rtol=1e-6)
    assert estimate.loss == pytest.approx(np.average(estimate.losses, weights=table["w"]))


def test_what_is_too_little_or_too_slow_for_a_nested_estimate(pool_of):
    pool_of("linear", "neighbours")
    for n_groups, n_folds in ((2, None), (3, 3), (9, 5)):
        choice = fit_table(noise().assign(who=np.arange(40) % n_groups), Columns("l_*", groups="who")).choice
        assert (choice.nested, choice.n_folds if choice.nested else None) == (n_folds is not None, n_folds)
    assert not fit_table(noise(), "l_*", options=FitOptions(budget=1e-6)).choice.nested
    assert fit_table(noise(), "l_*", options=FitOptions(budget="1h")).choice.nested


class Screen:
    """What shows progress: like a screen it holds a lock, which cannot be copied."""

    def __init__(self):
        self.lock, self.lines = threading.RLock(), []

    def show(self, line):
        with self.lock:
            self.lines.append(line)


def test_progress_may_be_a_method_of_what_cannot_be_copied():
    screen = Screen()
    assert fit_table(noise(), "l_*", on_progress=screen.show).choice.nested
    assert screen.lines[0].startswith("fitting linear")


def bad(rows):
    """A member that is so bad that the mean distribution is chosen."""
    model = Flat().fit(rows.X, rows.D)
    return model, 1.0, np.tile(model.predict(rows.X[:1]), (len(rows.D), 1))


def test_where_every_fold_chooses_the_mean_the_skill_is_exactly_zero(pool_of):
    pool_of(made=bad)
    fitted = fit_table(noise(), "l_*")
    assert fitted.choice.nested
    assert fitted.choice.best.candidate.is_baseline
    np.testing.assert_array_equal(fitted.choice.estimate.losses, fitted.choice.estimate.reference)
    assert fitted.choice.skill == (0, 0, 0)
    assert fitted.choice.of_choosing is None
    assert fitted.why[-1].startswith("Skill 0.0% (95 % interval 0.0% to 0.0%) to be expected on new rows")
    assert fitted.why[-1].endswith("always predicting the mean.")
    assert any("No model is better" in line for line in fitted.warnings)
    assert fitted.description["score"]["nested"] is True


@pytest.mark.parametrize("options", [FitOptions(), FitOptions(preset="fast"), FitOptions(intervals=True)])
def test_a_mean_that_was_kept_is_judged_as_the_mean(pool_of, options):
    """It was said to have the skill of the choice, which took other models from other rows."""
    pool_of("linear")
    found = False
    for seed in range(6):
        fitted = fit_table(noise(seed=seed), "l_*", random_state=seed, options=options)
        if not fitted.choice.best.candidate.is_baseline or fitted.choice.of_choosing is None:
            continue
        found = True
        score = fitted.description["score"]
        assert (score["skill"], score["skill_low"], score["skill_high"]) == (0, 0, 0)
        assert (
            score["kullback_leibler"] == score["kullback_leibler_of_mean"] == fitted.choice.of_choosing.reference_loss
        )
        assert fitted.choice.of_choosing.skill != 0
        said = "The mean distribution was chosen: its skill is 0, and a divergence of "
        assert said in fitted.why[-1] or said in fitted.why[-2]
        assert any("The choice, repeated on other rows, had a skill of " in line for line in fitted.why)
        assert any("No model is better" in line for line in fitted.warnings)
    assert found


def test_a_label_of_a_single_row_gives_no_skill(pool_of):
    """The mean of the other folds gives it nothing: its row had a loss of 36, and any model with a trace of it won."""

    class Trace(skldl.MeanDistribution):
        def _predict(self, X):
            return 0.999 * super()._predict(X) + 0.001 / self.n_labels_

    def trace(rows):
        return Trace().fit(rows.X, rows.D), 0.0, rows.D.copy()

    pool_of(made=trace)
    table = noise(60).assign(l_z=0.0)
    table.loc[5, ["l_w", "l_x", "l_y", "l_z"]] = [0.0, 0.0, 0.0, 1.0]
    table.loc[table.index != 5, ["l_w", "l_x", "l_y"]] = table[["l_w", "l_x", "l_y"]].pipe(
        lambda t: t.div(t.sum(axis=1), axis=0)
    )
    fitted = fit_table(table, "l_*")
    assert fitted.choice.nested
    assert fitted.choice.estimate.reference[5] == pytest.approx(-np.log(1 / 4 / 49), rel=0.02)
    assert abs(fitted.choice.skill[0]) < 0.02
    assert any(line.startswith("The label 'l_z' occurs in the rows of one fold only") for line in fitted.warnings)
    quick = fit_table(table, "l_*", model="sa-bfgs")
    assert any(line.startswith("The label 'l_z' occurs in the rows of one fold only") for line in quick.warnings)


@pytest.mark.parametrize(
    "options",
    [{}, {"model": "sa-bfgs"}, {"model": "sa-bfgs", "options": FitOptions(intervals=True)}],
)
def test_what_a_single_row_shows_of_a_column_holds_in_every_fold(pool_of, options):
    """A word among numbers, a date that alone says which part is the month, text that is empty elsewhere."""
    pool_of("linear")
    row = hold_out(60, 0.25, random_state=0)[1][0]  # one of those kept for intervals
    table = noise(60).assign(remark=None, day="03/04/2024", answer="yes", prose="")
    table.loc[[row - 1, row + 1], "remark"] = ["3", "8"]
    table.loc[row, ["remark", "day", "answer", "prose"]] = ["ill", "03/25/2024", "7", "a long and sunny day"]
    fitted = fit_table(table, Columns("l_*", text=["prose"]), **options)
    kinds = {"remark": "category", "day": "date", "answer": "category", "prose": "text"}
    assert {name: fitted.description["features"][name] for name in kinds} == kinds
    assert fitted.choice.nested is not bool(options)
    assert not fitted.choice.failures


@pytest.mark.parametrize(
    ("cells", "ngrams", "message"),
    [
        ([""], "auto", "The text column 'prose' is empty in every row"),
        (["a", "b"], "words", "The text column 'prose' holds no word of two letters or more"),
        (["a b c"], "auto", "The text column 'prose' holds no word of two letters or more"),
    ],
)
def test_a_text_column_without_text_is_refused(cells, ngrams, message):
    table = noise(60).assign(prose=(cells * 60)[:60])
    with pytest.raises(TableError, match=message):
        fit_table(table, Columns("l_*", text=["prose"], text_ngrams=ngrams), model="sa-bfgs")


def test_labels_of_one_fold_are_those_that_a_model_has_not_seen():
    table = noise(60).assign(l_z=0.0)
    table.loc[[50, 51], ["l_w", "l_x", "l_y", "l_z"]] = [0.0, 0.0, 0.0, 1.0]
    table["l_w"] = 1 - table[["l_x", "l_y", "l_z"]].sum(axis=1)
    dataset = from_table(table, "l_*").changed(splits=np.repeat([-1, 1, 0], [40, 10, 10])[:, None])

    def notes(dataset):
        return choose_model(dataset, [BASELINE], TableEncoder()).notes

    assert notes(dataset)[0].startswith("The label 'l_z' occurs in the rows of one fold only")
    for other in (3, 45):  # a row that always trains, and one of the other fold
        D = dataset.D.copy()
        D[other] = [0.0, 0.0, 0.0, 1.0]
        assert notes(dataset.changed(D=D)) == ()
        weight = np.ones(60)
        weight[other] = 0.0
        assert len(notes(dataset.changed(D=D, sample_weight=weight))) == 1


def test_rows_without_weight_are_left_out_of_a_dataset(pool_of):
    pool_of("linear")
    table = noise(45)
    weight = np.r_[np.zeros(5), np.ones(40)]
    fitted = fit_table(from_table(table, "l_*").changed(sample_weight=weight), "l_*")
    assert fitted.description["rows"] == 40
    other = fit_table(table.assign(w=weight), Columns("l_*", weight="w"))
    np.testing.assert_allclose(fitted.model.predict(table), other.model.predict(table), atol=1e-12)


def test_a_table_of_polars():
    fitted = fit_table(pl.from_pandas(noise(40)), "l_*", model="sa-bfgs")
    assert fitted.description["label_columns"] == ["l_w", "l_x", "l_y", "l_z"]


def test_a_fold_that_cannot_be_fitted_costs_the_nested_estimate_alone(pool_of):
    pool_of("linear")
    table = noise(60)[["l_w", "l_x", "l_y", "l_z"]].assign(prose="")
    table.loc[31, "prose"] = "a long and sunny day"
    fitted = fit_table(table, Columns("l_*", text=["prose"]))
    assert "Nothing is left to learn from: in these rows the text columns 'prose' hold no text" in fitted.warnings[0]
    assert not fitted.choice.nested
    assert np.isfinite(fitted.choice.skill[0])
    assert any("could not be repeated without one of the folds" in line for line in fitted.warnings)


def test_where_there_are_many_numbers_the_estimate_is_not_nested(pool_of, monkeypatch):
    pool_of("linear")
    monkeypatch.setattr("skldl.tabular._choice.NESTED_CELLS", 40 * 5 - 1)
    assert not fit_table(noise(40), "l_*").choice.nested
    monkeypatch.setattr("skldl.tabular._choice.NESTED_CELLS", 40 * 5)
    assert fit_table(noise(40), "l_*").choice.nested


class Nearly(skldl.MeanDistribution):
    """A model that differs from the mean distribution by rounding, for the better in every row."""

    def _predict(self, X):
        return super()._predict(X) * (1 + np.r_[1e-15, np.zeros(self.n_labels_ - 1)])


@pytest.mark.parametrize(("low", "beats"), [(1e-10, False), (1e-8, True), (-0.1, False)])
def test_a_skill_of_rounding_size_is_none(low, beats):
    choice = fit_table(noise(30), "l_*", model="mean").choice
    estimate = replace(choice.estimate, skill=Skill(low + 0.1, low, low + 0.2, 0.95))
    assert replace(choice, estimate=estimate).beats_mean == beats


def test_of_the_mean_alone_it_is_not_said_that_nothing_is_better():
    assert fit_table(noise(30), "l_*", model="mean").warnings == []


@pytest.mark.parametrize("n", [60, 310])
@pytest.mark.parametrize("options", [FitOptions(), FitOptions(preset="fast"), FitOptions(budget="1h")])
@pytest.mark.parametrize("row", [(0.0, 0.0, 1.0), (0.2, 0.3, 0.5)])
def test_rows_that_are_all_alike_leave_no_skill(n, options, row):
    """The floor of the mean distribution counted as a loss, of which models removed everything."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 3)), columns=list("abc"))
    fitted = fit_table(table.assign(l_a=row[0], l_b=row[1], l_c=row[2]), "l_*", options=options)
    assert fitted.choice.best.candidate.is_baseline
    assert fitted.choice.skill == (0, 0, 0)
    assert (fitted.choice.estimate.loss, fitted.choice.estimate.reference_loss) == (0, 0)
    assert all(trial.divergence >= 0 for trial in fitted.choice.candidates)


def test_a_label_that_no_row_has_does_not_change_the_estimate():
    table = noise(60)
    table["x1"] = table["l_w"]
    without, with_it = (fit_table(some, "l_*").choice.estimate for some in (table, table.assign(l_none=0.0)))
    assert without.loss == pytest.approx(with_it.loss, rel=1e-3)
    assert without.reference_loss == pytest.approx(with_it.reference_loss, rel=1e-9)


def test_of_equals_the_mean_distribution_is_first():
    dataset = from_table(sums_and_products(), "l_*")
    equal, better = Candidate("equal", Nearly()), Candidate("linear", "skldl:SABFGS")
    for candidates, expected in (
        ([equal, BASELINE], ["Mean", "equal"]),
        ([equal, better], ["linear", "Mean", "equal"]),
    ):
        choice = choose_model(dataset, [*candidates, BASELINE][: 2 + (better in candidates)], TableEncoder())
        assert [trial.candidate.name for trial in choice.candidates] == expected


@pytest.mark.slow
@pytest.mark.parametrize(("strength", "n"), [(0.0, 40), (0.5, 60)])
def test_the_estimate_of_small_tables_is_not_too_good(pool_of, strength, n):
    """Of pure noise, and with a signal; it may be a little too low, since each model learns from four fifths."""
    pool_of("linear", "neighbours", "kernel")
    weights = np.random.default_rng(11).normal(size=(5, 4))

    def draw(n, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 5))
        return X, softmax(strength * X @ weights + 0.8 * rng.normal(size=(n, 4)), axis=1)

    X_new, D_new = draw(3000, 10**6)
    new, names = pd.DataFrame(X_new, columns=list("abcde")), ["l_w", "l_x", "l_y", "l_z"]
    too_good = []
    for seed in range(40):
        X, D = draw(n, seed)
        table = pd.DataFrame(np.hstack([X, D]), columns=[*"abcde", *names])
        fitted = fit_table(table, names, random_state=seed)
        mean = np.tile(D.mean(axis=0), (len(D_new), 1))
        truth = skill_ratio(kullback_leibler(D_new, fitted.model.predict(new)), kullback_leibler(D_new, mean))
        too_good.append(fitted.choice.skill[0] - float(truth))
    error = np.std(too_good, ddof=1) / np.sqrt(len(too_good))
    assert -0.05 < np.mean(too_good) < 2 * error
