"""The part of ``skldl fit`` that reads a table in chunks: when, with which options, and with a state that is kept."""

import contextlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from skldl.cli._options import Columns
from skldl.cli._resume import ResumeFolder
from skldl.cli._screen import note
from skldl.data._formats import holds_arrays
from skldl.data._tables import TableFiles
from skldl.exceptions import DataError, DatasetError, Message, Parameter, TableError, UnknownNameError
from skldl.names import algorithm_titles
from skldl.tabular._memory_plan import GIB, parse_size
from skldl.tabular._stream_training import fit_stream, streaming_candidate
from skldl.tabular._streamed_table import StreamedTable
from skldl.tabular._training import FittedTable

SHARE = 8
"""A table that is larger than this part of the available memory is read in chunks."""
SMALL = 2**26
"""Files that are smaller together are not looked at for this."""
NOT_IN_CHUNKS = {
    "preset": Message("one model is fitted, see ", Parameter("model")),
    "budget": Message("one model is fitted, see ", Parameter("model")),
    "folds": Message("the folds of SA-BFGS-CV are set by ", Parameter("settings", {"cv": 5})),
    "splits": "rows are held out at random",
    "selection_rows": "the model learns from all rows but those that are held out",
    "intervals": "no rows are kept for calibration",
}
"""Options of the fit in memory that have no part here, and why."""


def is_streamed(
    sources: Sequence[str], columns: Columns, model: str, settings: Mapping[str, Any], others: Mapping[str, Any]
) -> bool:
    """Whether a table is large enough to be read in chunks without ``--stream``.

    False, with a note, if the table is large but the model, or one of the options of `NOT_IN_CHUNKS` in ``others``,
    needs it in memory.
    """
    if any(holds_arrays(source) or not os.path.isfile(source) for source in sources):
        return False
    if sum(os.path.getsize(source) for source in sources) < SMALL:
        return False
    available = available_memory()
    size = TableFiles(sources, **columns.as_reading()).n_bytes
    if available is None or size * SHARE <= available:
        return False
    large = f"The table has {size / GIB:.1f} GiB, more than an eighth of the {available / GIB:.1f} GiB that are free"
    given = [name for name, value in others.items() if value]
    if given:
        note(
            Message(
                f"{large}. It is read into memory, since ",
                Parameter(given[0]),
                " asks for that; ",
                Parameter("stream", True),
                " would read it in chunks.",
            )
        )
        return False
    try:
        streaming_candidate(model, settings)
    except UnknownNameError:
        raise
    except DataError:
        note(
            f"{large}. It is read into memory all the same: of the models only "
            f"{', '.join(algorithm_titles('chunks'))} learn in chunks."
        )
        return False
    note(Message(f"{large}: it is read in chunks, as with ", Parameter("stream", True), "."))
    return True


def fit_in_chunks(
    sources: Sequence[str],
    columns: Columns,
    out: Path,
    others: Mapping[str, Any],
    tell: Callable[[str], None],
    *,
    memory: str,
    cache: str,
    scheduler: str | None,
    keep_rows: int | None,
    **chosen: Any,
) -> tuple[FittedTable, ResumeFolder]:
    """Fit a model to a table that is read in chunks, from where an earlier call was stopped if there was one.

    The state is kept beside ``out``, and is to be removed when the model is written. The options of `NOT_IN_CHUNKS` in
    ``others`` are errors. ``memory`` and ``cache`` bound the memory and the disk space for encoded rows, ``scheduler``
    is the address of a Dask cluster that fits the model, and ``chosen`` has what `fit_stream` takes.
    """
    for source in sources:
        if holds_arrays(source):
            raise TableError(
                f"{source} holds arrays, which are read whole: ",
                Parameter("stream", True),
                " is for CSV and Parquet files.",
            )
        if not _is_readable_again(source):
            name = "Standard input" if source == "-" else source
            raise TableError(f"{name} can be read only once, and a fit in chunks reads several times. Name a file.")
    for name, value in others.items():
        if value:
            raise TableError(
                Parameter(name),
                " has no part in a fit that reads the table in chunks: ",
                NOT_IN_CHUNKS[name],
                ". Leave it out, or fit in memory, without ",
                Parameter("stream", True),
                ".",
            )
    columns.need_labels()
    n_bytes, n_disk = parse_size(memory), parse_size(cache, "cache")
    streaming_candidate(chosen["model"], chosen["settings"])  # refuses before anything is read
    roles = columns.as_arguments()
    table = StreamedTable(TableFiles(sources, **columns.as_reading()), **roles)
    chosen["memory"] = n_bytes
    state = ResumeFolder(out, sources, {**chosen, **roles, **columns.as_reading(), "cluster": scheduler is not None})
    if state.found == "same":
        note(f"Going on from {state.folder}, which holds {state.n_passes()} passes of this fit.")
    elif state.found == "other":
        note(f"{state.folder} held the state of another fit, of other files or options: it is begun anew.")
    client = None
    try:
        if scheduler is not None:
            from skldl.experiments.cluster import connected

            client = connected(scheduler)
        fitted = fit_stream(
            table,
            keep_rows=keep_rows,
            cache=n_disk,
            on_progress=tell,
            state=state,
            client=client,
            **chosen,
        )
    except ConnectionError as error:
        state.close()
        raise DatasetError(f"{error} What was found so far is kept in {state.folder}.") from error
    except BaseException as error:
        if not state.n_passes() and (isinstance(error, DataError) or not state.has_encoder()):
            state.remove()  # nothing is worth keeping
        elif isinstance(error, KeyboardInterrupt):
            note(f"{state.n_passes()} passes are kept in {state.folder}: the same command goes on from there.")
        state.close()
        raise
    finally:
        if client is not None:
            client.close()
    return fitted, state


def _is_readable_again(source: str) -> bool:
    """Whether a source is a file, or is not there, which another error tells."""
    with contextlib.suppress(OSError):
        return source != "-" and stat.S_ISREG(os.stat(source).st_mode)
    return source != "-"


def available_memory() -> int | None:
    """Bytes of memory that are free, within the limit of a container; None where the system does not say."""
    found = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        with open("/proc/meminfo") as stream:
            line = next(line for line in stream if line.startswith("MemAvailable:"))
        found.append(int(line.split()[1]) * 1024)
    with contextlib.suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        found.append(max(0, limit - int(Path("/sys/fs/cgroup/memory.current").read_text())))
    if not found:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(found, default=None)
