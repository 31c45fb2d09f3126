r"""`DawidSkene`: estimates of the true label of each item and of the errors of each rater, from votes alone.

With the probability p_k of each true label and the confusion matrices π of the raters, the evidence of item i is

.. math:: Z_i = \sum_k p_k \prod_{r \in R_i} \pi_{r k y_{ir}}, \qquad T_{ik} = p_k \prod_r \pi_{r k y_{ir}} / Z_i

The votes are a sparse matrix of ones: a row for each item, a column for each pair of rater and answer. The E-step is
its product with ln π, the M-step starts from its transpose times T: both cost O(votes × labels), and no array of shape
(items, raters) is ever built. The M-step maximises

.. math:: \sum_{kl} N_{rkl} \ln \pi_{rkl}

for the expected counts N (pseudo-counts of the prior included) among the confusion matrices that the model of the
raters allows. Every step increases the objective, the logarithm of the posterior density,
Σ ln Z_i + Σ α_kl ln π_rkl + Σ γ ln p_k. Where the truths of some items are held fixed (`Evidence.held_counts`), it is
the free energy of Neal and Hinton, up to their entropy.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse, special
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skldl.annotators._triples import Triples, check_single, gold_codes, read_triples
from skldl.exceptions import DataError, DimensionError, Parameter, UnknownLabelError
from skldl.utils.parameters import COUNT, NOT_NEGATIVE, Constraint, check_parameters, number, one_of
from skldl.utils.typing import BoolArray, FloatArray, IntArray
from skldl.utils.warn import warn

MIN_PROBABILITY = 1e-300  # replaces zero, so that logarithms stay finite; far above the smallest normal number, 2e-308

Maximizer = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""An M-step: from expected counts (n_raters, n_labels, n_labels; rater, truth, answer) and the parameters of the last
step to confusion matrices, whose rows sum to one, and the parameters behind them (an empty array if there are none)."""
NO_PARAMETERS: FloatArray = np.zeros((0, 2))


def full_confusion(counts: FloatArray, start: FloatArray = NO_PARAMETERS) -> tuple[FloatArray, FloatArray]:
    """One confusion matrix for each rater; a row without counts is uniform."""
    totals = counts.sum(axis=2, keepdims=True)
    uniform = 1.0 / counts.shape[2]
    return np.divide(counts, totals, out=np.full_like(counts, uniform), where=totals > 0), start


def one_coin(counts: FloatArray, start: FloatArray = NO_PARAMETERS) -> tuple[FloatArray, FloatArray]:
    """One probability of a right answer for each rater; all wrong labels are equally probable."""
    n_labels = counts.shape[2]
    right = np.trace(counts, axis1=1, axis2=2)
    total = counts.sum(axis=(1, 2))
    reliability = np.divide(right, total, out=np.full(len(counts), 1.0 / n_labels), where=total > 0)
    wrong = (1.0 - reliability) / (n_labels - 1)
    confusion = np.broadcast_to(wrong[:, None, None], counts.shape).copy()
    diagonal = np.arange(n_labels)
    confusion[:, diagonal, diagonal] = reliability[:, None]
    return confusion, start


