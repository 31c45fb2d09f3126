r"""`RaterTable`: informedness, reliability, severity, habits and weights of raters.

Every vote is compared with the answers of the *other* raters to the item: the posterior of the truth without this vote,
T⁻ ∝ T / π_r(vote), at the fitted parameters. A rater's own vote must not count as evidence for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import special
from sklearn.utils.validation import check_is_fitted

from skldl.annotators._dawid_skene import MIN_PROBABILITY, DawidSkene, label_values
from skldl.utils.parameters import COUNT, check_value, number
from skldl.utils.typing import BoolArray, FloatArray, IntArray

_FRACTION = number(above=0, below=1)
_CHUNK = 250_000  # votes at a time: bounds the memory of temporary arrays
_MIN_CONTRARY = 0.1  # one random rater in forty has an interval below zero by chance, and few one below −0.1

FLAGS = {
    "spammer": "answers are unrelated to the truth",
    "contrary": "answers agree with the truth less often than by chance",
    "habit": "one label is used far more often than the items explain",
}


@dataclass(frozen=True, eq=False, repr=False)
class RaterTable:
    """Quality of raters: one array for each column, one entry for each rater.

    Attributes
    ----------
    rater : list
        Names.
    n_votes, n_compared : ndarray of int
        Number of votes, and of those among them for items that others rated too (or whose truth is known).
    reliability, reliability_low, reliability_high : ndarray
        Probability that an answer is the true label, averaged over the true labels as they are distributed, with its
        interval.
    agreement : ndarray
        Mean probability that the answer is the true label, given the votes of the others. NaN without such votes.
    informedness, informedness_low, informedness_high : ndarray
        Fraction of the answers that come from the truth and not from habit or chance, with its interval: 0 for answers
        that are unrelated to the truth, 1 for answers that are always right.
    severity, severity_low, severity_high : ndarray
        Mean difference between the answer and the truth according to the other raters, with its interval; NaN unless
        the labels are numbers.
    favourite : list
        The label that the rater over-uses most.
    favourite_share, favourite_expected : ndarray
        Its fraction of the answers, and the fraction that the items explain.
    weight : ndarray
        For `skldl.distributions.from_votes`: the informedness, at least zero, shrunk towards that of all raters where
        votes are few, and scaled so that the mean over all votes is 1.
    flags : list of str
        "spammer", "contrary" and "habit", separated by blanks; empty without a flag.

    Examples
    --------
    >>> from skldl.annotators import DawidSkene, rater_table
    >>> votes = {"item": [0, 0, 1, 1, 2, 2], "who": list("ababab"), "label": list("xxyyxy")}
    >>> model = DawidSkene("one-coin").fit(votes, item="item", annotator="who", label="label")
    >>> table = rater_table(model)
    >>> table.rater, table.n_votes.tolist()
    (['a', 'b'], [3, 3])
    """

    rater: list[Any]
    n_votes: IntArray
    n_compared: IntArray
    reliability: FloatArray
    reliability_low: FloatArray
    reliability_high: FloatArray
    agreement: FloatArray
    informedness: FloatArray
    informedness_low: FloatArray
    informedness_high: FloatArray
    severity: FloatArray
    severity_low: FloatArray
    severity_high: FloatArray
    favourite: list[Any]
    favourite_share: FloatArray
    favourite_expected: FloatArray
    weight: FloatArray
    flags: list[str]

    def __len__(self) -> int:
        return len(self.rater)

    @property
    def _flagged(self) -> dict[str, int]:
        """From each flag that a rater has to the number of raters who have it."""
        counts = {name: sum(name in flags.split() for flags in self.flags) for name in FLAGS}
        return {name: number for name, number in counts.items() if number}

    @property
    def _best_first(self) -> IntArray:
        """Raters in the order of their informedness; those without one are last."""
        known = np.isfinite(self.informedness)
        return np.argsort(np.where(known, -self.informedness, np.inf), kind="stable")

    def __repr__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self._flagged.items()) or "no rater flagged"
        known = self.informedness[np.isfinite(self.informedness)]
        typical = f", median informedness {np.median(known):.2f}" if len(known) else ""
        return f"RaterTable({len(self)} raters, {int(self.n_votes.sum())} votes{typical}; {counts})"

    def rater_weights(self) -> dict[Any, float]:
        """Weight of each rater, by name; ``from_votes(votes, weights=table)`` calls it.

        Returns
        -------
        dict
            From rater to weight.
        """
        return dict(zip(self.rater, self.weight.tolist(), strict=True))

    def columns(self) -> dict[str, list[Any]]:
        """All columns as lists of plain values; ``pandas.DataFrame(table.columns())`` makes a frame of them.

        Returns
        -------
        dict
            From the name of each column to its values, in the order of the attributes.
        """
        return {column.name: np.asarray(getattr(self, column.name), dtype=object).tolist() for column in fields(self)}

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each rater.

        Returns
        -------
        list of dict
            The rows, in the order of the raters.
        """
        columns = self.columns()
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def rater_table(
    model: DawidSkene,
    *,
    ordered: bool | None = None,
    level: float = 0.95,
    min_votes: int = 10,
    habit_excess: float = 0.2,
) -> RaterTable:
    r"""Measure the quality of each rater of a fitted model.

    Suppose that a rater answers with the true label in a fraction λ of the cases and by habit, whatever the item is, in
    the others. With the fraction q_l of label l among the answers y, the truths T⁻ of the same items according to the
    other raters, their mean t, and a similarity S of labels, the agreement exceeds that of randomly permuted answers by

    .. math:: \frac{1}{n} \sum_i (S T^-_i)_{y_i} - q^\top S t
        = \lambda \Bigl( \frac{1}{n} \sum_i T_i^{-\top} S T^-_i - t^\top S t \Bigr)

    in expectation. The quotient is the *informedness* λ [1]_: the agreement beyond chance, corrected for truths that
    are not certain. S is 1 for the same label and 0 for others or, where labels are ordered, minus their distance, so
    that an answer near the truth counts more than one far from it.

    Parameters
    ----------
    model : DawidSkene
        Fitted.
    ordered : bool, default=None
        Whether labels are ordered: by their values if they are numbers, else as they are listed. None means that
        numbers are ordered and other labels are not.
    level : float in (0, 1), default=0.95
        Confidence of the intervals.
    min_votes : int, default=10
        Raters with fewer votes that can be compared have no flag.
    habit_excess : float in (0, 1), default=0.2
        How far the fraction of one label must exceed what the items explain, beyond the sampling error, to be flagged
        as a habit.

    Returns
    -------
    RaterTable
        One row for each rater, in the order of ``model.annotators_``.

    Notes
    -----
    **Flags.** "spammer": the interval of the informedness reaches down to zero and its upper end stays below half the
    median of all raters, or its upper end stays below a fifth of that median (in both cases at least 0.1).
    "contrary": the whole interval lies below −0.1. "habit": the fraction of one label exceeds its expected fraction by
    more than ``habit_excess``, even after the sampling error at this level is subtracted, and the interval of the
    informedness lies below the median of all raters; a rater who always gives the same answer is flagged as "spammer"
    and "habit". The flags are hints: inspect the votes before drawing conclusions.

    **Intervals** are conditional on the truths according to the other raters. That of the informedness is Wilson's
    interval of the agreement beyond chance, for as many votes as give it the standard error of the delta method; the
    variance of that includes five additional votes of the usual spread of all raters, so that a few votes that agree by
    chance do not give a narrow interval. That of the reliability is a beta
    distribution with the mean and variance of the Dirichlet posterior of the confusion matrix; its counts are reduced
    by the fraction of the information that is missing because the truths are not certain. In simulations with four
    labels, intervals of 95 % covered the reliability in 94 to 95 % of the cases with ``model="one-coin"``; with
    ``model="confusion"`` in 95, 91 and 85 % if items had twelve, six and three votes. They covered the informedness .8
    of a rater beside a perfect one, with 15 to 150 items and two or four labels, in 92 to 98 % of the cases if a third
    rater was as good. If the third was worse (informedness .3) and there were 150 items, the truths themselves were
    uncertain, which no interval contains: 86 to 94 % with "one-coin", 70 to 93 % with "confusion". Of two raters alone
    nobody can tell who is right where they differ.

    References
    ----------
    .. [1] D. M. W. Powers, "Evaluation: from precision, recall and F-measure to ROC, informedness, markedness and
       correlation", Journal of Machine Learning Technologies 2(1), 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.annotators import DawidSkene, rater_table
    >>> generator = np.random.default_rng(0)
    >>> truth, noise = generator.integers(0, 3, size=(2, 300))
    >>> votes = np.stack([truth, truth, np.where(generator.random(300) < 0.7, truth, 0), noise], axis=1)
    >>> table = rater_table(DawidSkene().fit(votes))
    >>> table
    RaterTable(4 raters, 1200 votes, median informedness 0.85; 1 spammer)
    >>> table.flags
    ['', '', '', 'spammer']
    """
    check_is_fitted(model, "posterior_")
    check_value("level", level, _FRACTION)
    check_value("habit_excess", habit_excess, _FRACTION)
    check_value("min_votes", min_votes, COUNT)
    z = float(special.ndtri(0.5 + level / 2))
    votes = model._triples
    n_raters = len(votes.raters)
    n_votes = np.bincount(votes.rater, minlength=n_raters)
    values = _values(votes.labels, ordered)
    compared = _compare(model)
    informedness, error, chance = _informedness(compared, values)
    severity, severity_error = _severity(compared, values)
    with np.errstate(invalid="ignore", divide="ignore"):
        fraction = compared.answers / compared.n[:, None]
        expected = compared.truths / compared.n[:, None]
    reliability, low, high = _reliability(model, level)
    favourite = np.where(np.isfinite(fraction), fraction - expected, 0.0).argmax(axis=1)
    rows = np.arange(n_raters)
    fraction, expected = fraction[rows, favourite], expected[rows, favourite]
    limits = _limits(informedness, error, chance, compared.n, z)
    habit = _habit(fraction, expected, compared.n, z, habit_excess)
    return RaterTable(
        rater=list(votes.raters),
        n_votes=n_votes,
        n_compared=compared.n,
        reliability=reliability,
        reliability_low=low,
        reliability_high=high,
        agreement=compared.agreement,
        informedness=informedness,
        informedness_low=limits[0],
        informedness_high=limits[1],
        severity=severity,
        severity_low=severity - z * severity_error,
        severity_high=severity + z * severity_error,
        favourite=[votes.labels[label] for label in favourite],
        favourite_share=fraction,
        favourite_expected=expected,
        weight=_weights(informedness, error, n_votes),
        flags=_flags(informedness, limits, habit, compared.n >= min_votes),
    )


