"""Skill, the fraction of the loss of a reference that a prediction removes, with an interval; and the measure `mu`.

With losses m_i of the model and r_i of the reference, and weights w_i,

    skill = 1 − Σ w_i m_i / Σ w_i r_i.

The interval comes from the logarithm of that ratio, whose distribution is much closer to a normal one than that of the
skill itself. To first order its variance is the sum of squares of

    z_i = w_i m_i / Σ w m − w_i r_i / Σ w r,

times n/(n − 1), and the quantile is that of Student's t with n − 1 degrees of freedom. Losses of rows of one group are
added up first, and the groups take the place of the rows.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from skldl.exceptions import DataError, LengthMismatchError
from skldl.metrics._cha import kullback_leibler
from skldl.metrics._measure import (
    checked_pair,
    compute_rows,
    mean,
    summing_to_one,
    weigh,
    without_rounding,
)
from skldl.metrics._noise_floor import floors_of_rows
from skldl.utils.arrays import computing_on, is_device_array, namespace, to_numpy
from skldl.utils.column_names import column_names, order_of_labels
from skldl.utils.parameters import check_value, number
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_distributions, check_weights, group_codes

CONFIDENCE = number(above=0, below=1, hint="0.95 gives an interval of 95 %")


class Skill(float):
    """A skill with its interval: a float with the attributes ``low``, ``high`` and ``confidence``.

    Where the noise floor of the loss is known, ``floor`` is its value, a lower bound, ``floor_smoothed`` its upper end,
    and ``explained`` the fraction of the explainable loss, between the reference and ``floor``, that the prediction
    removes at least; else they are NaN.

    Parameters
    ----------
    value : float
        The skill.
    low, high : float
        Ends of the interval.
    confidence : float
        Confidence of the interval.
    floor, explained, floor_smoothed : float, default=NaN
        Noise floor, fraction of the explainable loss, and upper end of the noise floor.

    Examples
    --------
    >>> from skldl.metrics import Skill
    >>> skill = Skill(0.3, 0.25, 0.35, 0.95)
    >>> skill
    Skill(0.3000, 95% interval 0.2500 to 0.3500)
    >>> skill > 0.2, skill.low
    (True, 0.25)
    """

    low: float
    high: float
    confidence: float
    floor: float
    explained: float
    floor_smoothed: float

    def __new__(
        cls,
        value: float,
        low: float,
        high: float,
        confidence: float,
        floor: float = math.nan,
        explained: float = math.nan,
        floor_smoothed: float = math.nan,
    ) -> "Skill":
        skill = super().__new__(cls, value)
        skill.low, skill.high, skill.confidence = low, high, confidence
        skill.floor, skill.explained, skill.floor_smoothed = floor, explained, floor_smoothed
        return skill

    def __repr__(self) -> str:
        fraction = "nothing to explain" if math.isnan(self.explained) else f"explained at least {self.explained:.1%}"
        end = "" if math.isnan(self.floor_smoothed) else f" to {self.floor_smoothed:.4f}"
        known = "" if math.isnan(self.floor) else f", noise floor {self.floor:.4f}{end}, {fraction}"
        return f"Skill({float(self):.4f}, {self.confidence:.0%} interval {self.low:.4f} to {self.high:.4f}{known})"

    def __getnewargs__(self) -> tuple[float, ...]:  # type: ignore[override]  # float's has no arguments
        return float(self), self.low, self.high, self.confidence, self.floor, self.explained, self.floor_smoothed


class LossSums(NamedTuple):
    """Sums of losses over a block of rows (or groups) from which the skill and its interval follow.

    With M = Σ w m and R = Σ w r, each unit i (a row, or a group with its losses added up) has u_i = w_i r_i / R and
    z_i = w_i m_i / M − u_i. When two blocks are joined, with M = M₁ + M₂ and R = R₁ + R₂, the values of the first
    become q u_i and s z_i + (s − q) u_i, where s = M₁/M and q = R₁/R. So the sums of z², z u and u² of each block are
    enough. Sums of m² and r² would lose digits where the losses of the model are nearly proportional to those of the
    reference, because z is a small difference there.

    Attributes
    ----------
    own, reference : float
        M and R.
    zz, zu, uu : float
        Σ z², Σ z u and Σ u².
    n_units : int
        Number of rows with weight, or of groups.
    weight : float
        Sum of the weights.
    """

    own: float
    reference: float
    zz: float
    zu: float
    uu: float
    n_units: int
    weight: float

    @classmethod
    def of(
        cls, own: FloatArray, reference: FloatArray, weight: FloatArray | None = None, codes: IntArray | None = None
    ) -> "LossSums":
        """Add up the losses of one block of rows.

        Parameters
        ----------
        own, reference : ndarray of shape (n_rows,)
            Losses of the model and of the reference, at least zero.
        weight : ndarray of shape (n_rows,), default=None
            Weights.
        codes : ndarray of int of shape (n_rows,), default=None
            Group of each row, from 0.

        Returns
        -------
        LossSums
            The sums.
        """
        m, r = weigh(own, weight), weigh(reference, weight)
        total = len(own) if weight is None else float(weight.sum())
        counted = np.ones(len(m), dtype=bool) if weight is None else weight > 0
        if codes is not None:
            m, r = (np.bincount(codes, loss).astype(np.float64) for loss in (m, r))
            counted = np.bincount(codes, counted) > 0
        M, R = float(m.sum()), float(r.sum())
        with np.errstate(invalid="ignore"):  # an infinite loss: then there is no interval
            u = r / R if R > 0 else np.zeros_like(r)
            z = (m / M if M > 0 else 0.0) - u
            return cls(M, R, float(z @ z), float(z @ u), float(u @ u), int(counted.sum()), total)

    def plus(self, other: "LossSums") -> "LossSums":
        """Add the sums of another block of rows, which has none of the groups of this one.

        Parameters
        ----------
        other : LossSums
            Sums of other rows.

        Returns
        -------
        LossSums
            The sums over all these rows.
        """
        own, reference = self.own + other.own, self.reference + other.reference
        zz = zu = uu = 0.0
        for part in (self, other):
            s = part.own / own if own > 0 else 0.0
            q = part.reference / reference if reference > 0 else 0.0
            t = s - q
            zz += s * s * part.zz + 2 * s * t * part.zu + t * t * part.uu
            zu += q * (s * part.zu + t * part.uu)
            uu += q * q * part.uu
        return LossSums(own, reference, zz, zu, uu, self.n_units + other.n_units, self.weight + other.weight)

    def skill(
        self,
        confidence: float,
        *,
        floor: float | None = None,
        floor_smoothed: float = math.nan,
        unit: str = "rows",
        inflation: float = 1.0,
    ) -> Skill:
        """Compute the skill with its interval.

        Parameters
        ----------
        confidence : float
            Confidence of the interval.
        floor, floor_smoothed : float
            Noise floor of the loss, if it is known, and its upper end.
        unit : {"rows", "groups"}, default="rows"
            Name of the units in the error message about too few of them.
        inflation : float, default=1.0
            Factor of the variance of the logarithm of the ratio.

        Returns
        -------
        Skill
            The skill.
        """
        if self.n_units < 2:
            raise DataError(
                f"Skill with an interval needs at least two {unit} with a weight above 0, and there is {self.n_units}: "
                "the interval follows from their variation. To compare losses, use skldl.metrics.kullback_leibler."
            )
        own, reference = (float(without_rounding(loss / self.weight)) for loss in (self.own, self.reference))
        if np.isinf(reference):
            raise DataError(
                "The loss of the reference is infinite, so that no skill is defined. Use a measure with its floor eps, "
                "or smooth the zeros of the reference with skldl.simplex.smooth_zeros."
            )
        value = float(skill_ratio(own, reference))
        known = () if floor is None else (floor, explainable_share(own, reference, floor), floor_smoothed)
        if not (np.isfinite(value) and own > 0 and reference > 0):
            return Skill(value, value, value, confidence, *known)
        variance = inflation * self.n_units / (self.n_units - 1) * max(self.zz, 0.0)  # rounding of `plus` below 0
        reach = float(stats.t.ppf(0.5 + confidence / 2, self.n_units - 1)) * math.sqrt(variance)
        log_ratio = math.log(own) - math.log(reference)
        with np.errstate(over="ignore"):  # with few units and a tiny loss of the reference the lower end is −∞
            low, high = 1.0 - np.exp(log_ratio + reach), 1.0 - np.exp(log_ratio - reach)
        return Skill(value, float(low), float(high), confidence, *known)


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
    """Compute the fraction of the Kullback-Leibler divergence of the reference that the prediction removes.

    ``1 - KL(true, predicted) / KL(true, reference)``: 1 is perfect, 0 is no better than the reference, and below 0 the
    reference (usually the mean of the training distributions) would have been the better prediction. If the reference
    has no loss, the skill is 0 if the prediction has none either, else −∞.

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
        Number of votes for each label, if ``D_true`` contains their fractions.

    Returns
    -------
    Skill
        A float with the attributes ``low``, ``high`` and ``confidence``. With counts ``floor`` and
        ``floor_smoothed`` are the ends of the noise floor of the divergence, and ``explained`` is the fraction of the
        explainable divergence, between the reference and ``floor``, that the prediction removes; else they are NaN.

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
    check_value("confidence", confidence, CONFIDENCE)
    floor = {}
    if counts is not None:
        found = floors_of_rows(D_true, counts, [kullback_leibler], sample_weight, groups)[kullback_leibler.name]
        floor = {"floor": found.value, "floor_smoothed": found.smoothed}
    with computing_on(D_true, "skill"):
        true, pred = checked_pair(D_true, D_pred)
        reference = rows_of_reference(D_true, true, D_reference)
        weight = check_weights(sample_weight, true.shape[0], true)
        codes = None if groups is None else group_codes(groups, true.shape[0])
        sums = LossSums.of(*divergences(true, pred, reference, weight), codes)
    return sums.skill(confidence, **floor, unit="rows" if groups is None else "groups")


