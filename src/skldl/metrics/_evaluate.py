"""Several measures in one call, and the skill against a reference."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skldl.exceptions import LengthMismatchError, UnknownNameError
from skldl.metrics._measure import Measure, checked_pair, compute_rows, mean, summing_to_one
from skldl.metrics._skill import Skill, skill_of_losses
from skldl.utils.arrays import computing_on, is_device_array, namespace, to_numpy
from skldl.utils.column_names import column_names, order_of_labels
from skldl.utils.validation import check_distributions, check_weights


def resolve(measures: Iterable[str | Measure], known: Mapping[str, Measure]) -> list[Measure]:
    """Turn names and measure objects into measure objects."""
    found = []
    for measure in [measures] if isinstance(measures, str | Measure) else measures:
        if isinstance(measure, Measure):
            found.append(measure)
        elif measure in known:
            found.append(known[measure])
        else:
            raise UnknownNameError(f"No measure is called {measure!r}. The known ones are {', '.join(known)}.")
    return found


class Score(float):
    """The mean of a measure over rows made of votes: a float with the attributes ``floor`` and ``floor_error``.

    ``floor`` is the value that the true distributions would have on these rows, NaN if it is not finite, and
    ``floor_error`` its standard error.

    Parameters
    ----------
    value : float
        Mean of the measure.
    floor, floor_error : float
        The noise floor and its standard error.

    Examples
    --------
    >>> from skldl.metrics import evaluate
    >>> D, P, counts = [[0.5, 0.5], [0.8, 0.2]], [[0.6, 0.4], [0.7, 0.3]], [[5, 5], [8, 2]]
    >>> scores = evaluate(D, P, counts=counts, measures=["kullback_leibler"])
    >>> score = scores["kullback_leibler"]
    >>> round(score, 4), round(score.floor, 4)
    (0.0231, 0.0545)
    """

    floor: float
    floor_error: float

    def __new__(cls, value: float, floor: float, floor_error: float) -> "Score":
        score = super().__new__(cls, value)
        score.floor, score.floor_error = floor, floor_error
        return score

    def __repr__(self) -> str:
        return f"Score({float(self):.4f}, noise floor {self.floor:.4f} ± {self.floor_error:.4f})"

    def __getnewargs__(self) -> tuple[float, float, float]:  # type: ignore[override]  # float's takes none
        return float(self), self.floor, self.floor_error


def evaluate(D_true: Any, D_pred: Any, sample_weight: Any, measures: Sequence[Measure]) -> dict[str, float]:
    """See `skldl.metrics.evaluate`; the measures come from there."""
    with computing_on(D_true, "evaluate"):
        true, pred = checked_pair(D_true, D_pred)
        weight = check_weights(sample_weight, true.shape[0], true)
        return {name: mean(values, weight) for name, values in compute_rows(true, pred, measures).items()}


def skill(
    D_true: Any,
    D_pred: Any,
    D_reference: Any,
    sample_weight: Any = None,
    *,
    groups: Any,
    divergence: Measure,
    confidence: float,
    floor: float | None,
) -> Skill:
    """See `skldl.metrics.skill`; the divergence comes from there."""
    true, pred = checked_pair(D_true, D_pred)
    if is_device_array(true):  # losses of rows are computed there; skill and its interval, from few numbers, in NumPy
        weight = check_weights(sample_weight, true.shape[0], true)
        sample_weight = None if weight is None else to_numpy(weight)
    reference = rows_of_reference(D_true, true, D_reference)
    own, other = (to_numpy(compute_rows(true, P, [divergence])[divergence.name]) for P in (pred, reference))
    return skill_of_losses(own, other, sample_weight, groups, confidence=confidence, floor=floor)


def rows_of_reference(D_true: Any, true: Any, D_reference: Any) -> Any:
    """Check what a reference predicts, and put it in the order of the labels of the truth, one row for each.

    Parameters
    ----------
    D_true : array-like or DataFrame
        True distributions as they were passed.
    true : array
        The same, checked.
    D_reference : array-like or DataFrame of shape (n_samples, n_labels) or (1, n_labels)
        The reference.

    Returns
    -------
    array of shape (n_samples, n_labels)
        Its rows.
    """
    if is_device_array(true):
        reference = check_distributions(D_reference, name="D_reference", like=true)
    else:
        reference = summing_to_one(check_distributions(D_reference, name="D_reference", renormalize=False))
        order = order_of_labels(column_names(D_true), column_names(D_reference), name="D_reference")
        if order is not None and reference.shape[1] == true.shape[1]:
            reference = reference[:, order]
    if reference.shape[0] == 1:
        reference = namespace(true).broadcast_to(reference, (true.shape[0], reference.shape[1]))
    if tuple(true.shape) != tuple(reference.shape):
        raise LengthMismatchError(
            f"D_true has shape {tuple(true.shape)} and D_reference {tuple(reference.shape)}. "
            "Pass one reference row for each true row, or a single row for all."
        )
    return reference
