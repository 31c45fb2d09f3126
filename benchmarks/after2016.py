"""Algorithms after 2016 side by side with python-ldl: one process, one core, the same fold, defaults on both sides.

Runs in an environment that holds python-ldl, torch and scikit-ldl, as `benchmarks/run.py` makes it:

    python benchmarks/after2016.py [--algorithms LDL-LRR LDLLC] [--datasets Yeast_alpha]

Each row of ``results/after2016.json`` holds CPU seconds of fit and prediction, their ratio (above 1: ours is faster)
and the mean Kullback-Leibler divergence on the test fold of both, and of the mean distribution. Several of python-ldl's
algorithms stop after a fixed number of steps, far from the optimum of their objective; ours converge. A peer that takes
longer than ``--limit`` seconds is stopped and its row says so.
"""

import argparse
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _common import dense, divergence, first_fold, keep, load, timed

from skldl import MeanDistribution
from skldl.correlation import BDLDL, LDLDPA, LDLHVLC, LDLLC, LDLLRR, LDLSCL
from skldl.decision import LDL4C, LDLHR, LDLM
from skldl.kernel import LDSVR
from skldl.neural import CPNN
from skldl.trees import LDLF, LDLogitBoost

DATASETS = ("Yeast_alpha", "SBU_3DFE", "Movie")

OURS: dict[str, Callable[[], Any]] = {
    "BD-LDL": BDLDL,
    "LDL-LRR": LDLLRR,
    "LDL-DPA": LDLDPA,
    "LDLLC": LDLLC,
    "LDL-SCL": LDLSCL,
    "LDL-HVLC": LDLHVLC,
    "LDSVR": LDSVR,
    "LDL4C": LDL4C,
    "LDL-HR": LDLHR,
    "LDLM": LDLM,
    "CPNN": lambda: CPNN(label_code="one_hot", random_state=0),
    "LDLF": lambda: LDLF(random_state=0),
    "LDLogitBoost": lambda: LDLogitBoost(100, method="logitboost"),
}
THEIRS = {
    "BD-LDL": "BD_LDL",
    "LDL-LRR": "LDL_LRR",
    "LDL-DPA": "LDL_DPA",
    "LDLLC": "LDLLC",
    "LDL-SCL": "LDL_SCL",
    "LDL-HVLC": "LDL_HVLC",
    "LDSVR": "LDSVR",
    "LDL4C": "LDL4C",
    "LDL-HR": "LDL_HR",
    "LDLM": "LDLM",
    "CPNN": "BCPNN",
    "LDLF": "LDLF",
    "LDLogitBoost": "LDLogitBoost",
}


def our_run(name: str, X: Any, D: np.ndarray, X_new: Any) -> np.ndarray:
    if name == "LDLogitBoost":
        X, X_new = dense(X), dense(X_new)
    return OURS[name]().fit(X, D).predict(X_new)


def their_run(name: str, X: Any, D: np.ndarray, X_new: Any) -> np.ndarray:
    from pyldl import algorithms

    model = getattr(algorithms, THEIRS[name])()
    model.fit(dense(X), D)
    X_new = dense(X_new)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X_new)
    return model.predict(X_new)


def rows(algorithms: list[str], datasets: list[str], limit: int) -> Iterator[dict[str, Any]]:
    for dataset in datasets:
        X, D, X_test, D_test = first_fold(*load(dataset))
        mean = divergence(D_test, MeanDistribution().fit(X, D).predict(X_test))
        for name in algorithms:
            ours, P = timed(lambda: our_run(name, X, D, X_test), repeats=3)
            row = {"case": f"{name}, {dataset}", "ours s": ours, "ours KL": divergence(D_test, P), "mean KL": mean}
            row |= {"python-ldl s": None, "python-ldl KL": None, "python-ldl / ours": None, "remark": ""}
            signal.alarm(limit)
            try:
                theirs, Q = timed(lambda: their_run(name, X, D, X_test), repeats=3)
                row |= {"python-ldl s": theirs, "python-ldl / ours": theirs / ours}
                row["python-ldl KL"] = divergence(D_test, np.maximum(Q, 1e-12))
            except TimeoutError:
                row["remark"] = f"python-ldl stopped after {limit} s"
            except Exception as error:  # what a peer cannot do is a result, too
                row["remark"] = f"python-ldl: {type(error).__name__}"
            finally:
                signal.alarm(0)
            yield row


def _too_long(*_: Any) -> None:
    raise TimeoutError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithms", nargs="+", default=list(OURS), choices=list(OURS))
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--limit", type=int, default=600)
    arguments = parser.parse_args()
    os.environ.setdefault("KERAS_BACKEND", "torch")
    signal.signal(signal.SIGALRM, _too_long)
    warnings.simplefilter("ignore")
    for row in rows(arguments.algorithms, arguments.datasets, arguments.limit):
        keep("after2016", row)


if __name__ == "__main__":
    main()
