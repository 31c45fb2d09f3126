"""``skldl predict``: distributions for the rows of a table, piece by piece."""

import sys
from pathlib import Path

from skldl.cli._model_file import open_model
from skldl.cli._options import Source, Words, refuse_model_as_table, words
from skldl.cli._screen import note, progress_of
from skldl.tabular import Table, TableWriter, predict_table
from skldl.tabular._prediction import checked_keep


def predict(model: Path, table: Source, /, *, out: Source = "-", keep: Words | None = None) -> None:
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
        A CSV or Parquet file with the columns of the training table, in any order; - for standard input.
    out
        Where to write: .csv, .tsv or .parquet, or - for CSV on standard output. A run that fails leaves no file.
    keep
        Columns of the table to copy to the result, separated by commas.
    """
    refuse_model_as_table(table)
    made = open_model(str(model))
    values = made.about.get("values")
    kept = words(keep or [])
    writer = TableWriter(out)
    rows = 0
    to_terminal = out == "-" and sys.stdout.isatty()
    with Table(table) as source, writer, progress_of(source, quiet=to_terminal) as tell:
        made.encoder.check_columns(source.columns)
        checked_keep(kept, source.columns, made.labels)
        for chunk in source.chunks():
            writer.write(predict_table(made.pipeline, chunk, labels=made.labels, values=values, keep=kept))
            rows += len(chunk)
            tell(rows)
        if not rows and not writer.written:
            nothing = source.nothing()
            writer.write(predict_table(made.pipeline, nothing, labels=made.labels, values=values, keep=kept))
    if not rows:
        note(f"{source.name} has a header but no rows: the result has only a header, too.")
    elif out != "-":
        note(f"{rows:,} rows written to {out}.")
