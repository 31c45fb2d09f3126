"""Studies as TOML files: read, write, find the built-in ones, and select parts of them."""

import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from skldl.exceptions import Parameter, StudyError, UnknownNameError
from skldl.experiments.study import DatasetSpec, Study
from skldl.names import find_candidate
from skldl.selection import Candidate
from skldl.selection._candidate import shown
from skldl.utils.spelling import find

_STUDIES = resources.files("skldl.experiments") / "studies"


def builtin_studies() -> list[str]:
    """Names of the studies that the package includes.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> "demo" in builtin_studies()
    True
    """
    return sorted(entry.name[: -len(".toml")] for entry in _STUDIES.iterdir() if entry.name.endswith(".toml"))


def load_study(name_or_path: str | Path, *, trust: Iterable[str] = ()) -> Study:
    """Load a built-in study by name, or any study from its TOML file.

    Parameters
    ----------
    name_or_path : str or Path
        Such as ``demo``, ``tkde2016`` or ``my/study.toml``.
    trust : iterable of str, default=()
        Packages from which the study may import estimators besides skldl and scikit-learn. To import a package is to
        run its code, so that a study file imports nothing that you do not name here.

    Returns
    -------
    Study
        The study.

    Examples
    --------
    >>> from skldl.experiments import load_study
    >>> load_study("tkde2016").protocol
    'geng2016'
    """
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise FileNotFoundError(f"There is no study file {path}.")
        try:
            text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
        except UnicodeDecodeError as error:
            raise StudyError(f"{path} is not UTF-8, as TOML must be: {error}. Save it as UTF-8.") from None
        return parse_study(text, where=str(path), trust=trust)
    try:
        name = find(str(name_or_path), {known: known for known in builtin_studies()}, "study")
    except UnknownNameError as error:
        raise UnknownNameError(f"{error} Or give the path of a .toml file.") from None
    return parse_study((_STUDIES / f"{name}.toml").read_text(encoding="utf-8"), where=name, trust=trust)


