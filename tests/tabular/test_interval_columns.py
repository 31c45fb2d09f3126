"""Tables with votes and intervals: noise floor in the message, calibration rows, columns of `skldl predict`, files."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import skldl
from skldl.data import Columns
from skldl.exceptions import DataError
from skldl.tabular import FitOptions, fit_table

WEIGHTS = np.random.default_rng(1).normal(size=(3, 3))
LABELS = ["v0", "v1", "v2"]


def votes(seed, n_rows, n_votes=20, slope=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    counts = rng.multinomial(n_votes, softmax(slope * X @ WEIGHTS, axis=1))
    return pd.DataFrame(X, columns=list("abc")).assign(**{f"v{j}": counts[:, j] for j in range(3)})


def fractions(seed, n_rows):
    table = votes(seed, n_rows)
    return table.assign(**{name: table[name] / 20 for name in LABELS})


@pytest.fixture(scope="module")
def fitted():
    return fit_table(votes(0, 800), Columns("v*", kind="counts"), model="sa-bfgs", options=FitOptions(intervals=True))


@pytest.fixture
def predict(tmp_path, monkeypatch, cli):
    """Run ``skldl predict`` with a model and a table; returns the predictions and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(fitted, table, options):
        skldl.save(fitted.model, "m.skldl", description=fitted.description)
        table.to_csv("t.csv", index=False)
        said = cli(f"predict m.skldl t.csv --out p.csv --overwrite {options}").err
        return pd.read_csv("p.csv"), said

    return run


def within(table, D):
    """Which rows of D lie between the ends of all their intervals."""
    low, high = (table[[f"{side}_{name}" for name in LABELS]].to_numpy() for side in ("low", "high"))
    assert (low.sum(axis=1) <= 1 + 1e-5).all()
    assert (high.sum(axis=1) >= 1 - 1e-5).all()
    return ((low <= D) & (high >= D)).all(axis=1)


def test_the_message_names_the_floor_and_the_share_explained(fitted):
    score = fitted.description["score"]
    assert score["noise_floor"] == pytest.approx(0.05, abs=0.005)
    assert 0 < score["noise_floor_error"] < 0.01
    assert score["noise_floor"] < score["noise_floor_smoothed"] < 1.3 * score["noise_floor"]
    assert 0.95 < score["explained"] <= 1.02  # the model is the true one
    assert any(line.startswith("Noise floor 0.0") and "20 votes a row" in line for line in fitted.why)
    nothing = fit_table(votes(0, 300, slope=0.0), Columns("v*", kind="counts"), model="mean")
    assert nothing.description["score"]["explained"] is None or nothing.description["score"]["explained"] < 0.2
    without = fit_table(fractions(0, 100), "v*", model="mean")
    assert "noise_floor" not in without.description["score"]
    assert not any("Noise floor" in line for line in without.why)


def test_intervals_cover_the_fractions_of_as_many_votes(fitted, predict):
    assert fitted.description["intervals"] == fitted.model.intervals_.n_rows_ == 200
    assert fitted.description["rows"] == 600
    assert "cover the fractions of votes of a new row" in fitted.why[-1]
    new = votes(5, 3000)
    table, _ = predict(fitted, new, "--level 0.9")
    D = new[LABELS].to_numpy() / 20
    assert within(table, D).mean() == pytest.approx(0.9, abs=0.05)
    distance = 0.5 * np.abs(D - table[LABELS].to_numpy()).sum(axis=1)
    assert (distance <= table["radius"]).mean() == pytest.approx(0.9, abs=0.05)
    lower, upper, radius = fitted.model.intervals_.around(table[LABELS].to_numpy(), 0.9)
    for found, ends in (("low", lower), ("high", upper)):
        np.testing.assert_allclose(table[[f"{found}_{name}" for name in LABELS]], ends, atol=1e-6)
    np.testing.assert_allclose(table["radius"], radius, atol=1e-6)


