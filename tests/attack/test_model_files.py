"""Mutated model files: none ends the process, hangs it or fills its memory, and every refusal is a ModelFileError.

The short run takes 100 files; ``make test-slow`` takes 10,000.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR

import skldl
from skldl.testing import make_distributions

pd = pytest.importorskip("pandas")
VICTIM = Path(__file__).with_name("mutations.py")
MOST_MEMORY = 3 * 2**30
BATCH = 500


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models of every kind that holds index arrays, each with something to predict for."""
    folder = tmp_path_factory.mktemp("models")
    X, D = make_distributions()
    models = {
        "knn-brute": skldl.AAKNN(n_neighbors=3),
        "knn-kd": skldl.AAKNN(n_neighbors=3, algorithm="kd_tree"),
        "knn-ball": skldl.AAKNN(n_neighbors=3, algorithm="ball_tree", weights="distance"),
        "knn-sklearn": skldl.AARegressor(KNeighborsRegressor(3, algorithm="kd_tree")),
        "forest": skldl.AARegressor(RandomForestRegressor(3, random_state=0)),
        "boosting": skldl.AARegressor(HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=5)),
        "svr": skldl.AARegressor(MultiOutputRegressor(SVR())),
        "logistic": skldl.PTClassifier(LogisticRegression()),
        "pt-svm": skldl.PTSVM(),
        "pt-bayes": skldl.PTBayes(),
        "sa-bfgs": skldl.SABFGS(),
        "aa-bp": skldl.AABP(),
        "knn-cv": skldl.AAKNNCV(),
        "hvlc": skldl.LDLHVLC(),
        "trees-flat": skldl.RandomForestLDL(5, n_trial_estimators=3, random_state=0),
        "trees-newton": skldl.LDLogitBoost(3),
        "trees-struct": skldl.StructRF(3, random_state=0),
    }
    for name, model in models.items():
        skldl.save(model.fit(X, D), folder / f"{name}.skldl")
        np.save(folder / f"{name}.npy", X)
    rows = sparse.csr_matrix(np.where(X < 0.5, 0, X))
    skldl.save(skldl.AAKNN(n_neighbors=3).fit(rows, D), folder / "knn-sparse.skldl")
    np.save(folder / "knn-sparse.npy", X)
    table = pd.DataFrame(X, columns=list("abcd")).assign(
        town=["Ulm", "Bonn", "Kiel", "Jena"] * 10, note=["cold soup", "warm bread", "old cheese", "tea"] * 10
    )
    table.loc[3, "a"] = None
    from skldl.tabular import TableEncoder

    for name, estimator in {"table-linear": skldl.SABFGS(), "table-knn": skldl.AAKNN(n_neighbors=3)}.items():
        model = make_pipeline(TableEncoder(text=["note"]), estimator).fit(table, D)
        skldl.save(model, folder / f"{name}.skldl")
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


def attack(folder, first, count):
    """Let a process of its own load and use the mutated files; say what happened."""
    command = [sys.executable, str(VICTIM), str(folder), str(first), str(count)]
    victim = subprocess.run(command, capture_output=True, text=True, check=False, timeout=540)
    lines = victim.stdout.splitlines()
    assert victim.returncode == 0, (
        f"ended by {victim.returncode} (-27 is a hang) at file {lines[-1:]}: {victim.stderr[-2000:]}"
    )
    report = json.loads(lines[-1])
    assert report["peak_bytes"] < MOST_MEMORY
    unclear = [line for line in lines if line.startswith("unclear")]
    assert not unclear, unclear
    return Counter(report["outcomes"])


@pytest.mark.slow
def test_some_mutated_files(folder):
    outcomes = attack(folder, 0, 50)
    assert outcomes["rejected"] > 12
    assert outcomes["predicted"] > 2  # not every change matters, and not everything is rejected


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 10_000, BATCH))
def test_ten_thousand_mutated_files(folder, first):
    outcomes = attack(folder, first, BATCH)
    print(dict(outcomes))
    assert outcomes["rejected"] > BATCH // 4