def _values(labels: list[Any], ordered: bool | None) -> FloatArray | None:
    """Values of the labels, or None if they are not ordered."""
    if ordered is False:
        return None
    values = label_values(labels)
    return np.arange(len(labels), dtype=np.float64) if values is None and ordered else values


@dataclass
class _Compared:
    """Votes of each rater, with the truths of their items according to the other raters.

    The first three hold an entry for each vote that can be compared: rater, label, and T⁻. The others hold one for each
    rater: number of such votes, sums of the answers and of T⁻ by label, and the mean of T⁻ at the answer.
    """

    rater: IntArray
    label: IntArray
    truth: FloatArray
    n: IntArray
    answers: FloatArray
    truths: FloatArray
    agreement: FloatArray

    def add_up(self, function: Callable[[IntArray, IntArray, FloatArray], FloatArray]) -> FloatArray:
        """Sum a function of (rater, label, T⁻) over the votes of each rater, some votes at a time."""
        totals = np.zeros(len(self.n))
        for start in range(0, len(self.rater), _CHUNK):
            part = slice(start, start + _CHUNK)
            values = function(self.rater[part], self.label[part], self.truth[part].astype(np.float64))
            totals += np.bincount(self.rater[part], values, minlength=len(self.n))
        return totals


def _compare(model: DawidSkene) -> _Compared:
    """T⁻ of every vote for an item that another rater rated too, or whose truth is known."""
    votes = model._triples
    n_raters, n_labels = len(votes.raters), len(votes.labels)
    gold = np.array([model._gold_of.get(name, -1) for name in votes.items] if model._gold_of else [], dtype=np.intp)
    per_item = np.bincount(votes.item, minlength=len(votes.items))
    comparable = per_item[votes.item] > 1
    if len(gold):
        comparable |= gold[votes.item] >= 0
    item, rater, label = votes.item[comparable], votes.rater[comparable], votes.label[comparable]
    joint = model.log_joint()
    log_confusion = np.log(np.maximum(model.confusion_, MIN_PROBABILITY))
    # single precision is enough for probabilities, and there are many votes
    truth = np.empty((len(item), n_labels), dtype=np.float32)
    for start in range(0, len(item), _CHUNK):
        part = slice(start, start + _CHUNK)
        without = joint[item[part]] - log_confusion[rater[part], :, label[part]]
        truth[part] = special.softmax(without, axis=1)
        if len(gold):
            known = np.flatnonzero(gold[item[part]] >= 0)
            truth[start + known] = np.eye(n_labels, dtype=np.float32)[gold[item[part]][known]]
    n = np.bincount(rater, minlength=n_raters)
    answers = np.bincount(rater * n_labels + label, minlength=n_raters * n_labels).reshape(n_raters, n_labels)
    truths = np.stack([np.bincount(rater, truth[:, k], minlength=n_raters) for k in range(n_labels)], axis=1)
    right = np.bincount(rater, truth[np.arange(len(label)), label], minlength=n_raters)
    agreement = np.divide(right, n, out=np.full(n_raters, np.nan), where=n > 0)
    return _Compared(rater, label, truth, n, answers.astype(np.float64), truths.astype(np.float64), agreement)


