r"""Detection of leaks: features that determine a label almost completely, often copies or functions of the labels.

The rows are sorted by one feature, and the degree of each label in a row is predicted by the mean of its two
neighbours. If feature and label are independent, the expected squared error of this prediction is 3/2 of the variance
of the degrees; so

.. math:: 1 - \frac{\sum_i (d_i - (d_{i-1} + d_{i+1})/2)^2}{\frac32 \sum_i (d_i - \bar d)^2}

is about 0, and it is about 1 if the degree is a smooth function of the feature. For categories it is the fraction of
the variance between categories.
"""

from collections.abc import Hashable

import numpy as np
import pandas as pd

from skldl.data._cells import as_numbers
from skldl.exceptions import Message, Parameter
from skldl.utils.typing import FloatArray

_MIN_EXPLAINED = 0.99  # fraction that is reported as a leak; chosen by hand
_MIN_ROWS, _MAX_ROWS, _MAX_COLUMNS = 20, 5000, 2000  # bounds of the time; chosen by hand


def label_leaks(X: pd.DataFrame, D: pd.DataFrame) -> list[str]:
    """Warnings about features, of the first 2,000, that determine a label almost completely.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> joy = np.random.default_rng(0).random(100)
    >>> label_leaks(pd.DataFrame({"n_joy": 10 * joy}), pd.DataFrame({"joy": joy, "fear": 1 - joy}))[0][:50]
    "Column 'n_joy' alone determines the label 'joy' ne"
    """
    n_rows = len(X)
    if n_rows < _MIN_ROWS:
        return []
    rows = np.random.default_rng(0).permutation(n_rows)[:_MAX_ROWS]  # also removes information in the order of the rows
    degrees = D.to_numpy(dtype=np.float64)[rows]
    found = []
    for name in X.columns[:_MAX_COLUMNS]:
        explained = _explained_by(X[name].iloc[rows], degrees)
        if explained.max() > _MIN_EXPLAINED:
            found.append(_warning(name, D.columns[int(explained.argmax())], float(explained.max())))
    return found


def _explained_by(column: pd.Series, degrees: FloatArray) -> FloatArray:
    """Fraction of each label that a column determines, see above."""
    values = as_numbers(column).to_numpy()
    numeric = ~np.isnan(values)
    if numeric.sum() < max(_MIN_ROWS, column.notna().sum() / 2):  # few cells are numbers
        return _explained_by_categories(column, degrees)
    in_order = degrees[numeric][np.argsort(values[numeric], kind="stable")]
    middle = in_order[1:-1]
    error = ((middle - (in_order[:-2] + in_order[2:]) / 2) ** 2).sum(axis=0)
    spread = 1.5 * ((middle - middle.mean(axis=0)) ** 2).sum(axis=0)
    return _one_minus_ratio(error, spread)


def _explained_by_categories(column: pd.Series, degrees: FloatArray) -> FloatArray:
    """Fraction of the variance of each label between categories, adjusted for the number of categories."""
    codes, words = pd.factorize(column.astype(object))
    n_rows, n_words = len(column), len(words) + (codes < 0).any()
    if n_words > n_rows / 2:
        return np.zeros(degrees.shape[1])
    error = ((degrees - pd.DataFrame(degrees).groupby(codes).transform("mean").to_numpy()) ** 2).sum(axis=0)
    spread = ((degrees - degrees.mean(axis=0)) ** 2).sum(axis=0) * (n_rows - n_words) / (n_rows - 1)
    return _one_minus_ratio(error, spread)


def _one_minus_ratio(error: FloatArray, spread: FloatArray) -> FloatArray:
    # a sum of squares up to 1e-12 is rounding error of a constant label, which nothing determines
    return 1 - np.divide(error, spread, out=np.ones_like(error), where=spread > 1e-12)


def _warning(name: Hashable, label: Hashable, explained: float) -> str:
    return Message(
        f"Column {str(name)!r} alone determines the label {str(label)!r} nearly completely "
        f"({explained:.1%}). If it is one of the labels or was computed from them, leave it out with ",
        Parameter("drop", [str(name)]),
        ": new rows will not have it.",
    )
