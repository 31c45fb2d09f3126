"""The 45 measures that Cha (2007) collected in eight families, and the six variations outside the families.

Each is a `Measure` whose arithmetic is a function of a `Pair`, a block of true and predicted rows. Measures are listed
in the order of Cha's tables. Where a formula has two equal forms, the one that keeps more digits is computed.

References
----------
.. [1] S.-H. Cha, "Comprehensive survey on distance/similarity measures between probability density functions",
   International Journal of Mathematical Models and Methods in Applied Sciences 1(4), 2007.
"""

import math
from typing import Any

from skldl.metrics._measure import Bound, Measure
from skldl.metrics._pair import Pair, column_dot, divide, log_ratio, sum_over_labels
from skldl.utils.arrays import at_least
from skldl.utils.parameters import check_value, number
from skldl.utils.typing import FloatArray

MINKOWSKI, L1 = "Lp Minkowski", "L1"
INTERSECTION, INNER_PRODUCT = "intersection", "inner product"
FIDELITY, CHI2 = "fidelity or squared chord", "squared L2 or χ²"
SHANNON, COMBINATIONS = "Shannon's entropy", "combinations"
VICISSITUDE = "vicissitude"
"""Families; the last is Cha's name for six variations outside the eight."""


def _check_power(power: Any) -> dict[str, Any]:
    check_value("power", power, number(at_least=1, hint="for infinity use chebyshev"))
    return {"power": power}


def _minkowski(pair: Pair, power: float) -> FloatArray:
    largest = pair.max_difference
    scale = pair.xp.where(largest > 0, largest, 1.0)  # powers of small differences would underflow
    return scale * sum_over_labels((pair.difference / scale) ** float(power)) ** (1.0 / float(power))


def _jeffreys(pair: Pair) -> FloatArray:
    logarithm = log_ratio(pair.floored_p, pair.floored_q, bounded=pair.bounded)
    terms = pair.difference * pair.xp.abs(logarithm)  # p − q and ln(p/q) have one sign
    return sum_over_labels(pair.xp.where(pair.difference == 0, 0.0, terms))  # also where both are 0


def _taneja(pair: Pair) -> FloatArray:
    middle = pair.total / 2.0
    terms = middle * pair.xp.log(divide(middle, pair.floored_geometric_mean))
    # negative only by rounding: the arithmetic mean is at least the geometric one
    return at_least(sum_over_labels(pair.xp.where(middle == 0, 0.0, terms)), 0.0)


def _kumar_johnson(pair: Pair) -> FloatArray:
    # (d² − p²)² / 2(dp)^1.5 with g = √(dp): ((d − p)(d + p) / g)² / 2g; the power 1.5 of tiny degrees would underflow
    root = pair.floored_geometric_mean
    slope = divide(pair.difference, root) * pair.total
    terms = divide(slope * slope, 2.0 * root)
    return sum_over_labels(pair.xp.where(pair.difference == 0, 0.0, terms))


# -- The Lp Minkowski family

euclidean = Measure(
    name="euclidean",
    title="Euclidean",
    family=MINKOWSKI,
    formula=r"\sqrt{\sum_j (d_j - \hat d_j)^2}",
    text="√Σ(d−p)²",
    higher_is_better=False,
    compute=lambda pair: pair.xp.sqrt(pair.sum_difference_squared),
    use="The ordinary length of the vector of errors: large errors count more than small ones.",
    bound=Bound("√2", math.sqrt(2.0)),
)

city_block = Measure(
    name="city_block",
    title="City block",
    family=MINKOWSKI,
    formula=r"\sum_j |d_j - \hat d_j|",
    text="Σ|d−p|",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference,
    use="Twice the mass on the wrong labels; easy to explain.",
    bound=Bound("2", 2.0),
)

minkowski = Measure(
    name="minkowski",
    title="Minkowski",
    family=MINKOWSKI,
    formula=r"\left(\sum_j |d_j - \hat d_j|^r\right)^{1/r}",
    text="(Σ|d−p|^r)^(1/r)",
    higher_is_better=False,
    compute=_minkowski,
    use="Between city block (power 1) and Chebyshev (power → ∞); the power is an option, 3 by default.",
    bound=Bound("2^(1/r)", lambda n_labels, power: 2.0 ** (1.0 / power)),
    options={"power": 3},
    check=_check_power,
)

