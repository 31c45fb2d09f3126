"""``skldl convert``: from votes, counts, scores, labels, sets or rankings to a table of distributions."""

from contextlib import nullcontext
from typing import Annotated, Literal

from cyclopts import Parameter

from skldl.cli._options import Flag, Name, Reading, Source, Words, check_targets, words
from skldl.cli._screen import note
from skldl.data import TableWriter, convert_table


def convert(
    table: Source,
    /,
    *,
    source: Annotated[Literal["votes", "counts", "scores", "label", "sets", "rankings"], Parameter(name="--from")],
    out: Source = "-",
    item: Name = None,
    annotator: Name = None,
    label: Name = None,
    labels: Words | None = None,
    separator: Name = None,
    prefix: str = "label_",
    weight: Name = None,
    raters: Name = None,
    weights: Flag = False,
    reading: Reading | None = None,
    overwrite: Flag = False,
    escape_formulas: Flag = False,
) -> None:
    """Turn what people have into a table of label distributions.

    Other columns are kept where one row is one item, and else where they have one value for each item. For instance:

        skldl convert votes.csv --from votes --item id --annotator who --label says
        skldl convert stars.csv --from counts --labels 'stars_*' --out shares.csv
        skldl convert votes.csv --from votes --item id --annotator who --label says --raters quality.csv --weights

    Parameters
    ----------
    table
        A CSV or Parquet file, or - for standard input.
    source
        votes (one row for each vote: --item, --annotator, --label; or one column for each annotator: --labels), counts
        or scores (one column for each label: --labels), label (--label names the column), sets (--label; labels
        separated by a bar), rankings (--label; labels in falling order, separated by >; several rankings of one thing
        share their --item).
    out
        Where to write: .csv, .tsv or .parquet, or - for CSV on standard output.
    item
        Column that says what the row is about.
    annotator
        Column that says who answered.
    label
        Column with the answer.
    labels
        Columns to convert, names or patterns, separated by commas.
    separator
        What stands between the labels of one cell, if not | (sets) or > (rankings).
    prefix
        Put before the name of each label in the result. The labels of a table whose label columns begin with label_ are
        found without --labels by skldl bench and load_dataset; '' puts nothing before them.
    weight
        Write the number of votes behind each row as a column of this name, for skldl fit --weight.
    raters
        Write the quality of each rater to this file (.csv, .tsv or .parquet): informedness, severity, habits, flags.
    weights
        Let the votes of each rater count by that quality.
    reading
        How the file is written.
    overwrite
        Write over a file that is there already.
    escape_formulas
        Put an apostrophe before text that a spreadsheet would take for a formula.
    """
    writer = TableWriter(out, escape_formulas=escape_formulas)
    quality = None if raters is None else TableWriter(raters, escape_formulas=escape_formulas)
    check_targets([("--out", out), ("--raters", raters)], [table], overwrite=overwrite)
    converted = convert_table(
        (reading or Reading()).open(table).read(),
        source,
        labels=words(labels),
        label=label,
        item=item,
        annotator=annotator,
        separator=separator,
        prefix=prefix,
        weight=weight,
        raters=raters is not None,
        weigh_raters=weights,
    )
    with writer, quality or nullcontext():  # both files or none
        writer.write(converted.table)
        if quality is not None and converted.raters is not None:
            quality.write(converted.raters)
    if converted.raters is not None and raters is not None:
        note(f"Quality of {len(converted.raters)} raters written to {raters}.")
    for line in converted.notes:
        note(f"Note: {line}")
    if out != "-":
        note(f"{len(converted.table):,} rows with {len(converted.labels)} labels written to {out}.")
