"""The choice of a model for a table, and the estimate of its quality on new rows.

`choose_model` cross-validates a few candidates on held-out Kullback-Leibler divergence, with groups kept together: in
each fold the encoder and every setting of every candidate are fitted to the training part and predict the held-out
rows. The setting with the smallest mean divergence is chosen. This smallest of many values is too optimistic; so the
estimate judges each fold by the setting that is best on the other folds (`skldl.selection.estimate_choice`).

`fit_pool` fits `AutoLDL`, and keeps its best member alone if the pool gains little. Up to `NESTED_ROWS` rows and
`NESTED_CELLS` numbers, the estimate is nested: for each of five folds encoder, settings, pool weights and the choice of
the model are fitted again to the other folds, and judged by the fold. Only the list of members and the kinds of columns
come from all rows. For larger tables this would take too long: pool weights and the choice are cross-fitted, but the
settings of members depend on the rows that judge them. The estimate is then too optimistic, less so with more rows.
"""

import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from skldl.exceptions import DataError, Message, Parameter, TableError
from skldl.metrics import kullback_leibler
from skldl.metrics._measure import without_rounding
from skldl.metrics._skill import show_skill
from skldl.selection import (
    BASELINE,
    Candidate,
    Estimate,
    Failure,
    SearchResult,
    assign_folds,
    estimate_choice,
    pairs_of,
    search,
)
from skldl.selection._estimate import estimate_from_losses
from skldl.selection._fitting import MODEL_STEP
from skldl.tabular._models import limited_to
from skldl.trees import RandomForestLDL
from skldl.utils.arrays import weighted_mean
from skldl.utils.column_names import list_names
from skldl.utils.mean_mixture import first_best
from skldl.utils.typing import FloatArray, IntArray

FOLDS = 5
SELECTION_ROWS = 5000
ROUNDING = 1e-9
"""A skill up to this size is rounding error."""
MIN_GAIN = 0.01
"""A pool that gains less than this fraction of the divergence is replaced by its best member; chosen by hand."""
MIN_ROWS, MAX_ROWS = 30, 50_000
"""Smaller and larger tables use `choose_model` unless the pool is requested; chosen by hand."""
NESTED_ROWS, NESTED_CELLS = 300, 200_000
"""Up to this many rows, and numbers after encoding, the estimate of the pool is nested.

The nested estimate takes one to four times as long as the fit.
"""


