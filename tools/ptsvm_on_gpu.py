"""Run the tasks of PT-SVM in a study of ``studies/`` with its linear systems on a GPU.

``python tools/ptsvm_on_gpu.py tkde2016-nested --jobs 14`` writes records to ``studies/unfinished/tkde2016-nested``,
where ``make study`` continues with the other algorithms. It needs torch with CUDA. Several processes share the GPU;
``nvidia-cuda-mps-control -d`` lets them use it at the same time. The method and its stopping rule are those of
`skldl.transformation._newton_svm`, in double precision: only products with the kernel matrix and the systems of one
Newton step are computed there, those of similar size together.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).parent))
from run_studies import RUNS, STUDIES

from skldl.experiments import plan_study, run
from skldl.experiments.header import open_store
from skldl.experiments.store import FileStore, Record
from skldl.experiments.tasks import Call, Task
from skldl.transformation import _pair_model
from skldl.transformation._kernel import KernelMatrix, System, solve_regularised

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FEW_ROWS = 64
"""Systems of fewer rows are solved on the host."""
SIMILAR = 0.8
"""Systems are solved together if none has less than this share of the rows of the largest."""
MOST_NUMBERS = 2**27
"""Numbers in the matrices of systems that are solved together, 1 GiB."""
KEEP = "predictions"


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
        factors, failed = torch.linalg.cholesky_ex(matrices)
        solved, failed = torch.cholesky_solve(columns, factors).cpu().numpy(), failed.cpu().numpy()
        for system, solution, fault in zip(systems, solved, failed, strict=True):
            yield None if fault else solution[: len(system.rows)]


def batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Places of systems that are solved together: of similar size, and not too many."""
    batch: list[int] = []
    for place in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        if batch:
            largest = sizes[batch[0]]
            if sizes[place] < SIMILAR * largest or (len(batch) + 1) * largest**2 > MOST_NUMBERS:
                yield batch
                batch = []
        batch.append(place)
    if batch:
        yield batch


def run_there(call: Call) -> Record:
    """Run a task in this process, with kernels on the device."""
    _pair_model.KernelMatrix = DeviceKernel  # type: ignore[misc]  # for this process
    return call.run()


def main(arguments: list[str] | None = None) -> int:
    """Run what is left of the tasks of PT-SVM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[run_.name for run_ in RUNS])
    parser.add_argument("--datasets", nargs="*", help="which; all by default")
    parser.add_argument("--data", default=None, help="folder with the data files (SKLDL_DATA by default)")
    parser.add_argument("--out", type=Path, default=None, help="folder for the records; studies/unfinished/NAME")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    given = parser.parse_args(arguments)
    study = next(run_ for run_ in RUNS if run_.name == given.name).load()
    plan = plan_study(study, data_home=given.data)
    out = given.out or STUDIES / "unfinished" / given.name
    store = FileStore(out, resume=(out / "records.jsonl").exists())
    try:
        open_store(store, plan.study, plan.datasets, plan.rules(KEEP), plan.missing, out)
        recorded = {Task.of(r): r for r in store.records if r["kind"] in ("selection", "evaluation")}
        for wave in plan.waves:
            tasks = [
                task
                for task in wave
                if task.candidate == "PT-SVM"
                and task not in recorded
                and (not given.datasets or task.dataset in given.datasets)
            ]
            not_run: list[Record] = []  # where no setting could be chosen
            calls = run._calls(plan, tasks, recorded, KEEP, not_run)
            done = Parallel(given.jobs, return_as="generator_unordered")(delayed(run_there)(call) for call in calls)
            for record in chain(done, not_run):
                store.append(record)
                recorded[Task.of(record)] = record
                print(record["dataset"], record["kind"], record["fold"], record["status"], f"{record['seconds']:.0f} s")
    finally:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
