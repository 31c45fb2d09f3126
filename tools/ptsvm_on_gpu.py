"""Run the tasks of PT-SVM in a study of ``studies/`` with its linear systems on a GPU.

``python tools/ptsvm_on_gpu.py tkde2016-nested --jobs 14`` writes records to ``studies/unfinished/tkde2016-nested``,
where ``make study`` continues with the other algorithms. It needs torch with CUDA. Several processes share the GPU;
``nvidia-cuda-mps-control -d`` lets them use it at the same time. The method and its stopping rule are those of
`skldl.transformation._svm_solver`, in double precision: only products with the kernel matrix and the systems of one
Newton step are computed there, those of similar size together.

A task whose selection fits on several parts of its rows is run in steps, each with a line in ``steps.jsonl`` beside the
records, so that a long task can be interrupted: the next call goes on with the steps that are left. With
``--steps-only`` the tasks themselves are left to a later call, such as one on a machine without a GPU.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))
from run_studies import KEEP, RUNS, STEPS, STUDIES, whole_lines

from skldl.experiments import plan_study, run, tasks
from skldl.experiments.header import open_store
from skldl.experiments.store import FileStore, Record, json_ready
from skldl.experiments.tasks import Call, Task
from skldl.metrics import MEASURES
from skldl.selection import derive_seed, rounds_of
from skldl.selection._trials import Failure, Trials
from skldl.transformation import _ptsvm, _svm_solver
from skldl.transformation._svm_solver import KernelMatrix, System, solve_regularised

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FEW_ROWS = 64
"""Systems of fewer rows are solved on the host."""
SIMILAR = 0.8
"""Systems are solved together if none has less than this fraction of the rows of the largest."""
MAX_NUMBERS = 2**27
"""Numbers in the matrices of systems that are solved together, 1 GiB."""
BLOCK = 256
"""Columns that are eliminated together in systems of many rows."""
MANY_ROWS = 1024
"""From here on blocks of columns are faster than the decomposition of torch, which is made for small matrices."""
MAX_STEPS = 1000
"""Newton steps before a machine stops short of its optimum, more than on the host: they take less time here."""


class DeviceKernel(KernelMatrix):
    """A kernel matrix with a copy on the device."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix)
        self.there = torch.from_numpy(matrix).to(DEVICE)

    def times(self, coefficients: Any) -> Any:
        """Return coefficients @ K."""
        return (torch.from_numpy(np.ascontiguousarray(coefficients)).to(DEVICE) @ self.there).cpu().numpy()

    def solve(self, systems: Sequence[System]) -> list[Any]:
        """Return the solutions of linear systems."""
        solutions: list[Any] = [None] * len(systems)
        large = [place for place, system in enumerate(systems) if len(system.rows) >= FEW_ROWS]
        for batch in batches([len(systems[place].rows) for place in large]):
            places = [large[i] for i in batch]
            for place, solution in zip(places, self._solve_together([systems[p] for p in places]), strict=True):
                solutions[place] = solution
        return [
            solve_regularised(self.block(system.rows), system.ridge, system.columns) if solution is None else solution
            for system, solution in zip(systems, solutions, strict=True)
        ]

    def _solve_together(self, systems: list[System]) -> Iterator[Any]:
        """Yield solutions, or None where the matrix is not positive definite; shorter systems are filled with ones."""
        shape = (len(systems), max(len(system.rows) for system in systems))
        rows, present = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        ridge, columns = np.ones(shape), np.zeros((*shape, systems[0].columns.shape[1]))
        for i, system in enumerate(systems):
            size = len(system.rows)
            rows[i, :size], present[i, :size] = system.rows, 1.0
            ridge[i, :size], columns[i, :size] = system.ridge, system.columns
        rows, present, ridge, columns = (torch.from_numpy(part).to(DEVICE) for part in (rows, present, ridge, columns))
        matrices = self.there[rows[:, :, None], rows[:, None, :]]
        matrices *= present[:, :, None]
        matrices *= present[:, None, :]
        matrices.diagonal(dim1=1, dim2=2).add_(ridge)
        if shape[1] < MANY_ROWS:
            factors, failed = torch.linalg.cholesky_ex(matrices)
            solved = torch.cholesky_solve(columns, factors)
        else:
            solved, failed = solve_in_blocks(matrices, columns)
        for system, solution, fault in zip(systems, solved.cpu().numpy(), failed.cpu().numpy(), strict=True):
            yield None if fault else solution[: len(system.rows)]