@dataclass(frozen=True)
class Trial:
    """The best setting of one candidate and its held-out divergence, which is too small as the best of many."""

    candidate: Candidate
    setting: Mapping[str, Any]
    divergence: float


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen model and its expected quality.

    Attributes
    ----------
    best : Trial
        The chosen setting.
    candidates : list of Trial
        The best setting of each candidate, in ascending order of divergence.
    estimate : Estimate
        Expected divergence and skill, with the choice repeated for each fold on the other folds.
    n_rows, n_folds : int
        Number of rows that were held out in turn, and number of folds.
    failures : list of Failure
        Settings that could not be fitted, with the reason.
    nested : bool
        Whether the estimate is nested: encoder, settings, pool weights and the choice of the model are fitted without
        the fold that judges them.
    notes : tuple of str
        Notes on the estimate.
    of_choosing : Estimate or None
        If the mean distribution was chosen, ``estimate`` is the estimate of the mean, with skill 0, and this is the
        estimate of the procedure of choosing, which may choose another model on other rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import FitOptions, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> choice = fit_table(table, ["no", "yes"], model="sa-bfgs", options=FitOptions(folds=2)).choice
    >>> choice.best.candidate.name, choice.n_folds
    ('SA-BFGS', 2)
    """

    best: Trial
    candidates: list[Trial]
    estimate: Estimate
    n_rows: int
    n_folds: int
    failures: list[Failure]
    nested: bool = False
    notes: tuple[str, ...] = ()
    of_choosing: Estimate | None = None

    @property
    def skill(self) -> tuple[float, float, float]:
        """Fraction of the divergence of the mean that the choice removes, and the ends of its 95 % interval."""
        skill = self.estimate.skill
        return float(skill), skill.low, skill.high

    @property
    def expectation(self) -> str:
        """Expected skill and divergence, as a sentence."""
        if self.of_choosing is None:
            skill, divergence = _in_words(self.estimate)
            return f"Skill {skill} to be expected on new rows: {divergence}"
        skill, divergence = _in_words(self.of_choosing)
        return (
            "The mean distribution was chosen: its skill is 0, and a divergence of "
            f"{self.estimate.loss:.4g} is to be expected on new rows. The choice, repeated on other rows, had a skill "
            f"of {skill}: {divergence}"
        )

    @property
    def beats_mean(self) -> bool:
        """Whether the lower end of the interval of the skill is above zero, by more than rounding error."""
        return self.skill[1] > ROUNDING


def choose_model(
    dataset: Dataset,
    candidates: Sequence[Candidate],
    encoder: Any,
    *,
    folds: int = FOLDS,
    selection_rows: int = SELECTION_ROWS,
    random_state: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> Choice:
    """Choose among candidates and their settings by cross-validation.

    Parameters
    ----------
    dataset : Dataset
        The table.
    candidates : sequence of Candidate
        The candidates; the mean distribution is fitted as a reference even if it is not among them.
    encoder : TableEncoder
        Encodes the table; it is fitted in each fold.
    folds : int, default=5
        Number of folds; fewer if there are fewer rows or groups. Not used if the dataset has splits.
    selection_rows : int, default=5000
        Maximum number of rows; a random sample of this size is drawn from larger tables.
    random_state : int, default=0
        Seed of all random draws.
    on_progress : callable, default=None
        Called with a description of each step.

    Returns
    -------
    Choice
        The best candidate, and its expected quality.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.data import from_table
    >>> from skldl.selection import Candidate
    >>> from skldl.tabular import TableEncoder, choose_model
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> candidates = [Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (1, 5)})]
    >>> choose_model(from_table(table, ["no", "yes"]), candidates, TableEncoder(), folds=3).n_rows
    40
    """
    part = dataset.take(_sample(dataset, selection_rows, random_state))
    units = part.n_samples if part.groups is None else len(np.unique(part.groups))
    if units < 2:
        what = "row" if part.groups is None else "group"
        raise TableError(f"The table has a single {what}: a model cannot be tested. At least two are needed.")
    if part.splits is None:
        fold_of = assign_folds(part.n_samples, min(folds, units), random_state=random_state, groups=part.groups)
    else:
        fold_of = part.splits[:, 0]
    n_folds = int(fold_of.max()) + 1
    if min(n_folds, len(np.unique(fold_of))) < 2:
        raise TableError("The splits name a single fold. Two are needed: each is judged by the choice of the others.")
    min_train = part.n_samples - int(np.bincount(fold_of[fold_of >= 0]).max())
    own = [limited_to(candidate, min_train) for candidate in candidates]
    has_mean = any(candidate.is_baseline for candidate in own)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the final fit issues the warnings
        found = search(
            part,
            own if has_mean else [BASELINE, *own],
            list(pairs_of(fold_of)),
            random_state=random_state,
            encoder=encoder,
            on_progress=on_progress,
        )
    result = found if has_mean else SearchResult(found.trials[1:], found.pairs, found.criterion)
    reference = next(trials for trials in found.trials if trials.candidate.is_baseline)
    fitted = [trials for trials in result.trials if np.isfinite(trials.loss())]
    if not fitted:
        failure = result.failures[0]
        reason = failure.reason.partition(": ")[2]  # without the class of the error
        raise DataError(f"{failure.candidate} could not be fitted: {reason}")
    best = [(trials, trials.best()) for trials in fitted]
    trials = [Trial(t.candidate, dict(t.settings[place]), float(without_rounding(t.means[place]))) for t, place in best]
    trials = best_first(trials)
    choice = Choice(
        best=trials[0],
        candidates=trials,
        estimate=estimate_choice(part, result, reference),
        n_rows=int((fold_of >= 0).sum()),
        n_folds=n_folds,
        failures=result.failures,
        notes=tuple(labels_of_one_fold(part, fold_of)),
    )
    return judged_as_kept(choice, part)


def best_first(trials: Sequence[Trial]) -> list[Trial]:
    """Sort trials by divergence; the mean distribution is first unless another is better by more than rounding."""
    ordered = sorted(trials, key=lambda trial: trial.divergence)
    for place, trial in enumerate(ordered):
        if trial.candidate.is_baseline and first_best([trial.divergence, ordered[0].divergence]) == 0:
            return [trial, *ordered[:place], *ordered[place + 1 :]]
    return ordered


def judged_as_kept(choice: Choice, dataset: Dataset) -> Choice:
    """Replace the estimate by that of the mean distribution, which has skill 0, if the mean distribution was chosen."""
    estimate = choice.estimate
    # equal up to rounding errors if every fold chose the mean distribution, too
    if not choice.best.candidate.is_baseline or np.allclose(estimate.losses, estimate.reference, rtol=1e-9, atol=1e-14):
        return choice
    kept = estimate_from_losses(dataset, estimate.rows, estimate.reference, estimate.reference, estimate.choices)
    return replace(choice, estimate=kept, of_choosing=estimate)


_OF_WHICH_MODELS = "The interval is for the models judged here; the final one learned from more rows and may differ."


def _in_words(estimate: Estimate) -> tuple[str, str]:
    """Texts of the skill with its interval, and of the divergence with that of the mean."""
    skill, low, high = (show_skill(value) for value in (estimate.skill, estimate.skill.low, estimate.skill.high))
    return (
        f"{skill} (95 % interval {low} to {high})",
        f"divergence {estimate.loss:.4g} against {estimate.reference_loss:.4g} of always predicting the mean."
        + (f" {_OF_WHICH_MODELS}" if estimate.skill.low < estimate.skill.high else ""),
    )


def labels_of_one_fold(dataset: Dataset, fold_of: IntArray) -> list[str]:
    """A note on labels that occur only in one fold, if there are any; rows of fold -1 are never held out."""
    counted = True if dataset.sample_weight is None else dataset.sample_weight > 0
    names = []
    for name, degrees in zip(dataset.label_names, dataset.D.T, strict=True):
        folds = np.unique(fold_of[(degrees > 0) & counted])
        if len(folds) == 1 and folds[0] >= 0:
            names.append(str(name))
    if not names:
        return []
    return [
        f"{'The label' if len(names) == 1 else 'Each of the labels'} {list_names(names)} occurs in the rows of one "
        "fold only: the models that this fold judges are fitted without it, and the estimate says little about it."
    ]


def _sample(dataset: Dataset, max_rows: int, seed: int) -> IntArray:
    """Rows for the choice: all, or rows (or whole groups) drawn at random until there are enough."""
    n_rows = dataset.n_samples
    if n_rows <= max_rows:
        return np.arange(n_rows)
    unit_of = np.arange(n_rows) if dataset.groups is None else np.unique(dataset.groups, return_inverse=True)[1]
    sizes = np.bincount(unit_of)
    order = np.random.default_rng(seed).permutation(len(sizes))
    last = int(np.searchsorted(np.cumsum(sizes[order]), max_rows))
    drawn = np.zeros(len(sizes), dtype=bool)
    drawn[order[: max(last + 1, 2)]] = True  # at least two groups, so that one can be held out
    return np.flatnonzero(drawn[unit_of])


def show_setting(setting: Mapping[str, Any]) -> str:
    """Format a setting, without the steps of the pipeline.

    Examples
    --------
    >>> show_setting({"regressor__min_samples_leaf": 20})
    ' (min_samples_leaf=20)'
    """
    text = ", ".join(f"{name.rpartition('__')[2]}={value}" for name, value in setting.items())
    return f" ({text})" if text else ""


def failures_of(choice: Choice) -> list[str]:
    """Settings that could not be fitted, as sentences."""
    return [f"{failure.candidate}{show_setting(failure.setting)}: {failure.reason}" for failure in choice.failures]


def _name(trial: Trial) -> str:
    return f"{trial.candidate.name}{show_setting(trial.setting)}"


def reasons(choice: Choice, *, auto: bool, n_rows: int, grouped: bool) -> list[str]:
    """Sentences on the choice of a candidate and its expected quality."""
    best, estimate = choice.best, choice.estimate
    rows = f"{choice.n_rows} rows" if choice.n_rows == n_rows else f"{choice.n_rows} of {n_rows} rows"
    together = ", groups kept together" if grouped else ""
    lines = [
        f"{_name(best)}: {'the least' if auto else 'a'} held-out Kullback-Leibler divergence of {best.divergence:.4g} "
        f"in {choice.n_folds} folds of {rows}{together}."
    ]
    others = [trial for trial in choice.candidates if trial is not best]
    if others:
        lines.append(f"The others: {', '.join(f'{_name(trial)} {trial.divergence:.4g}' for trial in others)}.")
    chosen = "" if len(set(map(str, estimate.choices))) == 1 else ", with the choice repeated on the other folds"
    lines.append(f"{choice.expectation} Each fold is judged by models fitted without it{chosen}.")
    return lines


def warnings_on_choice(choice: Choice, n_rows: int, *, pool: bool) -> list[str]:
    """Warnings about the model."""
    counts = Counter(failures_of(choice))
    found = [f"Could not be tried in {count} of {choice.n_folds} folds: {line}" for line, count in counts.items()]
    if choice.n_rows < n_rows and pool:
        found.append(f"The estimate rests on {choice.n_rows} of {n_rows} rows, drawn at random.")
    elif choice.n_rows < n_rows:
        found.append(
            Message(
                f"The model was chosen on {choice.n_rows} of {n_rows} rows, drawn at random, and learned "
                "from all of them. ",
                Parameter("selection_rows"),
                " changes the number.",
            )
        )
    return [*found, *choice.notes, *warnings_on_skill(choice)]


def warnings_on_skill(choice: Choice) -> list[str]:
    """Warnings about a model that is no better than the mean distribution, or not clearly."""
    tried = [trial.candidate for trial in choice.candidates]
    if choice.best.candidate.is_baseline:
        if len(tried) == 1:  # the user named it
            return []
        return [
            "No model is better than predicting the mean distribution for every row: these columns do not predict the "
            "labels, or there are too few rows."
        ]
    if choice.skill[0] <= ROUNDING:
        model = "This model" if len(tried) == 1 else "The choice, repeated on other rows,"
        return [
            Message(
                f"{model} is not better than predicting the mean distribution for every row (",
                Parameter("model", "mean"),
                ").",
            )
        ]
    if not choice.beats_mean:
        return ["It is not clearly better than predicting the mean distribution: its interval reaches below zero."]
    return []


def fit_pool(
    dataset: Dataset,
    encoder: Any,
    *,
    budget: float | str | None = None,
    random_state: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> tuple[Pipeline, Choice, dict[str, str]]:
    """Fit a pipeline of an encoder and `AutoLDL`, with the best member alone if the pool gains less than 1 %.

    Returns the pipeline, the choice with its estimate, and the members that were not fitted, with the reasons. With a
    budget the estimate is nested only if there is enough time left.
    """
    started, is_small = time.perf_counter(), dataset.n_samples <= NESTED_ROWS
    with threadpool_limits(limits=1 if is_small else None):  # threads cost more than they save on small matrices
        X = encoder.fit_transform(dataset.X)
        auto = AutoLDL(budget=budget, random_state=random_state, least_gain=MIN_GAIN, verbose=on_progress or False)
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
    """Fit the pool; return the best model on held-out rows: the pool, its best member or the mean distribution."""
    D = pd.DataFrame(dataset.D, columns=list(dataset.label_names))
    auto.fit(X, D, dataset.sample_weight, dataset.groups)
    choice = _choice_of_pool(dataset, auto)
    if choice.best.candidate.is_baseline:
        return choice.best.candidate.make().fit(X, D, dataset.sample_weight), choice
    model = auto.members_[0] if len(auto.members_) == 1 else auto.set_params(verbose=None)
    model.label_names_ = auto.label_names_  # members are fitted on arrays
    return model, choice


def _lighter(auto: AutoLDL) -> AutoLDL:
    """A faster pool for the nested estimate: the members that were fitted, with fewer trees in the forest.

    A forest of 100 trees is nearly as good as one of 400, which takes most of the time on few rows.
    """
    fitted = [entry["member"] for entry in auto.report_ if entry["divergence"] is not None]
    smaller = {"forest": ("forest", RandomForestLDL(100, kind="both", n_trial_estimators=15))}
    members = [smaller.get(name, name) for name in fitted if name != "kernel-clr"]  # fitted together with "kernel"
    # not by clone, which would copy the function in ``verbose`` and all objects that it refers to
    return AutoLDL(members=members, random_state=auto.random_state, least_gain=auto.least_gain, verbose=False)


def _nested(
    choice: Choice,
    dataset: Dataset,
    encoder: Any,
    auto: AutoLDL,
    fold_of: IntArray,
    on_progress: Callable[[str], None] | None,
) -> Choice:
    """Replace the estimate by a nested one; if a fold cannot be left out, keep the estimate and note the reason."""
    try:
        estimate = _nested_estimate(dataset, encoder, auto, fold_of, on_progress)
    except ValueError as error:
        note = f"The choice could not be repeated without one of the folds, so that the estimate is not nested: {error}"
        return replace(choice, notes=(note,))
    notes = tuple(labels_of_one_fold(dataset, fold_of))
    n_folds = int(fold_of.max()) + 1
    return replace(choice, estimate=estimate, n_rows=dataset.n_samples, n_folds=n_folds, nested=True, notes=notes)


def _nested_estimate(
    dataset: Dataset, encoder: Any, auto: AutoLDL, fold_of: IntArray, on_progress: Callable[[str], None] | None
) -> Estimate:
    """Estimate from the losses on each fold of the model chosen on the other folds, and of their mean distribution.

    If the other folds lack a label that occurs in the fold, the loss of the mean is infinite. Then the predictions of
    both are mixed with a fraction 1/(n + 1) of the uniform distribution, for n training rows, so that such rows do not
    dominate the skill.
    """
    losses, reference = np.empty(dataset.n_samples), np.empty(dataset.n_samples)
    choices: list[tuple[str, dict[str, Any]]] = []
    for fold, (train, test) in enumerate(pairs_of(fold_of)):
        if on_progress is not None:
            on_progress(f"estimate: the choice without fold {fold + 1} of {fold_of.max() + 1}")
        part, new_encoder = dataset.take(train), clone(encoder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows already issued them
            X = new_encoder.fit_transform(part.X)
            model, choice = _fit(clone(auto), X, part)
            mean = BASELINE.make().fit(X, part.D, part.sample_weight)
            X_test = new_encoder.transform(dataset.take(test).X)
            lacks = np.asarray(mean.predict(X_test[:1]))[0] <= 0
            mixed = 1 / (len(train) + 1) if dataset.D[test][:, lacks].any() else 0.0
            own, other = (
                kullback_leibler.rowwise(
                    dataset.D[test], (1 - mixed) * np.asarray(each.predict(X_test)) + mixed / dataset.n_labels
                )
                for each in (model, mean)
            )
        # two fits of the mean distribution differ by rounding error, and the skill should be exactly 0
        losses[test], reference[test] = other if choice.best.candidate.is_baseline else own, other
        choices.append((choice.best.candidate.name, {}))
    return estimate_from_losses(dataset, np.arange(dataset.n_samples), losses, reference, choices)


def forget_held_out(model: Any) -> None:
    """Delete predictions and losses of training rows from a model and its members: a model file does not need them."""
    for part in (model, *getattr(model, "members_", ())):
        for name in (*KEPT_BY_ESTIMATORS, "held_out_losses_", "fold_of_"):
            part.__dict__.pop(name, None)


def _choice_of_pool(dataset: Dataset, auto: AutoLDL) -> Choice:
    """The choice among the pool, its members and the mean distribution, with a cross-fitted estimate."""
    # The reference is the mean of all rows, which is optimistic by about 1/n. Members use different folds, so that the
    # mean of the training part of one fold would not be comparable with all members.
    mean = weighted_mean(dataset.D, dataset.sample_weight)  # equals the prediction of `MeanDistribution`
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
    """Losses on each fold of the candidate (a row of the table) that is best on the other folds."""
    losses = np.empty(table.shape[1])
    for fold in np.unique(fold_of):
        own = fold_of == fold
        others = np.average(table[:, ~own], axis=1, weights=None if weight is None else weight[~own])
        losses[own] = table[first_best(others), own]
    return losses


def why_pool(choice: Choice, model: Any, left_out: Mapping[str, str], *, grouped: bool) -> list[str]:
    """Sentences on the choice of `fit_pool` and its expected quality; ``model`` is the pool or the single member."""
    best = choice.best
    members = ", ".join(
        f"{trial.candidate.name} {trial.divergence:.4g}" for trial in choice.candidates if trial is not best
    )
    held_out = f"held-out Kullback-Leibler divergence of {best.divergence:.4g} on {choice.n_rows} rows"
    together = ", groups held out together" if grouped else ""
    if isinstance(model, AutoLDL):
        members_of_pool = sorted(
            zip(model.member_names_, model.member_weights_, strict=True), key=lambda pair: -pair[1]
        )
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in members_of_pool)
        lines = [f"A pool with the weights {weights}: {held_out}{together}.", f"Its members alone: {members}."]
    else:
        lines = [f"{best.candidate.name} ({type(model).__name__}): {held_out}{together}."]
        kept = "" if best.candidate.is_baseline else " A pool of them all gains less than 1 %, so one model is kept."
        lines.append(f"The others: {members}.{kept}")
    lines += [f"Left out: {name} ({reason})." for name, reason in left_out.items()]
    judged = "" if best.candidate.is_baseline and choice.of_choosing is None else f" {_JUDGED[choice.nested]}"
    return [*lines, f"{choice.expectation}{judged}"]


_JUDGED = {
    True: "For each fold settings, pool weights and model were chosen on the other folds.",
    False: "Each row is judged by models and pool weights that were fitted without it, but with settings that were "
    "chosen on all rows: the skill is slightly too high.",
}
