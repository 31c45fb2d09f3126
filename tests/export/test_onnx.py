"""ONNX graphs: the same predictions in onnxruntime, and errors that name the part."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

import skldl
from skldl.data import Columns
from skldl.exceptions import DataError
from skldl.export import _onnx, to_onnx
from skldl.export._onnx import _not_above, _rows  # predictions of few rows rarely depend on either
from skldl.tabular import TableEncoder, fit_table

onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
LABELS = ["emo_joy", "emo_anger", "emo_fear"]


def fitted(faces, estimator, **encoder):
    table = faces.drop(columns=["person", *LABELS])
    return Pipeline([("encoder", TableEncoder(dense=True, **encoder)), ("model", estimator)]).fit(table, faces[LABELS])


ESTIMATORS = {
    "maximum entropy": skldl.SABFGS(alpha=0.01, fit_intercept=True),
    "iterative scaling": skldl.SAIIS(max_iter=5),
    "smooth loss": skldl.SmoothLossLDL("squared_error"),
    "mean": skldl.MeanDistribution(),
    "network": skldl.AABP(hidden_layer_sizes=(6, 4), activation="logistic", random_state=0),
    "conditional network": skldl.CPNN(5, random_state=0),
    "conditional network, one-hot": skldl.CPNN(5, label_code="one_hot", activation="relu", random_state=0),
    "forest": skldl.RandomForestLDL(20, kind="extra", max_features=1.0, min_samples_leaf=3, random_state=0),
    "boosting": skldl.GradientBoostingLDL(random_state=0),
    "structured forest": skldl.StructRF(5, random_state=0),
    "logit boosting, pairs": skldl.LDLogitBoost(20),
    "logit boosting, labels": skldl.LDLogitBoost(20, method="logitboost"),
    "soft forest": skldl.LDLF(3, max_depth=3, n_rounds=3, random_state=0),
    "soft forest of stumps": skldl.LDLF(2, max_depth=1, n_rounds=3, random_state=0),
    "pool": skldl.StackingLDL(
        [("linear", skldl.SABFGS(alpha=0.01)), ("forest", skldl.RandomForestLDL(10, kind="extra", random_state=0))]
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few iterations are enough here
@pytest.mark.parametrize("name", ESTIMATORS)
def test_predictions_are_those_of_the_model(faces, tmp_path, name):
    model = fitted(faces, ESTIMATORS[name])
    path = tmp_path / "model.onnx"
    assert to_onnx(model, path) <= 1e-5
    rows = faces.drop(columns=LABELS).assign(town=["Rome", *faces["town"][1:]])
    session = onnxruntime.InferenceSession(path)
    feeds = {name: cells[:, np.newaxis] for name, cells in model[0].typed_cells(rows).items()}
    (predicted,) = session.run(["distribution"], feeds)
    np.testing.assert_allclose(predicted, model.predict(rows), rtol=0, atol=1e-5)
    assert session.get_modelmeta().custom_metadata_map["labels"].split("\n") == LABELS


def test_a_forest_of_scikit_learn(faces, tmp_path):
    from sklearn.ensemble import RandomForestRegressor

    model = fitted(faces, skldl.AARegressor(RandomForestRegressor(10, random_state=0)))
    assert to_onnx(model, tmp_path / "model.onnx") <= 1e-5


def test_rare_and_missing_categories(faces, tmp_path):
    table = faces.assign(town=[*["a", "b", "c", "d"] * 5, *faces["town"][20:]])
    table.loc[::9, "town"] = None
    model = fitted(table, skldl.SABFGS(alpha=0.01), max_categories=4)
    assert to_onnx(model, tmp_path / "model.onnx") <= 1e-12


def test_thresholds_keep_their_meaning_in_single_precision():
    generator = np.random.default_rng(0)
    thresholds = generator.normal(size=500)
    features = np.r_[thresholds.astype(np.float32), np.nextafter(thresholds.astype(np.float32), np.float32(np.inf))]
    rounded = _not_above(thresholds)
    assert rounded.dtype == np.float32
    expected = features[:, None].astype(np.float64) <= thresholds
    np.testing.assert_array_equal(features[:, None] <= rounded, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"note": ["good day", "bad day"] * 60}, "The text column 'note'"),
        ({"note": ["2024-05-31", "2023-01-01"] * 60}, "The date column 'note'"),
        ({"distribution": range(120)}, "The column 'distribution'"),
    ],
)
def test_columns_that_cannot_be_expressed_are_named(faces, tmp_path, change, message):
    text = ["note"] if "day" in str(change) else []
    model = fitted(faces.assign(**change), skldl.MeanDistribution(), text=text)
    with pytest.raises(DataError, match=message):
        to_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_estimators_that_cannot_be_expressed_are_named(faces, tmp_path):
    from sklearn.linear_model import Ridge

    members = [("near", skldl.AAKNN(3)), ("linear", skldl.SABFGS(alpha=0.01))]
    for estimator, name in (
        (skldl.AAKNN(3), "AAKNN"),
        (skldl.AARegressor(Ridge()), "Ridge"),
        (skldl.StackingLDL(members), "AAKNN"),
    ):
        with pytest.raises(DataError, match=f"{name}.* cannot be exported"):
            to_onnx(fitted(faces, estimator), tmp_path / "model.onnx")


def test_a_graph_that_differs_is_not_written(faces, tmp_path, monkeypatch):
    monkeypatch.setattr(_onnx, "MAX_DIFFERENCE", 1e-12)
    with pytest.raises(DataError, match=r"differs from the model by .* more than 1e-12"):
        to_onnx(fitted(faces, ESTIMATORS["forest"]), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_the_command(faces_model, tmp_path, cli):
    out, card = tmp_path / "faces.onnx", tmp_path / "faces.md"
    printed = cli(["export", str(faces_model), "--onnx", str(out), "--card", str(card)])
    assert "differ from those of the model by" in printed.out
    assert onnxruntime.InferenceSession(out).get_inputs()[0].name == "age"
    assert "exists already" in cli(["export", str(faces_model), "--onnx", str(out)], status=2).err
    assert "Name an output" in cli(["export", str(faces_model)], status=2).err


def test_the_command_rejects_with_the_name_of_the_part(faces, tmp_path, cli):
    made = fit_table(faces, Columns("emo_*", drop=["person"]), model="aa-knn", settings={"n_neighbors": 3})
    path = skldl.save(made.model, tmp_path / "near.skldl", description=made.description)
    printed = cli(["export", str(path), "--onnx", str(tmp_path / "near.onnx")], status=2).err
    assert "The estimator AAKNN cannot be exported to ONNX" in printed
    assert "skldl fit --model sa-bfgs-cv" in printed


def test_rows_to_check_with_hold_everything(faces):
    encoder = TableEncoder().fit(faces[["age", "town", "smoker"]])
    rows = _rows(encoder)
    assert rows.isna().any().all()
    assert set(rows["town"].dropna()) == {"Ulm", "Bonn", "Kiel", "\x00unknown"}
    assert isinstance(rows, pd.DataFrame)
