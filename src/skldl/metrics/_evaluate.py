"""Several measures at once, and the one figure that a practitioner can read: skill against a reference."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl._validation import check_distributions, check_pair, check_weights
from skldl.exceptions import LengthMismatchError, UnknownNameError
from skldl.metrics._measure import Measure, compute_rows, mean

FloatArray = npt.NDArray[np.floating]

MAX_GROUPS = 10_000


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


def evaluate(D_true: Any, D_pred: Any, sample_weight: Any, measures: Sequence[Measure]) -> dict[str, float]:
    """See `skldl.metrics.evaluate`; the measures come from there."""
    true, pred = check_pair(D_true, D_pred)
    weight = check_weights(sample_weight, len(true))
    return {name: mean(values, weight) for name, values in compute_rows(true, pred, measures).items()}


class Skill(float):
    """A skill with its bootstrap interval: a float with the attributes ``low``, ``high`` and ``confidence``."""

    low: float
    high: float
    confidence: float

    def __new__(cls, value: float, low: float, high: float, confidence: float) -> "Skill":
        skill = super().__new__(cls, value)
        skill.low, skill.high, skill.confidence = low, high, confidence
        return skill

    def __repr__(self) -> str:
        return f"Skill({float(self):.4f}, {self.confidence:.0%} interval {self.low:.4f} to {self.high:.4f})"

    def __getnewargs__(self) -> tuple[float, float, float, float]:  # type: ignore[override]  # float's takes none
        return float(self), self.low, self.high, self.confidence


def skill(
    D_true: Any,
    D_pred: Any,
    D_reference: Any,
    sample_weight: Any = None,
    *,
    divergence: Measure,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: int | np.random.RandomState | None = 0,
) -> Skill:
    """See `skldl.metrics.skill`; the divergence comes from there."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} must lie between 0 and 1, such as 0.95.")
    if n_resamples < 1:
        raise ValueError(f"n_resamples={n_resamples!r} must be at least 1.")
    true, pred = check_pair(D_true, D_pred)
    reference = check_distributions(D_reference, name="D_reference", renormalize=False)
    if reference.shape[0] == 1:
        reference = np.broadcast_to(reference, (len(true), reference.shape[1]))
    if true.shape != reference.shape:
        raise LengthMismatchError(
            f"D_true has shape {true.shape} and D_reference {reference.shape}. "
            "Pass one reference row for each true row, or a single row that stands for all."
        )
    weight = check_weights(sample_weight, len(true))
    model_rows = divergence.rowwise(true, pred)
    reference_rows = divergence.rowwise(true, reference)
    if weight is not None:
        model_rows, reference_rows = model_rows * weight, reference_rows * weight

    generator = np.random.default_rng(
        random_state.randint(2**32, dtype=np.uint64)
        if isinstance(random_state, np.random.RandomState)
        else random_state
    )
    sums = _in_groups(np.column_stack([model_rows, reference_rows]), generator)
    draws = np.empty(n_resamples)
    for i in range(n_resamples):
        draws[i] = _one_minus_ratio(*sums[generator.integers(len(sums), size=len(sums))].sum(axis=0))
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], method="nearest")
    return Skill(_one_minus_ratio(model_rows.sum(), reference_rows.sum()), float(low), float(high), confidence)


def _in_groups(rows: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Sums over random groups of rows: many rows are resampled by the group, at a cost that does not grow with them."""
    if len(rows) <= MAX_GROUPS:
        return rows
    starts = np.arange(MAX_GROUPS) * len(rows) // MAX_GROUPS
    return np.asarray(np.add.reduceat(rows[generator.permutation(len(rows))], starts, axis=0))


def _one_minus_ratio(model: float, reference: float) -> float:
    """1 − model/reference; a perfect reference leaves skill 0 if the model is perfect too, else −∞."""
    if reference <= 0:  # below zero only by rounding
        return 0.0 if model <= 0 else -np.inf
    return float(1.0 - model / reference)
