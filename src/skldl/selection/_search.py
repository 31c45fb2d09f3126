"""The choice among the settings of a contender, sharing work along its path."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from skldl.exceptions import StudyError
from skldl.experiments.problem import Problem
from skldl.metrics import MEASURES
from skldl.selection._candidate import Contender

IntArray = npt.NDArray[np.intp]


def rows_of(table: Any, rows: IntArray) -> Any:
    """Take rows of an array, a sparse matrix or a DataFrame."""
    return None if table is None else _safe_indexing(table, rows)


def fit(model: Any, problem: Problem, rows: IntArray) -> Any:
    """Fit a model on some rows; weights are given only where there are any."""
    weight = rows_of(problem.sample_weight, rows)
    extra = {} if weight is None else _weight_argument(model, weight)
    return model.fit(rows_of(problem.X, rows), problem.D[rows], **extra)


def _weight_argument(model: Any, weight: Any) -> dict[str, Any]:
    """The keyword by which an estimator, or the last step of a pipeline, takes weights."""
    steps = getattr(model, "steps", None)
    return {f"{steps[-1][0]}__sample_weight" if steps else "sample_weight": weight}


def validate_settings(
    contender: Contender, problem: Problem, fit_rows: IntArray, validation_rows: IntArray, criterion: str, seed: int
) -> tuple[list[float], list[str]]:
    """Compute the criterion of every setting on one pair of rows.

    Parameters
    ----------
    contender : Contender
        The contender.
    problem : Problem
        The data.
    fit_rows, validation_rows : ndarray of int
        Rows to fit on and to validate on.
    criterion : str
        Name of the measure.
    seed : int
        Seed of estimators that draw random numbers.

    Returns
    -------
    values : list of float
        The criterion of each setting, in the order of ``contender.settings``; NaN where the setting failed.
    errors : list of str
        What went wrong with settings that failed.
    """
    measure = MEASURES[criterion]
    truth = problem.D[validation_rows]
    weight = rows_of(problem.sample_weight, validation_rows)
    values: list[float] = []
    errors: list[str] = []
    for settings in _along_path(contender):
        done: list[float] = []
        if contender.path:  # a path that breaks says little about its single values: these are then tried alone
            with suppress(Exception):
                for predicted in _predict_along_path(contender, settings, problem, fit_rows, validation_rows, seed):
                    done.append(measure(truth, predicted, weight))
        for setting in settings[len(done) :]:
            try:
                model = fit(contender.make(setting, seed), problem, fit_rows)
                done.append(measure(truth, model.predict(rows_of(problem.X, validation_rows)), weight))
            except Exception as error:
                done.append(math.nan)
                errors.append(f"{setting}: {type(error).__name__}: {error}")
        values += done
    return values, errors


def _along_path(contender: Contender) -> Iterator[Sequence[dict[str, Any]]]:
    """The settings in pieces that differ only in the hyper-parameter of the path."""
    length = len(contender.grid[contender.path]) if contender.path else 1
    for start in range(0, len(contender.settings), length):
        yield contender.settings[start : start + length]


def _predict_along_path(
    contender: Contender,
    settings: Sequence[dict[str, Any]],
    problem: Problem,
    fit_rows: IntArray,
    validation_rows: IntArray,
    seed: int,
) -> Iterator[Any]:
    """Predictions for each value of the path; none if the estimator is a stranger that cannot share work."""
    model = contender.make(settings[0], seed)
    if hasattr(model, "predict_path"):
        yield from model.predict_path(
            rows_of(problem.X, fit_rows),
            problem.D[fit_rows],
            rows_of(problem.X, validation_rows),
            param=contender.path,
            values=[setting[contender.path] for setting in settings],
            sample_weight=rows_of(problem.sample_weight, fit_rows),
        )


def choose(contender: Contender, trials: Sequence[Sequence[float]], errors: Sequence[str], criterion: str) -> int:
    """Choose the setting whose criterion is best on average; in a tie, the first.

    Parameters
    ----------
    contender : Contender
        The contender.
    trials : sequence of sequences of float
        For each trial, the criterion of each setting.
    errors : sequence of str
        What went wrong in the trials.
    criterion : str
        Name of the measure.

    Returns
    -------
    int
        Place of the setting in ``contender.settings``. A setting that failed in any trial is out.
    """
    means = np.mean(np.asarray(trials, dtype=np.float64), axis=0)
    if np.isnan(means).all():
        raise StudyError(f"No setting of {contender.name} could be fitted. First: {next(iter(errors), 'not a number')}")
    return int(np.nanargmax(means) if MEASURES[criterion].higher_is_better else np.nanargmin(means))
