"""`fit_table`: from a table to a fitted pipeline with a description of its choice and its quality."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from skldl.data import Dataset, find_columns, from_table, label_values
from skldl.data._cells import as_frame
from skldl.data._dataset import rows_to_judge_by
from skldl.data._parquet import release_unused_memory
from skldl.ensemble._auto import BUDGET
from skldl.exceptions import DataError, Message, Parameter
from skldl.selection._fitting import MODEL_STEP, fit_arguments, with_encoder
from skldl.tabular._auto import LEAST_ROWS, MOST_ROWS, fit_pool, why_pool
from skldl.tabular._choice import FOLDS, SELECTION_ROWS, Choice, choose_model
from skldl.tabular._choice_words import described_model, doubts, reasons
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._encoder_fit import check_text_ngrams
from skldl.tabular._kept_rows import kept_rows
from skldl.tabular._models import candidates_for, quick_candidates
from skldl.tabular._training_rows import MOST_ROWS as MOST_HASHES
from skldl.tabular._training_rows import row_hashes
from skldl.tabular._uncertain_fit import add_uncertainty, keep_calibration_rows
from skldl.utils.missing import has_gaps
from skldl.utils.parameters import check_value


@dataclass(frozen=True)
class FittedTable:
    """A model of a table.

    Attributes
    ----------
    model : Pipeline
        Encoder and estimator, fitted: ``model.predict(table)`` gives distributions.
    description : dict
        What it is, in plain values: `skldl.save` keeps it with the model, ``skldl inspect`` shows it.
    choice : Choice
        How it was chosen.
    why : list of str
        The same in words.
    warnings : list of str
        What the user should know.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs", folds=2)
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
    labels: str | Sequence[str],
    *,
    kind: str = "distribution",
    model: str = "auto",
    settings: Mapping[str, Any] | None = None,
    preset: str | None = None,
    budget: float | str | None = None,
    weight: str | None = None,
    groups: str | None = None,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    categories: Sequence[str] = (),
    text_ngrams: str = "auto",
    values: Sequence[float] | None = None,
    folds: int | None = None,
    selection_rows: int | None = None,
    intervals: bool = False,
    random_state: int = 0,
    source: str = "",
    on_progress: Callable[[str], None] | None = None,
    keep_rows: int | None = None,
) -> FittedTable:
    """Train a model on a table, and estimate by cross-validation how good it is.

    Parameters
    ----------
    table : DataFrame, Dataset or callable
        Features and labels; or a dataset of `skldl.data.from_table`, which can have splits, too. Then ``labels``,
        ``kind``, ``weight``, ``groups`` and ``drop`` must be the same as there: they are kept with the model. A
        function without arguments that returns either saves memory: no other reference to the table exists.
    labels : str or sequence of str
        The label columns: names or patterns such as ``emo_*``.
    kind : {"distribution", "counts", "scores", "votes", "label"}, default="distribution"
        What the label columns hold.
    model : str, default="auto"
        Name of a model in any spelling, or "auto", see ``preset``.
    settings : mapping, default=None
        Hyper-parameters of the named model, such as ``{"alpha": 0.1}``.
    preset : {"best", "fast"}, default=None
        What "auto" does. "best" fits the pool of `skldl.AutoLDL` and keeps its best member alone if the pool lowers
        the divergence by less than 1 %. "fast" takes the best of four quick models by cross-validation, of three,
        without the forest, if the table holds more than 5 million numbers. None means "best" from 30 to 50,000 rows,
        and "fast" for smaller and larger tables.
    budget : float or str, default=None
        Time for "best", in seconds or as a text such as "10min": members that would take longer are left out.
    weight, groups : str, default=None
        Columns with the weight and the group of each row.
    drop : sequence of str, default=()
        Columns to leave out.
    text, categories : sequence of str, default=()
        Columns to take as prose, and as categories though they hold numbers.
    text_ngrams : {"auto", "words", "characters"}, default="auto"
        What prose is cut into: single words and pairs of neighbouring words, or pieces of two to four letters.
    values : sequence of float, default=None
        Numbers that the labels represent; by default the names of the labels, if they are numbers.
    folds : int, default=None
        Number of folds of the cross-validation, by default 5. For "fast" and named models; "best" holds rows out in
        its own way.
    selection_rows : int, default=None
        Maximum number of rows for the choice of the model, by default 5000, drawn at random; it is then fitted to
        all rows. For "fast" and named models.
    intervals : bool, default=False
        Keep a quarter of the rows (of the groups, if there are any) for calibration, so that predictions have
        intervals: ``model.intervals_``, a `skldl.uncertainty._intervals.Intervals`, for the shares of as many votes,
        and ``model.true_intervals_``, for the distribution behind them, where the labels are votes. The model learns
        from the others.
    random_state : int, default=0
        Seed of everything that is drawn.
    source : str, default=""
        Where the table came from, for the description.
    on_progress : callable, default=None
        Called with a word on what is going to run.
    keep_rows : int, default=None
        Number of rows of the table, drawn at random, to keep in the description: ``skldl serve`` shows the
        nearest of them with a prediction. None keeps none.

    Returns
    -------
    FittedTable
        The fitted pipeline and its description.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs", folds=2)
    >>> fitted.model.predict(pd.DataFrame({"x": [20]})).round(1)
    array([[0.6, 0.4]])
    >>> fitted.choice.beats_mean
    True
    """
    _check_numbers(folds, selection_rows, random_state, text_ngrams)
    check_value("budget", budget, BUDGET)
    candidates_for(model, settings)  # a name that is not known is refused before the table is read
    roles: dict[str, Any] = {"weight": weight, "groups": groups, "drop": drop, "text": text, "categories": categories}
    dataset, label_columns = _read(table, labels, kind, source, roles)
    del table  # what it holds is in the dataset now: a large one need not stay in memory twice
    encoder = TableEncoder(text=tuple(text), categories=tuple(categories), text_ngrams=text_ngrams)
    encoder.know_columns(dataset.X)  # before rows are kept for calibration, and before folds are made
    dataset, calibration = keep_calibration_rows(dataset, intervals, random_state)
    names, n_rows = list(dataset.label_names), dataset.n_samples
    numbers = label_values(names, values)
    if has_gaps(dataset.D):
        asked = model
        dataset, model, settings = _with_gaps(
            dataset, model, settings, wants_pool=preset == "best" or budget is not None
        )
        preset = None if model != asked else preset
        n_rows = dataset.n_samples
    preset = _preset(model, preset, budget, n_rows)
    notes = list(dataset.notes)
    if preset == "best":
        _refuse_folds(folds, selection_rows, dataset)
        pipeline, choice, without = fit_pool(
            dataset, encoder, budget=budget, random_state=random_state, on_progress=on_progress
        )
        rows = _rows_of(pipeline[0], dataset, keep_rows, random_state)
        why = why_pool(choice, pipeline.named_steps[MODEL_STEP], without, grouped=groups is not None)
    else:
        candidates = candidates_for(model, settings)
        if preset == "fast":
            candidates, left_out = quick_candidates(n_rows, dataset.n_features)
            notes += left_out
        choice = choose_model(
            dataset,
            candidates,
            encoder,
            folds=folds or FOLDS,
            selection_rows=selection_rows or SELECTION_ROWS,
            random_state=random_state,
            on_progress=on_progress,
        )
        if on_progress is not None:
            on_progress(f"fit of {choice.best.candidate.name} on all rows")
        pipeline = with_encoder(choice.best.candidate.make(choice.best.setting, random_state), encoder)
        features = pipeline[0].fit(dataset.X).transform(dataset.X)
        rows = _rows_of(pipeline[0], dataset, keep_rows, random_state)
        dataset = dataset.changed(X=features)  # the table is not needed any more, and may be large
        release_unused_memory()
        arguments = fit_arguments(pipeline[-1], dataset.sample_weight, dataset.groups)
        pipeline[-1].fit(features, pd.DataFrame(dataset.target, columns=names), **arguments)
        why = reasons(choice, auto=model.casefold() == "auto", n_rows=n_rows, grouped=groups is not None)
    lines, floor_numbers = add_uncertainty(pipeline, dataset, calibration, choice.estimate, random_state)
    why += lines
    description = {
        "source": source,
        "rows": n_rows,
        "labels": names,
        "values": numbers,
        "kind": kind,
        "label_columns": label_columns,
        "roles": {"weight": weight or "", "groups": groups or "", "dropped": list(drop)},
        **rows,
        **described_model(pipeline, choice, why, floor_numbers),
        "intervals": 0 if calibration is None else calibration.n_samples,
    }
    notes += doubts(choice, n_rows, pool=preset == "best")
    return FittedTable(pipeline, description, choice, why, notes)


