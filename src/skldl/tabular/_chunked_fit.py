"""The fit of a model to a table that is read in chunks, with bounded memory.

The files are read several times: twice to fit the encoder, then once for each pass over the rows that the learner asks
for, and once more to judge the model by rows that were held out. What the passes found is kept in a `FitState`, if
there is one: the same call with the same state goes on where an earlier one was stopped, and its result is the same to
the last digit.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from skldl.base import BaseLDL
from skldl.chunks import ClusterRows, Journal, RecordedRows, Rows
from skldl.data import Columns, Dataset, TableFiles
from skldl.data._leaks import label_leaks
from skldl.data._parquet import release_unused_memory
from skldl.data._roles import notes_on_rows
from skldl.exceptions import DataError, Message, Parameter
from skldl.metrics import kullback_leibler
from skldl.names import algorithm_titles, find_candidate
from skldl.selection import BASELINE, Candidate, Estimate
from skldl.selection._estimate import estimate_from_losses
from skldl.selection._fitting import MODEL_STEP
from skldl.tabular._choice import Choice, Trial, doubts_on_skill, show_setting
from skldl.tabular._description import Made, check_number_kept, kept_rows
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._encoder_fit import EncoderFit
from skldl.tabular._models import is_auto, with_settings
from skldl.tabular._row_sample import RowSample
from skldl.tabular._table_chunks import ChunkCache, EncodedRows, HeldOut, TableInChunks, naming
from skldl.tabular._uncertain_fit import MOST_REFERENCE, add_uncertainty, noise_floor_of
from skldl.utils.typing import AnyArray, FloatArray

AUTO_MODEL = "SA-BFGS-CV"
"""The model of ``model="auto"`` in chunks: it learns from sums over rows and chooses its own penalty."""
HASHED_TEXT = 2**14
"""Features that the n-grams of a text column are hashed to."""
HELD_OUT_ROWS, HELD_OUT_FRACTION = 20_000, 0.2
"""Rows that judge the model: this fraction of them, but of larger tables this many; chosen by hand."""
SAMPLE_ROWS = 5000
"""Training rows that are kept in memory, to look for leaks and for the reference for drift."""
Tell = Callable[[str], None]

# The plan of memory: how many rows to read at a time. The figures were measured, and are rather too large than too
# small: tests/cli/test_fit_stream_memory.py compares them with the memory that fits take.
GIB, MIB = 2**30, 2**20
BASE_BYTES = 440 * MIB
"""What the libraries take, whatever the table: half of it the one that writes model files."""
MIN_CHUNK_BYTES = 64 * MIB
CELL_BYTES = 400
"""For each cell of a chunk while it is read and encoded: text and its words at the worst."""
TEXT_CELL_BYTES = 6000
"""For each cell of prose and its n-grams."""
NUMBER_BYTES = 8
CHUNK_COPIES = 6
"""Arrays of the size of the encoded chunk that live at the same time."""
MAX_CHUNK_ROWS, MIN_CHUNK_ROWS = 100_000, 200
FOLDED_MATRICES, MATRICES = 16, 5
"""Matrices with a row and a column for each feature that the fit holds: with the folds of SA-BFGS-CV, and without."""
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)i?b?\s*", flags=re.IGNORECASE)


class FitState(Protocol):
    """Where a fit keeps what its passes have found; encoded rows are kept in the folder, too."""

    journal: Journal
    fingerprint: str
    folder: Path

    def load(self) -> tuple[TableEncoder, dict[str, Any]] | None:
        """The encoder and the facts of an earlier call, or None."""

    def save(self, encoder: TableEncoder, facts: dict[str, Any]) -> None:
        """Keep the encoder and the facts, which are plain values."""


def fit_in_chunks(
    files: TableFiles,
    columns: Columns,
    model: str,
    settings: Mapping[str, Any] | None,
    options: Any,
    random_state: int,
    tell: Tell,
    state: FitState | None,
) -> Made:
    """Train a model on a table that is read in chunks, and judge it by rows that were held out.

    With a scheduler among the options, workers of a Dask cluster read, encode and keep the rows, each file on one of
    them, and sums travel; the encoder is fitted, and the model judged, in this process.
    """
    memory, cache = parse_size(options.memory), parse_size(options.cache, "cache")
    candidate = chunk_candidate(model, settings)
    folded = hasattr(candidate.make(), "alphas")
    if columns.groups is not None and folded:
        raise DataError(
            Parameter("groups", columns.groups),
            f": {candidate.name} chooses its penalty by folds of rows, which would split the groups of a table that is "
            "read in chunks. Use ",
            Parameter("model", "sa-bfgs"),
            " with ",
            Parameter("settings", {"alpha": 0.001}),
            ".",
        )
    if options.keep_rows is not None:
        check_number_kept(options.keep_rows)
    table = TableInChunks(files, columns)
    left = memory_for_rows(memory, files.reading_bytes)
    table.chunk_rows = rows_to_scan(left, len(files.columns), len(columns.text))
    with _connected(options.scheduler) as client:
        known = None if state is None else state.load()
        if known is None:
            encoder = TableEncoder(
                columns.text, columns.categories, text_ngrams=columns.text_ngrams, hashed_text=HASHED_TEXT
            )
            facts = _scan(table, encoder, tell)
            if state is not None:
                state.save(encoder, facts)
        else:
            encoder, facts = known
            table.layout.label_names, table.rows_of_files = list(facts["label_names"]), facts["rows_of_files"]
        label_names, n_rows = list(facts["label_names"]), int(facts["n_rows"])
        table.chunk_rows = rows_to_fit(
            left,
            table.chunk_rows,
            len(encoder.sources()),
            len(label_names),
            dense=not encoder.is_sparse_,
            folded=folded,
        )
        held_out = HeldOut(min(HELD_OUT_FRACTION, HELD_OUT_ROWS / n_rows), random_state)
        n_train = None if columns.groups is not None else n_rows - held_out.count(n_rows)
        if n_train is not None and not 0 < n_train < n_rows:
            raise DataError(
                f"The table has {n_rows} rows, too few to hold some out. Fit it in memory, with ",
                Parameter("stream", False),
                ".",
            )
        # sums, and the order of the encoded rows, depend on where chunks end
        fingerprint = "" if state is None else f"{state.fingerprint} {table.chunk_rows}"
        kept = None if state is None or client is not None else ChunkCache(state.folder, fingerprint, cache)
        rows = EncodedRows(table, encoder, held_out, n_train, kept)
        source: Rows = rows if client is None else ClusterRows(rows, client)
        if state is not None:
            source = RecordedRows(source, state.journal, fingerprint=fingerprint)
        n_fitted = n_train or n_rows
        source.progress = lambda number, n_read: tell(f"fit, pass {number}: {n_read:,} of {n_fitted:,} rows")
        estimator = candidate.make({}, random_state)
        estimator.fit(source)
    judged = _judge(table, encoder, estimator, held_out, options.keep_rows, random_state, tell)
    pipeline = Pipeline([("encoder", encoder), (MODEL_STEP, estimator)])
    reference = judged.sample.take(np.arange(min(MOST_REFERENCE, judged.sample.n_samples)))
    add_uncertainty(pipeline, reference, None, judged.estimate, random_state)
    chosen = _chosen(estimator, candidate)
    best = Trial(candidate, chosen, judged.estimate.loss)
    mean = Trial(BASELINE, {}, judged.estimate.reference_loss)
    choice = Choice(best, [best, mean], judged.estimate, judged.held_out.n_samples, 1, [])
    lines, floor = noise_floor_of(judged.held_out, judged.estimate)
    kept_with_model: dict[str, Any] = {}
    if options.keep_rows is not None:
        drawn = kept_rows(judged.sample, encoder.kinds_, options.keep_rows, random_state)
        kept_with_model = {"kept_rows": drawn | {"positions": judged.positions[drawn["positions"]].tolist()}}
    leaks = label_leaks(judged.sample.X, pd.DataFrame(judged.sample.D, columns=label_names))
    notes = [*table.layout.notes, *files.notes, *facts["notes"], *leaks, *_doubts(choice, candidate)]
    return Made(
        pipeline,
        choice,
        [*_why(choice, chosen, judged.n_train, table, source.n_passes), *lines],
        list(dict.fromkeys(notes)),
        files.name,
        label_names,
        table.layout.label_columns,
        judged.n_train,
        kept_with_model,
        floor,
        n_held_out=choice.n_rows,
    )


@contextlib.contextmanager
def _connected(scheduler: str | None) -> Iterator[Any]:
    """The client of a Dask cluster, or None without a scheduler."""
    if scheduler is None:
        yield None
        return
    from skldl.experiments.cluster import connected

    with contextlib.closing(connected(scheduler)) as client:
        yield client


def chunk_candidate(model: str, settings: Mapping[str, Any] | None) -> Candidate:
    """The model that is named, if it can learn from a table that is read in chunks.

    Examples
    --------
    >>> chunk_candidate("auto", None).make()
    SABFGSCV()
    """
    name = AUTO_MODEL if is_auto(model, settings) else model
    candidate = with_settings(find_candidate(name), settings or {})
    if not candidate.make()._chunks:
        raise DataError(
            f"{candidate.name} needs all rows in memory. Models that learn from a table in chunks are "
            f"{', '.join(algorithm_titles('chunks'))}: name one with ",
            Parameter("model"),
            ", or fit in memory, with ",
            Parameter("stream", False),
            ".",
        )
    return candidate


def _scan(table: TableInChunks, encoder: TableEncoder, tell: Tell) -> dict[str, Any]:
    """Fit the encoder and find the names of the labels; returns what else was found, in plain values."""
    fitting = EncoderFit(encoder)
    notes: list[str] = []
    while not fitting.done:
        for chunk in table.chunks():
            if not fitting.n_passes:
                table.learn_labels(chunk)
            with naming(chunk.place):
                fitting.update(chunk.X, chunk.place)
            tell(f"columns, pass {fitting.n_passes + 1}: {table.files.fraction_read() or 0.0:.0%}")
        fitting.end_pass()
        release_unused_memory()
        if fitting.n_passes == 1:
            table.end_of_labels()
            notes = fitting.notes()  # raises an error for columns that are mostly numbers, before the second pass
    notes = [*notes, *(note for note in fitting.notes() if note not in notes)]
    return {
        "n_rows": fitting.n_rows,
        "label_names": table.layout.label_names,
        "rows_of_files": dict(table.rows_of_files),
        "notes": [*notes, *notes_on_rows(fitting.n_rows, table.left_out)],
    }


class _Judged(NamedTuple):
    """The rows that were held out with their estimate, and a sample of the training rows with their positions."""

    held_out: Dataset
    estimate: Estimate
    sample: Dataset
    positions: AnyArray
    n_train: int


def _judge(
    table: TableInChunks,
    encoder: TableEncoder,
    estimator: BaseLDL,
    held_out: HeldOut,
    keep_rows: int | None,
    seed: int,
    tell: Tell,
) -> _Judged:
    """Read the table once more: judge the model by the rows that were held out, and draw a sample of the others."""
    size = max(SAMPLE_ROWS, keep_rows or 0)
    features, degrees = RowSample(size, seed), RowSample(size, seed)  # one seed: the same rows
    sums: Any = 0.0
    total = 0.0
    parts: dict[str, list[Any]] = {"losses": [], "D": [], "weight": [], "groups": [], "counts": []}
    for chunk in table.chunks():
        held = held_out.of(chunk)
        D = table.distributions(chunk)
        weight = np.ones(len(D)) if chunk.weight is None else chunk.weight
        sums = sums + weight[~held] @ D.to_numpy()[~held]
        total += float(weight[~held].sum())
        features.update(chunk.X[~held])
        degrees.update(D[~held])
        if held.any():
            with naming(chunk.place):
                P = estimator.predict(encoder.transform(chunk.X[held]))
            given = D.to_numpy()[held]
            parts["losses"].append(_divergences(given, P))
            parts["D"].append(given)
            parts["weight"].append(weight[held])
            parts["groups"].append(None if chunk.groups is None else chunk.groups[held])
            counts = table.layout.counts(chunk.answers)
            parts["counts"].append(None if counts is None else counts[held])
        tell(f"judging: {table.files.fraction_read() or 0.0:.0%}")
    if not features.n_rows or not parts["losses"]:
        raise DataError(
            "All rows, or none, belong to the groups that were held out: there are too few groups to judge the model. "
            "Fit the table in memory, with ",
            Parameter("stream", False),
            ".",
        )
    found: dict[str, Any] = {name: None if those[0] is None else np.concatenate(those) for name, those in parts.items()}
    given = pd.DataFrame(found["D"], columns=table.layout.label_names)
    judged = Dataset(
        "held out",
        pd.DataFrame({"row": np.arange(len(given))}),
        given,
        sample_weight=found["weight"] if table.columns.weight is not None else None,
        groups=None if found["groups"] is None else np.unique(found["groups"], return_inverse=True)[1],
        counts=found["counts"],
    )
    estimate = estimate_from_losses(
        judged, np.arange(len(given)), found["losses"], _divergences(found["D"], sums / total)
    )
    sample = Dataset("sample", features.rows(), degrees.rows())
    return _Judged(judged, estimate, sample, features.positions(), features.n_rows)


def _divergences(D: FloatArray, P: FloatArray) -> FloatArray:
    """Kullback-Leibler divergence of each row; P may be one row for all."""
    return kullback_leibler.rowwise(D, np.broadcast_to(P, D.shape))


def _chosen(estimator: BaseLDL, candidate: Candidate) -> dict[str, Any]:
    """Hyper-parameters worth naming: those that the fit chose, and those of the grid as they were set."""
    chosen = {name: getattr(estimator, f"{name}_") for name in ("alpha", "scaling") if hasattr(estimator, f"{name}_")}
    return chosen or {name: estimator.get_params()[name] for name in find_candidate(candidate.name).grid}


def _why(choice: Choice, chosen: dict[str, Any], n_train: int, table: TableInChunks, n_passes: int) -> list[str]:
    rounded = {name: float(f"{value:.3g}") if isinstance(value, float) else value for name, value in chosen.items()}
    n_files = len(table.files.files)
    together = ", with whole groups held out" if table.columns.groups is not None else ""
    return [
        f"{choice.best.candidate.name}{show_setting(rounded)}: fitted to {n_train:,} rows of {n_files} "
        f"file{'s' * (n_files > 1)} in {n_passes} pass{'es' * (n_passes > 1)}.",
        f"{choice.expectation} Judged by {choice.n_rows:,} rows that were held out, drawn at random{together}: the "
        "model has not learned from them; the encoder has seen their features, not their labels.",
    ]


def _doubts(choice: Choice, candidate: Candidate) -> list[str]:
    found = [] if candidate.is_baseline else doubts_on_skill(choice)
    if candidate.grid:
        found.append(
            Message(
                f"{', '.join(candidate.grid)}: not chosen, since a table that is read in chunks is not searched; the "
                "default was taken. Use ",
                Parameter("settings"),
                ", or ",
                Parameter("model", "sa-bfgs-cv"),
                ", which chooses its penalty.",
            )
        )
    return found


def parse_size(text: str | int, name: str = "memory") -> int:
    """Bytes from a text such as ``1GiB``.

    The units are B, KiB, MiB, GiB and TiB; K, M, G, T and KB, MB, GB, TB mean the same. ``name`` is the parameter, for
    messages.

    Examples
    --------
    >>> parse_size("1GiB"), parse_size("512m"), parse_size("1.5 GB"), parse_size(0)
    (1073741824, 536870912, 1610612736, 0)
    """
    match = _SIZE.fullmatch(str(text))
    if match is None:
        raise DataError(Parameter(name, text), ": write a number with a unit, such as 1GiB or 500MiB.")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def memory_for_rows(memory: int, reading: int) -> int:
    """Bytes that a bound on memory leaves for the rows of a chunk and the model; an error if these are too few.

    ``reading`` bytes are what the reader of the files takes.
    """
    left = memory - BASE_BYTES - reading
    if left < MIN_CHUNK_BYTES:
        needed = -(-(BASE_BYTES + reading + MIN_CHUNK_BYTES) // (10 * MIB)) * 10
        raise DataError(
            Parameter("memory", f"{memory // MIB}MiB"),
            f" is too little: the libraries take {BASE_BYTES // MIB} MiB, and reading these files takes "
            f"{reading // MIB} MiB. Set ",
            Parameter("memory", f"{needed}MiB"),
            " or more.",
        )
    return left


def rows_to_scan(left: int, n_columns: int, n_texts: int) -> int:
    """Rows in a chunk while the columns, ``n_texts`` of them prose, are looked at."""
    return _bounded(left // (CELL_BYTES * n_columns + TEXT_CELL_BYTES * n_texts))


def rows_to_fit(left: int, scanned: int, n_features: int, n_labels: int, *, dense: bool, folded: bool) -> int:
    """Rows in a chunk while the model is fitted; an error if the model itself does not fit into the bound.

    They are not more than were scanned. ``dense`` says that the encoded rows are arrays, not sparse matrices, and
    ``folded`` that the model chooses its penalty by folds.
    """
    matrices = (FOLDED_MATRICES if folded else MATRICES) * n_features**2 if dense else 0
    model = NUMBER_BYTES * (matrices + (400 if folded else 40) * n_features * n_labels)
    if model > 3 * left // 4:
        raise DataError(
            f"The table makes {n_features:,} features, and the model of them takes {model // MIB} MiB "
            f"whatever the number of rows, where {left // MIB} MiB are left. Say ",
            Parameter("memory"),
            f" with {(model * 4 // 3 - left) // MIB + 1} MiB more, or leave out columns with ",
            Parameter("drop"),
            ".",
        )
    if not dense:
        return scanned
    return min(scanned, _bounded((left - model) // (NUMBER_BYTES * (CHUNK_COPIES * n_features + 12 * n_labels))))


def _bounded(n_rows: int) -> int:
    return max(MIN_CHUNK_ROWS, min(MAX_CHUNK_ROWS, int(n_rows)))
