"""The choice of a model for a table: held-out Kullback-Leibler of a few candidates, against the mean distribution.

The rows are split into folds, groups whole; in each fold the encoder learns from the training part alone, and every
setting of every candidate predicts the rows held out. The choice is the setting with the least mean divergence over all
rows. Its skill is the part of the mean's divergence that it takes away, with a bootstrap interval over rows or groups.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from skldl.data._roles import TrainingSet
from skldl.exceptions import DataError, TableError
from skldl.experiments import Candidate
from skldl.experiments.study import BASELINE
from skldl.metrics import kullback_leibler
from skldl.selection._folds import assign_folds, derive_seed, pairs_of
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._models import limited_to, needs_dense

FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.intp]
FOLDS = 5
MAX_ROWS = 5000
N_RESAMPLES = 1000


@dataclass(frozen=True)
class Trial:
    """One setting of one candidate.

    Attributes
    ----------
    candidate : Candidate
        The candidate.
    setting : dict
        Its hyper-parameters.
    divergence : float
        Mean Kullback-Leibler divergence of the rows held out.
    """

    candidate: Candidate
    setting: dict[str, Any]
    divergence: float


@dataclass(frozen=True)
class Choice:
    """Which model was chosen, and how good it can be expected to be.

    Attributes
    ----------
    best : Trial
        The chosen setting.
    candidates : list of Trial
        The best setting of each candidate, the best first.
    mean_divergence : float
        What the mean distribution has.
    skill : tuple of float
        Part of the mean's divergence that the chosen model takes away, and the ends of its 95 % interval.
    n_rows, n_folds : int
        How many rows were held out in turn, in how many folds.
    failures : dict
        From the names of the candidates that could not be fitted to the reason.
    """

    best: Trial
    candidates: list[Trial]
    mean_divergence: float
    skill: tuple[float, float, float]
    n_rows: int
    n_folds: int
    failures: dict[str, str]

    @property
    def beats_mean(self) -> bool:
        """Whether even the lower end of the interval is better than the mean distribution."""
        return self.skill[1] > 0


def choose_model(
    training: TrainingSet,
    candidates: Sequence[Candidate],
    encoder: TableEncoder,
    *,
    folds: int = FOLDS,
    max_rows: int = MAX_ROWS,
    seed: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> Choice:
    """Choose among candidates and their settings by cross-validation.

    Parameters
    ----------
    training : TrainingSet
        The table.
    candidates : sequence of Candidate
        The candidates; the mean distribution takes part as a yardstick even if it is not among them.
    encoder : TableEncoder
        Turns the table into features, anew in each fold.
    folds : int, default=5
        Number of folds; fewer if there are fewer rows or groups.
    max_rows : int, default=5000
        Larger tables are represented by so many rows, drawn at random.
    seed : int, default=0
        Seed of everything that is drawn.
    on_progress : callable, default=None
        Called with a word on what is going to run.

    Returns
    -------
    Choice
        The best candidate, and how good it is.
    """
    rows = _sample(training, max_rows, seed)
    part = training.take(rows)
    units = len(rows) if part.groups is None else len(np.unique(part.groups))
    if units < 2:
        what = "row" if part.groups is None else "group"
        raise TableError(f"The table has a single {what}: a model cannot be tested. Two are the least, twenty better.")
    n_folds = min(folds, units)
    fold_of = assign_folds(len(rows), n_folds, seed=seed, groups=part.groups)
    least = len(rows) - int(np.bincount(fold_of).max())
    candidates = [limited_to(candidate, least) for candidate in candidates]
    everyone = candidates if any(_is_mean(c) for c in candidates) else [BASELINE, *candidates]
    losses = {c.name: np.full((len(c.settings), len(rows)), np.nan) for c in everyone}
    failures: dict[str, str] = {}
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the final fit tells what there is to tell
        for fold, (train, test) in enumerate(pairs_of(fold_of)):
            fold_encoder = clone(encoder).fit(part.X.iloc[train])
            learn, new = (fold_encoder.transform(part.X.iloc[some]) for some in (train, test))
            for candidate in everyone:
                if candidate.name in failures:
                    continue
                if on_progress is not None:
                    on_progress(f"fold {fold + 1} of {n_folds}: {candidate.name}")
                try:
                    predictions = _predictions(candidate, learn, part.take(train), new, derive_seed(seed, fold))
                    for place, P in enumerate(predictions):
                        losses[candidate.name][place, test] = kullback_leibler.rowwise(part.D.iloc[test], P)
                except (ValueError, TypeError, ArithmeticError) as error:
                    failures[candidate.name] = " ".join(str(error).split())
    trials = [_best_trial(c, losses[c.name], part.weight) for c in candidates if c.name not in failures]
    if not trials:
        name, reason = next(iter(failures.items()))
        raise DataError(f"{name} could not be fitted: {reason}")
    trials.sort(key=lambda trial: trial.divergence)
    best = trials[0]
    reference = losses[next(c.name for c in everyone if _is_mean(c))][0]
    own = losses[best.candidate.name][list(best.candidate.settings).index(best.setting)]
    return Choice(
        best=best,
        candidates=trials,
        mean_divergence=float(np.average(reference, weights=part.weight)),
        skill=skill_interval(own, reference, part.weight, part.groups, seed),
        n_rows=len(rows),
        n_folds=n_folds,
        failures=failures,
    )


def _is_mean(candidate: Candidate) -> bool:
    return candidate.class_name == BASELINE.class_name


def _sample(training: TrainingSet, max_rows: int, seed: int) -> IntArray:
    """Rows to test with: all, or whole groups drawn at random until there are enough."""
    n_rows = len(training.X)
    if n_rows <= max_rows:
        return np.arange(n_rows)
    unit_of = np.arange(n_rows) if training.groups is None else training.groups
    sizes = np.bincount(unit_of)
    order = np.random.default_rng(seed).permutation(len(sizes))
    last = int(np.searchsorted(np.cumsum(sizes[order]), max_rows))
    drawn = np.zeros(len(sizes), dtype=bool)
    drawn[order[: max(last + 1, 2)]] = True
    return np.flatnonzero(drawn[unit_of])


def _predictions(
    candidate: Candidate, learn: Any, training: TrainingSet, new: Any, seed: int
) -> Iterator[npt.NDArray[Any]]:
    """What each setting predicts for new rows, sharing work along the path where the estimator can."""
    model = candidate.make(candidate.settings[0], seed)
    if needs_dense(model):
        learn, new = (some.toarray() if hasattr(some, "toarray") else some for some in (learn, new))
    D, weight = training.D.to_numpy(), training.weight
    if candidate.path and len(candidate.grid) == 1 and hasattr(model, "predict_path"):
        values = candidate.grid[candidate.path]
        yield from model.predict_path(learn, D, new, param=candidate.path, values=values, sample_weight=weight)
        return
    extra = {} if weight is None else {"sample_weight": weight}
    for setting in candidate.settings:
        yield clone(model).set_params(**setting).fit(learn, D, **extra).predict(new)


def _best_trial(candidate: Candidate, losses: FloatArray, weight: FloatArray | None) -> Trial:
    means = np.average(losses, axis=1, weights=weight)
    best = int(np.argmin(means))
    return Trial(candidate, dict(candidate.settings[best]), float(means[best]))


def skill_interval(
    losses: FloatArray, reference: FloatArray, weight: FloatArray | None, groups: npt.NDArray[Any] | None, seed: int
) -> tuple[float, float, float]:
    """Skill against a reference with its 95 % bootstrap interval; rows of one group are drawn together.

    Parameters
    ----------
    losses, reference : ndarray of shape (n_rows,)
        Divergence of each row under the model and under the reference.
    weight : ndarray of shape (n_rows,) or None
        Weight of each row.
    groups : ndarray of int of shape (n_rows,) or None
        Group of each row.
    seed : int
        Seed of the draws.

    Returns
    -------
    tuple of float
        Skill, lower end, upper end.
    """
    weight = np.ones(len(losses)) if weight is None else weight
    unit_of = np.arange(len(losses)) if groups is None else np.unique(groups, return_inverse=True)[1]
    own, other = np.bincount(unit_of, weight * losses), np.bincount(unit_of, weight * reference)
    generator = np.random.default_rng(seed)
    draws = []
    for _ in range(N_RESAMPLES):
        drawn = generator.integers(len(own), size=len(own))
        draws.append(_skill(own[drawn].sum(), other[drawn].sum()))
    low, high = np.quantile(draws, [0.025, 0.975], method="nearest")
    return _skill(own.sum(), other.sum()), float(low), float(high)


def _skill(own: float, reference: float) -> float:
    """A reference without any loss leaves nothing to gain."""
    return float(1.0 - own / reference) if reference > 0 else 0.0
