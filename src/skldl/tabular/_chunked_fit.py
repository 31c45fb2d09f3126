"""The fit of a model to a table that is read in chunks, with bounded memory.

The files are read several times: twice to fit the encoder (`_scan`), then once for each pass over the rows that the
estimator needs (`EncodedRows`, which keeps the encoded rows in a file, `ChunkCache`, so that files are usually parsed
only once more), and finally to judge the model by rows that were held out (`_judge`). The results of the passes are
saved in a `FitState`, if there is one: the same call with the same state continues a fit that was interrupted, and its
result is the same to the last digit.
"""

import contextlib
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import Pipeline

from skldl.base import BaseLDL
from skldl.chunks import ClusterRows, Journal, Layout, Piece, RecordedRows, Rows
from skldl.data import Columns, Dataset, TableFiles
from skldl.data._cells import as_words, cell_error
from skldl.data._leaks import label_leaks
from skldl.data._parquet import release_unused_memory
from skldl.data._roles import TableLayout, notes_on_rows
from skldl.exceptions import DataError, Message, NonFiniteError, Parameter, TableError
from skldl.metrics import kullback_leibler
from skldl.names import algorithm_titles, find_candidate
from skldl.selection import BASELINE, Candidate, Estimate
from skldl.selection._estimate import estimate_from_losses
from skldl.selection._fitting import MODEL_STEP
from skldl.tabular._choice import Choice, Trial, show_setting, warnings_on_skill
from skldl.tabular._description import Made, check_number_kept, kept_rows
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._encoder_fit import EncoderFit
from skldl.tabular._models import is_auto, with_settings
from skldl.tabular._row_sample import RowSample, drawn, mixed_keys, row_keys
from skldl.tabular._uncertain_fit import MAX_REFERENCE_ROWS, add_uncertainty, noise_floor_of
from skldl.utils.column_names import list_names
from skldl.utils.typing import AnyArray, BoolArray, FloatArray

AUTO_MODEL = "SA-BFGS-CV"
"""The model of ``model="auto"`` in chunks: it needs only sums over rows, and chooses its penalty itself."""
HASHED_TEXT = 2**14
"""Number of features to which the n-grams of a text column are hashed; chosen by hand."""
HELD_OUT_ROWS, HELD_OUT_FRACTION = 20_000, 0.2
"""Rows that are held out to judge the model: this fraction, but at most about this many; chosen by hand."""
SAMPLE_ROWS = 5000
"""Training rows that are kept in memory to detect leaks and for the reference for drift; chosen by hand."""
MAX_LABELS = 10_000
"""Votes and single labels with more different words are probably not labels; chosen by hand."""
_KEYS_AT_ONCE = 2**20
_ROWS, _COMPLETE = "rows.cache", "rows.complete"
_DENSE, _SPARSE = 0, 1
Progress = Callable[[str], None]

# The plan of memory determines the number of rows in a chunk. The figures were measured, and are upper bounds:
# tests/cli/test_fit_stream_memory.py compares them with the memory of fits.
GIB, MIB = 2**30, 2**20
BASE_BYTES = 440 * MIB
"""Memory of the libraries, for any table: half of it for the library that writes model files."""
MIN_CHUNK_BYTES = 64 * MIB
CELL_BYTES = 400
"""For each cell of a chunk while it is read and encoded, in the worst case a word."""
TEXT_CELL_BYTES = 6000
"""For each cell of prose with its n-grams."""
NUMBER_BYTES = 8
CHUNK_COPIES = 6
"""Arrays of the size of the encoded chunk that exist at the same time."""
MAX_CHUNK_ROWS, MIN_CHUNK_ROWS = 100_000, 200
FOLDED_MATRICES, MATRICES = 16, 5
"""Matrices with a row and a column for each feature during the fit: with the folds of SA-BFGS-CV, and without."""
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)i?b?\s*", flags=re.IGNORECASE)


class FitState(Protocol):
    """Storage of the results of passes, with a folder for the encoded rows."""

    journal: Journal
    fingerprint: str
    folder: Path

    def load(self) -> tuple[TableEncoder, dict[str, Any]] | None:
        """Return the encoder and the facts of an earlier call, or None."""

    def save(self, encoder: TableEncoder, facts: dict[str, Any]) -> None:
        """Save the encoder and the facts, which are plain values."""


