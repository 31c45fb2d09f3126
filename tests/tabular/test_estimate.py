"""How good the model of `fit_table` says it is: nothing that has seen a row judges it, and rounding decides nothing."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import skldl
from skldl.data import from_table
from skldl.ensemble._auto import RECIPES, Recipe
from skldl.ensemble._members import Member
from skldl.metrics import kullback_leibler, skill_ratio
from skldl.selection import Candidate, assign_folds
from skldl.tabular import TableEncoder, _auto, choose_model, fit_table


class Flat(skldl.MeanDistribution):
    """A model that predicts too little for the first label."""

    def _predict(self, X):
        return super()._predict(X) * np.r_[0.5, np.ones(self.n_labels_ - 1)]


@pytest.mark.parametrize("degrees", [(0.3, 0.7), (0.1, 0.2, 0.7)])
@pytest.mark.parametrize("options", [{}, {"preset": "fast"}, {"model": "forest"}, {"model": "sa-bfgs"}])
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
    assert any("No model is better" in line for line in fitted.warnings)


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


def flattered(rows, seed):
    """A member that says of itself that it is perfect, and predicts the mean: settings that have seen every row."""
    return [Member("linear", skldl.MeanDistribution().fit(rows.X, rows.D), 1e-4, rows.D.copy(), 0.0, 0.0)]


def noise(n=40, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    scores = np.exp(0.8 * rng.normal(size=(n, 4)))
    return table.join(pd.DataFrame(scores / scores.sum(axis=1, keepdims=True), columns=["l_w", "l_x", "l_y", "l_z"]))


def test_the_estimate_of_a_small_table_rests_on_nothing_that_has_seen_the_row(monkeypatch):
    monkeypatch.setattr("skldl.ensemble._auto.RECIPES", {"linear": Recipe(flattered, lambda rows: "", 1.0)})
    table, steps = noise(), []
    fitted = fit_table(table, "l_*", on_progress=steps.append)
    assert fitted.choice.best.divergence == 0
    assert fitted.choice.nested
    assert fitted.choice.skill[0] == pytest.approx(0, abs=1e-9)  # what it predicts is the mean, also of the other folds
    assert fitted.choice.estimate.choices == (("linear", {}),) * 5
    assert steps[-1] == "estimate: the choice without fold 5 of 5"
    assert "For each fold all of it was chosen anew" in fitted.why[-1]
    assert (fitted.choice.n_folds, fitted.choice.n_rows) == (5, 40)
    monkeypatch.setattr(_auto, "NESTED_ROWS", 39)
    larger = fit_table(table, "l_*")
    assert not larger.choice.nested
    assert larger.choice.skill[0] == 1
    assert "the skill is slightly too high" in larger.why[-1]


def test_the_nested_estimate_is_that_of_a_plain_loop(monkeypatch):
    quick = {name: RECIPES[name] for name in ("linear", "neighbours")}
    monkeypatch.setattr("skldl.ensemble._auto.RECIPES", quick)
    table = sums_and_products(60).assign(person=np.repeat(np.arange(20), 3), w=np.linspace(0.5, 2, 60))
    estimate = fit_table(table, "l_*", groups="person", weight="w", random_state=3).choice.estimate
    fold_of = assign_folds(60, 5, random_state=3, groups=table["person"].to_numpy())
    monkeypatch.setattr(_auto, "NESTED_ROWS", 0)
    for fold in range(5):
        part, own = table[fold_of != fold].reset_index(drop=True), table[fold_of == fold]
        model = fit_table(part, "l_*", groups="person", weight="w", random_state=3).model
        D = own[["l_x", "l_y", "l_z"]].to_numpy()
        rows = fold_of == fold
        np.testing.assert_allclose(estimate.losses[rows], kullback_leibler.rowwise(D, model.predict(own)), rtol=1e-6)
        mean = np.average(part[["l_x", "l_y", "l_z"]], axis=0, weights=part["w"])
        reference = kullback_leibler.rowwise(D, np.tile(mean, (len(D), 1)))
        np.testing.assert_allclose(estimate.reference[rows], reference, rtol=1e-6)
    assert estimate.loss == pytest.approx(np.average(estimate.losses, weights=table["w"]))


def test_what_is_too_little_or_too_slow_for_a_nested_estimate(monkeypatch):
    quick = {name: RECIPES[name] for name in ("linear", "neighbours")}
    monkeypatch.setattr("skldl.ensemble._auto.RECIPES", quick)
    for n_groups, n_folds in ((2, None), (3, 3), (9, 5)):
        choice = fit_table(noise().assign(who=np.arange(40) % n_groups), "l_*", groups="who").choice
        assert (choice.nested, choice.n_folds if choice.nested else None) == (n_folds is not None, n_folds)
    assert not fit_table(noise(), "l_*", budget=1e-6).choice.nested
    assert fit_table(noise(), "l_*", budget="1h").choice.nested


@pytest.mark.slow
@pytest.mark.parametrize(("strength", "n"), [(0.0, 40), (0.5, 60)])
def test_the_estimate_of_small_tables_is_not_too_good(monkeypatch, strength, n):
    """Of pure noise, and with a signal; it may be a little too low, since each model learns from four fifths."""
    quick = {name: RECIPES[name] for name in ("linear", "neighbours", "kernel")}
    monkeypatch.setattr("skldl.ensemble._auto.RECIPES", quick)
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
