"""Functions that the benchmarks share: data, folds, repeated timing, tables."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import skldl
from skldl.data import load_dataset
from skldl.metrics import kullback_leibler

RESULTS = Path(__file__).parent / "results"
PAPER_SETS = ("Yeast_alpha", "SJAFFE", "SBU_3DFE", "Natural_Scene", "Movie")
SYNTHETIC = "Synthetic"
ALL_SETS = (*PAPER_SETS, SYNTHETIC)


def load(name: str) -> tuple[Any, np.ndarray]:
    """X and D of a dataset of the paper, or of a synthetic set of the shape of Human Gene."""
    if name == SYNTHETIC:
        return synthetic(30_542)
    dataset = load_dataset(name)
    return dataset.X, dataset.D


def synthetic(n_samples: int, n_features: int = 36, n_labels: int = 68) -> tuple[np.ndarray, np.ndarray]:
    """Features in [0, 1] and distributions from a noisy maximum entropy model."""
    generator = np.random.default_rng(0)
    X = generator.uniform(size=(n_samples, n_features))
    weights = generator.normal(scale=0.7, size=(n_features, n_labels))
    scores = X @ weights + generator.normal(scale=0.5, size=(n_samples, n_labels))
    D = np.exp(scores - scores.max(axis=1, keepdims=True))
    return X, D / D.sum(axis=1, keepdims=True)


def first_fold(X: Any, D: np.ndarray) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """The first of the paper's ten folds in file order: train on nine tenths, test on the first tenth."""
    test = np.array_split(np.arange(len(D)), 10)[0]
    train = np.arange(len(test), len(D))
    return X[train], D[train], X[test], D[test]


def dense(X: Any) -> np.ndarray:
    """A dense array, for peers that take no sparse matrix."""
    return X.toarray() if sparse.issparse(X) else X


def timed(action: Callable[[], Any], *, repeats: int = 5, patience: float = 20.0) -> tuple[float, Any]:
    """Median time of repeated runs and the last result; an action that takes over `patience` seconds runs once.

    The clock counts the seconds of this process alone: with one thread that is what a quiet machine would show, and
    what else runs on this one hardly changes it.
    """
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        result = action()
        seconds.append(time.process_time() - start)
        if seconds[0] > patience:
            break
    return statistics.median(seconds), result


def divergence(D: np.ndarray, P: np.ndarray) -> float:
    """Mean Kullback-Leibler divergence of a prediction that may be in single precision."""
    P = np.asarray(P, dtype=np.float64)
    return kullback_leibler(D, P / P.sum(axis=1, keepdims=True))


def machine() -> dict[str, str]:
    """Processor, system and versions of packages, on which a figure depends."""
    names = ("numpy", "scipy", "scikit-learn", "python-ldl", "torch", "keras")
    versions = {"scikit-ldl": skldl.__version__}  # that of the source: an editable install can declare an older one
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "cpu": cpu,
        "cores used": str(len(os.sched_getaffinity(0))),
        "python": platform.python_version(),
        **versions,
    }


def keep(section: str, row: dict[str, Any]) -> None:
    """Print a row and put it into the section's file, in the place of an older row of the same name."""
    print(markdown([row]), flush=True)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{section}.json"
    before = json.loads(path.read_text()) if path.exists() else {"machine": {}, "rows": []}
    rows, now = before["rows"], machine()
    name = next(iter(row))
    rows = [old for old in rows if old[name] != row[name]] + [row]
    rows.sort(key=lambda row: ALL_SETS.index(row[name]) if row[name] in ALL_SETS else 0)
    # rows of an earlier version stay until they are measured again, so each says which version it belongs to
    versions = {str(old[name]): before["machine"].get("scikit-ldl", "") for old in rows} | before.get("versions", {})
    versions[str(row[name])] = now.get("scikit-ldl", "")
    now = before["machine"] | now  # a package that is not here keeps the version that its figures belong to
    path.write_text(json.dumps({"machine": now, "versions": versions, "rows": rows}, indent=1) + "\n")


def markdown(rows: list[dict[str, Any]]) -> str:
    """A Markdown table of rows with the same keys."""
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(row.get(column)) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
