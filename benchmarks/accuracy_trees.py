"""Accuracy and time of the tree ensembles on shuffled ten folds of the paper's sets: the first k folds of each.

    python benchmarks/accuracy_trees.py SJAFFE:10 Natural_Scene:4
    python benchmarks/accuracy_trees.py Movie:3 --models forest boosting

Folds: the permutation of ``numpy.random.default_rng(0)``, split in ten by ``array_split``. Times are seconds of this
process for one fit; set OMP_NUM_THREADS=1 so that they are seconds of one core.
"""

import argparse
import time

import numpy as np
from _common import dense, load

from skldl.metrics import kullback_leibler
from skldl.trees import GradientBoostingLDL, RandomForestLDL

MODELS = {
    "forest": lambda: RandomForestLDL(random_state=0),
    "boosting": lambda: GradientBoostingLDL(engine="lightgbm", random_state=0),
    "boosting without LightGBM": lambda: GradientBoostingLDL(engine="sklearn", random_state=0),
    "forest, quick": lambda: RandomForestLDL(100, n_trial_estimators=15, random_state=0),
    "boosting, quick": lambda: GradientBoostingLDL(engine="lightgbm", learning_rate=0.2, random_state=0),
}


def main() -> None:
    """Print one line for each set and model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="NAME:FOLDS")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    for name, n_folds in (word.split(":") for word in arguments.sets):
        X, D = load(name)
        X = dense(X)
        parts = np.array_split(np.random.default_rng(0).permutation(len(D)), 10)
        for model_name in arguments.models:
            divergences, seconds, held_out = [], [], []
            for test in parts[: int(n_folds)]:
                train = np.setdiff1d(np.arange(len(D)), test)
                start = time.process_time()
                model = MODELS[model_name]().fit(X[train], D[train])
                seconds.append(time.process_time() - start)
                divergences.append(kullback_leibler(D[test], model.predict(X[test])))
                held_out.append(-getattr(model, "oob_score_", getattr(model, "oof_score_", np.nan)))
            print(
                f"{name:14} [{n_folds:>2}] {model_name:26} KL {np.mean(divergences):.5f}, "
                f"held out in training {np.mean(held_out):.5f}, fit {np.mean(seconds):.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
