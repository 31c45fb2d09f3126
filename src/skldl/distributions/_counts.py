"""Counts of votes and intensities as distributions."""

from typing import Any

import numpy as np

from skldl import simplex
from skldl.distributions._labels import EMPTY, divide_rows
from skldl.distributions._tables import frame_like, numbers
from skldl.exceptions import LengthMismatchError, NegativeDegreeError, Parameter, ParameterError, ZeroRowError
from skldl.utils.parameters import POSITIVE, check_value, number, one_of
from skldl.utils.typing import FloatArray
from skldl.utils.validation import as_real_array

DEFAULTS = {"power": 1.0, "shift": 0.0, "temperature": 1.0}


def from_counts(C: Any, smoothing: Any = 0.0, return_weight: bool = False) -> Any:
    r"""Turn counts of votes or ratings into distributions.

    With counts n_j, N = Σ n_j and the smoothing α_j, the degree of label j is

    .. math:: d_j = \frac{n_j + \alpha_j}{N + \sum_k \alpha_k}

    which is the mean of the Dirichlet posterior: α = 0 means the fractions of the votes, α = 1 is Laplace's rule.

    Parameters
    ----------
    C : array-like or DataFrame of shape (n_samples, n_labels)
        Counts, at least zero; weighted counts need not be whole.
    smoothing : float or array-like of shape (n_labels,), default=0.0
        Pseudo-count of each label.
    return_weight : bool, default=False
        Return the number of votes per row too, to be used as ``sample_weight``.

    Returns
    -------
    D : ndarray or DataFrame of shape (n_samples, n_labels)
        Rows that sum to one; a DataFrame gives a DataFrame of the same library.
    weight : ndarray of shape (n_samples,)
        Number of votes N of each row, without the smoothing. Only if ``return_weight`` is true.

    Raises
    ------
    NegativeDegreeError
        If a count is negative.
    ZeroRowError
        If a row has no votes and there is no smoothing.

    Examples
    --------
    >>> from skldl.distributions import from_counts
    >>> from_counts([[3, 1], [0, 2]])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    >>> from_counts([[3, 1], [0, 2]], smoothing=1.0, return_weight=True)
    (array([[0.66666667, 0.33333333],
           [0.25      , 0.75      ]]), array([4., 2.]))
    """
    counts, names = numbers(C, name="C")
    _check_not_negative(counts, names, what="count", hint="A count is at least zero; for scores use from_scores.")
    alpha = check_smoothing(smoothing, counts.shape[1])
    bare = counts.sum(axis=1) + alpha.sum() == 0
    if bare.any():
        row = int(np.argmax(bare))
        raise ZeroRowError(
            f"Row {row} of C counts no vote ({int(bare.sum())} such rows in all). Remove it, or set ",
            Parameter("smoothing", 1.0),
            ", with which all labels of such a row have the same degree.",
            row=row,
        )
    D = frame_like(C, simplex.normalize(counts + alpha), names)
    return (D, counts.sum(axis=1)) if return_weight else D


def check_smoothing(smoothing: Any, n_labels: int) -> FloatArray:
    """Validate the smoothing, and return one pseudo-count per label."""
    alpha = as_real_array(smoothing, name="smoothing")
    if alpha.ndim > 1 or (alpha.ndim == 1 and len(alpha) != n_labels):
        raise LengthMismatchError(
            f"smoothing has shape {alpha.shape}, but there are {n_labels} labels: pass one number, or one per label."
        )
    if not np.isfinite(alpha).all() or (alpha < 0).any():
        raise ParameterError(Parameter("smoothing", smoothing), " must be a finite pseudo-count of at least zero.")
    return np.broadcast_to(alpha, (n_labels,))


def from_scores(
    S: Any,
    *,
    method: str = "share",
    power: float = 1.0,
    shift: float = 0.0,
    temperature: float = 1.0,
    empty: str = "error",
) -> Any:
    r"""Turn intensities into distributions.

    .. math::
        d_j = \frac{(s_j + \text{shift})^{\text{power}}}{\sum_k (s_k + \text{shift})^{\text{power}}}
        \qquad\text{or}\qquad
        d_j = \frac{e^{s_j / \text{temperature}}}{\sum_k e^{s_k / \text{temperature}}}

    Parameters
    ----------
    S : array-like or DataFrame of shape (n_samples, n_labels)
        One number per label. Shares need numbers of at least zero after the shift; softmax takes any.
    method : {"share", "softmax"}, default="share"
        Whether the numbers are intensities (twice the number is twice the degree) or log intensities.
    power : float, default=1.0
        Sharpens (above one) or flattens (below one) shares. Not with ``method="softmax"``.
    shift : float, default=0.0
        Added to every number before shares are taken, such as 4 for ratings from −4 to 4. Not with softmax.
    temperature : float, default=1.0
        Flattens (above one) or sharpens (below one) the softmax. Only with ``method="softmax"``.
    empty : {"error", "uniform", "drop"}, default="error"
        How a row of zeros is handled, with ``method="share"``: an error, the same degree for all labels, or removal.

    Returns
    -------
    ndarray or DataFrame of shape (n_samples, n_labels)
        Rows that sum to one; a DataFrame gives a DataFrame of the same library.

    Raises
    ------
    NegativeDegreeError
        If a number is negative after the shift and shares are asked for.
    ZeroRowError
        If a row is all zero and ``empty="error"``.

    Examples
    --------
    >>> from skldl.distributions import from_scores
    >>> from_scores([[1.0, 3.0]])
    array([[0.25, 0.75]])
    >>> from_scores([[1.0, 3.0]], power=2.0)
    array([[0.1, 0.9]])
    >>> from_scores([[-0.5, 0.5]], method="softmax").round(3)
    array([[0.269, 0.731]])
    """
    check_value("method", method, one_of("share", "softmax"))
    check_value("empty", empty, EMPTY)
    check_value("power", power, POSITIVE)
    check_value("temperature", temperature, POSITIVE)
    check_value("shift", shift, number())
    other = "share" if method == "softmax" else "softmax"
    ignored = {"power": power, "shift": shift} if method == "softmax" else {"temperature": temperature}
    for name, value in ignored.items():
        if value != DEFAULTS[name]:
            raise ParameterError(
                Parameter(name, value),
                " has no effect with ",
                Parameter("method", method),
                ". Leave it out, or choose ",
                Parameter("method", other),
                ".",
            )
    scores, names = numbers(S, name="S")
    if method == "softmax":
        return frame_like(S, simplex.softmax(scores / temperature), names)
    scores = scores + shift
    _check_not_negative(
        scores, names, what="score", hint='Shift the scores to start at zero (shift=...), or use method="softmax".'
    )
    peak = scores.max(axis=1, keepdims=True)
    scaled = np.divide(scores, peak, out=np.zeros_like(scores), where=peak > 0)  # at most 1, so that no power overflows
    D, rows = divide_rows(scaled**power, empty, name="S")
    return frame_like(S, D, names, rows)


def _check_not_negative(values: FloatArray, names: list[Any], *, what: str, hint: str) -> None:
    """Raise an error that names the first negative number."""
    if values.min() < 0:
        row, column = (int(i) for i in np.argwhere(values < 0)[0])
        raise NegativeDegreeError(
            f"Row {row} holds the negative {what} {values[row, column]:g} for label {names[column]!r}. {hint}", row=row
        )
