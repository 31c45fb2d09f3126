r"""One EM problem over sparse votes: expected truths, expected counts, and the objective that every step raises.

With the probability p_k of each true label and the confusion matrices π of the raters, the evidence of item i is

.. math:: Z_i = \sum_k p_k \prod_{r \in R_i} \pi_{r k y_{ir}}, \qquad T_{ik} = p_k \prod_r \pi_{r k y_{ir}} / Z_i

The votes are held as a sparse matrix of ones: a row for each item, a column for each pair of rater and answer. The
E-step is its product with ln π, the M-step starts from its transpose times T: both cost O(votes × labels), and no array
of shape (items, raters) ever exists.

The objective is the logarithm of the posterior density, Σ ln Z_i + Σ α_kl ln π_rkl + Σ γ ln p_k. Where the truths of
some items are held fixed (`Evidence.held_counts`), it is the free energy of Neal and Hinton, up to their entropy.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse, special

from skldl.annotators._noise_models import Maximizer
from skldl.utils.typing import FloatArray, IntArray

_LEAST = 1e-300  # probability in the place of zero, so that logarithms stay finite


@dataclass
class Evidence:
    """Votes of some items, and what is known about the other items.

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

    def shares(self) -> FloatArray:
        """Share of each label among the votes of each item: where EM starts."""
        counts = np.zeros((self.n_items, self.n_labels))
        np.add.at(counts, (self.item, self.label), 1.0)
        return self._with_gold(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))

    def log_joint(self, prior: FloatArray, confusion: FloatArray) -> FloatArray:
        """Logarithm of p_k Π π for each item and label."""
        by_answer = np.log(np.maximum(confusion, _LEAST)).transpose(0, 2, 1)
        joint = self._votes @ by_answer.reshape(self.n_raters * self.n_labels, self.n_labels)
        joint += np.log(np.maximum(prior, _LEAST))
        return np.asarray(joint)

    def truths(self, log_joint: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior of each item, and the logarithm of its evidence."""
        evidence = special.logsumexp(log_joint, axis=1)
        known = np.flatnonzero(self.gold >= 0)
        posterior = self._with_gold(np.exp(log_joint - evidence[:, None]))
        evidence[known] = log_joint[known, self.gold[known]]
        return posterior, evidence

    def counts(self, truths: FloatArray) -> FloatArray:
        """How often each rater is expected to have answered l where k is true, for these items alone."""
        by_answer = self._votes_by_rater @ truths
        return np.asarray(by_answer.reshape(self.n_raters, self.n_labels, self.n_labels).transpose(0, 2, 1))

    def _with_gold(self, truths: FloatArray) -> FloatArray:
        known = np.flatnonzero(self.gold >= 0)
        truths[known] = 0.0
        truths[known, self.gold[known]] = 1.0
        return truths


@dataclass
class Solution:
    """Where EM ended.

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
        What is behind the confusion matrices, if their model has parameters of its own.
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
        log_confusion, log_prior = np.log(np.maximum(confusion, _LEAST)), np.log(np.maximum(prior, _LEAST))
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
