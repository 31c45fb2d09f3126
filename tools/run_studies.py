"""Run the studies whose records are in ``studies/``, and replace each when it is complete.

``make study`` calls it. A study runs in ``studies/unfinished/NAME`` and can be stopped at any time: the next call goes
on where it stopped, on this machine or on another one that has the folder. Only when every task has a record does it
replace ``studies/NAME``, so that the pages made from the records never show half a study. A study whose records are
those of the present study file and version is not run.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import skldl
from skldl.experiments import Study, StudyResults, load_study

STUDIES = Path(__file__).parents[1] / "studies"


class Run(NamedTuple):
    """A folder of ``studies/``: which study fills it, under which protocol."""

    name: str
    study: str
    protocol: str = ""

    def options(self) -> list[str]:
        """Options of ``skldl bench``; chunks in file order under every protocol, so that test chunks are the same."""
        return ["--protocol", self.protocol, "--order", "file"] if self.protocol else []

    def load(self) -> Study:
        """The study as it would run."""
        study = load_study(self.study)
        return study.with_options(protocol=self.protocol, order="file") if self.protocol else study


RUNS = (
    Run("tkde2016-fixed", "tkde2016-fixed"),
    Run("tkde2016-start", "tkde2016-start"),
    Run("tkde2016", "tkde2016"),
    Run("tkde2016-nested", "tkde2016", "nested"),
)


def is_current(run: Run, folder: Path) -> bool:
    """Whether a folder holds all records of the present study by the present version."""
    if not (folder / "records.jsonl").exists():
        return False
    results = StudyResults.load(folder)
    study = run.load()
    found = [dataset for dataset in study.datasets if dataset.name not in results.missing]
    return (
        results.header["skldl"] == skldl.__version__
        and results.header["fingerprint"] == study.with_options(datasets=found).fingerprint()
        and not any(results.state(dataset, c) for dataset in results.datasets for c in results.candidates)
    )


def complete(run: Run, studies: Path, data: str, jobs: int) -> int:
    """Run a study, or what is left of it, and put it in its place.

    Returns
    -------
    int
        0 if the folder is complete, else the exit status of ``skldl bench``.
    """
    target, running = studies / run.name, studies / "unfinished" / run.name
    if is_current(run, target):
        print(f"{run.name}: complete, and made by the present study file")
        return 0
    begun = (running / "records.jsonl").exists()
    print(f"{run.name}: {'going on' if begun else 'beginning'}, {run.load().n_fits:,} fits at most", flush=True)
    command = [sys.executable, "-c", "import sys; from skldl.cli import main; sys.exit(main())", "bench", run.study]
    command += ["--out", str(running), "--keep-predictions", "predictions", "--jobs", str(jobs), *run.options()]
    command += [*(["--data", data] if data else []), *(["--resume"] if begun else [])]
    status = subprocess.run(command, check=False).returncode
    if status:
        print(f"{run.name}: not complete; what is recorded stays in {running}. Look at its README.md, then call again.")
        return status
    (running / "report.html").unlink(missing_ok=True)  # made from the records in a moment: skldl report
    shutil.rmtree(target, ignore_errors=True)
    running.rename(target)
    print(f"{run.name}: complete")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run all studies, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(run.name for run in RUNS)}; all by default")
    parser.add_argument("--data", default="", help="folder with the data files (SKLDL_DATA by default)")
    parser.add_argument("--jobs", type=int, default=-1, help="number of processes, -1 for one per processor")
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
    return max(complete(run, STUDIES, given.data, given.jobs) for run in wanted)


if __name__ == "__main__":
    sys.exit(main())
