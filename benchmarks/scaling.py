"""How the cost of a fit grows with the number of rows, from 10³ to 10⁶: a table and a plot."""

import argparse
import time
import warnings

import numpy as np
from _common import RESULTS, markdown, save, synthetic

from skldl import AABP, AAKNN, SABFGS, SAIIS, MeanDistribution, PTBayes

MODELS = {
    "MeanDistribution": lambda: MeanDistribution(),
    "PTBayes": lambda: PTBayes(),
    "AAKNN": lambda: AAKNN(),
    "AABP, 20 iterations": lambda: AABP(max_iter=20, random_state=0),
    "SAIIS, 10 iterations": lambda: SAIIS(max_iter=10),
    "SABFGS": lambda: SABFGS(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    sizes = [int(n) for n in (1e3, 1e4, 1e5, 1e6) if n <= arguments.max_rows]
    rows = []
    for name, make in MODELS.items():
        seconds = []
        for size in sizes:
            X, D = synthetic(size, n_features=20, n_labels=10)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.process_time()
                make().fit(X, D).predict(X[:1000])
                seconds.append(time.process_time() - start)
        slope = float(np.polyfit(np.log(sizes[-2:]), np.log(seconds[-2:]), 1)[0])
        row = {"algorithm": name, **dict(zip(map(str, sizes), seconds, strict=True)), "last slope": slope}
        rows.append(row)
        print(markdown([row]), flush=True)
    save("scaling", rows)
    draw(rows, sizes)


def draw(rows: list[dict], sizes: list[int]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for row, style in zip(rows, ("o-", "s-", "^-", "D--", "v--", "P-"), strict=True):
        axes.loglog(sizes, [row[str(size)] for size in sizes], style, label=row["algorithm"], markersize=5)
    anchor = max(row[str(sizes[0])] for row in rows)
    axes.loglog(sizes, [anchor * size / sizes[0] for size in sizes], ":", color="grey", label="linear")
    axes.set(xlabel="rows (20 features, 10 labels)", ylabel="seconds for fit and 1,000 predictions, one core")
    axes.legend(fontsize=8)
    figure.savefig(RESULTS / "scaling.png", dpi=150)


if __name__ == "__main__":
    main()
