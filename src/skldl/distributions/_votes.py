"""Votes of several annotators as distributions, with their agreement and their noise."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.distributions._answers import Answers, check_annotator_weights, read_answers
from skldl.distributions._counts import check_smoothing
from skldl.distributions._labels import EMPTY, divide_rows
from skldl.distributions._tables import frame_like, is_frame, library
from skldl.exceptions import DataError, Parameter
from skldl.metrics import PAPER_MEASURES, Measure
from skldl.metrics._noise_floor import NoiseFloor, fit_dirichlet, noise_floor
from skldl.metrics._registry import resolve
from skldl.utils.parameters import COUNT, check_value, one_of
from skldl.utils.typing import FloatArray, IntArray

MIN_SAMPLE_WEIGHT = 1e-3  # of an item without an answer that counts: weights of rows must be positive
MIN_GAMMA = 1e-3  # of the parameters of a gamma draw: near 0 all draws of a row underflow


@dataclass(frozen=True)
class NoiseCeiling:
    """Best expected score of a measure on noisy votes.

    Attributes
    ----------
    ceiling : float
        Expected score of a model that knew the distribution behind the votes of every item, evaluated on as many votes
        as there are: the lower bound of the noise floor. No model can be expected to do better, except by chance.
    split_half : float
        Mean score of one half of each item's annotators as a prediction for the other half. It is worse than
        the ceiling: both sides are noisy, and each rests on half the votes. For a measure that grows with the square
        of the error (Kullback-Leibler, one minus cosine) the noise is about four times as large, for one that grows
        with the error itself (Chebyshev, Clark, Canberra, one minus intersection) about twice.
    split_half_std : float
        Standard deviation of that score over the random splits.

    Examples
    --------
    >>> from skldl.distributions import NoiseCeiling
    >>> NoiseCeiling(ceiling=0.05, split_half=0.2, split_half_std=0.01).ceiling
    0.05
    """

    ceiling: float
    split_half: float
    split_half_std: float


@dataclass(frozen=True, repr=False)
class Votes:
    """Label distributions from the votes of several annotators.

    Attributes
    ----------
    D : ndarray or DataFrame of shape (n_items, n_labels)
        The distributions: a DataFrame if the votes came as one.
    counts : ndarray of shape (n_items, n_labels)
        Mass of the votes, weighted: each answer adds the weight of its annotator, shared among its labels.
    n_votes : ndarray of shape (n_items,)
        Number of answers to each item; a natural ``sample_weight``.
    items, annotators, label_names : list
        Names, in the order of the rows of ``D``, of ``weights`` and of the columns of ``D``.
    weights : ndarray of shape (n_annotators,)
        Weight of each annotator.
    smoothing : ndarray of shape (n_labels,)
        Pseudo-count of each label, given or estimated.
    sample_weight : ndarray of shape (n_items,)
        How many votes each row of ``D`` is worth: the number of answers or, where annotators have different weights,
        the number of equal answers that carry as much noise, (Σ w)² / Σ w². At least 1e-3, where no answer counts.

    Examples
    --------
    >>> from skldl.distributions import from_votes
    >>> votes = from_votes([["a", "b"], ["a", "a"]])
    >>> votes.D
    array([[0.5, 0.5],
           [1. , 0. ]])
    >>> votes.n_votes.tolist(), votes.label_names
    ([2, 2], ['a', 'b'])
    """

    D: Any
    counts: FloatArray
    n_votes: npt.NDArray[np.intp]
    items: list[Any]
    annotators: list[Any]
    label_names: list[Any]
    weights: FloatArray
    smoothing: FloatArray
    sample_weight: FloatArray
    _answers: Answers = field(repr=False)

    def __repr__(self) -> str:
        labels = ", ".join(str(name) for name in self.label_names[:5]) + (", …" if len(self.label_names) > 5 else "")
        sizes = f"{len(self.items)} items, {len(self.annotators)} annotators, {int(self.n_votes.sum())} answers"
        return f"Votes({sizes}, {len(self.label_names)} labels: {labels[:60]})"

    def alpha(self, level: str = "nominal") -> float:
        r"""Krippendorff's α: 1 if the annotators always agree, 0 if they agree as often as by chance.

        .. math:: \alpha = 1 - D_o / D_e

        is one minus the observed over the expected disagreement [1]_; it takes any number of annotators and missing
        answers, and leaves out items with a single answer. The weights of the annotators take no part.

        Parameters
        ----------
        level : {"nominal", "ordinal", "interval"}, default="nominal"
            How different two labels are: different or not, by their ranks (the labels are in their order), or by
            their values (the labels are numbers). Between answers of several labels, the nominal difference is the
            total variation distance, which is 0 or 1 for single labels.

        Returns
        -------
        float
            At most 1; below 0 if the annotators disagree more than by chance.

        References
        ----------
        .. [1] K. Krippendorff, "Content Analysis: An Introduction to Its Methodology", chapter on reliability,
           Sage, 2004.
        """
        return _krippendorff_alpha(self._answers, level)

    def noise_ceiling(
        self,
        measures: Iterable[str | Measure] = tuple(PAPER_MEASURES),
        *,
        n_splits: int = 20,
        random_state: int | None = 0,
    ) -> dict[str, NoiseCeiling]:
        """Best score that any model can be expected to reach on these votes.

        Votes are a sample: even a model that knew the distribution behind the votes of every item would not predict
        their fractions exactly. Two figures measure how far, for each measure:

        - ``split_half`` splits the annotators of each item at random into two halves, and scores one half as a
          prediction for the other. The predicting half is smoothed by the prior below, so that a label that it did
          not happen to name does not count as impossible.
        - ``ceiling`` is the score against all votes: the value of `noise_floor`, where it can be computed. It rests
          on a model (votes independent, given the item); ``split_half`` does not, and is the worse of the two, as
          `NoiseCeiling` explains. Votes of different weights, answers of several labels and smoothing have no noise
          floor. Then a Dirichlet prior is fitted to the counts of all items, the distribution behind an item is drawn
          from its posterior, as many votes as the item has are drawn from that distribution, and their fractions are
          compared with it. On bell-shaped ratings, which do not follow a Dirichlet distribution, the result is up to a
          fifth too pessimistic for Kullback-Leibler.

        Parameters
        ----------
        measures : iterable of str or Measure, default: the six of the paper
            Which measures to score with.
        n_splits : int, default=20
            Number of random splits, and of draws.
        random_state : int or None, default=0
            Seed of the splits and draws.

        Returns
        -------
        dict
            From the name of each measure to a `NoiseCeiling`.
        """
        check_value("n_splits", n_splits, COUNT)
        chosen = {measure.name: measure for measure in resolve(measures)}
        votes = self._whole_votes()
        floors: dict[str, NoiseFloor] = {}
        if votes is not None and votes.sum(axis=1).max(initial=0) >= 2:
            seed = int(np.random.default_rng().integers(2**31)) if random_state is None else random_state
            floors = noise_floor(votes, chosen.values(), random_state=seed)
        return _noise_ceiling(self._answers, self.weights, self.smoothing, chosen, n_splits, random_state, floors)

    def _whole_votes(self) -> FloatArray | None:
        """Numbers of votes of the items that have some; None if a vote is not just a vote."""
        counted = self.weights[self.weights > 0]
        if np.any(self.smoothing) or not len(counted) or (counted != counted[0]).any():
            return None
        votes = self.counts[self.counts.sum(axis=1) > 0] / counted[0]
        # 1e-9: sums of weights divided by the weight are whole up to rounding
        return np.rint(votes) if np.allclose(votes, np.rint(votes), rtol=0, atol=1e-9) else None

    def noise_floor(
        self, measures: Iterable[str | Measure] = tuple(PAPER_MEASURES), *, random_state: int = 0
    ) -> dict[str, NoiseFloor]:
        """Score that the true distributions would have on these votes: a lower bound and its upper end.

        It needs whole votes: annotators of equal weight, answers of a single label, and no smoothing. `noise_ceiling`
        gives the same number, and an approximation where votes are not whole.

        Parameters
        ----------
        measures : iterable of str or Measure, default: the six of the paper
            Which measures.
        random_state : int, default=0
            Seed of the simulation.

        Returns
        -------
        dict
            From the name of each measure to a `skldl.uncertainty.NoiseFloor`.

        Examples
        --------
        >>> from skldl.distributions import from_votes
        >>> votes = from_votes([["a", "a", "b"], ["b", "a", "b"], ["b", "b", "b"]])
        >>> 0 < votes.noise_floor(["kullback_leibler"])["kullback_leibler"].value < 0.3
        True
        """
        votes = self._whole_votes()
        if votes is None:
            raise DataError(
                "A noise floor needs whole numbers of votes: of equal weight, for a single label each, and without "
                "smoothing. noise_ceiling takes all of them, as an approximation."
            )
        return noise_floor(votes, measures, random_state=random_state)


def from_votes(
    votes: Any,
    *,
    item: Any = None,
    annotator: Any = None,
    label: Any = None,
    labels: Any = None,
    weights: Any = None,
    smoothing: Any = 0.0,
    empty: str = "error",
) -> Votes:
    r"""Turn the answers of several annotators into distributions, and measure their agreement.

    The degree of label j for an item is the weighted fraction of the answers that name it,

    .. math:: d_j = \frac{\sum_r w_r m_{rj} + \alpha_j}{\sum_r w_r + \sum_k \alpha_k}

    where the answer of annotator r shares a mass of one among its labels, ``m_rj = [j ∈ answer] / |answer|``.

    Parameters
    ----------
    votes : table
        Wide: one row per item, one column per annotator; a cell holds a label, a list or set of labels, or nothing
        (None, NaN). Long: a DataFrame or dict of columns, one row per vote; several rows of one annotator for one
        item are an answer of several labels.
    item, annotator, label : column names, default=None
        The three columns of a long table; None for a wide one. Without them, a table that has columns of these names,
        or columns of different kinds with more than 100 labels of which most occur in one column alone, is an error.
    labels : sequence, default=None
        All labels, in the order of the columns of the result. None uses those that occur, sorted.
    weights : array-like of shape (n_annotators,), dict, DawidSkene or RaterTable, default=None
        Weight of each annotator: in the order of the columns (wide) or of first appearance (long), or by name. A
        fitted `skldl.annotators.DawidSkene` or its `skldl.annotators.RaterTable` weights annotators by the quality of
        their answers.
    smoothing : float, array-like of shape (n_labels,) or "estimate", default=0.0
        Pseudo-count of each label, as in `from_counts`. "estimate": rows are shrunk towards the mean of all items,
        with a strength estimated from the votes, see the notes.
    empty : {"error", "uniform", "drop"}, default="error"
        How items without any answer are handled if there is no smoothing. ``items`` names those that are kept.

    Returns
    -------
    Votes
        With the distributions ``D``, the ``counts``, ``n_votes``, ``sample_weight``, the names of ``items``,
        ``annotators`` and labels, and the methods ``alpha`` and ``noise_ceiling``.

    Raises
    ------
    UnknownLabelError
        If an answer is not among ``labels``.
    DuplicateVoteError
        If an annotator gives one label to one item twice.
    ZeroRowError
        If an item has no answer and ``empty="error"``.

    Notes
    -----
    **Labels that are numbers.** Numbers that are equal are one label: 4 and 4.0, which pandas writes in a column with
    gaps. Whole numbers become integers.

    **Weights keep the disagreement.** The posterior of a model such as Dawid and Skene's estimates one true label, and
    collapses to zeros and a single one; it is no label distribution. Here the votes of careless annotators count less,
    and where careful ones disagree the distribution shows it.

    **Estimated smoothing.** With ``smoothing="estimate"`` the distributions behind the items are taken as draws from a
    Dirichlet distribution, so that counts follow the Dirichlet-multinomial distribution. Its mean is that of all
    votes, and its strength (the sum of the pseudo-counts) maximises the likelihood of the counts. Each row is replaced
    by its posterior mean, in which the votes of the item have the weight m / (m + strength), where m is the number of
    equal votes, ``sample_weight``. A large strength means that items differ little; with a strength near zero each item
    is estimated separately.

    Examples
    --------
    >>> from skldl.distributions import from_votes
    >>> votes = from_votes([["cat", "cat", "dog"], ["dog", None, "dog"], ["cat", ["cat", "dog"], "cat"]])
    >>> votes.D.round(3)
    array([[0.667, 0.333],
           [0.   , 1.   ],
           [0.833, 0.167]])
    >>> votes.n_votes
    array([3, 2, 3])
    >>> round(votes.alpha(), 3)
    0.323
    >>> votes
    Votes(3 items, 3 annotators, 8 answers, 2 labels: cat, dog)
    """
    check_value("empty", empty, EMPTY)
    answers = read_answers(votes, item=item, annotator=annotator, label=label, labels=labels)
    weight = check_annotator_weights(weights, answers.annotators)
    n_items = len(answers.items)
    counts = np.zeros((n_items, len(answers.labels)))
    np.add.at(counts, answers.item, answers.mass * weight[answers.annotator, None])
    equal_votes = _effective_votes(answers.item, weight[answers.annotator], n_items)
    if isinstance(smoothing, str):
        check_value("smoothing", smoothing, one_of("estimate"))
        totals = counts.sum(axis=1, keepdims=True)
        evidence = counts * np.divide(equal_votes[:, None], totals, out=np.zeros_like(totals), where=totals > 0)
        alpha = fit_dirichlet(evidence)
        D, rows = divide_rows(evidence + alpha, empty, name="votes")
    else:
        alpha = check_smoothing(smoothing, len(answers.labels))
        D, rows = divide_rows(counts + alpha, empty, name="votes")
    kept = np.arange(len(counts)) if rows is None else rows
    items = [answers.items[i] for i in kept]
    return Votes(
        D=_as_frame(votes, D, answers.labels, items, kept, wide=item is None),
        counts=counts[kept],
        n_votes=np.bincount(answers.item, minlength=len(counts))[kept],
        items=items,
        annotators=answers.annotators,
        label_names=answers.labels,
        weights=weight,
        smoothing=alpha,
        sample_weight=np.maximum(equal_votes, MIN_SAMPLE_WEIGHT)[kept],
        _answers=answers,
    )


def _as_frame(votes: Any, D: FloatArray, names: list[Any], items: list[Any], kept: Any, *, wide: bool) -> Any:
    """Return a DataFrame for a DataFrame of votes; for a long table of pandas, with the items as its index."""
    if wide or library(votes) != "pandas" or not is_frame(votes):
        return frame_like(votes, D, names, kept)
    return type(votes)(D, index=items, columns=names)


def _krippendorff_alpha(answers: Answers, level: str) -> float:
    r"""Krippendorff's α = 1 − D_o / D_e over the distinct answers.

    The coincidence matrix o counts, within each item with m ≥ 2 answers, every ordered pair of answers of two
    annotators with the weight 1/(m − 1); D_o is the mean difference δ over these pairs, D_e the mean of δ over all
    pairs of answers of all items.
    """
    check_value("level", level, one_of("nominal", "ordinal", "interval"))
    per_item = np.bincount(answers.item, minlength=len(answers.items))
    paired = per_item[answers.item] >= 2
    if not paired.any():
        raise DataError("No item has answers of two annotators, so there is no agreement to measure.")
    kinds, kind = np.unique(answers.mass[paired], axis=0, return_inverse=True)
    counts = np.zeros((len(answers.items), len(kinds)))
    np.add.at(counts, (answers.item[paired], kind.ravel()), 1.0)
    counts = counts[per_item >= 2]
    weights = counts / (per_item[per_item >= 2] - 1)[:, None]
    coincidences = counts.T @ weights - np.diag(weights.sum(axis=0))  # without pairs of an answer with itself
    totals = counts.sum(axis=0)
    difference = _difference(kinds, totals, answers.labels, level)
    expected = float(totals @ difference @ totals) / float(totals.sum() - 1)
    if expected == 0:  # all answers are the same: there is no disagreement to expect
        return 1.0
    return 1.0 - float((coincidences * difference).sum()) / expected


def _difference(kinds: FloatArray, totals: FloatArray, labels: list[Any], level: str) -> FloatArray:
    """δ between every two distinct answers."""
    if level == "nominal":  # total variation: 0 or 1 between single labels, in between for sets that overlap
        return 0.5 * np.abs(kinds[:, None] - kinds[None]).sum(axis=-1)
    if (kinds.max(axis=1) < 1).any():
        raise DataError(
            "Some answers hold several labels; ", Parameter("level", level), ' needs single labels. Use "nominal".'
        )
    column = kinds.argmax(axis=1)
    if level == "interval":
        try:
            values = np.array([float(labels[j]) for j in column])
        except (TypeError, ValueError) as error:
            raise DataError(
                Parameter("level", "interval"), ' needs labels that are numbers; use "ordinal" or "nominal".'
            ) from error
        return (values[:, None] - values[None]) ** 2
    # ordinal: the number of answers between two labels, with half of the answers of these two
    order = np.argsort(column)
    middle = np.empty(len(order))
    middle[order] = np.cumsum(totals[order]) - totals[order] / 2
    return (middle[:, None] - middle[None]) ** 2


def _noise_ceiling(
    answers: Answers,
    weights: FloatArray,
    smoothing: FloatArray,
    measures: Mapping[str, Measure],
    n_splits: int,
    random_state: int | None,
    floors: Mapping[str, NoiseFloor],
) -> dict[str, NoiseCeiling]:
    """Score halves of each item's annotators against each other, and the distributions behind the votes.

    Measures without a floor, which needs whole votes, are simulated under one Dirichlet prior.
    """
    counted = weights[answers.annotator] > 0
    item = answers.item[counted]
    weight = weights[answers.annotator[counted]]
    weight = weight / weight.mean()  # an average vote counts one, as in the prior
    mass = answers.mass[counted] * weight[:, None]
    n_items = len(answers.items)
    votes = np.bincount(item, minlength=n_items)
    if not (votes >= 2).any():
        raise DataError("A noise ceiling needs items with at least two answers, to split their annotators.")
    counts = _add_up(item, mass, n_items)
    effective = np.rint(_effective_votes(item, weight, n_items)).astype(np.intp)
    asked, split = votes >= 1, votes >= 2
    evidence = _normalised(counts[asked]) * effective[asked, None]
    prior = fit_dirichlet(evidence)
    generator = np.random.default_rng(random_state)
    halves: dict[str, list[float]] = {name: [] for name in measures}
    wholes: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(n_splits):
        first = _random_place(item, votes, generator) < (votes[item] + 1) // 2
        known, held_out = (_add_up(item[side], mass[side], n_items)[split] for side in (first, ~first))
        # normalised gamma variables are a draw from the Dirichlet posterior
        behind = generator.gamma(np.maximum(evidence + prior, MIN_GAMMA))
        behind /= behind.sum(axis=1, keepdims=True)
        drawn = generator.multinomial(effective[asked], behind)
        for name, measure in measures.items():
            halves[name].append(measure(_normalised(held_out + smoothing), _normalised(known + prior)))
            whole = floors[name].value if name in floors else measure(_normalised(drawn + smoothing), behind)
            wholes[name].append(whole)
    return {
        name: NoiseCeiling(float(np.mean(wholes[name])), float(np.mean(halves[name])), float(np.std(halves[name])))
        for name in measures
    }


def _normalised(mass: FloatArray) -> FloatArray:
    """Divide rows by their sums."""
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _add_up(item: IntArray, mass: FloatArray, n_items: int) -> FloatArray:
    """Sum the mass of the answers to each item."""
    totals = np.zeros((n_items, mass.shape[1]))
    np.add.at(totals, item, mass)
    return totals


def _effective_votes(item: IntArray, weight: FloatArray, n_items: int) -> FloatArray:
    """Number of equal votes that carry as much noise as the weighted ones: (Σw)² / Σw²."""
    total = np.bincount(item, weight, minlength=n_items)
    squares = np.bincount(item, weight**2, minlength=n_items)
    return np.divide(total**2, squares, out=np.zeros(n_items), where=squares > 0)


def _random_place(item: IntArray, votes: IntArray, generator: np.random.Generator) -> IntArray:
    """Shuffle the answers of each item: the position of each answer among those of its item."""
    order = np.lexsort((generator.random(len(item)), item))
    first = np.concatenate([[0], np.cumsum(votes)[:-1]])
    position = np.empty(len(item), dtype=np.intp)
    position[order] = np.arange(len(item)) - first[item[order]]
    return position
