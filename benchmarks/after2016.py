"""Algorithms after 2016 side by side with python-ldl: one process, one core, the same fold, defaults on both sides.

Runs in an environment that holds python-ldl, torch and scikit-ldl, as `benchmarks/run.py` makes it:

    python benchmarks/after2016.py [--algorithms LDL-LRR LDLLC] [--datasets Yeast_alpha] [--limit 600]

Each row of ``results/after2016.json`` holds CPU seconds of fit and prediction on the first of ten folds in file order,
their ratio (above 1: ours is faster) and the mean Kullback-Leibler divergence of both on the rows held out, and of the
mean distribution: over all ten folds for algorithms that are quick, over five for those that begin at random, since
one fold says little of them, else on the first fold ("folds"). Several of
python-ldl's algorithms stop after a fixed number of steps, far from the optimum of their objective; ours converge. A
fit of python-ldl that takes longer than ``--limit`` CPU seconds is stopped: its row notes it, and the ratio is a lower
bound.
``--side`` measures one package alone and keeps the figures of the other one from an earlier run, perhaps on another
machine. The ratio allows for that: `YARDSTICK`, which has not changed since, is timed again, and the seconds of
python-ldl are multiplied by what it takes now over what it took then; the remark names the factor.
"""

import argparse
import json
import os
import signal
import subprocess
import sysconfig
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _common import RESULTS, dense, divergence, first_fold, keep, load, timed

from skldl import MeanDistribution
from skldl.correlation import BDLDL, LDLDPA, LDLHVLC, LDLLC, LDLLDM, LDLLRR, LDLSCL
from skldl.decision import LDL4C, LDLHR, LDLM
from skldl.kernel import LDSVR
from skldl.losses import DirichletLDL, SmoothLossLDL
from skldl.neural import CPNN
from skldl.trees import LDLF, LDLogitBoost, StructRF

DATASETS = ("Yeast_alpha", "SBU_3DFE", "Movie")
QUICK = ("BD-LDL", "LDL-LRR", "LDL-DPA", "LDLLC", "LDL-LDM", "LDSVR", "LDL4C", "LDL-HR", "Smooth-Loss", "StructRF")
RANDOM = ("CPNN", "LDLF")
Fold = tuple[Any, np.ndarray, Any, np.ndarray]

OURS: dict[str, Callable[[], Any]] = {
    "BD-LDL": BDLDL,
    "LDL-LRR": LDLLRR,
    "LDL-DPA": LDLDPA,
    "LDLLC": LDLLC,
    "LDL-SCL": LDLSCL,
    "LDL-HVLC": LDLHVLC,
    "LDL-LDM": LDLLDM,
    "LDSVR": LDSVR,
    "LDL4C": LDL4C,
    "LDL-HR": LDLHR,
    "LDLM": LDLM,
    "Smooth-Loss": SmoothLossLDL,
    "Dirichlet": DirichletLDL,
    "CPNN": lambda: CPNN(label_code="one_hot", random_state=0),
    "LDLF": lambda: LDLF(random_state=0),
    "LDLogitBoost": lambda: LDLogitBoost(100, method="logitboost"),
    "StructRF": lambda: StructRF(random_state=0),
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
    "Smooth-Loss": "SA_BFGS",  # the default loss is the divergence
    "CPNN": "BCPNN",
    "LDLF": "LDLF",
    "LDLogitBoost": "LDLogitBoost",
    "StructRF": "StructRF",
}
"""What python-ldl calls them; it has neither LDL-LDM nor a Dirichlet output."""
YARDSTICK = "LDL4C"
ELSEWHERE = "ratio with python-ldl's seconds of an earlier run times "


def our_run(name: str, X: Any, D: np.ndarray, X_new: Any) -> np.ndarray:
    if name in ("LDLogitBoost", "StructRF"):
        X, X_new = dense(X), dense(X_new)
    return OURS[name]().fit(X, D).predict(X_new)


def compile_extensions(folder: str) -> None:
    """Compile the C sources that the wheel of python-ldl 0.1.2 holds in place of the modules that its trees import.

    The two macros are missing in the headers of NumPy before 2.5; the functions that use them are never called.
    """
    import pyldl.algorithms

    macros = (
        "-D_PyUFuncObject_GET_ITEM_DATA(x)=((PyUFuncObject*)(x))",
        "-D_PyDatetimeScalarObject_GetMetadata(x)=(((PyDatetimeScalarObject*)(x))->obmeta)",
    )
    headers = (f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}")
    for name in ("_tree", "_rbm"):
        source, target = Path(pyldl.algorithms.__file__).with_name(f"{name}.c"), f"{folder}/{name}.so"
        subprocess.run(["cc", "-O2", "-w", "-shared", "-fPIC", *macros, *headers, source, "-o", target], check=True)
    pyldl.algorithms.__path__.append(folder)


