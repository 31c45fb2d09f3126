"""Label enhancement: CPU seconds of each enhancer with its defaults on a table of random features.

    OMP_NUM_THREADS=1 python benchmarks/enhancement.py [--rows 50000] [--enhancers ML GLLE]

20 features and 8 labels, one core. The features are drawn from a normal distribution; the labels are the highest scores
of a linear model with noise, until they hold half of the mass. Each row of ``results/enhancement.json`` holds the CPU
seconds of ``fit``, the number of steps where there are steps, and the largest memory of the process so far.
"""

import argparse
import json
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skldl.distributions import PropagationEnhancer, to_label_sets
from skldl.enhancement import FCM, GLLE, KM, LESC, ML
from skldl.simplex import softmax

ENHANCERS = {one.__name__: one for one in (FCM, LESC, PropagationEnhancer, GLLE, ML, KM)}
RESULTS = Path(__file__).parent / "results" / "enhancement.json"


def table(n_rows: int, n_features: int = 20, n_labels: int = 8) -> tuple[Any, Any]:
    """Random features and logical labels that depend on them."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, n_features))
    scores = X @ random.normal(size=(n_features, n_labels)) / np.sqrt(n_features)
    return X, to_label_sets(softmax(scores + 0.3 * random.normal(size=scores.shape)), mass=0.5)


def measure(name: str, n_rows: int) -> dict[str, Any]:
    """CPU seconds of one fit."""
    X, L = table(n_rows)
    enhancer = ENHANCERS[name]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        start = time.process_time()
        enhancer.fit(X, L)
        seconds = time.process_time() - start
    return {
        "enhancer": name,
        "rows": n_rows,
        "CPU seconds": round(seconds, 2),
        "steps": getattr(enhancer, "n_iter_", None),
        "converged": not caught,
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--enhancers", nargs="+", default=list(ENHANCERS), choices=list(ENHANCERS))
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for name in options.enhancers:
        row = measure(name, options.rows)
        print(json.dumps(row), flush=True)
        kept = [old for old in kept if (old["enhancer"], old["rows"]) != (name, options.rows)] + [row]
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
