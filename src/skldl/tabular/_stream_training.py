"""`fit_stream`: a model of a table in files that need not fit into memory.

The files are read several times. The first passes fit the encoder (`TableEncoder.fit_chunks`), then each pass gives the
learner the sums that it asks for, and the last one judges the model on rows that were held out. What the passes found
is kept in a `FitState`, if there is one: the same call with the same state goes on where an earlier one was stopped,
and its result is the same to the last digit.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from sklearn.pipeline import Pipeline

from skldl.base import BaseLDL
from skldl.chunks import ClusterRows, Journal, RecordedRows, Rows
from skldl.data import label_values
from skldl.data._parquet import release_unused_memory
from skldl.data._roles import notes_on_rows
from skldl.exceptions import DataError, Message, Parameter
from skldl.names import algorithm_titles, find_candidate
from skldl.selection import BASELINE, Candidate
from skldl.selection._fitting import MODEL_STEP
from skldl.tabular._choice import Choice, Trial
from skldl.tabular._choice_words import described_model, doubts_on_skill, show_setting
from skldl.tabular._chunk_cache import ChunkCache
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._encoder_fit import EncoderFit
from skldl.tabular._kept_rows import check_number_kept
from skldl.tabular._memory_plan import GIB, memory_for_rows, rows_to_fit, rows_to_scan
from skldl.tabular._models import is_auto, with_settings
from skldl.tabular._stream_judgement import Judgement, judge
from skldl.tabular._streamed_rows import EncodedRows, HeldOut
from skldl.tabular._streamed_table import StreamedTable, naming
from skldl.tabular._training import FittedTable

AUTO_MODEL = "SA-BFGS-CV"
"""The model of ``model="auto"``."""
HASHED_TEXT = 2**14
HELD_OUT_ROWS, HELD_OUT_SHARE = 20_000, 0.2
Tell = Callable[[str], None]


class FitState(Protocol):
    """Where a fit keeps what its passes have found; encoded rows are kept in the folder, too."""

    journal: Journal
    fingerprint: str
    folder: Path

    def load(self) -> tuple[TableEncoder, dict[str, Any]] | None:
        """The encoder and the facts of an earlier call, or None."""

    def save(self, encoder: TableEncoder, facts: dict[str, Any]) -> None:
        """Keep the encoder and the facts, which are plain values."""


def fit_stream(
    table: StreamedTable,
    *,
    model: str = "auto",
    settings: Mapping[str, Any] | None = None,
    text_ngrams: str = "auto",
    values: Sequence[float] | None = None,
    random_state: int = 0,
    keep_rows: int | None = None,
    memory: int = GIB,
    cache: int = 0,
    on_progress: Tell | None = None,
    state: FitState | None = None,
    client: Any = None,
) -> FittedTable:
    """Train a model on a table that is read in chunks, and judge it on rows that were held out.

    Parameters are those of `fit_table`, with these differences. ``model`` is one that learns from rows in chunks,
    "auto" means SA-BFGS-CV; n-grams are hashed to 16,384 features for each column. ``memory`` bounds the process, in
    bytes, by the number of rows in a chunk; up to ``cache`` bytes of encoded rows are kept on the disk between passes,
    in the folder of the state, which keeps what the passes have found. With ``client``, a Dask cluster, its workers
    read, encode and keep the rows, each file on one of them, and sums travel; the encoder is fitted, and the model
    judged, in this process.
    """
    candidate = streaming_candidate(model, settings)
    folded = hasattr(candidate.make(), "alphas")
    if table.groups is not None and folded:
        raise DataError(
            Parameter("groups", table.groups),
            f": {candidate.name} chooses its penalty by folds of rows, which would split the groups of "
            "a table that is read in chunks. Say ",
            Parameter("model", "sa-bfgs"),
            " with ",
            Parameter("settings", {"alpha": 0.001}),
            ".",
        )
    if keep_rows is not None:
        check_number_kept(keep_rows)
    tell = on_progress or (lambda text: None)
    left = memory_for_rows(memory, table.files.reading_bytes)
    table.chunk_rows = rows_to_scan(left, len(table.files.columns), len(table.text))
    known = None if state is None else state.load()
    if known is None:
        encoder = TableEncoder(table.text, table.categories, text_ngrams=text_ngrams, hashed_text=HASHED_TEXT)
        facts = _scan(table, encoder, tell)
        if state is not None:
            state.save(encoder, facts)
    else:
        encoder, facts = known
        table.label_names, table.rows_of_files = facts["label_names"], facts["rows_of_files"]
    names, n_rows = list(facts["label_names"]), int(facts["n_rows"])
    numbers = label_values(names, values)
    dense = not encoder.is_sparse_
    table.chunk_rows = rows_to_fit(
        left, table.chunk_rows, len(encoder.sources()), len(names), dense=dense, folded=folded
    )
    held_out = HeldOut(min(HELD_OUT_SHARE, HELD_OUT_ROWS / n_rows), random_state)
    n_train = None if table.groups is not None else n_rows - held_out.count(n_rows)
    if n_train is not None and not 0 < n_train < n_rows:
        raise DataError(
            f"The table has {n_rows} rows, too few to hold some out. Fit it in memory, without ",
            Parameter("stream", True),
            ".",
        )
    # sums, and the order of the encoded rows, depend on where chunks end
    fingerprint = "" if state is None else f"{state.fingerprint} {table.chunk_rows}"
    kept = None if state is None or client is not None else ChunkCache(state.folder, fingerprint, cache)
    rows = EncodedRows(table, encoder, held_out, n_train, kept)
    estimator = candidate.make({}, random_state)
    source: Rows = rows if client is None else ClusterRows(rows, client)
    if state is not None:
        source = RecordedRows(source, state.journal, fingerprint=fingerprint)
    n_fitted = n_train or n_rows
    source.progress = lambda number, n_read: tell(f"fit, pass {number}: {n_read:,} of {n_fitted:,} rows")
    estimator.fit(source)
    judged = judge(table, encoder, estimator, held_out, keep_rows, random_state, lambda text: tell(f"judging: {text}"))
    pipeline = Pipeline([("encoder", encoder), (MODEL_STEP, estimator)])
    chosen = _chosen(estimator, candidate)
    best = Trial(candidate, chosen, judged.estimate.loss)
    mean = Trial(BASELINE, {}, judged.estimate.reference_loss)
    choice = Choice(best, [best, mean], judged.estimate, len(judged.estimate.losses), 1, [])
    why = [*_why(choice, chosen, judged, table, source.n_passes), *judged.finish(pipeline, random_state)]
    description = {
        "source": table.files.name,
        "rows": judged.n_train,
        "held_out": choice.n_rows,
        "labels": names,
        "values": numbers,
        "kind": table.kind,
        "label_columns": table.label_columns,
        "roles": {"weight": table.weight or "", "groups": table.groups or "", "dropped": table.drop},
        "training_rows": "",
        "typical": facts["typical"],
        **judged.kept(encoder.kinds_, keep_rows, random_state),
        **described_model(pipeline, choice, why, judged.floor_numbers),
        "intervals": 0,
    }
    notes = [*table.notes, *table.files.notes, *facts["notes"], *judged.notes, *_doubts(choice, candidate)]
    return FittedTable(pipeline, description, choice, why, list(dict.fromkeys(notes)))


def streaming_candidate(model: str, settings: Mapping[str, Any] | None) -> Candidate:
    """The model that is named, if it can learn from a table that is read in chunks.

    Examples
    --------
    >>> streaming_candidate("auto", None).make()
    SABFGSCV()
    """
    name = AUTO_MODEL if is_auto(model, settings) else model
    candidate = with_settings(find_candidate(name), settings or {})
    if not can_stream(candidate.make()):
        raise DataError(
            f"{candidate.name} needs all rows in memory. Models that learn from a table in chunks are "
            f"{', '.join(algorithm_titles('chunks'))}: name one with ",
            Parameter("model"),
            ", or fit without ",
            Parameter("stream", True),
            ".",
        )
    return candidate


def can_stream(estimator: Any) -> bool:
    """Whether an estimator learns from `skldl.chunks.Rows`."""
    return isinstance(estimator, BaseLDL) and type(estimator)._fit_rows is not BaseLDL._fit_rows


def _scan(table: StreamedTable, encoder: TableEncoder, tell: Tell) -> dict[str, Any]:
    """Fit the encoder and find the names of the labels; what else was found, in plain values."""
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
            notes = fitting.notes()  # refuses columns that are mostly numbers
    notes = [*notes, *(note for note in fitting.notes() if note not in notes)]
    return {
        "n_rows": fitting.n_rows,
        "label_names": table.label_names,
        "rows_of_files": dict(table.rows_of_files),
        "typical": encoder.typical_,
        "notes": [*notes, *notes_on_rows(fitting.n_rows, table.left_out)],
    }


def _chosen(estimator: BaseLDL, candidate: Candidate) -> dict[str, Any]:
    """Hyper-parameters worth naming: those that the fit chose, and those of the grid as they were set."""
    chosen = {name: getattr(estimator, f"{name}_") for name in ("alpha", "scaling") if hasattr(estimator, f"{name}_")}
    return chosen or {name: estimator.get_params()[name] for name in find_candidate(candidate.name).grid}


def _why(choice: Choice, chosen: dict[str, Any], judged: Judgement, table: StreamedTable, n_passes: int) -> list[str]:
    rounded = {name: float(f"{value:.3g}") if isinstance(value, float) else value for name, value in chosen.items()}
    n_files = len(table.files.files)
    together = ", with whole groups held out" if table.groups is not None else ""
    return [
        f"{choice.best.candidate.name}{show_setting(rounded)}: fitted to {judged.n_train:,} rows of {n_files} "
        f"file{'s' * (n_files > 1)} in {n_passes} pass{'es' * (n_passes > 1)}.",
        f"{choice.expectation} Judged on {choice.n_rows:,} rows that were held out, drawn at random{together}: the "
        "model has not learned from them; the encoder has seen their features, not their labels.",
    ]


def _doubts(choice: Choice, candidate: Candidate) -> list[str]:
    found = [] if candidate.is_baseline else doubts_on_skill(choice)
    if candidate.grid:
        names = ", ".join(candidate.grid)
        found.append(
            Message(
                f"{names}: not chosen, since a table that is read in chunks is not searched; the default "
                "was taken. Say ",
                Parameter("settings"),
                ", or ",
                Parameter("model", "sa-bfgs-cv"),
                ", which chooses its penalty.",
            )
        )
    return found
