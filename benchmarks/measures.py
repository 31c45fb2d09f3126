"""Speed and memory of the measures against the same formulae in plain NumPy, side by side in one process.

Run ``python benchmarks/measures.py``. Each figure is the median of repeated runs.
"""

import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from skldl.metrics import CHA_MEASURES, MEASURES, evaluate

EPS = np.finfo(np.float64).eps


def kullback_leibler(D, P):
    return (D * np.log(np.maximum(D, EPS) / np.maximum(P, EPS))).sum(axis=1).mean()


def clark(D, P):
    return np.sqrt(((D - P) ** 2 / (D + P) ** 2).sum(axis=1)).mean()


def canberra(D, P):
    return (np.abs(D - P) / (D + P)).sum(axis=1).mean()


def plain_three(D, P):
    return kullback_leibler(D, P), clark(D, P), canberra(D, P)


def plain_six(D, P):
    chebyshev = np.abs(D - P).max(axis=1).mean()
    cosine = ((D * P).sum(axis=1) / np.sqrt((D**2).sum(axis=1) * (P**2).sum(axis=1))).mean()
    intersection = np.minimum(D, P).sum(axis=1).mean()
    return chebyshev, clark(D, P), canberra(D, P), kullback_leibler(D, P), cosine, intersection


def median_seconds(*jobs: Callable[[], object], repeats: int) -> list[float]:
    """Median time of each job; the jobs take turns, so that a busy machine slows all of them alike."""
    times: list[list[float]] = [[] for _ in jobs]
    for job in jobs:
        job()
    for _ in range(repeats):
        for job, taken in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def peak_bytes(job: Callable[[], object]) -> int:
    tracemalloc.start()
    job()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def compare(title: str, ours: Callable[[], object], plain: Callable[[], object], repeats: int, limit: float) -> None:
    ours_seconds, plain_seconds = median_seconds(ours, plain, repeats=repeats)
    ratio = ours_seconds / plain_seconds
    print(f"{title:52} {ours_seconds:8.3f} s {plain_seconds:8.3f} s   ratio {ratio:5.2f} (at most {limit:g})")


def main() -> None:
    generator = np.random.default_rng(0)
    print(f"{'':52} {'skldl':>10} {'NumPy':>10}")

    D, P = (generator.dirichlet(np.ones(18), 100_000) for _ in range(2))
    compare(
        "45 measures, 100,000 × 18, against three of them",
        lambda: evaluate(D, P, measures=CHA_MEASURES),
        lambda: plain_three(D, P),
        repeats=7,
        limit=10,
    )
    singles = median_seconds(*(lambda name=name: evaluate(D, P, measures=[name]) for name in MEASURES), repeats=3)
    slowest = sorted(zip(singles, MEASURES, strict=True), reverse=True)[:5]
    print("   the slowest alone:", ", ".join(f"{name} {seconds:.3f} s" for seconds, name in slowest))

    D, P = (generator.dirichlet(np.ones(10), 1_000_000) for _ in range(2))
    compare("the six, 1,000,000 × 10", lambda: evaluate(D, P), lambda: plain_six(D, P), repeats=5, limit=1.5)
    inputs = D.nbytes + P.nbytes
    print(f"   peak memory besides the inputs: {peak_bytes(lambda: evaluate(D, P)) / inputs:.2f} × inputs", end="")
    print(f" (NumPy {peak_bytes(lambda: plain_six(D, P)) / inputs:.2f} ×)")


if __name__ == "__main__":
    main()
