"""`fit_table`: a fitted pipeline for a table, with a description of its choice and its quality.

`_fit_in_memory` fits tables in memory and files that fit into it; `skldl.tabular._chunked_fit` fits files that are read
in chunks. The decision depends on the options and the size of the files, never on the free memory, so that the same
call makes the same kind of model on every machine.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from skldl.data import Columns, Dataset, TableFile, TableFiles, from_table, label_values
from skldl.data._dataset import rows_to_judge_by
from skldl.data._parquet import release_unused_memory
from skldl.data._roles import open_table, read_table, roles_in
from skldl.data._tables import ArrayTable
from skldl.ensemble._auto import BUDGET
from skldl.exceptions import DataError, Message, Parameter, TableError
from skldl.names import algorithm_titles
from skldl.selection._fitting import MODEL_STEP, fit_arguments, with_encoder
from skldl.tabular._choice import (
    FOLDS,
    MAX_ROWS,
    MIN_ROWS,
    SELECTION_ROWS,
    Choice,
    choose_model,
    fit_pool,
    reasons,
    warnings_on_choice,
    why_pool,
)
from skldl.tabular._chunked_fit import GIB, FitState, chunk_candidate, fit_in_chunks
from skldl.tabular._description import MAX_HASHED_ROWS, Made, described_model, kept_rows, row_hashes
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._encoder_fit import check_text_ngrams
from skldl.tabular._models import candidates_for, is_auto, quick_candidates
from skldl.tabular._uncertain_fit import add_uncertainty, keep_calibration_rows
from skldl.utils.missing import has_gaps
from skldl.utils.parameters import check_value

MAX_BYTES_IN_MEMORY = 2 * GIB
"""Larger files are read into memory only with ``stream=False``; chosen by hand, for computers with 16 GB."""
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of `fit_table` for the choice of the model, the content of its file, and the reading of large tables.

    Parameters
    ----------
    preset : {"best", "fast"}, default=None
        Models that are tried for auto: best (a pool of all kinds of models, or one of them if the pool gains less than
        1 %) or fast (the best of four quick models; of three, without the forest, if the table has more than 5 million
        cells). By default best from 30 to 50,000 rows, else fast.
    budget : float or str, default=None
        Time for the preset best, in seconds or with a unit, such as 90s or 10min; members that would take longer are
        left out.
    values : sequence of float, default=None
        Numbers that the labels represent, such as 1,2,3: predictions then have an expected value. By default the names
        of the labels, if all are numbers.
    folds : int, default=None
        Number of folds of the cross-validation, by default 5; for the preset fast and named models.
    splits : str or path, default=None
        File with the folds: a table with a header and one line for each row, whose first column is the fold in which
        the row is tested; an empty cell, or train, means never. For the preset fast and named models.
    selection_rows : int, default=None
        Maximum number of rows for the choice of the model, by default 5000, drawn at random; the model is then fitted
        to all rows. For the preset fast and named models.
    intervals : bool, default=False
        Use a quarter of the rows (with groups, of the groups) for calibration, so that predictions can have intervals;
        the model is fitted to the others.
    keep_rows : int, default=None
        Number of rows of the table to store in the model file, so that the service can show the nearest of them; by
        default none. Everyone who has the file can read them.
    stream : bool, default=None
        Read the files of the table in chunks, several times, so that they need not fit into memory. The model is then
        sa-bfgs-cv, or the named one, which must support chunks; text columns are hashed; the estimate is computed on
        rows that are held out. By default files of up to 2 GiB (for Parquet unpacked) are read into memory; larger
        files are read in chunks if the named model supports them, and are an error otherwise.
    memory : int or str, default="1GiB"
        Bound on memory for a table in chunks, such as 800MiB or 4GiB: it determines the number of rows in a chunk.
    cache : int or str, default="10GiB"
        Maximum disk space for a table in chunks: the encoded rows are stored with the state of the fit until the model
        is written, so that the files are parsed only three to five times. If they take more than this, or than half of
        the free space, they are encoded in every pass. 0 stores none.
    scheduler : str, default=None
        Address of a Dask scheduler, such as tcp://host:8786: its workers read the files in chunks, one file each,
        encode their rows, keep them in memory and fit the model. The files must have the same paths on all workers.

    Examples
    --------
    >>> from skldl.tabular import FitOptions
    >>> FitOptions(preset="fast", folds=3).folds
    3
    """

    preset: Literal["best", "fast"] | None = None
    budget: float | str | None = None
    values: Sequence[float] | None = None
    folds: int | None = None
    splits: str | None = None
    selection_rows: int | None = None
    intervals: bool = False
    keep_rows: int | None = None
    stream: bool | None = None
    memory: int | str = "1GiB"
    cache: int | str = "10GiB"
    scheduler: str | None = None


