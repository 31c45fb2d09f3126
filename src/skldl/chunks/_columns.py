"""Which columns of a table hold labels, features and weights."""

from collections.abc import Sequence
from dataclasses import dataclass

from skldl.exceptions import TableError
from skldl.utils.column_names import find_columns, list_names, no_column

Names = str | Sequence[str] | None


@dataclass(frozen=True)
class Columns:
    """Names of the columns of labels and of features, and of the one of weights."""

    labels: tuple[str, ...]
    features: tuple[str, ...]
    weight: str | None


def assign_columns(names: Sequence[str], labels: Names, features: Names, weight: str | None, *, place: str) -> Columns:
    """Find the columns of labels, of features (by default all others) and of weights by names and patterns.

    Errors begin with ``place``, the name of the table.

    Examples
    --------
    >>> assign_columns(["age", "r_a", "r_b"], "r_*", None, None, place="a table")
    Columns(labels=('r_a', 'r_b'), features=('age',), weight=None)
    """
    try:
        if len(set(names)) < len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise TableError(f"two columns are named {twice!r}. Rename one of them.")
        if weight is not None and weight not in names:
            raise no_column("weight", weight, names)
        of_labels = tuple(find_columns(labels or (), names, "labels"))
        used = {*of_labels, weight}
        if features is None:
            of_features = tuple(name for name in names if name not in used)
        else:
            of_features = tuple(find_columns(features, names, "features"))
            if both := [name for name in of_features if name in used]:
                raise TableError(f"column {both[0]!r} is named as a feature and as a label or weight.")
        if not of_features:
            raise TableError(f"no column is left for features. It has {list_names(names)}.")
    except TableError as error:
        raise TableError(f"{place}: ", *error.parts) from error
    return Columns(of_labels, of_features, weight)
