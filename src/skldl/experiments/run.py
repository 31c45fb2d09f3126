"""`run_study`: plan the tasks, run those without a record, and collect the results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from joblib import cpu_count

from skldl.data._dataset import Dataset
from skldl.exceptions import DatasetNotFoundError, Parameter, StudyError
from skldl.experiments.cluster import run_on_cluster
from skldl.experiments.header import open_store
from skldl.experiments.loading import encoder_of, load_datasets
from skldl.experiments.results import StudyResults
from skldl.experiments.store import FileStore, MemoryStore, Record
from skldl.experiments.study import Study
from skldl.experiments.tasks import MACHINE, MODEL, Call, Rules, Task, record_of
from skldl.metrics import MEASURES
from skldl.selection import Candidate, rounds_of, shares_choice
from skldl.selection._trials import choose
from skldl.utils.processes import Pool

KEEP = ("none", "sample", "predictions", "all")


@dataclass(frozen=True)
class Progress:
    """Progress of a study, which `run_study` reports after each task, and once before the first.

    Attributes
    ----------
    done, total : int
        Number of tasks that have a record, and of all tasks of the study.
    record : dict or None
        The record that was just written.
    left : tuple of Task
        The tasks that have no record yet, in the order in which they start.

    Examples
    --------
    >>> from skldl.data import Dataset
    >>> from skldl.experiments import Candidate, Study, run_study
    >>> from skldl.testing import make_distributions
    >>> dataset = Dataset("toy", *make_distributions(20))
    >>> seen = []
    >>> study = Study([dataset], [Candidate("Mean", "skldl:MeanDistribution")], folds=2)
    >>> _ = run_study(study, on_progress=seen.append)
    >>> [(progress.done, progress.total) for progress in seen]
    [(0, 2), (1, 2), (2, 2)]
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
    datasets : dict
        The data, by name.
    encoders : dict
        By name, the encoder that precedes every candidate, or None.
    candidates : dict
        The candidates, by name.
    waves : tuple of tuples of Task
        Tasks of one wave do not depend on each other; the second wave needs the choices of the first.
    missing : tuple of str
        Names of the datasets that were not found.

    Examples
    --------
    >>> from skldl.data import Dataset
    >>> from skldl.experiments import Candidate, Study, plan_study
    >>> from skldl.testing import make_distributions
    >>> dataset = Dataset("toy", *make_distributions(20))
    >>> plan = plan_study(Study([dataset], [Candidate("Mean", "skldl:MeanDistribution")], folds=2))
    >>> [len(wave) for wave in plan.waves]
    [0, 2]
    """

    study: Study
    datasets: Mapping[str, Dataset]
    encoders: Mapping[str, Any]
    candidates: Mapping[str, Candidate]
    waves: tuple[tuple[Task, ...], tuple[Task, ...]]
    missing: tuple[str, ...]

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return sum(len(wave) for wave in self.waves)

    def n_fits(self, task: Task) -> int:
        """Number of models that a task fits; values along a path count one each, though they share work.

        Parameters
        ----------
        task : Task
            The task.

        Returns
        -------
        int
            Number of fits.
        """
        candidate, dataset = self.candidates[task.candidate].on(task.dataset), self.datasets[task.dataset]
        settings = candidate.n_settings
        if task.kind == "selection":
            return settings
        if shares_choice(dataset, self.study.protocol) or not candidate.needs_selection:
            return 1
        return 1 + settings * len(rounds_of(dataset, self.study.layout, task.repeat)[task.fold].tuning)

    def rules(self, keep: str) -> Rules:
        """Settings that all tasks share.

        Parameters
        ----------
        keep : str
            Which predictions the records keep, see `run_study`.

        Returns
        -------
        Rules
            Protocol, measures and seeds.
        """
        return Rules(self.study.layout, tuple(self.study.measures), self.study.criterion, keep)


def plan_study(study: Study, *, data_home: Any = None, build: bool = True) -> Plan:
    """Load the data of a study and plan its tasks.

    Parameters
    ----------
    study : Study
        The study.
    data_home : path, default=None
        Folder with the data files.
    build : bool, default=True
        Build each candidate once, so that a misspelt path or parameter is reported now and not by each of its tasks.
        False imports and builds nothing.

    Returns
    -------
    Plan
        Data and tasks.

    Examples
    --------
    >>> from skldl.data import Dataset
    >>> from skldl.experiments import Candidate, Study, plan_study
    >>> from skldl.testing import make_distributions
    >>> dataset = Dataset("toy", *make_distributions(20))
    >>> list(plan_study(Study([dataset], [Candidate("Mean", "skldl:MeanDistribution")], folds=2)).candidates)
    ['Mean']
    """
    for candidate in study.candidates:
        candidate.check_imports()
    specs, missing = load_datasets(study.datasets, data_home=data_home)
    if not specs:
        raise DatasetNotFoundError(
            f"None of the datasets of the study was found: {', '.join(missing)}. Name their folder with ",
            Parameter("data_home"),
            ".",
        )
    if build:
        for candidate in study.candidates:
            candidate.make(candidate.settings[0])
    found = replace(study, datasets=tuple(specs))
    datasets = {spec.name: spec.data for spec in specs if spec.data is not None}
    selections, evaluations = [], []
    for name, dataset in datasets.items():
        for repeat in range(study.repeats):
            n_rounds = len(rounds_of(dataset, found.layout, repeat))
            for candidate in (candidate.on(name) for candidate in study.candidates):
                key = (name, candidate.name, repeat)
                evaluations += [Task("evaluation", *key, fold) for fold in range(n_rounds)]
                if shares_choice(dataset, found.protocol) and candidate.needs_selection:
                    selections += [Task("selection", *key, fold) for fold in range(n_rounds)]
    return Plan(
        found,
        datasets,
        {spec.name: encoder_of(spec) for spec in specs},
        {candidate.name: candidate for candidate in study.candidates},
        (_folds_first(selections), _folds_first(evaluations)),
        tuple(missing),
    )


def _folds_first(tasks: list[Task]) -> tuple[Task, ...]:
    """Sort by repeat and fold, so that every kind of task is timed early, for the estimate of the remaining time."""
    return tuple(sorted(tasks, key=lambda task: (task.repeat, task.fold)))


def run_study(
    study: Study | Plan,
    *,
    data_home: Any = None,
    out: str | Path | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    n_jobs: int = 1,
    scheduler: str | None = None,
    keep_predictions: str = "sample",
    on_progress: Callable[[Progress], None] | None = None,
) -> StudyResults:
    """Run a study, or the rest of it.

    Parameters
    ----------
    study : Study or Plan
        The study, or its plan by `plan_study`.
    data_home : path, default=None
        Folder with the data files.
    out : path, default=None
        Folder for the records; None keeps them in memory.
    resume : bool, default=False
        Continue the records in ``out``; nothing that is recorded runs again.
    retry_failed : bool, default=False
        Run failed tasks again.
    n_jobs : int, default=1
        Number of processes, -1 for one per processor. 1 runs everything in this process, where an estimator that
        crashes takes the study along, unless the study has a ``timeout``. The numbers do not depend on it.
    scheduler : str, default=None
        Address of the scheduler of a Dask cluster, such as ``tcp://host:8786``, which runs the tasks instead.
    keep_predictions : {"sample", "predictions", "none", "all"}, default="sample"
        Which predictions the records keep: of a few rows of each dataset, of none, or of all. The true distributions of
        these rows are kept with them, except with ``"predictions"``: the same few rows, for data that may not be passed
        on.
    on_progress : callable, default=None
        Called with a `Progress` before the first task and after each.

    Returns
    -------
    StudyResults
        Tables, statistics and records.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> from skldl.experiments import Candidate, Study, run_study
    >>> dataset = Dataset("tiny", np.eye(6), [[0.5, 0.5], [0.2, 0.8]] * 3)
    >>> results = run_study(Study([dataset], [Candidate("Mean", "skldl:MeanDistribution")], folds=3))
    >>> results.means("chebyshev").shape
    (1, 1)
    """
    if keep_predictions not in KEEP:
        raise StudyError(Parameter("keep_predictions", keep_predictions), f" is not one of {', '.join(KEEP)}.")
    plan = study if isinstance(study, Plan) else plan_study(study, data_home=data_home)
    timeout = plan.study.timeout
    store = MemoryStore() if out is None else FileStore(Path(out), resume=resume)
    pool = Pool(Call.run, cpu_count() if n_jobs == -1 else n_jobs, timeout)
    try:
        open_store(store, plan.study, plan.datasets, plan.rules(keep_predictions), plan.missing, out)
        recorded = {Task.of(r): r for r in store.records if r["kind"] in ("selection", "evaluation")}
        if retry_failed:
            recorded = {task: record for task, record in recorded.items() if record["status"] == "ok"}
        # the keys of a dict are an ordered set, from which a task is removed in constant time
        left = {task: None for wave in plan.waves for task in wave if task not in recorded}
        _report(on_progress, plan, None, left)
        for wave in plan.waves:
            ready: list[Record] = []
            calls = _calls(plan, [task for task in wave if task in left], recorded, keep_predictions, ready)
            if scheduler is not None:
                records = run_on_cluster(calls, scheduler, timeout)
            elif n_jobs == 1 and timeout is None:
                records = (call.run() for call in calls)
            else:
                records = map(record_of, pool.run(calls))
            for record in chain(records, ready):  # `ready` is filled while `records` is consumed
                store.append(record)
                task = Task.of(record)
                recorded[task] = record
                del left[task]
                _report(on_progress, plan, record, left)
        return StudyResults(store.records, notices=store.notices, missing=plan.missing)
    finally:
        pool.close()
        store.close()


def _report(
    on_progress: Callable[[Progress], None] | None, plan: Plan, record: Record | None, left: Mapping[Task, None]
) -> None:
    if on_progress is not None:
        on_progress(Progress(plan.n_tasks - len(left), plan.n_tasks, record, tuple(left)))


def _calls(
    plan: Plan, tasks: Sequence[Task], recorded: Mapping[Task, Record], keep: str, ready: list[Record]
) -> Iterator[Call]:
    """Yield the tasks with their data; the record of a task whose setting could not be chosen goes to ``ready``."""
    choices: dict[tuple[str, str, int], int | Record] = {}
    rules = plan.rules(keep)
    for task in tasks:
        dataset, candidate = plan.datasets[task.dataset], plan.candidates[task.candidate].on(task.dataset)
        call = Call(task, dataset, candidate, rules, encoder=plan.encoders[task.dataset])
        if task.kind == "evaluation" and shares_choice(dataset, plan.study.protocol) and candidate.needs_selection:
            key = (task.dataset, task.candidate, task.repeat)
            if key not in choices:
                choices[key] = _shared_choice(plan, candidate, key, recorded)
            found = choices[key]
            if not isinstance(found, int):
                ready.append(call.not_run(found["error"], found["fault"]))
                continue
            call = replace(call, chosen=found)
        yield call


def _shared_choice(
    plan: Plan, candidate: Candidate, key: tuple[str, str, int], recorded: Mapping[Task, Record]
) -> int | Record:
    """The setting chosen over all rotations, or the error."""
    trials, errors = [], []
    for task in plan.waves[0]:
        if (task.dataset, task.candidate, task.repeat) == key:
            record = recorded[task]
            if record["status"] != "ok":
                fault = record.get("fault", MACHINE)
                return {"error": f"the selection failed: {record['error']}", "fault": fault}
            trials.append([float(value) for value in record["values"]])
            errors += record["errors"]
    sign = -1.0 if MEASURES[plan.study.criterion].higher_is_better else 1.0
    try:
        return choose(candidate, trials, errors, sign)
    except StudyError as error:
        return {"error": f"{type(error).__name__}: {error}", "fault": MODEL}
