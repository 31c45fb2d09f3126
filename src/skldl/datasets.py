"""The name of `skldl.data` until 0.1; it is removed in 0.4."""

import warnings

from skldl.data import (
    CATALOGUE,
    Card,
    CatalogueEntry,
    Dataset,
    artificial_manifold,
    describe,
    fetch_dataset,
    find_entry,
    list_datasets,
    load_dataset,
    load_lexicon,
    make_artificial,
    statistics_table,
)

__all__ = [
    "CATALOGUE",
    "Card",
    "CatalogueEntry",
    "Dataset",
    "artificial_manifold",
    "describe",
    "fetch_dataset",
    "find_entry",
    "list_datasets",
    "load_dataset",
    "load_lexicon",
    "make_artificial",
    "statistics_table",
]

warnings.warn(
    "skldl.datasets is now called skldl.data; the old name is removed in 0.4.", DeprecationWarning, stacklevel=2
)
