"""Tables that people have: files of CSV and Parquet, columns of every kind, and a pipeline that learns from them."""

from skldl.data._convert import Converted, convert_table
from skldl.data._labels import KINDS, label_values, read_labels
from skldl.data._roles import TrainingSet, training_set
from skldl.data._table_file import Table
from skldl.data._write import TableWriter
from skldl.tabular._choice import Choice, choose_model
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._explain import ColumnEffects, column_effects, feature_weights
from skldl.tabular._explain_row import RowExplanation, explain_row
from skldl.tabular._models import AUTO, find_model
from skldl.tabular._prediction import predict_table
from skldl.tabular._training import FittedTable, fit_table

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
