"""``skldl fit``: train a model on a table and keep it in a file."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from skldl.cli._options import Columns, Name, Source
from skldl.cli._screen import note, status
from skldl.exceptions import TableError
from skldl.persistence import save
from skldl.tabular import Table, fit_table
from skldl.tabular._choice import FOLDS


def fit(
    table: Source,
    /,
    *,
    columns: Columns,
    out: Path,
    model: str = "auto",
    settings: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    values: Name = "",
    folds: int = FOLDS,
    seed: int = 0,
) -> None:
    """Train a model on a table and keep it in a file.

    The model is the best of a few by cross-validation, or the one named. For instance:

        skldl fit faces.csv --labels 'emo_*' --out faces.skldl
        skldl fit faces.csv --labels 'emo_*' --model sa-bfgs --out linear.skldl

    Parameters
    ----------
    table
        A CSV or Parquet file, or - for standard input.
    columns
        Which of its columns is what.
    out
        Where to write the model, such as model.skldl.
    model
        auto (mean, sa-bfgs, aa-knn, forest: the best of them), or a name: pt-bayes, pt-svm, aa-knn, aa-bp, sa-iis,
        sa-bfgs, forest, mean; or the import path of an estimator, package.module:Class.
    settings
        A parameter of the named model, as in alpha=0.1; may be given several times.
    values
        Numbers that the labels stand for, as in 1,2,3: the predictions then have an expected value. By default the
        names of the labels, if all are numbers.
    folds
        Number of folds of the cross-validation.
    seed
        Seed of everything that is drawn.
    """
    if out.is_dir() or not out.parent.is_dir():
        raise TableError(f"--out {out} is a folder, or lies in a folder that does not exist. Name a file.")
    import skops  # noqa: F401 - if it is missing, say so before the training, not after

    source = Table(table)
    with status() as tell:
        fitted = fit_table(
            source.read(),
            model=model,
            settings=settings or [],
            values=values,
            folds=folds,
            seed=seed,
            source=source.name,
            on_progress=tell,
            **columns.as_arguments(),  # type: ignore[arg-type]
        )
    save(fitted.model, out, description=fitted.description)
    for line in fitted.why:
        print(line)
    for warning in fitted.warnings:
        note(f"Note: {warning}")
    print(f"Written to {out}. Next: skldl predict {out} NEW.csv, skldl inspect {out}, skldl explain {out} {table}")
