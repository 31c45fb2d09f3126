"""Missing degrees: what NaN in a table of distributions means, and the common arithmetic of estimators that accept it.

NaN has one of two meanings. With **degrees**, the observed degrees are true, so that the rest of the mass,
r = 1 − Σ_Ω d, belongs to the missing labels. With **renormalised**, the observed degrees were divided by their sum:
only ratios between observed labels are known. In both a row is a coarsened distribution: its observed cells, and with
"degrees" one further cell, the rest.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import entr, logsumexp
from sklearn.utils import TargetTags

from skldl.exceptions import DataError, Message, MissingDegreesWarning, Parameter, RowSumError
from skldl.utils.column_names import column_names
from skldl.utils.typing import BoolArray, FloatArray
from skldl.utils.validation import SUM_TOLERANCE, check_degrees, check_distributions, check_numbers, check_row_sums
from skldl.utils.warn import warn

MEANINGS = ("auto", "degrees", "renormalised")
COMPLETE = "complete"  # the meaning of a table without gaps
NO_REST = 1e-9  # a rest below this is rounding: degrees are rarely written with more than nine digits
MAX_STEPS = 5000  # of the fixed point iteration for the mean distribution; chosen by hand
MIN_CHANGE = 1e-13  # at which it ends: some hundred units of rounding of a degree near 1


@dataclass(slots=True)
class DistributionTargetTags(TargetTags):
    """Tags of a target of distributions; ``missing_degrees`` says whether NaN in it means "not observed"."""

    missing_degrees: bool = False

    @classmethod
    def of(cls, tags: TargetTags, *, missing_degrees: bool) -> "DistributionTargetTags":
        """Tags of a table of distributions, otherwise like others."""
        return cls(
            required=tags.required,
            single_output=False,
            multi_output=True,
            positive_only=True,
            two_d_labels=True,
            missing_degrees=missing_degrees,
        )


def has_gaps(D: FloatArray) -> bool:
    """Whether a table of numbers contains NaN; the sum is NaN then, which is faster than a test of each number."""
    return bool(np.isnan(D.sum()))


def check_partial_distributions(
    D: Any, missing: str, *, name: str = "y", to_learn: bool = True
) -> tuple[FloatArray, str]:
    """Return D with NaN where a degree is unknown, and what NaN means.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Degrees; NaN, None and ``pandas.NA`` mean "not observed".
    missing : {"auto", "degrees", "renormalised"}
        What NaN means; "auto" is "renormalised" if the observed degrees sum to one in every row with gaps.
    name : str, default="y"
        What the messages call it.
    to_learn : bool, default=True
        Whether to reject tables without information, and to warn of what "auto" chose and of rows without information.
        False for rows that are scored or completed.

    Returns
    -------
    D : ndarray of shape (n_samples, n_labels)
        Rows without gaps sum to one. With "degrees", cells that follow from the others are filled in (one gap, or no
        mass left); with "renormalised" the observed cells sum to one.
    meaning : {"complete", "degrees", "renormalised"}
        What NaN means; "complete" if there is none, or none that does not follow from the other cells.
    """
    array = check_numbers(D, name=name, allow_nan=True)
    if not has_gaps(array):
        return check_distributions(D, name=name), COMPLETE
    array = array.copy()
    gaps = np.isnan(array)
    degrees = np.where(gaps, 0.0, array)
    check_degrees(degrees, D, name=name)
    with np.errstate(over="ignore"):  # infinite sums of huge numbers are rejected below
        sums = degrees.sum(axis=1)
    whole = ~gaps.any(axis=1)
    check_row_sums(np.where(whole, sums, 1.0), name=name)
    array[whole] /= sums[whole][:, None]
    partial = np.asarray(~whole & ~gaps.all(axis=1))
    meaning = missing
    if missing == "auto":
        scaled = partial.any() and bool((np.abs(sums[partial] - 1.0) <= SUM_TOLERANCE).all())
        meaning = "renormalised" if scaled else "degrees"
    _check_sums(sums, partial, meaning, name)
    # true degrees may exceed one by rounding alone
    array[partial] /= (sums[partial] if meaning == "renormalised" else np.maximum(sums[partial], 1.0))[:, None]
    if meaning == "degrees":
        _fill_determined(array)
    if to_learn:
        _check_identified(array, meaning, column_names(D), name)
        _warn_about(array, gaps, meaning, missing, name)
    return array, meaning if has_gaps(array) else COMPLETE


def _check_sums(sums: FloatArray, partial: BoolArray, meaning: str, name: str) -> None:
    wrong = partial & (
        (np.abs(sums - 1.0) > SUM_TOLERANCE) if meaning == "renormalised" else (sums > 1 + SUM_TOLERANCE)
    )
    if wrong.any():
        row = int(np.argmax(wrong))
        hint: tuple[str | Parameter, ...] = (" they must sum to at most 1.",)
        if meaning == "renormalised":
            hint = (" they must sum to 1. If they are true degrees, set ", Parameter("missing", "degrees"), ".")
        raise RowSumError(
            f"The observed degrees of row {row} of {name} sum to {sums[row]:.6g} ({int(wrong.sum())} such rows), but "
            "with ",
            Parameter("missing", meaning),
            *hint,
            " If these are counts or scores, divide each row by the total of all its labels, or by the sum of those "
            "observed and set ",
            Parameter("missing", "renormalised"),
            ".",
            row=row,
        )


def _fill_determined(array: FloatArray) -> None:
    """Fill in what follows from the other cells of a row whose observed degrees are true."""
    gaps = np.isnan(array)
    number = gaps.sum(axis=1)
    rest = rest_of(array)
    known = (number == 1) | ((rest <= NO_REST) & (number > 0))
    array[known] = np.where(gaps[known], np.where(number[known] == 1, rest[known], 0.0)[:, None], array[known])


def _check_identified(array: FloatArray, meaning: str, columns: list[Any], name: str) -> None:
    """Reject tables without information about some label."""
    observed = ~np.isnan(array)
    if not informative(array, meaning).any():
        raise DataError(
            f"No row of {name} has information: with ",
            Parameter("missing", meaning),
            f" a row needs at least {2 if meaning == 'renormalised' else 1} observed labels.",
        )
    never = np.flatnonzero(~observed.any(axis=0))
    if len(never):
        label = str(columns[never[0]]) if columns else int(never[0])
        raise DataError(
            f"Label {label!r} of {name} is observed in no row ({len(never)} such labels). Nothing can be learned about "
            "it: leave out its column, or observe it in some rows."
        )
    if meaning == "renormalised":
        pairs = sparse.csr_matrix(observed[observed.sum(axis=1) > 1], dtype=np.float64)
        number, group = connected_components(pairs.T @ pairs, directed=False)
        if number > 1:
            apart = int(np.argmax(group != group[0]))
            first, second = (columns[0], columns[apart]) if columns else (0, apart)
            raise DataError(
                f"Labels {str(first)!r} and {str(second)!r} of {name} are never observed together, nor tied by others "
                f"that are: the labels fall into {number} groups, and nothing is known about the ratio between them. "
                "Observe labels of both groups in some rows, fit each group alone, or, if these are true degrees, set ",
                Parameter("missing", "degrees"),
                ".",
            )


def _warn_about(array: FloatArray, gaps: BoolArray, meaning: str, missing: str, name: str) -> None:
    """Warn of the meaning that "auto" chose and of rows without information."""
    sentences = []
    if missing == "auto":
        reason = "sum to one in every row" if meaning == "renormalised" else "sum to less than one in some rows"
        meant = "only their ratios are used" if meaning == "renormalised" else "the rest belongs to the missing labels"
        sentences.append(
            Message(
                f"{name} has {int(gaps.sum())} missing degrees. The observed ones {reason}, so ",
                Parameter("missing", "auto"),
                " takes them as ",
                Parameter("missing", meaning),
                f": {meant}. Set ",
                Parameter("missing"),
                " to choose.",
            )
        )
    nothing = int((~informative(array, meaning)).sum())
    if nothing:
        least = "fewer than two observed labels" if meaning == "renormalised" else "no observed label"
        left_out = "and no information: they are left out."
        sentences.append(Message(f"{nothing} of {len(array)} rows of {name} have {least} {left_out}"))
    if sentences:
        warn(Message(sentences[0], *(Message(" ", other) for other in sentences[1:])), MissingDegreesWarning)


def rest_of(D: FloatArray) -> FloatArray:
    """Mass that is left for the missing labels of each row; zero for rows without gaps."""
    rest = np.maximum(1.0 - np.nansum(D, axis=1), 0.0)  # the sum can exceed one by rounding
    return np.where(np.isnan(D).any(axis=1), rest, 0.0)


def informative(D: FloatArray, meaning: str) -> BoolArray:
    """Which rows have information: two observed labels where only ratios count, else one."""
    return np.asarray((~np.isnan(D)).sum(axis=1) >= (2 if meaning == "renormalised" else 1))


def informative_rows(
    X: Any, D: FloatArray, sample_weight: FloatArray | None, meaning: str
) -> tuple[Any, FloatArray, FloatArray | None]:
    """Leave out rows without information; without missing degrees, return the input unchanged."""
    if not has_gaps(D):
        return X, D, sample_weight
    kept = informative(D, meaning)
    if kept.all():
        return X, D, sample_weight
    if not kept.any():
        raise DataError("No training row has information: all have too few observed labels. Use fewer folds.")
    return X[kept], D[kept], None if sample_weight is None else sample_weight[kept]


def row_divergences(D: FloatArray, log_P: FloatArray, meaning: str) -> FloatArray:
    """Kullback-Leibler divergence of what was observed in each row, from logarithms of predictions.

    With "renormalised" it is that of the observed labels alone, both rows divided by their sums there; with "degrees"
    that over the observed labels and the rest. Rows without information have zero.
    """
    gaps = np.isnan(D)
    seen = np.where(gaps, 0.0, D)
    divergences = -(entr(seen) + seen * np.where(gaps, 0.0, log_P)).sum(axis=1)
    if meaning == "renormalised":
        some = ~gaps.all(axis=1)
        divergences[some] += logsumexp(np.where(gaps[some], -np.inf, log_P[some]), axis=1)
        return np.asarray(divergences)
    rest = rest_of(D)
    some = rest > 0
    divergences[some] -= entr(rest[some])
    divergences[some] -= rest[some] * logsumexp(np.where(gaps[some], log_P[some], -np.inf), axis=1)
    return np.asarray(divergences)


def observed_pair(D: FloatArray, P: FloatArray, meaning: str) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Turn partly observed and predicted rows into two tables of distributions that any measure can compare.

    Parameters
    ----------
    D : ndarray of shape (n_samples, n_labels)
        Degrees with NaN where they were not observed, as `check_partial_distributions` returns them.
    P : ndarray of shape (n_samples, n_labels)
        Predicted distributions.
    meaning : {"degrees", "renormalised"}
        What NaN in D means.

    Returns
    -------
    true, predicted : ndarray
        With "renormalised": observed labels only, each row divided by its sum there, zero elsewhere. With "degrees":
        observed labels, zero elsewhere, and one further column with the rest.
    kept : ndarray of bool
        Which rows they hold: those with information.
    """
    kept = informative(D, meaning)
    gaps = np.isnan(D[kept])
    true, predicted = np.where(gaps, 0.0, D[kept]), np.where(gaps, 0.0, P[kept])
    if meaning == "renormalised":
        sums = predicted.sum(axis=1, keepdims=True)
        even = ~gaps / (~gaps).sum(axis=1, keepdims=True)  # a prediction without mass on what was observed
        predicted = np.divide(predicted, sums, out=even, where=sums > 0)
        return true, predicted, kept
    rest = np.where(gaps, P[kept], 0.0).sum(axis=1)
    return np.column_stack([true, rest_of(D[kept])]), np.column_stack([predicted, rest]), kept