@dataclass(frozen=True, eq=False)
class TableChunk:
    """Rows of one file that have a label and weight; ``first`` such rows of the table come before them.

    The index of X is the position of the rows in the file; ``groups`` are hashes.
    """

    file: str
    X: pd.DataFrame
    answers: pd.DataFrame
    weight: FloatArray | None
    groups: AnyArray | None
    first: int


class TableInChunks:
    """A table in files that is read chunk by chunk, repeatedly, and split by the roles of its columns.

    After one pass, ``rows_of_files`` has the number of rows with a label and weight in each file, and ``left_out`` the
    number of other rows by the reason. For votes and single labels, the names of the labels are known after
    `learn_labels` was called with all chunks, and then `end_of_labels`.
    """

    def __init__(self, files: TableFiles, columns: Columns, chunk_rows: int = 20_000) -> None:
        for role in ("item", "annotator"):
            if getattr(columns, role) is not None:
                raise TableError(
                    Parameter(role),
                    ": a table with one row for each vote cannot be read in chunks. Convert it first, with ",
                    "skldl convert.",
                )
        self.files, self.columns, self.chunk_rows = files, columns, chunk_rows
        self.layout = TableLayout(columns, files.columns)
        self._words: set[str] = set()
        self.left_out: Counter[str] = Counter()
        self.rows_of_files: dict[str, int] = {}

    def chunks(self) -> Iterator[TableChunk]:
        """Yield all rows that have a label and weight."""
        self.left_out.clear()
        self.rows_of_files = dict.fromkeys(self.files.files, 0)
        for chunk in self.chunks_of(None, 0):
            self.rows_of_files[chunk.file] += len(chunk.X)
            yield chunk
        if not any(self.rows_of_files.values()):
            raise TableError(f"No row of {self.files.name} has a label and weight.")

    def chunks_of(self, only: str | None, first: int) -> Iterator[TableChunk]:
        """Yield the rows of one file, or of all, that have a label and weight; ``first`` such rows come before them."""
        for file, frame in self.files.pieces(self.chunk_rows, only):
            with errors_naming(file):
                part = self.layout.split(frame)
                self.left_out.update(part.left_out)
                groups = None if part.groups is None else _hashed(part.groups)
            if len(part.X):
                yield TableChunk(file, part.X, part.answers, part.weight, groups, first)
                first += len(part.X)

    def learn_labels(self, chunk: TableChunk) -> None:
        """Collect the words of votes and single labels in a chunk, or check its label columns of other kinds."""
        if self.layout.label_names is not None:
            self.read_labels(chunk)
            return
        self._words |= self.layout.words(chunk.answers)
        if len(self._words) > MAX_LABELS:
            raise TableError(
                f"The columns {list_names(self.layout.label_columns)} hold more than {MAX_LABELS:,} different words. "
                "Are they labels? ",
                Parameter("kind", self.columns.kind),
                " treats each word as a label.",
            )

    def end_of_labels(self) -> None:
        """Set the names of the labels, after `learn_labels` was called with all chunks."""
        if self.layout.label_names is None:
            self.layout.name_labels(self._words)

    def read_labels(self, chunk: TableChunk) -> tuple[pd.DataFrame, AnyArray | None]:
        """Distributions of a chunk, and counts of votes if they are known; errors name the file and the row."""
        with errors_naming(chunk.file):
            if self.columns.kind == "distribution":
                _check_complete(chunk.answers)
            return self.layout.read_labels(chunk.answers)[:2]


@contextmanager
def errors_naming(file: str) -> Iterator[None]:
    """Add the name of the file to errors about the rows of a chunk."""
    try:
        yield
    except DataError as error:
        if file in str(error):
            raise
        raise error.prefixed(f"{file}: ") from error