def _informedness(compared: _Compared, values: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """λ of each rater, its standard error by the delta method, and the agreement by chance, from 0 to 1.

    The first two are NaN where all items have the same truth.
    """
    n_labels = compared.answers.shape[1]
    S = np.eye(n_labels) if values is None else -np.abs(values[:, None] - values[None])
    n = np.maximum(compared.n, 1)
    fraction, mean = compared.answers / n[:, None], compared.truths / n[:, None]
    chance = np.einsum("rl,lk,rk->r", fraction, S, mean)
    random = np.einsum("rl,lk,rk->r", mean, S, mean)
    met = compared.add_up(lambda rater, label, T: (T @ S)[np.arange(len(label)), label]) / n
    best = compared.add_up(lambda rater, label, T: np.einsum("vl,vl->v", T @ S, T)) / n
    span = best - random  # agreement of a rater who is always right, beyond chance
    # 1e-6: below it, all items have the same truth up to rounding in single precision, and λ is 0/0
    usable = (compared.n > 1) & (span > 1e-6 * np.ptp(S))
    span = np.where(usable, span, 1.0)
    informedness = np.where(usable, (met - chance) / span, np.nan)
    slope = np.nan_to_num(informedness)

    def influence(rater: IntArray, label: IntArray, T: FloatArray) -> FloatArray:
        similar = T @ S
        above_chance = similar[np.arange(len(label)), label] - (mean @ S)[rater, label]
        above_chance -= np.einsum("vl,vl->v", similar, fraction[rater]) - chance[rater]
        possible = np.einsum("vl,vl->v", similar, T - 2 * mean[rater]) + random[rater]
        return np.asarray((above_chance - slope[rater] * possible) / span[rater])

    squares = np.where(usable, compared.add_up(lambda *vote: influence(*vote) ** 2), 0.0)
    pooled = squares.sum() / max(int(compared.n[usable].sum()), 1)
    random_vote = ((S.max() - random) / span) ** 2
    # four votes of the spread of all raters, and one that is off by as much as a label drawn at random
    variance = (squares + 4 * pooled + random_vote) / (n + 5)
    return informedness, np.where(usable, np.sqrt(variance / n), np.nan), (random - S.min()) / np.ptp(S)


def _limits(
    informedness: FloatArray, error: FloatArray, chance: FloatArray, n: IntArray, z: float
) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval of the agreement p = r + (1 − r) λ with as many votes as give it the standard error of λ.

    The interval λ ± z · error would be too high near λ = 1, where the error of λ grows as λ falls.
    """
    agreement = np.clip(chance + (1 - chance) * informedness, 0.0, 1.0)
    inside = (agreement * n + 1) / (n + 2)  # never 0 or 1
    with np.errstate(invalid="ignore", divide="ignore"):
        # not more than there are: a few votes that all agree have next to no spread
        votes = np.minimum(inside * (1 - inside) / ((1 - chance) * error) ** 2, n)
        centre = (agreement + z**2 / (2 * votes)) / (1 + z**2 / votes)
        reach = z * np.sqrt(agreement * (1 - agreement) / votes + z**2 / (4 * votes**2)) / (1 + z**2 / votes)
        low, high = ((end - chance) / (1 - chance) for end in (centre - reach, centre + reach))
    # an estimate beyond what an agreement can be is inside, too
    return np.clip(np.fmin(low, informedness), -1, 1), np.clip(np.fmax(high, informedness), -1, 1)


def _severity(compared: _Compared, values: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Mean difference of answer and truth, and its standard error."""
    if values is None:
        return np.full(len(compared.n), np.nan), np.full(len(compared.n), np.nan)
    n = np.maximum(compared.n, 1)
    mean = compared.add_up(lambda rater, label, T: values[label] - T @ values) / n
    squares = compared.add_up(lambda rater, label, T: (values[label] - T @ values - mean[rater]) ** 2)
    # one further vote that is off by one step, so that a few equal votes do not have an error of 0
    step = (values.max() - values.min()) / (len(values) - 1)
    known = compared.n > 0
    return np.where(known, mean, np.nan), np.where(known, np.sqrt(squares + step**2) / (n + 1), np.nan)


def _reliability(model: DawidSkene, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Σ_k p_k π_kk and the interval of the beta distribution with its posterior mean and variance."""
    prior = model.class_prior_
    right = np.diagonal(model.confusion_, axis1=1, axis2=2)
    mean = np.clip((prior * right).sum(axis=1), 1e-9, 1 - 1e-9)  # a beta distribution needs a mean inside (0, 1)
    rows = _information(model)[:, None] * model._counts.sum(axis=2) + model._pseudo_counts(len(prior)).sum(axis=1)
    if model.model == "confusion":
        variance = (prior**2 * right * (1 - right) / (rows + 1.0)).sum(axis=1)
    else:  # one or two parameters for each rater: every vote is informative for all rows
        variance = mean * (1 - mean) / (rows.sum(axis=1) + 1.0)
    # 1e-12 and 1e-3: the size of a beta distribution is finite and positive, also without votes
    size = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1.0, 1e-3)
    tail = (1 - level) / 2
    low, high = (special.betaincinv(mean * size, (1 - mean) * size, t) for t in (tail, 1 - tail))
    return mean, low, high


def _information(model: DawidSkene) -> FloatArray:
    """Fraction of the information of each rater's votes that remains although the truths are uncertain.

    If the truth were known, the number of right answers would have the information n / m(1−m) about the reliability m.
    Where a vote is right with probability w only, w(1−w) / m(1−m) of its information is missing.
    """
    votes = model._triples
    right = model.posterior_[votes.item, votes.label]
    n = np.bincount(votes.rater, minlength=len(votes.raters))
    mean = (np.bincount(votes.rater, right, minlength=len(n)) + 1.0) / (n + 2.0)  # never 0 or 1
    doubt = np.bincount(votes.rater, right * (1 - right), minlength=len(n)) / np.maximum(n, 1)
    return np.clip(1.0 - doubt / (mean * (1 - mean)), 0.0, 1.0)


def _habit(fraction: FloatArray, expected: FloatArray, n: IntArray, z: float, excess: float) -> BoolArray:
    """Whether the fraction of the favourite label exceeds what the items explain by more than the sampling error."""
    centre = np.clip(np.nan_to_num(expected), 0.0, 1.0)
    # binomial standard error; 0.25/n keeps it positive where the expected fraction is 0 or 1
    noise = z * np.sqrt((centre * (1 - centre) + 0.25 / np.maximum(n, 1)) / np.maximum(n, 1))
    return np.asarray(np.nan_to_num(fraction) - centre - noise > excess)


def _flags(
    informedness: FloatArray, limits: tuple[FloatArray, FloatArray], habit: BoolArray, enough: BoolArray
) -> list[str]:
    """Flags of each rater; the limits are described in `rater_table`, and were chosen by hand."""
    low, high = limits
    known = informedness[np.isfinite(informedness)]
    median = float(np.median(known)) if len(known) else 0.0
    with np.errstate(invalid="ignore"):
        contrary = high < -_MIN_CONTRARY
        unrelated = (low <= 0) & (high < max(0.1, 0.5 * median))
        useless = high < max(0.1, 0.2 * median)
        by_habit = habit & ~(high >= median)  # a favourite label alone is no flag: informed raters may have one
        found = {"spammer": (unrelated | useless) & ~contrary, "contrary": contrary, "habit": by_habit}
    return [" ".join(name for name in FLAGS if found[name][r] and enough[r]) for r in range(len(informedness))]


def _weights(informedness: FloatArray, error: FloatArray, n_votes: IntArray) -> FloatArray:
    """λ shrunk towards the mean of all raters by its own error (DerSimonian and Laird), at least 0, with mean 1."""
    known = np.isfinite(informedness)
    if not known.any():
        return np.ones(len(informedness))
    values, precision = informedness[known], 1.0 / error[known] ** 2
    centre = float((precision * values).sum() / precision.sum())
    spread = float((precision * (values - centre) ** 2).sum()) - (len(values) - 1)
    scale = float(precision.sum() - (precision**2).sum() / precision.sum())
    between = max(spread / scale, 0.0) if scale > 0 else 0.0
    if between > 0:
        total = 1.0 / (error[known] ** 2 + between)
        centre = float((total * values).sum() / total.sum())
        pulled = centre + between * total * (values - centre)
    else:
        pulled = np.full(len(values), centre)
    weight = np.full(len(informedness), max(centre, 0.0))
    weight[known] = np.maximum(pulled, 0.0)
    mean = float((weight * n_votes).sum() / n_votes.sum())
    return weight / mean if mean > 0 else weight
