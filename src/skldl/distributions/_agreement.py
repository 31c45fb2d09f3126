"""Agreement of annotators, and the best score that a model can be expected to reach."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldl.distributions._answers import Answers
from skldl.distributions._tables import check_choice
from skldl.exceptions import DataError, Parameter
from skldl.metrics import Measure
from skldl.metrics._noise_floor import NoiseFloor, fit_dirichlet
from skldl.utils.typing import FloatArray, IntArray


def krippendorff_alpha(answers: Answers, level: str) -> float:
    r"""Krippendorff's α = 1 − D_o / D_e over the distinct answers.

    The coincidence matrix o counts, within each item with m ≥ 2 answers, every ordered pair of answers of two
    annotators with the weight 1/(m − 1); D_o is the mean difference δ over these pairs, D_e the mean of δ over all
    pairs of answers of all items.
    """
    check_choice(level, ("nominal", "ordinal", "interval"), name="level")
    per_item = np.bincount(answers.item, minlength=len(answers.items))
    paired = per_item[answers.item] >= 2
    if not paired.any():
        raise DataError("No item has answers of two annotators, so there is no agreement to measure.")
    kinds, kind = np.unique(answers.mass[paired], axis=0, return_inverse=True)
    counts = np.zeros((len(answers.items), len(kinds)))
    np.add.at(counts, (answers.item[paired], kind.ravel()), 1.0)
    counts = counts[per_item >= 2]
    weights = counts / (per_item[per_item >= 2] - 1)[:, None]
    coincidences = counts.T @ weights - np.diag(weights.sum(axis=0))
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
    order = np.argsort(column)  # the labels are in their order
    middle = np.empty(len(order))
    middle[order] = np.cumsum(totals[order]) - totals[order] / 2
    return (middle[:, None] - middle[None]) ** 2


@dataclass(frozen=True)
class NoiseCeiling:
    """Best expected score of a measure on noisy votes.

    Attributes
    ----------
    ceiling : float
        Expected score of a model that knew the distribution behind the votes of every item, judged by as many votes
        as there are: the noise floor. No model can be expected to do better, except by chance.
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


def noise_ceiling(
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
    if n_splits < 1:
        raise ValueError(f"n_splits={n_splits!r} must be at least 1.")
    counted = weights[answers.annotator] > 0
    item = answers.item[counted]
    weight = weights[answers.annotator[counted]]
    weight = weight / weight.mean()  # so that an ordinary vote counts one, as the prior takes it
    mass = answers.mass[counted] * weight[:, None]
    n_items = len(answers.items)
    votes = np.bincount(item, minlength=n_items)
    if not (votes >= 2).any():
        raise DataError("A noise ceiling needs items with at least two answers, to split their annotators.")
    counts = _add_up(item, mass, n_items)
    effective = np.rint(effective_votes(item, weight, n_items)).astype(np.intp)
    asked, split = votes >= 1, votes >= 2
    evidence = _shares(counts[asked]) * effective[asked, None]
    prior = fit_dirichlet(evidence)
    generator = np.random.default_rng(random_state)
    halves: dict[str, list[float]] = {name: [] for name in measures}
    wholes: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(n_splits):
        first = _random_place(item, votes, generator) < (votes[item] + 1) // 2
        known, held_out = (_add_up(item[side], mass[side], n_items)[split] for side in (first, ~first))
        behind = generator.gamma(np.maximum(evidence + prior, 1e-3))
        behind /= behind.sum(axis=1, keepdims=True)
        drawn = generator.multinomial(effective[asked], behind)
        for name, measure in measures.items():
            halves[name].append(measure(_shares(held_out + smoothing), _shares(known + prior)))
            whole = floors[name].value if name in floors else measure(_shares(drawn + smoothing), behind)
            wholes[name].append(whole)
    return {
        name: NoiseCeiling(float(np.mean(wholes[name])), float(np.mean(halves[name])), float(np.std(halves[name])))
        for name in measures
    }


def _shares(mass: FloatArray) -> FloatArray:
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _add_up(item: IntArray, mass: FloatArray, n_items: int) -> FloatArray:
    totals = np.zeros((n_items, mass.shape[1]))
    np.add.at(totals, item, mass)
    return totals


def effective_votes(item: IntArray, weight: FloatArray, n_items: int) -> FloatArray:
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
