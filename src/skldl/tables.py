"""The name of `skldl.tabular` and of parts of `skldl.data` until 0.1; it goes in 0.4."""

import warnings

from skldl.data import KINDS, Converted, TableWriter, convert_table, label_values, read_labels
from skldl.data import TableFile as Table
from skldl.data import from_table as training_set
from skldl.tabular import *  # noqa: F403

__all__ = ["KINDS", "Converted", "Table", "TableWriter", "convert_table", "label_values", "read_labels", "training_set"]

warnings.warn(
    "skldl.tables is now skldl.tabular (models) and skldl.data (files, columns); the old name goes in 0.4.",
    DeprecationWarning,
    stacklevel=2,
)