chebyshev = Measure(
    name="chebyshev",
    title="Chebyshev",
    family=MINKOWSKI,
    formula=r"\max_j |d_j - \hat d_j|",
    text="max|d−p|",
    higher_is_better=False,
    compute=lambda pair: pair.max_difference,
    use="One of the six: the worst error on any single label.",
    bound=Bound("1", 1.0),
)

# -- The L1 family

sorensen = Measure(
    name="sorensen",
    title="Sørensen",
    family=L1,
    formula=r"\frac{\sum_j |d_j - \hat d_j|}{\sum_j (d_j + \hat d_j)}",
    text="Σ|d−p| / Σ(d+p)",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference / pair.sum_total,
    use="On distributions half the city block distance; ecologists know it as Bray-Curtis.",
    bound=Bound("1", 1.0),
)

gower = Measure(
    name="gower",
    title="Gower",
    family=L1,
    formula=r"\frac{1}{c} \sum_j |d_j - \hat d_j|",
    text="Σ|d−p| / c",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference / pair.p.shape[0],
    use="The mean absolute error per label; it shrinks as labels are added.",
    bound=Bound("2/c", lambda n_labels: 2.0 / n_labels),
)

soergel = Measure(
    name="soergel",
    title="Soergel",
    family=L1,
    formula=r"\frac{\sum_j |d_j - \hat d_j|}{\sum_j \max(d_j, \hat d_j)}",
    text="Σ|d−p| / Σmax(d,p)",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference / pair.sum_larger,
    use="City block distance on a scale from 0 to 1 that rises faster for small errors.",
    bound=Bound("1", 1.0),
)

kulczynski_d = Measure(
    name="kulczynski_d",
    title="Kulczynski d",
    family=L1,
    formula=r"\frac{\sum_j |d_j - \hat d_j|}{\sum_j \min(d_j, \hat d_j)}",
    text="Σ|d−p| / Σmin(d,p)",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference / pair.floored(pair.sum_smaller),
    use="City block distance in units of the mass in common; explodes where nothing is in common.",
    zeros="the denominator is floored at eps",
    uses_eps=True,
)

canberra = Measure(
    name="canberra",
    title="Canberra",
    family=L1,
    formula=r"\sum_j \frac{|d_j - \hat d_j|}{d_j + \hat d_j}",
    text="Σ |d−p|/(d+p)",
    higher_is_better=False,
    compute=lambda pair: sum_over_labels(pair.relative),
    use="One of the six: relative errors, so that small degrees count as much as large ones; grows with c.",
    bound=Bound("c", float),
    zeros="0/0 is 0; a degree of 0 predicted as anything else counts 1",
)

lorentzian = Measure(
    name="lorentzian",
    title="Lorentzian",
    family=L1,
    formula=r"\sum_j \ln(1 + |d_j - \hat d_j|)",
    text="Σ ln(1+|d−p|)",
    higher_is_better=False,
    compute=lambda pair: sum_over_labels(pair.xp.log1p(pair.difference)),
    use="City block distance that damps large errors on single labels.",
    bound=Bound("c ln(1+2/c)", lambda n_labels: n_labels * math.log1p(2.0 / n_labels)),
)

# -- The intersection family

intersection = Measure(
    name="intersection",
    title="Intersection",
    family=INTERSECTION,
    formula=r"\sum_j \min(d_j, \hat d_j)",
    text="Σ min(d,p)",
    higher_is_better=True,
    compute=lambda pair: pair.sum_smaller,
    use="One of the six: the fraction of mass on the right labels.",
    bound=Bound("1", 1.0),
)

wave_hedges = Measure(
    name="wave_hedges",
    title="Wave Hedges",
    family=INTERSECTION,
    formula=r"\sum_j \frac{|d_j - \hat d_j|}{\max(d_j, \hat d_j)}",
    text="Σ |d−p|/max(d,p)",
    higher_is_better=False,
    compute=lambda pair: sum_over_labels(pair.difference_per_larger),
    use="Like Canberra, relative to the larger degree instead of the sum.",
    bound=Bound("c", float),
    zeros="0/0 is 0; a degree of 0 predicted as anything else counts 1",
)

czekanowski = Measure(
    name="czekanowski",
    title="Czekanowski",
    family=INTERSECTION,
    formula=r"\frac{2 \sum_j \min(d_j, \hat d_j)}{\sum_j (d_j + \hat d_j)}",
    text="2 Σmin(d,p) / Σ(d+p)",
    higher_is_better=True,
    compute=lambda pair: 2.0 * pair.sum_smaller / pair.sum_total,
    use="On distributions the same as the intersection, and 1 − Sørensen.",
    bound=Bound("1", 1.0),
)

