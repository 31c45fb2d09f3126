"""Model files that earlier versions wrote still load, and predict what those versions predicted.

``tools/write_compatibility_files.py`` writes the files of a version; those of 0.1 are older than it.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import skldl

pandas = pytest.importorskip("pandas")
HERE = Path(__file__).parent
FOLDERS = sorted(path.parent for path in HERE.glob("files_*/expected.json"))
MODELS = [path for folder in FOLDERS for path in sorted(folder.glob("*.skldl")) if path.stem != "table"]
pytestmark = pytest.mark.filterwarnings(  # the files were written with other versions, which is what is tested
    "ignore::sklearn.exceptions.InconsistentVersionWarning", "ignore:.*was written with scikit-learn:UserWarning"
)
TOLERANCE = 1e-9  # the last digits depend on the BLAS that the processor gets


def version_of(folder):
    return folder.name.removeprefix("files_").replace("_", ".")


def test_no_file_is_left_out():
    """Every estimator with a prediction has its file, and the other way round."""
    assert FOLDERS
    for folder in FOLDERS:
        names = json.loads((folder / "expected.json").read_text(encoding="utf-8")).keys()
        assert {path.stem for path in folder.glob("*.skldl")} == {*names, "table"}


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{version_of(path.parent)}-{path.stem}")
def test_every_estimator_predicts_what_it_did(path, read_model):
    about, model = read_model(path)
    assert about["versions"]["scikit-ldl"].startswith(version_of(path.parent) + ".")
    assert type(model).__name__ == path.stem
    expected = json.loads((path.parent / "expected.json").read_text(encoding="utf-8"))[path.stem]
    X = pandas.read_csv(path.parent / "small.csv")[["x0", "x1", "x2"]].to_numpy()[:8]
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("folder", FOLDERS, ids=version_of)
def test_a_model_of_a_table_predicts_what_the_command_wrote(folder, read_model, tmp_path):
    from skldl.cli._app import run

    read_model(folder / "table.skldl")
    out = tmp_path / "out.csv"
    files = [str(folder / "table.skldl"), str(folder / "small.csv")]
    assert run(["predict", *files, "--level", "0.9", "--digits", "12", "--out", str(out)]) == 0
    now, then = pandas.read_csv(out), pandas.read_csv(folder / "table.csv")
    assert len([name for name in then.columns if name.endswith("label_a")]) == 3  # with both ends of its interval
    pandas.testing.assert_frame_equal(now, then, check_exact=False, rtol=0, atol=TOLERANCE)


def test_a_search_by_cosine_distances_is_made_anew(read_model):
    """Before the release of 0.2.0 it was made of products of unit rows; it is rebuilt from the training rows."""
    model = read_model(HERE / "cosine_search_by_products.skldl")[1]
    rng = np.random.default_rng(0)
    X, D = np.round(rng.normal(size=(30, 20)), 3), rng.dirichlet(np.ones(3), 30)
    new = rng.normal(size=(8, 20))
    expected = skldl.AAKNN(3, metric="cosine").fit(X, D).predict(new)
    np.testing.assert_allclose(model.predict(new), expected, rtol=0, atol=TOLERANCE)
