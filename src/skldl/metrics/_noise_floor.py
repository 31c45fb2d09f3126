r"""`noise_floor`: the score that the true distributions themselves would have on rows from a few votes.

A row that was made of m votes is a sample :math:`\hat d` from its true distribution d. The noise floor of a measure is
its mean over such rows with the true distribution as the prediction, :math:`\mathrm E\, M(\hat d, d)`. It depends on d,
which is not known, and a plug-in estimate is biased.

**Kullback-Leibler.** For any prediction p,

.. math:: \mathrm E\,\mathrm{KL}(\hat d \| p) = \mathrm{KL}(d \| p) + [H(d) - \mathrm E H(\hat d)],

so the floor is the bias of the plug-in entropy [2]_, about :math:`(c-1)/2m` where all :math:`m d_j` are large. With

.. math:: H(d) = \sum_{k \ge 1} \frac1k \sum_j d_j (1-d_j)^k,

the terms k < m have unbiased estimates; their sum is :math:`\sum_j \frac{n_j}{m}[\psi(m) - \psi(n_j)]` [1]_.
Only the terms k ≥ m, which matter for labels of about 1/m and less, are extrapolated: they are taken under the mixing
distribution that is estimated from all rows (`skldl.metrics._mixing`).

**Squared Euclidean distance and inner product** are polynomials of d of second degree, and have unbiased estimates.

**All others.** The mean of the floor over the rows is a linear functional of the mixing distribution. It is computed
by simulation: true distributions from the estimated mixing distribution (given the votes of the row, where rows have
different numbers of votes), votes from these, and the measure between the two.

The standard error comes from the jackknife over ten blocks of rows (of groups, if there are any).

References
----------
.. [1] Z. Zhang, "Entropy estimation in Turing's perspective", Neural Computation 24(5), 2012.
.. [2] L. Paninski, "Estimation of entropy and mutual information", Neural Computation 15(6), 2003.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import digamma, entr

from skldl.exceptions import DataError, LengthMismatchError
from skldl.metrics import MEASURES, PAPER_MEASURES, Measure
from skldl.metrics._evaluate import resolve
from skldl.metrics._mixing import fit_dirichlet, fit_mixing
from skldl.utils.column_names import column_names, order_of_labels
from skldl.utils.groups import group_codes
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_distributions, check_weights

MOST_ROWS = 1000
N_BLOCKS = 10
N_DRAWS = 20
MOST_VOTE_NUMBERS = 12
_BLOCK_ITERATIONS = 60
_SAME_SHARES = 1e-3
_MOST_TERMS = 5000  # with more votes than that, the terms left out are below 1e-4 of the floor


@dataclass(frozen=True)
class NoiseFloor:
    """Score of the true distributions on rows made of votes.

    Attributes
    ----------
    value : float
        Expected value of the measure.
    standard_error : float
        Its standard error, from the jackknife over blocks of rows.
    n_rows : int
        Number of rows that the estimate rests on.
    n_votes : float
        Mean number of votes of a row.

    Examples
    --------
    >>> from skldl.uncertainty import NoiseFloor
    >>> NoiseFloor(value=0.05, standard_error=0.002, n_rows=100, n_votes=10.0).value
    0.05
    """

    value: float
    standard_error: float
    n_rows: int
    n_votes: float


def noise_floor(
    counts: Any,
    measures: Iterable[str | Measure] = tuple(PAPER_MEASURES),
    *,
    sample_weight: Any = None,
    groups: Any = None,
    random_state: int = 0,
) -> dict[str, NoiseFloor]:
    """Estimate the score that the true distributions would have on rows made of these votes.

    No model can be expected to have a lower Kullback-Leibler divergence, or another measure that the true distribution
    minimises in expectation (squared Euclidean distance). For the others, such as Chebyshev's distance, a prediction
    other than the true distribution can score a little better.

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_labels)
        Number of votes for each label: whole numbers. The votes of a row are taken as independent draws from its true
        distribution.
    measures : iterable of str or Measure, default: the six of the paper
        Which measures.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row in the mean.
    groups : array-like of shape (n_samples,), default=None
        Group of each row; rows of one group stay together in the jackknife.
    random_state : int, default=0
        Seed of the simulation.

    Returns
    -------
    dict
        From the name of each measure to a `NoiseFloor`. A measure whose floor is not finite is left out.

    Notes
    -----
    More than 1000 rows are represented by 1000 of them (whole groups), drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.uncertainty import noise_floor
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.multinomial(20, [0.2, 0.3, 0.5], size=500)
    >>> floor = noise_floor(counts, ["kullback_leibler"])["kullback_leibler"]
    >>> round(floor.value, 2)
    0.05
    """
    votes = _check_counts(counts)
    chosen = resolve(measures, MEASURES)
    weight = check_weights(sample_weight, len(votes))
    weight = np.ones(len(votes)) if weight is None else weight
    unit = np.arange(len(votes)) if groups is None else group_codes(groups, len(votes))
    kept = _sample(unit, random_state)
    votes, weight, unit = votes[kept], weight[kept], unit[kept]
    if votes.sum(axis=1).max() < 2:
        raise DataError("A noise floor needs rows with at least two votes: one vote alone does not show any noise.")
    distinct, place = np.unique(votes, axis=0, return_inverse=True)  # few votes make many equal rows
    added = partial(_added, place.ravel(), len(distinct))
    total = added(weight)
    mixing = fit_mixing(distinct, total, fit_dirichlet(votes), random_state)
    rows = _parts(distinct, mixing.support, chosen, random_state)
    whole = mixing.weights(total)
    estimate = rows.means(mixing.posterior(whole), total)
    parts = []
    for block in np.array_split(np.random.default_rng(random_state).permutation(unit.max() + 1), N_BLOCKS):
        part = added(np.where(np.isin(unit, block), 0.0, weight))
        if len(block) and part.any():
            refitted = mixing.posterior(mixing.weights(part, whole, _BLOCK_ITERATIONS))
            parts.append(rows.means(refitted, part))
    spread = np.var(parts, axis=0, ddof=0) * (len(parts) - 1)
    n_votes = float(votes.sum(axis=1).mean())
    return {
        measure.name: NoiseFloor(float(value), float(error), len(votes), n_votes)
        for measure, value, error in zip(chosen, estimate, np.sqrt(spread), strict=True)
        if np.isfinite(value)
    }


def floors_of_rows(
    D_true: Any, counts: Any, measures: Iterable[str | Measure], sample_weight: Any = None, groups: Any = None
) -> dict[str, NoiseFloor]:
    """`noise_floor` of rows whose distributions are given, too: both must be the same votes.

    Parameters
    ----------
    D_true : array-like or DataFrame of shape (n_samples, n_labels)
        Shares of the votes.
    counts : array-like or DataFrame of shape (n_samples, n_labels)
        The votes; columns with the names of those of ``D_true`` may be in another order.
    measures, sample_weight, groups
        As in `noise_floor`.

    Returns
    -------
    dict
        As from `noise_floor`.
    """
    order = order_of_labels(column_names(D_true), column_names(counts), name="counts")
    votes = _check_counts(counts)
    votes = votes if order is None else votes[:, order]
    D = check_distributions(D_true, name="D_true")
    if D.shape != votes.shape:
        raise LengthMismatchError(f"D_true has shape {D.shape} and counts {votes.shape}. Pass the votes of each row.")
    off = np.abs(votes / votes.sum(axis=1, keepdims=True) - D).max(axis=1) > _SAME_SHARES
    if off.any():
        raise DataError(
            f"Row {int(np.argmax(off))} of D_true is not made of the shares of its votes. The noise floor is that of "
            "counts / counts.sum(axis=1), without smoothing: pass these shares, or leave counts out."
        )
    return noise_floor(votes, measures, sample_weight=sample_weight, groups=groups)


def _check_counts(counts: Any) -> FloatArray:
    votes = np.asarray(counts, dtype=np.float64)
    if votes.ndim != 2 or votes.shape[1] < 2:
        raise DataError(f"counts has shape {votes.shape}. Give one row for each item and one column for each label.")
    bad = ~np.isfinite(votes) | (votes < 0) | (np.abs(votes - np.rint(votes)) > 1e-9)
    if bad.any():
        row, label = np.argwhere(bad)[0]
        raise DataError(
            f"counts holds {votes[row, label]:g} in row {row}, label {label}. A noise floor needs whole numbers of "
            "votes, without weights; answers of several labels have none."
        )
    empty = votes.sum(axis=1) == 0
    if empty.any():
        raise DataError(f"counts holds no vote in row {int(np.argmax(empty))}. Leave such rows out.")
    return np.rint(votes)


def _sample(unit: IntArray, seed: int) -> IntArray:
    """All rows, or whole units in random order up to `MOST_ROWS` rows."""
    if len(unit) <= MOST_ROWS:
        return np.arange(len(unit))
    sizes = np.bincount(unit)
    order = np.random.default_rng(seed).permutation(len(sizes))
    drawn = np.zeros(len(sizes), dtype=bool)
    drawn[order[: max(2, int(np.searchsorted(np.cumsum(sizes[order]), MOST_ROWS, side="right")))]] = True
    return np.flatnonzero(drawn[unit])


def _added(place: IntArray, n_places: int, weight: FloatArray) -> FloatArray:
    return np.bincount(place, weight, minlength=n_places).astype(np.float64)


@dataclass(frozen=True)
class _Parts:
    """What is known of each measure from the votes of a row, and what depends on the distribution behind them.

    Attributes
    ----------
    known : ndarray of shape (n_measures, n_rows)
        Unbiased estimates from the votes of the row; zero for measures that have none.
    expected : ndarray of shape (n_measures, n_vote_numbers, n_support)
        What is added, for each number of votes and each support point.
    number : ndarray of int of shape (n_rows,)
        Place of the number of votes of each row.
    """

    known: FloatArray
    expected: FloatArray
    number: IntArray

    def means(self, posterior: FloatArray, weight: FloatArray) -> FloatArray:
        """Weighted mean of each measure over the rows."""
        mass = np.zeros(self.expected.shape[1:])
        np.add.at(mass, self.number, weight[:, None] * posterior)
        return np.asarray((self.known @ weight + np.einsum("mvk,vk->m", self.expected, mass)) / weight.sum())


def _parts(votes: FloatArray, support: FloatArray, measures: list[Measure], seed: int) -> _Parts:
    totals = votes.sum(axis=1)
    numbers, number = np.unique(totals.astype(np.intp), return_inverse=True)
    known = np.zeros((len(measures), len(votes)))
    expected = np.zeros((len(measures), len(numbers), len(support)))
    several = np.maximum(totals, 2.0)
    pairs = (votes * (votes - 1)).sum(axis=1) / (several * (several - 1))  # unbiased for the sum of squares of d
    squares = (support**2).sum(axis=1)
    simulated = []
    for place, measure in enumerate(measures):
        if measure.name == "kullback_leibler":
            known[place] = _entropy_of_first_terms(votes) - entr(votes / totals[:, None]).sum(axis=1)
            expected[place] = _entropy_of_other_terms(support, numbers)
        elif measure.name == "squared_euclidean":
            known[place] = np.where(totals > 1, (1 - pairs) / totals, 0.0)
            expected[place] = np.where(numbers[:, None] > 1, 0.0, 1 - squares)
        elif measure.name == "inner_product":
            known[place] = np.where(totals > 1, pairs, 0.0)
            expected[place] = np.where(numbers[:, None] > 1, 0.0, squares)
        else:
            simulated.append(place)
    if simulated:
        expected[simulated] = _simulate(support, numbers, [measures[place] for place in simulated], seed)
    return _Parts(known, expected, number)


def _entropy_of_first_terms(votes: FloatArray) -> FloatArray:
    """Unbiased estimate of the terms k < m of the entropy."""
    totals = votes.sum(axis=1, keepdims=True)
    present = np.maximum(votes, 1.0)
    return np.asarray((votes / totals * (digamma(totals) - digamma(present))).sum(axis=1))


def _entropy_of_other_terms(support: FloatArray, numbers: IntArray) -> FloatArray:
    """The terms k ≥ m of the entropy of each support point, for each number m of votes."""
    left = -np.log(support)  # the sum of (1 − d)^k / k over all k
    power = np.ones_like(support)
    terms = np.zeros((len(numbers), len(support)))
    k = 1
    for place, number in enumerate(numbers):
        while k < min(int(number), _MOST_TERMS):
            power *= 1 - support
            left -= power / k
            k += 1
        if number <= _MOST_TERMS:
            terms[place] = (support * np.maximum(left, 0.0)).sum(axis=1)
    return terms


def _simulate(support: FloatArray, numbers: IntArray, measures: list[Measure], seed: int) -> FloatArray:
    """Expected value of each measure at each support point, for each number of votes.

    Of many different numbers of votes a few are simulated, and the others interpolated in the logarithm of m.
    """
    places = np.unique(np.linspace(0, len(numbers) - 1, min(len(numbers), MOST_VOTE_NUMBERS)).astype(np.intp))
    generator = np.random.default_rng(seed)
    truth = np.repeat(support, N_DRAWS, axis=0)
    table = np.empty((len(measures), len(places), len(support)))
    for column, place in enumerate(places):
        drawn = generator.multinomial(numbers[place], truth) / numbers[place]
        for row, measure in enumerate(measures):
            table[row, column] = measure.rowwise(drawn, truth).reshape(len(support), N_DRAWS).mean(axis=1)
    if len(places) == len(numbers):
        return table
    position = np.interp(np.log(numbers), np.log(numbers[places]), np.arange(len(places)))
    below = np.minimum(position.astype(np.intp), len(places) - 2)
    share = (position - below)[:, None]
    return np.asarray((1 - share) * table[:, below] + share * table[:, below + 1])
