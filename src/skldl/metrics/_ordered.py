"""Measures for ordered labels, such as ratings or ages, based on the distance over which mass has to move.

References
----------
.. [1] Y. Rubner, C. Tomasi and L. J. Guibas, "The earth mover's distance as a metric for image retrieval",
   International Journal of Computer Vision 40, 2000.
.. [2] X. Jin et al., "Predicting aesthetic score distribution through cumulative Jensen-Shannon divergence", AAAI 2018.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from skldl.metrics._bounds import Bound
from skldl.metrics._measure import Measure
from skldl.metrics._pair import Pair, k_divergence
from skldl.utils.arrays import as_double, as_type_of, at_least
from skldl.utils.typing import FloatArray

ORDERED = "ordered labels"

Values = Sequence[float] | None


def _check_values(values: Any) -> dict[str, Any]:
    if values is None:
        return {"values": None}
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise ValueError(
            f"values={values!r} must be a list of finite numbers, one per label in the order of the labels."
        )
    steps = np.diff(array)
    if not ((steps > 0).all() or (steps < 0).all()):
        raise ValueError(
            f"values={values!r} must rise (or fall) from label to label. "
            "Reorder the columns of both tables so that the labels are in their order."
        )
    return {"values": tuple(array.tolist())}


def _positions(n_labels: int, values: Values) -> FloatArray:
    """Give the value of each label: its place in the row where no values are given."""
    if values is None:
        return np.arange(n_labels, dtype=np.float64)
    if len(values) != n_labels:
        raise ValueError(
            f"values has {len(values)} entries, but there are {n_labels} labels. Give one value per label."
        )
    return np.asarray(values, dtype=np.float64)


def _span(n_labels: int, values: Values) -> float:
    positions = _positions(n_labels, values)
    return float(abs(positions[-1] - positions[0]))


def _earth_mover(pair: Pair, values: Values) -> FloatArray:
    steps = np.abs(np.diff(_positions(pair.p.shape[0], values)))
    if pair.xp is not np:
        surplus = pair.xp.cumulative_sum(as_double(pair.p) - as_double(pair.q), axis=0)[:-1, ...]
        return as_type_of(steps, surplus) @ pair.xp.abs(surplus)
    surplus = np.cumsum(pair.p - pair.q, axis=0)[:-1]  # mass that has to cross each gap between neighbours
    return np.asarray(steps @ np.abs(surplus, out=surplus))


def _error_of_mean(pair: Pair, values: Values) -> FloatArray:
    positions = _positions(pair.p.shape[0], values)
    if pair.xp is not np:
        difference = as_double(pair.p) - as_double(pair.q)
        return pair.xp.abs(as_type_of(positions, difference) @ difference)
    return np.abs(positions @ (pair.p - pair.q))


def _cumulative_jensen_shannon(pair: Pair) -> FloatArray:
    running_sum = np.cumsum if pair.xp is np else pair.xp.cumulative_sum
    true, pred = running_sum(pair.p, axis=0), running_sum(pair.q, axis=0)
    total = true + pred
    return at_least(k_divergence(true, total) + k_divergence(pred, total), 0.0) / 2.0


earth_mover = Measure(
    name="earth_mover",
    title="Earth mover's distance",
    family=ORDERED,
    formula=r"\sum_{j<c} |v_{j+1} - v_j| \left|\sum_{k \leq j} (d_k - \hat d_k)\right|",
    text="Σ_{j<c} |v_{j+1}−v_j| |Σ_{k≤j} (d−p)|",
    higher_is_better=False,
    compute=_earth_mover,
    use="Mass times the distance it has to move, in units of the values v, an option: 0, 1, …, c−1 by default.",
    bound=Bound("c−1", _span),
    options=MappingProxyType({"values": None}),
    check=_check_values,
)

cumulative_jensen_shannon = Measure(
    name="cumulative_jensen_shannon",
    title="Cumulative Jensen-Shannon",
    family=ORDERED,
    formula=r"\frac{1}{2} \sum_j \left(F_j \ln \frac{2 F_j}{F_j + \hat F_j}"
    r" + \hat F_j \ln \frac{2 \hat F_j}{F_j + \hat F_j}\right),\; F_j = \sum_{k \leq j} d_k",
    text="½ Σ F ln(2F/(F+G)) + G ln(2G/(F+G)), F, G: running sums of d, p",
    higher_is_better=False,
    compute=_cumulative_jensen_shannon,
    use="Jensen-Shannon of the running sums: sees the order, and small sums at the low end count relatively.",
    bound=Bound("(c−1)/2 ln 2", lambda n_labels: (n_labels - 1) / 2.0 * np.log(2.0)),
    zeros="0 ln 0 is 0; never below 0",
)

error_of_mean = Measure(
    name="error_of_mean",
    title="Error of the mean",
    family=ORDERED,
    formula=r"\left|\sum_j v_j d_j - \sum_j v_j \hat d_j\right|",
    text="|Σvd − Σvp|",
    higher_is_better=False,
    compute=_error_of_mean,
    use="How far the mean rating (age, score) is off, in units of the values v; independent of the spread.",
    bound=Bound("c−1", _span),
    options=MappingProxyType({"values": None}),
    check=_check_values,
)