NOT_IN_CHUNKS = {
    "preset": Message("one model is fitted, see ", Parameter("model")),
    "budget": Message("one model is fitted, see ", Parameter("model")),
    "folds": Message("the folds of SA-BFGS-CV are set by ", Parameter("settings", {"cv": 5})),
    "splits": "rows are held out at random",
    "selection_rows": "the model learns from all rows but those that are held out",
    "intervals": "no rows are kept for calibration",
}
"""Options that are not available for a fit in chunks, with the reasons."""


@dataclass(frozen=True)
class FittedTable:
    """A model of a table.

    Attributes
    ----------
    model : Pipeline
        Encoder and estimator, fitted: ``model.predict(table)`` returns distributions.
    description : dict
        Description of the model in plain values, which `skldl.save` stores and ``skldl inspect`` shows.
    choice : Choice
        The candidates, their scores and the estimate.
    why : list of str
        The reasons for the choice, as sentences.
    warnings : list of str
        Notes for the user.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import FitOptions, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs", options=FitOptions(folds=2))
    >>> fitted.model.predict(table).shape, fitted.description["labels"]
    ((40, 2), ['no', 'yes'])
    """

    model: Pipeline
    description: dict[str, Any]
    choice: Choice
    why: list[str]
    warnings: list[str]


def fit_table(
    table: Any,
    columns: Columns | str | Sequence[str] | None = None,
    *,
    model: str = "auto",
    settings: Mapping[str, Any] | None = None,
    options: FitOptions | None = None,
    random_state: int = 0,
    on_progress: Progress | None = None,
    state: FitState | None = None,
) -> FittedTable:
    """Fit a model to a table, and estimate its quality on new rows.

    Parameters
    ----------
    table : DataFrame, Dataset, str, path, sequence of paths, TableFile or TableFiles
        Features and labels: in memory, or in files. Files can be larger than the memory, see ``stream`` in
        `FitOptions`.
    columns : Columns, str or sequence of str, default=None
        Roles of the columns; names or patterns without `Columns`, such as ``"emo_*"``, are the label columns. Not
        needed for a dataset of `skldl.data.from_table`.
    model : str, default="auto"
        Name of a model in any spelling, or "auto" to choose the most accurate one, see ``preset`` in `FitOptions`.
    settings : mapping, default=None
        Hyper-parameters of the named model, such as ``{"alpha": 0.1}``.
    options : FitOptions, default=None
        Options for the choice of the model, the content of its file, and the reading of large tables.
    random_state : int, default=0
        Seed of all random draws.
    on_progress : callable, default=None
        Called with a description of each step.
    state : FitState, default=None
        Storage of the results of passes over a table in chunks, so that an interrupted fit can be continued.

    Returns
    -------
    FittedTable
        The fitted pipeline and its description. With ``intervals`` among the options the pipeline has the attributes
        ``intervals_`` and, if the labels are votes, ``true_intervals_`` for the distribution from which they are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import FitOptions, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs", options=FitOptions(folds=2))
    >>> fitted.model.predict(pd.DataFrame({"x": [20]})).round(1)
    array([[0.6, 0.4]])
    >>> fitted.choice.beats_mean
    True
    """
    options = options or FitOptions()
    if columns is None and isinstance(table, Dataset):
        columns = table.columns or Columns(table.label_names)
    if isinstance(table, str | os.PathLike | list | tuple):
        sources = [os.fspath(source) for source in (table if isinstance(table, list | tuple) else [table])]
        given = columns if isinstance(columns, Columns) else Columns(columns or ())
        table = open_table(sources, given, in_chunks=_asks_for_chunks(options))
    columns = roles_in(table, columns or ())
    _check_values(options, columns, random_state)
    candidates_for(model, settings)  # raises errors about the model before the table is read
    report = on_progress or (lambda text: None)
    if isinstance(table, TableFiles) and is_read_in_chunks(table, model, settings, options):
        made = fit_in_chunks(table, columns, model, settings, options, random_state, report, state)
        if not options.stream:
            size = f"{table.n_bytes / GIB:.1f} GiB"
            made.notes.insert(
                0, Message(f"The table has {size}: it was read in chunks, as with ", Parameter("stream", True), ".")
            )
    else:
        _check_in_memory(table, options)
        with table.naming_rows() if isinstance(table, TableFiles) else nullcontext():
            # no variable refers to the dataset here, so that its table can be freed after it is encoded
            made = _fit_in_memory(
                _as_dataset(table, columns, options), columns, model, settings, options, random_state, report
            )
    description = {
        "source": made.source,
        "rows": made.n_rows,
        "labels": made.label_names,
        "values": label_values(made.label_names, options.values),
        "kind": columns.kind,
        "label_columns": made.label_columns,
        "roles": {"weight": columns.weight or "", "groups": columns.groups or "", "dropped": _listed(columns.drop)},
        "training_rows": "",
        "typical": dict(made.pipeline[0].typical_),
        **made.rows,
        **described_model(made.pipeline, made.choice, made.why, made.floor),
        "intervals": made.n_calibration,
    }
    if made.n_held_out is not None:
        description["held_out"] = made.n_held_out
    return FittedTable(made.pipeline, description, made.choice, made.why, made.notes)


