"""`DawidSkene`: the true label of each item and the errors of each rater, from votes alone."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skldl.annotators._expectation import Evidence, Solution, run_em
from skldl.annotators._noise_models import NO_PARAMETERS, Maximizer, OrderedProbit, full_confusion, one_coin
from skldl.annotators._triples import Triples, check_single, gold_codes, read_triples
from skldl.exceptions import DataError, DimensionError, UnknownLabelError
from skldl.utils.parameters import COUNT, NOT_NEGATIVE, Constraint, check_parameters, number, one_of
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.warn import warn


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
    single one as votes come in. To keep the disagreement of the raters, hand the fitted model to
    ``skldl.distributions.from_votes(votes, weights=model)``.

    Parameters
    ----------
    model : {"confusion", "one-coin", "ordinal"}, default="confusion"
        How raters err. "confusion": a matrix of its own for each rater. "one-coin": right with one probability,
        errors spread evenly; for few votes per rater. "ordinal": labels in their order (numbers, or as ``labels``
        lists them); each rater answers as if the truth were shifted by a severity and blurred by a spread.
    prior_strength : float or array-like of shape (n_labels, n_labels), default=2.0
        Pseudo-votes. A number: for each row of the confusion matrix ("confusion"), or for each rater in all
        ("one-coin", "ordinal"). An array: the pseudo-count of each answer (column) to each truth (row). 0 is maximum
        likelihood.
    prior_accuracy : float in (0, 1), default=0.7
        Share of the pseudo-votes that name the true label; the others are spread evenly. Not used with an array.
    max_iter : int, default=200
        Most steps of EM.
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
        Shift and blur of each rater, in the unit of the labels. Only with ``model="ordinal"``.
    items_, annotators_, label_names_ : list
        Names, in the order of the arrays.
    objective_ : list of float
        Log posterior density after each step of the last call.
    n_iter_ : int
        Number of steps of the last call.

    Notes
    -----
    A step costs O(votes × labels), and memory grows with votes + items × labels + raters × labels². EM finds a local
    maximum; it starts from the shares of the votes.

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
        triples = read_triples(votes, item=item, annotator=annotator, label=label, labels=labels)
        gold_of = gold_codes(gold, triples.labels)
        if gold_of and not any(name in gold_of for name in triples.items):
            raise DataError("gold names none of the items in votes. Its keys must be the names of items.")
        evidence = self._evidence(triples, gold_of)
        solution = self._solve(evidence, evidence.shares(), NO_PARAMETERS, triples.labels)
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
                f"The model was fitted as {self._fitted_kind!r} and is {self.model!r} now. Call fit with all votes."
            )
        known = self._triples
        if labels is not None and list(labels) != known.labels:
            raise UnknownLabelError(f"labels are {known.labels} since the first call and cannot change.")
        new = read_triples(votes, item=item, annotator=annotator, label=label, labels=known.labels)
        joined = _joined(known, new)
        check_single(joined)
        gold_of = self._gold_of | gold_codes(gold, known.labels)
        changed = {name for name in gold_of if gold_of[name] != self._gold_of.get(name)}
        n_items, n_raters, n_labels = len(joined.items), len(joined.raters), len(known.labels)
        touched = np.zeros(n_items, dtype=bool)
        touched[joined.item[len(known) :]] = True
        touched[[place for place, name in enumerate(joined.items) if name in changed] if changed else []] = True
        rows = np.flatnonzero(touched)
        place = np.full(n_items, -1, dtype=np.intp)
        place[rows] = np.arange(len(rows))
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
            place[joined.item[mine]],
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
        from skldl.annotators._quality import rater_table

        return rater_table(self).weights()

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
                f"EM took all {self.max_iter} steps and the last one still gained more than tol={self.tol:g} for each "
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
        if self.model == "confusion":
            return full_confusion
        if self.model == "one-coin":
            return one_coin
        values = label_values(labels)
        if values is None:  # names in their order: each a step from the next
            values = np.arange(len(labels), dtype=np.float64)
        if (np.diff(values) <= 0).any():
            raise DataError(f'model="ordinal" needs labels in ascending order, not {labels}.')
        return OrderedProbit(values)

    def _pseudo_counts(self, n_labels: int) -> FloatArray:
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
        strength = np.asarray(self.prior_strength, dtype=np.float64)
        return float(strength.sum(axis=-1).mean() if strength.ndim == 2 else strength) / n_labels

    def _typical(self, n_new: int, n_labels: int) -> FloatArray:
        """Confusion matrix of a new rater: that of all raters together."""
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
    item_place = {name: place for place, name in enumerate(known.items)}
    rater_place = {name: place for place, name in enumerate(known.raters)}
    item_codes = np.array([item_place.setdefault(name, len(item_place)) for name in new.items], dtype=np.intp)
    rater_codes = np.array([rater_place.setdefault(name, len(rater_place)) for name in new.raters], dtype=np.intp)
    return Triples(
        np.concatenate([known.item, item_codes[new.item]]),
        np.concatenate([known.rater, rater_codes[new.rater]]),
        np.concatenate([known.label, new.label]),
        list(item_place),
        list(rater_place),
        known.labels,
    )
