"""Data for label distribution learning: bundled, generated, of the paper, and your own.

What reads and writes tables needs pandas and pyarrow, and is imported when it is first used.
"""

from typing import TYPE_CHECKING

from skldl.data._catalogue import CATALOGUE, CatalogueEntry, find_entry
from skldl.data._dataset import Dataset
from skldl.data._describe import Card, describe, list_datasets, statistics_table
from skldl.data._generated import (
    artificial_manifold,
    exchange_rows,
    gaussian_log_ratio_noise,
    make_artificial,
    make_missing,
)
from skldl.data._load import fetch_dataset, load_dataset
from skldl.data._vader import fetch_vader_texts, load_lexicon, load_tweets
from skldl.utils.column_names import find_columns
from skldl.utils.dependencies import lazy_names

if TYPE_CHECKING:
    from skldl.data._convert import Converted, convert_table
    from skldl.data._labels import KINDS, label_values, read_labels
    from skldl.data._roles import Columns, from_table
    from skldl.data._tables import TableFile, TableFiles, TableWriter

__all__ = [
    "CATALOGUE",
    "KINDS",
    "Card",
    "CatalogueEntry",
    "Columns",
    "Converted",
    "Dataset",
    "TableFile",
    "TableFiles",
    "TableWriter",
    "artificial_manifold",
    "convert_table",
    "describe",
    "exchange_rows",
    "fetch_dataset",
    "fetch_vader_texts",
    "find_columns",
    "find_entry",
    "from_table",
    "gaussian_log_ratio_noise",
    "label_values",
    "list_datasets",
    "load_dataset",
    "load_lexicon",
    "load_tweets",
    "make_artificial",
    "make_missing",
    "read_labels",
    "statistics_table",
]

__getattr__ = lazy_names(
    __name__,
    cli={
        "_convert": ("Converted", "convert_table"),
        "_labels": ("KINDS", "label_values", "read_labels"),
        "_roles": ("Columns", "from_table"),
        "_tables": ("TableFile", "TableFiles", "TableWriter"),
    },
)
