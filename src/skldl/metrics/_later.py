"""Measures published after Cha (2007): for ordered labels, for decisions, and for the order of the labels.

**Ordered labels**, such as ratings or ages: distances over which mass has to move [1]_ [2]_.

**Decisions and rank correlation**: these compare the label with the largest degree, the k largest, or the order of all
labels. Where predicted degrees are equal, the value is the expectation over a random choice among the tied labels, so
that no measure depends on the order of the columns; where true degrees are equal, each of the labels with the largest
degree is right. A row whose degrees are all equal has no order, and its rank correlation counts as 0.

References
----------
.. [1] Y. Rubner, C. Tomasi and L. J. Guibas, "The earth mover's distance as a metric for image retrieval",
   International Journal of Computer Vision 40, 2000.
.. [2] X. Jin et al., "Predicting aesthetic score distribution through cumulative Jensen-Shannon divergence", AAAI 2018.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special, stats

from skldl.exceptions import Parameter, ParameterError
from skldl.metrics._cha import SHANNON
from skldl.metrics._measure import Bound, Measure
from skldl.metrics._pair import Pair, column_dot, divide, k_divergence, sum_over_labels
from skldl.utils.arrays import as_double, as_type_of, at_least, namespace, take_rows
from skldl.utils.parameters import COUNT, check_value
from skldl.utils.typing import FloatArray

ORDERED = "ordered labels"
DECISIONS = "decisions"
RANKS = "rank correlation"

Values = Sequence[float] | None


# -- Ordered labels


def _check_values(values: Any) -> dict[str, Any]:
    if values is None:
        return {"values": None}
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise ParameterError(
            Parameter("values", values), " must be a list of finite numbers, one per label in the order of the labels."
        )
    steps = np.diff(array)
    if not ((steps > 0).all() or (steps < 0).all()):
        raise ParameterError(
            Parameter("values", values),
            " must increase (or decrease) from label to label. Reorder the columns of both tables so that the labels "
            "are in their order.",
        )
    return {"values": tuple(array.tolist())}


def _positions(n_labels: int, values: Values) -> FloatArray:
    """Value of each label: its position in the row if no values are given."""
    if values is None:
        return np.arange(n_labels, dtype=np.float64)
    if len(values) != n_labels:
        raise ParameterError(
            Parameter("values", values),
            f" has {len(values)} entries, but there are {n_labels} labels. Pass one per label.",
        )
    return np.asarray(values, dtype=np.float64)


def _span(n_labels: int, values: Values) -> float:
    positions = _positions(n_labels, values)
    return float(abs(positions[-1] - positions[0]))


def _running_sums(degrees: FloatArray) -> FloatArray:
    """Σ over the labels up to each label."""
    xp = namespace(degrees)
    return np.cumsum(degrees, axis=0) if xp is np else xp.cumulative_sum(degrees, axis=0)


def _earth_mover(pair: Pair, values: Values) -> FloatArray:
    steps = np.abs(np.diff(_positions(pair.p.shape[0], values)))
    # mass that has to cross each gap between neighbouring labels
    surplus = _running_sums(as_double(pair.p) - as_double(pair.q))[:-1, ...]
    return as_type_of(steps, surplus) @ pair.xp.abs(surplus)


def _error_of_mean(pair: Pair, values: Values) -> FloatArray:
    positions = _positions(pair.p.shape[0], values)
    difference = as_double(pair.p) - as_double(pair.q)  # first: the means may be large and nearly equal
    return pair.xp.abs(as_type_of(positions, difference) @ difference)


def _cumulative_jensen_shannon(pair: Pair) -> FloatArray:
    true, pred = _running_sums(pair.p), _running_sums(pair.q)
    total = true + pred
    # negative only by rounding
    return at_least(k_divergence(true, total) + k_divergence(pred, total), 0.0) / 2.0


def _check_sides(negative: Any, positive: Any) -> dict[str, Any]:
    if (negative is None) != (positive is None):
        raise ParameterError(
            "Pass both ",
            Parameter("negative"),
            " and ",
            Parameter("positive"),
            ", the positions of the labels on either side, or neither.",
        )
    if negative is None:
        return {"negative": None, "positive": None}
    sides = {"negative": tuple(int(j) for j in negative), "positive": tuple(int(j) for j in positive)}
    both = sides["negative"] + sides["positive"]
    if min(map(len, sides.values())) == 0 or len(set(both)) < len(both) or min(both) < 0:
        raise ParameterError(
            Parameter("negative", negative),
            " and ",
            Parameter("positive", positive),
            " must be two lists of positions of labels (0 is the first) that have no label in common.",
        )
    return sides


def _divisiveness_error(pair: Pair, negative: Any, positive: Any) -> FloatArray:
    n_labels = pair.p.shape[0]
    if negative is None:
        negative, positive = range(n_labels // 2), range(n_labels - n_labels // 2, n_labels)
    last = max(*negative, *positive)
    if last >= n_labels:
        raise ParameterError(
            Parameter("negative", negative),
            " and ",
            Parameter("positive", positive),
            f" name label {last}, but there are only {n_labels} labels, numbered from 0.",
        )

    def smaller_side(degrees: FloatArray) -> FloatArray:
        sides = (sum_over_labels(take_rows(degrees, list(side))) for side in (negative, positive))
        return pair.xp.minimum(*sides)

    return pair.xp.abs(smaller_side(pair.p) - smaller_side(pair.q))


earth_mover = Measure(
    name="earth_mover",
    title="Earth mover's distance",
    family=ORDERED,
    formula=r"\sum_{j<c} |v_{j+1} - v_j| \left|\sum_{k \leq j} (d_k - \hat d_k)\right|",
    text="Σ_{j<c} |v_{j+1}−v_j| |Σ_{k≤j} (d−p)|",
    higher_is_better=False,
    compute=_earth_mover,
    use="Mass times the distance that it has to move; the values v are an option, 0, 1, …, c−1 by default.",
    bound=Bound("c−1", _span),
    options={"values": None},
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
    use="Jensen-Shannon of the cumulative sums: respects the order, and is most sensitive at the low end.",
    bound=Bound("(c−1)/2 ln 2", lambda n_labels: (n_labels - 1) / 2.0 * math.log(2.0)),
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
    options={"values": None},
    check=_check_values,
)

divisiveness_error = Measure(
    name="divisiveness_error",
    title="Divisiveness error",
    family=ORDERED,
    formula=r"\left|\psi(d) - \psi(\hat d)\right|,\; \psi(d) = \min\left(\sum_{j \in N} d_j, \sum_{j \in P} d_j\right)",
    text="|min(Σ_N d, Σ_P d) − min(Σ_N p, Σ_P p)|",
    higher_is_better=False,
    compute=_divisiveness_error,
    use="Error in how much opinions divide; N and P are options, by default the lower and upper half of the labels.",
    bound=Bound("1/2", 0.5),
    zeros="with an odd c the middle label is on neither side",
    options={"negative": None, "positive": None},
    check=_check_sides,
)

# -- Decisions


def _top(degrees: FloatArray) -> FloatArray:
    """1.0 where a label has the largest degree of its row, else 0.0."""
    return as_double(degrees == namespace(degrees).max(degrees, axis=0))


def _argmax_accuracy(pair: Pair) -> FloatArray:
    chosen = _top(pair.q)
    return column_dot(chosen, _top(pair.p)) / sum_over_labels(chosen)


def _zero_one_loss(pair: Pair) -> FloatArray:
    # here and in the measures below, values outside the range are rounding errors
    return pair.xp.clip(1.0 - _argmax_accuracy(pair), 0.0, 1.0)


def _error_probability(pair: Pair) -> FloatArray:
    chosen = _top(pair.q)
    return pair.xp.clip(1.0 - column_dot(chosen, as_double(pair.p)) / sum_over_labels(chosen), 0.0, 1.0)


def _check_k(k: Any) -> dict[str, Any]:
    check_value("k", k, COUNT)
    return {"k": int(k)}


def _top_k(pair: Pair, k: int) -> FloatArray:
    """Probability that the k labels with the largest predicted degrees contain a label with the largest true degree.

    If several labels tie for the last of the k places, these are drawn at random: ``places`` of the ``tied`` labels
    without replacement, of which ``others`` do not have the largest true degree. The probability that only others are
    drawn is C(others, places) / C(tied, places).
    """
    n_labels, xp = pair.q.shape[0], pair.xp
    if k >= n_labels:
        return xp.ones_like(xp.max(pair.q, axis=0))
    last_named = _kth_largest(pair.q, k)
    true_top = pair.p == xp.max(pair.p, axis=0)
    surely, perhaps = pair.q > last_named, pair.q == last_named
    places = k - _count(surely)
    tied = _count(perhaps)
    others = tied - _count(perhaps & true_top)
    # binomials from a table of ln m!, which does not overflow for thousands of labels
    log_factorials = as_type_of(special.gammaln(np.arange(n_labels + 1) + 1.0), sum_over_labels(pair.q))
    possible = xp.where(others < places, places, others)  # keeps the binomial defined where the probability is 0
    missed = xp.exp(_log_choose(possible, places, log_factorials) - _log_choose(tied, places, log_factorials))
    missed = xp.where(others < places, 0.0, missed)
    return xp.where(xp.any(surely & true_top, axis=0), 1.0, 1.0 - missed)


def _kth_largest(degrees: FloatArray, k: int) -> FloatArray:
    """The k-th largest degree of each row."""
    n_labels = degrees.shape[0]
    if isinstance(degrees, np.ndarray):
        return np.asarray(np.partition(degrees, n_labels - k, axis=0)[n_labels - k])
    return namespace(degrees).sort(degrees, axis=0)[n_labels - k, ...]


def _count(truth: Any) -> Any:
    """Number of true entries of each row."""
    xp = namespace(truth)
    return truth.sum(axis=0) if xp is np else xp.sum(xp.astype(truth, xp.int64), axis=0)


def _log_choose(n: Any, k: Any, log_factorials: FloatArray) -> FloatArray:
    """Logarithm of the number of ways to choose k of n, from a table of ln m!."""
    xp = namespace(n)
    return xp.take(log_factorials, n) - xp.take(log_factorials, k) - xp.take(log_factorials, n - k)


def _chance_of_top(degrees: FloatArray, k: int) -> FloatArray:
    """Probability of each label to be among the k largest of its row, when ties are broken at random."""
    last_named = _kth_largest(degrees, k)
    surely, perhaps = (as_double(truth) for truth in (degrees > last_named, degrees == last_named))
    return surely + perhaps * ((k - sum_over_labels(surely)) / sum_over_labels(perhaps))


def _match_rate(pair: Pair, k: int) -> FloatArray:
    k = min(k, pair.p.shape[0])
    return pair.xp.clip(column_dot(_chance_of_top(pair.p, k), _chance_of_top(pair.q, k)) / k, 0.0, 1.0)


argmax_accuracy = Measure(
    name="argmax_accuracy",
    title="Argmax accuracy",
    family=DECISIONS,
    formula=r"\left[\arg\max_j \hat d_j \in \arg\max_j d_j\right]",
    text="[argmax p is argmax d]",
    higher_is_better=True,
    compute=_argmax_accuracy,
    use="How often the top label is right; independent of the differences between the degrees.",
    bound=Bound("1", 1.0),
    zeros="ties of p: fraction of the tied labels that are right; ties of d: each top label is right",
)

zero_one_loss = Measure(
    name="zero_one_loss",
    title="0/1 loss",
    family=DECISIONS,
    formula=r"\left[\arg\max_j \hat d_j \notin \arg\max_j d_j\right]",
    text="[argmax p is not argmax d]",
    higher_is_better=False,
    compute=_zero_one_loss,
    use="How often the top label is wrong: 1 − argmax accuracy, as papers on decisions print it.",
    bound=Bound("1", 1.0),
    zeros="ties of p: fraction of the tied labels that are wrong; ties of d: each top label is right",
)

error_probability = Measure(
    name="error_probability",
    title="Error probability",
    family=DECISIONS,
    formula=r"1 - d_{\arg\max_j \hat d_j}",
    text="1 − d[argmax p]",
    higher_is_better=False,
    compute=_error_probability,
    use="Probability that a label drawn from the truth differs from the predicted one: the cost of naming one label.",
    bound=Bound("1", 1.0),
    zeros="ties of p: mean over the tied labels",
)

top_k = Measure(
    name="top_k",
    title="Top-k accuracy",
    family=DECISIONS,
    formula=r"\left[\arg\max_j d_j \in \mathrm{top}_k(\hat d)\right]",
    text="[argmax d is in the top k of p]",
    higher_is_better=True,
    compute=_top_k,
    use="How often the true top label is among the k that a user is shown; k is an option, 2 by default.",
    bound=Bound("1", 1.0),
    zeros="ties of p: probability under a random choice; ties of d: each top label is right; 1 where k ≥ c",
    options={"k": 2},
    check=_check_k,
)

match_rate = Measure(
    name="match_rate",
    title="Match rate",
    family=DECISIONS,
    formula=r"\frac{1}{k} \left|\mathrm{top}_k(d) \cap \mathrm{top}_k(\hat d)\right|",
    text="|top k of d ∩ top k of p| / k",
    higher_is_better=True,
    compute=_match_rate,
    use="Fraction of the k largest labels that are also among the k predicted ones; k is an option, 2 by default.",
    bound=Bound("1", 1.0),
    zeros="ties of d and of p: expectation over independent random choices; k above c counts as c",
    options={"k": 2},
    check=_check_k,
)

# -- Rank correlation


def _ranks(degrees: FloatArray) -> FloatArray:
    """Ranks of the degrees of each row from 1; ties get their mean rank."""
    if isinstance(degrees, np.ndarray):
        return np.asarray(stats.rankdata(degrees, axis=0))
    rows = [degrees[j, ...] for j in range(degrees.shape[0])]
    # the mean of the smallest and the largest rank of a tie, from counts: the array API has no rankdata
    ranks = [0.5 * (as_double(_count(degrees < own) + _count(degrees <= own)) + 1.0) for own in rows]
    return namespace(degrees).stack(ranks)


def _spearman(pair: Pair) -> FloatArray:
    middle = (pair.p.shape[0] + 1) / 2.0  # the mean of the ranks, with ties too
    true, pred = _ranks(pair.p) - middle, _ranks(pair.q) - middle
    spread = pair.xp.sqrt(column_dot(true, true) * column_dot(pred, pred))
    return pair.xp.clip(divide(column_dot(true, pred), spread), -1.0, 1.0)


def _kendall(pair: Pair) -> FloatArray:
    xp = pair.xp
    agreement, untied_true, untied_pred = (xp.zeros_like(sum_over_labels(pair.p)) for _ in range(3))
    for j in range(pair.p.shape[0] - 1):  # all pairs of labels at once would need c²/2 numbers per row
        true = xp.sign(pair.p[j, ...] - pair.p[j + 1 :, ...])
        pred = xp.sign(pair.q[j, ...] - pair.q[j + 1 :, ...])
        agreement += column_dot(true, pred)
        untied_true += column_dot(true, true)
        untied_pred += column_dot(pred, pred)
    return xp.clip(divide(agreement, xp.sqrt(untied_true * untied_pred)), -1.0, 1.0)


spearman = Measure(
    name="spearman",
    title="Spearman",
    family=RANKS,
    formula=r"\mathrm{corr}(\mathrm{rank}\, d, \mathrm{rank}\, \hat d)",
    text="correlation of the ranks of d and p",
    higher_is_better=True,
    compute=_spearman,
    use="Agreement of the order of the labels; large displacements count more.",
    lower=-1.0,
    bound=Bound("1", 1.0),
    zeros="ties get their mean rank; a row without order counts as 0",
)

kendall = Measure(
    name="kendall",
    title="Kendall",
    family=RANKS,
    formula=r"\frac{\sum_{j<k} \mathrm{sgn}(d_j - d_k)\, \mathrm{sgn}(\hat d_j - \hat d_k)}"
    r"{\sqrt{\sum_{j<k} \mathrm{sgn}(d_j - d_k)^2} \sqrt{\sum_{j<k} \mathrm{sgn}(\hat d_j - \hat d_k)^2}}",
    text="Σ_{j<k} sgn(d_j−d_k) sgn(p_j−p_k) / √(untied pairs of d × untied pairs of p)",
    higher_is_better=True,
    compute=_kendall,
    use="Pairs of labels in the right order minus pairs in the wrong one (tau-b); slow for thousands of labels.",
    lower=-1.0,
    bound=Bound("1", 1.0),
    zeros="ties as in tau-b; a row without order counts as 0",
)

# -- The divergence of Kullback and Leibler with the roles reversed

reversed_kullback_leibler = Measure(
    name="reversed_kullback_leibler",
    title="Reversed Kullback-Leibler",
    family=SHANNON,
    formula=r"\sum_j \hat d_j \ln \frac{\hat d_j}{d_j}",
    text="Σ p ln(p/d)",
    higher_is_better=False,
    compute=lambda pair: pair.reversed_relative_entropy,
    use="Not in Cha: penalises spurious labels; some label-enhancement tables print it as Kullback-Leibler.",
    zeros="0 ln 0 is 0; the truth is floored at eps",
    uses_eps=True,
)
