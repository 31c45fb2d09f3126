"""``skldl bench``: run a study, print its tables, and say where everything lies."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from joblib import cpu_count

from skldl.cli._progress import watch
from skldl.exceptions import StudyError
from skldl.experiments import Plan, Study, StudyResults, load_study, plan_study, run_study
from skldl.experiments.names import split_list
from skldl.experiments.outputs import failure_line, meaning, write_outputs
from skldl.experiments.rendering import Table
from skldl.experiments.study_file import find_contender, find_dataset

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
    plan = plan_study(chosen, data_home=data)
    if plan.missing:
        print(f"Not found, and so left out: {', '.join(plan.missing)}.", file=sys.stderr)
    if dry_run:
        _print_plan(plan)
        return 0
    if (resume or retry_failed) and out is None:
        raise StudyError("--resume needs --out, the folder of the study to continue.")
    if jobs != -1 and jobs < 1:
        raise StudyError(f"--jobs {jobs} must be at least 1, or -1 for one per processor.")
    if retry_failed and not resume:
        raise StudyError("--retry-failed goes with --resume.")
    _need_the_packages_of_the_tests()
    folder = out or _new_folder(chosen.name)
    n_jobs = cpu_count() if jobs == -1 else jobs
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
    for notice in results.notices:
        print(notice, file=sys.stderr)
    write_outputs(results, folder)
    _print_results(results, folder)
    print(_report_line(results, folder))
    return 1 if results.failures else 0


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
        changes["contenders"] = [find_contender(word, study.contenders) for word in split_list(algorithms)]
    if measures:
        changes["measures"] = split_list(measures)
    return study.with_options(**changes)


def _new_folder(study: str) -> Path:
    """A folder that is not there yet: ``skldl-demo``, ``skldl-demo-2``, …"""
    folder, number = Path(f"skldl-{study}"), 1
    while folder.exists():
        number += 1
        folder = Path(f"skldl-{study}-{number}")
    return folder


def _need_the_packages_of_the_tests() -> None:
    """Fail before hours of work, not after, if a package of the extra ``bench`` is missing."""
    import baycomp  # noqa: F401
    import scikit_posthocs  # noqa: F401


def _report_line(results: StudyResults, folder: Path) -> str:
    """Write the report and say where it is, or which extra makes it."""
    try:
        from skldl.report import write_report
    except ModuleNotFoundError as error:
        return f"No report: it needs the package {error.name}: pip install 'scikit-ldl[report]'"
    return f"Report, to be opened in a browser: {write_report(folder, results)}"


def _print_plan(plan: Plan) -> None:
    study = plan.study
    print(
        f"Study {study.name}: protocol {study.protocol}, {study.folds} folds, order {study.order}, seed {study.seed}."
    )
    counts = {(dataset, contender): [0, 0] for dataset in plan.problems for contender in plan.contenders}
    for wave in plan.waves:
        for task in wave:
            entry = counts[task.dataset, task.contender]
            entry[0] += 1
            entry[1] += plan.n_fits(task)
    for (dataset, contender), (tasks, fits) in counts.items():
        print(f"{dataset} · {contender}: {tasks} tasks, {fits} fits")
    fits = sum(count[1] for count in counts.values())
    print(f"Together {plan.n_tasks} tasks, {fits} fits. Nothing was run.")


def _print_results(results: StudyResults, folder: Path) -> None:
    from rich.console import Console

    wide = None if sys.stdout.isatty() else 200
    console = Console(width=wide, highlight=False, soft_wrap=False)
    tables = [results.table(measure) for measure in results.measures]
    for table in tables:
        for part in table.fitted(console.width - 2):
            console.print(_rich(part))
    for note in dict.fromkeys(note for table in tables for note in table.notes):
        console.print(note, markup=False)
    console.print(f"Protocol {results.study['protocol']}. {' '.join(meaning(results))}", markup=False)
    for record in results.failures[:10]:
        console.print(f"Failed: {failure_line(record)}", markup=False)
    if len(results.failures) > 10:
        console.print(f"… and {len(results.failures) - 10} more failed tasks; see README.md there.")
    console.print(f"\nRecords, tables and statistics lie in {folder}/ (begin with README.md).", markup=False)
    if (folder / "published.md").exists():
        console.print(f"Side by side with the paper: {folder}/published.md", markup=False)


def _rich(table: Table) -> Any:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left")
    for place, heading in enumerate(table.head):
        shown.add_column(Text(heading), justify="left" if place == 0 else "right", no_wrap=place > 0)
    for part in (table.rows, table.foot):
        for name, cells in part:
            shown.add_row(Text(name), *(Text(cell.text, style="bold" if cell.best else "") for cell in cells))
        shown.add_section()
    return shown
