"""``skldl fit``: train a model on a table and keep it in a file."""

import ast
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from cyclopts import Parameter

from skldl.cli._model_file import is_model
from skldl.cli._options import ColumnOptions, Flag, Reading, Source, check_targets
from skldl.cli._progress import working
from skldl.cli._resume import ResumeFolder
from skldl.cli._screen import note
from skldl.cli._wording import worded
from skldl.data import TableFiles
from skldl.data._formats import find_files, suffixes_with
from skldl.data._roles import open_table
from skldl.exceptions import Message, TableError
from skldl.persistence import save
from skldl.tabular import FitOptions, fit_table
from skldl.tabular._fit import is_read_in_chunks
from skldl.utils.spelling import split_list


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options(FitOptions):
    """The options of `fit_table`, of which some are written in another way on the command line."""

    __doc__ = FitOptions.__doc__
    values: Annotated[Any, Parameter(converter=lambda kind, tokens: _numbers(tokens[0].value))] = None
    intervals: Flag = False


def fit(
    table: Source,
    /,
    *more: Source,
    columns: ColumnOptions | None = None,
    reading: Reading | None = None,
    out: Path,
    model: str = "auto",
    settings: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    options: Options | None = None,
    seed: int = 0,
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
    reading
        How the files are written.
    out
        Where to write the model, such as model.skldl.
    model
        auto, see --preset; or a name, such as sa-bfgs, aa-knn, kernel-ridge, random-forest, pt-svm, mean (all of them:
        docs/algorithms.md); or the import path of an estimator, package.module:Class.
    settings
        A parameter of the named model, as in alpha=0.1; may be given several times.
    options
        How the model is chosen, what is kept with it, and how large tables are read. A fit in chunks that is stopped
        leaves its passes in OUT.resume, and the same command goes on from there.
    seed
        Seed of everything that is drawn.
    overwrite
        Overwrite an existing file that is not a model.
    """
    if out.is_dir() or not out.parent.is_dir():
        raise TableError(f"--out {out} is a folder, or is in a folder that does not exist. Name a file.")
    sources = find_files([table, *more], suffixes_with("reader"))
    check_targets([("--out", out)], sources, overwrite=overwrite or is_model(out))
    import skops  # noqa: F401 - if it is missing, fail before the training, not after

    columns, reading, options = columns or ColumnOptions(), reading or Reading(), options or Options()
    given = typed_settings(settings or [])
    in_chunks = bool(options.stream) or options.scheduler is not None
    opened = open_table(sources, columns, in_chunks=in_chunks, **reading.as_arguments())
    state = None
    if isinstance(opened, TableFiles) and is_read_in_chunks(opened, model, given, options):
        result_depends_on = {**asdict(columns), **asdict(options), **reading.as_arguments()}
        result_depends_on |= {"model": model, "settings": given, "seed": seed, "cluster": options.scheduler is not None}
        for name in ("cache", "keep_rows", "scheduler", "stream"):
            del result_depends_on[name]
        state = ResumeFolder(out, opened.files, result_depends_on)
    with working() as tell, state or nullcontext():
        fitted = fit_table(
            opened,
            columns,
            model=model,
            settings=given,
            options=options,
            random_state=seed,
            on_progress=tell,
            state=state,
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