def _check_numbers(folds: int | None, selection_rows: int | None, random_state: int, text_ngrams: str) -> None:
    """Refuse values that no table could make valid."""
    if folds is not None and folds < 2:
        raise DataError(
            Parameter("folds", folds), ": at least 2 are needed to test a model on rows that it has not seen."
        )
    if selection_rows is not None and selection_rows < 2:
        raise DataError(Parameter("selection_rows", selection_rows), ": at least 2 rows are needed to choose a model.")
    if random_state < 0:
        raise DataError(Parameter("random_state", random_state), " must be 0 or more.")
    check_text_ngrams(text_ngrams)


def _read(
    table: Any, labels: str | Sequence[str], kind: str, source: str, roles: Mapping[str, Any]
) -> tuple[Dataset, list[str]]:
    """The table as a dataset, and the names of its label columns."""
    if callable(table):
        table = table()
    if isinstance(table, Dataset):
        if table.sample_weight is not None and not table.sample_weight.all():
            table = table.take(np.flatnonzero(table.sample_weight))  # as from_table leaves out rows without weight
        return table, [labels] if isinstance(labels, str) else list(labels)
    dataset = from_table(table, labels, kind=kind, source=source, **roles)
    return dataset, find_columns(labels, [str(name) for name in as_frame(table).columns], "labels")


