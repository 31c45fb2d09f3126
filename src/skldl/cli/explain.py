"""``skldl explain``: the effect of columns on labels, for a table or for one row."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from cyclopts import Parameter

from skldl.cli._model_file import TableModel, open_model
from skldl.cli._options import Flag, Reading, Source, check_is_no_model, check_targets, naming_formats
from skldl.cli._screen import IMAGES, note, print_table, save_figure
from skldl.data import TableWriter, read_labels
from skldl.data._formats import suffixes_with
from skldl.data._labels import rows_with_labels
from skldl.exceptions import Message, TableError
from skldl.tabular import column_effects, explain_row, feature_weights
from skldl.tabular._description import row_hashes, unseen_rows
from skldl.tabular._explain import EXPLANATION_TITLES, NEIGHBOURS
from skldl.tabular._prediction import LEVEL, few_rows_note

MAX_LINES = 20  # of a table on the screen; a file has all
MIN_UNSEEN = 20  # chosen by hand


@naming_formats
def explain(
    model: Path,
    table: Source,
    /,
    *,
    row: int | None = None,
    repeats: int = 5,
    seed: int = 0,
    out: Annotated[list[Path] | None, Parameter(negative="")] = None,
    all_rows: Flag = False,
    reading: Reading | None = None,
    overwrite: Flag = False,
) -> None:
    """Show the effect of each column on each label.

    For the whole table: how much the Kullback-Leibler divergence rises when a column is shuffled, how much that changes
    each label, and for maximum entropy models the weights. For one row: the contribution of each feature, or the
    neighbours used. For instance:

        skldl explain faces.skldl faces.csv --out effects.png
        skldl explain faces.skldl faces.csv --row 3

    Parameters
    ----------
    model
        A model that skldl fit wrote.
    table
        A table ({tables}). Rows that the model learned from are left out if there are at least 20 others; they are
        recognised by hashes in the model file, if it was trained on at most 100,000 rows.
    row
        Explain this row, counted from 1 after the header.
    repeats
        Number of times that each column is shuffled.
    seed
        Seed of the shuffling.
    out
        Write the table ({outputs}) or the figure (.png, .svg, .pdf); may be given twice.
    all_rows
        Also use rows that the model learned from.
    reading
        How the file is written.
    overwrite
        Overwrite existing files.
    """
    check_is_no_model(table)
    targets, suffixes = out or [], (*suffixes_with("writer"), *IMAGES)
    for target in targets:
        if target.suffix.lower() not in suffixes:
            raise TableError(
                f"--out {target}: the file extension determines what is written. Use {', '.join(suffixes)}."
            )
    check_targets([("--out", target) for target in targets], [model, table], overwrite=overwrite)
    if repeats < 1:
        raise TableError(f"--repeats {repeats}: each column must be shuffled at least once.")
    made = open_model(str(model))
    with (reading or Reading()).open(table) as source:
        made.encoder.check_columns(source.columns)
        frame = source.read()
    if row is None:
        frame, D = _labelled_rows(made, frame)
        learned_from = sum(made.about.get(part) or 0 for part in ("rows", "intervals", "held_out"))
        same = made.about.get("source") == source.name and learned_from == len(frame)
        frame, D = _unseen_rows(made, frame, D, all_rows=all_rows, same_table=same)
        shown, explanation, how = *_explain_table(made, frame, D, repeats, seed), "from_effects"
    else:
        shown, explanation, how = *_explain_row(made, frame, row), "from_row"
    for target in targets:
        if target.suffix.lower() in IMAGES:
            from skldl.plots import LabelEffectsDisplay

            save_figure(target, partial(getattr(LabelEffectsDisplay, how), explanation))
        else:
            with TableWriter(target) as writer:
                writer.write(shown)


def _explain_table(
    made: TableModel, frame: pd.DataFrame, D: pd.DataFrame | None, repeats: int, seed: int
) -> tuple[pd.DataFrame, Any]:
    effects = column_effects(made.pipeline, frame, D, n_repeats=repeats, random_state=seed)
    shown = effects.to_pandas()
    truth = "of the labels in the table" if D is not None else "of the model's own predictions"
    title = f"Rise of the Kullback-Leibler divergence {truth} when a column is shuffled ({effects.n_rows} rows)"
    print_table(shown.head(MAX_LINES), title)
    if effects.divergence is not None:
        score = made.about.get("score") or {}
        floor, end = score.get("noise_floor"), score.get("noise_floor_smoothed")
        known = "" if floor is None else f"{floor:.4f}" if end is None else f"{floor:.4f} to {end:.4f}"
        more = f" The noise floor of the votes in the training table is {known}." if known else ""
        print(f"Without shuffling the divergence is {effects.divergence:.4f}.{more}")
    weights = feature_weights(made.pipeline)
    if weights is not None:
        title = f"Weights, centred over labels{_cut(len(weights))}"
        print_table(weights.head(MAX_LINES).rename_axis("feature").reset_index(), title)
    return shown, effects


def _explain_row(made: TableModel, frame: pd.DataFrame, row: int) -> tuple[pd.DataFrame, Any]:
    explanation = explain_row(made.pipeline, frame, row - 1)
    _print_prediction(made, explanation.prediction, row)
    shown = (
        explanation.table if explanation.how == NEIGHBOURS else explanation.table.rename_axis("feature").reset_index()
    )
    print_table(shown.head(MAX_LINES), f"{EXPLANATION_TITLES[explanation.how][0]}{_cut(len(shown))}")
    return shown, explanation


def _print_prediction(made: TableModel, prediction: pd.Series, row: int) -> None:
    """The prediction and, if the model keeps calibration rows, its intervals."""
    intervals = getattr(made.pipeline, "intervals_", None)
    if intervals is None:
        print_table(prediction.to_frame().T, f"Prediction for row {row}")
        return
    center = prediction.to_numpy()
    lower, upper, radius = intervals.around(center[None], LEVEL)
    lines = {"prediction": center, "low": lower[0], "high": upper[0]}
    title = (
        f"Prediction for row {row}; with probability {LEVEL:.0%} all degrees lie between low and high, and within "
        f"{radius[0]:.3f} in total variation"
    )
    more = ""
    if (true := getattr(made.pipeline, "true_intervals_", None)) is not None:
        lower, upper, radius = true.around(center[None], LEVEL)
        lines |= {"low, true": lower[0], "high, true": upper[0]}
        more = (
            "Low and high are for the fractions of votes of a row that has as many votes as the training rows. The "
            "true distribution behind them lies between the last two lines, and within "
            f"{radius[0]:.3f} in total variation."
        )
    print_table(pd.DataFrame(lines, index=list(prediction.index)).T.rename_axis("").reset_index(), title)
    if more:
        print(more)
    for line in few_rows_note(intervals, LEVEL):
        note(Message("Note: ", line))


def _cut(n_rows: int) -> str:
    return f", the first {MAX_LINES} of {n_rows}" if n_rows > MAX_LINES else ""


def _unseen_rows(
    made: TableModel, frame: pd.DataFrame, D: pd.DataFrame | None, *, all_rows: bool, same_table: bool
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """The rows that the model has not learned from if there are at least `MIN_UNSEEN`, else all, with a note."""
    known = made.about.get("training_rows", "")
    if known and D is not None:
        unseen = unseen_rows(row_hashes(made.encoder, frame, D), known)
        if unseen.all():
            return frame, D
        if unseen.sum() >= MIN_UNSEEN and not all_rows:
            note(
                f"The model learned from {int((~unseen).sum()):,} of the {len(frame):,} rows; the other "
                f"{int(unseen.sum()):,} are explained. --all-rows uses all."
            )
            return frame[unseen], D[unseen]
    elif not same_table:
        return frame, D
    note(
        "The model learned from these rows: columns that it overfits seem more important than they are for new rows. "
        "Explain it on rows that it has not seen."
    )
    return frame, D


def _labelled_rows(made: TableModel, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Rows with labels and their distributions; all rows and None if the table has no labels."""
    columns = made.about.get("label_columns", [])
    if not columns or not set(columns) <= set(frame.columns):
        note("The table has no labels, so the predictions of the model are used in their place.")
        return frame, None
    labelled = frame[rows_with_labels(frame[columns])]
    if not len(labelled):
        note("No row has labels, so the predictions of the model are used in their place.")
        return frame, None
    return labelled, read_labels(labelled[columns], made.about["kind"], names=made.labels)
