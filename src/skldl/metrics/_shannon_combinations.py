"""Measures 37 to 45 of Cha (2007), the Shannon's entropy family and the combinations, and the reversed divergence."""

import numpy as np

from skldl.metrics._bounds import LN_TWO, THREE_HALVES, TWICE_LN_TWO
from skldl.metrics._measure import Measure
from skldl.metrics._pair import Pair, divide, sum_over_labels
from skldl.utils.arrays import at_least
from skldl.utils.typing import FloatArray

SHANNON = "Shannon's entropy"
COMBINATIONS = "combinations"


def _jeffreys(pair: Pair) -> FloatArray:
    ratio = divide(pair.floored_p, pair.floored_q)
    if pair.xp is not np:
        xp = pair.xp
        apart = xp.log(pair.floored_p) - xp.log(pair.floored_q)
        log_ratio = xp.where(xp.isinf(ratio), apart, xp.log(ratio))
        return sum_over_labels(xp.where(pair.difference == 0, 0.0, pair.difference * xp.abs(log_ratio)))
    if np.isinf(ratio).any():  # only for eps = 0: the quotient may overflow although its logarithm does not
        log_ratio = np.log(pair.floored_p) - np.log(pair.floored_q)
    else:
        log_ratio = np.log(ratio)
    terms = pair.difference * np.abs(log_ratio)  # p − q and ln(p/q) have one sign
    terms[pair.difference == 0] = 0.0
    return np.asarray(terms.sum(axis=0))


def _taneja(pair: Pair) -> FloatArray:
    middle = pair.total / 2.0
    terms = middle * pair.xp.log(divide(middle, pair.floored_geometric_mean))
    return at_least(sum_over_labels(pair.xp.where(middle == 0, 0.0, terms)), 0.0)


def _kumar_johnson(pair: Pair) -> FloatArray:
    product = pair.floored_geometric_mean
    slope = divide(pair.difference, product) * pair.total
    terms = divide(slope * slope, 2.0 * product)
    return sum_over_labels(pair.xp.where(pair.difference == 0, 0.0, terms))


kullback_leibler = Measure(
    name="kullback_leibler",
    title="Kullback-Leibler",
    family=SHANNON,
    formula=r"\sum_j d_j \ln \frac{d_j}{\hat d_j}",
    text="Σ d ln(d/p)",
    higher_is_better=False,
    compute=lambda pair: pair.relative_entropy,
    use="One of the six: what maximum likelihood minimises; punishes a label that is missed, by ln(1/eps) at most.",
    zeros="0 ln 0 is 0; the prediction is floored at eps",
    uses_eps=True,
)

jeffreys = Measure(
    name="jeffreys",
    title="Jeffreys",
    family=SHANNON,
    formula=r"\sum_j (d_j - \hat d_j) \ln \frac{d_j}{\hat d_j}",
    text="Σ (d−p) ln(d/p)",
    higher_is_better=False,
    compute=_jeffreys,
    use="Kullback-Leibler in both directions: missed and spurious labels count equally.",
    zeros="both degrees in the logarithm are floored at eps",
    uses_eps=True,
)

k_divergence = Measure(
    name="k_divergence",
    title="K divergence",
    family=SHANNON,
    formula=r"\sum_j d_j \ln \frac{2 d_j}{d_j + \hat d_j}",
    text="Σ d ln(2d/(d+p))",
    higher_is_better=False,
    compute=lambda pair: pair.k_divergence,
    use="Kullback-Leibler against the midpoint: one-sided like it, yet bounded without any floor.",
    bound=LN_TWO,
    zeros="0 ln 0 is 0",
)

topsoe = Measure(
    name="topsoe",
    title="Topsøe",
    family=SHANNON,
    formula=r"\sum_j \left(d_j \ln \frac{2 d_j}{d_j + \hat d_j}"
    r" + \hat d_j \ln \frac{2 \hat d_j}{d_j + \hat d_j}\right)",
    text="Σ d ln(2d/(d+p)) + p ln(2p/(d+p))",
    higher_is_better=False,
    compute=lambda pair: pair.topsoe,
    use="Twice Jensen-Shannon.",
    bound=TWICE_LN_TWO,
    zeros="0 ln 0 is 0; never below 0",
)

