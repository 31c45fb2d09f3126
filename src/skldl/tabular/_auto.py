"""The pool of `AutoLDL` for a table: one member alone where the pool gains little, and an estimate of how good it is.

Up to `NESTED_ROWS` rows and `NESTED_CELLS` numbers the estimate is nested: for each of five folds encoder, settings,
pool weights and the choice of the model are made anew from the other folds, and judged by the fold. Only the list of
members and the kinds of the columns come from all rows. Larger tables would take too long. There pool weights and the
choice are cross-fitted, but the settings of members have seen the rows that judge them, which flatters the estimate,
the less the more rows there are.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from skldl.data._dataset import Dataset, rows_of
from skldl.ensemble import AutoLDL
from skldl.ensemble._auto import N_FOLDS, parse_budget
from skldl.ensemble._members import KEPT_BY_ESTIMATORS
from skldl.metrics import kullback_leibler
from skldl.selection import BASELINE, Candidate, Estimate, assign_folds, pairs_of
from skldl.selection._estimate import estimate_from_losses
from skldl.selection._fitting import MODEL_STEP
from skldl.tabular._choice import Choice, Trial, best_first, judged_as_kept, labels_of_one_fold
from skldl.trees import RandomForestLDL
from skldl.utils.arrays import weighted_mean
from skldl.utils.mean_mixture import first_best
from skldl.utils.typing import FloatArray, IntArray

LEAST_GAIN = 0.01
LEAST_ROWS, MOST_ROWS = 30, 50_000
"""Smaller and larger tables use the fast choice unless the pool is requested."""
NESTED_ROWS, NESTED_CELLS = 300, 200_000
"""Up to this many rows, and numbers after encoding, the whole choice is made again for the estimate.

