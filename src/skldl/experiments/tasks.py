"""One task: validate the settings of a candidate on one rotation, or fit it and test it on one fold."""

import base64
import importlib.metadata
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import skldl
from skldl.data._dataset import Dataset, rows_of
from skldl.experiments.store import Record
from skldl.metrics import evaluate
from skldl.selection import Candidate, Layout, Round, derive_seed, rounds_of, search
from skldl.selection._fitting import fit_candidate
from skldl.selection._search import is_machine_fault
from skldl.selection._trials import Trials
from skldl.utils import processes
from skldl.utils.missing import comparable_rows, has_gaps
from skldl.utils.processes import Outcome
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_distributions

try:
    import resource
except ImportError:  # not available on Windows without a further package
    resource = None  # type: ignore[assignment]  # a module elsewhere

SAMPLE_SIZE = 20  # rows of each dataset whose predictions are kept: enough for the examples of a report
MODEL, MACHINE, TIMEOUT = "model", "machine", "timeout"  # whose fault a failure is


@dataclass(frozen=True)
class Rules:
    """Settings that all tasks of a study share; ``keep`` is which predictions the records keep, see `run_study`."""

    layout: Layout
    measures: tuple[str, ...]
    criterion: str
    keep: str


@dataclass(frozen=True)
class Task:
    """A unit of work, and the key of its record; repeat and fold, a round of the protocol, count from 0.

    A task of kind "selection" validates all settings of the candidate on one rotation, an "evaluation" tests it on one
    fold.
    """

    kind: str
    dataset: str
    candidate: str
    repeat: int
    fold: int

    @classmethod
    def of(cls, record: Record) -> "Task":
        """Return the task of a record."""
        return cls(record["kind"], record["dataset"], record["candidate"], record["repeat"], record["fold"])

    def key(self, fingerprint: str) -> Record:
        """The entries that identify the task in its record."""
        names = {"kind": self.kind, "dataset": self.dataset, "fingerprint": fingerprint, "candidate": self.candidate}
        return names | {"repeat": self.repeat, "fold": self.fold}


@dataclass(frozen=True, eq=False)
class Call:
    """A task with everything that it needs, to be run in any process.

    ``chosen`` is the position of the setting that was chosen for all rounds; None if this round selects its own.
    """

    task: Task
    dataset: Dataset
    candidate: Candidate
    rules: Rules
    chosen: int | None = None
    encoder: Any = None

    def not_run(self, error: str, fault: str = MODEL) -> Record:
        """The record of a task that could not be run, or was ended."""
        record = self.task.key(self.dataset.fingerprint) | {"status": "failed", "error": error, "fault": fault}
        return record | {"seconds": 0.0, "warnings": [], "versions": versions()}

    def run(self) -> Record:
        """Run the task. Errors become part of its record, with the ``fault``: the model, or the machine (memory, disk).

        The latter is no property of the candidate, and the task can be repeated.
        """
        task, seed = self.task, self.rules.layout.random_state
        seed = derive_seed(seed, task.dataset, task.candidate, task.repeat, task.fold)
        record = task.key(self.dataset.fingerprint) | {"status": "ok", "seed": seed}
        work = _select if task.kind == "selection" else _evaluate
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught, threadpool_limits(limits=1), peak_memory() as memory:
            warnings.simplefilter("always")  # each record has its own, also those that an earlier task has shown
            try:
                round_ = rounds_of(self.dataset, self.rules.layout, task.repeat)[task.fold]
                record |= work(self, round_, seed)
            except (Exception, SystemExit) as error:
                record |= {
                    "status": "failed",
                    "error": describe_error(error),
                    "fault": MACHINE if is_machine_fault(error) else MODEL,
                    "traceback": "".join(traceback.format_exception(error)),
                }
        record["seconds"] = time.perf_counter() - started
        record["peak_memory_mib"] = memory["mib"]
        record["warnings"] = list(dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in caught))
        record["versions"] = versions()
        return record


def record_of(outcome: Outcome) -> Record:
    """The record of a task that was sent to another process."""
    if outcome.error is not None:  # `Call.run` raises none: its record could not be sent
        return outcome.task.not_run(describe_error(outcome.error), MACHINE)
    if outcome.lost:
        return outcome.task.not_run(outcome.reason, TIMEOUT if outcome.lost == processes.TIMEOUT else MACHINE)
    return outcome.result


def describe_error(error: BaseException) -> str:
    """Type and message of an error, for a record."""
    if isinstance(error, SystemExit):
        return f"SystemExit: the estimator called exit({error.code!r})"
    return f"{type(error).__name__}: {error}"


def _search(call: Call, pairs: Any, seed: int) -> Trials:
    options = {"criterion": call.rules.criterion, "random_state": seed, "encoder": call.encoder}
    return search(call.dataset, [call.candidate], pairs, **options).trials[0]


def _select(call: Call, round_: Round, seed: int) -> Record:
    trials = _search(call, round_.tuning, seed)
    return {"criterion": call.rules.criterion, "values": trials.values[0].tolist(), "errors": trials.errors}


