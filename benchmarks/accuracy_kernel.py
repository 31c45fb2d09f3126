"""Accuracy and fit time of `KernelRidgeLDL` and `AAKNNCV` on the paper's sets.

    SKLDL_DATA=... python benchmarks/accuracy_kernel.py SJAFFE:10 SBU_3DFE:5 [--order file] [--only kernel|neighbors]

Each argument is a dataset and a number of folds. Folds come from a permutation of `default_rng(0)` (with
``--order file`` from the order of the rows), cut into ten parts by `array_split`; the first so many are test sets.
Prints the mean Kullback-Leibler divergence on the test rows and the mean time of a fit.
"""

import argparse
import time

import numpy as np

from skldl.datasets import load_dataset
from skldl.kernel import KernelRidgeLDL, fit_each_target
from skldl.metrics import kullback_leibler
from skldl.neighbors import AAKNNCV


def main() -> None:
    """Run the sets that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--order", choices=["shuffled", "file"], default="shuffled")
    parser.add_argument("--only", choices=["kernel", "neighbors"], default=None)
    arguments = parser.parse_args()
    for entry in arguments.sets:
        name, n_folds = entry.split(":")
        data = load_dataset(name)
        n_rows = data.X.shape[0]
        order = np.arange(n_rows) if arguments.order == "file" else np.random.default_rng(0).permutation(n_rows)
        folds = np.array_split(order, 10)
        scores: dict[str, list[float]] = {}
        seconds: dict[str, list[float]] = {}
        for fold in range(int(n_folds)):
            test = folds[fold]
            train = np.concatenate([rows for place, rows in enumerate(folds) if place != fold])
            models = {}
            if arguments.only != "neighbors":
                start = time.perf_counter()
                models |= fit_each_target(KernelRidgeLDL(), data.X[train], data.D[train])
                seconds.setdefault("kernel", []).append(time.perf_counter() - start)
            if arguments.only != "kernel":
                start = time.perf_counter()
                models["neighbors"] = AAKNNCV().fit(data.X[train], data.D[train])
                seconds.setdefault("neighbors", []).append(time.perf_counter() - start)
            for key, model in models.items():
                scores.setdefault(key, []).append(kullback_leibler(data.D[test], model.predict(data.X[test])))
        means = "  ".join(f"{key} {np.mean(values):.5f}" for key, values in scores.items())
        times = "  ".join(f"{key} {np.mean(values):.1f} s" for key, values in seconds.items())
        print(f"{name} [{n_folds}]  {means}  |  {times}", flush=True)


if __name__ == "__main__":
    main()
