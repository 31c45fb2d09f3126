"""Candidates for a table: those of the automatic choice, or a named one with its parameters."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skldl.base import BaseLDL
from skldl.exceptions import DataError, Message, Parameter, StudyError, UnknownNameError
from skldl.names import find_candidate
from skldl.selection import BASELINE, Candidate


def _refined(candidate: Candidate) -> Candidate:
    """Also search the penalty of maximum entropy models between the values of the grid."""
    return replace(candidate, refine="alpha") if candidate.path == "alpha" else candidate


FOREST_CELLS = 5_000_000
"""Maximum number of cells for the forest in the quick choice, which would take minutes; chosen by hand."""
AUTO = (BASELINE, *(_refined(find_candidate(word)) for word in ("SA-BFGS", "AA-kNN", "Forest")))
"""The candidates of ``--model auto`` with the preset fast, and the default of ``skldl evaluate``.

In a tie the first of them is chosen, which is simpler. A linear model, neighbours and trees are different kinds of
models, and all of them are fast.
"""


def candidates_for(model: str, settings: Mapping[str, Any] | None = None) -> list[Candidate]:
    """The candidates for a model: several for "auto", else the named one with its hyper-parameters.

    Examples
    --------
    >>> [candidate.name for candidate in candidates_for("auto")]
    ['Mean', 'SA-BFGS', 'AA-kNN', 'Forest']
    """
    if is_auto(model, settings):
        return list(AUTO)
    return [with_settings(_refined(find_candidate(model)), settings or {})]


def is_auto(model: str, settings: Mapping[str, Any] | None = None) -> bool:
    """Whether the model is chosen automatically; settings are then an error."""
    if model.casefold() != "auto":
        return False
    if settings:
        raise DataError(
            Parameter("settings", dict(settings)),
            ": parameters belong to a model. Name it with ",
            Parameter("model"),
            ".",
        )
    return True


def quick_candidates(n_rows: int, n_features: int) -> tuple[list[Candidate], list[str]]:
    """The candidates of the quick choice that are fast on a table of this size, and notes on the others.

    Examples
    --------
    >>> [candidate.name for candidate in quick_candidates(1_000_000, 50)[0]]
    ['Mean', 'SA-BFGS', 'AA-kNN']
    """
    if n_rows * n_features <= FOREST_CELLS:
        return list(AUTO), []
    note = Message(
        f"Forest was not tried: it would take minutes on {n_rows:,} rows of {n_features} columns. ",
        Parameter("model", "forest"),
        " fits it, and ",
        Parameter("preset", "best"),
        " with a budget all kinds of models.",
    )
    return [candidate for candidate in AUTO if candidate.name != "Forest"], [note]


def with_settings(candidate: Candidate, settings: Mapping[str, Any]) -> Candidate:
    """Set hyper-parameters of a candidate, which are then not searched.

    ``min_samples_leaf`` is short for ``regressor__min_samples_leaf``.

    Examples
    --------
    >>> from skldl.names import find_candidate
    >>> with_settings(find_candidate("aa-knn"), {"n_neighbors": 7}).make()
    AAKNN(n_neighbors=7)
    """
    model = _built(candidate)
    if not settings:
        return candidate
    known = list(model.get_params())
    full = {_full_name(candidate, name, known): value for name, value in settings.items()}
    made = candidate.make(full)
    grid = {name: tried for name, tried in candidate.grid.items() if name not in full}
    path, refine = (name if name in grid else "" for name in (candidate.path, candidate.refine))
    return Candidate(candidate.name, made, grid=grid, path=path, refine=refine)


def _full_name(candidate: Candidate, name: str, known: list[str]) -> str:
    """Full name of a parameter that is given by its full name or, if that is unique, by its last part."""
    meant = [name] if name in known else [full for full in known if full.rpartition("__")[2] == name]
    if len(meant) == 1:
        return meant[0]
    short = list(dict.fromkeys(full.rpartition("__")[2] for full in known))
    trouble = f"several parameters {name!r}: {', '.join(meant)}" if meant else f"no parameter {name!r}"
    raise UnknownNameError(f"{candidate.name} has {trouble}. It has {', '.join(short)}.")


def _built(candidate: Candidate) -> Any:
    """The estimator of a candidate, which must be a label distribution learner."""
    model = candidate.make()
    if not isinstance(model, BaseLDL):
        raise StudyError(
            f"{candidate.name} is not a label distribution learner. Derive it from skldl.BaseLDL; in Python, "
            "AARegressor and PTClassifier wrap any regressor or classifier."
        )
    return model


def limited_to(candidate: Candidate, n_train: int) -> Candidate:
    """Remove numbers of neighbours from the grid that are larger than the number of training rows."""
    values = candidate.grid.get("n_neighbors")
    if values is None or max(values) <= n_train:
        return candidate
    possible = tuple(value for value in values if value <= n_train) or (max(1, n_train),)
    return replace(candidate, grid={**candidate.grid, "n_neighbors": possible})
