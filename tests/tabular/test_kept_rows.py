"""What a model file keeps of its training table."""

import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import skldl
from skldl.data import Columns
from skldl.exceptions import DataError
from skldl.names import algorithm_titles, find_candidate
from skldl.tabular import FitOptions, fit_table
from skldl.tabular._description import rows_in  # every estimator says whether it holds training rows
from skldl.testing import make_distributions

FIXED = {"columns": Columns("emo_*", drop=["person"]), "model": "sa-bfgs", "settings": {"alpha": 0.01}}


def test_typical_values_are_medians_and_modes(faces):
    made = fit_table(faces, **FIXED)
    assert made.description["typical"] == {
        "age": float(faces["age"].median()),
        "town": faces["town"].mode()[0],
        "smoker": False,
    }
    assert "kept_rows" not in made.description
    assert "SABFGS" not in made.description["rows_in_model"]


def test_rows_are_kept_as_they_were(faces):
    made = fit_table(faces, options=FitOptions(keep_rows=10), **FIXED)
    kept = json.loads(json.dumps(made.description["kept_rows"]))
    assert len(kept["rows"]) == 10
    for position, row in zip(kept["positions"], kept["rows"], strict=True):
        age, town, smoker, *degrees = row
        there = faces.iloc[position]
        assert (age is None) == np.isnan(there["age"])
        assert (town, smoker) == (there["town"], there["smoker"])
        np.testing.assert_allclose(degrees, there[["emo_joy", "emo_anger", "emo_fear"]].astype(float))
    everything = fit_table(faces, options=FitOptions(keep_rows=1000), **FIXED)
    assert len(everything.description["kept_rows"]["rows"]) == len(faces)
    with pytest.raises(DataError, match="keep_rows=0"):
        fit_table(faces, options=FitOptions(keep_rows=0), **FIXED)


def test_estimators_that_hold_rows_are_found():
    X, D = [[0.0], [1.0], [2.0], [3.0]], [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    assert rows_in(skldl.AAKNN(2).fit(X, D)) == ["AAKNN"]
    pool = skldl.StackingLDL([("near", skldl.AAKNN(1)), ("mean", skldl.MeanDistribution())], n_folds=2).fit(X, D)
    assert rows_in(pool) == ["AAKNN"]
    model = make_pipeline(skldl.SABFGS()).fit(X, D)
    assert rows_in(model) == []


def arrays_in(value, seen):
    """All arrays in the state of a fitted object."""
    if id(value) in seen:
        return
    seen[id(value)] = value  # kept, so that no other object gets its id
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from arrays_in(part, seen)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from arrays_in(part, seen)
    elif hasattr(value, "__dict__"):
        yield from arrays_in(vars(value), seen)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of solvers that stop early: what they keep is looked at, not how good it is
@pytest.mark.parametrize("title", algorithm_titles())
def test_every_model_that_holds_training_rows_says_so(title):
    X, D = make_distributions(57, n_features=7)
    model = find_candidate(title).make(random_state=0).fit(X, D)
    shapes = [array.shape for array in arrays_in(model, {}) if array.dtype.kind == "f"]
    # rows may be scaled, or fewer than all: a table of them has a column for each feature
    holds = any(len(shape) == 2 and shape[0] > 20 and shape[1] == 7 for shape in shapes)
    assert holds == bool(rows_in(model))


def test_fit_keeps_and_inspect_tells(faces, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    faces.to_csv("faces.csv", index=False)
    fit = "fit faces.csv --labels emo_* --drop person --out m.skldl --model"
    for options, kept, said in (
        ("sa-bfgs --set alpha=0.01 --keep-rows 5", True, "5 training rows as they were"),
        ("aa-knn --set n_neighbors=3", True, "training rows, encoded, in AAKNN"),
        ("mean", False, "AAKNN"),
    ):
        cli(f"{fit} {options}")
        assert (said in cli("inspect m.skldl").out) == kept
    assert "--keep-rows -3" in cli(f"{fit} mean --keep-rows=-3", status=2).err
