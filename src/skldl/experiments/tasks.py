"""One task: validate the settings of a contender on one rotation, or fit it and test it on one fold."""

import base64
import importlib.metadata
import platform
import time
import traceback
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

import skldl
from skldl._validation import check_distributions
from skldl.experiments.memory import peak_memory
from skldl.experiments.problem import Problem
from skldl.experiments.store import Record
from skldl.experiments.study import Study
from skldl.metrics import evaluate
from skldl.selection._candidate import Contender
from skldl.selection._folds import derive_seed
from skldl.selection._protocols import Round, rounds_of
from skldl.selection._search import choose, fit, rows_of, validate_settings

IntArray = npt.NDArray[np.intp]
SAMPLE_SIZE = 20


@dataclass(frozen=True)
class Task:
    """What is to be done; the key under which its record is found again.

    Attributes
    ----------
    kind : {"selection", "evaluation"}
        Validate all settings of the contender on one rotation, or test the contender on one fold.
    dataset, contender : str
        Names.
    repeat, fold : int
        Which repeat and which round of the protocol, from 0.
    """

    kind: str
    dataset: str
    contender: str
    repeat: int
    fold: int

    @classmethod
    def of(cls, record: Record) -> "Task":
        """Say which task a record belongs to."""
        return cls(record["kind"], record["dataset"], record["contender"], record["repeat"], record["fold"])


def run_task(task: Task, problem: Problem, contender: Contender, study: Study, chosen: int | None, keep: str) -> Record:
    """Run one task. Whatever goes wrong in it becomes part of its record.

    Parameters
    ----------
    task : Task
        What to do.
    problem, contender : Problem, Contender
        With what.
    study : Study
        Protocol, measures and seed.
    chosen : int or None
        Place of the setting that was chosen for all rounds; None if this round chooses by itself.
    keep : {"none", "sample", "all"}
        Which predictions the record keeps.

    Returns
    -------
    dict
        The record.
    """
    seed = derive_seed(study.seed, task.dataset, task.contender, task.repeat, task.fold)
    record: Record = {
        "kind": task.kind,
        "dataset": task.dataset,
        "fingerprint": problem.fingerprint,
        "contender": task.contender,
        "repeat": task.repeat,
        "fold": task.fold,
        "status": "ok",
        "seed": seed,
    }
    work = _select if task.kind == "selection" else _evaluate
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(limits=1), peak_memory() as memory:
        warnings.simplefilter("always")
        try:
            round_ = rounds_of(problem, study, task.repeat)[task.fold]
            record |= work(problem, contender, study, round_, seed, chosen, keep)
        except Exception as error:
            record |= {
                "status": "failed",
                "error": f"{type(error).__name__}: {error}",
                "traceback": "".join(traceback.format_exception(error)),
            }
    record["seconds"] = time.perf_counter() - started
    record["peak_memory_mib"] = memory["mib"]
    record["warnings"] = list(dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in caught))
    record["versions"] = versions()
    return record


def _select(
    problem: Problem, contender: Contender, study: Study, round_: Round, seed: int, chosen: int | None, keep: str
) -> Record:
    ((fit_rows, validation_rows),) = round_.tuning
    values, errors = validate_settings(contender, problem, fit_rows, validation_rows, study.criterion, seed)
    return {"criterion": study.criterion, "values": values, "errors": errors}


def _evaluate(
    problem: Problem, contender: Contender, study: Study, round_: Round, seed: int, chosen: int | None, keep: str
) -> Record:
    told: Record = {}
    started = time.perf_counter()
    if chosen is None:
        chosen = 0
        if contender.needs_selection:
            trials = [validate_settings(contender, problem, *pair, study.criterion, seed) for pair in round_.tuning]
            values = [one for one, _ in trials]
            errors = [error for _, some in trials for error in some]
            chosen = choose(contender, values, errors, study.criterion)
            told["selection"] = {"criterion": study.criterion, "values": np.mean(values, axis=0).tolist()}
            told["selection"]["errors"] = errors
    told["selection_seconds"] = time.perf_counter() - started
    told["params"] = dict(contender.settings[chosen])

    started = time.perf_counter()
    model = fit(contender.make(contender.settings[chosen], seed), problem, round_.train)
    told["fit_seconds"] = time.perf_counter() - started
    X_new, truth, weight = _test_set(problem, round_)
    started = time.perf_counter()
    predicted = check_distributions(model.predict(X_new), name=f"The prediction of {contender.name}")
    told["predict_seconds"] = time.perf_counter() - started
    told["n_train"], told["n_test"] = len(round_.train), len(truth)
    told["n_iter"] = _iterations(model)
    told["measures"] = evaluate(truth, predicted, weight, measures=study.measures)
    rows = kept_rows(problem, study, keep)
    mine = rows if round_.test is None else np.intersect1d(rows, round_.test)
    if len(mine):
        where = mine if round_.test is None else np.searchsorted(round_.test, mine)
        told["predictions"] = {"rows": mine.tolist(), **pack(predicted[where])}
    return told


def _test_set(problem: Problem, round_: Round) -> tuple[Any, npt.NDArray[np.floating], Any]:
    if round_.test is None:
        return problem.X_test, problem.D_test, None
    return rows_of(problem.X, round_.test), problem.D[round_.test], rows_of(problem.sample_weight, round_.test)


def kept_rows(problem: Problem, study: Study, keep: str) -> IntArray:
    """Rows of the test set whose predictions are kept: none, a sample that all contenders share, or all.

    Parameters
    ----------
    problem : Problem
        The data.
    study : Study
        The study; its seed draws the sample.
    keep : {"none", "sample", "all"}
        Which rows.

    Returns
    -------
    ndarray of int
        Row numbers in the dataset, or in its fixed test set, ascending.
    """
    n_rows = len(problem.D_test) if problem.has_test_set else problem.n_samples
    if keep == "all":
        return np.arange(n_rows)
    size = min(SAMPLE_SIZE, n_rows) if keep == "sample" else 0
    generator = np.random.default_rng(derive_seed(study.seed, "sample", problem.name))
    return np.sort(generator.choice(n_rows, size=size, replace=False)).astype(np.intp)


def pack(rows: npt.NDArray[np.floating]) -> dict[str, Any]:
    """Put an array of distributions into text: single precision, base64.

    Examples
    --------
    >>> import numpy as np
    >>> unpack(pack(np.array([[0.25, 0.75]])))
    array([[0.25, 0.75]], dtype=float32)
    """
    data = np.ascontiguousarray(rows, dtype="<f4")
    return {"shape": list(data.shape), "float32": base64.b64encode(data.tobytes()).decode()}


def unpack(packed: dict[str, Any]) -> npt.NDArray[np.float32]:
    """Take an array out of the text again."""
    return np.frombuffer(base64.b64decode(packed["float32"]), dtype="<f4").reshape(packed["shape"])


def _iterations(model: Any) -> int | None:
    steps = getattr(model, "steps", None)
    count = getattr(steps[-1][1] if steps else model, "n_iter_", None)
    return None if count is None else int(np.max(count))


@cache
def versions() -> dict[str, str]:
    """Versions of what can change a number."""
    packages = ("numpy", "scipy", "scikit-learn")
    found = {name: importlib.metadata.version(name) for name in packages}
    return {"skldl": skldl.__version__, "python": platform.python_version(), **found}
