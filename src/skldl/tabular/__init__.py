"""Models of tables: columns of any kind, a fitted pipeline, and explanations."""

from typing import TYPE_CHECKING, Any

from skldl._extras import import_with_extra

if TYPE_CHECKING:
    from skldl.tabular._choice import Choice, choose_model
    from skldl.tabular._drift import DriftMonitor
    from skldl.tabular._encoder import TableEncoder
    from skldl.tabular._explain import ColumnEffects, column_effects, feature_weights
    from skldl.tabular._explain_row import RowExplanation, explain_row
    from skldl.tabular._models import AUTO
    from skldl.tabular._prediction import predict_table
    from skldl.tabular._training import FittedTable, fit_table

_HOME_OF = {
    "AUTO": "_models",
    "Choice": "_choice",
    "ColumnEffects": "_explain",
    "DriftMonitor": "_drift",
    "FittedTable": "_training",
    "RowExplanation": "_explain_row",
    "TableEncoder": "_encoder",
    "choose_model": "_choice",
    "column_effects": "_explain",
    "explain_row": "_explain_row",
    "feature_weights": "_explain",
    "fit_table": "_training",
    "predict_table": "_prediction",
}

__all__ = [
    "AUTO",
    "Choice",
    "ColumnEffects",
    "DriftMonitor",
    "FittedTable",
    "RowExplanation",
    "TableEncoder",
    "choose_model",
    "column_effects",
    "explain_row",
    "feature_weights",
    "fit_table",
    "predict_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'skldl.tabular' has no attribute {name!r}")
    return getattr(import_with_extra(f"skldl.tabular.{_HOME_OF[name]}", "cli"), name)