That takes one to four times as long as the fit.
"""


def fit_pool(
    dataset: Dataset,
    encoder: Any,
    *,
    budget: float | str | None = None,
    random_state: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> tuple[Pipeline, Choice, dict[str, str]]:
    """Fit `AutoLDL` behind an encoder, and keep its best member alone if the pool gains less than 1 %.

    Returned are the pipeline, the choice with its estimate, and for members that were not fitted the reason. With a
    budget the estimate is nested only if the time that is left is enough.
    """
    started, is_small = time.perf_counter(), dataset.n_samples <= NESTED_ROWS
    with threadpool_limits(limits=1 if is_small else None):  # threads cost more than they save on small matrices
        X = encoder.fit_transform(dataset.X)
        auto = AutoLDL(budget=budget, random_state=random_state, least_gain=LEAST_GAIN, verbose=on_progress or False)
        model, choice = _fit(auto, X, dataset)
        left_out = {entry["member"]: entry["note"] for entry in auto.report_ if entry["divergence"] is None}
        seconds, allowed = time.perf_counter() - started, parse_budget(budget)
        groups = dataset.groups
        n_folds = min(N_FOLDS, dataset.n_samples if groups is None else len(np.unique(groups)))
        # with two groups, a single one would be left to learn from
        is_small = is_small and X.shape[0] * X.shape[1] <= NESTED_CELLS
        if is_small and n_folds > 2 and (allowed is None or (n_folds + 1) * seconds < allowed):
            fold_of = assign_folds(dataset.n_samples, n_folds, random_state=random_state, groups=groups)
            choice = _nested(choice, dataset, encoder, _lighter(auto), fold_of, on_progress)
    forget_held_out(model)
    return Pipeline([("encoder", encoder), (MODEL_STEP, model)]), judged_as_kept(choice, dataset), left_out


def _fit(auto: AutoLDL, X: Any, dataset: Dataset) -> tuple[Any, Choice]:
    """Fit the pool, and give what is best on held-out rows: the pool, its best member or the mean distribution."""
    D = pd.DataFrame(dataset.D, columns=list(dataset.label_names))
    auto.fit(X, D, dataset.sample_weight, dataset.groups)
    choice = _choice(dataset, auto)
    if choice.best.candidate.is_baseline:
        return choice.best.candidate.make().fit(X, D, dataset.sample_weight), choice
    model = auto.members_[0] if len(auto.members_) == 1 else auto.set_params(verbose=None)
    model.label_names_ = auto.label_names_  # members are fitted on arrays
    return model, choice


def _lighter(auto: AutoLDL) -> AutoLDL:
    """The same choice for the nested estimate, among the members that were fitted, but with fewer trees in the forest.

    A forest of 100 trees is hardly worse than one of 400, which takes most of the time on few rows.
    """
    fitted = [entry["member"] for entry in auto.report_ if entry["divergence"] is not None]
    own = {"forest": ("forest", RandomForestLDL(100, kind="both", n_trial_estimators=15))}
    members = [own.get(name, name) for name in fitted if name != "kernel-clr"]  # by "kernel"
    # not by clone: it would copy the function that shows progress, and what that belongs to
    return AutoLDL(members=members, random_state=auto.random_state, least_gain=auto.least_gain, verbose=False)


def _nested(
    choice: Choice,
    dataset: Dataset,
    encoder: Any,
    auto: AutoLDL,
    fold_of: IntArray,
    on_progress: Callable[[str], None] | None,
) -> Choice:
    """The choice with a nested estimate; with the one it has, and the reason, where a fold leaves nothing to fit."""
    try:
        estimate = _nested_estimate(dataset, encoder, auto, fold_of, on_progress)
    except ValueError as error:
        note = (
            f"The choice could not be made anew without one of the folds, so that the estimate is not nested: {error}"
        )
        return replace(choice, notes=(note,))
    notes = tuple(labels_of_one_fold(dataset, fold_of))
    n_folds = int(fold_of.max()) + 1
    return replace(choice, estimate=estimate, n_rows=dataset.n_samples, n_folds=n_folds, nested=True, notes=notes)


def _nested_estimate(
    dataset: Dataset, encoder: Any, auto: AutoLDL, fold_of: IntArray, on_progress: Callable[[str], None] | None
) -> Estimate:
    """Losses on each fold of what the same choice takes from the other folds, and of their mean distribution.

    Where the other folds lack a label that the fold has, the loss of the mean is infinite but for rounding. There a
    small share of equal degrees, 1/(n + 1) after n rows, is mixed into the predictions of both, so that such rows do
    not decide the skill.
    """
    losses, reference = np.empty(dataset.n_samples), np.empty(dataset.n_samples)
    choices: list[tuple[str, dict[str, Any]]] = []
    for fold, (train, test) in enumerate(pairs_of(fold_of)):
        if on_progress is not None:
            on_progress(f"estimate: the choice without fold {fold + 1} of {fold_of.max() + 1}")
        part, new_encoder = dataset.take(train), clone(encoder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit on all rows has issued the warnings
            X = new_encoder.fit_transform(part.X)
            model, choice = _fit(clone(auto), X, part)
            mean = BASELINE.make().fit(X, part.D, part.sample_weight)
            X_test = new_encoder.transform(dataset.take(test).X)
            lacks = np.asarray(mean.predict(X_test[:1]))[0] <= 0
            share = 1 / (len(train) + 1) if dataset.D[test][:, lacks].any() else 0.0
            own, other = (
                kullback_leibler.rowwise(
                    dataset.D[test], (1 - share) * np.asarray(each.predict(X_test)) + share / dataset.n_labels
                )
                for each in (model, mean)
            )
        # the mean distribution, fitted twice, would differ by rounding
        losses[test], reference[test] = other if choice.best.candidate.is_baseline else own, other
        choices.append((choice.best.candidate.name, {}))
    return estimate_from_losses(dataset, np.arange(dataset.n_samples), losses, reference, choices)


def forget_held_out(model: Any) -> None:
    """Drop predictions and losses of training rows, of the members of a pool, too: a model file does not need them."""
    for part in (model, *getattr(model, "members_", ())):
        for name in (*KEPT_BY_ESTIMATORS, "held_out_losses_", "fold_of_"):
            part.__dict__.pop(name, None)


def _choice(dataset: Dataset, auto: AutoLDL) -> Choice:
    # The mean of all rows has seen the row itself, which flatters it by 1/n. Members hold rows out in different ways,
    # and a mean that is held out in only one of them would differ from the others by chance, row after row.
    mean = weighted_mean(dataset.D, dataset.sample_weight)  # as `MeanDistribution` predicts it: no floor
    reference = kullback_leibler.rowwise(dataset.D, np.broadcast_to(mean, dataset.D.shape))
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
    trials = best_first([*members, Trial(BASELINE, {}, estimate.reference_loss)])
    return Choice(trials[0], trials, estimate, len(known), N_FOLDS, [])


def _cross_fitted(table: FloatArray, fold_of: IntArray, weight: FloatArray | None) -> FloatArray:
    """Losses of the rows of each fold under the candidate (a row of the table) that is best on the other folds."""
    losses = np.empty(table.shape[1])
    for fold in np.unique(fold_of):
        own = fold_of == fold
        others = np.average(table[:, ~own], axis=1, weights=None if weight is None else weight[~own])
        losses[own] = table[first_best(others), own]
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
    judged = "" if best.candidate.is_baseline and choice.of_choosing is None else f" {_JUDGED[choice.nested]}"
    return [*lines, f"{choice.expectation}{judged}"]


_JUDGED = {
    True: "For each fold settings, pool weights and model were chosen anew by rows that do not judge them.",
    False: "Every row is judged by models and pool weights that have not seen it, but the settings of the models have: "
    "the skill is slightly too high.",
}
