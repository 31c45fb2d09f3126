"""Tables that people have: files of CSV and Parquet, columns of every kind, and a pipeline that learns from them."""

from skldl.tables._choice import Choice, choose_model
from skldl.tables._convert import Converted, convert_table
from skldl.tables._encoder import TableEncoder
from skldl.tables._explain import ColumnEffects, column_effects, feature_weights
from skldl.tables._explain_row import RowExplanation, explain_row
from skldl.tables._labels import KINDS, label_values, read_labels
from skldl.tables._models import AUTO, find_model
from skldl.tables._prediction import predict_table
from skldl.tables._reading import Table
from skldl.tables._roles import TrainingSet, training_set
from skldl.tables._training import FittedTable, fit_table
from skldl.tables._writing import TableWriter

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
