"""Measures between distributions: each is an object with name, family, formula, range and direction.

`PAPER_MEASURES` are the six of Geng (2016), `CHA_MEASURES` the 45 in the eight families of Cha (2007),
`VICISSITUDE_MEASURES` the six that Cha lists outside the families; `MEASURES` holds all of them and the later ones, by
name. `SCORERS` turns them into scikit-learn scorers with the right sign. How the six were chosen among the others can
be run again with `skldl.metrics.selection`.
"""

from collections.abc import Iterable
from typing import Any

from sklearn.metrics import make_scorer as _make_scorer

from skldl.metrics import _evaluate
from skldl.metrics._bounds import Bound
from skldl.metrics._decisions import (
    argmax_accuracy,
    divisiveness_error,
    error_probability,
    kendall,
    match_rate,
    spearman,
    top_k,
    zero_one_loss,
)
from skldl.metrics._evaluate import Score
from skldl.metrics._fidelity_chi2 import (
    additive_symmetric_chi2,
    bhattacharyya,
    clark,
    divergence,
    fidelity,
    hellinger,
    matusita,
    neyman_chi2,
    pearson_chi2,
    probabilistic_symmetric_chi2,
    squared_chi2,
    squared_chord,
    squared_euclidean,
)
from skldl.metrics._intersection_product import (
    cosine,
    czekanowski,
    dice,
    harmonic_mean,
    inner_product,
    intersection,
    jaccard,
    kulczynski_s,
    kumar_hassebrook,
    motyka,
    ruzicka,
    tanimoto,
    wave_hedges,
)
from skldl.metrics._measure import Measure
from skldl.metrics._minkowski_l1 import (
    canberra,
    chebyshev,
    city_block,
    euclidean,
    gower,
    kulczynski_d,
    lorentzian,
    minkowski,
    soergel,
    sorensen,
)
from skldl.metrics._mu import mu
from skldl.metrics._ordered import cumulative_jensen_shannon, earth_mover, error_of_mean
from skldl.metrics._shannon_combinations import (
    average_l1_linf,
    jeffreys,
    jensen_difference,
    jensen_shannon,
    k_divergence,
    kullback_leibler,
    kumar_johnson,
    reversed_kullback_leibler,
    taneja,
    topsoe,
)
from skldl.metrics._skill import Skill, skill_of_losses, skill_ratio
from skldl.metrics._vicissitude import (
    max_symmetric_chi2,
    min_symmetric_chi2,
    vicis_symmetric_chi2_1,
    vicis_symmetric_chi2_2,
    vicis_symmetric_chi2_3,
    vicis_wave_hedges,
)


def _by_name(*measures: Measure) -> dict[str, Measure]:
    return {measure.name: measure for measure in measures}


PAPER_MEASURES: dict[str, Measure] = _by_name(chebyshev, clark, canberra, kullback_leibler, cosine, intersection)
# fmt: off
CHA_MEASURES: dict[str, Measure] = _by_name(
    euclidean, city_block, minkowski, chebyshev,
    sorensen, gower, soergel, kulczynski_d, canberra, lorentzian,
    intersection, wave_hedges, czekanowski, motyka, kulczynski_s, ruzicka, tanimoto,
    inner_product, harmonic_mean, cosine, kumar_hassebrook, jaccard, dice,
    fidelity, bhattacharyya, hellinger, matusita, squared_chord,
    squared_euclidean, pearson_chi2, neyman_chi2, squared_chi2, probabilistic_symmetric_chi2, divergence, clark,
    additive_symmetric_chi2,
    kullback_leibler, jeffreys, k_divergence, topsoe, jensen_shannon, jensen_difference,
    taneja, kumar_johnson, average_l1_linf,
)
VICISSITUDE_MEASURES: dict[str, Measure] = _by_name(
    vicis_wave_hedges, vicis_symmetric_chi2_1, vicis_symmetric_chi2_2, vicis_symmetric_chi2_3, max_symmetric_chi2,
    min_symmetric_chi2,
)
LATER_MEASURES: dict[str, Measure] = _by_name(
    reversed_kullback_leibler, earth_mover, cumulative_jensen_shannon, error_of_mean, argmax_accuracy,
    error_probability, top_k, spearman, kendall, zero_one_loss, match_rate, divisiveness_error,
)
# fmt: on
MEASURES: dict[str, Measure] = {**CHA_MEASURES, **VICISSITUDE_MEASURES, **LATER_MEASURES}
SCORERS = {
    name: _make_scorer(measure, greater_is_better=measure.higher_is_better) for name, measure in MEASURES.items()
}

__all__ = [
    "CHA_MEASURES",
    "LATER_MEASURES",
    "MEASURES",
    "PAPER_MEASURES",
    "SCORERS",
    "VICISSITUDE_MEASURES",
    "Bound",
    "Measure",
    "Score",
    "Skill",
    "additive_symmetric_chi2",
    "argmax_accuracy",
    "average_l1_linf",
    "bhattacharyya",
    "canberra",
    "chebyshev",
    "city_block",
    "clark",
    "cosine",
    "cumulative_jensen_shannon",
    "czekanowski",
    "dice",
    "divergence",
    "divisiveness_error",
    "earth_mover",
    "error_of_mean",
    "error_probability",
    "euclidean",
    "evaluate",
    "fidelity",
    "gower",
    "harmonic_mean",
    "hellinger",
    "inner_product",
    "intersection",
    "jaccard",
    "jeffreys",
    "jensen_difference",
    "jensen_shannon",
    "k_divergence",
    "kendall",
    "kulczynski_d",
    "kulczynski_s",
    "kullback_leibler",
    "kumar_hassebrook",
    "kumar_johnson",
    "lorentzian",
    "match_rate",
    "matusita",
    "max_symmetric_chi2",
    "min_symmetric_chi2",
    "minkowski",
    "motyka",
    "mu",
    "neyman_chi2",
    "pearson_chi2",
    "probabilistic_symmetric_chi2",
    "reversed_kullback_leibler",
    "ruzicka",
    "skill",
    "skill_of_losses",
    "skill_ratio",
    "soergel",
    "sorensen",
    "spearman",
    "squared_chi2",
    "squared_chord",
    "squared_euclidean",
    "taneja",
    "tanimoto",
    "top_k",
    "topsoe",
    "vicis_symmetric_chi2_1",
    "vicis_symmetric_chi2_2",
    "vicis_symmetric_chi2_3",
    "vicis_wave_hedges",
    "wave_hedges",
    "zero_one_loss",
]


