"""`run_study`: lay out the tasks, run those that no record holds, and gather the results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config

from skldl._whole_files import whole_file
from skldl.exceptions import DatasetNotFoundError, RecordsError, StudyError
from skldl.experiments.problem import Problem, load_problems
from skldl.experiments.results import StudyResults
from skldl.experiments.store import FORMAT, FileStore, MemoryStore, Record
from skldl.experiments.study import Study
from skldl.experiments.study_file import dump_study
from skldl.experiments.tasks import Task, kept_rows, pack, run_task, versions
from skldl.selection._candidate import Contender
from skldl.selection._protocols import rounds_of, shares_choice
from skldl.selection._search import choose

KEEP = ("none", "sample", "all")


@dataclass(frozen=True)
class Progress:
    """What the caller of `run_study` is told after each task, and once before the first.

    Attributes
    ----------
    done, total : int
        Number of tasks that have a record, and of all tasks of the study.
    record : dict or None
        The record that was just written.
    left : tuple of Task
        The tasks that have no record yet, in the order in which they start.
    """

    done: int
    total: int
    record: Record | None
    left: tuple[Task, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """The tasks of a study.

    Attributes
    ----------
    study : Study
        The study, with only the datasets that were found.
    problems : dict
        The data, by name.
    contenders : dict
        The contenders, by name.
    waves : tuple of tuples of Task
        Tasks of one wave do not depend on each other; the second wave needs the choices of the first.
    missing : tuple of str
        Names of the datasets that were not found.
    """

    study: Study
    problems: Mapping[str, Problem]
    contenders: Mapping[str, Contender]
    waves: tuple[tuple[Task, ...], tuple[Task, ...]]
    missing: tuple[str, ...]

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return sum(len(wave) for wave in self.waves)

    def n_fits(self, task: Task) -> int:
        """Number of models that a task fits; values along a path count one each, though they share work."""
        contender, problem = self.contenders[task.contender], self.problems[task.dataset]
        settings = len(contender.settings)
        if task.kind == "selection":
            return settings
        if shares_choice(problem, self.study) or not contender.needs_selection:
            return 1
        return 1 + settings * len(rounds_of(problem, self.study, task.repeat)[task.fold].tuning)


def plan_study(study: Study, *, data_home: Any = None) -> Plan:
    """Load the data of a study and lay out its tasks.

    Parameters
    ----------
    study : Study
        The study.
    data_home : path, default=None
        Folder with the data files.

    Returns
    -------
    Plan
        Data and tasks.
    """
    problems, missing = load_problems(study.datasets, data_home=data_home)
    if not problems:
        raise DatasetNotFoundError(
            f"None of the datasets of the study was found: {', '.join(missing)}. Say where they are with --data."
        )
    for contender in study.contenders:
        contender.make(contender.settings[0])  # a misspelt path or parameter is told now, not by each of its tasks
    found = replace(study, datasets=tuple(problems))
    selections, evaluations = [], []
    for problem in problems:
        for repeat in range(study.repeats):
            n_rounds = len(rounds_of(problem, found, repeat))
            for contender in study.contenders:
                key = (problem.name, contender.name, repeat)
                evaluations += [Task("evaluation", *key, fold) for fold in range(n_rounds)]
                if shares_choice(problem, found) and contender.needs_selection:
                    selections += [Task("selection", *key, fold) for fold in range(n_rounds)]
    return Plan(
        found,
        {problem.name: problem for problem in problems},
        {contender.name: contender for contender in study.contenders},
        (_folds_first(selections), _folds_first(evaluations)),
        tuple(missing),
    )


def _folds_first(tasks: list[Task]) -> tuple[Task, ...]:
    """The first fold of everything, then the second: soon every kind of task has run, and the estimate is good."""
    return tuple(sorted(tasks, key=lambda task: (task.repeat, task.fold)))


def run_study(
    study: Study | Plan,
    *,
    data_home: Any = None,
    out: str | Path | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    n_jobs: int = 1,
    scheduler: str = "",
    keep_predictions: str = "sample",
    on_progress: Callable[[Progress], None] | None = None,
) -> StudyResults:
    """Run a study, or what is left of it.

    Parameters
    ----------
    study : Study or Plan
        The study, or what `plan_study` made of it.
    data_home : path, default=None
        Folder with the data files.
    out : path, default=None
        Folder for the records; None keeps them in memory.
    resume : bool, default=False
        Continue the records in ``out``; nothing that is recorded runs again.
    retry_failed : bool, default=False
        Run tasks again whose record says that they failed.
    n_jobs : int, default=1
        Number of processes, -1 for all processors. The numbers do not depend on it.
    scheduler : str, default=""
        Address of the scheduler of a Dask cluster, such as ``tcp://host:8786``, which runs the tasks instead.
    keep_predictions : {"sample", "none", "all"}, default="sample"
        Which predictions the records keep: of a few rows of each dataset, of none, or of all.
    on_progress : callable, default=None
        Called with a `Progress` before the first task and after each.

    Returns
    -------
    StudyResults
        Tables, statistics and records.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.experiments import Contender, Problem, Study, run_study
    >>> problem = Problem("tiny", np.eye(6), [[0.5, 0.5], [0.2, 0.8]] * 3)
    >>> results = run_study(Study([problem], [Contender("Mean", "skldl:MeanDistribution")], folds=3))
    >>> results.means("chebyshev").shape
    (1, 1)
    """
    if keep_predictions not in KEEP:
        raise StudyError(f"keep_predictions = {keep_predictions!r} is not one of {', '.join(KEEP)}.")
    plan = study if isinstance(study, Plan) else plan_study(study, data_home=data_home)
    store = MemoryStore() if out is None else FileStore(Path(out), resume=resume)
    try:
        _open(store, plan, keep_predictions, out)
        recorded = {Task.of(r): r for r in store.records if r["kind"] in ("selection", "evaluation")}
        if retry_failed:
            recorded = {task: record for task, record in recorded.items() if record["status"] == "ok"}
        left = {task: None for wave in plan.waves for task in wave if task not in recorded}  # quick to take out of
        _tell(on_progress, plan, None, left)
        for wave in plan.waves:
            calls = _calls(plan, [task for task in wave if task in left], recorded, keep_predictions)
            for record in _results(calls, n_jobs, scheduler):
                store.append(record)
                task = Task.of(record)
                recorded[task] = record
                del left[task]
                _tell(on_progress, plan, record, left)
        return StudyResults(store.records, notices=store.notices, missing=plan.missing)
    finally:
        store.close()


def _tell(
    on_progress: Callable[[Progress], None] | None, plan: Plan, record: Record | None, left: Mapping[Task, None]
) -> None:
    if on_progress is not None:
        on_progress(Progress(plan.n_tasks - len(left), plan.n_tasks, record, tuple(left)))


def _calls(plan: Plan, tasks: Sequence[Task], recorded: Mapping[Task, Record], keep: str) -> Iterator[Any]:
    choices: dict[tuple[str, str, int], int | Record] = {}
    for task in tasks:
        problem, contender = plan.problems[task.dataset], plan.contenders[task.contender]
        chosen: int | None = None
        if task.kind == "evaluation" and shares_choice(problem, plan.study) and contender.needs_selection:
            key = (task.dataset, task.contender, task.repeat)
            if key not in choices:
                choices[key] = _shared_choice(plan, contender, key, recorded)
            found = choices[key]
            if not isinstance(found, int):
                yield delayed(_not_run)(task, problem.fingerprint, found["error"])
                continue
            chosen = found
        yield delayed(run_task)(task, problem, contender, plan.study, chosen, keep)


def _shared_choice(
    plan: Plan, contender: Contender, key: tuple[str, str, int], recorded: Mapping[Task, Record]
) -> int | Record:
    """The setting chosen over all rotations; or the record that says why there is none."""
    trials, errors = [], []
    for task in plan.waves[0]:
        if (task.dataset, task.contender, task.repeat) == key:
            record = recorded[task]
            if record["status"] != "ok":
                return {"error": f"the selection failed: {record['error']}"}
            trials.append([float(value) for value in record["values"]])
            errors += record["errors"]
    try:
        return choose(contender, trials, errors, plan.study.criterion)
    except StudyError as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _not_run(task: Task, fingerprint: str, error: str) -> Record:
    record: Record = {
        "kind": task.kind,
        "dataset": task.dataset,
        "fingerprint": fingerprint,
        "contender": task.contender,
    }
    record |= {"repeat": task.repeat, "fold": task.fold, "status": "failed", "error": error, "seconds": 0.0}
    return record | {"warnings": [], "versions": versions()}


def _results(calls: Iterator[Any], n_jobs: int, scheduler: str) -> Iterator[Record]:
    """Records in the order in which they are done. Data travel with each task, so that a lost worker loses none."""
    with _cluster(scheduler):
        parallel = Parallel(
            n_jobs=-1 if scheduler else n_jobs, batch_size=1, max_nbytes=None, return_as="generator_unordered"
        )
        try:
            yield from parallel(calls)
        except BrokenProcessPool as error:
            raise RuntimeError(
                "A worker process died, perhaps because memory ran out. The records so far are whole: continue with "
                "--resume, and fewer --jobs."
            ) from error


@contextmanager
def _cluster(scheduler: str) -> Iterator[None]:
    if not scheduler:
        with nullcontext():
            yield
        return
    from distributed import Client

    try:
        client = Client(scheduler, timeout=30, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyError(
            f"No Dask scheduler answers at {scheduler}: {error}. Start one with: dask scheduler"
        ) from error
    with client, parallel_config(backend="dask", client=client, wait_for_workers_timeout=60):
        yield


def _open(store: MemoryStore, plan: Plan, keep: str, out: str | Path | None) -> None:
    """Write the study, the header and what the data look like, or compare them with what is there."""
    now = {
        "kind": "header",
        "format": FORMAT,
        "skldl": versions()["skldl"],
        "fingerprint": plan.study.fingerprint(),
        "study": plan.study.to_dict(),
        "keep_predictions": keep,
        "datasets": {problem.name: problem.fingerprint for problem in plan.problems.values()},
        "missing": list(plan.missing),
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if store.records:
        _compare_headers(store, now)
    if out is not None:  # before the header: whoever finds records finds the study that they belong to
        with whole_file(Path(out) / "study.toml") as stream:
            stream.write(dump_study(plan.study).encode())
    if not store.records:
        store.append(now)
    described = {record["name"] for record in store.records if record["kind"] == "dataset"}
    for problem in plan.problems.values():
        if problem.name not in described:
            store.append({"kind": "dataset", **problem.describe(), **_truth(problem, plan.study, keep)})


def _truth(problem: Problem, study: Study, keep: str) -> dict[str, Any]:
    rows = kept_rows(problem, study, keep)
    truth = (problem.D_test if problem.has_test_set else problem.D)[rows]
    return {"truth": {"rows": rows.tolist(), **pack(truth)}} if len(rows) else {}


def _compare_headers(store: MemoryStore, now: Record) -> None:
    header = store.records[0]
    if header["skldl"] != now["skldl"]:
        raise RecordsError(
            f"These records were written by scikit-ldl {header['skldl']}, this is {now['skldl']}; numbers of two "
            "versions must not mix. Continue with that version, or start in another folder."
        )
    if header["fingerprint"] != now["fingerprint"]:
        raise RecordsError(
            f"These records belong to another study: {_difference(header['study'], now['study'])}. "
            "Repeat the options of the first run, or start in another folder."
        )
    for name, fingerprint in header["datasets"].items():
        if now["datasets"][name] != fingerprint:
            raise RecordsError(
                f"The data of {name} have changed since these records were written. Start in another folder."
            )
    if header["keep_predictions"] != now["keep_predictions"]:
        raise RecordsError(
            f"These records keep predictions: {header['keep_predictions']}, not {now['keep_predictions']}. "
            f"Use --keep-predictions {header['keep_predictions']}, or start in another folder."
        )
    before, after = header["versions"], now["versions"]
    changed = [f"{name} {before[name]} → {after[name]}" for name in after if before[name] != after[name]]
    if changed:
        store.notices.append(f"Other versions than when the study began: {', '.join(changed)}. Numbers may differ.")


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say in which fields two studies differ, most telling first."""
    told = []
    for key in then:
        if then[key] == now.get(key) or key == "title":
            continue
        if key in ("datasets", "contenders"):
            names = [[entry["name"] for entry in side[key]] for side in (then, now)]
            before, after = (", ".join(some) for some in names)
            told.append(f"{key} were {before}, now {after}" if before != after else f"{key} have other parameters")
        else:
            told.append(f"{key} was {then[key]!r}, now {now.get(key)!r}")
    return "; ".join(told)
