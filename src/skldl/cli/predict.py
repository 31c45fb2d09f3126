"""``skldl predict``: distributions for the rows of a table, in chunks."""

import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import joblib
import pandas as pd
from cyclopts import Parameter, validators
from threadpoolctl import threadpool_limits

from skldl.cli._model_file import TableModel, open_model
from skldl.cli._options import Flag, Reading, Source, Words, check_is_no_model, check_targets, naming_formats, words
from skldl.cli._progress import progress_of
from skldl.cli._screen import note
from skldl.data import TableWriter
from skldl.exceptions import DataError, Message, TableError
from skldl.tabular import predict_table
from skldl.tabular._drift import Comparison, DriftMonitor
from skldl.tabular._prediction import checked_keep, few_rows_note, intervals_of, with_intervals
from skldl.utils.files import whole_file
from skldl.utils.processes import Pool

N_CHUNKS_ALONE = 25
"""Unless a number of processes is given, this many chunks are predicted in this process: starting two others took six
seconds, which paid off after another 1.2 million rows of twelve numbers."""


@naming_formats
def predict(
    model: Path,
    table: Source,
    /,
    *,
    out: Source = "-",
    keep: Words | None = None,
    level: float | None = None,
    covers: Literal["given", "true"] | None = None,
    digits: Annotated[int, Parameter(validator=validators.Number(gte=1, lte=17))] = 6,
    monitor: Path | None = None,
    reading: Reading | None = None,
    jobs: Annotated[int | None, Parameter(validator=validators.Number(gte=1), show_default=False)] = None,
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
        A table ({tables}) with the columns of the training table, in any order; a file with an array of features
        ({arrays}); - for standard input.
    out
        Where to write: a file, {outputs}, or - for CSV on standard output. A run that fails leaves no file.
    keep
        Columns of the table to copy to the result, separated by commas.
    level
        Add intervals: low_<label> and high_<label>, between which all degrees lie at once with this probability, and
        radius, the total variation distance from the prediction that is not exceeded with it. The model must have been
        made with skldl fit --intervals.
    covers
        What the intervals cover, if the model was made from votes or counts: given (the default), the fractions that a
        new row would have if it got as many votes as a training row; true, the distribution behind the votes, estimated
        from them. Goes with --level.
    digits
        Significant digits of the predictions in text; Parquet keeps all.
    monitor
        Write how unlike the training table the rows are, as JSON: numbers of rows with unknown categories, with numbers
        far outside its range and without any value; distances to the nearest training rows; shift of the mean
        prediction.
    reading
        How the file is written.
    jobs
        Number of processes that predict, each with 20,000 rows at a time; this one reads and writes. 1 means this one
        alone. By default as many as there are processors, for tables with more than 500,000 rows. The result does not
        depend on it.
    overwrite
        Overwrite existing files.
    escape_formulas
        Put an apostrophe before text that a spreadsheet would take for a formula.
    """
    check_is_no_model(table)
    check_targets([("--out", out), ("--monitor", monitor)], [model, table], overwrite=overwrite)
    made = open_model(str(model))
    kept = words(keep)
    writing: dict[str, Any] = {"digits": digits, "exact": kept, "escape_formulas": escape_formulas}
    writer = TableWriter(out, **writing)
    if covers is not None and level is None:
        raise TableError("--covers describes intervals: give their probability, too, such as --level 0.9.")
    intervals = None if level is None else intervals_of(made.pipeline, level, covers or "given")
    drift = DriftMonitor(made.pipeline)
    predict_chunk = ChunkPredictor(made, kept, intervals, level, drift, TableWriter(out, **writing))
    to_terminal = out == "-" and sys.stdout.isatty()
    with (
        (reading or Reading()).open(table) as source,
        writer,
        nullcontext() if monitor is None else whole_file(monitor) as counts_file,
        progress_of(source, quiet=to_terminal) as show_rows,
    ):
        made.encoder.check_columns(source.columns)
        as_written = set(checked_keep(kept, source.columns, made.labels)) - set(made.encoder.kinds_)
        # The output of the first chunk begins with the header.
        chunks = ((chunk, number == 0) for number, chunk in enumerate(source.chunks(text=as_written)))
        with closing(in_order(chunks, predict_chunk, jobs)) as pieces:
            for piece in pieces:
                drift.add(piece.compared)
                writer.append(piece.rows)
                show_rows(drift.n_rows)
        if not drift.n_rows and not writer.written:
            writer.write(predict_chunk.predictions(source.empty()))
        if counts_file is not None:
            counts_file.write(drift.to_json().encode())
    rows = drift.n_rows
    if not rows:
        note(f"{source.name} has a header but no rows: the result has only a header, too.")
    elif out != "-":
        note(f"{rows:,} rows written to {out}.")
    if intervals is not None and covers is None and hasattr(made.pipeline, "true_intervals_"):
        note(
            "The intervals cover the fractions of votes that a new row would have if it got as many votes as the "
            "training rows; with --covers true they cover the distribution behind the votes."
        )
    for line in (*drift.warnings(), *(() if intervals is None or level is None else few_rows_note(intervals, level))):
        note(Message("Note: ", line))


@dataclass(frozen=True, eq=False)
class PredictedChunk:
    """The predictions for a chunk, ready to be written, and its comparison with the training table."""

    rows: str | pd.DataFrame
    compared: Comparison


@dataclass(frozen=True, eq=False)
class ChunkPredictor:
    """Predict for a chunk of the table, in this process or, pickled, in another.

    The monitor only compares rows and the writer only formats them: counting and writing happen in the first process.
    """

    model: TableModel
    keep: list[str]
    intervals: Any
    level: float | None
    drift: DriftMonitor
    writer: TableWriter

    def __call__(self, chunk: tuple[pd.DataFrame, bool]) -> PredictedChunk:
        """Predict for a chunk; the second item of ``chunk`` is whether it is the first one."""
        table, first = chunk
        predicted = self.predictions(table)
        compared = self.drift.look(table, predicted[self.model.labels].to_numpy())
        return PredictedChunk(self.writer.rendered(predicted, header=first), compared)

    def predictions(self, table: pd.DataFrame) -> pd.DataFrame:
        """The predictions for the rows of a table, with intervals if the model was asked for them."""
        made, values = self.model, self.model.about.get("values")
        predicted = predict_table(made.pipeline, table, labels=made.labels, values=values, keep=self.keep)
        if self.intervals is None or self.level is None:
            return predicted
        return with_intervals(predicted, self.intervals, made.labels, self.level)


def in_order(chunks: Iterator[Any], work: Callable[[Any], Any], n_jobs: int | None) -> Generator[Any, None, None]:
    """Apply ``work`` to each chunk, in several processes, and yield the results in the order of the chunks.

    Chunks are read in this process. ``work``, chunks and results must be picklable. BLAS uses one thread in each
    process, this one included, so that results do not depend on the number of processes. ``n_jobs=None`` means one per
    processor, from the 26th chunk on. An error in a chunk is raised after the results of the chunks before it.
    """
    alone = N_CHUNKS_ALONE if n_jobs is None else 0
    jobs = joblib.cpu_count() if n_jobs is None else n_jobs
    with threadpool_limits(limits=1):
        for number, chunk in enumerate(chunks):
            if jobs > 1 and number >= alone:
                yield from _in_processes(chain([chunk], chunks), work, jobs)
                return
            yield work(chunk)


def _in_processes(chunks: Iterator[Any], work: Callable[[Any], Any], n_jobs: int) -> Iterator[Any]:
    seen: set[tuple[type[Warning], str]] = set()
    with closing(Pool(partial(_result_and_warnings, work), n_jobs)) as pool:
        for outcome in pool.run_in_order(chunks):
            if outcome.lost:
                raise DataError(
                    f"A process that predicted a chunk ended ({outcome.reason}), perhaps because memory ran out. Use "
                    "fewer processes with --jobs; --jobs 1 starts no other process."
                )
            if outcome.error is not None:
                raise outcome.error
            result, warned = outcome.result
            for category, text in warned:
                if (category, text) not in seen:
                    seen.add((category, text))
                    warnings.warn(text, category, stacklevel=2)
            yield result


def _result_and_warnings(work: Callable[[Any], Any], chunk: Any) -> tuple[Any, list[tuple[type[Warning], str]]]:
    """The result for a chunk and the warnings it caused, which the first process issues under its own filters."""
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        result = work(chunk)
    return result, [(entry.category, str(entry.message)) for entry in caught]
