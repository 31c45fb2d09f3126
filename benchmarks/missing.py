"""Missing degrees: errors of the learners that accept them when part of the degrees is hidden.

    SKLDL_DATA=<folder of the data> python benchmarks/missing.py [--datasets Yeast_cold SJAFFE] [--rate 0.5] [--degrees]
                                                                 [--shuffled]

Ten folds in file order; with ``--shuffled`` in a random order, and nothing is kept. "No ridge" are the published
methods. Degrees of the training rows are hidden uniformly at random (`skldl.data.make_missing`, seed 0)
and the others divided by their sum; with ``--degrees`` they stay true degrees. The test rows are complete. Each row of
``results/missing.json`` holds the mean Chebyshev distance of each learner over the folds, and of the mean distribution
and SABFGSCV trained on the complete table. "published" are the figures of the HidLDL paper (AAAI 2026, appendix) with
half of the labels hidden, whose folds and gaps are not ours: HidLDL, IncomLDL (admm), WInLDL.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from skldl import SABFGSCV, IncomLDL, MeanDistribution, WInLDL
from skldl.data import load_dataset, make_missing
from skldl.metrics import chebyshev

TARGETS = {"Yeast_alpha": 0.0136, "Yeast_cold": 0.0514, "Yeast_dtt": 0.0363, "SJAFFE": 0.108, "SBU_3DFE": 0.1238}
PUBLISHED = {
    "Yeast_alpha": (0.0135, 0.0136, 0.0178),
    "Yeast_cold": (0.0501, 0.0510, 0.0629),
    "Yeast_dtt": (0.0350, 0.0360, 0.0507),
    "SJAFFE": (0.1107, 0.1197, 0.2595),
    "SBU_3DFE": (0.1275, 0.1330, 0.1238),
}
RESULTS = Path(__file__).parent / "results" / "missing.json"


def measure(name: str, rate: float, *, renormalise: bool, shuffled: bool = False) -> dict[str, Any]:
    """Mean Chebyshev distance over ten folds, of each learner on hidden and on complete degrees."""
    dataset = load_dataset(name)
    X, D = dataset.X, dataset.D
    hidden = make_missing(D, rate, renormalise=renormalise)
    reading = "renormalised" if renormalise else "degrees"
    learners = {
        "Mean": (MeanDistribution(reading), hidden),
        "SABFGSCV": (SABFGSCV(missing=reading), hidden),
        "IncomLDL": (IncomLDL(missing=reading), hidden),
        "IncomLDL-prox": (IncomLDL(method="prox", missing=reading), hidden),
        "WInLDL": (WInLDL(missing=reading), hidden),
        "IncomLDL, no ridge": (IncomLDL(ridge=0.0, missing=reading), hidden),
        "WInLDL, no ridge": (WInLDL(ridge=1e-5, missing=reading), hidden),
        "Mean, complete": (MeanDistribution(), D),
        "SABFGSCV, complete": (SABFGSCV(), D),
    }
    row: dict[str, Any] = {"dataset": name, "rate": rate, "reading": reading}
    order = np.random.default_rng(0).permutation(len(D)) if shuffled else np.arange(len(D))
    folds = [np.sort(rows) for rows in np.array_split(order, 10)]
    for title, (model, table) in learners.items():
        start, distances = time.process_time(), []
        for test in folds:
            train = np.setdiff1d(np.arange(len(D)), test)
            distances.append(chebyshev(D[test], model.fit(X[train], table[train]).predict(X[test])))
        row[title] = round(float(np.mean(distances)), 5)
        row[f"{title}, CPU seconds"] = round(time.process_time() - start, 2)
    return row | {"target": TARGETS.get(name), "published": PUBLISHED.get(name)}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=list(TARGETS))
    parser.add_argument("--rate", type=float, default=0.5)
    parser.add_argument("--degrees", action="store_true")
    parser.add_argument("--shuffled", action="store_true")
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for name in options.datasets:
        row = measure(name, options.rate, renormalise=not options.degrees, shuffled=options.shuffled)
        print(json.dumps(row), flush=True)
        if options.shuffled:
            continue
        key = ("dataset", "rate", "reading")
        kept = [old for old in kept if any(old[part] != row[part] for part in key)] + [row]
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
