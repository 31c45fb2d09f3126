"""``skldl inspect``: describe a model file without loading the model."""

import json
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from skldl.cli._options import Flag, Reading, Source, check_is_no_model, check_targets, naming_formats
from skldl.cli._wording import printable
from skldl.exceptions import TableError
from skldl.persistence import inspect as read_description
from skldl.utils.files import whole_file


@naming_formats
def inspect(
    model: Path,
    table: Source | None = None,
    /,
    *,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    monitor: Path | None = None,
    reading: Reading | None = None,
    overwrite: Flag = False,
) -> None:
    """Describe the training data, the inputs and the quality of a model, or compare rows with its training table.

    For instance:

        skldl inspect faces.skldl
        skldl inspect faces.skldl --json
        skldl inspect faces.skldl new.csv --monitor drift.json

    Parameters
    ----------
    model
        A model file.
    table
        Compare the rows of this table ({tables}) with the training table, instead: unknown categories, numbers out
        of range, distances to the nearest training rows, shift of the mean prediction.
    as_json
        Print the whole description as JSON; with a table, the numbers of the comparison.
    monitor
        Write the numbers of the comparison to this file, as JSON.
    reading
        How the table is written.
    overwrite
        Overwrite an existing file.
    """
    if table is not None:
        _compare(model, table, as_json=as_json, monitor=monitor, reading=reading or Reading(), overwrite=overwrite)
        return
    if monitor is not None:
        raise TableError("--monitor compares rows with the training table: name a table after the model.")
    about = read_description(model)
    if hashes := about["description"].get("training_rows"):
        about["description"]["training_rows"] = f"{len(hashes):,} hexadecimal digits"
    if as_json:
        print(json.dumps(about, indent=2, ensure_ascii=False))
        return
    for heading, text in _lines(about):
        print(printable(f"{heading:<12} {text}").replace("\n", r"\n"))


def _compare(
    model: Path, table: str, *, as_json: bool, monitor: Path | None, reading: Reading, overwrite: bool
) -> None:
    """Compare the rows of a table with the training table of a model."""
    from skldl.cli._model_file import open_model  # slow imports that the description does not need
    from skldl.tabular._drift import DriftMonitor

    check_is_no_model(table)
    check_targets([("--monitor", monitor)], [model, table], overwrite=overwrite)
    made = open_model(str(model))
    drift = DriftMonitor(made.pipeline)
    with reading.open(table) as source:
        made.encoder.check_columns(source.columns)
        for chunk in source.chunks():
            drift.update(chunk, made.pipeline.predict(chunk))
    numbers = drift.to_json()
    if monitor is not None:
        with whole_file(monitor) as stream:
            stream.write(numbers.encode())
    if as_json:
        print(numbers)
        return
    for line in drift.warnings() or [f"{drift.n_rows:,} rows: no difference from the training table was found."]:
        print(printable(line))


def _lines(about: dict[str, Any]) -> list[tuple[str, str]]:
    description = about["description"]
    lines = [("made", f"{about['created']} by scikit-ldl {about['versions']['scikit-ldl']}")]
    lines.append(("with", ", ".join(f"{n} {v}" for n, v in about["versions"].items() if n != "scikit-ldl")))
    if description.keys() >= _OF_FIT:
        return lines + _table_lines(description)
    return [*lines, *((str(name), str(value)) for name, value in description.items())]


def _table_lines(description: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines for a model that ``skldl fit`` wrote."""
    roles = description["roles"]
    lines = [
        ("trained on", f"{description['source'] or 'a table'}, {description['rows']:,} rows"),
        ("labels", f"{', '.join(description['labels'])} ({_origin(description)})"),
    ]
    if description["values"]:
        lines.append(("values", ", ".join(f"{value:g}" for value in description["values"])))
    for kind in dict.fromkeys(description["features"].values()):
        names = [name for name, its in description["features"].items() if its == kind]
        lines.append((_HEADINGS[kind], ", ".join(names)))
    lines += [(role, ", ".join([value] if isinstance(value, str) else value)) for role, value in roles.items() if value]
    lines.append(("model", description["estimator"]))
    if "rows_in_model" in description:
        lines.append(("holds", _held_rows(description)))
    lines += [("" if place else "chosen", line) for place, line in enumerate(description["why"])]
    return lines


def _held_rows(description: dict[str, Any]) -> str:
    """Which training rows the file contains."""
    held = [f"training rows, encoded, in {name}" for name in description["rows_in_model"]]
    if kept := description.get("kept_rows"):
        held.append(f"{len(kept['rows']):,} training rows as they were (--keep-rows)")
    return "; ".join(held) or "no training rows"


def _origin(description: dict[str, Any]) -> str:
    columns = (
        "" if description["label_columns"] == description["labels"] else f": {', '.join(description['label_columns'])}"
    )
    return f"from {description['kind']}{columns}"


_OF_FIT = {"source", "rows", "labels", "values", "kind", "label_columns", "features", "roles", "estimator", "why"}
"""Keys that ``skldl fit`` writes; a model saved from Python may have any description."""
_HEADINGS = {"number": "numbers", "boolean": "booleans", "date": "dates", "category": "categories", "text": "text"}