def their_run(name: str, X: Any, D: np.ndarray, X_new: Any) -> np.ndarray:
    from pyldl import algorithms

    model = getattr(algorithms, THEIRS[name])()
    model.fit(dense(X), D)
    X_new = dense(X_new)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X_new)
    return model.predict(X_new)


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in this thread after a CPU time in seconds; a profiling timer would make the clock coarse."""
    done, end = threading.Event(), time.process_time() + seconds

    def watch() -> None:
        while not done.wait(0.5):
            if time.process_time() > end:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def folds_of(name: str, dataset: str) -> list[Fold]:
    """Ten folds in file order, five of them, or the first alone where more would take long."""
    X, D = load(dataset)
    if name not in (*QUICK, *RANDOM) or dataset == "Movie":
        return [first_fold(X, D)]
    rows = np.arange(len(D))
    parts = [(np.setdiff1d(rows, test), test) for test in np.array_split(rows, 10)[: 5 if name in RANDOM else 10]]
    return [(X[train], D[train], X[test], D[test]) for train, test in parts]


def held_out(folds: list[Fold], predict: Callable[..., np.ndarray], first: np.ndarray) -> float:
    """Mean divergence over the folds; the prediction for the first is known."""
    P = [first, *(predict(X, D, X_test) for X, D, X_test, _ in folds[1:])]
    return float(np.mean([divergence(fold[3], np.maximum(p, 1e-12)) for fold, p in zip(folds, P, strict=True)]))


def steadily_timed(action: Callable[[], Any], *, patience: float = 20.0) -> tuple[float, Any]:
    """Median of three runs, or of 101 where a run takes milliseconds: three of these differ by a factor of two."""
    first, result = timed(action, repeats=1)
    if first > patience:
        return first, result
    seconds, result = timed(action, repeats=3, patience=patience)
    return timed(action, repeats=101) if seconds < 0.02 else (seconds, result)


def their_figures(name: str, folds: list[Fold], limit: int) -> dict[str, Any]:
    X, D, X_test, _ = folds[0]
    import keras  # noqa: F401 - python-ldl imports it at its first use, which is no part of a fit

    figures: dict[str, Any] = {"python-ldl s": None, "python-ldl KL": None, "remark": ""}
    if name not in THEIRS:
        return figures | {"remark": "not in python-ldl"}
    try:
        with cpu_limit(limit):
            seconds, Q = steadily_timed(lambda: their_run(name, X, D, X_test), patience=min(5, limit / 4))
            figures["python-ldl KL"] = held_out(folds, partial(their_run, name), Q)
        figures["python-ldl s"] = seconds
    except TimeoutError:
        figures |= {"python-ldl s": float(limit), "remark": f"python-ldl stopped after {limit} CPU seconds"}
    except Exception as error:  # a failure of a peer is a result, too
        figures["remark"] = f"python-ldl: {type(error).__name__}"
    return figures


def mean_run(X: Any, D: np.ndarray, X_new: Any) -> np.ndarray:
    return MeanDistribution().fit(X, D).predict(X_new)


def our_figures(name: str, folds: list[Fold]) -> dict[str, Any]:
    X, D, X_test, _ = folds[0]
    seconds, P = steadily_timed(lambda: our_run(name, X, D, X_test))
    mean = held_out(folds, mean_run, mean_run(X, D, X_test))
    return {"ours s": seconds, "ours KL": held_out(folds, partial(our_run, name), P), "mean KL": mean}


def earlier_rows() -> dict[str, dict[str, Any]]:
    path = RESULTS / "after2016.json"
    return {row["case"]: row for row in json.loads(path.read_text())["rows"]} if path.exists() else {}


def pace(dataset: str, rows: dict[str, dict[str, Any]]) -> float:
    """Seconds of the yardstick now, divided by those of its earlier run."""
    X, D, X_test, _ = first_fold(*load(dataset))
    return steadily_timed(lambda: our_run(YARDSTICK, X, D, X_test))[0] / rows[f"{YARDSTICK}, {dataset}"]["ours s"]


def measure(algorithms: list[str], datasets: list[str], limit: int, side: str) -> Iterator[dict[str, Any]]:
    earlier = earlier_rows()
    for dataset in datasets:
        factor = pace(dataset, earlier) if side == "ours" else 1.0
        for name in algorithms:
            folds = folds_of(name, dataset)
            case = f"{name}, {dataset}"
            figures = earlier.get(case, {})
            if side != "theirs":
                figures |= our_figures(name, folds)
            if side != "ours":
                figures |= their_figures(name, folds, limit)
            ours, theirs = figures.get("ours s"), figures.get("python-ldl s")
            figures["python-ldl / ours"] = factor * theirs / ours if ours and theirs else None
            if side == "ours" and theirs:
                parts = [part for part in str(figures["remark"]).split("; ") if part and not part.startswith(ELSEWHERE)]
                figures["remark"] = "; ".join([*parts, f"{ELSEWHERE}{factor:.2g}"])
            figures["folds"] = len(folds)
            columns = (
                "ours s",
                "python-ldl s",
                "python-ldl / ours",
                "ours KL",
                "python-ldl KL",
                "mean KL",
                "folds",
                "remark",
            )
            yield {"case": case, **{column: figures.get(column) for column in columns}}


def _too_long(*_: Any) -> None:
    raise TimeoutError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithms", nargs="+", default=list(OURS), choices=list(OURS))
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--side", default="both", choices=("both", "ours", "theirs"))
    arguments = parser.parse_args()
    os.environ.setdefault("KERAS_BACKEND", "torch")
    signal.signal(signal.SIGALRM, _too_long)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.side != "ours" and {"LDLogitBoost", "StructRF"} & set(arguments.algorithms):
            compile_extensions(folder)
        for row in measure(arguments.algorithms, arguments.datasets, arguments.limit, arguments.side):
            keep("after2016", row)


if __name__ == "__main__":
    main()
