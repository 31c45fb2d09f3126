"""The pool of `AutoLDL` for a table: one member alone where the pool gains little, and an unbiased estimate of both."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import rel_entr
from sklearn.pipeline import Pipeline

from skldl._held_out import mean_distribution
from skldl._typing import FloatArray, IntArray
from skldl.data._dataset import Dataset, rows_of
from skldl.ensemble import AutoLDL
from skldl.ensemble._auto import N_FOLDS
from skldl.ensemble._members import KEPT_BY_ESTIMATORS
from skldl.selection import BASELINE, Candidate
from skldl.selection._estimate import estimate_from_losses
from skldl.selection._fitting import MODEL_STEP
from skldl.tabular._choice import Choice, Trial

LEAST_GAIN = 0.01
LEAST_ROWS, MOST_ROWS = 30, 50_000
"""Smaller and larger tables use the fast choice unless the pool is requested."""


def fit_pool(
    dataset: Dataset,
    encoder: Any,
    *,
    budget: float | str | None = None,
    random_state: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> tuple[Pipeline, Choice, dict[str, str]]:
    """Fit `AutoLDL` behind an encoder, and keep its best member alone if the pool gains less than 1 %.

    The estimate comes from pool weights that were fitted without the row's fold, on predictions of members that did not
    learn from the row; and in each fold the pool, the members and the mean are chosen from by the other folds. Only the
    settings of single members have seen the row. The encoder sees all rows, but no labels. The skill refers to the mean
    of all rows, so that it is stated rather too low. Returned are the pipeline, the choice, and for members that were
    not fitted the reason.
    """
    X = encoder.fit_transform(dataset.X)
    D = pd.DataFrame(dataset.D, columns=list(dataset.label_names))
    auto = AutoLDL(budget=budget, random_state=random_state, least_gain=LEAST_GAIN, verbose=on_progress or False)
    auto.fit(X, D, dataset.sample_weight, dataset.groups)
    model = auto.members_[0] if len(auto.members_) == 1 else auto.set_params(verbose=None)
    model.label_names_ = auto.label_names_  # members are fitted on arrays
    choice = _choice(dataset, auto)
    if choice.best.candidate.is_baseline:
        model = choice.best.candidate.make().fit(X, D, dataset.sample_weight)
    forget_held_out(model)
    left_out = {entry["member"]: entry["note"] for entry in auto.report_ if entry["divergence"] is None}
    return Pipeline([("encoder", encoder), (MODEL_STEP, model)]), choice, left_out


def forget_held_out(model: Any) -> None:
    """Drop predictions and losses of training rows, of the members of a pool, too: a model file does not need them."""
    for part in (model, *getattr(model, "members_", ())):
        for name in (*KEPT_BY_ESTIMATORS, "held_out_losses_", "fold_of_"):
            part.__dict__.pop(name, None)


def _choice(dataset: Dataset, auto: AutoLDL) -> Choice:
    # The mean of all rows has seen the row itself, which flatters it by 1/n. Members hold rows out in different ways,
    # and a mean that is held out in only one of them would differ from the others by chance, row after row.
    mean = mean_distribution(dataset.D, dataset.sample_weight)
    reference = np.maximum(rel_entr(dataset.D, mean).sum(axis=1), 0.0)
    table = np.stack([reference, *auto.held_out_losses_.values()])
    known = np.flatnonzero(np.isfinite(table).all(axis=0))
    losses = _cross_fitted(table[:, known], auto.fold_of_[known], rows_of(dataset.sample_weight, known))
    estimate = estimate_from_losses(dataset, known, losses, reference[known], [("Auto", {})])
    members = [
        Trial(Candidate(entry["member"], "skldl:AutoLDL"), {}, entry["divergence"])
        for entry in auto.report_
        if entry["divergence"] is not None
    ]
    if len(auto.members_) > 1:
        members.insert(0, Trial(Candidate("Pool", "skldl:AutoLDL"), {}, auto.pool_score_))
    trials = sorted([*members, Trial(BASELINE, {}, estimate.reference_loss)], key=lambda trial: trial.divergence)
    return Choice(trials[0], trials, estimate, len(known), N_FOLDS, [])


def _cross_fitted(table: FloatArray, fold_of: IntArray, weight: FloatArray | None) -> FloatArray:
    """Losses of the rows of each fold under the candidate (a row of the table) that is best on the other folds."""
    losses = np.empty(table.shape[1])
    for fold in np.unique(fold_of):
        own = fold_of == fold
        others = np.average(table[:, ~own], axis=1, weights=None if weight is None else weight[~own])
        losses[own] = table[np.argmin(others), own]
    return losses


def why_pool(choice: Choice, model: Any, left_out: Mapping[str, str], *, grouped: bool) -> list[str]:
    """Sentences on the choice of `fit_pool` and its quality; ``model`` is the pool, or the single member."""
    best = choice.best
    members = ", ".join(
        f"{trial.candidate.name} {trial.divergence:.4g}" for trial in choice.candidates if trial is not best
    )
    held_out = f"held-out Kullback-Leibler divergence of {best.divergence:.4g} on {choice.n_rows} rows"
    together = ", groups held out together" if grouped else ""
    if isinstance(model, AutoLDL):
        shares = zip(model.member_names_, model.member_weights_, strict=True)
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in sorted(shares, key=lambda share: -share[1]))
        lines = [f"A pool with the weights {weights}: {held_out}{together}.", f"Its members alone: {members}."]
    else:
        lines = [f"{best.candidate.name} ({type(model).__name__}): {held_out}{together}."]
        kept = "" if best.candidate.is_baseline else " A pool of them all gains less than 1 %, so one model is kept."
        lines.append(f"The others: {members}.{kept}")
    lines += [f"Left out: {name} ({reason})." for name, reason in left_out.items()]
    return [*lines, f"{choice.expectation} Every row is judged by models and pool weights that have not seen it."]