def is_read_in_chunks(table: TableFiles, model: str, settings: Mapping[str, Any] | None, options: FitOptions) -> bool:
    """Whether files are read in chunks, from the options and the size of the files.

    It is an error if they should be read in chunks, but the model or an option needs all rows in memory.
    """
    asked = _asks_for_chunks(options)
    if options.stream is False or not (asked or table.n_bytes > MAX_BYTES_IN_MEMORY):
        return False
    place: tuple[str | Parameter, ...] = ()
    if not asked:
        place = (
            f"{table.name} has {table.n_bytes / GIB:.1f} GiB; tables of more than {MAX_BYTES_IN_MEMORY / GIB:g} GiB "
            "are read in chunks, or into memory with ",
            Parameter("stream", False),
            ". ",
        )
    for name, reason in NOT_IN_CHUNKS.items():
        if getattr(options, name) not in (None, False):
            raise TableError(
                *place,
                Parameter(name),
                " has no part in a fit that reads the table in chunks: ",
                reason,
                ". Leave it out, or fit in memory, with ",
                Parameter("stream", False),
                ".",
            )
    # the candidates of auto need all rows; another model is fitted only if the user sets stream=True
    if not asked and is_auto(model, settings):
        raise TableError(
            *place,
            Parameter("model", "auto"),
            f" compares models that need all rows in memory. Name one that can be fitted in chunks "
            f"({', '.join(algorithm_titles('chunks'))}), or set ",
            Parameter("stream", True),
            ", which fits SA-BFGS-CV.",
        )
    try:
        chunk_candidate(model, settings)
    except DataError as error:
        raise type(error)(*place, *error.parts) from error
    return True


def _asks_for_chunks(options: FitOptions) -> bool:
    return bool(options.stream) or options.scheduler is not None


def _check_in_memory(table: Any, options: FitOptions) -> None:
    """Raise an error if the options request chunks for a table in memory or a source that can be read only once."""
    if not _asks_for_chunks(options):
        return
    raise TableError(
        "This table is in memory, or can be read only once: ",
        Parameter("stream", True),
        " is for paths of files, or TableFiles.",
    )


