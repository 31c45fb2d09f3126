"""Held-out Kullback-Leibler divergence of `AutoLDL`, of its kinds of members and of scikit-learn's regressors.

    SKLDL_DATA=DIR OMP_NUM_THREADS=1 python benchmarks/accuracy.py                         # AutoLDL on all sets
    SKLDL_DATA=DIR OMP_NUM_THREADS=1 python benchmarks/accuracy.py SJAFFE:10 --models auto,forest --order file
    SKLDL_DATA=DIR OMP_NUM_THREADS=1 python benchmarks/accuracy.py SJAFFE:10 --models "sklearn ridge,sklearn MLP"

A set is followed by its number of folds of the ten that are run. Shuffled folds come from the permutation of
``default_rng(0)``, cut into ten by ``array_split``; with ``--order file`` the folds are chunks in file order, in which
SJAFFE and SBU_3DFE keep the faces of one person nearly together. Results are added to ``results/accuracy.json``, with
CPU seconds of the fits.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skldl
from skldl.data import load_dataset
from skldl.metrics import kullback_leibler

RESULTS = Path(__file__).parent / "results" / "accuracy.json"
FOLDS = {"SJAFFE": 10, "SBU_3DFE": 5, "Natural_Scene": 4}
SETS = (
    "SJAFFE", "SBU_3DFE", "Natural_Scene", "Movie", "Yeast_alpha", "Yeast_cdc", "Yeast_elu", "Yeast_diau", "Yeast_heat",
    "Yeast_spo", "Yeast_cold", "Yeast_dtt", "Yeast_spo5", "Yeast_spoem",
)  # fmt: skip


def scaled(regressor):
    """A regressor on standardised features; predictions are made distributions by `AARegressor`."""
    return skldl.AARegressor(make_pipeline(StandardScaler(with_mean=False), regressor))


MODELS = {
    "auto": lambda: skldl.AutoLDL(random_state=0, verbose=False),
    "mean": skldl.MeanDistribution,
    "linear": skldl.SABFGSCV,
    "neighbours": skldl.AAKNNCV,
    "kernel": lambda: skldl.KernelRidgeLDL("degrees"),
    "kernel-clr": lambda: skldl.KernelRidgeLDL("clr"),
    "forest": lambda: skldl.RandomForestLDL(random_state=0),
    "boosting": lambda: skldl.GradientBoostingLDL(random_state=0),
    # what a user of scikit-learn would try
    "sklearn forest": lambda: skldl.AARegressor(RandomForestRegressor(200, random_state=0)),
    "sklearn MLP": lambda: scaled(MLPRegressor(early_stopping=True, max_iter=500, random_state=0)),
    "sklearn ridge": lambda: scaled(RidgeCV(np.logspace(-3, 5, 17))),
    "sklearn boosting": lambda: skldl.AARegressor(MultiOutputRegressor(HistGradientBoostingRegressor(random_state=0))),
}


def folds_of(n_rows, order):
    rows = np.arange(n_rows) if order == "file" else np.random.default_rng(0).permutation(n_rows)
    parts = np.array_split(rows, 10)
    return [(np.concatenate(parts[:fold] + parts[fold + 1 :]), parts[fold]) for fold in range(10)]


def measure(name, n_folds, model, order):
    X, D = load_dataset(name)
    divergences, seconds = [], []
    for train, test in folds_of(len(D), order)[:n_folds]:
        started = time.process_time()
        features = X.toarray() if model == "sklearn boosting" and hasattr(X, "toarray") else X
        fitted = MODELS[model]().fit(features[train], D[train])
        seconds.append(time.process_time() - started)
        divergences.append(kullback_leibler(D[test], fitted.predict(features[test])))
    return {
        "dataset": name,
        "model": model,
        "order": order,
        "folds": n_folds,
        "kullback_leibler": float(np.mean(divergences)),
        "by_fold": [float(value) for value in divergences],
        "fit_cpu_seconds": float(np.mean(seconds)),
        "version": skldl.__version__,
    }


def chosen_set(word, parser):
    """The dataset that a word names, and its number of folds; a mistake is reported before anything is measured."""
    name, _, count = word.partition(":")
    if name not in SETS:
        parser.error(f"there is no set {name!r}; known are: {', '.join(SETS)}")
    if count and not (count.isdecimal() and 1 <= int(count) <= 10):
        parser.error(f"{word!r}: the number of folds must be 1 to 10")
    return name, int(count or FOLDS.get(name, 3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, help="name, or name:folds")
    parser.add_argument("--models", default="auto", help=f"separated by commas: {', '.join(MODELS)}")
    parser.add_argument("--order", choices=("shuffled", "file"), default="shuffled")
    given = parser.parse_args()
    sets, models = [chosen_set(word, parser) for word in given.sets], [word.strip() for word in given.models.split(",")]
    for model in models:
        if model not in MODELS:
            parser.error(f"there is no model {model!r}; known are: {', '.join(MODELS)}")
    warnings.simplefilter("ignore")
    for name, n_folds in sets:
        for model in models:
            entry = measure(name, n_folds, model, given.order)
            print(f"{name:14} {model:17} {entry['kullback_leibler']:.5f} {entry['fit_cpu_seconds']:8.1f} s", flush=True)
            known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
            key = ("dataset", "model", "order")
            known = [other for other in known if any(other[part] != entry[part] for part in key)]
            RESULTS.write_text(json.dumps([*known, entry], indent=1) + "\n")


if __name__ == "__main__":
    main()