motyka = Measure(
    name="motyka",
    title="Motyka",
    family=INTERSECTION,
    formula=r"\frac{\sum_j \min(d_j, \hat d_j)}{\sum_j (d_j + \hat d_j)}",
    text="Σmin(d,p) / Σ(d+p)",
    higher_is_better=True,
    compute=lambda pair: pair.sum_smaller / pair.sum_total,
    use="Half of Czekanowski: equal distributions score 1/2.",
    bound=Bound("1/2", 0.5),
)

kulczynski_s = Measure(
    name="kulczynski_s",
    title="Kulczynski s",
    family=INTERSECTION,
    formula=r"\frac{\sum_j \min(d_j, \hat d_j)}{\sum_j |d_j - \hat d_j|}",
    text="Σmin(d,p) / Σ|d−p|",
    higher_is_better=True,
    compute=lambda pair: pair.sum_smaller / pair.floored(pair.sum_difference),
    use="One over Kulczynski d; explodes for a perfect prediction, so that the best rows dominate its mean.",
    zeros="the denominator is floored at eps",
    uses_eps=True,
)

ruzicka = Measure(
    name="ruzicka",
    title="Ruzicka",
    family=INTERSECTION,
    formula=r"\frac{\sum_j \min(d_j, \hat d_j)}{\sum_j \max(d_j, \hat d_j)}",
    text="Σmin(d,p) / Σmax(d,p)",
    higher_is_better=True,
    compute=lambda pair: pair.sum_smaller / pair.sum_larger,
    use="Intersection over union of mass; 1 − Soergel.",
    bound=Bound("1", 1.0),
)

tanimoto = Measure(
    name="tanimoto",
    title="Tanimoto",
    family=INTERSECTION,
    formula=r"\frac{\sum_j d_j + \sum_j \hat d_j - 2 \sum_j \min(d_j, \hat d_j)}"
    r"{\sum_j d_j + \sum_j \hat d_j - \sum_j \min(d_j, \hat d_j)}",
    text="(Σd+Σp−2Σmin(d,p)) / (Σd+Σp−Σmin(d,p))",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference / pair.sum_larger,
    use="The same as Soergel, written with the intersection.",
    bound=Bound("1", 1.0),
)

# -- The inner product family

inner_product = Measure(
    name="inner_product",
    title="Inner product",
    family=INNER_PRODUCT,
    formula=r"\sum_j d_j \hat d_j",
    text="Σ dp",
    higher_is_better=True,
    compute=lambda pair: pair.sum_product,
    use="Probability that labels drawn from the two agree; all mass on the top label beats the truth: not for tuning.",
    bound=Bound("1", 1.0),
)

harmonic_mean = Measure(
    name="harmonic_mean",
    title="Harmonic mean",
    family=INNER_PRODUCT,
    formula=r"2 \sum_j \frac{d_j \hat d_j}{d_j + \hat d_j}",
    text="2 Σ dp/(d+p)",
    higher_is_better=True,
    compute=lambda pair: 2.0 * column_dot(pair.p, divide(pair.q, pair.total)),
    use="On distributions 1 − half the squared χ².",
    bound=Bound("1", 1.0),
    zeros="0/0 is 0",
)

cosine = Measure(
    name="cosine",
    title="Cosine",
    family=INNER_PRODUCT,
    formula=r"\frac{\sum_j d_j \hat d_j}{\sqrt{\sum_j d_j^2} \sqrt{\sum_j \hat d_j^2}}",
    text="Σdp / (√Σd² √Σp²)",
    higher_is_better=True,
    compute=lambda pair: pair.sum_product / pair.xp.sqrt(pair.sum_p_squared * pair.sum_q_squared),
    use="One of the six: the angle between the two, independent of their length; dominated by the large degrees.",
    bound=Bound("1", 1.0),
)

kumar_hassebrook = Measure(
    name="kumar_hassebrook",
    title="Kumar-Hassebrook",
    family=INNER_PRODUCT,
    formula=r"\frac{\sum_j d_j \hat d_j}{\sum_j d_j^2 + \sum_j \hat d_j^2 - \sum_j d_j \hat d_j}",
    text="Σdp / (Σd²+Σp²−Σdp)",
    higher_is_better=True,
    compute=lambda pair: pair.sum_product / (pair.sum_p_squared + pair.sum_q_squared - pair.sum_product),
    use="Like cosine, and it also penalises a wrong length: a too flat or too sharp prediction.",
    bound=Bound("1", 1.0),
)

