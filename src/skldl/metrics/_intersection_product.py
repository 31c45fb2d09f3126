"""Measures 11 to 23 of Cha (2007): the intersection family and the inner product family."""

from skldl.metrics._bounds import HALF, LABELS, ONE
from skldl.metrics._measure import Measure
from skldl.metrics._pair import column_dot, divide, sum_over_labels

INTERSECTION = "intersection"
INNER_PRODUCT = "inner product"

intersection = Measure(
    name="intersection",
    title="Intersection",
    family=INTERSECTION,
    formula=r"\sum_j \min(d_j, \hat d_j)",
    text="Σ min(d,p)",
    higher_is_better=True,
    compute=lambda pair: pair.sum_smaller,
    use="One of the six: the share of mass on the right labels.",
    bound=ONE,
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
    bound=LABELS,
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
    bound=ONE,
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
    bound=HALF,
)

kulczynski_s = Measure(
    name="kulczynski_s",
    title="Kulczynski s",
    family=INTERSECTION,
    formula=r"\frac{\sum_j \min(d_j, \hat d_j)}{\sum_j |d_j - \hat d_j|}",
    text="Σmin(d,p) / Σ|d−p|",
    higher_is_better=True,
    compute=lambda pair: pair.sum_smaller / pair.floored(pair.sum_difference),
    use="One over Kulczynski d; explodes for a perfect prediction, so its mean is ruled by the best rows.",
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
    bound=ONE,
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
    bound=ONE,
)

inner_product = Measure(
    name="inner_product",
    title="Inner product",
    family=INNER_PRODUCT,
    formula=r"\sum_j d_j \hat d_j",
    text="Σ dp",
    higher_is_better=True,
    compute=lambda pair: pair.sum_product,
    use="Probability that a label drawn from each agree; all mass on the top label beats the truth: not for tuning.",
    bound=ONE,
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
    bound=ONE,
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
    bound=ONE,
)

kumar_hassebrook = Measure(
    name="kumar_hassebrook",
    title="Kumar-Hassebrook",
    family=INNER_PRODUCT,
    formula=r"\frac{\sum_j d_j \hat d_j}{\sum_j d_j^2 + \sum_j \hat d_j^2 - \sum_j d_j \hat d_j}",
    text="Σdp / (Σd²+Σp²−Σdp)",
    higher_is_better=True,
    compute=lambda pair: pair.sum_product / (pair.sum_p_squared + pair.sum_q_squared - pair.sum_product),
    use="Like cosine, and it also punishes a wrong length: a too flat or too sharp prediction.",
    bound=ONE,
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
    bound=ONE,
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
    bound=ONE,
)
