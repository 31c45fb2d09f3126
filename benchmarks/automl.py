"""Held-out Kullback-Leibler divergence of packages that choose models by themselves, beside that of `AutoLDL`.

    pip install 'flaml[automl]' 'autogluon.tabular[lightgbm,catboost,xgboost]'
    SKLDL_DATA=DIR OMP_NUM_THREADS=1 python benchmarks/automl.py                              # both, on all sets
    SKLDL_DATA=DIR OMP_NUM_THREADS=1 python benchmarks/automl.py SJAFFE --packages FLAML --seconds 60

Both packages predict one number, so that every label gets a regression of its own, and `AARegressor` projects the
predictions onto the simplex. The time is for all labels of a set together, on one core. The first folds of ten are
measured, as `accuracy.py` cuts them: one, or as many as ``--folds`` names. A fit that takes `PATIENCE` times its time
is stopped, and the set has no divergence.
Results are added to ``results/automl.json``.
"""

import argparse
import importlib.metadata
import json
import logging
import signal
import tempfile
import time
import warnings
from pathlib import Path

import pandas as pd
from accuracy import SETS, folds_of
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.multioutput import MultiOutputRegressor

import skldl
from skldl.data import load_dataset
from skldl.metrics import kullback_leibler

RESULTS = Path(__file__).parent / "results" / "automl.json"
PATIENCE = 5
DISTRIBUTIONS = {"FLAML": "flaml", "AutoGluon": "autogluon.tabular"}


class AutoGluonRegressor(RegressorMixin, BaseEstimator):
    """`autogluon.tabular.TabularPredictor` with the interface of scikit-learn."""

    def __init__(self, seconds=60.0):
        self.seconds = seconds

    def fit(self, X, y):
        from autogluon.tabular import TabularPredictor

        options = {"label": "y", "problem_type": "regression", "eval_metric": "mean_squared_error", "verbosity": 0}
        self.predictor_ = TabularPredictor(path=tempfile.mkdtemp(), **options)
        self.predictor_.fit(_frame(X).assign(y=y), time_limit=self.seconds, num_cpus=1)
        return self

    def predict(self, X):
        return self.predictor_.predict(_frame(X)).to_numpy()


def _frame(X):
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def flaml_regressor(seconds):
    from flaml import AutoML

    return AutoML(task="regression", metric="mse", time_budget=seconds, n_jobs=1, seed=0, verbose=0)


REGRESSORS = {"FLAML": flaml_regressor, "AutoGluon": AutoGluonRegressor}


def measure(name, package, seconds, n_folds=1):
    X, D = load_dataset(name)
    X = X.toarray() if hasattr(X, "toarray") else X
    by_fold, used = [], 0.0
    for train, test in folds_of(len(D), "shuffled")[:n_folds]:
        divergence, fit_seconds = measure_fold(X[train], D[train], X[test], D[test], package, seconds)
        by_fold.append(divergence)
        used += fit_seconds / n_folds
    stopped = None in by_fold
    return {
        "dataset": name,
        "package": package,
        "package_version": importlib.metadata.version(DISTRIBUTIONS[package]),
        "seconds": seconds,
        "cpu_seconds": used,
        "folds": n_folds,
        "by_fold": by_fold,
        "kullback_leibler": None if stopped else sum(by_fold) / n_folds,
        "stopped_after": PATIENCE * seconds if stopped else None,
        "version": skldl.__version__,
    }


def measure_fold(X, D, X_test, D_test, package, seconds):
    """Divergence on the test fold (None if the fit was stopped), and CPU seconds of the fit."""
    one_label = REGRESSORS[package](seconds / D.shape[1])
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)
    started = time.process_time()
    try:
        model = skldl.AARegressor(MultiOutputRegressor(one_label)).fit(X, D)
        used = time.process_time() - started
        return float(kullback_leibler(D_test, model.predict(X_test))), used
    except TooLong:
        return None, time.process_time() - started
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class TooLong(BaseException):
    """A fit takes `PATIENCE` times its time; AutoGluon would catch an Exception and continue with the next model."""


def _too_long(*_):
    raise TooLong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, help=f"of {', '.join(SETS)}")
    parser.add_argument("--packages", default=",".join(REGRESSORS), help="separated by commas")
    parser.add_argument("--seconds", type=float, default=120.0, help="wall time of one fit, all labels together")
    parser.add_argument("--folds", type=int, default=1, choices=range(1, 11), metavar="1..10", help="how many folds")
    given = parser.parse_args()
    packages = given.packages.split(",")
    for word, known in [(word, SETS) for word in given.sets] + [(word, REGRESSORS) for word in packages]:
        if word not in known:
            parser.error(f"{word!r} is not one of {', '.join(known)}")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for name in given.sets:
        for package in packages:
            entry = measure(name, package, given.seconds, given.folds)
            divergence = "stopped" if entry["kullback_leibler"] is None else f"{entry['kullback_leibler']:.5f}"
            print(f"{name:14} {package:10} {divergence} {entry['cpu_seconds']:8.1f} s", flush=True)
            known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
            known = [other for other in known if (other["dataset"], other["package"]) != (name, package)]
            RESULTS.write_text(json.dumps([*known, entry], indent=1) + "\n")


if __name__ == "__main__":
    main()
