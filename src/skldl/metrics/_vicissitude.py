"""The vicissitude group of Cha (2007): six variations outside the eight families."""

from skldl.metrics._bounds import TWO
from skldl.metrics._measure import Measure
from skldl.metrics._pair import column_dot, sum_over_labels

VICISSITUDE = "vicissitude"

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
    bound=TWO,
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