def solve_in_blocks(matrices: Any, columns: Any) -> tuple[Any, Any]:
    """Solve positive definite systems by a Cholesky decomposition in blocks, almost all of it products of matrices.

    Both arguments are overwritten. Returns the solutions, and which matrices are not positive definite.
    """
    n_rows = matrices.shape[1]
    blocks = [slice(start, min(start + BLOCK, n_rows)) for start in range(0, n_rows, BLOCK)]
    failed = torch.zeros(len(matrices), dtype=torch.bool, device=matrices.device)
    inverses = []
    for block in blocks:
        here, before = matrices[:, block], slice(0, block.start)
        matrices[:, block.start :, block].baddbmm_(matrices[:, block.start :, before], here[:, :, before].mT, alpha=-1)
        columns[:, block].baddbmm_(here[:, :, before], columns[:, before], alpha=-1)
        factor, fault = torch.linalg.cholesky_ex(here[:, :, block])
        failed |= fault > 0
        inverse = torch.linalg.solve_triangular(
            factor, torch.eye(len(factor[0])).to(factor).expand_as(factor), upper=False
        )
        matrices[:, block.stop :, block] = matrices[:, block.stop :, block] @ inverse.mT
        columns[:, block] = inverse @ columns[:, block]
        inverses.append(inverse)
    for block, inverse in zip(reversed(blocks), reversed(inverses), strict=True):
        columns[:, block].baddbmm_(matrices[:, block.stop :, block].mT, columns[:, block.stop :], alpha=-1)
        columns[:, block] = inverse.mT @ columns[:, block]
    return columns, failed | ~columns.isfinite().all(dim=2).all(dim=1)


def batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Positions of the systems that are solved together: of similar size, and of limited number."""
    batch: list[int] = []
    for place in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        if batch:
            largest = sizes[batch[0]]
            if sizes[place] < SIMILAR * largest or (len(batch) + 1) * largest**2 > MAX_NUMBERS:
                yield batch
                batch = []
        batch.append(place)
    if batch:
        yield batch


def use_device() -> None:
    """Let the fits of this process use the GPU; on a CPU, torch is slower than the fits without it."""
    if DEVICE == "cpu":
        return
    _ptsvm.KernelMatrix = DeviceKernel  # type: ignore[misc]  # in its place
    _svm_solver.MAX_STEPS = _ptsvm.MAX_STEPS = MAX_STEPS


def search_there(call: Call, step: int) -> Record:
    """Validate all settings on one pair of training and validation rows, with kernels on the device."""
    use_device()
    task, layout = call.task, call.rules.layout
    seed = derive_seed(layout.random_state, task.dataset, task.candidate, task.repeat, task.fold)
    pair = rounds_of(call.dataset, layout, task.repeat)[task.fold].tuning[step]
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(limits=1):
        warnings.simplefilter("always")
        trials = tasks._search(call, [pair], seed)
    return {
        **_key(call, step),
        "seconds": time.perf_counter() - started,
        "values": trials.values[0].tolist(),
        "failures": [[dict(failure.setting), failure.reason] for failure in trials.failures],
        "warnings": [f"{one.category.__name__}: {one.message}" for one in caught],
    }


def _key(call: Call, step: int) -> Record:
    """Everything but the code of this file on which the values of a step depend; steps of a task must agree in it."""
    return json_ready(
        {
            "task": astuple(call.task),
            "step": step,
            "layout": asdict(call.rules.layout),
            "criterion": call.rules.criterion,
            "fingerprint": call.dataset.fingerprint,
            "estimator": repr(call.candidate.estimator),
            "params": dict(call.candidate.params),
            "settings": list(call.candidate.settings),
            "versions": tasks.versions(),
        }
    )


def run_there(call: Call, steps: Sequence[Record]) -> Record:
    """Run a task in this process, with kernels on the device; the selection is known where there are steps."""
    use_device()
    if not steps:
        return call.run()
    failures = [Failure(call.candidate.name, *failure) for step in steps for failure in step["failures"]]
    values = np.array([step["values"] for step in steps], dtype=np.float64)
    higher = MEASURES[call.rules.criterion].higher_is_better
    known = Trials(call.candidate, call.candidate.settings, [], values, failures, higher)
    with patch.object(tasks, "_search", lambda *_: known):
        record = call.run()
    seconds = sum(step["seconds"] for step in steps)
    if "selection" in record:
        record["selection"]["versions"] = steps[0]["versions"]
        record["selection_seconds"] += seconds
    said = [*(text for step in steps for text in step["warnings"]), *record["warnings"]]
    return record | {"seconds": record["seconds"] + seconds, "warnings": list(dict.fromkeys(said))}


def read_steps(path: Path) -> list[Record]:
    """The steps in a file; a last line that is torn, because the writing process was killed, is removed from it."""
    if not path.exists():
        return []
    lines = whole_lines(path)
    size = sum(map(len, lines))
    if size < path.stat().st_size:
        os.truncate(path, size)
    return [json.loads(line) for line in lines]


def run_steps(calls: Sequence[Call], path: Path, jobs: int) -> dict[Task, list[Record]]:
    """Run the remaining steps of tasks, and return all steps of each."""
    known = read_steps(path)
    found: dict[tuple[Task, int], Record] = {}
    left = []
    for call in calls:
        for step in range(len(rounds_of(call.dataset, call.rules.layout, call.task.repeat)[call.task.fold].tuning)):
            key = _key(call, step)
            line = next((line for line in known if key.items() <= line.items()), None)
            if line is None:
                left.append(delayed(search_there)(call, step))
            else:
                found[call.task, step] = line
    with path.open("a") as stream:
        for line in Parallel(jobs, return_as="generator_unordered")(left):
            stream.write(json.dumps(line) + "\n")
            stream.flush()
            print(*line["task"], "step", line["step"], flush=True)
            found[Task(*line["task"]), line["step"]] = line
    steps: dict[Task, list[Record]] = {}
    for task, step in sorted(found, key=lambda place: place[1]):
        steps.setdefault(task, []).append(found[task, step])
    return steps


def main(arguments: list[str] | None = None) -> int:
    """Run the remaining tasks of PT-SVM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[run_.name for run_ in RUNS])
    parser.add_argument("--datasets", nargs="*", help="which; all by default")
    parser.add_argument("--data", default=None, help="folder with the data files (SKLDL_DATA by default)")
    parser.add_argument("--out", type=Path, default=None, help="folder for the records; studies/unfinished/NAME")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--steps-only", action="store_true", help="run only the steps of selections")
    given = parser.parse_args(arguments)
    study = next(run_ for run_ in RUNS if run_.name == given.name).load()
    if given.steps_only and study.protocol == "geng2016":
        parser.error("--steps-only: under geng2016 each selection is a task of one step")
    plan = plan_study(study, data_home=given.data)
    out = given.out or STUDIES / "unfinished" / given.name
    store = FileStore(out, resume=(out / "records.jsonl").exists())
    try:
        open_store(store, plan.study, plan.datasets, plan.rules(KEEP), plan.missing, out)
        recorded = {Task.of(r): r for r in store.records if r["kind"] in ("selection", "evaluation")}
        for wave in plan.waves:
            left = [
                task
                for task in wave
                if task.candidate == "PT-SVM"
                and task not in recorded
                and (not given.datasets or task.dataset in given.datasets)
            ]
            not_run: list[Record] = []  # where no setting could be chosen
            calls = list(run._calls(plan, left, recorded, KEEP, not_run))
            nested = [call for call in calls if call.task.kind == "evaluation" and call.chosen is None]
            steps = run_steps(nested, out / STEPS, given.jobs)
            if given.steps_only:
                continue
            work = (delayed(run_there)(call, steps.get(call.task, ())) for call in calls)
            done = Parallel(given.jobs, return_as="generator_unordered")(work)
            for record in chain(done, not_run):
                store.append(record)
                recorded[Task.of(record)] = record
                print(record["dataset"], record["kind"], record["fold"], record["status"], f"{record['seconds']:.0f} s")
    finally:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
