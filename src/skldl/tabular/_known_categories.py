"""Categories of a fitted `TableEncoder`: those with their own feature, and the rare ones."""

from typing import Any, NamedTuple

NO_FEATURE = -1


class KnownCategories(NamedTuple):
    """The categories of one column: ``own`` have features, in this order; ``rare`` ones share the one behind these."""

    every: list[str]
    own: list[str]
    rare: list[str]

    @property
    def features(self) -> list[str]:
        """Names of the features of the column."""
        return [*self.own, "(rare)"] if self.rare else self.own

    @property
    def places(self) -> dict[str, int]:
        """From each category to the place of its feature among those of the column."""
        return {word: place for place, word in enumerate(self.own)} | dict.fromkeys(self.rare, len(self.own))

    @property
    def place_of_unknown(self) -> int:
        """Place of the feature of a category that is not known: that of the rare ones, or `NO_FEATURE`."""
        return len(self.own) if self.rare else NO_FEATURE


def known_categories(encoder: Any) -> dict[str, KnownCategories]:
    """The categories of each column of categories, from ``encoder_`` of a fitted `TableEncoder`.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import TableEncoder
    >>> table = pd.DataFrame({"town": ["Ulm", "Bonn", "Ulm", "Kiel"]})
    >>> known_categories(TableEncoder(max_categories=2).fit(table).encoder_)["town"]
    KnownCategories(every=['Bonn', 'Kiel', 'Ulm'], own=['Ulm'], rare=['Bonn', 'Kiel'])
    """
    for label, one_hot, columns in encoder.transformers_:
        if label == "categories":
            parts = zip(columns, one_hot.categories_, one_hot.infrequent_categories_, strict=True)
            return {name: _split([str(v) for v in values], rare) for name, values, rare in parts}
    return {}


def _split(every: list[str], infrequent: Any) -> KnownCategories:
    rare = [] if infrequent is None else [str(value) for value in infrequent]
    shared = set(rare)
    return KnownCategories(every, [word for word in every if word not in shared], rare)
