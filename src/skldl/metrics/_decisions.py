"""Measures of decisions and of order: which label comes first, which few, and in what order do all come.

Degrees that are equal leave the decision open. Where the prediction ties, the value is the expectation over a random
choice among the tied labels, so that no measure depends on the order of the columns; where the truth ties, each of its
top labels is right. A row whose degrees are all equal has no order, and its rank correlation counts as 0.
"""

from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import special, stats

from skldl.metrics._bounds import HALF, ONE
from skldl.metrics._measure import Measure
from skldl.metrics._ordered import ORDERED
from skldl.metrics._pair import Pair, column_dot, divide, sum_over_labels
from skldl.utils.arrays import as_double, as_type_of, namespace, take_rows
from skldl.utils.typing import FloatArray

DECISIONS = "decisions"
RANKS = "rank correlation"


def _top(degrees: FloatArray) -> FloatArray:
    """1.0 where a label has the greatest degree of its row, else 0.0."""
    xp = namespace(degrees)
    return as_double(degrees == xp.max(degrees, axis=0))


def _argmax_accuracy(pair: Pair) -> FloatArray:
    chosen = _top(pair.q)
    return column_dot(chosen, _top(pair.p)) / sum_over_labels(chosen)


def _error_probability(pair: Pair) -> FloatArray:
    chosen = _top(pair.q)
    return pair.xp.clip(1.0 - column_dot(chosen, as_double(pair.p)) / sum_over_labels(chosen), 0.0, 1.0)


def _check_k(k: Any) -> dict[str, Any]:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k={k!r} must be a whole number of at least 1: the number of labels that are named.")
    return {"k": int(k)}


def _top_k(pair: Pair, k: int) -> FloatArray:
    n_labels = pair.q.shape[0]
    xp = pair.xp
    if k >= n_labels:
        return xp.ones_like(xp.max(pair.q, axis=0))
    last_named = _largest(pair.q, k)
    true_top = pair.p == xp.max(pair.p, axis=0)
    surely, perhaps = pair.q > last_named, pair.q == last_named
    places = k - _count(surely)
    tied = _count(perhaps)
    others = tied - _count(perhaps & true_top)
    # chance that a draw of `places` from the `tied` labels holds none of the true top labels
    log_choices = as_type_of(special.gammaln(np.arange(n_labels + 1) + 1.0), sum_over_labels(pair.q))
    enough = xp.where(others < places, places, others)
    missed = xp.exp(_log_choose(enough, places, log_choices) - _log_choose(tied, places, log_choices))
    missed = xp.where(others < places, 0.0, missed)
    return xp.where(xp.any(surely & true_top, axis=0), 1.0, 1.0 - missed)


def _largest(degrees: FloatArray, k: int) -> FloatArray:
    """The k-th largest degree of each row."""
    n_labels = degrees.shape[0]
    if isinstance(degrees, np.ndarray):
        return np.asarray(np.partition(degrees, n_labels - k, axis=0)[n_labels - k])
    return namespace(degrees).sort(degrees, axis=0)[n_labels - k, ...]


def _count(truth: Any) -> Any:
    if isinstance(truth, np.ndarray):
        return truth.sum(axis=0)
    xp = namespace(truth)
    return xp.sum(xp.astype(truth, xp.int64), axis=0)


def _log_choose(n: Any, k: Any, log_factorials: FloatArray) -> FloatArray:
    """Logarithm of the number of ways to choose k of n, from a table of ln m!."""
    xp = namespace(n)
    return xp.take(log_factorials, n) - xp.take(log_factorials, k) - xp.take(log_factorials, n - k)


def _ranks(degrees: FloatArray) -> FloatArray:
    """Ranks of the degrees of each row from 1; ties share their mean rank."""
    if isinstance(degrees, np.ndarray):
        return np.asarray(stats.rankdata(degrees, axis=0))
    ranks = [0.5 * (as_double(_count(degrees < own) + _count(degrees <= own)) + 1.0) for own in _rows_of(degrees)]
    return namespace(degrees).stack(ranks)


def _rows_of(degrees: Any) -> list[Any]:
    return [degrees[j, ...] for j in range(degrees.shape[0])]


def _spearman(pair: Pair) -> FloatArray:
    middle = (pair.p.shape[0] + 1) / 2.0
    true, pred = _ranks(pair.p) - middle, _ranks(pair.q) - middle
    spread = pair.xp.sqrt(column_dot(true, true) * column_dot(pred, pred))
    return pair.xp.clip(divide(column_dot(true, pred), spread), -1.0, 1.0)


def _kendall(pair: Pair) -> FloatArray:
    n_labels = pair.p.shape[0]
    xp = pair.xp
    agreement, untied_true, untied_pred = (xp.zeros_like(sum_over_labels(pair.p)) for _ in range(3))
    for j in range(n_labels - 1):  # all pairs at once would need c²/2 numbers per row
        true = xp.sign(pair.p[j, ...] - pair.p[j + 1 :, ...])
        pred = xp.sign(pair.q[j, ...] - pair.q[j + 1 :, ...])
        agreement += column_dot(true, pred)
        untied_true += column_dot(true, true)
        untied_pred += column_dot(pred, pred)
    return xp.clip(divide(agreement, xp.sqrt(untied_true * untied_pred)), -1.0, 1.0)


