"""Bridge until `from_table` lives beside the roles."""

from typing import Any

from skldl.data._dataset import Dataset
from skldl.data._roles import training_set


def from_table(
    frame: Any,
    labels: Any,
    *,
    name: str = "table",
    source: str = "",
    kind: str = "distribution",
    weight: Any = None,
    groups: Any = None,
    drop: Any = (),
    text: Any = (),
    categories: Any = (),
) -> Dataset:
    t = training_set(
        frame, labels, kind=kind, weight=weight or "", groups=groups or "", drop=drop, text=text, categories=categories
    )
    return Dataset(name, t.X, t.D, groups=t.groups, sample_weight=t.weight, notes=tuple(t.notes), source=source)
