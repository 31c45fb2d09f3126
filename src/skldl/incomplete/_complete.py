"""`complete`: fill in the missing degrees of a table by predictions."""

from typing import Any

from sklearn.base import clone

from skldl.base import PartialLDL
from skldl.exceptions import Parameter, ParameterError
from skldl.maxent import SABFGSCV
from skldl.utils.column_names import column_names
from skldl.utils.typing import FloatArray


def complete(X: Any, D: Any, estimator: Any = None, *, sample_weight: Any = None) -> FloatArray:
    """Fit an estimator to a table with missing degrees, and fill these in with its predictions.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        Features of the rows.
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Degrees; NaN where they were not observed.
    estimator : estimator, default=None
        One that learns from missing degrees, such as `skldl.IncomLDL`; None means `skldl.SABFGSCV`. Its parameter
        ``missing`` determines what missing degrees mean.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.

    Returns
    -------
    ndarray or DataFrame of shape (n_samples, n_labels)
        Rows that sum to one. With true degrees the observed cells stay as they are; with renormalised ones their
        ratios do. A DataFrame if D is a pandas DataFrame.

    Examples
    --------
    >>> from skldl import IncomLDL
    >>> from skldl.incomplete import complete
    >>> nan = float("nan")
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.5, nan, nan], [0.4, 0.3, 0.3], [nan, 0.3, nan]]
    >>> complete(X, D, IncomLDL(alpha=1e-4, missing="degrees")).round(2)
    array([[0.6, 0.3, 0.1],
           [0.5, 0.3, 0.2],
           [0.4, 0.3, 0.3],
           [0.3, 0.3, 0.4]])
    """
    model = SABFGSCV() if estimator is None else clone(estimator)
    if not isinstance(model, PartialLDL):
        raise ParameterError(
            Parameter("estimator", model),
            " cannot learn from missing degrees. Pass one that can, such as skldl.SABFGSCV().",
        )
    filled = model.fit(X, D, sample_weight).complete(X, D)
    if column_names(D) and hasattr(D, "iloc"):
        return type(D)(filled, index=D.index, columns=D.columns)
    return filled
