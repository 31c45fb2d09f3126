"""Models in files: `save` and `load`. Loading never runs code from the file.

A model file is a zip archive with two members: ``skldl.json`` says what the model is (format, versions, date, what it
was trained on) and holds the checksum of ``model.skops``, the estimator itself as written by skops. skops rebuilds only
types that are named as trusted: those of scikit-learn, NumPy and SciPy, and the estimators of this package. Needs the
extra ``save``.
"""

import hashlib
import json
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

import skldl
from skldl._whole_files import whole_file
from skldl.exceptions import ModelFileError

FORMAT = 1
_DESCRIPTION = "skldl.json"
_MODEL = "model.skops"
_PARTS = {
    "skldl.neighbors._search.StableSearch",
    "skldl.tabular._encoder.TableEncoder",
    "skldl.transformation._pair_model.Examples",
    "skldl.transformation._pair_model.PairModel",
    "skldl.transformation._pairwise_svm.Machines",
    # arrays in a frame: sparse matrices, nodes of trees, points of a neighbour search and the distance between them
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._ball_tree.BallTree64",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neighbors._kd_tree.KDTree64",
    "sklearn.tree._tree.Tree",
}
_PACKAGES = ("scikit-learn", "numpy", "scipy", "skops")


def save(model: Any, path: str | os.PathLike[str], *, description: Mapping[str, Any] | None = None) -> Path:
    """Write a fitted model to a file, whole or not at all.

    The file is written under another name beside its place and moved there when it is complete: a crash leaves an older
    file of that name as it was.

    Parameters
    ----------
    model : estimator
        A fitted estimator or pipeline.
    path : str or path
        Where to write it, by convention with the ending ``.skldl``.
    description : mapping, default=None
        What else to keep with it, such as the schema of the training table; anything that JSON can hold.

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
    from skops import io

    check_is_fitted(model)
    content = io.dumps(model, compression=zipfile.ZIP_DEFLATED)
    about = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"scikit-ldl": skldl.__version__, **{name: metadata.version(name) for name in _PACKAGES}},
        "sha256": hashlib.sha256(content).hexdigest(),
        "description": dict(description or {}),
    }
    with whole_file(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(_DESCRIPTION, json.dumps(about, indent=1))
        archive.writestr(_MODEL, content)
    return Path(path)


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> Any:
    """Read a model from a file without running any code from it.

    Parameters
    ----------
    path : str or path
        A file written by `save`.
    trusted : iterable of str, default=()
        Full names of further types to rebuild, such as an estimator of your own: ``"mypackage.MyModel"``. Name only
        types whose code you know.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, comes from a newer version, or holds a type that is not trusted.
    """
    from skops import io

    about, content = _read(path)
    known = _known_types() | set(trusted)
    try:
        unknown = sorted(set(io.get_untrusted_types(data=content)) - known)
        if not unknown:
            model = io.loads(content, trusted=sorted(known))
    except Exception as error:  # skops has no error class of its own for content that it did not write
        raise ModelFileError(f"{path} cannot be rebuilt with the packages installed here: {error!r}") from error
    if unknown:
        raise ModelFileError(
            f"{path} holds the type {unknown[0]}, which is not known to be harmless"
            f"{f' (and {len(unknown) - 1} more)' if len(unknown) > 1 else ''}. "
            f"If it is yours, load it with skldl.load(path, trusted={unknown!r})."
        )
    _warn_of_other_versions(path, about["versions"])
    return model


def inspect(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Say what a model file holds, without rebuilding the model.

    Parameters
    ----------
    path : str or path
        A file written by `save`.

    Returns
    -------
    dict
        Format, date, versions and the description given to `save`.
    """
    return _read(path)[0]


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], bytes]:
    """Description and content of a model file, or what is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if sorted(names) != sorted((_DESCRIPTION, _MODEL)):
                raise ModelFileError(f"{path} is no model of skldl: it holds {', '.join(names[:3]) or 'nothing'}.")
            about = json.loads(archive.read(_DESCRIPTION))
            content = archive.read(_MODEL)
    except ModelFileError:
        raise
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise ModelFileError(
            f"{path} is no model of skldl, or was cut short or damaged ({error}). "
            "Make it again with skldl fit or skldl.save."
        ) from error
    if not isinstance(about, dict) or not isinstance(about.get("format"), int):
        raise ModelFileError(f"{path} is no model of skldl: its description has no format number.")
    written_by = str(about.get("versions", {}).get("scikit-ldl", "?"))
    if about["format"] > FORMAT or _version(written_by) > _version(skldl.__version__):
        raise ModelFileError(
            f"{path} was written by scikit-ldl {written_by} (format {about['format']}), newer than this "
            f"{skldl.__version__} (format {FORMAT}). Upgrade: pip install -U scikit-ldl"
        )
    if hashlib.sha256(content).hexdigest() != about.get("sha256"):
        raise ModelFileError(f"{path} was changed after it was written: its checksum does not fit. Make it again.")
    return about, content


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _known_types() -> set[str]:
    """The estimators of this package, their parts, and what skops itself leaves out though it holds no code."""
    homes = (getattr(skldl, name) for name in skldl.ESTIMATORS)
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in homes} | _PARTS


def _warn_of_other_versions(path: str | os.PathLike[str], versions: Mapping[str, str]) -> None:
    """scikit-learn does not promise that a model means the same in another minor version."""
    then, now = str(versions.get("scikit-learn", "?")), metadata.version("scikit-learn")
    if _version(then)[:2] != _version(now)[:2]:
        warnings.warn(
            f"{path} was written with scikit-learn {then} and is read with {now}; predictions may differ. "
            "Train it again with the versions that use it.",
            UserWarning,
            stacklevel=3,
        )