def _check_complete(answers: pd.DataFrame) -> None:
    gaps = answers.isna().to_numpy()
    if gaps.any():
        row, column = (int(position) for position in np.argwhere(gaps)[0])
        raise cell_error(
            NonFiniteError,
            answers.iloc[:, column],
            row,
            ", a label, is empty. Models that read a table in chunks need "
            "every degree: write 0 where the label does not apply, or fit a model that learns from missing degrees "
            "(sa-bfgs-cv) in memory, with ",
            Parameter("stream", False),
            ".",
        )


def _hashed(column: pd.Series) -> AnyArray:
    words: Any = as_words(column, "").astype(object).to_numpy()
    return np.asarray(pd.util.hash_array(words, categorize=True), dtype=np.uint64)


@dataclass(frozen=True)
class HeldOut:
    """The rows that are held out to judge the model: a fraction of the rows, or of the groups, drawn by a hash."""

    fraction: float
    seed: int

    def of(self, chunk: TableChunk) -> BoolArray:
        """Mark the rows of a chunk that are held out, independently of the size of the chunks."""
        if chunk.groups is not None:
            return drawn(mixed_keys(chunk.groups, self.seed), self.fraction)
        return drawn(row_keys(chunk.first, len(chunk.X), self.seed), self.fraction)

    def count(self, n_rows: int) -> int:
        """Number of rows that are held out of the first ``n_rows``, if there are no groups."""
        starts = range(0, n_rows, _KEYS_AT_ONCE)
        parts = (row_keys(start, min(_KEYS_AT_ONCE, n_rows - start), self.seed) for start in starts)
        return sum(int(np.count_nonzero(drawn(keys, self.fraction))) for keys in parts)


