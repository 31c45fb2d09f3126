"""``skldl bench``: run a study, print its tables and the paths of all files."""

import sys
from dataclasses import asdict, fields
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from cyclopts import App, Parameter

from skldl.cli._options import ColumnOptions, Flag, Name, Reading, Words, words
from skldl.cli._screen import note
from skldl.cli._study_output import import_test_packages, new_folder, number_of_jobs, run_and_show
from skldl.exceptions import Message, StudyError
from skldl.exceptions import Parameter as Named
from skldl.experiments import DatasetSpec, Plan, Study, load_study, plan_study
from skldl.experiments.store import FILE_NAME, read_records
from skldl.experiments.tasks import Task
from skldl.names import find_candidate
from skldl.utils.spelling import plain, split_list

MAX_NAMES = 6  # a title with more candidates or datasets gives their number

app = App(name="bench")


@app.default
def bench(
    study: Name = None,
    *,
    columns: ColumnOptions | None = None,
    reading: Reading | None = None,
    splits: Name = None,
    data: Path | None = None,
    datasets: Name = None,
    candidates: Annotated[Name, Parameter(name=("--candidates", "--algorithms"))] = None,
    measures: Name = None,
    folds: int | None = None,
    repeats: int | None = None,
    protocol: str | None = None,
    order: str | None = None,
    seed: int | None = None,
    jobs: int = -1,
    scheduler: Name = None,
    out: Path | None = None,
    resume: Flag = False,
    retry_failed: Flag = False,
    timeout: float | None = None,
    trust: Words | None = None,
    keep_predictions: str = "sample",
    dry_run: Flag = False,
) -> int:
    """Compare algorithms by a study: folds, selection, records, tables and tests.

    Without an argument the study demo runs on data that the package includes. Examples:

    skldl bench --candidates aa-knn,sa-bfgs --out run1

    skldl bench tkde2016 --data DIR --datasets yeast-alpha,sjaffe

    skldl bench --datasets data.csv,more.parquet --labels 'emo_*' --drop item --groups person --kind counts

    Parameters
    ----------
    study
        Name of a built-in study (demo, votes, tkde2016, tkde2016-fixed, tkde2016-start, missing, enhancement,
        enhancement-learning) or the path of a study file (.toml); docs/records.md describes its keys.
    columns
        The roles of the columns of the tables.
    reading
        How the tables are written.
    splits
        Take the folds of the tables from this file: a table with a header and one line for each row, in which each
        column is one repeat and names the fold in which the row is tested; an empty cell, or train, means never.
    data
        Folder with the data files. Datasets that are not there are named and left out.
    datasets
        Only these, separated by commas: names in any spelling, or paths of data files and tables.
    candidates
        Only these, separated by commas: names of algorithms in any spelling, or import paths (package.module:Class).
    measures
        Only these, separated by commas.
    folds
        Number of folds.
    repeats
        Number of repetitions, each with other folds; with --resume, a larger number adds repetitions.
    protocol
        geng2016 (as the paper), nested (no leak) or holdout.
    order
        Folds as chunks of the file (file) or of a shuffled order (shuffled).
    seed
        Seed of folds and algorithms.
    jobs
        Number of processes; -1 means one per processor. 1 runs everything in this process, where an estimator that
        crashes ends the study. The numbers do not depend on it.
    scheduler
        Address of a Dask scheduler, such as tcp://host:8786, whose workers run the tasks.
    out
        Folder for records and tables. By default a new folder skldl-STUDY here.
    resume
        Continue the study in the folder --out; recorded tasks do not run again.
    retry_failed
        With --resume: run failed tasks again.
    timeout
        Seconds after which a task is ended and recorded as failed.
    trust
        Packages from which the study may import estimators, besides skldl and scikit-learn; modules in the folder of
        the study file are found. Importing a package runs its code.
    keep_predictions
        Keep predictions in the records: sample (a few rows of each dataset, with their true distributions), predictions
        (the same rows without the true distributions, for data that must not be passed on), none or all.
    dry_run
        Print what would run and the number of fits, and exit.
    """
    trusted = words(trust or [])
    chosen = _study(study, out if resume else None, trusted)
    roles = _roles(columns or ColumnOptions(), reading or Reading(), splits)
    resumed = resume and study is None  # its datasets are the ones that the options described in the first run
    chosen = _with_options(chosen, datasets, roles, candidates, measures, resumed=resumed).with_options(
        folds=folds, repeats=repeats, protocol=protocol, order=order, random_state=seed, timeout=timeout
    )
    if data is not None and not data.is_dir():
        raise StudyError(f"--data {data} is not a folder.")
    plan = plan_study(chosen, data_home=data, build=not dry_run)
    for name, dataset in plan.datasets.items():
        for line in dataset.notes:
            note(Message(f"Note on {name}: ", line))
    if plan.missing:
        print(f"Not found, and so left out: {', '.join(plan.missing)}.", file=sys.stderr)
    if dry_run:
        _print_plan(plan, _recorded(out) if resume and out is not None else set())
        return 0
    if (resume or retry_failed) and out is None:
        raise StudyError("--resume needs --out, the folder of the study to continue.")
    n_jobs = number_of_jobs(jobs)
    if retry_failed and not resume:
        raise StudyError("--retry-failed needs --resume.")
    import_test_packages()
    folder = out or new_folder(chosen.name)
    again = f"skldl bench --resume --out {quote(str(folder))}" + (f" --data {quote(str(data))}" if data else "")
    again += f" --keep-predictions {keep_predictions}" if keep_predictions != "sample" else ""
    again += f" --trust {quote(','.join(trusted))}" if trusted else ""
    return run_and_show(
        plan,
        folder,
        again,
        f"{again} --retry-failed",
        n_jobs=n_jobs,
        resume=resume,
        retry_failed=retry_failed,
        scheduler=scheduler,
        keep_predictions=keep_predictions,
    )