jaccard = Measure(
    name="jaccard",
    title="Jaccard",
    family=INNER_PRODUCT,
    formula=r"\frac{\sum_j (d_j - \hat d_j)^2}{\sum_j d_j^2 + \sum_j \hat d_j^2 - \sum_j d_j \hat d_j}",
    text="Σ(d−p)² / (Σd²+Σp²−Σdp)",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference_squared / (pair.sum_p_squared + pair.sum_q_squared - pair.sum_product),
    use="1 − Kumar-Hassebrook.",
    bound=Bound("1", 1.0),
)

dice = Measure(
    name="dice",
    title="Dice",
    family=INNER_PRODUCT,
    formula=r"\frac{\sum_j (d_j - \hat d_j)^2}{\sum_j d_j^2 + \sum_j \hat d_j^2}",
    text="Σ(d−p)² / (Σd²+Σp²)",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference_squared / (pair.sum_p_squared + pair.sum_q_squared),
    use="Squared Euclidean distance in units of the squared lengths.",
    bound=Bound("1", 1.0),
)

# -- The fidelity or squared chord family

fidelity = Measure(
    name="fidelity",
    title="Fidelity",
    family=FIDELITY,
    formula=r"\sum_j \sqrt{d_j \hat d_j}",
    text="Σ √(dp)",
    higher_is_better=True,
    compute=lambda pair: pair.fidelity,
    use="Overlap of the square roots, also called the Bhattacharyya coefficient; small degrees have little influence.",
    bound=Bound("1", 1.0),
)

bhattacharyya = Measure(
    name="bhattacharyya",
    title="Bhattacharyya",
    family=FIDELITY,
    formula=r"-\ln \sum_j \sqrt{d_j \hat d_j}",
    text="−ln Σ√(dp)",
    higher_is_better=False,
    compute=lambda pair: at_least(-pair.xp.log(pair.floored(pair.fidelity)), 0.0),
    use="Fidelity as a distance; infinite only where the two share no label at all.",
    zeros="the sum is floored at eps; never below 0",
    uses_eps=True,
)

hellinger = Measure(
    name="hellinger",
    title="Hellinger",
    family=FIDELITY,
    formula=r"\sqrt{2 \sum_j \left(\sqrt{d_j} - \sqrt{\hat d_j}\right)^2}",
    text="√(2 Σ(√d−√p)²)",
    higher_is_better=False,
    compute=lambda pair: pair.xp.sqrt(2.0 * pair.squared_chord),
    use="A bounded metric that needs no floor for zeros; in Cha's scaling twice the usual textbook one.",
    bound=Bound("2", 2.0),
)

matusita = Measure(
    name="matusita",
    title="Matusita",
    family=FIDELITY,
    formula=r"\sqrt{\sum_j \left(\sqrt{d_j} - \sqrt{\hat d_j}\right)^2}",
    text="√Σ(√d−√p)²",
    higher_is_better=False,
    compute=lambda pair: pair.xp.sqrt(pair.squared_chord),
    use="Euclidean distance of the square roots; Hellinger / √2.",
    bound=Bound("√2", math.sqrt(2.0)),
)

squared_chord = Measure(
    name="squared_chord",
    title="Squared chord",
    family=FIDELITY,
    formula=r"\sum_j \left(\sqrt{d_j} - \sqrt{\hat d_j}\right)^2",
    text="Σ (√d−√p)²",
    higher_is_better=False,
    compute=lambda pair: pair.squared_chord,
    use="Matusita squared; on distributions 2 − 2 × fidelity.",
    bound=Bound("2", 2.0),
)

# -- The squared L2 or χ² family

squared_euclidean = Measure(
    name="squared_euclidean",
    title="Squared Euclidean",
    family=CHI2,
    formula=r"\sum_j (d_j - \hat d_j)^2",
    text="Σ (d−p)²",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference_squared,
    use="The Brier score for soft labels: proper and bounded.",
    bound=Bound("2", 2.0),
)

