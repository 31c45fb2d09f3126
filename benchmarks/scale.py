"""Fits from 10⁵ rows on: CPU seconds and peak memory from arrays, from Parquet files and on two Dask workers.

    python benchmarks/scale.py                          # all kinds and sizes, each in a process of its own
    python benchmarks/scale.py --max-rows 1000000       # smaller
    python benchmarks/scale.py --kinds memory parquet   # some kinds
    python benchmarks/scale.py --page                   # only docs/scale.md, from the results that are there

Rows of 20 numbers and 5 degrees, from a noisy maximum entropy model. ``copies`` is scikit-learn's LogisticRegression on
n · c weighted copies, each with one label, as long as they fit. The kinds that begin with ``text`` are hashed words in
2²⁰ columns: SABFGS from CSR chunks and in memory, and on copies SGDClassifier and LogisticRegression(solver="saga").
CPU seconds are those of all processes that take part: what else runs on the machine hardly changes them. Peak memory is
that of the largest of these processes, with the 190 MiB that Python and its libraries take.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from _common import RESULTS, machine, markdown
from scipy import sparse

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- measured: python benchmarks/scale.py -->", "<!-- end -->"
N_FEATURES, N_LABELS, FILE_ROWS = 20, 5, 500_000
N_WORDS, N_COLUMNS = 30, 1 << 20
DENSE = ("memory", "two threads", "parquet", "dask", "copies")
TEXT = ("text chunks", "text memory", "text copies SGD", "text copies saga")
SIZES = dict.fromkeys(DENSE, (100_000, 1_000_000, 10_000_000)) | dict.fromkeys(TEXT, (20_000, 100_000))
MAX_ROWS = {"copies": 1_000_000}
"""Beyond this the copies take more memory than most machines have."""


def dense_rows(first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and distributions of some rows; file by file they are the same as all together."""
    weights = np.random.default_rng(0).normal(size=(N_FEATURES, N_LABELS)) / 3
    X, D = np.empty((count, N_FEATURES)), np.empty((count, N_LABELS))
    for start in range(0, count, FILE_ROWS):
        generator = np.random.default_rng(1 + (first + start) // FILE_ROWS)
        rows, scores = X[start : start + FILE_ROWS], D[start : start + FILE_ROWS]
        generator.standard_normal(out=rows)
        np.matmul(rows, weights, out=scores)
        scores += 0.5 * generator.standard_normal(scores.shape)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
    return X, D


def text_rows(count: int, seed: int = 2) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows of 30 words by Zipf's law in 2²⁰ hashed columns."""
    generator = np.random.default_rng(seed)
    words = np.minimum(generator.zipf(1.3, size=count * N_WORDS), 10**9) * 2654435761 % N_COLUMNS
    X = sparse.csr_matrix((np.ones(len(words)), words, np.arange(0, len(words) + 1, N_WORDS)), (count, N_COLUMNS))
    X.sum_duplicates()
    X.data[:] = 1 / np.sqrt(np.repeat(np.diff(X.indptr), np.diff(X.indptr)))
    weights = np.random.default_rng(1).normal(size=(N_COLUMNS, N_LABELS))
    scores = X @ weights + 0.3 * generator.normal(size=(count, N_LABELS))
    D = np.exp(scores - scores.max(axis=1, keepdims=True))
    return X, D / D.sum(axis=1, keepdims=True)


def write_files(folder: Path, count: int) -> None:
    """The dense rows as Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for part, first in enumerate(range(0, count, FILE_ROWS)):
        X, D = dense_rows(first, min(FILE_ROWS, count - first))
        columns = {f"x{k}": column for k, column in enumerate(X.T)} | {f"r_{k}": column for k, column in enumerate(D.T)}
        path = folder / f"part-{part:04d}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=100_000, use_dictionary=False)


def copies(X, D):
    """Each row once for each label, weighted by its degree."""
    n_rows, n_labels = D.shape
    stacked = sparse.vstack([X] * n_labels, format="csr") if sparse.issparse(X) else np.tile(X, (n_labels, 1))
    return stacked, np.repeat(np.arange(n_labels), n_rows), D.T.ravel()


def measure(kind: str, count: int) -> dict:
    """Fit once in this process; CPU seconds, wall-clock seconds, peak memory, passes and mean divergence."""
    from skldl import SABFGS
    from skldl.chunks import ArrayRows, ClusterRows, ParquetRows
    from skldl.metrics import kullback_leibler

    model = SABFGS(1e-4, fit_intercept=True, n_jobs=2 if kind == "two threads" else None)
    test_X, test_D = text_rows(2000, seed=3) if kind.startswith("text") else dense_rows(10**9, 2000)
    passes = None
    extra = {}
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some peers end at max_iter; their results are in the table nevertheless
        if kind in ("parquet", "dask"):
            subprocess.run(
                [sys.executable, __file__, "--write", name, str(count)], check=True
            )  # whose memory does not count
            source = ParquetRows(name, labels="r_*")
        else:
            X, D = text_rows(count) if kind.startswith("text") else dense_rows(0, count)
        if "copies" in kind:
            X, y, weight = copies(X, D)
            model = peer(kind, len(y))
        before, wall = time.process_time(), time.perf_counter()
        if kind == "parquet":
            model.fit(source)
            passes = source.n_passes
        elif kind == "dask":
            seconds, extra = fit_on_cluster(model, source, ClusterRows)
            before -= seconds
            passes = extra.pop("passes")
        elif kind == "text chunks":
            rows = ArrayRows(X, D)
            model.fit(rows)
            passes = rows.n_passes
        elif "copies" in kind:
            model.fit(X, y, sample_weight=weight)
        else:
            model.fit(X, D)
            passes = model.n_evaluations_ + 1
        seconds, wall = time.process_time() - before, time.perf_counter() - wall
        P = model.predict_proba(test_X) if "copies" in kind else np.asarray(model._predict(test_X))
    row = {"kind": kind, "rows": count, "CPU s": seconds, "wall s": wall, "peak MiB": _peak(), "passes": passes}
    return row | extra | {"held-out KL": kullback_leibler(test_D, P / P.sum(axis=1, keepdims=True))}


def peer(kind: str, n_copies: int):
    """scikit-learn's linear classifier with the same penalty for each copy."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    if "SGD" in kind:
        return SGDClassifier("log_loss", alpha=1e-4 / N_LABELS, random_state=0)
    strength = 1 / (1e-4 * n_copies / N_LABELS)
    if "saga" in kind:
        return LogisticRegression(C=strength, solver="saga", max_iter=100)
    return LogisticRegression(C=strength, max_iter=1000)


def fit_on_cluster(model, source, ClusterRows) -> tuple[float, dict]:
    """Fit on two worker processes: their CPU seconds, and their peak memory."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0, silence_logs=50
    )
    with cluster, Client(cluster) as client:
        before = sum(client.run(time.process_time).values())
        rows = ClusterRows(source, client)
        model.fit(rows)
        seconds = sum(client.run(time.process_time).values()) - before
        peak = max(client.run(_peak).values())
    return seconds, {"passes": rows.n_passes, "peak of a worker MiB": peak}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def keep(row: dict) -> None:
    """Put a row into the file of results, in the place of an older one."""
    path = RESULTS / "scale.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = [old for old in rows if (old["kind"], old["rows"]) != (row["kind"], row["rows"])] + [row]
    order = [*DENSE, *TEXT]
    rows.sort(key=lambda row: (order.index(row["kind"]), row["rows"]))
    path.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


def render(page: str) -> str:
    """The page with the table of the results."""
    stored = json.loads((RESULTS / "scale.json").read_text())
    named = {"kind": "from", "peak of a worker MiB": "worker MiB"}
    columns = ("kind", "rows", "CPU s", "peak MiB", "peak of a worker MiB", "passes", "held-out KL")
    rows = [
        {named.get(column, column): _shown(column, row.get(column)) for column in columns} for row in stored["rows"]
    ]
    first, last = page.index(BEGIN) + len(BEGIN), page.index(END)
    return f"{page[:first]}\n\n{markdown(rows)}\n\n{page[last:]}"


def _shown(column: str, value):
    if value is None or isinstance(value, str):
        return value
    if column == "rows":
        return f"{value:,}"
    return f"{value:.4f}" if column == "held-out KL" else f"{value:.3g}" if column == "CPU s" else f"{value:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=[*DENSE, *TEXT], default=[*DENSE, *TEXT])
    parser.add_argument("--max-rows", type=int, default=10_000_000)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "ROWS"), help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=2, metavar=("FOLDER", "ROWS"), help=argparse.SUPPRESS)
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    if arguments.write:
        write_files(Path(arguments.write[0]), int(arguments.write[1]))
        return
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], int(arguments.one[1]))))
        return
    if not arguments.page:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        for kind in arguments.kinds:
            for count in SIZES[kind]:
                if count > min(arguments.max_rows, MAX_ROWS.get(kind, count)):
                    continue
                command = [sys.executable, __file__, "--one", kind, str(count)]
                done = subprocess.run(command, env=os.environ | threads, stdout=subprocess.PIPE, text=True, check=False)
                if done.returncode:
                    print(f"{kind} with {count:,} rows: ended with {done.returncode}", flush=True)
                    continue
                row = json.loads(done.stdout.splitlines()[-1])
                print(markdown([row]), flush=True)
                keep(row)
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
