"""Run the studies whose records are in ``studies/``, and replace each when it is complete.

``make study`` calls it. A study runs in ``studies/unfinished/NAME`` and can be stopped at any time: the next call goes
on where it stopped, on this machine or on another one that has the folder. Only when every task has a record does it
replace ``studies/NAME``, so that the pages made from the records never show half a study. A study whose records are
those of the present study file and version is not run. One whose study file has changed, also since it was stopped,
begins with the records that the change leaves as they are, if it was begun with the present versions of all packages:
those of a candidate with the same settings to try on the dataset. ``--afresh`` begins with none. The records of a study
that was stopped lie in ``studies/unfinished/NAME-before`` (``NAME-before-2`` after one more change, and so on) until
the new one is complete, so that a change that is taken back finds them.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "studies"))
import skldl
from compare import write_comparison
from skldl.experiments import Plan, Study, StudyResults, load_study, plan_study
from skldl.experiments.grids import candidate_of
from skldl.experiments.header import open_store
from skldl.experiments.outputs import write_outputs
from skldl.experiments.store import FileStore, Record, json_ready, read_records
from skldl.experiments.tasks import Task, versions

STUDIES = Path(__file__).parents[1] / "studies"
KEEP = "predictions"
STEPS = "steps.jsonl"
"""What `ptsvm_on_gpu` keeps of tasks that were interrupted."""
NOT_FOR_ALL_TASKS = ("title", "timeout", "datasets", "candidates")
"""Fields of a study that are no rules for all of its tasks."""


class Run(NamedTuple):
    """A folder of ``studies/``: which study fills it, and with which options."""

    name: str
    study: str
    changed: Mapping[str, Any]

    def options(self) -> list[str]:
        """Options of ``skldl bench``."""
        return [text for name, value in self.changed.items() for text in (f"--{name}", str(value))]

    def load(self) -> Study:
        """The study as it would run."""
        return load_study(self.study).with_options(**self.changed)


RUNS = (
    Run("tkde2016-fixed", "tkde2016-fixed", {}),
    Run("tkde2016-random", "tkde2016-fixed", {"order": "shuffled", "repeats": 3}),
    Run("tkde2016-start", "tkde2016-start", {}),
    Run("tkde2016", "tkde2016", {}),
    Run("tkde2016-nested", "tkde2016", {"protocol": "nested", "order": "file"}),  # the same test chunks
)


def is_current(run: Run, folder: Path) -> bool:
    """Whether a folder holds all records of the present study by the present version."""
    if not has_records(folder):
        return False
    results = StudyResults.load(folder)
    study = run.load()
    found = [dataset for dataset in study.datasets if dataset.name not in results.missing]
    return (
        results.header["skldl"] == skldl.__version__
        and results.header["fingerprint"] == study.with_options(datasets=found).fingerprint()
        and not any(results.state(dataset, c) for dataset in results.datasets for c in results.candidates)
    )


def has_records(folder: Path) -> bool:
    """Whether a study was begun in a folder: a call that was killed at once leaves a file without a whole header."""
    file = folder / "records.jsonl"
    return file.exists() and bool(read_records(file)[0])


def lost_datasets(run: Run, folder: Path, data: str) -> list[str]:
    """Datasets of the present study that earlier records have, and that are not found now."""
    if not has_records(folder):
        return []
    missing = plan_study(run.load(), data_home=data or None).missing
    return [name for name in StudyResults.load(folder).datasets if name in missing]


def is_of_present_file(run: Run, folder: Path, data: str) -> bool:
    """Whether records, of a study that was stopped, belong to the present study file."""
    header = read_records(folder / "records.jsonl")[0][0]
    return bool(header["fingerprint"] == plan_study(run.load(), data_home=data or None).study.fingerprint())


def carry_over(run: Run, earlier: list[Path], beginning: Path, data: str) -> int:
    """Begin a study with those records of earlier ones that its present study file would produce again.

    A task depends on the rules of the study, on its dataset and on its candidate alone: its seed is made of their
    names.

    Returns
    -------
    int
        Number of records.
    """
    plan = plan_study(run.load(), data_home=data or None)
    same: dict[Task, Record] = {}
    for folder in earlier:
        for record in valid_records(plan, folder):
            same.setdefault(Task.of(record), record)
    store = FileStore(beginning, resume=False)
    open_store(store, plan.study, plan.datasets, plan.rules(KEEP), plan.missing, beginning)
    for record in same.values():
        store.append(record)
    store.close()
    steps = [folder / STEPS for folder in earlier if (folder / STEPS).exists()]
    if steps:  # each step names all that it depends on
        lines = chain.from_iterable(whole_lines(file) for file in steps)
        (beginning / STEPS).write_bytes(b"".join(dict.fromkeys(lines)))
    return len(same)


def valid_records(plan: Plan, folder: Path) -> list[Record]:
    """Records in a folder that a planned study would make again."""
    header, *records = read_records(folder / "records.jsonl")[0]
    now = json_ready(plan.study.to_dict())
    rules = [{k: v for k, v in study.items() if k not in NOT_FOR_ALL_TASKS} for study in (header["study"], now)]
    if header["versions"] != versions() or header["keep_predictions"] != KEEP or rules[0] != rules[1]:
        return []
    then, today = ({entry["name"]: entry for entry in study["candidates"]} for study in (header["study"], now))

    # settings may have failed for want of memory; under geng2016 the tests depend on the selections of all rotations
    again = {(r["dataset"], r["candidate"]) for r in records if r["kind"] == "selection" and _has_failed_settings(r)}

    def is_valid(record: Record) -> bool:
        name, dataset = record.get("candidate"), plan.datasets.get(record.get("dataset", ""))
        if dataset is None or name not in today or record["status"] != "ok":
            return False
        if (dataset.name, name) in again or _has_failed_settings(record):
            return False
        asked = [_asked(entries[name], dataset.name) for entries in (then, today)]
        return bool(record["fingerprint"] == dataset.fingerprint and asked[0] == asked[1])

    return [record for record in records if is_valid(record)]


def whole_lines(file: Path) -> list[bytes]:
    """The lines of a file without a last one that is torn, because the writing process was killed."""
    return [line for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def _has_failed_settings(record: Record) -> bool:
    """Whether a setting failed in a selection, which the record is of or holds."""
    return bool(record.get("selection", record).get("errors"))


def _asked(entry: dict[str, Any], dataset: str) -> tuple[Any, ...]:
    """The meaning of a candidate of a study file on a dataset: its estimator, and the settings to try, in order."""
    rest = {key: value for key, value in entry.items() if key not in ("grid", "grids", "natural")}
    return rest, candidate_of(entry).on(dataset).settings


def set_aside(running: Path) -> list[Path]:
    """Folders of studies that were stopped before their study file changed."""
    return sorted(running.parent.glob(f"{running.name}-before*"))


def make_way(running: Path) -> None:
    """Move a study that was stopped aside; a folder without records is removed."""
    if has_records(running):
        first = f"{running.name}-before"
        names = chain([first], (f"{first}-{number}" for number in count(2)))
        running.rename(next(place for place in map(running.with_name, names) if not place.exists()))
    shutil.rmtree(running, ignore_errors=True)


def begin_from(run: Run, earlier: list[Path], running: Path, data: str) -> None:
    """Begin a study with the valid records of earlier study files."""
    beginning = running.with_name(f"{run.name}-carried")
    shutil.rmtree(beginning, ignore_errors=True)  # of a call that was killed
    n_records = carry_over(run, earlier, beginning, data)
    print(f"{run.name}: {n_records:,} records of the earlier study file are still valid")
    make_way(running)
    beginning.rename(running)


def write_files(folder: Path) -> None:
    """Write what is made from the records: the files of ``skldl bench``, and the comparison with the paper."""
    results = StudyResults.load(folder)
    write_outputs(results, folder)
    write_comparison(results, folder)


def complete(run: Run, studies: Path, data: str, jobs: int, *, afresh: bool = False) -> int:
    """Run a study, or the rest of it, and move it to its folder.

    Returns
    -------
    int
        0 if the folder is complete, else the exit status of ``skldl bench``.
    """
    target, running = studies / run.name, studies / "unfinished" / run.name
    if is_current(run, target):
        write_files(target)  # tables may be laid out otherwise now
        print(f"{run.name}: complete, and made by the present study file")
        return 0
    for folder in (running, *set_aside(running), target):
        if lost := lost_datasets(run, folder, data):
            print(
                f"{run.name}: {', '.join(lost)} not found, which the records in {folder} have. Name their folder "
                "(--data)."
            )
            return 2
    begun = has_records(running) and is_of_present_file(run, running, data)
    if not begun:
        earlier = [folder for folder in (running, *set_aside(running), target) if has_records(folder)]
        begun = bool(earlier) and not afresh
        if begun:
            begin_from(run, earlier, running, data)
        else:
            make_way(running)
    print(f"{run.name}: {'going on' if begun else 'beginning'}, {run.load().n_fits:,} fits at most", flush=True)
    command = [sys.executable, "-c", "import sys; from skldl.cli import main; sys.exit(main())", "bench", run.study]
    command += ["--out", str(running), "--keep-predictions", KEEP, "--jobs", str(jobs), *run.options()]
    command += [*(["--data", data] if data else []), *(["--resume"] if begun else [])]
    status = subprocess.run(command, check=False).returncode
    if status:
        print(f"{run.name}: not complete; what is recorded stays in {running}. Look at its README.md, then call again.")
        return status
    write_files(running)
    for name in ("report.html", STEPS):  # made from the records in a moment: skldl report; no longer needed
        (running / name).unlink(missing_ok=True)
    for folder in (target, *set_aside(running)):
        shutil.rmtree(folder, ignore_errors=True)
    running.rename(target)
    print(f"{run.name}: complete")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run all studies, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(run.name for run in RUNS)}; all by default")
    parser.add_argument("--data", default="", help="folder with the data files (SKLDL_DATA by default)")
    parser.add_argument("--jobs", type=int, default=-1, help="number of processes, -1 for one per processor")
    parser.add_argument("--afresh", action="store_true", help="begin a changed study without records of the earlier")
    given = parser.parse_args(arguments)
    known = {run.name: run for run in RUNS}
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"no study is called {unknown[0]}; known: {', '.join(known)}")
    wanted = [known[name] for name in given.names] or list(RUNS)
    print(
        "The paper's study takes hours, and under nested several times as long, since it fits "
        f"{known['tkde2016-nested'].load().n_fits / known['tkde2016'].load().n_fits:.1f} times as many models; the "
        "progress line estimates what is left. Stop it at any time: the next call goes on from there.",
        flush=True,
    )
    return max(complete(run, STUDIES, given.data, given.jobs, afresh=given.afresh) for run in wanted)


if __name__ == "__main__":
    sys.exit(main())
