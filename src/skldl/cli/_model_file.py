"""Models of tables: load a model file that `skldl fit` wrote."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skldl.exceptions import ModelFileError
from skldl.persistence import inspect, read
from skldl.tabular import TableEncoder


@dataclass(frozen=True)
class TableModel:
    """A model of tables, with its encoder, its labels and ``about``, the description that ``skldl fit`` wrote."""

    pipeline: Any
    encoder: TableEncoder
    labels: list[str]
    about: dict[str, Any]


def open_model(path: str) -> TableModel:
    """Load a model file that ``skldl fit`` wrote."""
    about, pipeline = read(path)
    steps = getattr(pipeline, "steps", [("", None)])
    if not isinstance(steps[0][1], TableEncoder):
        raise ModelFileError(
            f"{path} holds {type(pipeline).__name__}, which takes no tables. Train a model with skldl fit, or use "
            f"this one in Python: skldl.load({path!r})."
        )
    return TableModel(pipeline, steps[0][1], [str(name) for name in steps[-1][1].label_names_], about["description"])


def is_model(path: Path) -> bool:
    """Whether a file is a model file of skldl."""
    try:
        inspect(path)
    except (ModelFileError, OSError):
        return False
    return True
