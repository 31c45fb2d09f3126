"""The name of `skldl.tabular` and of parts of `skldl.data` until 0.1; it is removed in 0.4."""

import warnings

from skldl.data import KINDS, Converted, TableWriter, convert_table, label_values, read_labels
from skldl.data import Dataset as TrainingSet
from skldl.data import TableFile as Table
from skldl.data import from_table as training_set
from skldl.names import find_candidate as find_model
from skldl.tabular import (
    AUTO,
    Choice,
    ColumnEffects,
    FittedTable,
    RowExplanation,
    TableEncoder,
    choose_model,
    column_effects,
    explain_row,
    feature_weights,
    fit_table,
    predict_table,
)

__all__ = [
    "AUTO",
    "KINDS",
    "Choice",
    "ColumnEffects",
    "Converted",
    "FittedTable",
    "RowExplanation",
    "Table",
    "TableEncoder",
    "TableWriter",
    "TrainingSet",
    "choose_model",
    "column_effects",
    "convert_table",
    "explain_row",
    "feature_weights",
    "find_model",
    "fit_table",
    "label_values",
    "predict_table",
    "read_labels",
    "training_set",
]

warnings.warn(
    "skldl.tables is now skldl.tabular (models) and skldl.data (files, columns); the old name is removed in 0.4.",
    DeprecationWarning,
    stacklevel=2,
)