class ChunkCache:
    """Encoded rows in one file, which is written in the first pass and read in the following passes.

    A file with another fingerprint is not read. The file is removed when it becomes larger than ``max_bytes``, or than
    half of the free disk space; then every pass encodes the rows again, and ``given_up`` is the reason.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> cache = ChunkCache(pathlib.Path(tempfile.mkdtemp()), "a table", 2**20)
    >>> for piece in cache.kept(iter([Piece(np.eye(2), np.full((2, 2), 0.5))])):
    ...     pass
    >>> cache.is_complete(), next(iter(cache.read())).X.tolist()
    (True, [[1.0, 0.0], [0.0, 1.0]])
    """

    def __init__(self, folder: Path, fingerprint: str, max_bytes: int) -> None:
        self._folder, self._fingerprint, self._max_bytes = folder, fingerprint, max_bytes
        self.given_up = "" if max_bytes else "no space was allowed for it"

    def is_complete(self) -> bool:
        """Whether all rows were written."""
        try:
            return (self._folder / _COMPLETE).read_text(encoding="utf-8") == self._fingerprint
        except (OSError, ValueError):
            return False

    def kept(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Yield the pieces and write each of them; the file is valid after the last one."""
        self.remove()
        stream: IO[bytes] | None = None
        try:
            for piece in pieces:
                if not self.given_up:
                    with self._writing():
                        stream = stream or (self._folder / _ROWS).open("wb")
                        _write(stream, piece)
                        self._check_size(stream.tell())
                yield piece
            if not self.given_up and stream is not None:
                with self._writing():
                    stream.close()  # writes the last bytes
                    (self._folder / _COMPLETE).write_text(self._fingerprint, encoding="utf-8")
        finally:
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
            if not self.is_complete():
                self.remove()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Set ``given_up`` if the file cannot be written; errors about the rows are not caught."""
        try:
            yield
        except OSError as error:
            self.given_up = f"it could not be written: {error.strerror or error}"

    def _check_size(self, n_bytes: int) -> None:
        if n_bytes > self._max_bytes:
            self.given_up = f"the encoded rows take more than {self._max_bytes / 2**30:.3g} GiB"
        elif n_bytes > shutil.disk_usage(self._folder).free:  # before the file there was n_bytes more free space
            self.given_up = "the encoded rows take more than half of the free disk space"

    def read(self) -> Iterator[Piece]:
        """Yield the rows that were written."""
        with (self._folder / _ROWS).open("rb") as stream:
            while stream.peek(1):
                yield _read(stream)

    def remove(self) -> None:
        """Remove the files."""
        for name in (_COMPLETE, _ROWS):
            (self._folder / name).unlink(missing_ok=True)


def _write(stream: IO[bytes], piece: Piece) -> None:
    is_sparse = sparse.issparse(piece.X)
    weight = np.empty(0) if piece.weight is None else np.asarray(piece.weight)
    about = [_SPARSE if is_sparse else _DENSE, piece.X.shape[0], piece.X.shape[1], piece.first_row]
    parts = [np.array(about), np.frombuffer(piece.place.encode(), dtype=np.uint8), np.asarray(piece.y), weight]
    if is_sparse:
        rows = piece.X.tocsr()
        parts += [rows.data, rows.indices, rows.indptr]
    else:
        parts.append(np.ascontiguousarray(piece.X))
    for part in parts:
        np.save(stream, part, allow_pickle=False)


def _read(stream: IO[bytes]) -> Piece:
    def part() -> Any:
        return np.load(stream, allow_pickle=False)

    kind, n_rows, n_columns, first = (int(value) for value in part())
    place, D, weight = part().tobytes().decode(), part(), part()
    X = sparse.csr_matrix((part(), part(), part()), shape=(n_rows, n_columns)) if kind == _SPARSE else part()
    return Piece(X, D, weight if len(weight) else None, place, first)


class EncodedRows(Rows):
    """Encoded training rows of a table, kept in a cache between passes; ``n_rows`` is None if unknown."""

    def __init__(
        self,
        table: TableInChunks,
        encoder: TableEncoder,
        held_out: HeldOut,
        n_rows: int | None,
        cache: ChunkCache | None = None,
    ) -> None:
        self.table, self.encoder, self.held_out, self.cache = table, encoder, held_out, cache
        self._n_rows = n_rows

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        if self.cache is None or self.cache.given_up:
            return self._encoded(self.table.chunks(), labels)
        if self.cache.is_complete():
            return self.cache.read()
        return self.cache.kept(self._encoded(self.table.chunks(), labels=True))

    def _tasks(self, client: Any) -> list[tuple[Any, ...]] | None:
        """One task for each file: a worker of the cluster reads it, under the same path, and encodes its rows."""
        if client is None:
            return []
        table = copy(self.table)
        table.files = self.table.files.at_full_paths()
        shared = client.submit(_itself, EncodedRows(table, self.encoder, self.held_out, None), pure=False)
        counts = [self.table.rows_of_files[file] for file in self.table.files.files]
        firsts = np.cumsum([0, *counts])
        return [
            (_pieces_of_file, shared, file, int(first))
            for file, first, count in zip(table.files.files, firsts, counts, strict=False)
            if count
        ]

    def _encoded(self, chunks: Iterator[TableChunk], labels: bool) -> Iterator[Piece]:
        for chunk in chunks:
            kept = ~self.held_out.of(chunk)
            if not kept.any():
                continue
            D = self.table.read_labels(chunk)[0][kept] if labels else None
            with errors_naming(chunk.file):
                X = self.encoder.transform(chunk.X[kept])
            yield Piece(X, D, None if chunk.weight is None else chunk.weight[kept], chunk.file, int(chunk.X.index[0]))

    def _known_layout(self) -> Layout:
        names = tuple(self.table.layout.label_names or ())
        is_sparse = self.encoder.is_sparse_
        return Layout(
            len(self.encoder.sources()), len(names), None, names, self.table.columns.weight is not None, is_sparse
        )

    def _name(self) -> str:
        return self.table.files.name

    @property
    def n_rows(self) -> int | None:
        """Number of training rows, if it is known."""
        return self._n_rows


def _itself(rows: EncodedRows) -> EncodedRows:
    """The rows as the result of a task, which Dask repeats if its worker is lost."""
    return rows


def _pieces_of_file(rows: EncodedRows, file: str, first: int) -> Iterator[Piece]:
    """Yield the encoded rows of one file; a task for a worker."""
    return rows._encoded(rows.table.chunks_of(file, first), labels=True)


def fit_in_chunks(
    files: TableFiles,
    columns: Columns,
    model: str,
    settings: Mapping[str, Any] | None,
    options: Any,
    random_state: int,
    report: Progress,
    state: FitState | None,
) -> Made:
    """Fit a model to a table that is read in chunks, and estimate its quality on rows that were held out.

    With a scheduler among the options, workers of a Dask cluster read and encode the rows, each file on one worker,
    keep them in memory and return sums over them; the encoder is fitted, and the model judged, in this process.
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
    available = memory_for_rows(memory, files.reading_bytes)
    table.chunk_rows = rows_to_scan(available, len(files.columns), len(columns.text))
    with _connected(options.scheduler) as client:
        known = None if state is None else state.load()
        if known is None:
            encoder = TableEncoder(
                columns.text, columns.categories, text_ngrams=columns.text_ngrams, hashed_text=HASHED_TEXT
            )
            facts = _scan(table, encoder, report)
            if state is not None:
                state.save(encoder, facts)
        else:
            encoder, facts = known
            table.layout.label_names, table.rows_of_files = list(facts["label_names"]), facts["rows_of_files"]
        label_names, n_rows = list(facts["label_names"]), int(facts["n_rows"])
        table.chunk_rows = rows_to_fit(
            available,
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
        # rounding errors of sums, and the order of the encoded rows, depend on the size of the chunks
        fingerprint = "" if state is None else f"{state.fingerprint} {table.chunk_rows}"
        kept = None if state is None or client is not None else ChunkCache(state.folder, fingerprint, cache)
        rows = EncodedRows(table, encoder, held_out, n_train, kept)
        source: Rows = rows if client is None else ClusterRows(rows, client)
        if state is not None:
            source = RecordedRows(source, state.journal, fingerprint=fingerprint)
        n_fitted = n_train or n_rows
        source.progress = lambda number, n_read: report(f"fit, pass {number}: {n_read:,} of {n_fitted:,} rows")
        estimator = candidate.make({}, random_state)
        estimator.fit(source)
    judged = _judge(table, encoder, estimator, held_out, options.keep_rows, random_state, report)
    pipeline = Pipeline([("encoder", encoder), (MODEL_STEP, estimator)])
    reference = judged.sample.take(np.arange(min(MAX_REFERENCE_ROWS, judged.sample.n_samples)))
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
    notes = [*table.layout.notes, *files.notes, *facts["notes"], *leaks, *_warnings_on_fit(choice, candidate)]
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
    """A client of the Dask cluster, or None without a scheduler."""
    if scheduler is None:
        yield None
        return
    from skldl.experiments.cluster import connected

    with contextlib.closing(connected(scheduler)) as client:
        yield client


def chunk_candidate(model: str, settings: Mapping[str, Any] | None) -> Candidate:
    """The candidate of a name; an error if it cannot be fitted to a table in chunks.

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


def _scan(table: TableInChunks, encoder: TableEncoder, report: Progress) -> dict[str, Any]:
    """Fit the encoder and find the names of the labels; return further facts about the table, in plain values."""
    fitting = EncoderFit(encoder)
    notes: list[str] = []
    while not fitting.done:
        for chunk in table.chunks():
            if not fitting.n_passes:
                table.learn_labels(chunk)
            with errors_naming(chunk.file):
                fitting.update(chunk.X, chunk.file)
            report(f"columns, pass {fitting.n_passes + 1}: {table.files.fraction_read() or 0.0:.0%}")
        fitting.end_pass()
        release_unused_memory()
        if fitting.n_passes == 1:
            table.end_of_labels()
            notes = fitting.notes()  # raises errors about columns that are mostly numbers before the second pass
    notes = [*notes, *(note for note in fitting.notes() if note not in notes)]
    return {
        "n_rows": fitting.n_rows,
        "label_names": table.layout.label_names,
        "rows_of_files": dict(table.rows_of_files),
        "notes": [*notes, *notes_on_rows(fitting.n_rows, table.left_out)],
    }


class _Judged(NamedTuple):
    """The held-out rows with the estimate, and a sample of the training rows with their positions."""

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
    report: Progress,
) -> _Judged:
    """Read the table again: judge the model by the held-out rows, and draw a sample of the training rows."""
    size = max(SAMPLE_ROWS, keep_rows or 0)
    features, degrees = RowSample(size, seed), RowSample(size, seed)  # the same seed draws the same rows
    sums: Any = 0.0
    total = 0.0
    parts: dict[str, list[Any]] = {"losses": [], "D": [], "weight": [], "groups": [], "counts": []}
    for chunk in table.chunks():
        held = held_out.of(chunk)
        D, counts = table.read_labels(chunk)
        weight = np.ones(len(D)) if chunk.weight is None else chunk.weight
        sums = sums + weight[~held] @ D.to_numpy()[~held]
        total += float(weight[~held].sum())
        features.update(chunk.X[~held])
        degrees.update(D[~held])
        if held.any():
            with errors_naming(chunk.file):
                P = estimator.predict(encoder.transform(chunk.X[held]))
            given = D.to_numpy()[held]
            parts["losses"].append(_divergences(given, P))
            parts["D"].append(given)
            parts["weight"].append(weight[held])
            parts["groups"].append(None if chunk.groups is None else chunk.groups[held])
            parts["counts"].append(None if counts is None else np.asarray(counts, dtype=np.float64)[held])
        report(f"judging: {table.files.fraction_read() or 0.0:.0%}")
    if not features.n_rows or not parts["losses"]:
        raise DataError(
            "All rows, or none, are in the groups that were held out: there are too few groups to judge the model. "
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
    """Kullback-Leibler divergence of each row; P may be a single row."""
    return kullback_leibler.rowwise(D, np.broadcast_to(P, D.shape))


def _chosen(estimator: BaseLDL, candidate: Candidate) -> dict[str, Any]:
    """Hyper-parameters for the report: those that the fit chose, else those of the candidate's grid."""
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
        "model was fitted without them; the encoder was fitted to their features, too, but not to their labels.",
    ]


