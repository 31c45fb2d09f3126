"""``skldl evaluate``: compare models on a table by cross-validation, as a study of one dataset."""

from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from skldl.cli._options import ColumnOptions, Flag, Name, Reading, Source, naming_formats
from skldl.cli._screen import note
from skldl.cli._study_output import import_test_packages, new_folder, number_of_jobs, run_and_show
from skldl.data._formats import holds_arrays
from skldl.data._roles import open_file, read_table
from skldl.exceptions import Message, StudyError
from skldl.experiments import DatasetSpec, Study
from skldl.experiments.loading import load_datasets, read_splits
from skldl.metrics import PAPER_MEASURES
from skldl.tabular import AUTO
from skldl.tabular._models import candidates_for, limited_to
from skldl.utils.missing import has_gaps
from skldl.utils.spelling import split_list

LEARN_FROM_GAPS = ("sa-bfgs-cv", "incomldl", "winldl")
"""The default candidates where label cells are empty."""
MAX_KEPT_ROWS = 20_000
"""Of larger tables only a sample of the predictions is kept, so that coverage cannot be measured."""


@naming_formats
def evaluate(
    table: Source,
    /,
    *,
    columns: ColumnOptions | None = None,
    reading: Reading | None = None,
    candidates: Annotated[Name, Parameter(name=("--candidates", "--models"))] = None,
    measures: Name = None,
    folds: int = 5,
    splits: Name = None,
    inner_folds: int = 3,
    repeats: int = 1,
    seed: int = 0,
    jobs: int = -1,
    out: Path | None = None,
    resume: Flag = False,
) -> int:
    """Compare models on your own table by cross-validation, with the mean distribution as the baseline.

    Each model chooses its settings inside the training part of each fold, so that the numbers are estimates for new
    rows. A last table shows the coverage and width of 90 % intervals. For instance:

        skldl evaluate faces.csv --labels 'emo_*'
        skldl evaluate faces.csv --labels 'emo_*' --groups person --candidates sa-bfgs
        skldl evaluate texts.csv --kind votes --labels says --item id --annotator who --text text

    Parameters
    ----------
    table
        A table ({tables}), a file with arrays of features and labels ({arrays}), or - for standard input.
    columns
        The roles of its columns. For votes in rows (--item, --annotator) the report shows the raters.
    reading
        How the file is written.
    candidates
        Which models, separated by commas; by default sa-bfgs, aa-knn and forest, and where label cells are
        empty sa-bfgs-cv, incomldl and winldl, which learn from such rows. The mean is always included.
    measures
        Which measures, separated by commas; by default the six of the paper.
    folds
        Number of folds.
    splits
        Take the folds from this file: a table with a header and one line for each row, in which each column is one
        repeat and names the fold in which the row is tested; an empty cell, or train, means never.
    inner_folds
        Number of folds inside a training part, by which settings are chosen.
    repeats
        Number of repetitions, each with other folds.
    seed
        Seed of all random numbers.
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
    name = "table" if table == "-" else Path(table).stem
    columns, reading = columns or ColumnOptions(), reading or Reading()
    roles: dict[str, Any] = asdict(columns) | reading.as_arguments()
    roles["labels"] = roles["labels"] or None
    spec = DatasetSpec(name, source=table, encode=True, splits=splits, **roles)
    with open_file(table, columns, **reading.as_arguments()) as source:
        if not holds_arrays(table):
            data = read_table(source, columns, name=name)
            spec = replace(spec, data=data if splits is None else data.changed(splits=read_splits(splits, data)))
    spec = load_datasets([spec])[0][0]
    dataset = spec.data
    assert dataset is not None
    for line in dataset.notes:
        note(Message("Note: ", line))
    n_rows = dataset.n_samples
    if dataset.splits is None:
        _check_folds(folds, inner_folds, n_rows if dataset.groups is None else len(np.unique(dataset.groups)))
        min_rows = n_rows * (folds - 1) * (inner_folds - 1) // (folds * inner_folds)
    else:
        largest = max(int(np.bincount(column[column >= 0]).max()) for column in dataset.splits.T)
        min_rows = (n_rows - largest) * (inner_folds - 1) // inner_folds
    # The smallest inner training part: folds differ by a row, folds of groups by more; half is on the safe side.
    min_rows = max(1, min_rows - 1 if dataset.groups is None else min_rows // 2)
    names = split_list(candidates or "")
    if not names and has_gaps(dataset.D):
        names = list(LEARN_FROM_GAPS)
        note(f"Note: the models are {', '.join(names)}, which learn from rows with empty label cells.")
    named = [candidate for word in names for candidate in candidates_for(word)] or AUTO
    chosen = list({candidate.name: candidate for candidate in named}.values())  # auto stands for several names
    study = Study(
        datasets=[spec],
        candidates=[limited_to(candidate, min_rows) for candidate in chosen],
        name=name,
        title=f"Models compared on {source.name}",
        measures=split_list(measures or "") or tuple(PAPER_MEASURES),
        folds=folds,
        inner_folds=inner_folds,
        repeats=repeats,
        random_state=seed,
    )
    import_test_packages()
    folder = out or new_folder(name)
    again = f"skldl evaluate with the options of before, --resume and --out {quote(str(folder))}"
    keep = "all" if n_rows <= MAX_KEPT_ROWS else "sample"
    if keep == "sample":
        note(f"Note: the table has more than {MAX_KEPT_ROWS:,} rows, so coverage and width of intervals are left out.")
    retry = f"skldl bench --resume --retry-failed --keep-predictions {keep} --out {quote(str(folder))}"
    return run_and_show(study, folder, again, retry, n_jobs=n_jobs, resume=resume, keep_predictions=keep)


def _check_folds(folds: int, inner_folds: int, n_units: int) -> None:
    if min(folds, inner_folds) < 2:
        raise StudyError("At least 2 folds are needed, outside and inside.")
    if n_units < folds or n_units - -(-n_units // folds) < inner_folds:
        raise StudyError(
            f"{n_units} rows (or groups) are too few for {folds} folds with {inner_folds} inside. Use fewer --folds "
            "and --inner-folds, or more data."
        )
