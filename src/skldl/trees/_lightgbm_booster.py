"""Boosting by LightGBM: one histogram tree per label and round, read back into plain arrays."""

from typing import Any

import numpy as np

from skldl.trees._boosting_fold import BoostingSettings, derivatives, divergences, log_mean
from skldl.trees._flat_trees import FlatTrees
from skldl.utils.typing import FloatArray, IntArray

N_BINS = 63
_CATEGORICAL, _DEFAULT_LEFT, _MISSING_SHIFT, _MISSING_IS_NAN = 1, 2, 2, 2  # bits of LightGBM's decision_type


class LightGBMFold:
    """A model boosted on the training rows of one fold by LightGBM, one thread, deterministic.

    Parameters are those of `skldl.trees._boosting_fold.Fold`.
    """

    def __init__(
        self,
        X: Any,
        D: FloatArray,
        weight: FloatArray,
        train: IntArray,
        test: IntArray,
        settings: BoostingSettings,
        seed: int,
    ) -> None:
        import lightgbm  # an optional dependency

        self.D, self.D_test = D[train], D[test]
        self.weight, self.test_weight = weight[train], weight[test]
        self.n_features = X.shape[1]
        self.finished = False
        parameters = {
            "objective": "none",  # gradient and Hessian are ours
            "num_class": D.shape[1],
            "metric": "None",
            "learning_rate": settings.learning_rate,
            "num_leaves": settings.max_leaf_nodes,
            "min_data_in_leaf": settings.min_samples_leaf,
            "feature_fraction": settings.max_features,
            "bagging_fraction": settings.subsample if settings.subsample * len(train) >= 1 else 1.0,
            "bagging_freq": 1,
            "lambda_l2": settings.l2,
            "extra_trees": settings.random_splits,
            "max_bin": N_BINS,
            "feature_pre_filter": False,
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbose": -1,
        }
        base = log_mean(self.D, self.weight)
        training, held_out = (
            lightgbm.Dataset(
                X[rows],
                label=np.zeros(len(rows)),
                init_score=np.tile(base, (len(rows), 1)),
                feature_name=[f"x{j}" for j in range(self.n_features)],
                params=parameters,
            )
            for rows in (train, test)
        )
        held_out.set_reference(training)
        self.booster = lightgbm.Booster(parameters, training)
        self.booster.add_valid(held_out, "held-out")

    def _loss(self, scores: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
        return derivatives(self.D, scores, self.weight)

    def _held_out(self, scores: FloatArray, _: Any) -> tuple[str, float, bool]:
        return "divergence", float(self.test_weight @ divergences(self.D_test, scores)), False

    def advance(self, n_rounds: int) -> list[float]:
        """Add rounds; return the weighted sum of held-out divergences after each of them."""
        sums = []
        for _ in range(n_rounds):
            # once no label's tree can be split, LightGBM adds no more trees
            self.finished = self.finished or self.booster.update(fobj=self._loss)
            sums.append(self.booster.eval_valid(feval=self._held_out)[0][2])
        return sums

    def trees(self, n_rounds: int) -> FlatTrees:
        """The trees of the first rounds, those of one round in the order of the labels."""
        n_rounds = min(n_rounds, self.booster.current_iteration())
        if n_rounds == 0:
            return FlatTrees.none(self.n_features)
        return read_trees(self.booster.model_to_string(num_iteration=n_rounds), self.n_features)

    def gains(self, n_rounds: int) -> FloatArray:
        """Total gain of the splits on each feature in the first rounds."""
        n_rounds = min(n_rounds, self.booster.current_iteration())
        if n_rounds == 0:
            return np.zeros(self.n_features)
        return np.asarray(self.booster.feature_importance("gain", iteration=n_rounds), dtype=np.float64)


def read_trees(model: str, n_features: int) -> FlatTrees:
    """Trees of a model that LightGBM wrote as text; inner nodes come first in each tree, then its leaves."""
    columns: dict[str, list[Any]] = {name: [] for name in ("left", "right", "feature", "threshold", "missing_left")}
    sizes, leaves, values, n_leaves = [], [], [], 0
    for text in model.split("\nTree=")[1:]:
        fields = dict(line.split("=", 1) for line in text.split("\n\n", 1)[0].splitlines() if "=" in line)
        leaf_value = np.array(fields["leaf_value"].split(), dtype=np.float64)
        n_inner = len(leaf_value) - 1
        inner: dict[str, Any] = {
            name: np.array(fields[name].split() if n_inner else [], dtype=kind)
            for name, kind in (
                ("left_child", np.int64),
                ("right_child", np.int64),
                ("split_feature", np.int64),
                ("threshold", np.float64),
                ("decision_type", np.int64),
            )
        }
        decision = inner["decision_type"]
        if (decision & _CATEGORICAL).any():
            raise ValueError("LightGBM made a categorical split, which these arrays cannot hold.")
        # where training saw no missing value, LightGBM reads NaN as 0
        learned = (decision >> _MISSING_SHIFT) == _MISSING_IS_NAN
        missing_left = np.where(learned, (decision & _DEFAULT_LEFT) > 0, inner["threshold"] >= 0.0)
        padding = np.full(len(leaf_value), -1)
        for side in ("left", "right"):
            child = inner[f"{side}_child"]
            columns[side].append(np.concatenate([np.where(child >= 0, child, n_inner + ~child), padding]))
        columns["feature"].append(np.concatenate([inner["split_feature"], padding]))
        columns["threshold"].append(np.concatenate([inner["threshold"], np.zeros(len(leaf_value))]))
        columns["missing_left"].append(np.concatenate([missing_left, padding == 0]))
        leaves.append(np.concatenate([np.full(n_inner, -1), n_leaves + np.arange(len(leaf_value))]))
        sizes.append(n_inner + len(leaf_value))
        values.append(leaf_value)
        n_leaves += len(leaf_value)
    return FlatTrees(
        n_features,
        sizes=np.array(sizes),
        leaf=np.concatenate(leaves),
        values=np.concatenate(values)[:, None],
        **{name: np.concatenate(parts) for name, parts in columns.items()},
    )
