"""The search over candidates and their settings, which all commands and studies use.

For each pair of rows to fit on and rows to validate on, every setting of every candidate is fitted and predicts the
validation rows; values of a path are computed in one call of ``predict_path``. The value of a setting is the mean over
the pairs of its (weighted) mean criterion, and the best setting is chosen, the first in a tie.

**Errors.** A setting whose estimator raises an error is out, and its failure is kept with the reason. Faults of the
machine (no memory, on a GPU either, no disk, a worker that crashed) are no property of a setting: they end the search,
so that lack of memory never determines the choice.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

import numpy as np
from sklearn.base import clone

from skldl.data._dataset import Dataset, rows_of
from skldl.metrics import MEASURES
from skldl.metrics._measure import mean
from skldl.selection._candidate import Candidate
from skldl.selection._fitting import fit_arguments, needs_dense
from skldl.selection._trials import Failure, Pair, SearchResult, Setting, Trials
from skldl.utils.arrays import is_device_memory_fault
from skldl.utils.missing import comparable_rows
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_weights

MACHINE_FAULTS = (MemoryError, OSError, BrokenExecutor)
MAX_REFINEMENTS = 3
"""Maximum number of rounds; those after the first take place only while the best value is an end of the grid."""


def is_machine_fault(error: BaseException) -> bool:
    """Whether an error is a fault of the machine, not of the estimator that raised it.

    Examples
    --------
    >>> from skldl.selection._search import is_machine_fault
    >>> is_machine_fault(MemoryError()), is_machine_fault(ValueError("C=-1.0"))
    (True, False)
    """
    return isinstance(error, MACHINE_FAULTS) or is_device_memory_fault(error)


def search(
    dataset: Dataset,
    candidates: Sequence[Candidate],
    pairs: Sequence[Pair],
    *,
    criterion: str = "kullback_leibler",
    random_state: int = 0,
    encoder: Any = None,
    on_progress: Callable[[str], None] | None = None,
) -> SearchResult:
    """Try every setting of every candidate on every pair of rows.

    Parameters
    ----------
    dataset : Dataset
        The data.
    candidates : sequence of Candidate
        The candidates to choose from.
    pairs : sequence of (ndarray of int, ndarray of int)
        Rows to fit on and rows to validate on; `skldl.selection.pairs_of` makes them from folds.
    criterion : str, default="kullback_leibler"
        Name of the measure to choose by.
    random_state : int, default=0
        Seed of estimators that draw random numbers.
    encoder : transformer, default=None
        Turns X into features; it learns from the rows to fit on alone, once for all candidates.
    on_progress : callable, default=None
        Called with a message before each step.

    Returns
    -------
    SearchResult
        Values of all settings, the best one, and what failed.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> from skldl.selection import Candidate, assign_folds, pairs_of, search
    >>> x = np.linspace(0.1, 0.9, 30)
    >>> dataset = Dataset("line", x[:, None], np.column_stack([x, 1 - x]))
    >>> candidates = [Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (15, 3)}, path="n_neighbors")]
    >>> trials, index = search(dataset, candidates, list(pairs_of(assign_folds(30, 3, random_state=0)))).best()
    >>> trials.settings[index]
    {'n_neighbors': 3}
    """
    pairs = tuple(pairs)
    engine = _Engine(dataset, pairs, criterion, random_state, encoder, on_progress)
    found = engine.run([(candidate, candidate.settings) for candidate in candidates])
    refinable = {index: found[index] for index, candidate in enumerate(candidates) if candidate.refine}
    for _ in range(MAX_REFINEMENTS):
        more = {index: _between(trials) for index, trials in refinable.items()}
        refinable = {index: trials for index, trials in refinable.items() if more[index]}
        if not refinable:
            break
        again = engine.run([(trials.candidate, more[index]) for index, trials in refinable.items()])
        for index, extra in zip(list(refinable), again, strict=True):
            found[index] = refinable[index] = _joined(found[index], extra)
        refinable = {index: trials for index, trials in refinable.items() if _at_an_end(trials)}
    return SearchResult(tuple(found), pairs, criterion)


@dataclass(frozen=True, eq=False)
class _Engine:
    """Data and options common to all trials of one search."""

    dataset: Dataset
    pairs: tuple[Pair, ...]
    criterion: str
    random_state: int
    encoder: Any
    on_progress: Callable[[str], None] | None

    def run(self, work: Sequence[tuple[Candidate, Sequence[Setting]]]) -> list[Trials]:
        """Try settings of candidates on all pairs."""
        measure = MEASURES[self.criterion]
        rows: list[list[FloatArray]] = [[] for _ in work]
        values: list[list[list[float]]] = [[] for _ in work]
        failures: list[list[Failure]] = [[] for _ in work]
        for number, (fit_rows, validation_rows) in enumerate(self.pairs, start=1):
            truth = self.dataset.target[validation_rows]
            weight = check_weights(rows_of(self.dataset.sample_weight, validation_rows), len(truth))
            features = self._features(fit_rows, validation_rows)
            for index, (candidate, settings) in enumerate(work):
                if self.on_progress is not None:
                    self.on_progress(f"fold {number} of {len(self.pairs)}: {candidate.name}")
                losses = np.full((len(settings), len(truth)), np.nan)
                predictions = self._predictions(candidate, settings, fit_rows, features, failures[index])
                for row, predicted in enumerate(predictions):
                    if predicted is None:
                        continue
                    try:
                        losses[row] = measure.rowwise(*comparable_rows(truth, predicted, self.dataset.missing))
                    except Exception as error:  # what it predicts are no distributions
                        if is_machine_fault(error):
                            raise
                        failures[index].append(_failure(candidate, settings[row], error))
                rows[index].append(losses)
                values[index].append([mean(line, weight) for line in losses])
        higher = measure.higher_is_better
        return [
            Trials(candidate, tuple(settings), rows[i], np.array(values[i], dtype=np.float64), failures[i], higher)
            for i, (candidate, settings) in enumerate(work)
        ]

    def _features(self, fit_rows: IntArray, validation_rows: IntArray) -> tuple[Any, Any]:
        learn, new = (rows_of(self.dataset.X, rows) for rows in (fit_rows, validation_rows))
        if self.encoder is None:
            return learn, new
        encoder = clone(self.encoder).fit(learn)
        return encoder.transform(learn), encoder.transform(new)

    def _as_needed(self, model: Any, features: tuple[Any, Any]) -> Iterable[Any]:
        """Sparse features of an encoder as arrays, for an estimator that needs them."""
        if self.encoder is None or not needs_dense(model):
            return features
        return (part.toarray() if hasattr(part, "toarray") else part for part in features)

    def _predictions(
        self,
        candidate: Candidate,
        settings: Sequence[Setting],
        fit_rows: IntArray,
        features: tuple[Any, Any],
        failures: list[Failure],
    ) -> Iterator[Any]:
        """Predictions of each setting for the validation rows; None where it failed."""
        D, weight = self.dataset.target[fit_rows], rows_of(self.dataset.sample_weight, fit_rows)
        groups = rows_of(self.dataset.groups, fit_rows)
        for piece in _pieces(candidate, settings):
            along = self._along_path(candidate, piece, features, D, weight, failures) if candidate.path else []
            yield from along
            for setting in piece[len(along) :]:
                try:
                    model = candidate.make(setting, self.random_state)
                    learn, new = self._as_needed(model, features)
                    model.fit(learn, D, **fit_arguments(model, weight, groups))
                    predicted = np.asarray(model.predict(new))
                except (Exception, SystemExit) as error:
                    if is_machine_fault(error):
                        raise
                    failures.append(_failure(candidate, setting, error))
                    predicted = None
                yield predicted

    def _along_path(
        self,
        candidate: Candidate,
        settings: Sequence[Setting],
        features: tuple[Any, Any],
        D: FloatArray,
        weight: Any,
        failures: list[Failure],
    ) -> list[Any]:
        """Predictions of ``predict_path`` for the first settings, all of them if no error occurs.

        If a path fails, the remaining values are tried alone. If it returns more or fewer predictions than values, it
        is not clear to which values they belong, and none is used.
        """
        found: list[Any] = []
        try:
            model = candidate.make(settings[0], self.random_state)
            if not hasattr(model, "predict_path"):  # an estimator without common computations
                return []
            learn, new = self._as_needed(model, features)
            values = [setting[candidate.path] for setting in settings]
            path = model.predict_path(learn, D, new, param=candidate.path, values=values, sample_weight=weight)
            for predicted in islice(path, len(values) + 1):
                found.append(predicted)  # one by one: what came before an error stays
        except (Exception, SystemExit) as error:
            if is_machine_fault(error):
                raise
            where = f"predict_path over {candidate.path} stopped"
            failures.append(_failure(candidate, settings[min(len(found), len(settings) - 1)], error, where))
            return found
        if len(found) != len(settings):
            number = f"more than {len(settings)}" if len(found) > len(settings) else str(len(found))
            reason = f"predict_path over {candidate.path} returned {number} predictions for {len(settings)} values"
            failures.append(Failure(candidate.name, settings[0], reason))
            return []
        return found


def _failure(candidate: Candidate, setting: Setting, error: BaseException, where: str = "") -> Failure:
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, SystemExit):
        reason = f"the estimator called exit({error.code!r})"
    return Failure(candidate.name, setting, f"{where}: {reason}" if where else reason)


def _pieces(candidate: Candidate, settings: Sequence[Setting]) -> list[list[Setting]]:
    """The settings in pieces that differ only in the hyper-parameter of the path; one by one without a path."""
    if not candidate.path:
        return [[setting] for setting in settings]

    def others(setting: Setting) -> dict[str, Any]:
        return {name: value for name, value in setting.items() if name != candidate.path}

    return [list(piece) for _, piece in groupby(settings, key=others)]


def _joined(one: Trials, more: Trials) -> Trials:
    return replace(
        one,
        settings=(*one.settings, *more.settings),
        rows=[np.vstack(both) for both in zip(one.rows, more.rows, strict=True)],
        values=np.hstack([one.values, more.values]),
        failures=[*one.failures, *more.failures],
    )


def _between(trials: Trials) -> list[Setting]:
    """Settings around the best: two between it and each neighbour, or beyond it where there is no neighbour."""
    if np.isnan(trials.means).all():
        return []
    name = trials.candidate.refine
    best = trials.settings[trials.best()]
    tried = sorted({setting[name] for setting in trials.settings})
    index = tried.index(best[name])
    whole = all(isinstance(value, int) for value in tried)
    if len(tried) < 2:
        return []
    wanted: list[float] = []
    for step in (-1, 1):
        if 0 <= index + step < len(tried):
            # equal ratios: hyper-parameters with a grid are scales
            ratio, thirds = tried[index + step] / best[name], range(1, 3)
        else:
            ratio, thirds = best[name] / tried[index - step], range(1, 4)
        wanted += [best[name] * ratio ** (third / 3) for third in thirds]
    # three digits are enough, and can be read in a table
    values = {max(1, round(value)) if whole else float(f"{value:.3g}") for value in wanted} - set(tried)
    return [{**best, name: value} for value in sorted(values, reverse=tried[0] != trials.settings[0].get(name))]


def _at_an_end(trials: Trials) -> bool:
    values = [setting[trials.candidate.refine] for setting in trials.settings]
    return values[trials.best()] in (min(values), max(values))
