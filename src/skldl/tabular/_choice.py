"""The choice of a model for a table: held-out Kullback-Leibler of a few candidates, against the mean distribution.

The rows are split into folds, groups whole; in each fold the encoder learns from the training part alone, and every
setting of every candidate predicts the rows held out. The setting with the least divergence, averaged over the folds,
is chosen. What it can be expected to reach is not that least divergence, which is too good because it is the least of
many: each fold is judged by the setting that is best on the other folds (`skldl.selection.estimate_choice`).
"""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from skldl.data._dataset import Dataset
from skldl.exceptions import DataError, Message, Parameter, TableError
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
from skldl.tabular._models import limited_to
from skldl.utils.column_names import list_names
from skldl.utils.mean_mixture import first_best
from skldl.utils.typing import IntArray

FOLDS = 5
SELECTION_ROWS = 5000
ROUNDING = 1e-9
"""A skill up to this size is rounding error."""


@dataclass(frozen=True)
class Trial:
    """The best setting of one candidate, with its held-out divergence: of the best of many it is too small."""

    candidate: Candidate
    setting: Mapping[str, Any]
    divergence: float


@dataclass(frozen=True, eq=False)
class Choice:
    """Which model was chosen, and how good it can be expected to be.

    Attributes
    ----------
    best : Trial
        The chosen setting.
    candidates : list of Trial
        The best setting of each candidate, the best first.
    estimate : Estimate
        Expected divergence and skill, with the choice made anew for each fold from the other folds.
    n_rows, n_folds : int
        How many rows were held out in turn, in how many folds.
    failures : list of Failure
        Settings that could not be fitted, with the reason.
    nested : bool
        Whether no choice at all has seen the rows that judge it: each fold is judged by what encoder, settings, pool
        weights and the choice of the model are without it.
    notes : tuple of str
        What is worth knowing about the estimate.
    of_choosing : Estimate or None
        Where the mean distribution was chosen, ``estimate`` is that of the mean: its skill is 0. This one is of the
        choice, which may take other models from other rows.

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
        """Share of the divergence of the mean that the choice removes, and the ends of its 95 % interval."""
        skill = self.estimate.skill
        return float(skill), skill.low, skill.high

    @property
    def expectation(self) -> str:
        """Skill and divergence to be expected, in words."""
        if self.of_choosing is None:
            skill, divergence = _in_words(self.estimate)
            return f"Skill {skill} to be expected on new rows: {divergence}"
        skill, divergence = _in_words(self.of_choosing)
        return (
            "What was kept is the mean distribution: skill 0, and to be expected on new rows is a divergence of "
            f"{self.estimate.loss:.4g}. The choice, made again from other rows, had a skill of {skill}: {divergence}"
        )

    @property
    def beats_mean(self) -> bool:
        """Whether even the lower end of the interval is better than the mean distribution, by more than rounding."""
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
        The candidates; the mean distribution takes part as a reference even if it is not among them.
    encoder : TableEncoder
        Turns the table into features, anew in each fold.
    folds : int, default=5
        Number of folds; fewer if there are fewer rows or groups. Splits of the dataset take their place.
    selection_rows : int, default=5000
        Maximum number of rows; larger tables are represented by a random sample.
    random_state : int, default=0
        Seed of everything that is drawn.
    on_progress : callable, default=None
        Called with a word on what is going to run.

    Returns
    -------
    Choice
        The best candidate, and how good it is.

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
        raise TableError(f"The table has a single {what}: a model cannot be tested. Two are the least, twenty better.")
    if part.splits is None:
        fold_of = assign_folds(part.n_samples, min(folds, units), random_state=random_state, groups=part.groups)
    else:
        fold_of = part.splits[:, 0]
    n_folds = int(fold_of.max()) + 1
    if min(n_folds, len(np.unique(fold_of))) < 2:
        raise TableError("The splits name a single fold. Two are needed: each is judged by the choice of the others.")
    least = part.n_samples - int(np.bincount(fold_of[fold_of >= 0]).max())
    own = [limited_to(candidate, least) for candidate in candidates]
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
    """Put trials in the order of their divergence; the mean distribution first where none is better than rounding."""
    ordered = sorted(trials, key=lambda trial: trial.divergence)
    for place, trial in enumerate(ordered):
        if trial.candidate.is_baseline and first_best([trial.divergence, ordered[0].divergence]) == 0:
            return [trial, *ordered[:place], *ordered[place + 1 :]]
    return ordered


def judged_as_kept(choice: Choice, dataset: Dataset) -> Choice:
    """The same choice, judged as the mean distribution if it is this that was chosen, sometimes or always."""
    estimate = choice.estimate
    if not choice.best.candidate.is_baseline or np.allclose(estimate.losses, estimate.reference, rtol=1e-9, atol=1e-14):
        return choice
    kept = estimate_from_losses(dataset, estimate.rows, estimate.reference, estimate.reference, estimate.choices)
    return replace(choice, estimate=kept, of_choosing=estimate)


def _in_words(estimate: Estimate) -> tuple[str, str]:
    """Skill with its interval, and divergence beside that of the mean."""
    skill, low, high = (show_skill(value) for value in (estimate.skill, estimate.skill.low, estimate.skill.high))
    return (
        f"{skill} (95 % interval {low} to {high})",
        f"divergence {estimate.loss:.4g} against {estimate.reference_loss:.4g} of always predicting the mean.",
    )


def labels_of_one_fold(dataset: Dataset, fold_of: IntArray) -> list[str]:
    """A note on labels that occur in the rows of a single fold, if there are any; rows of fold -1 always train."""
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
        "fold only: models that are judged by this fold have not seen it, and the estimate says little about it."
    ]


def _sample(dataset: Dataset, most: int, seed: int) -> IntArray:
    """Rows to choose with: all, or whole groups drawn at random until there are enough."""
    n_rows = dataset.n_samples
    if n_rows <= most:
        return np.arange(n_rows)
    unit_of = np.arange(n_rows) if dataset.groups is None else np.unique(dataset.groups, return_inverse=True)[1]
    sizes = np.bincount(unit_of)
    order = np.random.default_rng(seed).permutation(len(sizes))
    last = int(np.searchsorted(np.cumsum(sizes[order]), most))
    drawn = np.zeros(len(sizes), dtype=bool)
    drawn[order[: max(last + 1, 2)]] = True
    return np.flatnonzero(drawn[unit_of])


def show_setting(setting: Mapping[str, Any]) -> str:
    """Format a setting: the parameter without the step of the pipeline.

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
    """Reasons for the choice of a candidate and its expected quality, as sentences."""
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
    chosen = "" if len(set(map(str, estimate.choices))) == 1 else ", with the choice made anew from the other folds"
    lines.append(f"{choice.expectation} Each fold is judged by models that have not seen it{chosen}.")
    return lines


def doubts(choice: Choice, n_rows: int, *, pool: bool) -> list[str]:
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
    return [*found, *choice.notes, *doubts_on_skill(choice)]


def doubts_on_skill(choice: Choice) -> list[str]:
    """Warnings about a model that is no better than the mean distribution, or not clearly."""
    tried = [trial.candidate for trial in choice.candidates]
    if choice.best.candidate.is_baseline:
        if len(tried) == 1:  # it was asked for, and nothing else was tried
            return []
        return [
            "No model is better than predicting the mean distribution for every row: these columns do not predict the "
            "labels, or there are too few rows."
        ]
    if choice.skill[0] <= ROUNDING:
        model = "This model" if len(tried) == 1 else "The choice, made anew from other rows,"
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
