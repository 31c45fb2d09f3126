r"""`noise_floor`: the score that the true distributions themselves would have on rows made of a few votes.

A row that was made of m votes is a sample :math:`\hat d` from its true distribution d. The noise floor of a measure is
its mean over such rows with the true distribution as the prediction, :math:`\mathrm E\, M(\hat d, d)`. It depends on d,
which is not known, and a plug-in estimate is biased.

**Kullback-Leibler.** For any prediction p,

.. math:: \mathrm E\,\mathrm{KL}(\hat d \| p) = \mathrm{KL}(d \| p) + [H(d) - \mathrm E H(\hat d)],

so the floor is the bias of the plug-in entropy [2]_, about :math:`(c-1)/2m` where all :math:`m d_j` are large. With

.. math:: H(d) = \sum_{k \ge 1} \frac1k \sum_j d_j (1-d_j)^k,

the terms k < m have unbiased estimates; their sum is :math:`\sum_j \frac{n_j}{m}[\psi(m) - \psi(n_j)]` [1]_.
Only the terms k ≥ m, which matter for labels with a degree of about 1/m and less, are extrapolated: they are computed
under the mixing distribution that is estimated from all rows (below).

**Squared Euclidean distance and inner product** are polynomials of d of second degree, and have unbiased estimates.

**All other measures.** The mean of the floor over the rows is a linear functional of the mixing distribution. It is
computed by simulation: true distributions from the estimated mixing distribution (given the votes of the row, where
rows have different numbers of votes), votes from these, and the measure between the two.

The standard error comes from the jackknife over ten blocks of rows (of groups, if there are any). It is the sampling
error of this estimate, and nothing more.

**What the votes do not show.** Degrees far below 1/m are hardly seen in m votes. Given all rows, the likelihood is
nearly the same whether the labels without votes share their mass evenly or one of them has it all; the maximum prefers
the second, so that the estimate is low, by up to a half where nearly unanimous rows differ in their main label. So it
is a lower bound, and the same functional under a smooth mixing distribution is the upper end. Its support points are
:math:`(n_i + a) / (m_i + ca)`: labels without votes have equal degrees. The pseudo-count a is chosen so that their
mass is, on average, the fraction of labels with exactly one vote (the Good-Turing estimate of the missing mass [5]_).

**The mixing distribution.** Each row of counts is multinomial given its true distribution, and true distributions are
draws from an unknown mixing distribution G. G is estimated by nonparametric maximum likelihood [3]_ [4]_ on a finite
set of support points :math:`s_k`: its weights maximise :math:`\sum_i \ln \sum_k g_k \prod_j s_{kj}^{n_{ij}}`, a concave
problem, by the EM algorithm. No shape of G is assumed.

References
----------
.. [1] Z. Zhang, "Entropy estimation in Turing's perspective", Neural Computation 24(5), 2012.
.. [2] L. Paninski, "Estimation of entropy and mutual information", Neural Computation 15(6), 2003.
.. [3] J. Kiefer and J. Wolfowitz, "Consistency of the maximum likelihood estimator in the presence of infinitely many
   incidental parameters", Annals of Mathematical Statistics 27(4), 1956.
.. [4] N. Laird, "Nonparametric maximum likelihood estimation of a mixing distribution", Journal of the American
   Statistical Association 73(364), 1978.
.. [5] I. J. Good, "The population frequencies of species and the estimation of population parameters", Biometrika
   40(3-4), 1953.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize
from scipy.special import digamma, entr, gammaln

from skldl.exceptions import DataError, Parameter
from skldl.metrics._measure import Measure, compute_rows
from skldl.metrics._registry import PAPER_MEASURES, resolve
from skldl.utils.column_names import label_names
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_distributions, check_weights, group_codes, in_label_order
from skldl.utils.votes import check_whole_votes

# The sizes below were chosen by hand. With them the bias over forty simulated tables is below 3 % of the floor, or 5 %
# with three votes a row; tests check this.
MAX_ROWS = 1000
"""More rows are represented by this many of them."""
N_BLOCKS = 10
"""Blocks of the jackknife."""
N_DRAWS = 20
"""Simulated rows of votes for each support point and number of votes."""
MAX_VOTE_NUMBERS = 12
"""Of more different numbers of votes, this many are simulated and the others interpolated."""
N_SUPPORT_ROWS = 200
DRAWS_PER_ROW = 2
"""Rows from whose posteriors support points are drawn, and draws from each."""
EM_ITERATIONS = 200
JACKKNIFE_ITERATIONS = 60
"""EM steps for all rows, and for each jackknife block, which starts at the weights for all rows."""
MAX_TERMS = 5000
"""Terms of the entropy series that are added; with more votes than that, the rest is below 1e-4 of the floor."""
MIN_DEGREE = 1e-9
"""Smallest degree of a support point, so that no observed label is impossible under all of them."""
MAX_ADDED = 100.0
"""Largest number of votes added to each label of a smooth support point: rows of few votes are then nearly uniform."""
SAME_FRACTIONS = 1e-3
"""Difference up to which degrees count as the fractions of votes: tables are often rounded to three digits."""
TINY = float(np.finfo(np.float64).tiny)
"""Keeps draws and densities that underflow from a division by zero."""


@dataclass(frozen=True)
class NoiseFloor:
    """Score of the true distributions on rows made of votes.

    Attributes
    ----------
    value : float
        Expected value of the measure: a lower bound (for a similarity such as cosine, whose floor is the largest value,
        an upper bound), since votes do not show how the mass of labels without votes is divided.
    standard_error : float
        Sampling error of ``value``, from the jackknife over blocks of rows; NaN with a single row or group. It does not
        contain what the votes do not show; the distance from ``value`` to ``smoothed`` does.
    n_rows : int
        Number of rows that the estimate rests on.
    n_votes : float
        Mean number of votes of a row.
    smoothed : float
        The other end: the same estimate with labels without votes sharing their mass evenly.

    Examples
    --------
    >>> from skldl.uncertainty import NoiseFloor
    >>> print(NoiseFloor(value=0.05, standard_error=0.002, n_rows=100, n_votes=10.0, smoothed=0.06))
    0.05 to 0.06
    """

    value: float
    standard_error: float
    n_rows: int
    n_votes: float
    smoothed: float

    def __str__(self) -> str:
        return f"{self.value:.4g} to {self.smoothed:.4g}" if self.smoothed != self.value else f"{self.value:.4g}"


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

    The estimate is a range. Its lower end rests on the distribution of true distributions that explains the votes best;
    it is too low where nearly unanimous rows have many labels without votes. The upper end divides the mass of these
    labels evenly. Both assume that no degree is exactly zero, which votes cannot show; only Clark's and the Canberra
    distance distinguish it from a tiny one.

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
    votes = check_whole_votes(counts)
    chosen = resolve(measures)
    weight = check_weights(sample_weight, len(votes))
    weight = np.ones(len(votes)) if weight is None else weight
    unit = np.arange(len(votes)) if groups is None else group_codes(groups, len(votes))
    kept = _sample(unit, random_state)
    votes, weight, unit = votes[kept], weight[kept], unit[kept]
    if votes.sum(axis=1).max() < 2:
        raise DataError("A noise floor needs rows with at least two votes: one vote alone does not show any noise.")
    # a few votes make many equal rows: everything below is computed once for each distinct row
    distinct, index = np.unique(votes, axis=0, return_inverse=True)

    def weight_of_distinct(row_weight: FloatArray) -> FloatArray:
        return np.bincount(index.ravel(), row_weight, minlength=len(distinct)).astype(np.float64)

    total = weight_of_distinct(weight)
    mixing = fit_mixing(distinct, total, fit_dirichlet(votes), random_state)
    parts = _parts(distinct, mixing.support, chosen, random_state)
    weights = mixing.weights(total)
    estimate = parts.means(mixing.posterior(weights), total)
    without_block = []
    smooth_support = smooth_points(votes, weight, random_state)
    smooth = Mixing.of(distinct, smooth_support)
    smoothed = _parts(distinct, smooth_support, chosen, random_state).means(
        smooth.posterior(smooth.weights(total)), total
    )
    for block in np.array_split(np.random.default_rng(random_state).permutation(unit.max() + 1), N_BLOCKS):
        rest = weight_of_distinct(np.where(np.isin(unit, block), 0.0, weight))
        if len(block) and rest.any():
            refitted = mixing.posterior(mixing.weights(rest, weights, JACKKNIFE_ITERATIONS))
            without_block.append(parts.means(refitted, rest))
    # the jackknife over B blocks: (B − 1) / B times the sum of squared differences from the mean
    n_blocks = len(without_block)
    variance = np.var(without_block, axis=0) * (n_blocks - 1) if n_blocks > 1 else np.full(len(chosen), np.nan)
    n_votes = float(votes.sum(axis=1).mean())
    return {
        measure.name: NoiseFloor(float(value), float(error), len(votes), n_votes, _worse(measure, value, other))
        for measure, value, error, other in zip(chosen, estimate, np.sqrt(variance), smoothed, strict=True)
        if np.isfinite(value)
    }


def _worse(measure: Measure, value: float, smoothed: float) -> float:
    """The smoothed estimate, or the estimate itself if that is worse: some measures of smooth rows are better."""
    return float(min(value, smoothed) if measure.higher_is_better else max(value, smoothed))


def floors_of_rows(
    D_true: Any, counts: Any, measures: Iterable[str | Measure], sample_weight: Any = None, groups: Any = None
) -> dict[str, NoiseFloor]:
    """Compute the `noise_floor` of rows whose distributions are known, too, and check that these are the same votes.

    Parameters
    ----------
    D_true : array-like or DataFrame of shape (n_samples, n_labels)
        Fractions of the votes.
    counts : array-like or DataFrame of shape (n_samples, n_labels)
        The votes; columns with the names of those of ``D_true`` may be in another order.
    measures, sample_weight, groups
        As in `noise_floor`.

    Returns
    -------
    dict
        As from `noise_floor`.
    """
    D = check_distributions(D_true, name="D_true")
    votes = check_whole_votes(counts)
    votes = in_label_order(votes, counts, label_names(D_true, D.shape[1]), len(D), name="counts")
    off = np.abs(votes / votes.sum(axis=1, keepdims=True) - D).max(axis=1) > SAME_FRACTIONS
    if off.any():
        row = int(np.argmax(off))
        raise DataError(
            f"Row {row} of D_true does not contain the fractions of its votes. The noise floor is that of "
            "counts / counts.sum(axis=1), without smoothing: pass these fractions, or leave out ",
            Parameter("counts"),
            ".",
            row=row,
        )
    return noise_floor(votes, measures, sample_weight=sample_weight, groups=groups)


def _sample(unit: IntArray, seed: int) -> IntArray:
    """Positions of all rows, or of whole units drawn at random, up to `MAX_ROWS` rows and at least two units."""
    if len(unit) <= MAX_ROWS:
        return np.arange(len(unit))
    sizes = np.bincount(unit)
    order = np.random.default_rng(seed).permutation(len(sizes))
    drawn = np.zeros(len(sizes), dtype=bool)
    drawn[order[: max(2, int(np.searchsorted(np.cumsum(sizes[order]), MAX_ROWS, side="right")))]] = True
    return np.flatnonzero(drawn[unit])


@dataclass(frozen=True)
class _Parts:
    """The floor of each measure for each row, as a known part and one that depends on the true distribution.

    Attributes
    ----------
    known : ndarray of shape (n_measures, n_rows)
        Unbiased estimates from the votes of the row; zero for measures that have none.
    expected : ndarray of shape (n_measures, n_vote_numbers, n_support)
        What is added, for each number of votes and each support point.
    number : ndarray of int of shape (n_rows,)
        Index of the number of votes of each row.
    """

    known: FloatArray
    expected: FloatArray
    number: IntArray

    def means(self, posterior: FloatArray, weight: FloatArray) -> FloatArray:
        """Weighted mean of each measure over the rows."""
        mass = np.zeros(self.expected.shape[1:])
        np.add.at(mass, self.number, weight[:, None] * posterior)
        return np.asarray((self.known @ weight + np.einsum("mvk,vk->m", self.expected, mass)) / weight.sum())


def _parts(votes: FloatArray, support: FloatArray, measures: Sequence[Measure], seed: int) -> _Parts:
    totals = votes.sum(axis=1)
    numbers, number = np.unique(totals.astype(np.intp), return_inverse=True)
    known = np.zeros((len(measures), len(votes)))
    expected = np.zeros((len(measures), len(numbers), len(support)))
    several = np.maximum(totals, 2.0)
    # fraction of the pairs of votes of a row that agree: an unbiased estimate of the sum of squares of d
    pairs = (votes * (votes - 1)).sum(axis=1) / (several * (several - 1))
    squares = (support**2).sum(axis=1)
    simulated = []
    for position, measure in enumerate(measures):
        if measure.name == "kullback_leibler":
            known[position] = _entropy_of_first_terms(votes) - entr(votes / totals[:, None]).sum(axis=1)
            expected[position] = _entropy_of_other_terms(support, numbers)
        elif measure.name == "squared_euclidean":  # E |d̂ − d|² = (1 − Σ d²) / m; one vote has no pair
            known[position] = np.where(totals > 1, (1 - pairs) / totals, 0.0)
            expected[position] = np.where(numbers[:, None] > 1, 0.0, 1 - squares)
        elif measure.name == "inner_product":  # E d̂·d = Σ d²
            known[position] = np.where(totals > 1, pairs, 0.0)
            expected[position] = np.where(numbers[:, None] > 1, 0.0, squares)
        else:
            simulated.append(position)
    if simulated:
        expected[simulated] = _simulate(support, numbers, [measures[position] for position in simulated], seed)
    return _Parts(known, expected, number)


def _entropy_of_first_terms(votes: FloatArray) -> FloatArray:
    """Unbiased estimate of the terms k < m of the entropy."""
    totals = votes.sum(axis=1, keepdims=True)
    present = np.maximum(votes, 1.0)
    return np.asarray((votes / totals * (digamma(totals) - digamma(present))).sum(axis=1))


def _entropy_of_other_terms(support: FloatArray, numbers: IntArray) -> FloatArray:
    """The terms k ≥ m of the entropy of each support point, for each number m of votes, in ascending order."""
    rest = -np.log(support)  # the sum of (1 − d)^k / k over all k, from which the terms k < m are subtracted
    power = np.ones_like(support)
    terms = np.zeros((len(numbers), len(support)))
    k = 1
    for position, number in enumerate(numbers):
        while k < min(int(number), MAX_TERMS):
            power *= 1 - support
            rest -= power / k
            k += 1
        if number <= MAX_TERMS:
            terms[position] = (support * np.maximum(rest, 0.0)).sum(axis=1)  # negative only by rounding
    return terms


def _simulate(support: FloatArray, numbers: IntArray, measures: Sequence[Measure], seed: int) -> FloatArray:
    """Expected value of each measure at each support point, for each number of votes, in ascending order.

    Of many different numbers of votes a few are simulated, and the others interpolated in the logarithm of m.
    """
    chosen = np.unique(np.linspace(0, len(numbers) - 1, min(len(numbers), MAX_VOTE_NUMBERS)).astype(np.intp))
    generator = np.random.default_rng(seed)
    truth = np.repeat(support, N_DRAWS, axis=0)
    table = np.empty((len(measures), len(chosen), len(support)))
    for column, number in enumerate(numbers[chosen]):
        drawn = generator.multinomial(number, truth) / number
        for row, values in enumerate(compute_rows(drawn, truth, measures).values()):
            table[row, column] = values.reshape(len(support), N_DRAWS).mean(axis=1)
    if len(chosen) == len(numbers):
        return table
    position = np.interp(np.log(numbers), np.log(numbers[chosen]), np.arange(len(chosen)))
    below = np.minimum(position.astype(np.intp), len(chosen) - 2)
    fraction = (position - below)[:, None]
    return np.asarray((1 - fraction) * table[:, below] + fraction * table[:, below + 1])


@dataclass(frozen=True)
class Mixing:
    """Support points of the mixing distribution, and the likelihood of each row of counts under each of them.

    Attributes
    ----------
    support : ndarray of shape (n_support, n_labels)
        Distributions.
    likelihood : ndarray of shape (n_rows, n_support)
        Likelihood of the counts of each row, divided by its largest value.
    """

    support: FloatArray
    likelihood: FloatArray

    @classmethod
    def of(cls, counts: FloatArray, support: FloatArray) -> "Mixing":
        """Compute the likelihood of counts, an array of shape (n_rows, n_labels), under each support point."""
        log_likelihood = counts @ np.log(support).T
        return cls(support, np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True)))

    def weights(
        self, row_weight: FloatArray, start: FloatArray | None = None, iterations: int = EM_ITERATIONS
    ) -> FloatArray:
        """Maximum-likelihood weights of the support points, by EM.

        Parameters
        ----------
        row_weight : ndarray of shape (n_rows,)
            Weight of each row in the likelihood; zero leaves it out.
        start : ndarray of shape (n_support,), default=None
            Weights to start from; equal ones if None.
        iterations : int, default=200
            Number of EM steps. The likelihood grows with each of them.

        Returns
        -------
        ndarray of shape (n_support,)
            Weights that sum to one.
        """
        n_support = len(self.support)
        normalised = row_weight / row_weight.sum()
        weights = np.full(n_support, 1.0 / n_support) if start is None else start
        for _ in range(iterations):
            density = np.maximum(self.likelihood @ weights, TINY)
            weights = weights * (self.likelihood.T @ (normalised / density))
            weights /= weights.sum()
        return weights

    def posterior(self, weights: FloatArray) -> FloatArray:
        """Probability of each support point for each row.

        Parameters
        ----------
        weights : ndarray of shape (n_support,)
            Weights of the support points.

        Returns
        -------
        ndarray of shape (n_rows, n_support)
            Rows that sum to one.
        """
        joint = self.likelihood * weights
        return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), TINY))


def fit_mixing(counts: FloatArray, row_weight: FloatArray, prior: FloatArray, seed: int) -> Mixing:
    """Choose the support points of the mixing distribution, and compute the likelihoods.

    Parameters
    ----------
    counts : ndarray of shape (n_rows, n_labels)
        Votes; every row has at least one.
    row_weight : ndarray of shape (n_rows,)
        Weight of each row.
    prior : ndarray of shape (n_labels,)
        Parameters of a Dirichlet distribution fitted to the counts, as a first guess of G.
    seed : int
        Seed of the rows, and of the draws from their posteriors.

    Returns
    -------
    Mixing
        Support points (draws from the first guess, and from the posteriors of rows under it) and the likelihoods.
        Means of posteriors would give every label without a vote the same small degree, and the floor would be too
        high.
    """
    generator = np.random.default_rng(seed)
    rows = counts[generator.choice(len(counts), N_SUPPORT_ROWS, p=row_weight / row_weight.sum())]
    # normalised gamma variables are a draw from a Dirichlet distribution; near parameters of 0 all of a row underflow
    points = [prior[None], generator.standard_gamma(np.maximum(prior, 1e-2), size=(N_SUPPORT_ROWS, len(prior)))]
    points += [generator.standard_gamma(np.maximum(rows + prior, 1e-3)) for _ in range(DRAWS_PER_ROW)]
    support = np.maximum(
        np.concatenate([p / np.maximum(p.sum(axis=1, keepdims=True), TINY) for p in points]), MIN_DEGREE
    )
    support /= support.sum(axis=1, keepdims=True)
    return Mixing.of(counts, support)


def smooth_points(counts: FloatArray, row_weight: FloatArray, seed: int) -> FloatArray:
    """Choose support points in which labels without votes have equal degrees.

    Parameters
    ----------
    counts : ndarray of shape (n_rows, n_labels)
        Votes; every row has at least one.
    row_weight : ndarray of shape (n_rows,)
        Weight of each row.
    seed : int
        Seed of the rows.

    Returns
    -------
    ndarray of shape (n_support, n_labels)
        Fractions of some rows after adding the same number of votes to each label.
    """
    totals, n_labels = counts.sum(axis=1), counts.shape[1]
    mass = row_weight * (totals > 1)  # a single vote says nothing about the others
    fractions = (counts == 1).sum(axis=1) / totals
    # Good-Turing, with one more row that has one single vote: a few unanimous rows do not show that nothing is missing
    one = mass[mass > 0].mean()
    missing = float(mass @ fractions + one / totals[mass > 0].mean()) / float(mass.sum() + one)
    unseen = (counts == 0).sum(axis=1)

    def excess(log_count: float) -> float:
        added = np.exp(log_count)
        return float(mass @ (unseen * added / (totals + n_labels * added)) / mass.sum()) - missing

    low, high = np.log(MIN_DEGREE), np.log(MAX_ADDED)
    bounds = excess(low), excess(high)
    found = low if bounds[0] > 0 else high if bounds[1] < 0 else optimize.brentq(excess, low, high)
    rows = np.random.default_rng(seed).choice(len(counts), N_SUPPORT_ROWS, p=row_weight / row_weight.sum())
    points = np.unique(counts[rows], axis=0) + np.exp(found)
    return np.asarray(np.maximum(points / points.sum(axis=1, keepdims=True), MIN_DEGREE))


def fit_dirichlet(counts: FloatArray) -> FloatArray:
    """Fit a Dirichlet distribution to the true distributions behind counts.

    Its mean is that of all votes, its precision has the maximum likelihood.

    Parameters
    ----------
    counts : ndarray of shape (n_rows, n_labels)
        Votes.

    Returns
    -------
    ndarray of shape (n_labels,)
        Parameters of the distribution.
    """
    pooled = counts.sum(axis=0) + 0.5  # half a vote more for each label, so that none has degree 0
    mean = pooled / pooled.sum()
    totals = counts.sum(axis=1)

    def minus_log_likelihood(log_precision: float) -> float:
        alpha = np.exp(log_precision) * mean
        likelihood = gammaln(alpha.sum()) - gammaln(totals + alpha.sum())
        return -float((likelihood + (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=1)).sum())

    # precisions from nearly all mass on one label to next to no variation between the rows
    best = optimize.minimize_scalar(minus_log_likelihood, bounds=(np.log(1e-2), np.log(1e4)), method="bounded")
    return np.asarray(np.exp(best.x) * mean)
