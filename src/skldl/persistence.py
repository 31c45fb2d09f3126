"""Model files: `save` and `load`. Loading never runs code from the file.

A model file is a zip archive with two members: ``skldl.json`` describes the model (format, versions, date, what it
was trained on) and holds the checksum of ``model.skops``, the estimator itself as written by skops.
`skldl._model_file_checks` checks what is read. Needs the extra ``save``.
"""

import errno
import hashlib
import io
import json
import math
import os
import pickle
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import skldl
from skldl.exceptions import DataError, ModelFileError
from skldl.utils.arrays import is_foreign, to_numpy
from skldl.utils.budget import Budget
from skldl.utils.dependencies import import_with_extra
from skldl.utils.files import whole_file
from skldl.utils.typing import AnyArray
from skldl.utils.warn import warn

FORMAT = 1
_DESCRIPTION = "skldl.json"
_MODEL = "model.skops"
_PACKAGES = ("scikit-learn", "numpy", "scipy", "skops")

MIN_LIMIT = 2**30
"""Bytes that any model may take when unpacked, however small its file: one of a table of 50,000 columns takes nearly as
much for the names and kinds of its columns, in a file of 7 MB."""
MAX_RATIO = 10
"""Larger models may take this many times the size of their file: zip rarely halves numbers; zip bombs reach 1000."""


def save(model: Any, path: str | os.PathLike[str], *, description: Mapping[str, Any] | None = None) -> Path:
    """Write a fitted model to a file, atomically.

    The file is written under a temporary name and renamed when it is complete: a crash leaves an older file of that
    name as it was. Arrays on a device are written as NumPy arrays, so that the loaded model runs on any machine.

    Parameters
    ----------
    model : estimator
        A fitted estimator or pipeline.
    path : str or path
        Where to write it, by convention with the suffix ``.skldl``.
    description : mapping, default=None
        Further information to store with it, such as the schema of the training table: anything that JSON can hold,
        with text as keys. A number that is not finite, such as a skill of −∞, is stored as null and read as None.

    Returns
    -------
    Path
        Where it was written.

    Examples
    --------
    >>> import tempfile, pathlib, skldl
    >>> model = skldl.MeanDistribution().fit([[0.0], [1.0]], [[0.2, 0.8], [0.6, 0.4]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = skldl.save(model, pathlib.Path(folder) / "mean.skldl")
    ...     skldl.load(file).predict([[5.0]])
    array([[0.4, 0.6]])
    """
    skops = import_with_extra("skops.io", "save", user="A model file")
    check_is_fitted(model)
    content = skops.dumps(_on_host(model), compression=zipfile.ZIP_DEFLATED)
    about = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"scikit-ldl": skldl.__version__, **{name: metadata.version(name) for name in _PACKAGES}},
        "sha256": hashlib.sha256(content).hexdigest(),
        "description": _finite(dict(description or {})),
    }
    with whole_file(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(_DESCRIPTION, json.dumps(about, indent=1, allow_nan=False))
        archive.writestr(_MODEL, content)
    return Path(path)


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = (), max_bytes: int | None = None) -> Any:
    """Read a model from a file without running any code from it.

    Parameters
    ----------
    path : str or path
        A file written by `save`.
    trusted : iterable of str, default=()
        Full names of further types to rebuild, such as an estimator of your own: ``"mypackage.MyModel"``. Name only
        types whose code you know, in files whose origin you know: their attributes are not checked.
    max_bytes : int, default=None
        Bytes that everything in the file may take when unpacked: arrays, each object that refers to one, and the values
        that describe the model. None means ten times the size of the file, and 1 GiB at least.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, comes from a newer version, or holds a type that is not trusted.

    Examples
    --------
    >>> import tempfile, skldl
    >>> model = skldl.MeanDistribution().fit([[0.0], [1.0]], [[0.2, 0.8], [0.6, 0.4]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     skldl.load(skldl.save(model, f"{folder}/mean.skldl")).predict([[5.0]])
    array([[0.4, 0.6]])
    """
    return read(path, trusted=trusted, max_bytes=max_bytes)[1]