def _as_dataset(table: Any, columns: Columns, options: FitOptions) -> Dataset:
    """Read the table as a dataset, with the splits in the options."""
    if isinstance(table, Dataset):
        dataset = table
        if dataset.sample_weight is not None and not dataset.sample_weight.all():
            dataset = dataset.take(np.flatnonzero(dataset.sample_weight))  # from_table leaves out rows without weight
    elif isinstance(table, TableFile | TableFiles | ArrayTable):
        dataset = read_table(table, columns)
    else:
        dataset = from_table(table, columns)
    if options.splits is None:
        return dataset
    from skldl.experiments.loading import read_splits

    return dataset.changed(splits=read_splits(os.fspath(options.splits), dataset))


def _fit_in_memory(
    dataset: Dataset,
    columns: Columns,
    model: str,
    settings: Mapping[str, Any] | None,
    options: FitOptions,
    random_state: int,
    report: Progress,
) -> Made:
    """Choose a model by cross-validation, and fit it to all rows."""
    encoder = TableEncoder(text=columns.text, categories=columns.categories, text_ngrams=columns.text_ngrams)
    encoder.know_columns(dataset.X)  # before rows are kept for calibration, and before folds are made
    label_columns = list(dataset.label_names if dataset.columns is None else dataset.columns.labels)
    dataset, calibration = keep_calibration_rows(dataset, options.intervals, random_state)
    label_names = list(dataset.label_names)
    label_values(label_names, options.values)  # raises errors before the fit
    preset, budget = options.preset, options.budget
    if has_gaps(dataset.D):
        asked = model
        dataset, model, settings = _with_gaps(
            dataset, model, settings, wants_pool=preset == "best" or budget is not None
        )
        preset = None if model != asked else preset
    n_rows = dataset.n_samples
    chosen_preset = _preset(model, preset, budget, n_rows)
    notes = list(dataset.notes)
    if chosen_preset == "best":
        _check_no_folds(options, dataset)
        pipeline, choice, without = fit_pool(
            dataset, encoder, budget=budget, random_state=random_state, on_progress=report
        )
        rows = _rows_of(pipeline[0], dataset, options.keep_rows, random_state)
        why = why_pool(choice, pipeline.named_steps[MODEL_STEP], without, grouped=columns.groups is not None)
    else:
        candidates = candidates_for(model, settings)
        if chosen_preset == "fast":
            candidates, left_out = quick_candidates(n_rows, dataset.n_features)
            notes += left_out
        choice = choose_model(
            dataset,
            candidates,
            encoder,
            folds=options.folds or FOLDS,
            selection_rows=options.selection_rows or SELECTION_ROWS,
            random_state=random_state,
            on_progress=report,
        )
        report(f"fit of {choice.best.candidate.name} on all rows")
        pipeline = with_encoder(choice.best.candidate.make(choice.best.setting, random_state), encoder)
        features = pipeline[0].fit(dataset.X).transform(dataset.X)
        rows = _rows_of(pipeline[0], dataset, options.keep_rows, random_state)
        dataset = dataset.changed(X=features)  # the table is not needed any more, and may be large
        release_unused_memory()
        arguments = fit_arguments(pipeline[-1], dataset.sample_weight, dataset.groups)
        pipeline[-1].fit(features, pd.DataFrame(dataset.target, columns=label_names), **arguments)
        why = reasons(choice, auto=is_auto(model), n_rows=n_rows, grouped=columns.groups is not None)
    lines, floor = add_uncertainty(pipeline, dataset, calibration, choice.estimate, random_state)
    notes += warnings_on_choice(choice, n_rows, pool=chosen_preset == "best")
    return Made(
        pipeline,
        choice,
        [*why, *lines],
        notes,
        dataset.source,
        label_names,
        label_columns,
        n_rows,
        rows,
        floor,
        n_calibration=0 if calibration is None else calibration.n_samples,
    )