def comparable_rows(D: FloatArray, P: FloatArray, meaning: str) -> tuple[FloatArray, FloatArray]:
    """Like `observed_pair` with all rows, those without information as a perfect prediction; without gaps D and P."""
    if not has_gaps(D):
        return D, P
    true, predicted, kept = observed_pair(D, P, meaning)
    even = np.full((len(D), true.shape[1]), 1.0 / true.shape[1])
    whole, guess = even, even.copy()
    whole[kept], guess[kept] = true, predicted
    return whole, guess


def mean_distribution(D: FloatArray, weight: FloatArray, meaning: str) -> FloatArray:
    r"""Find the constant prediction under which what was observed is most likely.

    With "degrees" by expectation maximisation, :math:`m_j \leftarrow \sum_i \omega_i (d_{ij}` or :math:`r_i m_j /
    \sum_{k \notin \Omega_i} m_k)`; with "renormalised" by minorisation, :math:`m_j \leftarrow \sum_i \omega_i d_{ij} /
    \sum_{i: j \in \Omega_i} (\omega_i / \sum_{k \in \Omega_i} m_k)`, as for Plackett-Luce models (Hunter, 2004).

    Parameters
    ----------
    D : ndarray of shape (n_samples, n_labels)
        Degrees with NaN.
    weight : ndarray of shape (n_samples,)
        Row weights.
    meaning : {"degrees", "renormalised"}
        What NaN in D means.

    Returns
    -------
    ndarray of shape (n_labels,)
        The distribution. A label without any observation has the degree 1 / n_labels.
    """
    kept = informative(D, meaning)
    D, weight = D[kept], weight[kept] / weight[kept].sum()
    n_labels = D.shape[1]
    observed, pattern = np.unique(~np.isnan(D), axis=0, return_inverse=True)  # rows with the same gaps go together
    pattern = pattern.ravel()
    mass = np.bincount(pattern, weights=weight)
    rest = np.bincount(pattern, weights=weight * rest_of(D))
    total = weight @ np.nan_to_num(D)
    never = ~observed.any(axis=0)
    mean = np.full(n_labels, 1.0 / n_labels)
    for _ in range(MAX_STEPS):
        before = mean
        if meaning == "renormalised":
            level = observed.T @ (mass / (observed @ mean))
            mean = np.divide(total, level, out=np.full(n_labels, 1.0 / n_labels), where=~never)
            mean[~never] *= (1.0 - never.mean()) / mean[~never].sum()  # ratios alone are known: the scale is free
        else:
            hidden = ~observed @ mean
            mean = total + mean * (~observed.T @ np.divide(rest, hidden, out=np.zeros_like(rest), where=hidden > 0))
            mean = mean / mean.sum()
        if np.abs(mean - before).max() < MIN_CHANGE:
            break
    return np.asarray(mean)


