"""``skldl convert``: make distributions of votes, counts, scores, labels, sets or rankings."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from skldl.cli._options import Flag, Name, Reading, Source, Words, check_targets, naming_formats, words
from skldl.cli._screen import IMAGES, note, save_figure
from skldl.data import TableWriter, convert_table
from skldl.exceptions import Message, TableError


@naming_formats
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
    figure: Path | None = None,
    weights: Flag = False,
    reading: Reading | None = None,
    overwrite: Flag = False,
    escape_formulas: Flag = False,
) -> None:
    """Convert votes, counts, scores, labels or rankings into a table of label distributions.

    Other columns are kept if one row is one item, or if they have one value for each item. For instance:

        skldl convert votes.csv --from votes --item id --annotator who --label says
        skldl convert stars.csv --from counts --labels 'stars_*' --out shares.csv
        skldl convert votes.csv --from votes --item id --annotator who --label says --raters quality.csv --weights
        skldl convert votes.csv --from votes --item id --annotator who --label says --figure raters.png --out d.csv

    Parameters
    ----------
    table
        A table ({tables}), or - for standard input.
    source
        votes (one row for each vote: --item, --annotator, --label; or one column for each annotator: --labels), counts
        or scores (one column for each label: --labels), label (--label names the column), sets (--label; labels
        separated by a bar), rankings (--label; labels in falling order, separated by >; several rankings of one thing
        share their --item).
    out
        Where to write: a file, {outputs}, or - for CSV on standard output.
    item
        Column with the item of each row.
    annotator
        Column with the annotator of each row.
    label
        Column with the answer.
    labels
        Columns to convert, names or patterns, separated by commas.
    separator
        Separator between the labels of one cell, if not | (sets) or > (rankings).
    prefix
        Prefix of the label columns in the result; '' for none. skldl bench and load_dataset find label columns that
        begin with label_ without --labels.
    weight
        Write the number of votes behind each row as a column of this name, for skldl fit --weight.
    raters
        Write the quality of each rater to this file ({outputs}): informedness, severity, habits, flags.
    figure
        Draw the raters (.png, .svg, .pdf): informedness, severity, and which answers true labels get.
    weights
        Weight the votes of each rater by that quality.
    reading
        How the file is written.
    overwrite
        Overwrite an existing file.
    escape_formulas
        Put an apostrophe before text that a spreadsheet would take for a formula.
    """
    writer = TableWriter(out, escape_formulas=escape_formulas)
    quality = None if raters is None else TableWriter(raters, escape_formulas=escape_formulas)
    if figure is not None and source != "votes":
        raise TableError("--figure draws raters: it needs --from votes.")
    if figure is not None and figure.suffix.lower() not in IMAGES:
        raise TableError(f"--figure {figure}: the file extension determines the format. Use {', '.join(IMAGES)}.")
    targets = [("--out", out), ("--raters", raters), ("--figure", figure)]
    check_targets(targets, [table], overwrite=overwrite)
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
        raters=raters is not None or figure is not None,
        weigh_raters=weights,
    )
    with writer, quality or nullcontext():  # all files or none
        writer.write(converted.table)
        if quality is not None and converted.raters is not None:
            quality.write(converted.raters)
        if figure is not None and converted.summary is not None:
            from skldl.plots import RatersDisplay

            save_figure(figure, partial(RatersDisplay.from_summary, converted.summary))
    for what, target in (("Quality", raters), ("Figure", figure)):
        if target is not None and converted.raters is not None:
            note(f"{what} of {len(converted.raters)} raters written to {target}.")
    for line in converted.notes:
        note(Message("Note: ", line))
    if out != "-":
        note(f"{len(converted.table):,} rows with {len(converted.labels)} labels written to {out}.")
