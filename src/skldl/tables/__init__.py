"""Tables that people have: files of CSV and Parquet, columns of every kind, and a pipeline that learns from them."""

from skldl.tables._encoder import TableEncoder
from skldl.tables._reading import Table

__all__ = ["Table", "TableEncoder"]
