"""``skldl predict``: distributions for the rows of a table, piece by piece."""

import json
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from skldl._whole_files import whole_file
from skldl.cli._model_file import open_model
from skldl.cli._options import Flag, Reading, Source, Words, check_targets, refuse_model_as_table, words
from skldl.cli._screen import note, progress_of
from skldl.data import TableWriter
from skldl.tabular import predict_table
from skldl.tabular._prediction import checked_keep

_MEANINGS = {
    "unknown_categories": "holds a category that the model does not know",
    "far_outside_range": "is far outside the range of the training table",
}


def predict(
    model: Path,
    table: Source,
    /,
    *,
    out: Source = "-",
    keep: Words | None = None,
    digits: Annotated[int, Parameter(validator=validators.Number(gte=1, lte=17))] = 6,
    monitor: Path | None = None,
    reading: Reading | None = None,
    overwrite: Flag = False,
    escape_formulas: Flag = False,
) -> None:
    """Predict a distribution for each row of a table.

    The result has one column for each label under its own name, then top (the label with the highest degree), entropy
    (in nats) and, if the labels are numbers, expected (their mean). Memory does not grow with the table. For instance:

        skldl predict faces.skldl new.csv --out predictions.csv
        skldl predict faces.skldl new.csv --keep person > predictions.csv

    Parameters
    ----------
    model
        A model that skldl fit wrote.
    table
        A CSV or Parquet file with the columns of the training table, in any order; a .mat or .npz file with an array of
        features; - for standard input.
    out
        Where to write: .csv, .tsv or .parquet, or - for CSV on standard output. A run that fails leaves no file.
    keep
        Columns of the table to copy to the result, separated by commas.
    digits
        Significant digits of the predictions in text; Parquet keeps all.
    monitor
        Write what the training table did not hold (unknown categories, numbers far outside its range, empty rows), as
        counts in JSON.
    reading
        How the file is written.
    overwrite
        Write over files that are there already.
    escape_formulas
        Put an apostrophe before text that a spreadsheet would take for a formula.
    """
    refuse_model_as_table(table)
    check_targets([("--out", out), ("--monitor", monitor)], [model, table], overwrite=overwrite)
    made = open_model(str(model))
    values = made.about.get("values")
    kept = words(keep)
    writer = TableWriter(out, digits=digits, exact=kept, escape_formulas=escape_formulas)
    rows = 0
    unusual: dict[str, Counter[str]] = {}
    to_terminal = out == "-" and sys.stdout.isatty()
    with (
        (reading or Reading()).open(table) as source,
        writer,
        nullcontext() if monitor is None else whole_file(monitor) as counts_file,
        progress_of(source, quiet=to_terminal) as tell,
    ):
        made.encoder.check_columns(source.columns)
        as_written = set(checked_keep(kept, source.columns, made.labels)) - set(made.encoder.kinds_)
        for chunk in source.chunks(text=as_written):
            writer.write(predict_table(made.pipeline, chunk, labels=made.labels, values=values, keep=kept))
            for what, counts in made.encoder.unusual(chunk).items():
                unusual.setdefault(what, Counter()).update(counts)
            rows += len(chunk)
            tell(rows)
        if not rows and not writer.written:
            nothing = source.nothing()
            writer.write(predict_table(made.pipeline, nothing, labels=made.labels, values=values, keep=kept))
        if counts_file is not None:
            counts_file.write(json.dumps({"rows": rows, **unusual}, indent=1).encode())
    if not rows:
        note(f"{source.name} has a header but no rows: the result has only a header, too.")
    elif out != "-":
        note(f"{rows:,} rows written to {out}.")
    _say_what_is_unusual(unusual, rows)


def _say_what_is_unusual(unusual: dict[str, Counter[str]], rows: int) -> None:
    for what, meaning in _MEANINGS.items():
        for column, count in unusual.get(what, Counter()).most_common(5):
            note(f"Note: Column {column!r} {meaning} in {count:,} of {rows:,} rows.")
    if empty := unusual.get("empty_rows", Counter())["rows"]:
        note(f"Note: All features are empty in {empty:,} of {rows:,} rows.")
