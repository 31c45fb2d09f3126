"""``skldl inspect``: what a model file holds, without loading the model."""

import json
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from skldl.cli._screen import printable
from skldl.persistence import inspect as read_description


def inspect(model: Path, /, *, as_json: Annotated[bool, Parameter(name="--json", negative="")] = False) -> None:
    """Show what a model was trained on, what it needs, and how good it is.

    For instance:

        skldl inspect faces.skldl
        skldl inspect faces.skldl --json

    Parameters
    ----------
    model
        A model file.
    as_json
        Everything that the file says about itself, as JSON.
    """
    about = read_description(model)
    if as_json:
        print(json.dumps(about, indent=2, ensure_ascii=False))
        return
    for heading, text in _lines(about):
        print(printable(f"{heading:<12} {text}"))


def _lines(about: dict[str, Any]) -> list[tuple[str, str]]:
    description = about["description"]
    lines = [("made", f"{about['created']} by scikit-ldl {about['versions']['scikit-ldl']}")]
    lines.append(("with", ", ".join(f"{n} {v}" for n, v in about["versions"].items() if n != "scikit-ldl")))
    try:
        return lines + _table_lines(description)
    except (AttributeError, KeyError, TypeError, ValueError):  # saved from Python, with whatever description was given
        return [*lines, *((str(name), str(value)) for name, value in description.items())]


def _table_lines(description: dict[str, Any]) -> list[tuple[str, str]]:
    """What ``skldl fit`` keeps with a model."""
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
    """Whose rows somebody who has the file can read."""
    held = [f"training rows, encoded, in {name}" for name in description["rows_in_model"]]
    if kept := description.get("kept_rows"):
        held.append(f"{len(kept['rows']):,} training rows as they were (--keep-rows)")
    return "; ".join(held) or "no training rows"


def _origin(description: dict[str, Any]) -> str:
    columns = (
        "" if description["label_columns"] == description["labels"] else f": {', '.join(description['label_columns'])}"
    )
    return f"from {description['kind']}{columns}"


_HEADINGS = {"number": "numbers", "boolean": "booleans", "date": "dates", "category": "categories", "text": "text"}
