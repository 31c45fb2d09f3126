"""Tables with votes and intervals: the floor in the message, calibration rows held out, columns, model files."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import skldl
from skldl.data import Columns, from_table
from skldl.exceptions import DataError
from skldl.tabular import FitOptions, fit_table, predict_table
from skldl.tabular._prediction import few_rows_note, interval_columns, intervals_of, with_intervals
from skldl.tabular._uncertain_fit import add_uncertainty, keep_calibration_rows
from skldl.uncertainty._intervals import Intervals

WEIGHTS = np.random.default_rng(1).normal(size=(3, 3))


def votes(seed, n_rows, n_votes=20, slope=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    counts = rng.multinomial(n_votes, softmax(slope * X @ WEIGHTS, axis=1))
    return pd.DataFrame(X, columns=list("abc")).assign(**{f"v{j}": counts[:, j] for j in range(3)})


@pytest.fixture(scope="module")
def fitted():
    return fit_table(votes(0, 800), Columns("v*", kind="counts"), model="sa-bfgs", options=FitOptions(intervals=True))


def test_the_message_names_the_floor_and_the_share_explained(fitted):
    score = fitted.description["score"]
    assert score["noise_floor"] == pytest.approx(0.05, abs=0.005)
    assert 0 < score["noise_floor_error"] < 0.01
    assert 0.95 < score["explained"] <= 1.02  # the model is the true one
    assert any(line.startswith("Noise floor 0.0") and "20 votes a row" in line for line in fitted.why)
    nothing = fit_table(votes(0, 300, slope=0.0), Columns("v*", kind="counts"), model="mean")
    assert nothing.description["score"]["explained"] is None or nothing.description["score"]["explained"] < 0.2
    shares = votes(0, 100)
    shares[["v0", "v1", "v2"]] /= 20
    without = fit_table(shares, "v*", model="mean")
    assert "noise_floor" not in without.description["score"]
    assert not any("Noise floor" in line for line in without.why)


def test_intervals_cover_the_shares_of_as_many_votes(fitted):
    assert fitted.description["intervals"] == fitted.model.intervals_.n_rows_ == 200
    assert fitted.description["rows"] == 600
    assert "for the fractions of as many votes" in fitted.why[-1]
    new = votes(5, 3000)
    predicted = predict_table(fitted.model, new, labels=["v0", "v1", "v2"])
    table = with_intervals(predicted, intervals_of(fitted.model, 0.9), ["v0", "v1", "v2"], 0.9)
    D = new[["v0", "v1", "v2"]].to_numpy() / 20
    low, high = (table[[f"{side}_v{j}" for j in range(3)]].to_numpy() for side in ("low", "high"))
    assert ((low <= D) & (high >= D)).all(axis=1).mean() == pytest.approx(0.9, abs=0.05)
    distance = 0.5 * np.abs(D - table[["v0", "v1", "v2"]].to_numpy()).sum(axis=1)
    assert (distance <= table["radius"]).mean() == pytest.approx(0.9, abs=0.05)
    assert (low.sum(axis=1) <= 1).all()
    assert (high.sum(axis=1) >= 1).all()


def test_intervals_cover_the_true_distribution_if_asked_to(fitted):
    new = votes(5, 2000)
    truth = softmax(new[list("abc")].to_numpy() @ WEIGHTS, axis=1)
    predicted = predict_table(fitted.model, new, labels=["v0", "v1", "v2"])
    tables = [
        with_intervals(predicted, intervals_of(fitted.model, 0.9, covers), ["v0", "v1", "v2"], 0.9)
        for covers in ("given", "true")
    ]
    low, high = (tables[1][[f"{side}_v{j}" for j in range(3)]].to_numpy() for side in ("low", "high"))
    assert ((low <= truth) & (high >= truth)).all(axis=1).mean() >= 0.9
    assert tables[1]["radius"][0] < 0.9 * tables[0]["radius"][0]
    assert "--covers true" in fitted.why[-1]
    note = few_rows_note(intervals_of(fitted.model, 0.999, "true"), 0.999)[0]
    assert note.startswith("200 calibration rows are")
    assert "Use a lower level=" in note  # the words of Python; the command line says --level


def test_names_that_are_taken_get_an_underscore_and_none_is_lost():
    P = np.array([[0.2, 0.3, 0.5]])
    intervals = Intervals(np.repeat(P, 30, axis=0), np.full((30, 3), 1 / 3), np.ones(3))
    columns = interval_columns(P, intervals, ["a", "a_", "b"], {"a", "a_", "b", "low_a"}, 0.9)
    assert list(columns) == ["low_a_", "high_a", "low_a__", "high_a_", "low_b", "high_b", "radius"]
    lower, upper, radius = intervals.around(P, 0.9)
    np.testing.assert_array_equal(np.column_stack([columns[name] for name in ("low_a_", "low_a__", "low_b")]), lower)
    np.testing.assert_array_equal(np.column_stack([columns[name] for name in ("high_a", "high_a_", "high_b")]), upper)
    np.testing.assert_array_equal(columns["radius"], radius)


def test_only_votes_tell_of_a_true_distribution():
    shares = votes(0, 60)
    shares[["v0", "v1", "v2"]] /= 20
    model = fit_table(shares, "v*", model="mean", options=FitOptions(intervals=True)).model
    intervals_of(model, 0.9)
    with pytest.raises(DataError, match="kind='counts' or kind='votes'"):
        intervals_of(model, 0.9, "true")
    with pytest.raises(DataError, match="given, true"):
        intervals_of(model, 0.9, "both")


def test_model_files_keep_the_calibration(fitted, tmp_path):
    skldl.save(fitted.model, tmp_path / "m.skldl", description=fitted.description)
    loaded = skldl.load(tmp_path / "m.skldl")
    P = np.full((1, 3), 1 / 3)
    for covers in ("given", "true"):
        kept, made = (intervals_of(model, 0.9, covers).around(P, 0.9) for model in (loaded, fitted.model))
        for one, other in zip(kept, made, strict=True):
            np.testing.assert_array_equal(one, other)
    assert loaded.reference_.far_ == fitted.model.reference_.far_


def test_groups_are_kept_whole():
    frame = votes(0, 300).assign(person=np.repeat(np.arange(30), 10))
    fitted = fit_table(
        frame, Columns("v*", kind="counts", groups="person"), model="mean", options=FitOptions(intervals=True)
    )
    assert fitted.description["intervals"] % 10 == 0
    assert len(np.unique(fitted.model.intervals_.groups_)) == fitted.description["intervals"] // 10
    assert few_rows_note(fitted.model.intervals_, 0.9)[0].startswith("80 calibration rows in groups are too few")
    assert few_rows_note(fitted.model.intervals_, 0.5) == []


def test_degrees_that_were_not_observed_cannot_calibrate():
    shares = votes(0, 60)
    shares[["v0", "v1", "v2"]] /= 20
    shares.loc[::5, ["v0", "v1"]] = np.nan
    with pytest.raises(DataError, match=r"every degree was observed.* skldl\.incomplete\.complete"):
        fit_table(shares, "v*", model="sa-bfgs-cv", options=FitOptions(intervals=True))
    without = fit_table(shares, "v*", model="sa-bfgs-cv", settings={"missing": "degrees"})
    assert not hasattr(without.model, "intervals_")


def test_names_that_are_taken_and_tables_without_rows(fitted):
    table = pd.DataFrame({"radius": [0.2], "low_radius": [0.8]})
    intervals = intervals_of(fitted.model, 0.5)
    two = type(intervals)(np.full((9, 2), 0.5), np.full((9, 2), 0.5), np.ones(2))
    assert list(with_intervals(table, two, ["radius", "low_radius"], 0.5)) == [
        "radius",
        "low_radius",
        "low_radius_",
        "high_radius",
        "low_low_radius",
        "high_low_radius",
        "radius_",
    ]
    assert with_intervals(table[:0], two, ["radius", "low_radius"], 0.5).shape == (0, 7)


def test_a_model_without_calibration_rows_gets_one_clear_error():
    model = fit_table(votes(0, 40), Columns("v*", kind="counts"), model="mean").model
    with pytest.raises(DataError, match=r"skldl fit --intervals"):
        intervals_of(model, 0.9)
    with pytest.raises(DataError, match="between 0 and 1"):
        intervals_of(model, 90)


def test_training_rows_may_be_encoded_already(fitted):
    new = votes(3, 100)
    dataset = from_table(new, Columns("v*", kind="counts"))
    encoded = dataset.changed(X=fitted.model[0].transform(dataset.X))
    kept = []
    for rows in (dataset, encoded):
        add_uncertainty(fitted.model, rows, None, fitted.choice.estimate, 0)
        kept.append(fitted.model.reference_)
    np.testing.assert_array_equal(kept[0].centres_, kept[1].centres_)
    assert keep_calibration_rows(dataset, False, 0) == (dataset, None)