def _warnings_on_fit(choice: Choice, candidate: Candidate) -> list[str]:
    found = [] if candidate.is_baseline else warnings_on_skill(choice)
    if candidate.grid:
        found.append(
            Message(
                f"{', '.join(candidate.grid)}: not tuned, since there is no search for a table that is read in chunks; "
                "the default was used. Set ",
                Parameter("settings"),
                ", or ",
                Parameter("model", "sa-bfgs-cv"),
                ", which chooses its penalty.",
            )
        )
    return found


def parse_size(text: str | int, name: str = "memory") -> int:
    """Parse a size in bytes such as ``1GiB``; ``name`` is the parameter, for messages.

    The units are B, KiB, MiB, GiB and TiB; K, M, G, T and KB, MB, GB, TB mean the same.

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
    """Bytes of a bound on memory that are available for a chunk and the model; an error if there are too few.

    The reader of the files takes ``reading`` bytes.
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
    """Number of rows in a chunk while the encoder is fitted; ``n_texts`` columns are prose."""
    return _bounded(left // (CELL_BYTES * n_columns + TEXT_CELL_BYTES * n_texts))


def rows_to_fit(left: int, scanned: int, n_features: int, n_labels: int, *, dense: bool, folded: bool) -> int:
    """Number of rows in a chunk while the model is fitted, at most ``scanned``; an error if the model is too large.

    ``dense`` is whether the encoded rows are arrays, not sparse matrices, and ``folded`` whether the model chooses its
    penalty by folds.
    """
    matrices = (FOLDED_MATRICES if folded else MATRICES) * n_features**2 if dense else 0
    model = NUMBER_BYTES * (matrices + (400 if folded else 40) * n_features * n_labels)
    if model > 3 * left // 4:  # a quarter is for the rows of a chunk
        raise DataError(
            f"The table has {n_features:,} encoded features; the model of them takes {model // MIB} MiB "
            f"for any number of rows, but only {left // MIB} MiB are left. Increase ",
            Parameter("memory"),
            f" by {(model * 4 // 3 - left) // MIB + 1} MiB, or leave out columns with ",
            Parameter("drop"),
            ".",
        )
    if not dense:
        return scanned
    return min(scanned, _bounded((left - model) // (NUMBER_BYTES * (CHUNK_COPIES * n_features + 12 * n_labels))))


def _bounded(n_rows: int) -> int:
    return max(MIN_CHUNK_ROWS, min(MAX_CHUNK_ROWS, int(n_rows)))