pearson_chi2 = Measure(
    name="pearson_chi2",
    title="Pearson χ²",
    family=CHI2,
    formula=r"\sum_j \frac{(d_j - \hat d_j)^2}{\hat d_j}",
    text="Σ (d−p)²/p",
    higher_is_better=False,
    compute=lambda pair: pair.pearson_chi2,
    use="The classical test statistic against the prediction; explodes where a label is predicted near 0.",
    zeros="the denominator is floored at eps",
    uses_eps=True,
)

neyman_chi2 = Measure(
    name="neyman_chi2",
    title="Neyman χ²",
    family=CHI2,
    formula=r"\sum_j \frac{(d_j - \hat d_j)^2}{d_j}",
    text="Σ (d−p)²/d",
    higher_is_better=False,
    compute=lambda pair: pair.neyman_chi2,
    use="As Pearson's, in units of the true degrees; explodes where a true degree is near 0.",
    zeros="the denominator is floored at eps",
    uses_eps=True,
)

squared_chi2 = Measure(
    name="squared_chi2",
    title="Squared χ²",
    family=CHI2,
    formula=r"\sum_j \frac{(d_j - \hat d_j)^2}{d_j + \hat d_j}",
    text="Σ (d−p)²/(d+p)",
    higher_is_better=False,
    compute=lambda pair: pair.squared_chi2,
    use="The symmetric, bounded χ², also called triangular discrimination.",
    bound=Bound("2", 2.0),
    zeros="0/0 is 0",
)

probabilistic_symmetric_chi2 = Measure(
    name="probabilistic_symmetric_chi2",
    title="Probabilistic symmetric χ²",
    family=CHI2,
    formula=r"2 \sum_j \frac{(d_j - \hat d_j)^2}{d_j + \hat d_j}",
    text="2 Σ (d−p)²/(d+p)",
    higher_is_better=False,
    compute=lambda pair: 2.0 * pair.squared_chi2,
    use="Twice the squared χ².",
    bound=Bound("4", 4.0),
    zeros="0/0 is 0",
)

divergence = Measure(
    name="divergence",
    title="Divergence",
    family=CHI2,
    formula=r"2 \sum_j \frac{(d_j - \hat d_j)^2}{(d_j + \hat d_j)^2}",
    text="2 Σ (d−p)²/(d+p)²",
    higher_is_better=False,
    compute=lambda pair: 2.0 * pair.sum_relative_squared,
    use="Twice Clark squared.",
    bound=Bound("2c", lambda n_labels: 2.0 * n_labels),
    zeros="0/0 is 0; a degree of 0 predicted as anything else counts 2",
)

clark = Measure(
    name="clark",
    title="Clark",
    family=CHI2,
    formula=r"\sqrt{\sum_j \frac{(d_j - \hat d_j)^2}{(d_j + \hat d_j)^2}}",
    text="√Σ (d−p)²/(d+p)²",
    higher_is_better=False,
    compute=lambda pair: pair.xp.sqrt(pair.sum_relative_squared),
    use="One of the six: relative errors, large ones more; dominated by labels with degrees near 0.",
    bound=Bound("√c", math.sqrt),
    zeros="0/0 is 0; a degree of 0 predicted as anything else counts 1",
)

additive_symmetric_chi2 = Measure(
    name="additive_symmetric_chi2",
    title="Additive symmetric χ²",
    family=CHI2,
    formula=r"\sum_j \frac{(d_j - \hat d_j)^2 (d_j + \hat d_j)}{d_j \hat d_j}",
    text="Σ (d−p)²(d+p)/(dp)",
    higher_is_better=False,
    compute=lambda pair: pair.pearson_chi2 + pair.neyman_chi2,
    use="Pearson plus Neyman: explodes where either degree is near 0.",
    zeros="= Pearson + Neyman, each denominator floored at eps",
    uses_eps=True,
)


# -- Shannon's entropy family

kullback_leibler = Measure(
    name="kullback_leibler",
    title="Kullback-Leibler",
    family=SHANNON,
    formula=r"\sum_j d_j \ln \frac{d_j}{\hat d_j}",
    text="Σ d ln(d/p)",
    higher_is_better=False,
    compute=lambda pair: pair.relative_entropy,
    use="One of the six: what maximum likelihood minimises; penalises a missed label, by ln(1/eps) at most.",
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
    bound=Bound("ln 2", math.log(2.0)),
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
    bound=Bound("2 ln 2", 2.0 * math.log(2.0)),
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
    use="Symmetric and bounded: the entropy measure to choose when predictions contain zeros.",
    bound=Bound("ln 2", math.log(2.0)),
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
    use="The same as Jensen-Shannon, written with entropies; computed by its formula, which keeps more digits.",
    bound=Bound("ln 2", math.log(2.0)),
    zeros="0 ln 0 is 0; never below 0",
)

