"""Tables that people have: files of CSV and Parquet, columns of every kind, and a pipeline that learns from them."""

from skldl.tables._choice import Choice, choose_model
from skldl.tables._encoder import TableEncoder
from skldl.tables._labels import KINDS, label_values, read_labels
from skldl.tables._models import AUTO, find_model
from skldl.tables._reading import Table
from skldl.tables._roles import TrainingSet, training_set
from skldl.tables._training import FittedTable, fit_table
from skldl.tables._writing import TableWriter

__all__ = [
    "AUTO",
    "KINDS",
    "Choice",
    "FittedTable",
    "Table",
    "TableEncoder",
    "TableWriter",
    "TrainingSet",
    "choose_model",
    "find_model",
    "fit_table",
    "label_values",
    "read_labels",
    "training_set",
]