def _study(name: str | None, folder: Path | None, trust: list[str]) -> Study:
    """Load the named study; without a name the one in the folder to resume, or else the demo."""
    path = Path(name or "demo")
    if not name and folder is not None:
        path = folder / "study.toml"
        if not path.is_file():
            raise StudyError(
                f"There is no study to resume in {folder}: it has no study.toml. If the first run was killed before it "
                "wrote one, start it again without --resume; else check --out."
            )
    if trust:  # modules in the folder of the study file, or in the current one
        sys.path[:0] = list(dict.fromkeys((str(path.resolve().parent), str(Path.cwd()))))
    return load_study(path, trust=trust)


def _roles(columns: ColumnOptions, reading: Reading, splits: str | None) -> dict[str, Any]:
    """The options about tables, as arguments of `DatasetSpec`."""
    roles = {**asdict(columns), "splits": splits}
    usual = {entry.name: entry.default for entry in fields(DatasetSpec)}
    given = {name: value for name, value in roles.items() if value and value != usual[name]}
    return given | {name: value for name, value in reading.as_arguments().items() if value is not None}  # --na '' is []


def _with_options(
    study: Study,
    datasets: str | None,
    roles: dict[str, Any],
    candidates: str | None,
    measures: str | None,
    *,
    resumed: bool,
) -> Study:
    changes: dict[str, Any] = {}
    known: dict[str, list[DatasetSpec]] = {}
    for spec in study.datasets:  # several of them may hide different fractions of the degrees of one source
        for key in {plain(spec.name), plain(spec.source)} - {""}:
            known.setdefault(key, []).append(spec)
    named = split_list(datasets or "")
    tables = [word for word in named if _is_table(word) and ((resumed and roles) or plain(word) not in known)]
    if roles and not tables:
        raise StudyError(
            Named(next(iter(roles))),
            " applies to tables. Give the paths of the tables with --datasets; datasets of the catalogue and of the "
            "study have fixed columns.",
        )
    if named:
        changes["datasets"] = [
            spec
            for word in named
            for spec in (
                [DatasetSpec(word, **roles)] if word in tables else known.get(plain(word)) or [DatasetSpec(word)]
            )
        ]
    if candidates:
        changes["candidates"] = [find_candidate(word, study.candidates) for word in split_list(candidates)]
    if measures:
        changes["measures"] = split_list(measures)
    changed = study.with_options(**changes)
    if (changed.datasets, changed.candidates) != (study.datasets, study.candidates):
        changed = changed.with_options(title=_title(changed))
    return changed


def _title(study: Study) -> str:
    """The title of a study whose datasets or candidates were chosen by options."""
    files = (Path(spec.source or spec.name) for spec in study.datasets)
    datasets = [file.name if file.is_file() else spec.name for file, spec in zip(files, study.datasets, strict=True)]
    parts = (([one.name for one in study.candidates], "candidates"), (datasets, "datasets"))
    return " on ".join(", ".join(names) if len(names) <= MAX_NAMES else f"{len(names)} {what}" for names, what in parts)


def _is_table(word: str) -> bool:
    """Whether a dataset is a file, whose columns can be named, and not one of the catalogue."""
    return bool(Path(word).suffix) or Path(word).is_file()


def _recorded(folder: Path) -> set[Task]:
    records, _ = read_records(folder / FILE_NAME)
    return {Task.of(record) for record in records if record["kind"] in ("selection", "evaluation")}


def _print_plan(plan: Plan, recorded: set[Task]) -> None:
    study = plan.study
    order = f"order {study.order}, seed {study.random_state}"
    print(f"Study {study.name}: protocol {study.protocol}, {study.folds} folds, {order}.")
    counts = {(dataset, candidate): [0, 0] for dataset in plan.datasets for candidate in plan.candidates}
    for wave in plan.waves:
        for task in (task for task in wave if task not in recorded):
            entry = counts[task.dataset, task.candidate]
            entry[0] += 1
            entry[1] += plan.n_fits(task)
    for (dataset, candidate), (tasks, fits) in counts.items():
        print(f"{dataset} · {candidate}: {tasks} tasks, {fits} fits")
    tasks, fits = (sum(column) for column in zip(*counts.values(), strict=True))
    print(f"Together {tasks} tasks, {fits} fits. Nothing was run.")