# -- Combinations

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
    use="Explodes faster than any other measure near 0; included for completeness.",
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
    use="The mean of city block and Chebyshev.",
    bound=Bound("3/2", 1.5),
)


# -- Outside the eight families

vicis_wave_hedges = Measure(
    name="vicis_wave_hedges",
    title="Vicis-Wave Hedges",
    family=VICISSITUDE,
    formula=r"\sum_j \frac{|d_j - \hat d_j|}{\min(d_j, \hat d_j)}",
    text="Σ |d−p|/min(d,p)",
    higher_is_better=False,
    compute=lambda pair: sum_over_labels(pair.difference_per_smaller),
    use="Wave Hedges relative to the smaller degree: explodes near 0.",
    zeros="the denominator is floored at eps",
    uses_eps=True,
)

vicis_symmetric_chi2_1 = Measure(
    name="vicis_symmetric_chi2_1",
    title="Vicis-symmetric χ² 1",
    family=VICISSITUDE,
    formula=r"\sum_j \frac{(d_j - \hat d_j)^2}{\min(d_j, \hat d_j)^2}",
    text="Σ (d−p)²/min(d,p)²",
    higher_is_better=False,
    compute=lambda pair: column_dot(pair.difference_per_smaller, pair.difference_per_smaller),
    use="Squares of the terms of Vicis-Wave Hedges: explodes near 0.",
    zeros="the smaller degree is floored at eps",
    uses_eps=True,
)

vicis_symmetric_chi2_2 = Measure(
    name="vicis_symmetric_chi2_2",
    title="Vicis-symmetric χ² 2",
    family=VICISSITUDE,
    formula=r"\sum_j \frac{(d_j - \hat d_j)^2}{\min(d_j, \hat d_j)}",
    text="Σ (d−p)²/min(d,p)",
    higher_is_better=False,
    compute=lambda pair: column_dot(pair.difference, pair.difference_per_smaller),
    use="For each label the greater of Pearson's and Neyman's term: explodes near 0.",
    zeros="the denominator is floored at eps",
    uses_eps=True,
)

vicis_symmetric_chi2_3 = Measure(
    name="vicis_symmetric_chi2_3",
    title="Vicis-symmetric χ² 3",
    family=VICISSITUDE,
    formula=r"\sum_j \frac{(d_j - \hat d_j)^2}{\max(d_j, \hat d_j)}",
    text="Σ (d−p)²/max(d,p)",
    higher_is_better=False,
    compute=lambda pair: column_dot(pair.difference, pair.difference_per_larger),
    use="For each label the lesser of Pearson's and Neyman's term: bounded.",
    bound=Bound("2", 2.0),
    zeros="0/0 is 0",
)

max_symmetric_chi2 = Measure(
    name="max_symmetric_chi2",
    title="Max-symmetric χ²",
    family=VICISSITUDE,
    formula=r"\max\left(\sum_j \frac{(d_j - \hat d_j)^2}{d_j}, \sum_j \frac{(d_j - \hat d_j)^2}{\hat d_j}\right)",
    text="max(Σ (d−p)²/d, Σ (d−p)²/p)",
    higher_is_better=False,
    compute=lambda pair: pair.xp.maximum(pair.pearson_chi2, pair.neyman_chi2),
    use="The greater of Pearson χ² and Neyman χ².",
    zeros="each denominator is floored at eps",
    uses_eps=True,
)

min_symmetric_chi2 = Measure(
    name="min_symmetric_chi2",
    title="Min-symmetric χ²",
    family=VICISSITUDE,
    formula=r"\min\left(\sum_j \frac{(d_j - \hat d_j)^2}{d_j}, \sum_j \frac{(d_j - \hat d_j)^2}{\hat d_j}\right)",
    text="min(Σ (d−p)²/d, Σ (d−p)²/p)",
    higher_is_better=False,
    compute=lambda pair: pair.xp.minimum(pair.pearson_chi2, pair.neyman_chi2),
    use="The lesser of Pearson χ² and Neyman χ²: explodes only where both do.",
    zeros="each denominator is floored at eps",
    uses_eps=True,
)