def read(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = (), max_bytes: int | None = None
) -> tuple[dict[str, Any], Any]:
    """Read a model and the description in its file.

    Parameters
    ----------
    path : str or path
        A file written by `save`.
    trusted : iterable of str, default=()
        As in `load`.
    max_bytes : int, default=None
        As in `load`.

    Returns
    -------
    description : dict
        Format, date, versions and the description given to `save`, as from `inspect`.
    model : estimator
        The fitted model, as from `load`.

    Examples
    --------
    >>> import tempfile, skldl
    >>> model = skldl.MeanDistribution().fit([[0.0], [1.0]], [[0.2, 0.8], [0.6, 0.4]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     about, again = skldl.persistence.read(skldl.save(model, f"{folder}/mean.skldl", description={"rows": 2}))
    >>> about["description"], again.predict([[5.0]])
    ({'rows': 2}, array([[0.4, 0.6]]))
    """
    budget = _budget(path, max_bytes)
    about, content = _read(path, budget)
    model = _rebuild(path, content, frozenset(trusted), budget)
    _warn_of_other_versions(path, about["versions"])
    return about, model


def inspect(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the description of a model file, without rebuilding the model.

    Parameters
    ----------
    path : str or path
        A file written by `save`.

    Returns
    -------
    dict
        Format, date, versions and the description given to `save`.

    Examples
    --------
    >>> import tempfile, skldl
    >>> model = skldl.MeanDistribution().fit([[0.0], [1.0]], [[0.2, 0.8], [0.6, 0.4]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     about = skldl.persistence.inspect(skldl.save(model, f"{folder}/mean.skldl"))
    >>> about["versions"]["scikit-ldl"] == skldl.__version__
    True
    """
    return _read(path, _budget(path, None))[0]


# Reading


def _budget(path: str | os.PathLike[str], max_bytes: int | None) -> Budget:
    return Budget(path, max(MIN_LIMIT, MAX_RATIO * os.path.getsize(path)) if max_bytes is None else max_bytes)


def _read(path: str | os.PathLike[str], budget: Budget) -> tuple[dict[str, Any], bytes]:
    """Read the description and the content of a model file, and check its sizes and its checksum."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):  # /dev/zero has no end
        raise ModelFileError(f"{path} is a pipe or a device. Write it to a file, and load that file.")
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {member.filename: member.file_size for member in archive.infolist()}
            if sorted(archive.namelist()) != sorted((_DESCRIPTION, _MODEL)):
                raise ModelFileError(f"{path} is not a model file: it holds {', '.join(list(sizes)[:3]) or 'nothing'}.")
            budget.take(sum(sizes.values()))
            text = archive.read(_DESCRIPTION)
            budget.take_values(text)
            # Infinity and NaN, which Python writes by default, are not JSON: `save` writes null for them
            about = json.loads(text, parse_constant=lambda word: None)
            content = archive.read(_MODEL)
    except ModelFileError:
        raise
    except (
        zipfile.BadZipFile,
        EOFError,
        ValueError,
        NotImplementedError,
        RuntimeError,
        RecursionError,
        OverflowError,
        OSError,
        zlib.error,
    ) as error:
        # zipfile seeks before the beginning of a damaged file: EINVAL. Other errors of the system are not about content
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise ModelFileError(
            f"{path} is not a model file, or was cut short or damaged ({error}). "
            "Make it again with skldl fit or skldl.save."
        ) from error
    _check_description(path, about)
    if hashlib.sha256(content).hexdigest() != about["sha256"]:
        raise ModelFileError(f"{path} was changed after it was written: its checksum is wrong. Make it again.")
    return about, content


def _rebuild(path: str | os.PathLike[str], content: bytes, trusted: frozenset[str], budget: Budget) -> Any:
    import_with_extra("skops.io", "save", user="A model file")
    from skldl._model_file_checks import UntrustedType, rebuild  # imports a great part of scikit-learn

    try:
        return rebuild(content, trusted=trusted, budget=budget)
    except UntrustedType as error:
        raise ModelFileError(
            f"{path} cannot be read safely: {error}. If you know who made the file, load it with "
            f"skldl.load(path, trusted=[{error.name!r}])."
        ) from None
    except ModelFileError:
        raise
    except Exception as error:  # crafted content can fail anywhere in NumPy, SciPy, scikit-learn and skops
        reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{path} cannot be rebuilt with the packages installed here: {reason[:300]}") from error


_FIELDS = {"created": str, "versions": dict, "sha256": str, "description": dict}


def _check_description(path: str | os.PathLike[str], about: Any) -> None:
    """Check that the description has the fields that `save` writes, with their types, from no newer version."""
    if not isinstance(about, dict) or type(about.get("format")) is not int:
        raise ModelFileError(f"{path} is not a model file: its description has no format number.")
    versions: Any = about.get("versions") if isinstance(about.get("versions"), dict) else {}
    written_by = str(versions.get("scikit-ldl", "?"))
    if about["format"] > FORMAT or _version(written_by) > _version(skldl.__version__):
        raise ModelFileError(
            f"{path} was written by scikit-ldl {written_by[:40]} (format {about['format']}), newer than this "
            f"{skldl.__version__} (format {FORMAT}). Upgrade: pip install -U scikit-ldl"
        )
    for name, kind in _FIELDS.items():
        if not isinstance(about.get(name), kind):
            raise ModelFileError(f"{path} is not a model file: {name} in its description is not a {kind.__name__}.")
    if "scikit-ldl" not in versions or not all(isinstance(text, str) for text in versions.values()):
        raise ModelFileError(f"{path} is not a model file: its description does not name the version that wrote it.")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:4] if part.isdecimal() and len(part) < 10)


def _warn_of_other_versions(path: str | os.PathLike[str], versions: Mapping[str, str]) -> None:
    """Warn if scikit-learn had another minor version: it does not promise that a model predicts the same then."""
    then, now = str(versions.get("scikit-learn", "?")), metadata.version("scikit-learn")
    if _version(then)[:2] != _version(now)[:2]:
        warn(
            f"{path} was written with scikit-learn {then} and is read with {now}; predictions may differ. "
            "Train it again with the versions that use it.",
        )


# Writing


def _finite(value: Any) -> Any:
    """Replace infinity and NaN, which JSON does not have, by None."""
    if isinstance(value, Mapping):
        for key in value:
            if isinstance(key, float) and not math.isfinite(key):
                raise DataError(f"The description has the key {key!r}, which JSON does not have. Use text as the key.")
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# Models fitted on a device. Estimators that keep training rows keep them where they were fitted. A copy is made by
# pickling: arrays of other libraries are pickled as NumPy arrays in double precision, and an object with a method
# `_on_host` as what that method returns.


def _on_host(model: Any) -> Any:
    """Return a model without arrays of other libraries: itself if it holds none, else a copy with NumPy arrays."""
    if not _holds_foreign_arrays(model):
        return model
    stream = io.BytesIO()
    _ToHost(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(model)
    return pickle.loads(stream.getvalue())  # our own bytes, made in the line above


def _holds_foreign_arrays(model: Any) -> bool:
    """Whether an estimator, or what it consists of, holds an array of a library other than NumPy."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if is_foreign(part):
            return True
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
        elif type(part).__module__.partition(".")[0] in ("skldl", "sklearn"):
            waiting += getattr(part, "__dict__", {}).values()
    return False


class _ToHost(pickle.Pickler):
    """A pickler that turns arrays of other libraries into NumPy's."""

    def reducer_override(self, value: Any) -> Any:
        if is_foreign(value) and hasattr(value, "shape"):
            return _itself, (_numpy_copy(value),)
        if not isinstance(value, type) and hasattr(value, "_on_host"):
            return _itself, (value._on_host(),)
        return NotImplemented


def _numpy_copy(array: Any) -> AnyArray:
    values = to_numpy(array)
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def _itself(value: Any) -> Any:
    return value
