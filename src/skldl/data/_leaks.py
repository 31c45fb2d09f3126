r"""Features that determine the labels nearly completely: mostly a label column, or one derived from it.

The rows are put into the order of one feature, and the degree of each label in a row is guessed from the rows before
and after it, with the mean of the two. Without any relation the error of that guess has 3/2 of the variance of the
degrees; so

.. math:: 1 - \frac{\sum_i (d_i - (d_{i-1} + d_{i+1})/2)^2}{\frac32 \sum_i (d_i - \bar d)^2}

is about 0 then, and 1 if the degree is a smooth function of the feature alone. For categories it is the part
of the variance between them.
"""

from collections.abc import Hashable

import numpy as np
import pandas as pd

from skldl.data._cells import as_numbers
from skldl.exceptions import Message, Parameter
from skldl.utils.typing import FloatArray

NEARLY_ALL = 0.99
_FEWEST_ROWS = 20
_MOST_ROWS = 5000
_MOST_COLUMNS = 2000


def label_leaks(X: pd.DataFrame, D: pd.DataFrame) -> list[str]:
    """A warning for each feature, of the first 2,000, that determines a label nearly completely.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> joy = np.random.default_rng(0).random(100)
    >>> label_leaks(pd.DataFrame({"n_joy": 10 * joy}), pd.DataFrame({"joy": joy, "fear": 1 - joy}))[0][:50]
    "Column 'n_joy' alone determines the label 'joy' ne"
    """
    n_rows = len(X)
    if n_rows < _FEWEST_ROWS:
        return []
    rows = np.random.default_rng(0).permutation(n_rows)[:_MOST_ROWS]  # the order in the file must carry no information
    degrees = D.to_numpy(dtype=np.float64)[rows]
    found = []
    for name in X.columns[:_MOST_COLUMNS]:
        share = _explained_by(X[name].iloc[rows], degrees)
        if share.max() > NEARLY_ALL:
            found.append(_warning(name, D.columns[int(share.argmax())], float(share.max())))
    return found


def _explained_by(column: pd.Series, degrees: FloatArray) -> FloatArray:
    """How completely a column determines each label: 1 is completely."""
    values = as_numbers(column).to_numpy()
    numeric = ~np.isnan(values)
    if numeric.sum() < max(_FEWEST_ROWS, column.notna().sum() / 2):  # few cells are numbers
        return _explained_by_categories(column, degrees)
    in_order = degrees[numeric][np.argsort(values[numeric], kind="stable")]  # a missing cell carries no information
    middle = in_order[1:-1]
    error = ((middle - (in_order[:-2] + in_order[2:]) / 2) ** 2).sum(axis=0)
    spread = 1.5 * ((middle - middle.mean(axis=0)) ** 2).sum(axis=0)
    return 1 - np.divide(error, spread, out=np.ones_like(error), where=spread > 1e-12)


def _explained_by_categories(column: pd.Series, degrees: FloatArray) -> FloatArray:
    """Part of the variance between categories, adjusted for their number."""
    codes, words = pd.factorize(column.astype(object))
    n_rows, n_words = len(column), len(words) + (codes < 0).any()
    if n_words > n_rows / 2:
        return np.zeros(degrees.shape[1])
    error = ((degrees - pd.DataFrame(degrees).groupby(codes).transform("mean").to_numpy()) ** 2).sum(axis=0)
    spread = ((degrees - degrees.mean(axis=0)) ** 2).sum(axis=0) * (n_rows - n_words) / (n_rows - 1)
    return 1 - np.divide(error, spread, out=np.ones_like(error), where=spread > 1e-12)


def _warning(name: Hashable, label: Hashable, share: float) -> str:
    return Message(
        f"Column {str(name)!r} alone determines the label {str(label)!r} nearly completely "
        f"({share:.1%}). If it is one of the labels or was made from them, leave it out with ",
        Parameter("drop", [str(name)]),
        ": new rows will not have it.",
    )
