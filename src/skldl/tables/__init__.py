"""Tables that people have: files of CSV and Parquet, columns of every kind, and a pipeline that learns from them."""

from skldl.tables._encoder import TableEncoder
from skldl.tables._labels import KINDS, label_values, read_labels
from skldl.tables._reading import Table
from skldl.tables._roles import TrainingSet, training_set
from skldl.tables._writing import TableWriter

__all__ = ["Table", "TableEncoder", "TableWriter"]
