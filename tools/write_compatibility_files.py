"""Write files that later versions must be able to read: model files with their predictions, and a study.

    python tools/write_compatibility_files.py [--overwrite]

Run it before a release, from the first published version on; the files go to ``tests/compatibility/files_X_Y`` and
``tests/compatibility`` reads them from then on. Files of a released version are never written again.
"""

import contextlib
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression

import skldl
from skldl.cli import main as run
from skldl.experiments import load_study, run_study
from skldl.experiments.outputs import write_outputs

ROOT = Path(__file__).parents[1] / "tests" / "compatibility"
FEATURES, LABELS = ["x0", "x1", "x2"], ["label_a", "label_b", "label_c"]
SETTINGS: dict[str, Any] = {
    "AABP": {"hidden_layer_sizes": (4,)},
    "AAKNN": {"n_neighbors": 3},
    "AARegressor": {"regressor": RandomForestRegressor(2, max_depth=2, random_state=0)},
    "AutoLDL": {"members": ["linear", "neighbours"]},
    "CPNN": {"n_hidden": 4, "tol": 1e-2},
    "CalibratedLDL": {"estimator": skldl.SABFGS(alpha=0.01)},
    "ConformalLDL": {"estimator": skldl.SABFGS(alpha=0.01), "method": "cv+", "n_folds": 3},
    "DirichletSpread": {"estimator": skldl.SABFGS(alpha=0.01)},
    "GradientBoostingLDL": {"max_iter": 4, "engine": "sklearn", "n_folds": 2},
    "LDLClassifier": {"estimator": skldl.SABFGS(alpha=0.01)},
    "PTClassifier": {"classifier": LogisticRegression()},
    "LDLF": {"n_estimators": 2, "max_depth": 2},
    "LDLogitBoost": {"n_estimators": 4},
    "RandomForestLDL": {"n_estimators": 3},
    "StructRF": {"n_estimators": 2},
    "StackingLDL": {"estimators": [("linear", skldl.SABFGS(alpha=0.01)), ("near", skldl.AAKNN())]},
}
"""Constructor arguments, where the defaults need one or make large files."""

STUDY = """\
name = "written-by-{version}"
title = "A study written by version {version}"
protocol = "nested"
folds = 3
inner_folds = 2
datasets = ["small.csv"]
[[candidates]]
name = "AA-kNN"
estimator = "skldl:AAKNN"
grid = {{ n_neighbors = [5, 3] }}
path = "n_neighbors"
[[candidates]]
name = "SA-BFGS"
estimator = "skldl:SABFGS"
grid = {{ alpha = [0.1, 0.001] }}
path = "alpha"
"""


def training_table(n_rows: int = 40) -> pd.DataFrame:
    """Three numbers, a word and three labels, rounded to four digits so that the table can be read back exactly."""
    generator = np.random.default_rng(7)
    X = generator.normal(size=(n_rows, 3)).round(4)
    scores = np.exp(X @ generator.normal(size=(3, 3)) + generator.normal(scale=0.2, size=(n_rows, 3)))
    D = (scores / scores.sum(axis=1, keepdims=True)).round(4)
    D[:, 2] = (1 - D[:, 0] - D[:, 1]).round(4)
    table = pd.DataFrame(np.column_stack([X, D]), columns=FEATURES + LABELS)
    return table.assign(town=np.where(X[:, 0] > 0, "Ulm", "Bonn"))[[*FEATURES, "town", *LABELS]]


def make(name: str) -> Any:
    """An estimator of small size, with a fixed random state where it takes one."""
    estimator = getattr(skldl, name)(**SETTINGS.get(name, {}))
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    return estimator


def write_models(folder: Path, table: pd.DataFrame) -> dict[str, Any]:
    """A model file of every estimator, and what each predicts for the first eight rows."""
    X, D = table[FEATURES].to_numpy(), table[LABELS].to_numpy()
    expected = {}
    for name in skldl.ESTIMATORS:
        model = make(name).fit(X, D.argmax(axis=1) if name == "LDLClassifier" else D)
        skldl.save(model, folder / f"{name}.skldl")
        expected[name] = model.predict(X[:8]).tolist()
    return expected


def write_table_model(folder: Path) -> None:
    """What ``skldl fit --intervals`` writes for a table with numbers and words, and what it predicts."""
    fit = ["fit", "small.csv", "--labels", "label_*", "--model", "sa-bfgs", "--intervals", "--out", "table.skldl"]
    predict = ["predict", "table.skldl", "small.csv", "--level", "0.9", "--digits", "12", "--out", "table.csv"]
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        if run(fit) or run(predict):
            sys.exit("The model of the table could not be written.")


def write_study(folder: Path) -> None:
    """A study, its records and its tables as CSV."""
    version = ".".join(skldl.__version__.split(".")[:2])
    (folder / "study_as_written.toml").write_text(STUDY.format(version=version), encoding="utf-8")
    with contextlib.chdir(folder):
        write_outputs(run_study(load_study("study_as_written.toml"), out="study"), Path("study"))
    study = folder / "study"
    kept = {study / "records.jsonl", study / "study.toml", *study.glob("tables/*.csv")}
    for path in sorted(study.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path not in kept:
            path.unlink()


def write(folder: Path) -> dict[str, Any]:
    """Write the files of this version to a new folder; returns the predictions of each estimator."""
    folder.mkdir(parents=True)
    table = training_table()
    table.to_csv(folder / "small.csv", index=False, lineterminator="\n")
    expected = write_models(folder, table)
    (folder / "expected.json").write_text(json.dumps(expected, indent=0) + "\n", encoding="utf-8")
    write_table_model(folder)
    write_study(folder)
    return expected


def main() -> None:
    """Write the files of this version."""
    folder = ROOT / "files_{}_{}".format(*skldl.__version__.split(".")[:2])
    if folder.exists():
        if "--overwrite" not in sys.argv[1:]:
            sys.exit(f"{folder} exists. If this version is not released yet, write it again with --overwrite.")
        shutil.rmtree(folder)
    expected = write(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {len(expected)} estimators, {size // 1024} KiB")


if __name__ == "__main__":
    main()
