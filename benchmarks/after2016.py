"""Algorithms after 2016 side by side with python-ldl: one process, one core, the same fold.

Defaults on both sides, but for our penalty ``alpha``, whose right size depends on the scale of the features: it is
chosen on a ninth of the training rows, and the time of that choice among seven values stands beside the time of the
fit.

Runs in an environment that holds python-ldl, torch and scikit-ldl, as `benchmarks/run.py` makes it:

    python benchmarks/after2016.py [--algorithms LDL-LRR LDLLC] [--datasets Yeast_alpha]

Each row of ``results/after2016.json`` holds CPU seconds of fit and prediction, their ratio (above 1: ours is faster)
and the mean Kullback-Leibler divergence on the test fold of both, and of the mean distribution. Several of python-ldl's
algorithms stop after a fixed number of steps, far from the optimum of their objective; ours converge. A peer that takes
longer than ``--limit`` CPU seconds is stopped and its row says so.
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

ALPHAS = [10.0**power for power in range(-2, -9, -1)]
NO_CHOICE = ("CPNN", "LDLF", "LDLogitBoost")  # their defaults suit standardised features
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


def choose_alpha(name: str, X: Any, D: np.ndarray) -> float | None:
    """The penalty with the least divergence on the last ninth of the training rows; None where it is not chosen."""
    if name in NO_CHOICE:
        return None
    first = len(D) - len(D) // 9
    path = OURS[name]().predict_path(X[:first], D[:first], X[first:], param="alpha", values=ALPHAS)
    values = [divergence(D[first:], np.maximum(P, 1e-12)) for P in path]
    return ALPHAS[int(np.argmin(values))]


def our_run(name: str, X: Any, D: np.ndarray, X_new: Any, alpha: float | None) -> np.ndarray:
    if name == "LDLogitBoost":
        X, X_new = dense(X), dense(X_new)
    model = OURS[name]()
    if alpha is not None:
        model.set_params(alpha=alpha)
    return model.fit(X, D).predict(X_new)


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
            choice, alpha = timed(lambda: choose_alpha(name, X, D), repeats=1)
            ours, P = timed(lambda: our_run(name, X, D, X_test, alpha), repeats=3)
            row = {"case": f"{name}, {dataset}", "alpha": alpha, "choice of alpha s": choice, "ours s": ours}
            row |= {"ours KL": divergence(D_test, np.maximum(P, 1e-12)), "mean KL": mean}
            row |= {"python-ldl s": None, "python-ldl KL": None, "python-ldl / ours": None, "remark": ""}
            if name != "BD-LDL":  # a closed form needs no limit, and the timer makes the clock coarse
                signal.setitimer(signal.ITIMER_PROF, limit)  # CPU seconds, as the times are
            try:
                theirs, Q = timed(lambda: their_run(name, X, D, X_test), repeats=3)
                row |= {"python-ldl s": theirs, "python-ldl / ours": theirs / ours}
                row["python-ldl KL"] = divergence(D_test, np.maximum(Q, 1e-12))
            except TimeoutError:
                row["remark"] = f"python-ldl stopped after {limit} CPU seconds"
            except Exception as error:  # what a peer cannot do is a result, too
                row["remark"] = f"python-ldl: {type(error).__name__}"
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
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
    signal.signal(signal.SIGPROF, _too_long)
    warnings.simplefilter("ignore")
    for row in rows(arguments.algorithms, arguments.datasets, arguments.limit):
        keep("after2016", row)


if __name__ == "__main__":
    main()