def _check_values(options: FitOptions, columns: Columns, random_state: int) -> None:
    """Raise an error for options that are not valid for any table."""
    if options.folds is not None and options.folds < 2:
        raise DataError(
            Parameter("folds", options.folds), ": at least 2 are needed to test a model on rows that it has not seen."
        )
    if options.selection_rows is not None and options.selection_rows < 2:
        raise DataError(
            Parameter("selection_rows", options.selection_rows), ": at least 2 rows are needed to choose a model."
        )
    if random_state < 0:
        raise DataError(Parameter("random_state", random_state), " must be 0 or more.")
    check_text_ngrams(columns.text_ngrams)
    check_value("budget", options.budget, BUDGET)


def _check_no_folds(options: FitOptions, dataset: Dataset) -> None:
    """Raise an error for options that the preset "best" does not use."""
    for name in ("folds", "selection_rows"):
        if getattr(options, name) is not None:
            raise DataError(
                Parameter(name, getattr(options, name)),
                " has no part in ",
                Parameter("preset", "best"),
                ". Use ",
                Parameter("preset", "fast"),
                ", or leave it out.",
            )
    if dataset.splits is not None:
        raise DataError(
            Parameter("splits"),
            " has no effect with ",
            Parameter("preset", "best"),
            ", which makes its own splits. Set ",
            Parameter("preset", "fast"),
            ", or name a model.",
        )


def _rows_of(encoder: TableEncoder, dataset: Dataset, keep_rows: int | None, seed: int) -> dict[str, Any]:
    """Training rows for the description: sorted hashes, and on request the rows themselves."""
    rows: dict[str, Any] = {}
    if dataset.n_samples <= MAX_HASHED_ROWS:
        rows["training_rows"] = "".join(sorted(row_hashes(encoder, dataset.X, dataset.D)))
    if keep_rows is not None:
        rows["kept_rows"] = kept_rows(dataset, encoder.kinds_, keep_rows, seed)
    return rows


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _with_gaps(
    dataset: Dataset, model: str, settings: Mapping[str, Any] | None, *, wants_pool: bool
) -> tuple[Dataset, str, Mapping[str, Any] | None]:
    """The rows and the model for a table with empty label cells; for auto, a model that supports missing degrees."""
    if model.casefold() != "auto":
        missing = (settings or {}).get("missing", "auto")
        dataset = dataset if missing == "auto" else dataset.changed(missing=missing)
        return rows_to_judge_by(dataset), model, settings
    if wants_pool:
        raise DataError(
            "Some label cells are empty, and the members of ",
            Parameter("preset", "best"),
            " need every degree. Leave out ",
            Parameter("preset"),
            " and ",
            Parameter("budget"),
            ", name a model that learns from what was observed (sa-bfgs-cv, incomldl), or fill the "
            "table with skldl.incomplete.complete.",
        )
    note = f"SA-BFGS-CV was taken, which learns from the degrees that were observed (missing={dataset.missing!r})."
    if dataset.missing == "renormalised":  # with sums below one, the degrees can only be true degrees
        note = Message(
            f"{note} If they are true degrees, so that an empty cell is 0, set ",
            Parameter("model", "sa-bfgs-cv"),
            " with ",
            Parameter("settings", {"missing": "degrees"}),
            ".",
        )
    dataset = rows_to_judge_by(dataset)
    return dataset.changed(notes=(*dataset.notes, note)), "sa-bfgs-cv", {"missing": dataset.missing}


def _preset(model: str, preset: str | None, budget: Any, n_rows: int) -> str:
    """The preset of the automatic choice; an empty string for a named model."""
    if model.casefold() != "auto":
        if preset is not None or budget is not None:
            raise DataError(
                Parameter("preset"),
                " and ",
                Parameter("budget"),
                " belong to ",
                Parameter("model", "auto"),
                f", not to {model!r}.",
            )
        return ""
    if preset not in (None, "best", "fast"):
        raise DataError(Parameter("preset", preset), " is not one of best, fast.")
    if budget is not None and preset == "fast":
        raise DataError(Parameter("budget"), " belongs to ", Parameter("preset", "best"), ".")
    return preset or ("best" if MIN_ROWS <= n_rows <= MAX_ROWS or budget is not None else "fast")
