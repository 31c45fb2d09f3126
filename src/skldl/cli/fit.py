"""``skldl fit``: train a model on a table and keep it in a file."""

import ast
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from skldl.cli._model_file import is_model
from skldl.cli._options import Columns, Flag, Name, Source, TextNgrams, check_targets, words
from skldl.cli._progress import working
from skldl.cli._screen import note
from skldl.data._spelling import split_list
from skldl.exceptions import TableError
from skldl.persistence import save
from skldl.tabular import fit_table


def fit(
    table: Source,
    /,
    *,
    columns: Columns | None = None,
    out: Path,
    model: str = "auto",
    settings: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    preset: Literal["best", "fast"] | None = None,
    budget: Name = None,
    values: Name = None,
    text_ngrams: TextNgrams = "auto",
    folds: int | None = None,
    splits: Name = None,
    selection_rows: int | None = None,
    intervals: Flag = False,
    seed: int = 0,
    keep_rows: int | None = None,
    overwrite: Flag = False,
) -> None:
    """Train a model on a table and keep it in a file.

    The model is the most accurate that can be found (a pool of several, or one of them), or the one named. For
    instance:

        skldl fit faces.csv --labels 'emo_*' --out faces.skldl
        skldl fit faces.csv --labels 'emo_*' --preset fast --out quick.skldl
        skldl fit faces.csv --labels 'emo_*' --model sa-bfgs --out linear.skldl

    Parameters
    ----------
    table
        A CSV or Parquet file, a .mat or .npz file with arrays of features and labels, or - for standard input.
    columns
        Which of its columns is what.
    out
        Where to write the model, such as model.skldl.
    model
        auto, see --preset; or a name, such as sa-bfgs, aa-knn, kernel-ridge, random-forest, pt-svm, mean (all of them:
        docs/algorithms.md); or the import path of an estimator, package.module:Class.
    settings
        A parameter of the named model, as in alpha=0.1; may be given several times.
    preset
        What auto does: best (a pool of all kinds of models, or one of them if the pool gains less than 1 %) or fast
        (the best of four quick models). By default best from 30 to 50,000 rows, else fast.
    budget
        Time for the preset best, such as 90s or 10min; members that would take longer are left out.
    values
        Numbers that the labels stand for, as in 1,2,3: the predictions then have an expected value. By default the
        names of the labels, if all are numbers.
    text_ngrams
        What --text columns are cut into: words (single ones and pairs) or characters (pieces of two to four letters);
        auto takes words for prose and characters for single words.
    folds
        Number of folds of the cross-validation, by default 5; for --preset fast and named models.
    splits
        Take the folds from this file: a table with a header and one line for each row, whose first column names the
        fold in which the row is tested; an empty cell, or train, means never. For --preset fast and named models.
    selection_rows
        Rows on which the model is chosen, by default 5000, drawn at random where the table has more; it then learns
        from all rows. For --preset fast and named models.
    intervals
        Keep a quarter of the rows (with --groups, of the groups) for calibration, so that skldl predict --level can
        give intervals; the model learns from the others.
    seed
        Seed of everything that is drawn.
    keep_rows
        Number of rows of the table to keep in the model file, so that skldl serve can show the nearest of them; by
        default none. Everyone who has the file can read them.
    overwrite
        Overwrite an existing file that is not a model.
    """
    if out.is_dir() or not out.parent.is_dir():
        raise TableError(f"--out {out} is a folder, or is in a folder that does not exist. Name a file.")
    check_targets([("--out", out)], [table], overwrite=overwrite or is_model(out))
    import skops  # noqa: F401 - if it is missing, fail before the training, not after

    columns = columns or Columns()
    with columns.open(table) as source, working() as tell:
        fitted = fit_table(
            partial(columns.dataset, source, splits=splits),  # a large table is not kept here
            columns.labels_in(source),
            kind=columns.kind,
            weight=columns.weight,
            groups=columns.groups,
            drop=words(columns.drop),
            text=words(columns.text),
            categories=words(columns.categories),
            model=model,
            settings=typed_settings(settings or []),
            preset=preset,
            budget=budget,
            values=_numbers(values),
            text_ngrams=text_ngrams,
            folds=folds,
            selection_rows=selection_rows,
            intervals=intervals,
            random_state=seed,
            source=source.name,
            on_progress=tell,
            keep_rows=keep_rows,
        )
    save(fitted.model, out, description=fitted.description)
    for line in fitted.why:
        print(line)
    for warning in fitted.warnings:
        note(f"Note: {warning}")
    print(f"Written to {out}. Next: skldl predict {out} NEW.csv, skldl inspect {out}, skldl explain {out} {table}")


def typed_settings(settings: list[str]) -> dict[str, Any]:
    """Turn words such as ``alpha=0.1`` into values by name.

    Parameters
    ----------
    settings : list of str
        As typed after ``--set``.

    Returns
    -------
    dict
        The values: numbers, truth values, lists, None, or else text.

    Examples
    --------
    >>> typed_settings(["alpha=0.1", "solver=bfgs", "fit_intercept=true"])
    {'alpha': 0.1, 'solver': 'bfgs', 'fit_intercept': True}
    """
    values = {}
    for setting in settings:
        name, sign, text = (part.strip() for part in setting.partition("="))
        if not (name and sign and text):
            raise TableError(f"--set {setting}: write it as name=value, such as alpha=0.1.")
        values[name] = _value(text)
    return values


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.casefold() in words:
        return words[text.casefold()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a word, such as tied


def _numbers(text: str | None) -> list[float] | None:
    if not text:
        return None
    try:
        return [float(word) for word in split_list(text)]
    except ValueError:
        raise TableError(f"--values {text}: write numbers separated by commas, one for each label.") from None