def evaluate(
    D_true: Any,
    D_pred: Any,
    sample_weight: Any = None,
    *,
    measures: Iterable[str | Measure] = tuple(PAPER_MEASURES),
    counts: Any = None,
) -> dict[str, float]:
    """Compute several measures, each as mean over rows, in one pass over the arrays.

    Parameters
    ----------
    D_true, D_pred : array-like or DataFrame of shape (n_samples, n_labels)
        True and predicted distributions.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.
    measures : iterable of str or Measure, default: the six of the paper
        Which measures to compute.
    counts : array-like or DataFrame of shape (n_samples, n_labels), default=None
        Number of votes for each label, if ``D_true`` holds their shares. Each mean then carries its noise floor.

    Returns
    -------
    dict
        From the name of each measure to its mean; with counts a `Score`, a float with the attributes ``floor`` (what
        the true distributions would score, see `skldl.uncertainty.noise_floor`) and ``floor_error``.

    Examples
    --------
    >>> from skldl.metrics import evaluate
    >>> values = evaluate([[0.5, 0.5]], [[0.25, 0.75]])
    >>> {name: round(value, 4) for name, value in values.items()}
    {'chebyshev': 0.25, 'clark': 0.3887, 'canberra': 0.5333, 'kullback_leibler': 0.1438, 'cosine': 0.8944,
     'intersection': 0.75}

    With twenty votes a row, a divergence of 0.055 is nearly the best that any model can reach:

    >>> import numpy as np
    >>> truth = np.tile([0.2, 0.3, 0.5], (500, 1))
    >>> counts = np.random.default_rng(0).multinomial(20, truth)
    >>> evaluate(counts / 20, truth, measures=["kullback_leibler"], counts=counts)
    {'kullback_leibler': Score(0.0517, noise floor 0.0523 ± 0.0001)}
    """
    chosen = _evaluate.resolve(measures, MEASURES)
    values = _evaluate.evaluate(D_true, D_pred, sample_weight, chosen)
    if counts is None:
        return values
    floors = _floors(D_true, counts, chosen, sample_weight)
    return {
        name: Score(value, floors[name].value, floors[name].standard_error)
        if name in floors
        else Score(value, float("nan"), float("nan"))
        for name, value in values.items()
    }


def skill(
    D_true: Any,
    D_pred: Any,
    D_reference: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    confidence: float = 0.95,
    counts: Any = None,
) -> Skill:
    """Share of the Kullback-Leibler divergence of the reference that the prediction removes.

    ``1 - KL(true, predicted) / KL(true, reference)``: 1 is perfect, 0 is no better than the reference, and below 0 the
    reference (usually the mean of the training distributions) would have been the better prediction. A reference
    without any loss leaves nothing to gain: then the skill is 0 if the prediction has no loss either, else −∞.

    Parameters
    ----------
    D_true, D_pred : array-like or DataFrame of shape (n_samples, n_labels)
        True and predicted distributions, at least two rows.
    D_reference : array-like or DataFrame of shape (n_samples, n_labels) or (1, n_labels)
        Predictions of the reference; one row is used for all.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, where rows of one group depend on each other; at least two groups.
    confidence : float, default=0.95
        Confidence of the interval.
    counts : array-like or DataFrame of shape (n_samples, n_labels), default=None
        Number of votes for each label, if ``D_true`` holds their shares.

    Returns
    -------
    Skill
        A float with the attributes ``low``, ``high`` and ``confidence``. With counts ``floor`` is the noise floor of
        the divergence and ``explained`` the share of the explainable divergence, between the reference and the floor,
        that the prediction removes; else both are NaN.

    See Also
    --------
    skill_of_losses : The same from losses of rows by any measure; its notes describe when the interval is valid.

    Notes
    -----
    The interval comes from the logarithm of the ratio of the two divergences. It is conditional on the fitted model and
    the reference: it bounds how far the skill of these predictions may be from their skill on many more rows.

    Examples
    --------
    >>> from skldl.metrics import skill
    >>> D = [[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]
    >>> skill(D, [[0.45, 0.55], [0.8, 0.2], [0.3, 0.7]], [[0.53, 0.47]])
    Skill(0.8783, 95% interval 0.8072 to 0.9232)
    """
    floor = None
    if counts is not None:
        floor = _floors(D_true, counts, [kullback_leibler], sample_weight, groups)[kullback_leibler.name]
    return _evaluate.skill(
        D_true,
        D_pred,
        D_reference,
        sample_weight,
        groups=groups,
        divergence=kullback_leibler,
        confidence=confidence,
        floor=None if floor is None else floor.value,
    )


def _floors(D_true: Any, counts: Any, measures: Any, sample_weight: Any, groups: Any = None) -> dict[str, Any]:
    from skldl.metrics._noise_floor import floors_of_rows  # it simulates with the measures above

    return floors_of_rows(D_true, counts, measures, sample_weight, groups)