def _evaluate(call: Call, round_: Round, seed: int) -> Record:
    dataset, candidate, rules = call.dataset, call.candidate, call.rules
    outcome: Record = {}
    started = time.perf_counter()
    setting: Any = candidate.settings[call.chosen or 0]
    if call.chosen is None and candidate.needs_selection:
        trials = _search(call, round_.tuning, seed)
        setting = trials.settings[trials.best()]
        means = trials.means.tolist()
        outcome["selection"] = {"criterion": rules.criterion, "values": means[: candidate.n_settings]}
        outcome["selection"]["errors"] = trials.errors
        if candidate.refine:
            more = zip(trials.settings[candidate.n_settings :], means[candidate.n_settings :], strict=True)
            outcome["selection"]["refined"] = [{"params": dict(params), "value": value} for params, value in more]
    outcome["selection_seconds"] = time.perf_counter() - started
    outcome["params"] = dict(setting)

    started = time.perf_counter()
    model = fit_candidate(candidate, setting, dataset, round_.train, random_state=seed, encoder=call.encoder)
    outcome["fit_seconds"] = time.perf_counter() - started
    X_new, truth, weight = _test_set(dataset, round_)
    started = time.perf_counter()
    predicted = check_distributions(model.predict(X_new), name=f"The prediction of {candidate.name}")
    outcome["predict_seconds"] = time.perf_counter() - started
    outcome["n_train"], outcome["n_test"] = len(round_.train), len(truth)
    outcome["n_iter"] = _iterations(model)
    outcome["measures"] = evaluate(*comparable_rows(truth, predicted, dataset.missing), weight, measures=rules.measures)
    rows = kept_rows(dataset, rules)
    mine = rows if round_.test is None else np.intersect1d(rows, round_.test)
    if len(mine):
        where = mine if round_.test is None else np.searchsorted(round_.test, mine)
        outcome["predictions"] = {"rows": mine.tolist(), **pack(predicted[where])}
    return outcome


def _test_set(dataset: Dataset, round_: Round) -> tuple[Any, FloatArray, Any]:
    if round_.test is None:
        return dataset.X_test, dataset.D_test, None
    return rows_of(dataset.X, round_.test), dataset.D[round_.test], rows_of(dataset.sample_weight, round_.test)


def kept_rows(dataset: Dataset, rules: Rules) -> IntArray:
    """Rows of the test set whose predictions are kept: none, a sample that all candidates share, or all."""
    n_rows = len(dataset.D_test) if dataset.has_test_set else dataset.n_samples
    if has_gaps(dataset.D):  # the truth of such rows is not known
        return np.empty(0, dtype=np.intp)
    if rules.keep == "all":
        return np.arange(n_rows)
    size = min(SAMPLE_SIZE, n_rows) if rules.keep != "none" else 0
    generator = np.random.default_rng(derive_seed(rules.layout.random_state, "sample", dataset.name))
    return np.sort(generator.choice(n_rows, size=size, replace=False)).astype(np.intp)


def pack(rows: FloatArray) -> dict[str, Any]:
    """Encode an array of distributions as text: single precision, base64.

    Examples
    --------
    >>> import numpy as np
    >>> unpack(pack(np.array([[0.25, 0.75]])))
    array([[0.25, 0.75]], dtype=float32)
    """
    data = np.ascontiguousarray(rows, dtype="<f4")
    return {"shape": list(data.shape), "float32": base64.b64encode(data.tobytes()).decode()}


def unpack(packed: dict[str, Any]) -> FloatArray:
    """Decode an array from text."""
    return np.frombuffer(base64.b64decode(packed["float32"]), dtype="<f4").reshape(packed["shape"])


def _iterations(model: Any) -> int | None:
    steps = getattr(model, "steps", None)
    count = getattr(steps[-1][1] if steps else model, "n_iter_", None)
    return None if count is None else int(np.max(count))


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that can change a number."""
    packages = ("numpy", "scipy", "scikit-learn")
    found = {name: importlib.metadata.version(name) for name in packages}
    return {"skldl": skldl.__version__, "python": platform.python_version(), **found}


@contextmanager
def peak_memory() -> Iterator[dict[str, float | None]]:
    """Measure the maximum resident memory of the process while the block runs, in MiB.

    Linux lets a process reset its maximum. On other systems it is that since the process began, and on Windows there is
    none.
    """
    found: dict[str, float | None] = {"mib": None}
    resettable = _reset_peak()
    try:
        yield found
    finally:
        found["mib"] = _peak() if resettable else _peak_since_start()


def _reset_peak() -> bool:
    try:
        with open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")  # resets VmHWM, see proc(5)
    except OSError:
        return False
    return True


def _peak() -> float:
    with open("/proc/self/status") as stream:
        line = next(line for line in stream if line.startswith("VmHWM:"))
    return round(int(line.split()[1]) / 1024, 1)


def _peak_since_start() -> float | None:
    if resource is None:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10  # macOS counts bytes, other systems KiB
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
