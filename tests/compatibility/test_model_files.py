"""Model files that a version wrote load, and predict what that version predicted."""

import json

import numpy as np
import pytest

import skldl

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings(  # the files were written with other versions, which is what is tested
    "ignore::sklearn.exceptions.InconsistentVersionWarning", "ignore:.*was written with scikit-learn:UserWarning"
)
TOLERANCE = 1e-9
"""The last digits depend on the kernels of BLAS that the processor gets."""


def test_every_estimator_predicts_what_it_did(written, read_model):
    expected = json.loads((written / "expected.json").read_text(encoding="utf-8"))
    assert {path.stem for path in written.glob("*.skldl")} == {*expected, "table"}
    X = pandas.read_csv(written / "small.csv")[["x0", "x1", "x2"]].to_numpy()[:8]
    for name, predicted in expected.items():
        _, model = read_model(written / f"{name}.skldl")
        assert type(model).__name__ == name
        np.testing.assert_allclose(model.predict(X), predicted, rtol=0, atol=TOLERANCE, err_msg=name)


def test_every_estimator_of_this_version_is_written(written):
    if not written.name.startswith("files_"):
        assert {path.stem for path in written.glob("*.skldl")} == {*skldl.ESTIMATORS, "table"}


def test_a_model_of_a_table_predicts_what_the_command_wrote(written, read_model, tmp_path, cli):

    read_model(written / "table.skldl")
    out = tmp_path / "out.csv"
    files = [str(written / "table.skldl"), str(written / "small.csv")]
    cli(["predict", *files, "--level", "0.9", "--digits", "12", "--out", str(out)])
    now, then = pandas.read_csv(out), pandas.read_csv(written / "table.csv")
    assert len([name for name in then.columns if name.endswith("label_a")]) == 3  # with both ends of its interval
    pandas.testing.assert_frame_equal(now, then, check_exact=False, rtol=0, atol=TOLERANCE)
