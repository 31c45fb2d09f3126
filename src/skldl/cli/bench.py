"""``skldl bench``: run a study, print its tables, and say where everything lies."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from skldl.cli._progress import watch
from skldl.cli._study_output import need_the_packages_of_the_tests, new_folder, number_of_jobs, show_results
from skldl.data._spelling import split_list
from skldl.exceptions import StudyError
from skldl.experiments import Plan, Study, load_study, plan_study, run_study
from skldl.experiments.store import FILE_NAME, read_records
from skldl.experiments.study_file import find_candidate, find_dataset
from skldl.experiments.tasks import Task

app = App(name="bench")


@app.default
def bench(
    study: str = "",
    *,
    data: Path | None = None,
    datasets: str = "",
    algorithms: str = "",
    measures: str = "",
    folds: int | None = None,
    repeats: int | None = None,
    protocol: str | None = None,
    order: str | None = None,
    seed: int | None = None,
    jobs: int = -1,
    scheduler: str = "",
    out: Path | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    retry_failed: Annotated[bool, Parameter(negative="")] = False,
    keep_predictions: str = "sample",
    dry_run: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Compare algorithms by a study: folds, selection, records, tables and tests.

    Without an argument the study demo runs on data that the package brings along. Examples:

    skldl bench --algorithms aa-knn,sa-bfgs --out run1

    skldl bench tkde2016 --data DIR --datasets yeast-alpha,sjaffe

    Parameters
    ----------
    study
        Name of a built-in study (demo, tkde2016, tkde2016-fixed) or the path of a study file (.toml).
    data
        Folder with the data files. Datasets that are not there are named and left out.
    datasets
        Only these, separated by commas: names in any spelling, or paths of data files.
    algorithms
        Only these, separated by commas: names in any spelling, or import paths (package.module:Class).
    measures
        Only these, separated by commas.
    folds
        Number of folds.
    repeats
        How often all of it is done, each time with other folds.
    protocol
        geng2016 (as the paper), nested (no leak) or holdout.
    order
        Folds as chunks of the file (file) or of a shuffled order (shuffled).
    seed
        Seed of folds and algorithms.
    jobs
        Number of processes; -1 means one per processor. The numbers do not depend on it.
    scheduler
        Address of a Dask scheduler, such as tcp://host:8786, whose workers run the tasks.
    out
        Folder for records and tables. By default a new folder skldl-STUDY here.
    resume
        Continue the study in the folder --out; nothing that is recorded runs again.
    retry_failed
        With --resume: run the tasks again that failed.
    keep_predictions
        Keep predictions in the records: sample (a few rows of each dataset), none or all.
    dry_run
        Say what would run, and how many fits, and end.
    """
    chosen = _study(study, out if resume else None)
    chosen = _with_options(chosen, datasets, algorithms, measures).with_options(
        folds=folds, repeats=repeats, protocol=protocol, order=order, seed=seed
    )
    if data is not None and not data.is_dir():
        raise StudyError(f"--data {data} is not a folder.")
    plan = plan_study(chosen, data_home=data)
    if plan.missing:
        print(f"Not found, and so left out: {', '.join(plan.missing)}.", file=sys.stderr)
    if dry_run:
        _print_plan(plan, _recorded(out) if resume and out is not None else set())
        return 0
    if (resume or retry_failed) and out is None:
        raise StudyError("--resume needs --out, the folder of the study to continue.")
    n_jobs = number_of_jobs(jobs)
    if retry_failed and not resume:
        raise StudyError("--retry-failed goes with --resume.")
    need_the_packages_of_the_tests()
    folder = out or new_folder(chosen.name)
    try:
        with watch(n_jobs) as on_progress:
            results = run_study(
                plan,
                out=folder,
                resume=resume,
                retry_failed=retry_failed,
                n_jobs=n_jobs,
                scheduler=scheduler,
                keep_predictions=keep_predictions,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        more = f" --data {data}" if data else ""
        more += f" --keep-predictions {keep_predictions}" if keep_predictions != "sample" else ""
        print(
            f"Stopped. What is recorded is safe; go on with: skldl bench --resume --out {folder}{more}", file=sys.stderr
        )
        raise
    return show_results(results, folder)


def _study(name: str, folder: Path | None) -> Study:
    """The study that is named; else, when resuming, the one in the folder; else the demo."""
    if name or folder is None:
        return load_study(name or "demo")
    if not (folder / "study.toml").is_file():
        raise StudyError(f"There is no study to resume in {folder}: it has no study.toml. Is --out the right folder?")
    return load_study(folder / "study.toml")


def _with_options(study: Study, datasets: str, algorithms: str, measures: str) -> Study:
    changes: dict[str, Any] = {}
    if datasets:
        changes["datasets"] = [find_dataset(word, study.datasets) for word in split_list(datasets)]
    if algorithms:
        changes["candidates"] = [find_candidate(word, study.candidates) for word in split_list(algorithms)]
    if measures:
        changes["measures"] = split_list(measures)
    return study.with_options(**changes)


def _recorded(folder: Path) -> set[Task]:
    records, _ = read_records(folder / FILE_NAME)
    return {Task.of(record) for record in records if record["kind"] in ("selection", "evaluation")}


def _print_plan(plan: Plan, recorded: set[Task]) -> None:
    study = plan.study
    print(
        f"Study {study.name}: protocol {study.protocol}, {study.folds} folds, order {study.order}, seed {study.seed}."
    )
    counts = {(dataset, candidate): [0, 0] for dataset in plan.problems for candidate in plan.candidates}
    for wave in plan.waves:
        for task in (task for task in wave if task not in recorded):
            entry = counts[task.dataset, task.candidate]
            entry[0] += 1
            entry[1] += plan.n_fits(task)
    for (dataset, candidate), (tasks, fits) in counts.items():
        print(f"{dataset} · {candidate}: {tasks} tasks, {fits} fits")
    tasks, fits = (sum(column) for column in zip(*counts.values(), strict=True))
    print(f"Together {tasks} tasks, {fits} fits. Nothing was run.")
