"""``skldl fit``: train a model on a table and keep it in a file."""

import ast
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from skldl.cli._fit_stream import fit_in_chunks, is_streamed
from skldl.cli._model_file import is_model
from skldl.cli._options import Columns, Flag, Name, Source, TextNgrams, check_targets, placed_in
from skldl.cli._progress import working
from skldl.cli._screen import note
from skldl.cli._wording import worded
from skldl.data._formats import find_files, suffixes_with
from skldl.exceptions import Message, TableError
from skldl.persistence import save
from skldl.tabular import fit_table
from skldl.utils.spelling import split_list


def fit(
    table: Source,
    /,
    *more: Source,
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
    stream: Flag = False,
    memory: str = "1GiB",
    cache: str = "10GiB",
    scheduler: Name = None,
    overwrite: Flag = False,
) -> None:
    """Train a model on a table and keep it in a file.

    The model is the most accurate that can be found (a pool of several, or one of them), or the one named. For
    instance:

        skldl fit faces.csv --labels 'emo_*' --out faces.skldl
        skldl fit faces.csv --labels 'emo_*' --preset fast --out quick.skldl
        skldl fit faces.csv --labels 'emo_*' --model sa-bfgs --out linear.skldl
        skldl fit big/*.parquet --labels 'r_*' --stream --out big.skldl

    Parameters
    ----------
    table
        A CSV or Parquet file, a .mat or .npz file with arrays of features and labels, or - for standard input; a folder
        of CSV or Parquet files, or a pattern such as 'big/*.parquet'.
    more
        Further files with the same columns, whose rows follow.
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
    stream
        Read the table in chunks, several times, so that it need not fit into memory; this is done without being asked
        for if the table is larger than an eighth of the free memory. The model is then sa-bfgs-cv, or one of sa-bfgs,
        sa-iis, pt-bayes and mean; --text columns are hashed; the estimate comes from rows that are held out. A run that
        is stopped leaves its passes in OUT.resume, and the same command goes on from there.
    memory
        Bound on memory for --stream, such as 800MiB or 4GiB: it sets how many rows are read at a time.
    cache
        Disk space for --stream: the encoded rows are kept in OUT.resume until the model is written, so that the files
        are parsed only three to five times. If they take more than this, or half of the free space, they are encoded in
        every pass. 0 keeps none.
    scheduler
        Address of a Dask scheduler, such as tcp://host:8786: its workers read the files, one file each, encode their
        rows, keep them in memory and fit the model. They must see the files under the same names. Implies --stream.
    overwrite
        Overwrite an existing file that is not a model.
    """
    if out.is_dir() or not out.parent.is_dir():
        raise TableError(f"--out {out} is a folder, or is in a folder that does not exist. Name a file.")
    sources = find_files([table, *more], suffixes_with("reader"))
    check_targets([("--out", out)], sources, overwrite=overwrite or is_model(out))
    import skops  # noqa: F401 - if it is missing, fail before the training, not after

    columns = columns or Columns()
    given = typed_settings(settings or [])
    in_memory = {
        "preset": preset,
        "budget": budget,
        "folds": folds,
        "splits": splits,
        "selection_rows": selection_rows,
        "intervals": intervals,
    }
    chosen: dict[str, Any] = {
        "model": model,
        "settings": given,
        "text_ngrams": text_ngrams,
        "values": _numbers(values),
        "random_state": seed,
        "keep_rows": keep_rows,
    }
    state = None
    if stream or scheduler is not None or is_streamed(sources, columns, model, given, in_memory):
        with working() as tell:
            fitted, state = fit_in_chunks(
                sources, columns, out, in_memory, tell, memory=memory, cache=cache, scheduler=scheduler, **chosen
            )
    else:
        with columns.open_all(sources) as source, working() as tell, placed_in(source):
            fitted = fit_table(
                partial(columns.dataset, source, splits=splits),  # a large table is not kept here
                **columns.as_arguments() | {"labels": columns.labels_in(source)},
                **chosen,
                preset=preset,
                budget=budget,
                folds=folds,
                selection_rows=selection_rows,
                intervals=intervals,
                source=source.name,
                on_progress=tell,
            )
    save(fitted.model, out, description=fitted.description)
    if state is not None:
        state.remove()
    for line in fitted.why:
        print(worded(line))
    for warning in fitted.warnings:
        note(Message("Note: ", warning))
    model, data = quote(str(out)), quote(str(table))  # the shell must take these commands as they are
    print(f"Written to {out}. Next: skldl predict {model} NEW.csv, skldl inspect {model}, skldl explain {model} {data}")


def typed_settings(settings: list[str]) -> dict[str, Any]:
    """Turn words such as ``alpha=0.1`` into values by name: numbers, truth values, lists, None, or else text.

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
