"""The six measures of Geng (2016), in the paper's order."""

import numpy as np

from skldl.metrics._measure import Measure

chebyshev = Measure(
    name="chebyshev",
    title="Chebyshev",
    family="Lp Minkowski",
    formula=r"\max_j |d_j - \hat d_j|",
    higher_is_better=False,
    compute=lambda pair: pair.max_difference,
    upper=1.0,
    zeros="nothing to decide",
)

clark = Measure(
    name="clark",
    title="Clark",
    family="squared L2 or χ²",
    formula=r"\sqrt{\sum_j \frac{(d_j - \hat d_j)^2}{(d_j + \hat d_j)^2}}",
    higher_is_better=False,
    compute=lambda pair: np.sqrt(pair.sum_relative_squared),
    upper=np.nan,
    zeros="0/0 is 0",
)

canberra = Measure(
    name="canberra",
    title="Canberra",
    family="L1",
    formula=r"\sum_j \frac{|d_j - \hat d_j|}{d_j + \hat d_j}",
    higher_is_better=False,
    compute=lambda pair: pair.relative.sum(axis=0),
    upper=np.nan,
    zeros="0/0 is 0",
)

kullback_leibler = Measure(
    name="kullback_leibler",
    title="Kullback-Leibler",
    family="Shannon's entropy",
    formula=r"\sum_j d_j \ln \frac{d_j}{\hat d_j}",
    higher_is_better=False,
    compute=lambda pair: pair.relative_entropy,
    zeros="0 ln 0 is 0; the prediction is floored at eps",
    uses_eps=True,
)

cosine = Measure(
    name="cosine",
    title="Cosine",
    family="inner product",
    formula=r"\frac{\sum_j d_j \hat d_j}{\sqrt{\sum_j d_j^2} \sqrt{\sum_j \hat d_j^2}}",
    higher_is_better=True,
    compute=lambda pair: pair.sum_product / np.sqrt(pair.sum_p_squared * pair.sum_q_squared),
    upper=1.0,
    zeros="nothing to decide",
)

intersection = Measure(
    name="intersection",
    title="Intersection",
    family="intersection",
    formula=r"\sum_j \min(d_j, \hat d_j)",
    higher_is_better=True,
    compute=lambda pair: pair.sum_minimum,
    upper=1.0,
    zeros="nothing to decide",
)