argmax_accuracy = Measure(
    name="argmax_accuracy",
    title="Argmax accuracy",
    family=DECISIONS,
    formula=r"\left[\arg\max_j \hat d_j \in \arg\max_j d_j\right]",
    text="[argmax p is argmax d]",
    higher_is_better=True,
    compute=_argmax_accuracy,
    use="How often the top label is right; independent of the differences between the degrees.",
    bound=ONE,
    zeros="ties of p: share of the tied labels that are right; ties of d: each top label is right",
)

error_probability = Measure(
    name="error_probability",
    title="Error probability",
    family=DECISIONS,
    formula=r"1 - d_{\arg\max_j \hat d_j}",
    text="1 − d[argmax p]",
    higher_is_better=False,
    compute=_error_probability,
    use="Chance that a label drawn from the truth differs from the one predicted: the cost of deciding for one label.",
    bound=ONE,
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
    bound=ONE,
    zeros="ties of p: chance under a random choice; ties of d: any top label will do; 1 where k ≥ c",
    options=MappingProxyType({"k": 2}),
    check=_check_k,
)

spearman = Measure(
    name="spearman",
    title="Spearman",
    family=RANKS,
    formula=r"\mathrm{corr}(\mathrm{rank}\, d, \mathrm{rank}\, \hat d)",
    text="correlation of the ranks of d and p",
    higher_is_better=True,
    compute=_spearman,
    use="Are the labels in the right order? Large displacements count more.",
    lower=-1.0,
    bound=ONE,
    zeros="ties share their mean rank; a row without order counts as 0",
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
    bound=ONE,
    zeros="ties as in tau-b; a row without order counts as 0",
)


def _zero_one_loss(pair: Pair) -> FloatArray:
    return pair.xp.clip(1.0 - _argmax_accuracy(pair), 0.0, 1.0)


def _chance_of_top(degrees: FloatArray, k: int) -> FloatArray:
    """Chance of each label to be among the k largest of its row, when ties are broken at random."""
    last_named = _largest(degrees, k)
    surely, perhaps = (as_double(truth) for truth in (degrees > last_named, degrees == last_named))
    return surely + perhaps * ((k - sum_over_labels(surely)) / sum_over_labels(perhaps))


def _match_rate(pair: Pair, k: int) -> FloatArray:
    k = min(k, pair.p.shape[0])
    return pair.xp.clip(column_dot(_chance_of_top(pair.p, k), _chance_of_top(pair.q, k)) / k, 0.0, 1.0)


def _check_sides(negative: Any, positive: Any) -> dict[str, Any]:
    if (negative is None) != (positive is None):
        raise ValueError("Give both negative and positive, the numbers of the labels on either side, or neither.")
    if negative is None:
        return {"negative": None, "positive": None}
    sides = {"negative": tuple(int(j) for j in negative), "positive": tuple(int(j) for j in positive)}
    both = sides["negative"] + sides["positive"]
    if min(map(len, sides.values())) == 0 or len(set(both)) < len(both) or min(both) < 0:
        raise ValueError(
            f"negative={negative!r} and positive={positive!r} must be two lists of label numbers (0 is the first) that "
            "have no label in common."
        )
    return sides


def _divisiveness_error(pair: Pair, negative: Any, positive: Any) -> FloatArray:
    n_labels = pair.p.shape[0]
    if negative is None:
        negative, positive = range(n_labels // 2), range(n_labels - n_labels // 2, n_labels)
    if max(*negative, *positive) >= n_labels:
        raise ValueError(
            f"negative={negative!r} and positive={positive!r} name label {max(*negative, *positive)}, but there are "
            f"only {n_labels} labels, numbered from 0."
        )

    def smaller_side(degrees: FloatArray) -> FloatArray:
        sides = (sum_over_labels(take_rows(degrees, list(side))) for side in (negative, positive))
        return pair.xp.minimum(*sides)

    return pair.xp.abs(smaller_side(pair.p) - smaller_side(pair.q))


zero_one_loss = Measure(
    name="zero_one_loss",
    title="0/1 loss",
    family=DECISIONS,
    formula=r"\left[\arg\max_j \hat d_j \notin \arg\max_j d_j\right]",
    text="[argmax p is not argmax d]",
    higher_is_better=False,
    compute=_zero_one_loss,
    use="How often the top label is wrong: 1 − argmax accuracy, as papers on decisions print it.",
    bound=ONE,
    zeros="ties of p: share of the tied labels that are wrong; ties of d: each top label is right",
)

match_rate = Measure(
    name="match_rate",
    title="Match rate",
    family=DECISIONS,
    formula=r"\frac{1}{k} \left|\mathrm{top}_k(d) \cap \mathrm{top}_k(\hat d)\right|",
    text="|top k of d ∩ top k of p| / k",
    higher_is_better=True,
    compute=_match_rate,
    use="Share of the k most important labels that are named; k is an option, 2 by default.",
    bound=ONE,
    zeros="ties of d and of p: expectation over independent random choices; k above c counts as c",
    options=MappingProxyType({"k": 2}),
    check=_check_k,
)

divisiveness_error = Measure(
    name="divisiveness_error",
    title="Divisiveness error",
    family=ORDERED,
    formula=r"\left|\psi(d) - \psi(\hat d)\right|,\; \psi(d) = \min\left(\sum_{j \in N} d_j, \sum_{j \in P} d_j\right)",
    text="|min(Σ_N d, Σ_P d) − min(Σ_N p, Σ_P p)|",
    higher_is_better=False,
    compute=_divisiveness_error,
    use="Is it known how much opinions divide? N and P are options, by default the lower and upper half of labels.",
    bound=HALF,
    zeros="a middle label is on neither side",
    options=MappingProxyType({"negative": None, "positive": None}),
    check=_check_sides,
)