def parse_study(text: str, *, where: str = "the study", trust: Iterable[str] = ()) -> Study:
    """Parse the text of a TOML file, which messages call ``where``; ``trust`` as in `load_study`."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{where} is not valid TOML: {error}.") from None
    except RecursionError:
        raise StudyError(f"{where}: its lists or tables are nested too deeply.") from None
    _reject_unknown(content, _KEYS, where)
    for key in ("datasets", "candidates"):
        if key not in content:
            raise StudyError(f"{where}: there is no list {key!r}.")
    _check_types(content, where)
    content["datasets"] = [_dataset(entry, where) for entry in content["datasets"]]
    content["candidates"] = [replace(_candidate(entry, where), trust=tuple(trust)) for entry in content["candidates"]]
    if "seed" in content:
        content["random_state"] = content.pop("seed")
    datasets = {dataset.name: dataset for dataset in content["datasets"]}
    for candidate in content["candidates"]:
        for name in candidate.grids:
            find(name, datasets, f"dataset of {candidate.name}'s grids")
    with _errors_of(where):
        return Study(**content)


@contextmanager
def _errors_of(where: str) -> Iterator[None]:
    """Word errors about parameters as entries of a study file, with the name of the file in front."""
    try:
        yield
    except StudyError as error:
        raise StudyError(f"{where}: {error.worded(_entry)}") from None


def _entry(parameter: Parameter) -> str:
    name = "seed" if parameter.name == "random_state" else parameter.name
    return f"{name} = {shown(parameter.value)}" if parameter.has_value else name


_KEYS = ({entry.name for entry in fields(Study)} | {"seed"}) - {"random_state"}


def _reject_unknown(table: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise StudyError(f"{where}: unknown key {shown(unknown[0])}. Known here: {', '.join(sorted(known))}.")


_NAMES = ("labels", "features", "drop", "text", "categories", "na_values")
_TEXTS = (
    *("name", "title", "protocol", "criterion", "order", "control", "estimator", "path", "refine", "source", "kind"),
    *("weight", "groups", "item", "annotator", "text_ngrams", "splits", "encoding", "decimal", "mechanism"),
)
_TYPES: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("datasets", "candidates", "measures"), (list, "a list")),
    **dict.fromkeys(_TEXTS, (str, "text in quotes")),
    **dict.fromkeys(("params", "grid", "grids", "natural"), (dict, "a table, { name = value }")),
    **dict.fromkeys(_NAMES, (str | list, "text in quotes, or a list of such")),
    **dict.fromkeys(("apart", "encode", "recover", "renormalise"), (bool, "true or false")),
    "hide": (float | int | list, "a fraction of the degrees from 0 to 1, or a list of such"),
}


def _check_types(table: Any, where: str) -> None:
    if not isinstance(table, dict):
        raise StudyError(f"{where}: {shown(table)} is neither a name nor a table.")
    for key, value in table.items():
        kind, described = _TYPES.get(key, (object, ""))
        if not isinstance(value, kind):
            raise StudyError(f"{where}: {key} = {shown(value)} must be {described}.")
    for key in ("measures", *_NAMES):
        for word in table.get(key, ()):
            if not isinstance(word, str):
                raise StudyError(f"{where}: {key} must be names in quotes, not {shown(word)}.")
    grids = table.get("grids", {})
    for dataset, grid in grids.items():
        if not isinstance(grid, dict):
            raise StudyError(
                f"{where}: the grid for {dataset} must be a table, {{ name = [values] }}, not {shown(grid)}."
            )
    named = [
        ("grid", table.get("grid", {})),
        ("natural", table.get("natural", {})),
        *((f"grid for {name}", grid) for name, grid in grids.items()),
    ]
    for key, entries in named:
        for name, values in entries.items():
            if not isinstance(values, list):
                raise StudyError(f"{where}: the {key} of {name} must be a list of values, not {shown(values)}.")


def _dataset(entry: Any, where: str) -> DatasetSpec:
    if isinstance(entry, str):
        return DatasetSpec(entry)
    _check_types(entry, f"{where}, datasets")
    _reject_unknown(entry, {known.name for known in fields(DatasetSpec)} - {"data"}, f"{where}, datasets")
    if "name" not in entry:
        raise StudyError(f"{where}: a dataset has no name.")
    with _errors_of(where):
        return DatasetSpec(**entry)


def _candidate(entry: Any, where: str) -> Candidate:
    if isinstance(entry, str):
        return find_candidate(entry)
    _check_types(entry, f"{where}, candidates")
    if "described" in entry:
        raise StudyError(
            f"{where}: candidate {entry.get('name')} was built in Python as {entry['described']}; a study file "
            "cannot build it again. Run the study from Python."
        )
    _reject_unknown(entry, {known.name for known in fields(Candidate)} - {"trust"}, f"{where}, candidates")
    for key in ("name", "estimator"):
        if key not in entry:
            raise StudyError(f"{where}: candidate {entry.get('name', '')} has no {key}.")
    return Candidate(**entry)


def dump_study(study: Study) -> str:
    """Write a study as TOML.

    Parameters
    ----------
    study : Study
        The study.

    Returns
    -------
    str
        Text that `parse_study` reads back as the same study, if all its candidates have import paths.

    Examples
    --------
    >>> from skldl.experiments import Candidate, Study, dump_study
    >>> study = Study(["Artificial"], [Candidate("Mean", "skldl:MeanDistribution")], name="small")
    >>> print(dump_study(study).splitlines()[0])
    name = "small"
    """
    content = study.to_dict()
    lines = [f"{key} = {_toml(value)}" for key, value in content.items() if key not in ("datasets", "candidates")]
    for key in ("datasets", "candidates"):
        for entry in content[key]:
            lines += ["", f"[[{key}]]", *(f"{name} = {_toml(value)}" for name, value in entry.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf, -inf and nan, as TOML writes them
    return json.dumps(value)  # bool, int and float look the same in JSON and TOML
