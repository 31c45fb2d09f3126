"""``skldl inspect``: what a model file holds, without loading the model."""

import json
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

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
        print(f"{heading:<12} {text}")


def _lines(about: dict[str, Any]) -> list[tuple[str, str]]:
    told = about["description"]
    lines = [("made", f"{about['created']} by scikit-ldl {about['versions']['scikit-ldl']}")]
    lines.append(("with", ", ".join(f"{n} {v}" for n, v in about["versions"].items() if n != "scikit-ldl")))
    if "features" not in told:  # saved from Python, with whatever description was given
        return [*lines, *((str(name), str(value)) for name, value in told.items())]
    roles = told["roles"]
    lines += [
        ("trained on", f"{told['source'] or 'a table'}, {told['rows']:,} rows"),
        ("labels", f"{', '.join(told['labels'])} ({_origin(told)})"),
    ]
    if told["values"]:
        lines.append(("values", ", ".join(f"{value:g}" for value in told["values"])))
    for kind in dict.fromkeys(told["features"].values()):
        names = [name for name, its in told["features"].items() if its == kind]
        lines.append((_HEADINGS[kind], ", ".join(names)))
    lines += [(role, ", ".join([value] if isinstance(value, str) else value)) for role, value in roles.items() if value]
    lines.append(("model", told["estimator"]))
    lines += [("" if place else "chosen", line) for place, line in enumerate(told["why"])]
    return lines


def _origin(told: dict[str, Any]) -> str:
    columns = "" if told["label_columns"] == told["labels"] else f": {', '.join(told['label_columns'])}"
    return f"from {told['kind']}{columns}"


_HEADINGS = {"number": "numbers", "boolean": "booleans", "category": "categories", "text": "text"}
