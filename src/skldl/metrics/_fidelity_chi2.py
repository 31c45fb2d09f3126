"""Measures 24 to 36 of Cha (2007): the fidelity or squared chord family and the squared L2 or χ² family."""

from skldl.metrics._bounds import FOUR, ONE, ROOT_LABELS, ROOT_TWO, TWICE_LABELS, TWO
from skldl.metrics._measure import Measure
from skldl.utils.arrays import at_least

FIDELITY = "fidelity or squared chord"
CHI2 = "squared L2 or χ²"

fidelity = Measure(
    name="fidelity",
    title="Fidelity",
    family=FIDELITY,
    formula=r"\sum_j \sqrt{d_j \hat d_j}",
    text="Σ √(dp)",
    higher_is_better=True,
    compute=lambda pair: pair.fidelity,
    use="Overlap of the square roots, also called the Bhattacharyya coefficient; kind to small degrees.",
    bound=ONE,
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
    use="A bounded metric that zeros do not upset; in Cha's scaling twice the usual textbook one.",
    bound=TWO,
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
    bound=ROOT_TWO,
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
    bound=TWO,
)

squared_euclidean = Measure(
    name="squared_euclidean",
    title="Squared Euclidean",
    family=CHI2,
    formula=r"\sum_j (d_j - \hat d_j)^2",
    text="Σ (d−p)²",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference_squared,
    use="The Brier score for soft labels: proper and bounded.",
    bound=TWO,
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
    bound=TWO,
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
    bound=FOUR,
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
    bound=TWICE_LABELS,
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
    use="One of the six: relative errors, the large ones more; ruled by labels with degrees near 0.",
    bound=ROOT_LABELS,
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