def divergences(true: Any, pred: Any, reference: Any, weight: Any) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Kullback-Leibler divergence of each row from the prediction and from the reference, and weights, in NumPy."""
    own, other = (to_numpy(compute_rows(true, P, [kullback_leibler])[kullback_leibler.name]) for P in (pred, reference))
    return own, other, None if weight is None else to_numpy(weight)


def rows_of_reference(D_true: Any, true: Any, D_reference: Any) -> Any:
    """Validate the predictions of a reference, and put them into the order of the labels of the truth.

    Parameters
    ----------
    D_true : array-like or DataFrame
        True distributions as they were passed.
    true : array
        The same, validated.
    D_reference : array-like or DataFrame of shape (n_samples, n_labels) or (1, n_labels)
        The reference.

    Returns
    -------
    array of shape (n_samples, n_labels)
        One row for each true row.
    """
    if is_device_array(true):
        reference = check_distributions(D_reference, name="D_reference", like=true)
    else:
        reference = summing_to_one(check_distributions(D_reference, name="D_reference", renormalize=False))
        order = order_of_labels(column_names(D_true), column_names(D_reference), name="D_reference")
        if order is not None and reference.shape[1] == true.shape[1]:
            reference = reference[:, order]
    if reference.shape[0] == 1:
        reference = namespace(true).broadcast_to(reference, (true.shape[0], reference.shape[1]))
    if tuple(true.shape) != tuple(reference.shape):
        raise LengthMismatchError(
            f"D_true has shape {tuple(true.shape)} and D_reference {tuple(reference.shape)}. "
            "Pass one reference row for each true row, or a single row for all."
        )
    return reference


def skill_of_losses(
    losses: Any,
    reference_losses: Any,
    sample_weight: Any = None,
    groups: Any = None,
    *,
    confidence: float = 0.95,
    floor: float | None = None,
) -> Skill:
    """Compute the skill from the losses of single rows, with an interval.

    All functions of this package that report a skill use this definition. If the reference has no loss, the skill is 0
    if the model has none either, else −∞. A mean loss up to 1e-14 is rounding error and counts as none.

    Parameters
    ----------
    losses, reference_losses : array-like of shape (n_samples,)
        Loss of the model and of the reference on each row: at least zero, lower for better predictions. With an
        infinite loss of the model the skill is −∞. An infinite loss of the reference raises an error.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, where rows of one group (one person, one photograph) depend on each other. The width of the
        interval then depends on the number of groups, not of rows.
    confidence : float, default=0.95
        Confidence of the interval.
    floor : float, default=None
        Noise floor of the loss: the mean loss of the true distributions, where rows are made of votes.

    Returns
    -------
    Skill
        A float with the attributes ``low``, ``high`` and ``confidence``, and with ``floor`` and ``explained`` if a
        floor is passed. If the model or the reference has no loss, both ends of the interval are the skill itself.

    Notes
    -----
    The interval bounds how far the skill of **these** predictions may be from their skill on many more rows of the same
    kind. It is conditional on the fitted models: it does not contain the variation between training sets.

    In simulations with 30 rows and more, and losses whose deviation is at most about their mean, 93 to 97 % of the 95 %
    intervals contain the true skill, and about 92 to 94 % with 10 rows. With long tails (lognormal or Pareto losses),
    very uneven weights or fewer than ten groups, 87 to 93 % were measured. No interval from a sample can be right where
    rare rows decide the mean: a prediction of exactly zero for a label with mass costs up to 36 nats, so that one such
    row in a hundred outweighs all others, and a sample without such a row has no information about it. There 20 to 60 %
    were measured with 30 to 100 rows. Smooth such predictions first (`skldl.simplex.smooth_zeros`), or use a bounded
    measure. The interval is also too narrow where a single row or group has nearly all of the weight.

    Examples
    --------
    >>> from skldl.metrics import skill_of_losses
    >>> skill_of_losses([0.1, 0.2, 0.1, 0.3], [0.4, 0.5, 0.3, 0.6])
    Skill(0.6111, 95% interval 0.3810 to 0.7557)
    >>> skill_of_losses([0.1, 0.2, 0.1, 0.3], [0.4, 0.5, 0.3, 0.6], groups=["a", "a", "b", "c"])
    Skill(0.6111, 95% interval 0.2627 to 0.7949)
    """
    check_value("confidence", confidence, CONFIDENCE)
    own, reference = _check_losses(losses, "losses"), _check_losses(reference_losses, "reference_losses")
    if own.shape != reference.shape:
        raise LengthMismatchError(
            f"losses has {len(own)} rows and reference_losses {len(reference)}. Pass one loss of each for every row."
        )
    weight = check_weights(sample_weight, len(own))
    codes = None if groups is None else group_codes(groups, len(own))
    unit = "rows" if groups is None else "groups"
    return LossSums.of(own, reference, weight, codes).skill(confidence, floor=floor, unit=unit)


def _check_losses(losses: Any, name: str) -> FloatArray:
    values = np.asarray(losses, dtype=np.float64)
    if values.ndim != 1:
        raise DataError(f"{name} has shape {values.shape}: pass one number for each row.")
    # rounding makes losses of perfect predictions slightly negative; 1e-9 is more than that in any measure
    wrong = np.isnan(values) | (values < -1e-9)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{name} of row {row} is {values[row]}. Losses must be at least zero; remove rows without a loss.", row=row
        )
    return np.maximum(values, 0.0)


def skill_ratio(losses: Any, reference: Any) -> FloatArray:
    """Compute 1 − loss / reference loss; where the reference has no loss, 0 for a model without loss and else −∞.

    Parameters
    ----------
    losses, reference : array-like
        Mean losses, of shapes that can be broadcast. Those up to 1e-14 are rounding error and count as none.

    Returns
    -------
    ndarray
        The skills; NaN where a loss is NaN, or that of the reference infinite.

    Examples
    --------
    >>> from skldl.metrics import skill_ratio
    >>> skill_ratio([0.1, 0.0, 0.2], [0.2, 0.0, 0.0])
    array([ 0.5,  0. , -inf])
    """
    own, other = np.broadcast_arrays(without_rounding(losses), without_rounding(reference))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(np.isinf(other), np.nan, 1.0 - own / other)
    return np.asarray(np.where((other == 0) & ~np.isnan(own), np.where(own == 0, 0.0, -np.inf), ratio))


def explainable_share(loss: float, reference_loss: float, floor: float) -> float:
    r"""Compute the fraction of the explainable loss that a model explains.

    The explainable loss is the difference between the loss r of the reference (the mean distribution) and the noise
    floor f, below which no model can be expected. The fraction is :math:`(r - l) / (r - f)`: 1 for a model at the
    floor, 0 for the reference.

    Parameters
    ----------
    loss, reference_loss : float
        Mean losses of the model and of the reference on the same rows, lower for better predictions.
    floor : float
        The noise floor of this loss.

    Returns
    -------
    float
        The fraction; NaN if the reference is at the floor already, up to rounding: then there is nothing to explain.

    Examples
    --------
    >>> from skldl.uncertainty import explainable_share
    >>> round(explainable_share(0.055, 0.10, 0.05), 3)
    0.9
    """
    to_explain = float(without_rounding(reference_loss - floor))
    return (reference_loss - loss) / to_explain if to_explain > 0 else float("nan")


def show_skill(value: float | None) -> str:
    """Format a skill as a percentage; None stands for −∞, which model files cannot store as a number.

    Examples
    --------
    >>> from skldl.metrics._skill import show_skill
    >>> show_skill(0.123), show_skill(-0.0001), show_skill(None)
    ('12.3%', '0.0%', '−∞')
    """
    # + 0.0 turns −0.0 into 0.0
    return "−∞" if value is None or value == -math.inf else f"{round(value, 3) + 0.0:.1%}"


def mu(D_true: Any, D_pred: Any, sample_weight: Any = None) -> float:
    r"""Compute μ, the fraction of rows below a threshold of the divergence, averaged over thresholds.

    With :math:`\delta_i` the Kullback-Leibler divergence of row i and :math:`\delta_0` the mean divergence of the
    uniform distribution,

    .. math:: \mu = \frac{1}{\delta_0} \int_0^{\delta_0} \overline{[\delta_i \leq \delta]}\, d\delta
        = 1 - \overline{\min(\delta_i, \delta_0)} / \delta_0.

    It is 1 for a perfect prediction. The uniform distribution itself is above 0 unless all its divergences are equal,
    and a row that is completely wrong counts no more than one that is as bad as uniform on average.

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
    own, of_uniform = (compute_rows(true, P, [kullback_leibler])[kullback_leibler.name] for P in (pred, uniform))
    loss, threshold = (float(without_rounding(mean(values, weight))) for values in (own, of_uniform))
    if threshold == 0:
        return float(loss == 0)
    return 1.0 - mean(xp.where(own < threshold, own, threshold), weight) / threshold
