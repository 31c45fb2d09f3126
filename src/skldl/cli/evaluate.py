"""``skldl evaluate``: a cross-validated comparison of models on your own table, by the machinery of ``skldl bench``."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from skldl.cli._options import Columns, Name, Source
from skldl.cli._progress import watch
from skldl.cli._screen import note
from skldl.cli._study_output import need_the_packages_of_the_tests, new_folder, number_of_jobs, show_results
from skldl.data import from_table
from skldl.data._spelling import split_list
from skldl.exceptions import StudyError
from skldl.experiments import DatasetSpec, Study, run_study
from skldl.metrics import PAPER_MEASURES
from skldl.tabular import AUTO
from skldl.tabular._models import candidates_for, check_learners, limited_to

MOST_KEPT_ROWS = 20_000
"""The predictions of larger tables are not all kept: then there is no coverage to measure."""


def evaluate(
    table: Source,
    /,
    *,
    columns: Columns,
    models: Name = None,
    measures: Name = None,
    folds: int = 5,
    inner_folds: int = 3,
    repeats: int = 1,
    seed: int = 0,
    jobs: int = -1,
    out: Path | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Compare models on your own table by cross-validation, with the mean distribution as the yardstick.

    Each model chooses its settings inside the training part of each fold, so the numbers are what you can expect on
    new rows. A last table has the coverage and width of 90 % intervals. For instance:

        skldl evaluate faces.csv --labels 'emo_*'
        skldl evaluate faces.csv --labels 'emo_*' --groups person --models sa-bfgs

    Parameters
    ----------
    table
        A CSV or Parquet file, or - for standard input.
    columns
        Which of its columns is what.
    models
        Which models, separated by commas; by default sa-bfgs, aa-knn and forest. The mean is always there.
    measures
        Which measures, separated by commas; by default the six of the paper.
    folds
        Number of folds.
    inner_folds
        Number of folds inside a training part, by which settings are chosen.
    repeats
        How often all of it is done, each time with other folds.
    seed
        Seed of everything that is drawn.
    jobs
        Number of processes; -1 means one per processor. The numbers do not depend on it.
    out
        Folder for records and tables. By default a new folder here, named after the table.
    resume
        Continue the comparison in the folder --out, with the other options as before.
    """
    if resume and out is None:
        raise StudyError("--resume needs --out, the folder of the comparison to continue.")
    n_jobs = number_of_jobs(jobs)
    source = columns.open(table)
    name = "table" if table == "-" else Path(table).stem
    roles: dict[str, Any] = columns.as_arguments()
    dataset = from_table(source.read(), name=name, source=source.name, **roles)
    for line in dataset.notes:
        note(f"Note: {line}")
    n_rows = dataset.n_samples
    _check_folds(folds, inner_folds, n_rows if dataset.groups is None else len(np.unique(dataset.groups)))
    least = n_rows * (folds - 1) * (inner_folds - 1) // (folds * inner_folds)
    least = max(1, least - 1 if dataset.groups is None else least // 2)  # groups differ in size
    chosen = [candidate for word in split_list(models or "") for candidate in candidates_for(word)] or list(AUTO)
    check_learners(chosen)
    study = Study(
        datasets=[DatasetSpec(name, source=table, encode=True, data=dataset, **roles, **columns.as_reading())],
        candidates=[limited_to(candidate, least) for candidate in chosen],
        name=name,
        title=f"Models compared on {source.name}",
        measures=split_list(measures or "") or tuple(PAPER_MEASURES),
        folds=folds,
        inner_folds=inner_folds,
        repeats=repeats,
        random_state=seed,
    )
    need_the_packages_of_the_tests()
    folder = out or new_folder(name)
    with watch(n_jobs) as on_progress:
        results = run_study(
            study,
            out=folder,
            resume=resume,
            n_jobs=n_jobs,
            on_progress=on_progress,
            keep_predictions="all" if n_rows <= MOST_KEPT_ROWS else "sample",
        )
    return show_results(results, folder)


def _check_folds(folds: int, inner_folds: int, n_units: int) -> None:
    if min(folds, inner_folds) < 2:
        raise StudyError("At least 2 folds are needed, outside and inside.")
    if n_units < folds or n_units - -(-n_units // folds) < inner_folds:
        raise StudyError(
            f"{n_units} rows (or groups) are too few for {folds} folds with {inner_folds} inside. Use fewer --folds "
            "and --inner-folds, or more data."
        )
