"""Drift: rows like the training table raise no warning, others do, and the numbers say by how much."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import softmax

from skldl.tabular import DriftMonitor, fit_table

WEIGHTS = np.random.default_rng(1).normal(size=(3, 3))


def table(seed, n_rows, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3)) + shift
    D = softmax(X @ WEIGHTS + 0.3 * rng.normal(size=(n_rows, 3)), axis=1)
    frame = pd.DataFrame(X, columns=list("abc")).assign(town=rng.choice(["Ulm", "Bonn"], n_rows))
    return frame.assign(**{f"d_{j}": D[:, j] for j in range(3)})


@pytest.fixture(scope="module")
def model():
    return fit_table(table(0, 600), "d_*", model="sa-bfgs").model


def watched(model, frame, pieces=1):
    monitor = DriftMonitor(model)
    for rows in np.array_split(np.arange(len(frame)), pieces):
        monitor.update(frame.iloc[rows], model.predict(frame.iloc[rows]))
    return monitor


def test_rows_of_the_same_kind_raise_no_warning(model):
    monitors = [watched(model, table(seed, 300)) for seed in range(1, 31)]
    assert sum(bool(monitor.warnings()) for monitor in monitors) <= 1
    far = np.mean([monitor.numbers()["distance"]["far_share"] for monitor in monitors])
    assert 0.002 < far < 0.03  # one in a hundred by definition


def test_few_training_rows_do_not_make_rows_of_the_same_kind_extrapolations():
    """The quantile .99 of thirty distances has an error of its own: one such table in five had a warning."""
    n_warned = 0
    for seed in range(30):
        frame = table(seed, 360)
        few = fit_table(frame[:60], "d_*", model="sa-bfgs", settings={"alpha": 0.01}).model
        n_warned += any("extrapolations" in line for line in watched(few, frame[60:]).warnings())
    assert n_warned <= 1
    assert any("extrapolations" in line for line in watched(few, table(1, 300, shift=3.0)).warnings())


def test_other_rows_do(model):
    monitor = watched(model, table(1, 300, shift=3.0).assign(town="Rom"))
    numbers, said = monitor.numbers(), " ".join(monitor.warnings())
    assert numbers["unknown_categories"] == {"town": 300}
    assert numbers["unknown_category_share"] == 1.0
    assert numbers["distance"]["far_share"] > 0.5
    assert numbers["distance"]["median"] > 2 * numbers["distance"]["typical"]
    assert numbers["prediction_shift"]["z"] > 5
    for word in ("'town' holds a category", "farther from the training rows", "mean prediction differs"):
        assert word in said


def test_columns_that_are_empty_in_every_row(model):
    frame = table(1, 200)
    frame.loc[:99, "a"] = np.nan
    frame.loc[100:, "town"] = None
    assert watched(model, frame, 2).numbers()["empty_columns"] == []
    frame[["a", "town"]] = np.nan
    monitor = watched(model, frame, 2)
    assert monitor.numbers()["empty_columns"] == ["a", "town"]
    assert "'a', 'town': empty in every row, so the predictions rest on the other columns." in monitor.warnings()
    frame[["b", "c"]] = np.nan
    assert not any("the other columns" in line for line in watched(model, frame).warnings())
    assert not DriftMonitor(model).warnings()


def test_a_column_that_was_empty_in_the_training_table_is_not_reported():
    frame = table(0, 60).assign(a=np.nan)
    assert watched(fit_table(frame, "d_*", model="sa-bfgs").model, frame).numbers()["empty_columns"] == []


def test_pieces_add_up_to_the_whole(model):
    frame = table(1, 200, shift=0.5)
    whole, pieces = watched(model, frame).numbers(), watched(model, frame, 7).numbers()
    shift = model.predict(frame).mean(axis=0) - model.reference_.mean_prediction_
    assert pieces["prediction_shift"]["total_variation"] == pytest.approx(0.5 * np.abs(shift).sum())
    assert pieces["prediction_shift"] == pytest.approx(whole["prediction_shift"])
    assert pieces["distance"] == pytest.approx(whole["distance"])
    assert pieces["rows"] == whole["rows"] == 200


def test_few_rows_and_models_without_a_reference_are_counted_only(model):
    few = watched(model, table(1, 5, shift=9.0))
    assert few.numbers()["distance"]["far_share"] == 1.0
    assert not any("farther" in line for line in few.warnings())
    nothing = DriftMonitor(model)
    assert nothing.numbers() == {"rows": 0, "empty_columns": [], "unknown_category_share": 0.0}
    old = DriftMonitor(model)
    old.reference = None
    old.update(table(1, 50).assign(town="Rom"), np.zeros((50, 3)))
    assert old.numbers()["unknown_categories"] == {"town": 50}
    assert "distance" not in old.numbers()
    empty = watched(model, table(1, 40).assign(a=None, b=None, c=None, town=None))
    assert "All features are empty in 40 of 40 rows." in empty.warnings()


def distances(model, frame):
    """Distances of encoded rows to the nearest centre of training rows."""
    features = model[0].transform(frame)
    features = features.toarray() if sparse.issparse(features) else features
    return cdist(features, model.reference_.centres_).min(axis=1)


@pytest.mark.parametrize("n_towns", [3, 90])
def test_distances_are_those_to_the_nearest_centre_of_dense_and_sparse_rows(n_towns):
    frame = table(0, 600).assign(town=[f"t{row % n_towns}" for row in range(600)])
    model = fit_table(frame, "d_*", model="sa-bfgs", settings={"alpha": 0.01}).model
    assert sparse.issparse(model[0].transform(frame)) == (n_towns == 90)
    assert 5 < len(model.reference_.centres_) <= 100
    found = watched(model, frame[:40]).numbers()["distance"]
    own = distances(model, frame[:40])
    assert found["median"] == pytest.approx(np.median(own), rel=1e-4)
    assert found["far_share"] == np.mean(own > model.reference_.far_)
    assert distances(model, frame).min() > 1e-3  # no centre is a row


def test_references_of_few_and_of_equal_rows(monkeypatch):
    few = fit_table(table(0, 2), "d_*", model="mean").model.reference_
    assert few.centres_.shape[0] == 1
    equal = table(0, 300).assign(a=0.0, b=0.0, c=0.0, town="Ulm")
    assert len(fit_table(equal, "d_*", model="mean").model.reference_.centres_) == 1
    monkeypatch.setattr("skldl.tabular._drift.MAX_CENTRE_CELLS", 5 * 7)  # five features: at most seven centres
    assert len(fit_table(table(0, 300), "d_*", model="mean").model.reference_.centres_) <= 7


@pytest.mark.parametrize(("name", "value"), [("mean_prediction_", "x"), ("deviation_", np.eye(2)), ("centres_", [1])])
def test_a_reference_from_a_model_file_is_checked(name, value):
    reference = fit_table(table(0, 40), "d_*", model="mean").model.reference_
    reference._check_fitted_state()
    setattr(reference, name, value)
    with pytest.raises(ValueError, match=name):
        reference._check_fitted_state()


def test_rows_far_from_all_others_make_no_centre():
    """Such a row would make a cluster of its own, whose centre would disclose it."""
    frame = table(0, 800)
    frame.loc[::40, "a"] += 1000 * np.arange(1, 21)
    model = fit_table(frame, "d_*", model="mean").model
    assert len(model.reference_.centres_) > 5
    assert distances(model, frame[::40]).min() > 0.1
