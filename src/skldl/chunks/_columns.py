"""Which columns of a table hold labels, features and weights."""

from collections.abc import Sequence
from dataclasses import dataclass

from skldl.exceptions import TableError
from skldl.utils.column_names import matching_columns

Names = str | Sequence[str] | None


@dataclass(frozen=True)
class Columns:
    """Names of the columns of labels and of features, and of the one of weights."""

    labels: tuple[str, ...]
    features: tuple[str, ...]
    weight: str | None


def find_columns(names: Sequence[str], labels: Names, features: Names, weight: str | None, *, place: str) -> Columns:
    """Find the columns by names, patterns such as ``"r_*"``, and beginnings of several names.

    Without labels there are none; without features every column is one that is neither a label nor the weight.
    ``place`` is what messages call the table.

    Examples
    --------
    >>> from skldl.chunks._columns import find_columns
    >>> find_columns(["age", "r_a", "r_b"], "r_*", None, None, place="a table")
    Columns(labels=('r_a', 'r_b'), features=('age',), weight=None)
    """
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise TableError(f"{place} has two columns named {twice!r}. Rename one of them.")
    if weight is not None and weight not in names:
        raise TableError(f"{place} has no column {weight!r} for weights. {_listed(names)}")
    of_labels = _matching(names, labels, "labels", place)
    used = {*of_labels, weight}
    if features is None:
        of_features = tuple(name for name in names if name not in used)
    else:
        of_features = _matching(names, features, "features", place)
        both = [name for name in of_features if name in used]
        if both:
            raise TableError(f"Column {both[0]!r} of {place} is named as a feature and as a label or weight.")
    if not of_features:
        raise TableError(f"{place} has no column left for features. {_listed(names)}")
    return Columns(of_labels, of_features, weight)


def _matching(names: Sequence[str], wanted: Names, what: str, place: str) -> tuple[str, ...]:
    """Columns that the texts stand for, each once: those of a pattern in the order of the table."""
    if wanted is None:
        return ()
    found: dict[str, None] = {}
    for pattern in [wanted] if isinstance(wanted, str) else wanted:
        matches = matching_columns(pattern, names)
        if not matches:
            raise TableError(f"No column of {place} is named {pattern!r} ({what}). {_listed(names)}")
        found |= dict.fromkeys(matches)
    return tuple(found)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
    return f"It has the columns {shown}."
