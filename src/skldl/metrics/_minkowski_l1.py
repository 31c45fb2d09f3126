"""Measures 1 to 10 of Cha (2007): the Lp Minkowski family and the L1 family."""

from types import MappingProxyType
from typing import Any

import numpy as np

from skldl.metrics._bounds import LABELS, ONE, ROOT_TWO, TWO, TWO_PER_LABEL, Bound
from skldl.metrics._measure import Measure
from skldl.metrics._pair import Pair, sum_over_labels
from skldl.utils.typing import FloatArray

MINKOWSKI = "Lp Minkowski"
L1 = "L1"


def _check_power(power: Any) -> dict[str, Any]:
    if not 1 <= power < np.inf:
        raise ValueError(f"power={power!r} must be a finite number of at least 1; for infinity use chebyshev.")
    return {"power": power}


def _minkowski(pair: Pair, power: float) -> FloatArray:
    greatest = pair.max_difference
    scale = pair.xp.where(greatest > 0, greatest, 1.0)  # powers of small differences would vanish
    return scale * sum_over_labels((pair.difference / scale) ** float(power)) ** (1.0 / float(power))


euclidean = Measure(
    name="euclidean",
    title="Euclidean",
    family=MINKOWSKI,
    formula=r"\sqrt{\sum_j (d_j - \hat d_j)^2}",
    text="√Σ(d−p)²",
    higher_is_better=False,
    compute=lambda pair: pair.xp.sqrt(pair.sum_difference_squared),
    use="Errors of all labels count by their size, large ones more; the length that everybody knows.",
    bound=ROOT_TWO,
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
    bound=TWO,
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
    options=MappingProxyType({"power": 3}),
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
    bound=ONE,
)

sorensen = Measure(
    name="sorensen",
    title="Sørensen",
    family=L1,
    formula=r"\frac{\sum_j |d_j - \hat d_j|}{\sum_j (d_j + \hat d_j)}",
    text="Σ|d−p| / Σ(d+p)",
    higher_is_better=False,
    compute=lambda pair: pair.sum_difference / pair.sum_total,
    use="On distributions half the city block distance; ecologists know it as Bray-Curtis.",
    bound=ONE,
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
    bound=TWO_PER_LABEL,
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
    bound=ONE,
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
    bound=LABELS,
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
    bound=Bound("c ln(1+2/c)", lambda n_labels: n_labels * np.log1p(2.0 / n_labels)),
)