jensen_shannon = Measure(
    name="jensen_shannon",
    title="Jensen-Shannon",
    family=SHANNON,
    formula=r"\frac{1}{2} \sum_j \left(d_j \ln \frac{2 d_j}{d_j + \hat d_j}"
    r" + \hat d_j \ln \frac{2 \hat d_j}{d_j + \hat d_j}\right)",
    text="½ Σ d ln(2d/(d+p)) + p ln(2p/(d+p))",
    higher_is_better=False,
    compute=lambda pair: pair.topsoe / 2.0,
    use="Symmetric and bounded: the entropy measure to take when predictions hold zeros.",
    bound=LN_TWO,
    zeros="0 ln 0 is 0; never below 0",
)

jensen_difference = Measure(
    name="jensen_difference",
    title="Jensen difference",
    family=SHANNON,
    formula=r"\sum_j \left(\frac{d_j \ln d_j + \hat d_j \ln \hat d_j}{2}"
    r" - \frac{d_j + \hat d_j}{2} \ln \frac{d_j + \hat d_j}{2}\right)",
    text="Σ (d ln d + p ln p)/2 − (d+p)/2 ln((d+p)/2)",
    higher_is_better=False,
    compute=lambda pair: pair.topsoe / 2.0,
    use="The same as Jensen-Shannon, written with entropies (and computed as it, which keeps more digits).",
    bound=LN_TWO,
    zeros="0 ln 0 is 0; never below 0",
)

taneja = Measure(
    name="taneja",
    title="Taneja",
    family=COMBINATIONS,
    formula=r"\sum_j \frac{d_j + \hat d_j}{2} \ln \frac{d_j + \hat d_j}{2 \sqrt{d_j \hat d_j}}",
    text="Σ (d+p)/2 ln((d+p)/(2√(dp)))",
    higher_is_better=False,
    compute=_taneja,
    use="Arithmetic against geometric mean; unbounded where either degree is 0.",
    zeros="0/0 is 0; both degrees under the root are floored at eps; never below 0",
    uses_eps=True,
)

kumar_johnson = Measure(
    name="kumar_johnson",
    title="Kumar-Johnson",
    family=COMBINATIONS,
    formula=r"\sum_j \frac{(d_j^2 - \hat d_j^2)^2}{2 (d_j \hat d_j)^{3/2}}",
    text="Σ (d²−p²)²/(2(dp)^1.5)",
    higher_is_better=False,
    compute=_kumar_johnson,
    use="Explodes faster than any other near 0: for completeness.",
    zeros="0/0 is 0; both degrees in the denominator are floored at eps",
    uses_eps=True,
)

average_l1_linf = Measure(
    name="average_l1_linf",
    title="Average of L1 and L∞",
    family=COMBINATIONS,
    formula=r"\frac{1}{2} \left(\sum_j |d_j - \hat d_j| + \max_j |d_j - \hat d_j|\right)",
    text="½ (Σ|d−p| + max|d−p|)",
    higher_is_better=False,
    compute=lambda pair: (pair.sum_difference + pair.max_difference) / 2.0,
    use="City block and Chebyshev in one figure.",
    bound=THREE_HALVES,
)

reversed_kullback_leibler = Measure(
    name="reversed_kullback_leibler",
    title="Reversed Kullback-Leibler",
    family=SHANNON,
    formula=r"\sum_j \hat d_j \ln \frac{\hat d_j}{d_j}",
    text="Σ p ln(p/d)",
    higher_is_better=False,
    compute=lambda pair: pair.reversed_relative_entropy,
    use="Not in Cha: punishes labels that are invented; some label-enhancement tables print it as Kullback-Leibler.",
    zeros="0 ln 0 is 0; the truth is floored at eps",
    uses_eps=True,
)
