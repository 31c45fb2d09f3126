"""The grids of a study after selection: losses by value, and chosen values that are ends of a grid."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from skldl.experiments.results import StudyResults
from skldl.experiments.statistics import ROPE
from skldl.metrics import MEASURES
from skldl.selection import Candidate
from skldl.utils.typing import FloatArray


class ChosenEnd(NamedTuple):
    """An end of a grid that selection chose on a dataset."""

    candidate: str
    name: str
    value: float
    which: str
    neighbour: float  # the value next to it
    is_natural: bool


def grid_end_notes(results: StudyResults) -> list[str]:
    """List where a chosen value is the largest or smallest that was tried: a better one may be outside the grid.

    One sentence for each candidate, hyper-parameter and end, with the datasets. Left out are 0 where no value is
    negative, 1 where all are integers above 0, and natural limits that the study declares, unless the loss still
    falls towards them. Grids of words or of fewer than three numbers have no ends. A list of one number counts as that
    number.
    """
    found: dict[tuple[Any, ...], list[str]] = {}
    for dataset, candidate, end in _chosen_ends(results):
        if not end.is_natural or _step(results, dataset, candidate, end).still_falls:
            title = parameter_titles(candidate.grid)[end.name]
            found.setdefault((end.candidate, title, end.value, end.which), []).append(dataset)
    return [
        f"{candidate}: {name} = {short(value)} is the {which} value tried on {', '.join(datasets)}, and was chosen "
        "there; a better one may be outside the grid."
        for (candidate, name, value, which), datasets in found.items()
    ]


def natural_limit_notes(results: StudyResults) -> list[str]:
    """List where selection chose an end that the study declares a natural limit, with the change of the loss before it.

    At a limit, more of the same changes nothing: the loss on validation rows should hardly differ from that of the next
    value. Other hyper-parameters are at their best for each of the two. If the loss still falls, the value is not a
    limit, and `grid_end_notes` names it.
    """
    found: dict[tuple[Any, ...], dict[str, _Step]] = {}
    for dataset, candidate, end in _chosen_ends(results):
        step = _step(results, dataset, candidate, end)
        if end.is_natural and not step.still_falls:
            title = parameter_titles(candidate.grid)[end.name]
            found.setdefault((end.candidate, title, end.neighbour, end.value, end.which), {})[dataset] = step
    notes = []
    for (candidate, name, neighbour, value, which), steps in found.items():
        changes = ", ".join(f"{step} on {dataset}" for dataset, step in steps.items())
        has_error = any(np.isfinite(step.error) for step in steps.values())
        notes.append(
            f"{candidate}: {name} = {short(value)}, the {which} value tried, was chosen; the study takes it for a "
            f"limit, beyond which nothing changes. From {short(neighbour)} to it the loss on validation rows changes "
            f"by {changes}{' (mean ± standard error over selections)' if has_error else ''}; a fall of up to "
            f"{ROPE:.0%} is taken for no change."
        )
    return notes


class _Step(NamedTuple):
    """The relative change of the loss from the value next to an end to the end: its mean and standard error."""

    change: float
    error: float

    @property
    def still_falls(self) -> bool:
        """Whether the loss falls by more than what makes no difference, and by more than chance."""
        # an error that is not known, of a single selection, counts as none
        return self.change < -max(ROPE, 2.0 * np.nan_to_num(self.error))

    def __str__(self) -> str:
        if np.isnan(self.change):
            return "an unknown fraction"
        error = "" if np.isnan(self.error) else f" ± {self.error:.2%}"
        return f"{round(self.change, 4) + 0.0:+.2%}{error}"  # + 0.0 turns −0.0 into 0.0


def _step(results: StudyResults, dataset: str, candidate: Candidate, end: ChosenEnd) -> _Step:
    """The step to an end, each side with the setting that is best on the mean of all selections; NaN if not known."""
    table = validation_losses(results, dataset, candidate)
    values = [_number(setting[end.name]) for setting in candidate.settings]
    unknown = _Step(np.nan, np.nan)
    if table is None or not MEASURES[results.study["criterion"]].has_zero_loss:
        return unknown
    means = table.mean(axis=0)
    sides = []
    for value in (end.neighbour, end.value):
        places = [j for j, found in enumerate(values) if found == value and np.isfinite(means[j])]
        if not places:
            return unknown
        sides.append(table[:, min(places, key=means.__getitem__)])
    if not sides[0].mean() > 0:
        return unknown
    changes = (sides[1] - sides[0]) / sides[0].mean()
    error = changes.std(ddof=1) / np.sqrt(len(changes)) if len(changes) > 1 else np.nan
    return _Step(float(changes.mean()), float(error))


def _chosen_ends(results: StudyResults) -> Iterator[tuple[str, Candidate, ChosenEnd]]:
    """Dataset, candidate with the grid that it has there, and chosen end; without ends that no value can exceed."""
    for entry, dataset in product(results.study["candidates"], results.datasets):
        candidate = candidate_of(entry).on(dataset)
        settings = results.chosen(dataset, entry["name"])
        for name, values in candidate.grid.items():
            numbers = sorted({number for value in values if (number := _number(value)) is not None})
            if len(numbers) < 3 or any(_number(value) is None for value in values) or entry.get("refine") == name:
                continue
            natural = {_number(value) for value in entry.get("natural", {}).get(name, ())}
            chosen = {number for setting in settings if (number := _number(setting.get(name))) is not None}
            ends = ((numbers[-1], "largest", numbers[-2]), (numbers[0], "smallest", numbers[1]))
            for value, which, neighbour in ends:
                if value in chosen and value not in _usual_limit(values) - natural:
                    end = ChosenEnd(entry["name"], name, value, which, neighbour, value in natural)
                    yield dataset, candidate, end


def candidate_of(entry: dict[str, Any]) -> Candidate:
    """A candidate of a record file with its grids; its estimator is not known here."""
    return Candidate(entry["name"], "", **{name: entry[name] for name in ("grid", "path", "grids") if name in entry})


def validation_losses(results: StudyResults, dataset: str, candidate: Candidate) -> FloatArray | None:
    """Losses on validation rows: a row for each selection on a dataset, a column for each setting; None if none ran."""
    rows = [
        [np.nan if value is None else float(value) for value in (record.get("selection") or record)["values"]]
        for record in [*results.selections, *(r for r in results.evaluations if "selection" in r)]
        if record["status"] == "ok" and (record["dataset"], record["candidate"]) == (dataset, candidate.name)
    ]
    if not rows:
        return None
    table = np.array(rows, dtype=np.float64).reshape(-1, len(candidate.settings))
    criterion = MEASURES[results.study["criterion"]]
    return np.asarray(criterion.loss(table, results.info[dataset]["n_labels"]))


def best_by_value(losses: FloatArray, candidate: Candidate, name: str) -> dict[Any, float]:
    """For each value of one hyper-parameter the minimum loss over all others that could be fitted.

    Examples
    --------
    >>> from skldl.experiments.grids import best_by_value
    >>> from skldl.selection import Candidate
    >>> candidate = Candidate("BP", "skldl:AABP", grid={"hidden_layer_sizes": ([1], [9]), "alpha": (0.1, 0.0)})
    >>> best_by_value([0.3, 0.4, 0.2, 0.1], candidate, "hidden_layer_sizes")
    {(1,): 0.3, (9,): 0.1}
    """
    found: dict[Any, list[float]] = {value: [] for value in candidate.grid[name]}
    for loss, setting in zip(losses, candidate.settings, strict=True):
        found[setting[name]].append(loss)
    return {value: float(np.fmin.reduce(known)) for value, known in found.items()}  # settings that failed are NaN


def parameter_titles(names: Iterable[str]) -> dict[str, str]:
    """Short names of the hyper-parameters of a candidate: the last part, with as many before it as make it unique.

    Examples
    --------
    >>> parameter_titles(["model__regressor__alpha", "scale__with_mean"])
    {'model__regressor__alpha': 'alpha', 'scale__with_mean': 'with_mean'}
    >>> parameter_titles(["first__alpha", "second__alpha"])
    {'first__alpha': 'first alpha', 'second__alpha': 'second alpha'}
    """
    parts = {name: name.split("__") for name in names}
    titles = {}
    for name, own in parts.items():
        others = [other for key, other in parts.items() if key != name]
        taken = next((n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in others)), len(own))
        titles[name] = " ".join(own[-taken:])
    return titles


def short(value: Any) -> str:
    """Write a value of a hyper-parameter in few characters."""
    return f"{value:g}" if isinstance(value, float) else str(value).replace(" ", "")


def _usual_limit(values: Sequence[Any]) -> set[float | None]:
    """0 or 1, where no smaller value makes sense."""
    if all(isinstance(_only(value), int) and _only(value) > 0 for value in values):
        return {1.0}
    return {0.0} if min(float(_only(value)) for value in values) >= 0 else set()


def _number(value: Any) -> float | None:
    """The number that a value is, or that a list of one number holds, such as the sizes of hidden layers; else None."""
    value = _only(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number or value in ("inf", "-inf") else None


def _only(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
