"""The pool of `AutoLDL` for a table: one member alone where the pool gains little, and an honest estimate of both."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import rel_entr
from sklearn.pipeline import Pipeline

from skldl._held_out import means_without
from skldl.data._dataset import Dataset
from skldl.ensemble import AutoLDL
from skldl.ensemble._auto import N_FOLDS
from skldl.metrics import skill_of_losses
from skldl.selection import Candidate, Estimate
from skldl.selection._fitting import MODEL_STEP
from skldl.tabular._choice import Choice, Trial

LEAST_GAIN = 0.01
MOST_ROWS = 50_000
"""Larger tables are given to the quick choice unless the pool is asked for."""


def fit_pool(
    dataset: Dataset,
    encoder: Any,
    *,
    budget: float | str | None = None,
    random_state: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> tuple[Pipeline, Choice]:
    """Fit `AutoLDL` behind an encoder, and keep its best member alone if the pool gains less than 1 %.

    The estimate comes from pool weights that were fitted without the row's fold, on predictions of members that did not
    learn from the row. The encoder sees all rows, but no labels.

    Parameters
    ----------
    dataset : Dataset
        The table.
    encoder : TableEncoder
        Turns the table into features.
    budget : float or str, default=None
        Time for the members, see `AutoLDL`.
    random_state : int, default=0
        Seed of everything that is drawn.
    on_progress : callable, default=None
        Called with a word on what is going to run.

    Returns
    -------
    pipeline : Pipeline
        Encoder and model, fitted.
    choice : Choice
        The members, the one chosen or the pool, and how good it is.
    """
    encoder = encoder.set_params(dense=True)
    X = encoder.fit_transform(dataset.X)
    D = pd.DataFrame(dataset.D, columns=list(dataset.label_names))
    groups = None if dataset.groups is None else np.asarray(dataset.groups)
    auto = AutoLDL(budget=budget, random_state=random_state, verbose=False)
    if on_progress is not None:
        auto._say = lambda text: on_progress(text) if text else None  # type: ignore[method-assign]
    auto.fit(X, D, dataset.sample_weight, groups)
    auto.__dict__.pop("_say", None)
    best, best_held_out = auto.best_member_, auto.best_member_predictions_
    gain = 1.0 - auto.pool_score_ / auto.report_[0]["divergence"] if auto.report_[0]["divergence"] > 0 else 0.0
    alone = len(auto.members_) == 1 or gain < LEAST_GAIN
    model = best if alone else auto
    held_out = best_held_out if alone else auto.oof_predictions_
    pipeline = Pipeline([("encoder", encoder), (MODEL_STEP, model)])
    return pipeline, _choice(dataset, auto, held_out, alone)


def _choice(dataset: Dataset, auto: AutoLDL, held_out: Any, alone: bool) -> Choice:
    known = np.isfinite(held_out[:, 0])
    means = means_without(dataset.D, dataset.sample_weight, _codes(dataset.groups))
    losses, reference = (
        np.maximum(rel_entr(dataset.D[known], table[known]).sum(axis=1), 0.0) for table in (held_out, means)
    )
    weight = None if dataset.sample_weight is None else dataset.sample_weight[known]
    groups = None if dataset.groups is None else np.asarray(dataset.groups)[known]
    estimate = Estimate(
        np.flatnonzero(known),
        losses,
        reference,
        float(np.average(losses, weights=weight)),
        float(np.average(reference, weights=weight)),
        skill_of_losses(losses, reference, weight, groups),
        (("Auto", {}),),
    )
    members = [
        Trial(Candidate(entry["member"], "skldl:AutoLDL"), {}, entry["divergence"])
        for entry in auto.report_
        if entry["divergence"] is not None
    ]
    pool = Trial(Candidate("Pool", "skldl:AutoLDL"), {}, auto.pool_score_)
    trials = members if alone else [pool, *members]
    return Choice(trials[0], trials, estimate, int(known.sum()), N_FOLDS, [])


def _codes(groups: Any) -> Any:
    return None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
