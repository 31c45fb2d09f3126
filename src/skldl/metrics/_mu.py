"""`mu`: how far divergences are below that of the uniform distribution, averaged over all thresholds."""

from typing import Any

from skldl.metrics._measure import checked_pair, compute_rows, mean
from skldl.metrics._shannon_combinations import kullback_leibler
from skldl.metrics._skill import without_rounding
from skldl.utils.arrays import namespace
from skldl.utils.validation import check_weights


def mu(D_true: Any, D_pred: Any, sample_weight: Any = None) -> float:
    r"""Compute μ, the share of rows below a threshold of the divergence, averaged over thresholds.

    With :math:`\delta_i` the Kullback-Leibler divergence of row i and :math:`\delta_0` the mean divergence of the
    uniform distribution,

    .. math:: \mu = \frac{1}{\delta_0} \int_0^{\delta_0} \overline{[\delta_i \leq \delta]}\, d\delta
        = 1 - \overline{\min(\delta_i, \delta_0)} / \delta_0.

    It is 1 for a perfect prediction. The uniform distribution itself is above 0 unless all its divergences are equal,
    and a row that is missed completely counts no more than one that is as bad as uniform on average.

    Parameters
    ----------
    D_true, D_pred : array-like or DataFrame of shape (n_samples, n_labels)
        True and predicted distributions.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.

    Returns
    -------
    float
        Between 0 and 1; higher is better. If all true rows are uniform, 1 where the prediction is perfect, else 0.

    Examples
    --------
    >>> from skldl.metrics import mu
    >>> mu([[0.9, 0.1], [0.2, 0.8]], [[0.8, 0.2], [0.3, 0.7]]).__round__(3)
    0.889
    """
    true, pred = checked_pair(D_true, D_pred)
    weight = check_weights(sample_weight, true.shape[0], true)
    xp = namespace(true)
    uniform = xp.full_like(true, 1.0 / true.shape[1])
    divergences, of_uniform = (
        compute_rows(true, P, [kullback_leibler])[kullback_leibler.name] for P in (pred, uniform)
    )
    reference, own = (float(without_rounding(mean(values, weight))) for values in (of_uniform, divergences))
    if reference == 0:
        return float(own == 0)
    return 1.0 - mean(xp.where(divergences < reference, divergences, reference), weight) / reference
