"""Models of tables: columns of any kind, a fitted pipeline, and explanations."""

from typing import TYPE_CHECKING

from skldl.utils.dependencies import lazy_names

if TYPE_CHECKING:
    from skldl.tabular._choice import Choice, choose_model
    from skldl.tabular._drift import DriftMonitor
    from skldl.tabular._encoder import TableEncoder
    from skldl.tabular._explain import ColumnEffects, RowExplanation, column_effects, explain_row, feature_weights
    from skldl.tabular._fit import FitOptions, FittedTable, fit_table
    from skldl.tabular._models import AUTO
    from skldl.tabular._prediction import predict_table

__all__ = [
    "AUTO",
    "Choice",
    "ColumnEffects",
    "DriftMonitor",
    "FitOptions",
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

__getattr__ = lazy_names(
    __name__,
    cli={
        "_choice": ("Choice", "choose_model"),
        "_drift": ("DriftMonitor",),
        "_encoder": ("TableEncoder",),
        "_explain": ("ColumnEffects", "RowExplanation", "column_effects", "explain_row", "feature_weights"),
        "_models": ("AUTO",),
        "_prediction": ("predict_table",),
        "_fit": ("FitOptions", "FittedTable", "fit_table"),
    },
)
