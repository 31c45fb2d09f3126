"""``skldl fit``: train a model on a table and save it to a file.

While a fit in chunks runs, its state is kept in ``MODEL.resume``, so that the same command continues after a stop:
``state.json`` (the fingerprint of the fit), ``encoder.skldl``, one file for each pass (`skldl.chunks.FolderJournal`)
and the encoded rows (`skldl.tabular._chunked_fit`). It contains no code.
"""

import ast
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import IO, Annotated, Any, Self

from cyclopts import Parameter

import skldl
from skldl.chunks import FolderJournal, Journal
from skldl.cli._model_file import is_model
from skldl.cli._options import ColumnOptions, Flag, Reading, Source, check_targets, naming_formats
from skldl.cli._progress import working
from skldl.cli._screen import note
from skldl.cli._wording import worded
from skldl.data import TableFiles
from skldl.data._formats import find_files, suffixes_with
from skldl.data._roles import open_table
from skldl.exceptions import DataError, DatasetError, Message, ModelFileError, TableError
from skldl.persistence import read, save
from skldl.tabular import FitOptions, TableEncoder, fit_table
from skldl.tabular._fit import is_read_in_chunks
from skldl.utils.files import whole_file
from skldl.utils.spelling import split_list

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

_ENCODER, _FINGERPRINT, _LOCK = "encoder.skldl", "state.json", "lock"
STAMP_BLOCKS, STAMP_BLOCK_BYTES = 1024, 2**16
"""Part of a file that is hashed to notice that it was exchanged: 64 MiB, .04 s; chosen by hand."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options(FitOptions):
    """The options of `fit_table`; two of them have another type on the command line."""

    __doc__ = FitOptions.__doc__
    values: Annotated[Any, Parameter(converter=lambda kind, tokens: _numbers(tokens[0].value))] = None
    intervals: Flag = False


@naming_formats
def fit(
    table: Source,
    /,
    *more: Source,
    columns: ColumnOptions | None = None,
    reading: Reading | None = None,
    out: Path,
    model: str = "auto",
    settings: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    options: Options | None = None,
    seed: int = 0,
    overwrite: Flag = False,
) -> None:
    """Train a model on a table and save it to a file.

    By default several models are compared, and the most accurate or a pool of them is trained. For instance:

        skldl fit faces.csv --labels 'emo_*' --out faces.skldl
        skldl fit faces.csv --labels 'emo_*' --preset fast --out quick.skldl
        skldl fit faces.csv --labels 'emo_*' --model sa-bfgs --out linear.skldl
        skldl fit big/*.parquet --labels 'r_*' --stream --out big.skldl

    Parameters
    ----------
    table
        A table ({tables}), a file with arrays of features and labels ({arrays}), or - for standard input; a folder of
        tables, or a pattern such as 'big/*.parquet'.
    more
        Further files with the same columns, whose rows follow.
    columns
        Which of its columns is what.
    reading
        How the files are written.
    out
        Where to write the model, such as model.skldl.
    model
        auto, see --preset; or a name, such as sa-bfgs, aa-knn, kernel-ridge, random-forest, pt-svm, mean (all of them:
        docs/algorithms.md); or the import path of an estimator, package.module:Class.
    settings
        A parameter of the named model, as in alpha=0.1; may be given several times.
    options
        How the model is chosen, what is kept with it, and how large tables are read. A fit in chunks that is stopped
        keeps its passes in OUT.resume, and the same command continues from there.
    seed
        Seed of all random numbers.
    overwrite
        Overwrite an existing file that is not a model.
    """
    if out.is_dir() or not out.parent.is_dir():
        raise TableError(f"--out {out} is a folder, or is in a folder that does not exist. Name a file.")
    sources = find_files([table, *more], suffixes_with("reader"))
    check_targets([("--out", out)], sources, overwrite=overwrite or is_model(out))
    import skops  # noqa: F401 - if it is not installed, fail before the training, not after

    columns, reading, options = columns or ColumnOptions(), reading or Reading(), options or Options()
    given = typed_settings(settings or [])
    in_chunks = bool(options.stream) or options.scheduler is not None
    opened = open_table(sources, columns, in_chunks=in_chunks, **reading.as_arguments())
    state = None
    if isinstance(opened, TableFiles) and is_read_in_chunks(opened, model, given, options):
        result_depends_on = {**asdict(columns), **asdict(options), **reading.as_arguments()}
        result_depends_on |= {"model": model, "settings": given, "seed": seed, "cluster": options.scheduler is not None}
        for name in ("cache", "keep_rows", "scheduler", "stream"):
            del result_depends_on[name]
        state = ResumeFolder(out, opened.files, result_depends_on)
    with working() as show, state or contextlib.nullcontext():
        fitted = fit_table(
            opened,
            columns,
            model=model,
            settings=given,
            options=options,
            random_state=seed,
            on_progress=show,
            state=state,
        )
    save(fitted.model, out, description=fitted.description)
    if state is not None:
        state.remove()
    for line in fitted.why:
        print(worded(line))
    for warning in fitted.warnings:
        note(Message("Note: ", warning))
    model, data = quote(str(out)), quote(str(table))  # the shell must take these commands as they are
    print(f"Written to {out}. Next: skldl predict {model} NEW.csv, skldl inspect {model}, skldl explain {model} {data}")


def typed_settings(settings: list[str]) -> dict[str, Any]:
    """Convert words such as ``alpha=0.1`` to values by name: numbers, truth values, lists, None or text.

    Examples
    --------
    >>> typed_settings(["alpha=0.1", "solver=bfgs", "fit_intercept=true"])
    {'alpha': 0.1, 'solver': 'bfgs', 'fit_intercept': True}
    """
    values = {}
    for setting in settings:
        name, sign, text = (part.strip() for part in setting.partition("="))
        if not (name and sign and text):
            raise TableError(f"--set {setting}: write it as name=value, such as alpha=0.1.")
        values[name] = _value(text)
    return values


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.casefold() in words:
        return words[text.casefold()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a word, such as tied


def _numbers(text: str | None) -> list[float] | None:
    if not text:
        return None
    try:
        return [float(word) for word in split_list(text)]
    except ValueError:
        raise TableError(f"--values {text}: write numbers separated by commas, one for each label.") from None


class ResumeFolder:
    """The state of a fit in a folder beside the model; use it in a ``with`` block around the fit.

    The fingerprint is a hash of the version, of names, sizes, modification times and part of the content of ``files``,
    and of ``options``, plain values with everything else that the result depends on. ``found`` is "same" or "other" if
    the folder held a state of the same or of another fit, else empty. If the block ends with an error, complete passes
    stay.
    """

    def __init__(self, out: Path, files: Sequence[str], options: Mapping[str, Any]) -> None:
        self.folder = out.parent / f"{out.name}.resume"
        stamps = [(os.path.realpath(file), os.stat(file).st_mtime_ns, digest_of_part(file)) for file in files]
        content = json.dumps([skldl.__version__, stamps, options], sort_keys=True, default=str)
        self.fingerprint = hashlib.sha256(content.encode()).hexdigest()
        if self.folder.exists() and not self.folder.is_dir():
            raise DatasetError(f"{self.folder} is a file: the state of the fit is written there. Rename the file.")
        with writing(self.folder):
            self.folder.mkdir(exist_ok=True)
        self._lock = self._locked()
        self.found = self._find_state()
        if self.found == "other":
            self.clear()
        self.journal: Journal = _Journal(self.folder)

    def __enter__(self) -> Self:
        if self.found == "same":
            note(f"Continuing from {self.folder}, which holds {self.n_passes()} passes of this fit.")
        elif self.found == "other":
            note(f"{self.folder} held the state of another fit, with other files or options. It was removed.")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None:
            return
        if isinstance(error, ConnectionError):  # of a cluster
            self.close()
            raise DatasetError(f"{error} The passes that were completed are kept in {self.folder}.") from error
        if not self.n_passes() and (isinstance(error, DataError) or not self.has_encoder()):
            self.remove()  # nothing to continue from
        elif isinstance(error, KeyboardInterrupt):
            note(f"{self.n_passes()} passes are kept in {self.folder}: the same command continues from there.")
        self.close()

    def _locked(self) -> IO[bytes] | None:
        """Lock the folder, so that no second fit writes to it; the system releases the lock when this process ends."""
        if fcntl is None:
            return None
        with writing(self.folder):
            stream = (self.folder / _LOCK).open("wb")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            stream.close()
            raise DatasetError(
                f"Another skldl fit is writing to {self.folder}. Wait until it ends, or name another --out."
            ) from error
        return stream

    def _find_state(self) -> str:
        """Whether the folder holds the state of the same fit, of another one, or none."""
        try:
            known = json.loads((self.folder / _FINGERPRINT).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return "other" if any(file.name != _LOCK for file in self.folder.iterdir()) else ""
        return "same" if isinstance(known, dict) and known.get("fingerprint") == self.fingerprint else "other"

    def load(self) -> tuple[TableEncoder, dict[str, Any]] | None:
        """Load the encoder and the facts about the table, or None if this fit has no state."""
        if self.found != "same":
            return None
        try:
            about, encoder = read(self.folder / _ENCODER)
        except (OSError, ModelFileError):
            return None
        return encoder, about["description"]

    def save(self, encoder: TableEncoder, facts: dict[str, Any]) -> None:
        """Save the fingerprint, the encoder and the facts about the table."""
        with writing(self.folder):
            with whole_file(self.folder / _FINGERPRINT) as stream:
                stream.write(json.dumps({"fingerprint": self.fingerprint}).encode())
            save(encoder, self.folder / _ENCODER, description=facts)

    def has_encoder(self) -> bool:
        """Whether the encoder was saved."""
        return (self.folder / _ENCODER).is_file()

    def n_passes(self) -> int:
        """Number of passes of the fit that were saved."""
        return len(list(self.folder.glob("pass-*.npz")))

    def clear(self) -> None:
        """Remove the state, except the lock."""
        for pattern in ("pass-*.npz", ".*.part", "rows.*", _ENCODER, _FINGERPRINT):
            for file in self.folder.glob(pattern):
                file.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the state and its folder; a folder that holds other files stays."""
        self.clear()
        self.close()
        with contextlib.suppress(OSError):
            (self.folder / _LOCK).unlink(missing_ok=True)
            self.folder.rmdir()

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()


def digest_of_part(file: str) -> str:
    """Hash of the size of a file and of `STAMP_BLOCKS` blocks of it, which are the whole of a file that is not larger.

    The blocks have equal distances; the last one is at the end of the file, where Parquet has its index.
    """
    size = os.stat(file).st_size
    digest = hashlib.sha256(str(size).encode())
    step = max(STAMP_BLOCK_BYTES, size // STAMP_BLOCKS)
    with open(file, "rb") as stream:
        for start in (*range(0, size, step), max(0, size - STAMP_BLOCK_BYTES)):
            stream.seek(start)
            digest.update(stream.read(STAMP_BLOCK_BYTES))
    return digest.hexdigest()


class _Journal(FolderJournal):
    """A journal whose errors name the folder and a remedy."""

    def put(self, number: int, key: str, sums: Any) -> None:
        with writing(self.folder):
            super().put(number, key, sums)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an `OSError` into an error that names the folder and a remedy."""
    try:
        yield
    except OSError as error:
        raise DatasetError(
            f"The state of the fit cannot be written to {folder}: {error.strerror or error}. Free some space, or name "
            "a model on another disk with --out. Passes that were completed are kept; the same command continues from "
            "there."
        ) from error