def _refuse_folds(folds: int | None, selection_rows: int | None, dataset: Dataset) -> None:
    """Refuse options that the preset "best" would not use."""
    for name, value in (("folds", folds), ("selection_rows", selection_rows)):
        if value is not None:
            raise DataError(
                Parameter(name, value),
                " has no part in ",
                Parameter("preset", "best"),
                ". Say ",
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
    """Rows in the description: sorted hashes, typical values, and the rows themselves if required."""
    few = dataset.n_samples <= MOST_HASHES
    kept: dict[str, Any] = {
        "training_rows": "".join(sorted(row_hashes(encoder, dataset.X, dataset.D))) if few else "",
        "typical": encoder.typical_,
    }
    if keep_rows is not None:
        kept["kept_rows"] = kept_rows(dataset, encoder.kinds_, keep_rows, seed)
    return kept


def _with_gaps(
    dataset: Dataset, model: str, settings: Mapping[str, Any] | None, *, wants_pool: bool
) -> tuple[Dataset, str, Mapping[str, Any] | None]:
    """What a table with empty label cells is fitted with: by default the best model that learns from such rows."""
    if model.casefold() != "auto":
        reading = (settings or {}).get("missing", "auto")
        dataset = dataset if reading == "auto" else dataset.changed(reading=reading)
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
    note = f"SA-BFGS-CV was taken, which learns from the degrees that were observed (missing={dataset.reading!r})."
    if dataset.reading == "renormalised":  # sums below one leave no other reading
        note = Message(
            f"{note} If they are true degrees, so that an empty cell is 0, set ",
            Parameter("model", "sa-bfgs-cv"),
            " with ",
            Parameter("settings", {"missing": "degrees"}),
            ".",
        )
    dataset = rows_to_judge_by(dataset)
    return dataset.changed(notes=(*dataset.notes, note)), "sa-bfgs-cv", {"missing": dataset.reading}


def _preset(model: str, preset: str | None, budget: Any, n_rows: int) -> str:
    """The preset of the automatic choice; an empty text for a model that is named."""
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
    return preset or ("best" if LEAST_ROWS <= n_rows <= MOST_ROWS or budget is not None else "fast")