class OrderedProbit:
    r"""Ordered probit model: a rater perceives the true value plus a severity and noise, and names the label there.

    With the values v of the ordered labels and the midpoints t between them,

    .. math:: \pi_{rkl} = \Phi(a_r (t_l - v_k) - m_r) - \Phi(a_r (t_{l-1} - v_k) - m_r)

    where a = 1/spread, m = severity/spread, and the outer thresholds are infinite. The logarithm of such a difference
    is concave in (a, m), so Newton's method with step halving finds the maximum for all raters at once.

    Parameters
    ----------
    values : ndarray of shape (n_labels,)
        Values of the labels, ascending.
    """

    _MAX_STEPS = 2  # Newton steps within one M-step; the next M-step starts where they end
    _MAX_SLOPE = 50.0  # in units of one over the smallest distance of two labels: errors then have no probability
    _MIN_SLOPE = 1e-3  # in the same unit: answers at both ends are then equally probable whatever the truth
    _RIDGE = 1e-9  # relative: keeps the Hessian invertible where answers do not determine both parameters
    _MAX_EDGE = 40.0  # of an edge in standard deviations: the normal density beyond is 0 in double precision
    _MIN_STEP = 1e-9  # fraction of a Newton step at which halving ends
    _MIN_GAIN = 1e-9  # relative gain of a step at which a rater has converged within one M-step

    def __init__(self, values: FloatArray) -> None:
        self.values = values
        middle = (values[1:] + values[:-1]) / 2
        self._unit = float(np.diff(values).min())
        self._upper = np.concatenate([middle, [np.inf]])
        self._lower = np.concatenate([[-np.inf], middle])

    def __call__(self, counts: FloatArray, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Maximise, starting at given parameters; new raters start at severity 0 and a spread of one step."""
        fresh = np.tile([1.0 / self._unit, 0.0], (len(counts) - len(start), 1))
        parameters = np.concatenate([start, fresh])
        moving = np.arange(len(counts))
        for _ in range(self._MAX_STEPS):
            parameters[moving], gains = self._newton_step(counts[moving], parameters[moving])
            moving = moving[gains]
            if not len(moving):
                break
        return self.probabilities(parameters[:, 0], parameters[:, 1]), parameters

    def probabilities(self, slope: FloatArray, shift: FloatArray) -> FloatArray:
        """Confusion matrices for given parameters."""
        upper, lower = self._edges(slope, shift)
        flip = lower > 0  # differences of upper tails lose precision: use the lower tails
        return np.asarray(
            special.ndtr(np.where(flip, -lower, upper)) - special.ndtr(np.where(flip, -upper, lower)), dtype=np.float64
        )

    def _edges(self, slope: FloatArray, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        a, m = slope[:, None, None], shift[:, None, None]
        upper = a * (self._upper[None, None, :] - self.values[None, :, None]) - m
        lower = a * (self._lower[None, None, :] - self.values[None, :, None]) - m
        return upper, lower

    def _value(self, counts: FloatArray, slope: FloatArray, shift: FloatArray) -> FloatArray:
        probability = np.maximum(self.probabilities(slope, shift), MIN_PROBABILITY)
        return np.asarray((counts * np.log(probability)).sum(axis=(1, 2)))

    def _newton_step(self, counts: FloatArray, start: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Take one damped step for every rater; also return which raters have not converged."""
        gradient, hessian = self._derivatives(counts, start[:, 0], start[:, 1])
        # 1e-12: also for a rater without votes
        ridge = self._RIDGE * (np.abs(hessian[:, [0, 1], [0, 1]]).sum(axis=1) + 1e-12)
        hessian[:, [0, 1], [0, 1]] -= ridge[:, None]
        step = np.linalg.solve(hessian, -gradient[:, :, None])[:, :, 0]
        before = self._value(counts, start[:, 0], start[:, 1])
        best, gain = start.copy(), np.zeros(len(counts))
        waiting, size = np.arange(len(counts)), 1.0
        while len(waiting) and size > self._MIN_STEP:  # step halving, for all raters that have not improved yet
            tried = start[waiting] + size * step[waiting]
            tried[:, 0] = np.clip(tried[:, 0], self._MIN_SLOPE / self._unit, self._MAX_SLOPE / self._unit)
            better = self._value(counts[waiting], tried[:, 0], tried[:, 1]) - before[waiting]
            taken = better > 0
            best[waiting[taken]], gain[waiting[taken]] = tried[taken], better[taken]
            # by concavity no step can gain more than this; below the rounding error of the value, stop
            promised = size * (gradient[waiting] * step[waiting]).sum(axis=1)
            waiting = waiting[~taken & (promised > 1e-12 * (1.0 + np.abs(before[waiting])))]
            size *= 0.5
        return best, gain > self._MIN_GAIN * (1.0 + np.abs(before))

    def _derivatives(self, counts: FloatArray, slope: FloatArray, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and Hessian in (slope, shift) of the log-likelihood, for each rater."""
        probability = np.maximum(self.probabilities(slope, shift), MIN_PROBABILITY)
        # first and second derivatives of the probabilities: contributions of the upper edges minus those of the lower
        d_slope, d_shift, dd_slope, dd_mixed, dd_shift = np.zeros((5, *counts.shape))
        thresholds = (self._upper, 1.0), (self._lower, -1.0)
        for edge, (threshold, sign) in zip(self._edges(slope, shift), thresholds, strict=True):
            z = np.clip(edge, -self._MAX_EDGE, self._MAX_EDGE)
            density = sign * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
            # derivative of the edge by the slope (by the shift it is −1); at an infinite edge any finite number serves
            x = np.where(np.isfinite(threshold), threshold, 0.0) - self.values[:, None]
            curve = -z * density
            d_slope += x * density
            d_shift -= density
            dd_slope += x**2 * curve
            dd_mixed -= x * curve
            dd_shift += curve
        # quotients first: squares of the smallest probabilities would underflow
        d_slope, d_shift = d_slope / probability, d_shift / probability
        dd_slope, dd_mixed, dd_shift = dd_slope / probability, dd_mixed / probability, dd_shift / probability
        gradient = np.stack([(counts * d_slope).sum(axis=(1, 2)), (counts * d_shift).sum(axis=(1, 2))], axis=1)
        hessian = np.empty((len(counts), 2, 2))
        hessian[:, 0, 0] = (counts * (dd_slope - d_slope**2)).sum(axis=(1, 2))
        hessian[:, 1, 1] = (counts * (dd_shift - d_shift**2)).sum(axis=(1, 2))
        hessian[:, 0, 1] = hessian[:, 1, 0] = (counts * (dd_mixed - d_slope * d_shift)).sum(axis=(1, 2))
        return gradient, hessian


@dataclass
class Evidence:
    """Votes of some items, and fixed expected counts of the other items.

    Attributes
    ----------
    item, rater, label : ndarray of int
        The votes; items are counted from 0 to ``n_items`` − 1.
    n_items, n_raters, n_labels : int
        Sizes.
    gold : ndarray of shape (n_items,)
        Known true label of each item, or −1.
    held_counts : ndarray of shape (n_raters, n_labels, n_labels)
        Expected counts of all other items.
    held_truths : ndarray of shape (n_labels,)
        Sum of the expected truths of all other items.
    """

    item: IntArray
    rater: IntArray
    label: IntArray
    n_items: int
    n_raters: int
    n_labels: int
    gold: IntArray
    held_counts: FloatArray
    held_truths: FloatArray
    _votes: Any = field(init=False, repr=False)
    _votes_by_rater: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape = (self.n_items, self.n_raters * self.n_labels)
        column = self.rater * self.n_labels + self.label
        ones = np.ones(len(self.item))
        self._votes = sparse.csr_matrix((ones, (self.item, column)), shape=shape)
        self._votes_by_rater = self._votes.T.tocsr()

    def fractions(self) -> FloatArray:
        """Fraction of each label among the votes of each item: the start of EM."""
        counts = np.zeros((self.n_items, self.n_labels))
        np.add.at(counts, (self.item, self.label), 1.0)
        return self._with_gold(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))

    def log_joint(self, prior: FloatArray, confusion: FloatArray) -> FloatArray:
        """Logarithm of p_k Π π for each item and label."""
        by_answer = np.log(np.maximum(confusion, MIN_PROBABILITY)).transpose(0, 2, 1)
        joint = self._votes @ by_answer.reshape(self.n_raters * self.n_labels, self.n_labels)
        joint += np.log(np.maximum(prior, MIN_PROBABILITY))
        return np.asarray(joint)

    def truths(self, log_joint: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior of each item, and the logarithm of its evidence."""
        evidence = special.logsumexp(log_joint, axis=1)
        known = np.flatnonzero(self.gold >= 0)
        posterior = self._with_gold(np.exp(log_joint - evidence[:, None]))
        evidence[known] = log_joint[known, self.gold[known]]
        return posterior, evidence

    def counts(self, truths: FloatArray) -> FloatArray:
        """Expected number of answers l of each rater to items with the true label k, for these items alone."""
        by_answer = self._votes_by_rater @ truths
        return np.asarray(by_answer.reshape(self.n_raters, self.n_labels, self.n_labels).transpose(0, 2, 1))

    def _with_gold(self, truths: FloatArray) -> FloatArray:
        """Replace the posterior of items whose true label is known."""
        known = np.flatnonzero(self.gold >= 0)
        truths[known] = 0.0
        truths[known, self.gold[known]] = 1.0
        return truths


@dataclass
class Solution:
    """Result of EM.

    Attributes
    ----------
    truths : ndarray of shape (n_items, n_labels)
        Posterior of each item.
    counts, truth_totals : ndarray
        Expected counts of all items, the held ones included.
    prior : ndarray of shape (n_labels,)
        Probability of each true label.
    confusion : ndarray of shape (n_raters, n_labels, n_labels)
        How raters err.
    parameters : ndarray
        Parameters of the raters from which the confusion matrices follow, if their model has such.
    objective : list of float
        Value before each step.
    converged : bool
        Whether the last step gained less than the tolerance.
    """

    truths: FloatArray
    counts: FloatArray
    truth_totals: FloatArray
    prior: FloatArray
    confusion: FloatArray
    parameters: FloatArray
    objective: list[float]
    converged: bool


def run_em(
    evidence: Evidence,
    truths: FloatArray,
    maximize: Maximizer,
    parameters: FloatArray,
    pseudo_counts: FloatArray,
    pseudo_truths: float,
    *,
    max_iter: int,
    tol: float,
) -> Solution:
    """Alternate M- and E-steps from given truths until a step gains less than ``tol`` for each vote."""
    objective: list[float] = []
    converged = False
    for _ in range(max_iter):
        counts = evidence.held_counts + evidence.counts(truths)
        totals = evidence.held_truths + truths.sum(axis=0)
        confusion, parameters = maximize(counts + pseudo_counts, parameters)
        prior = (totals + pseudo_truths) / (totals.sum() + pseudo_truths * len(totals))
        log_confusion, log_prior = (
            np.log(np.maximum(confusion, MIN_PROBABILITY)),
            np.log(np.maximum(prior, MIN_PROBABILITY)),
        )
        truths, log_evidence = evidence.truths(evidence.log_joint(prior, confusion))
        held = float((evidence.held_counts * log_confusion).sum() + (evidence.held_truths * log_prior).sum())
        penalty = float((pseudo_counts * log_confusion).sum() + pseudo_truths * log_prior.sum())
        objective.append(float(log_evidence.sum()) + held + penalty)
        if len(objective) > 1 and objective[-1] - objective[-2] < tol * len(evidence.item):
            converged = True
            break
    counts = evidence.held_counts + evidence.counts(truths)
    totals = evidence.held_truths + truths.sum(axis=0)
    return Solution(truths, counts, totals, prior, confusion, parameters, objective, converged)


def _is_pseudo_counts(value: Any) -> bool:
    """Whether a value is a table of finite numbers of at least zero."""
    try:
        counts = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return bool(counts.ndim == 2 and np.isfinite(counts).all() and (counts >= 0).all())


class DawidSkene(BaseEstimator):
    r"""Estimate one true label for each item and the errors of each rater, by expectation maximisation.

    Rater r answers label l to an item whose true label is k with probability π_rkl, independently of the other raters
    [1]_. EM alternates between the posterior of the truth and the confusion matrices, with a Dirichlet prior on their
    rows. The posterior estimates which label is true; it is not a label distribution, since it tends to zeros and a
    single one as the number of votes grows. To keep the disagreement of the raters, pass the fitted model to
    ``skldl.distributions.from_votes(votes, weights=model)``.

    Parameters
    ----------
    model : {"confusion", "one-coin", "ordinal"}, default="confusion"
        How raters err. "confusion": a matrix of its own for each rater. "one-coin": right with one probability,
        errors spread evenly; for few votes per rater. "ordinal": labels in their order (numbers, or as ``labels``
        lists them); each rater answers as if the truth were shifted by a severity, with noise of some spread.
    prior_strength : float or array-like of shape (n_labels, n_labels), default=2.0
        Pseudo-votes. A number: for each row of the confusion matrix ("confusion"), or for each rater in all
        ("one-coin", "ordinal"). An array: the pseudo-count of each answer (column) to each truth (row). 0 is maximum
        likelihood.
    prior_accuracy : float in (0, 1), default=0.7
        Fraction of the pseudo-votes that name the true label; the others are spread evenly. Not used with an array.
    max_iter : int, default=200
        Maximum number of steps of EM.
    tol : float, default=1e-6
        EM ends when a step raises the log posterior by less than this for each vote.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_items, n_labels)
        Probability that each label is the true one.
    labels_ : list
        The most probable label of each item; of several equal ones, the first.
    class_prior_ : ndarray of shape (n_labels,)
        Probability of each true label.
    confusion_ : ndarray of shape (n_annotators, n_labels, n_labels)
        Probability of each answer (last axis) to each truth.
    severity_, spread_ : ndarray of shape (n_annotators,)
        Shift of each rater and standard deviation of the noise, in the unit of the labels. Only with
        ``model="ordinal"``.
    items_, annotators_, label_names_ : list
        Names, in the order of the arrays. Annotators have the order that they have in
        ``skldl.distributions.from_votes(votes).annotators``: that of the columns of a wide table, that of first
        appearance in a long one. One without a vote has the confusion matrix of the prior.
    objective_ : list of float
        Log posterior density after each step of the last call.
    n_iter_ : int
        Number of steps of the last call.

    Notes
    -----
    A step costs O(votes × labels), and memory grows with votes + items × labels + raters × labels². EM finds a local
    maximum; it starts from the fractions of the votes.

    ``partial_fit`` is incremental EM [2]_: only items with new votes get a new posterior, while all raters of these
    items learn from all that they ever answered. Each step raises the same objective as ``fit``.

    References
    ----------
    .. [1] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
       Applied Statistics 28(1), 1979.
    .. [2] R. M. Neal and G. E. Hinton, "A view of the EM algorithm that justifies incremental, sparse, and other
       variants", in Learning in Graphical Models, 1998.

    Examples
    --------
    >>> from skldl.annotators import DawidSkene
    >>> votes = [["a", "a", "b"], ["b", "b", "a"], ["a", "a", "a"], ["b", "b", "a"], ["a", "a", "b"]]
    >>> model = DawidSkene("one-coin").fit(votes)
    >>> model.labels_
    ['a', 'b', 'a', 'b', 'a']
    >>> model.confusion_[:, 0, 0].round(2)  # probability that each rater is right
    array([0.91, 0.91, 0.34])
    """

    _constraints: ClassVar = {
        "model": one_of("confusion", "one-coin", "ordinal"),
        "prior_strength": NOT_NEGATIVE | Constraint("a square array of such numbers", _is_pseudo_counts),
        "prior_accuracy": number(above=0, below=1),
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
    }

    def __init__(
        self,
        model: str = "confusion",
        *,
        prior_strength: Any = 2.0,
        prior_accuracy: float = 0.7,
        max_iter: int = 200,
        tol: float = 1e-6,
    ) -> None:
        self.model = model
        self.prior_strength = prior_strength
        self.prior_accuracy = prior_accuracy
        self.max_iter = max_iter
        self.tol = tol

    def fit(
        self,
        votes: Any,
        *,
        item: Any = None,
        annotator: Any = None,
        label: Any = None,
        labels: Any = None,
        gold: Any = None,
    ) -> Self:
        """Learn from votes.

        Parameters
        ----------
        votes : table
            As in `skldl.distributions.from_votes`, with one label for each vote. Wide: one row per item, one column
            per rater. Long: a DataFrame or dict of columns, one row per vote.
        item, annotator, label : column names, default=None
            The three columns of a long table; None for a wide one.
        labels : sequence, default=None
            All labels, in their order. None takes those that occur, sorted.
        gold : dict or Series, default=None
            Known true labels, by item. Items without votes are kept for later calls of ``partial_fit``.

        Returns
        -------
        self
            The fitted model.
        """
        check_parameters(self)
        return self._fit_triples(read_triples(votes, item=item, annotator=annotator, label=label, labels=labels), gold)

    def _fit_triples(self, triples: Triples, gold: Any = None) -> Self:
        gold_of = gold_codes(gold, triples.labels)
        if gold_of and not any(name in gold_of for name in triples.items):
            raise DataError("gold names none of the items in votes. Its keys are names of items.")
        evidence = self._evidence(triples, gold_of)
        solution = self._solve(evidence, evidence.fractions(), NO_PARAMETERS, triples.labels)
        self._publish(triples, gold_of, solution.truths, solution)
        return self

    def partial_fit(
        self,
        votes: Any,
        *,
        item: Any = None,
        annotator: Any = None,
        label: Any = None,
        labels: Any = None,
        gold: Any = None,
    ) -> Self:
        """Learn from further votes, of known or new raters, for known or new items.

        Parameters
        ----------
        votes, item, annotator, label : as in `fit`
            The further votes. A rater answers once to an item, in all calls together.
        labels : sequence, default=None
            In the first call: all labels that will ever occur. In later calls they stay as they are.
        gold : dict or Series, default=None
            Further true labels, by item.

        Returns
        -------
        self
            The fitted model.
        """
        if not hasattr(self, "posterior_"):
            return self.fit(votes, item=item, annotator=annotator, label=label, labels=labels, gold=gold)
        check_parameters(self)
        if self.model != self._fitted_kind:
            raise DataError(
                f"The model was fitted as {self._fitted_kind!r}, not with ",
                Parameter("model", self.model),
                ". Call fit with all votes.",
            )
        known = self._triples
        if labels is not None and list(labels) != known.labels:
            raise UnknownLabelError(f"The labels are {known.labels} since the first call and cannot change.")
        new = read_triples(votes, item=item, annotator=annotator, label=label, labels=known.labels)
        joined = _joined(known, new)
        check_single(joined)
        gold_of = self._gold_of | gold_codes(gold, known.labels)
        changed = {name for name in gold_of if gold_of[name] != self._gold_of.get(name)}
        n_items, n_raters, n_labels = len(joined.items), len(joined.raters), len(known.labels)
        touched = np.zeros(n_items, dtype=bool)
        touched[joined.item[len(known) :]] = True
        touched[[position for position, name in enumerate(joined.items) if name in changed] if changed else []] = True
        rows = np.flatnonzero(touched)
        position = np.full(n_items, -1, dtype=np.intp)
        position[rows] = np.arange(len(rows))
        old = touched[joined.item[: len(known)]]
        held = np.zeros((n_raters, n_labels, n_labels))
        held[: len(known.raters)] = self._counts
        removed = known.item[old]
        by_answer = np.zeros((n_raters * n_labels, n_labels))
        np.add.at(by_answer, known.rater[old] * n_labels + known.label[old], self.posterior_[removed])
        held -= by_answer.reshape(n_raters, n_labels, n_labels).transpose(0, 2, 1)
        known_rows = rows[rows < len(self.posterior_)]
        mine = touched[joined.item]
        evidence = Evidence(
            position[joined.item[mine]],
            joined.rater[mine],
            joined.label[mine],
            len(rows),
            n_raters,
            n_labels,
            _gold_array(joined.items, gold_of)[rows],
            np.maximum(held, 0.0),  # differences of sums: rounding may leave −1e-16
            np.maximum(self._truth_totals - self.posterior_[known_rows].sum(axis=0), 0.0),
        )
        confusion = np.concatenate([self.confusion_, self._typical(n_raters - len(known.raters), n_labels)])
        truths, _ = evidence.truths(evidence.log_joint(self.class_prior_, confusion))
        solution = self._solve(evidence, truths, self._parameters, known.labels)
        posterior = np.zeros((n_items, n_labels))
        posterior[: len(self.posterior_)] = self.posterior_
        posterior[rows] = solution.truths
        self._publish(joined, gold_of, posterior, solution)
        return self

    def rater_weights(self) -> dict[Any, float]:
        """Weight of each rater, for ``skldl.distributions.from_votes(votes, weights=...)``.

        Returns
        -------
        dict
            From rater to weight: the column ``weight`` of `rater_table`.
        """
        from skldl.annotators._rater_table import rater_table

        return rater_table(self).rater_weights()

    def log_joint(self) -> FloatArray:
        """Logarithm of the joint probability of each item's votes and each true label.

        Returns
        -------
        ndarray of shape (n_items, n_labels)
            Minus its log-sum over labels, this is the logarithm of the posterior, gold items apart.
        """
        check_is_fitted(self, "posterior_")
        evidence = self._evidence(self._triples, self._gold_of)
        return evidence.log_joint(self.class_prior_, self.confusion_)

    @staticmethod
    def _evidence(votes: Triples, gold_of: dict[Any, int]) -> Evidence:
        """All votes, without held statistics."""
        n_raters, n_labels = len(votes.raters), len(votes.labels)
        return Evidence(
            votes.item,
            votes.rater,
            votes.label,
            len(votes.items),
            n_raters,
            n_labels,
            _gold_array(votes.items, gold_of),
            np.zeros((n_raters, n_labels, n_labels)),
            np.zeros(n_labels),
        )

    def _solve(self, evidence: Evidence, truths: FloatArray, parameters: FloatArray, labels: list[Any]) -> Solution:
        solution = run_em(
            evidence,
            truths,
            self._noise_model(labels),
            parameters,
            self._pseudo_counts(evidence.n_labels),
            self._pseudo_truths(evidence.n_labels),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        if not solution.converged:
            warn(
                f"EM stopped at max_iter={self.max_iter}, and the last step gained more than tol={self.tol:g} for each "
                "vote. Raise max_iter or tol.",
                ConvergenceWarning,
            )
        return solution

    def _publish(self, votes: Triples, gold_of: dict[Any, int], posterior: FloatArray, solution: Solution) -> None:
        self._triples, self._gold_of, self._fitted_kind = votes, gold_of, self.model
        self._counts, self._truth_totals = solution.counts, solution.truth_totals
        self._parameters = solution.parameters
        self.posterior_, self.class_prior_, self.confusion_ = posterior, solution.prior, solution.confusion
        self.objective_, self.n_iter_ = solution.objective, len(solution.objective)
        self.items_, self.annotators_, self.label_names_ = votes.items, votes.raters, votes.labels
        self.labels_ = [votes.labels[best] for best in posterior.argmax(axis=1)]
        if self.model == "ordinal":
            slope, shift = solution.parameters.T
            self.severity_, self.spread_ = shift / slope, 1.0 / slope

    def _noise_model(self, labels: list[Any]) -> Maximizer:
        """The M-step of the model of the raters."""
        if self.model == "confusion":
            return full_confusion
        if self.model == "one-coin":
            return one_coin
        values = label_values(labels)
        if values is None:  # names in their order: each a step from the next
            values = np.arange(len(labels), dtype=np.float64)
        if values.tolist() != sorted(values):
            raise DataError(Parameter("model", "ordinal"), f" needs labels in ascending order, not {labels}.")
        return OrderedProbit(values)

    def _pseudo_counts(self, n_labels: int) -> FloatArray:
        """Pseudo-counts of each answer (column) to each truth (row)."""
        strength = np.asarray(self.prior_strength, dtype=np.float64)
        if strength.ndim == 2:
            if strength.shape != (n_labels, n_labels):
                raise DimensionError(
                    f"prior_strength has shape {strength.shape}, but there are {n_labels} labels: pass one row and one "
                    "column for each."
                )
            return strength
        each_row = float(strength) if self.model == "confusion" else float(strength) / n_labels
        pseudo = np.full((n_labels, n_labels), each_row * (1 - self.prior_accuracy) / (n_labels - 1))
        np.fill_diagonal(pseudo, each_row * self.prior_accuracy)
        return pseudo

    def _pseudo_truths(self, n_labels: int) -> float:
        """Pseudo-count of each true label."""
        strength = np.asarray(self.prior_strength, dtype=np.float64)
        return float(strength.sum(axis=-1).mean() if strength.ndim == 2 else strength) / n_labels

    def _typical(self, n_new: int, n_labels: int) -> FloatArray:
        """Confusion matrices of new raters: the one of the pooled votes of all raters."""
        pooled = self._counts.sum(axis=0) + self._pseudo_counts(n_labels)
        return np.tile(full_confusion(pooled[None])[0], (n_new, 1, 1))


def label_values(labels: list[Any]) -> FloatArray | None:
    """Values of labels that are numbers, or None."""
    numeric = all(isinstance(entry, int | float) and not isinstance(entry, bool) for entry in labels)
    if numeric and np.isfinite(np.array(labels, dtype=np.float64)).all():
        return np.array(labels, dtype=np.float64)
    return None


def _gold_array(items: list[Any], gold_of: dict[Any, int]) -> IntArray:
    """Known true label of each item, or −1."""
    if not gold_of:
        return np.full(len(items), -1, dtype=np.intp)
    return np.array([gold_of.get(name, -1) for name in items], dtype=np.intp)


def _joined(known: Triples, new: Triples) -> Triples:
    """Append votes, and the names that are new."""
    item_codes_of = {name: code for code, name in enumerate(known.items)}
    rater_codes_of = {name: code for code, name in enumerate(known.raters)}
    item_codes = np.array([item_codes_of.setdefault(name, len(item_codes_of)) for name in new.items], dtype=np.intp)
    rater_codes = np.array([rater_codes_of.setdefault(name, len(rater_codes_of)) for name in new.raters], dtype=np.intp)
    return Triples(
        np.concatenate([known.item, item_codes[new.item]]),
        np.concatenate([known.rater, rater_codes[new.rater]]),
        np.concatenate([known.label, new.label]),
        list(item_codes_of),
        list(rater_codes_of),
        known.labels,
    )
