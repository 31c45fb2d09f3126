"""Drift: rows like the training table raise no warning, others do, and the numbers say by how much."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax

from skldl.tabular import fit_table
from skldl.tabular._drift import DriftMonitor, TrainingReference, nearest_distances

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
    assert nothing.numbers() == {"rows": 0, "unknown_category_share": 0.0}
    old = DriftMonitor(model)
    old.reference = None
    old.update(table(1, 50).assign(town="Rom"), np.zeros((50, 3)))
    assert old.numbers()["unknown_categories"] == {"town": 50}
    assert "distance" not in old.numbers()
    empty = watched(model, table(1, 40).assign(a=None, b=None, c=None, town=None))
    assert "All features are empty in 40 of 40 rows." in empty.warnings()


def test_reference_of_few_of_sparse_and_of_wide_rows():
    P = np.full((60, 2), 0.5)
    X = np.random.default_rng(0).normal(size=(60, 5))
    dense, thin = TrainingReference(X, P), TrainingReference(sparse.csr_matrix(X), P)
    assert dense.far_ == pytest.approx(thin.far_, rel=1e-5)
    assert 1 <= len(dense.centres_) <= 3
    np.testing.assert_allclose(
        nearest_distances(dense.centres_, X[:4]),
        np.sqrt(((X[:4, None] - dense.centres_[None]) ** 2).sum(axis=2)).min(axis=1),
        atol=1e-3,
    )
    assert TrainingReference(X[:1], P[:1]).far_ == 0.0
    assert TrainingReference(np.zeros((300, 20_000)), np.full((300, 2), 0.5)).centres_.shape == (1, 20_000)
    dense._check_fitted_state()
    dense.mean_prediction_ = "x"
    with pytest.raises(ValueError, match="mean_prediction_"):
        dense._check_fitted_state()
    dense.centres_ = [1]
    with pytest.raises(ValueError, match="not a matrix"):
        dense._check_fitted_state()


def test_a_reference_holds_no_row_of_the_training_table():
    """A row far from all others makes a group of its own, which is left out."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    X[::40] += 1000 * np.arange(1, 11)[:, None]
    centres = TrainingReference(X, np.full((400, 2), 0.5)).centres_
    assert len(centres) > 5
    assert nearest_distances(centres, X[::40]).min() > 1
    assert nearest_distances(X, centres).min() > 1e-3
