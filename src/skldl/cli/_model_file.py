"""A model file as the commands need it: the pipeline, its labels, and what is known about its training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skldl.exceptions import ModelFileError
from skldl.persistence import inspect, read
from skldl.tabular import TableEncoder


@dataclass(frozen=True)
class TableModel:
    """A model that takes tables, with its encoder and ``about``, the description that ``skldl fit`` kept with it."""

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
            f"{path} holds {type(pipeline).__name__}, which takes no tables. Make it with skldl fit, or use it in "
            f"Python: skldl.load({path!r})."
        )
    return TableModel(pipeline, steps[0][1], [str(name) for name in steps[-1][1].label_names_], about["description"])


def is_model(path: Path) -> bool:
    """Whether there is a model file of skldl."""
    try:
        inspect(path)
    except (ModelFileError, OSError):
        return False
    return True