def test_intervals_cover_the_true_distribution_if_asked_to(fitted, predict):
    new = votes(5, 2000)
    truth = softmax(new[list("abc")].to_numpy() @ WEIGHTS, axis=1)
    given, true = (predict(fitted, new, f"--level 0.9 --covers {covers}")[0] for covers in ("given", "true"))
    assert within(true, truth).mean() >= 0.9
    assert true["radius"][0] < 0.9 * given["radius"][0]
    assert "--covers true" in fitted.why[-1]
    _, said = predict(fitted, new[:5], "--level 0.999 --covers true")
    assert "200 calibration rows are too few for the level 0.999" in said
    assert "Use a lower --level" in said


def test_names_that_are_taken_get_an_underscore_and_none_is_lost(predict):
    table = fractions(0, 60).set_axis(["low_a", "b1", "c1", "a", "a_", "radius"], axis=1)
    fitted = fit_table(table, ["a", "a_", "radius"], model="mean", options=FitOptions(intervals=True))
    columns = [*("low_a", "a", "a_", "radius", "top", "entropy", "low_a_", "high_a", "low_a__", "high_a_")]
    columns += ["low_radius", "high_radius", "radius_"]
    for rows in (table[:4], table[:0]):
        found, _ = predict(fitted, rows, "--level 0.5 --keep low_a")
        assert list(found) == columns
        assert len(found) == len(rows)


def test_only_votes_tell_of_a_true_distribution(predict, cli):
    fitted = fit_table(fractions(0, 60), "v*", model="mean", options=FitOptions(intervals=True))
    predict(fitted, votes(1, 5), "--level 0.5")
    said = cli("predict m.skldl t.csv --level 0.5 --covers true", status=2).err
    assert "--kind counts or --kind votes" in " ".join(said.split())
    assert "true" in cli("predict m.skldl t.csv --level 0.5 --covers both", status=2).err


def test_model_files_keep_the_calibration(fitted, tmp_path):
    skldl.save(fitted.model, tmp_path / "m.skldl", description=fitted.description)
    loaded = skldl.load(tmp_path / "m.skldl")
    P = np.full((1, 3), 1 / 3)
    for name in ("intervals_", "true_intervals_"):
        kept, made = (getattr(model, name).around(P, 0.9) for model in (loaded, fitted.model))
        for one, other in zip(kept, made, strict=True):
            np.testing.assert_array_equal(one, other)
    assert loaded.reference_.far_ == fitted.model.reference_.far_


def test_groups_are_kept_whole(predict):
    frame = votes(0, 300).assign(person=np.repeat(np.arange(30), 10))
    fitted = fit_table(
        frame, Columns("v*", kind="counts", groups="person"), model="mean", options=FitOptions(intervals=True)
    )
    assert fitted.description["intervals"] % 10 == 0
    assert len(np.unique(fitted.model.intervals_.groups_)) == fitted.description["intervals"] // 10
    assert "80 calibration rows in groups are too few" in predict(fitted, frame[:5], "--level 0.9")[1]
    assert "too few" not in predict(fitted, frame[:5], "--level 0.5")[1]


def test_degrees_that_were_not_observed_cannot_calibrate():
    table = fractions(0, 60)
    table.loc[::5, ["v0", "v1"]] = np.nan
    with pytest.raises(DataError, match=r"every degree was observed.* skldl\.incomplete\.complete"):
        fit_table(table, "v*", model="sa-bfgs-cv", options=FitOptions(intervals=True))
    without = fit_table(table, "v*", model="sa-bfgs-cv", settings={"missing": "degrees"})
    assert not hasattr(without.model, "intervals_")


def test_a_model_without_calibration_rows_gets_one_clear_error(predict, cli):
    fitted = fit_table(votes(0, 40), Columns("v*", kind="counts"), model="mean")
    predict(fitted, votes(1, 5), "")
    assert "skldl fit --intervals" in " ".join(cli("predict m.skldl t.csv --level 0.9", status=2).err.split())
    assert "between 0 and 1" in cli("predict m.skldl t.csv --level 90", status=2).err