def fill_gaps(D: FloatArray, P: FloatArray, meaning: str) -> FloatArray:
    """Complete rows D, checked by `check_partial_distributions`, from predictions P; see `PartialLDL.complete`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.utils.missing import fill_gaps
    >>> D, P = np.array([[0.5, np.nan, np.nan]]), np.array([[0.2, 0.6, 0.2]])
    >>> fill_gaps(D, P, "degrees").round(3)
    array([[0.5  , 0.375, 0.125]])
    >>> fill_gaps(np.array([[0.5, 0.5, np.nan]]), P, "renormalised")
    array([[0.4, 0.4, 0.2]])
    """
    gaps = np.isnan(D)
    hidden = np.where(gaps, P, 0.0).sum(axis=1, keepdims=True)
    if meaning == "renormalised":
        scale = np.where(gaps.any(axis=1, keepdims=True), 1.0 - hidden, 1.0)
        filled = np.where(gaps, P, D * scale)
    else:
        even = gaps / np.maximum(gaps.sum(axis=1, keepdims=True), 1)  # where all missing labels have the prediction 0
        fractions = np.divide(np.where(gaps, P, 0.0), hidden, out=even, where=hidden > 0)
        filled = np.where(gaps, rest_of(D)[:, None] * fractions, D)
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))
