"""Protocols: which rows a model learns from, on which its setting is chosen, and on which it is tested."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skldl.data._dataset import Dataset, rows_of
from skldl.exceptions import StudyError
from skldl.selection._folds import assign_folds, derive_seed, hold_out, pairs_of, shuffled_folds
from skldl.utils.typing import IntArray

HELD_OUT_FRACTION = 0.2
"""Fraction of the rows that ``holdout`` tests, and on which a setting is chosen where there is one round."""


@dataclass(frozen=True, eq=False)
class Round:
    """One test: rows to learn from, rows to test on, and the pairs of rows on which a setting is chosen before.

    Attributes
    ----------
    train : ndarray of int
        Rows to learn from.
    test : ndarray of int or None
        Rows to test on; None means the fixed test set of the dataset.
    tuning : tuple of pairs
        Rows to fit on and rows to validate on, for each trial of a setting.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.selection import Round
    >>> Round(train=np.array([0, 1]), test=np.array([2]), tuning=()).test.tolist()
    [2]
    """

    train: IntArray
    test: IntArray | None
    tuning: tuple[tuple[IntArray, IntArray], ...]


@dataclass(frozen=True)
class Layout:
    """The settings of a protocol.

    Attributes
    ----------
    protocol : {"nested", "geng2016", "holdout"}
        Which protocol.
    folds, inner_folds : int
        Number of folds, and of folds inside a training part under ``nested``; fewer if there are not as many rows.
    order : {"shuffled", "file"}
        Folds as contiguous chunks of a shuffled order or of the file.
    random_state : int
        Seed of everything that is drawn.

    Examples
    --------
    >>> from skldl.selection import Layout
    >>> Layout("nested", folds=5).inner_folds
    5
    """

    protocol: str = "nested"
    folds: int = 10
    inner_folds: int = 5
    order: str = "shuffled"
    random_state: int = 0


@dataclass(frozen=True)
class Protocol:
    """A protocol, with its ``meaning`` for the reader of a table.

    ``shares_choice`` is whether one setting, the best over all rounds together, serves all rounds; ``rounds`` makes
    these from dataset, layout and number of the repeat.
    """

    name: str
    meaning: str
    shares_choice: bool
    rounds: Callable[[Dataset, Layout, int], list[Round]]


def rounds_of(dataset: Dataset, layout: Layout, repeat: int = 0) -> list[Round]:
    """Lay out the rounds of one repeat.

    Parameters
    ----------
    dataset : Dataset
        The data. A fixed test set overrides the protocol: one round, settings chosen on a random fifth. Given splits
        replace the folds, and under ``holdout`` each of them is the test set in turn.
    layout : Layout
        Protocol, folds, order and seed.
    repeat : int, default=0
        Number of the repeat, from 0.

    Returns
    -------
    list of Round
        The rounds.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> from skldl.selection import Layout, rounds_of
    >>> dataset = Dataset("toy", np.eye(6), [[0.5, 0.5]] * 6)
    >>> first, second = rounds_of(dataset, Layout(folds=2, inner_folds=3, order="file"))
    >>> first.test, len(first.tuning)
    (array([0, 1, 2]), 3)
    """
    if dataset.has_test_set:
        return [_round(dataset, layout, repeat, np.arange(dataset.n_samples), None)]
    if dataset.splits is not None and layout.protocol == "holdout":
        pairs = pairs_of(_fold_of(dataset, layout, repeat))
        return [_round(dataset, layout, repeat, train, test) for train, test in pairs]
    return PROTOCOLS[layout.protocol].rounds(dataset, layout, repeat)


def shares_choice(dataset: Dataset, protocol: str) -> bool:
    """Whether one setting serves all rounds of this dataset.

    Parameters
    ----------
    dataset : Dataset
        The data.
    protocol : str
        Name of the protocol.

    Returns
    -------
    bool
        True if the setting is chosen once for all rounds.

    Examples
    --------
    >>> from skldl.data import Dataset
    >>> from skldl.selection import shares_choice
    >>> from skldl.testing import make_distributions
    >>> shares_choice(Dataset("toy", *make_distributions(20)), "nested")
    False
    """
    return PROTOCOLS[protocol].shares_choice and not dataset.has_test_set


def _fold_of(dataset: Dataset, layout: Layout, repeat: int) -> IntArray:
    if dataset.splits is not None:
        _, n_repeats = dataset.splits.shape
        if repeat >= n_repeats:
            raise StudyError(
                f"{dataset.name}: splits are given for {n_repeats} repeat{'' if n_repeats == 1 else 's'}, not for "
                f"{repeat + 1}. Use at most as many repeats."
            )
        if layout.protocol == "geng2016" and dataset.splits.max() < 2:
            raise StudyError(f"{dataset.name}: geng2016 needs at least 3 folds, and the given splits have fewer.")
        return dataset.splits[:, repeat]
    seed = None if layout.order == "file" else derive_seed(layout.random_state, "folds", repeat)
    return assign_folds(dataset.n_samples, layout.folds, random_state=seed, groups=dataset.groups, name=dataset.name)


def _geng2016(dataset: Dataset, layout: Layout, repeat: int) -> list[Round]:
    fold_of = _fold_of(dataset, layout, repeat)
    rounds = []
    for fold, (train, test) in enumerate(pairs_of(fold_of)):
        validation = (fold + 1) % (int(fold_of.max()) + 1)
        tuning = (np.flatnonzero((fold_of != fold) & (fold_of != validation)), np.flatnonzero(fold_of == validation))
        rounds.append(Round(train, test, (tuning,)))
    return rounds


def _nested(dataset: Dataset, layout: Layout, repeat: int) -> list[Round]:
    return [
        Round(
            train,
            test,
            inner_pairs(
                dataset, train, layout.inner_folds, derive_seed(layout.random_state, "inner folds", repeat, fold)
            ),
        )
        for fold, (train, test) in enumerate(pairs_of(_fold_of(dataset, layout, repeat)))
    ]


def inner_pairs(dataset: Dataset, train: IntArray, folds: int, seed: int) -> tuple[tuple[IntArray, IntArray], ...]:
    """Cut the training part of a round into folds again, groups kept whole: pairs of rows of the dataset.

    There are fewer folds if there are not as many rows or groups.
    """
    inner = shuffled_folds(
        len(train), folds, rows_of(dataset.groups, train), seed, f"The training part of {dataset.name}"
    )
    return tuple((train[fit], train[validation]) for fit, validation in pairs_of(inner))


def _holdout(dataset: Dataset, layout: Layout, repeat: int) -> list[Round]:
    train, test = hold_out(
        dataset.n_samples,
        HELD_OUT_FRACTION,
        random_state=derive_seed(layout.random_state, "test", repeat),
        groups=dataset.groups,
        name=dataset.name,
    )
    return [_round(dataset, layout, repeat, train, test)]


def _round(dataset: Dataset, layout: Layout, repeat: int, train: IntArray, test: IntArray | None) -> Round:
    """A round whose setting is chosen on a random fifth of the training part."""
    fit, validation = hold_out(
        len(train),
        HELD_OUT_FRACTION,
        random_state=derive_seed(layout.random_state, "validation", repeat),
        groups=rows_of(dataset.groups, train),
        name=f"The training part of {dataset.name}",
    )
    return Round(train, test, ((train[fit], train[validation]),))


PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "geng2016",
            "The protocol of Geng (2016). The rows are cut into folds once. In each rotation one fold is set aside for "
            "testing, the next one validates, the others train; the setting with the best criterion, averaged over all "
            "rotations, is chosen once for all of them. Then each fold is tested with a model that learned from all "
            "other folds. Since the fold that validates in one rotation is the test fold of another, test data take "
            "part in the choice: the figures are too good, by how much depends on the candidate.",
            True,
            _geng2016,
        ),
        Protocol(
            "nested",
            "Nested cross-validation. Each fold is tested with a model that learned from all other folds, with the "
            "setting that was best in a cross-validation inside these other folds. Nothing of a test fold takes part "
            "in any choice.",
            False,
            _nested,
        ),
        Protocol(
            "holdout",
            "Hold-out. A random fifth of the rows is the test set. Settings are chosen on a random fifth of the other "
            "rows, and the model then learns from all of these.",
            False,
            _holdout,
        ),
    )
}
FIXED_TEST_SET = (
    "A dataset with a fixed test set is tested once: settings are chosen on a random fifth of its training set, "
    "and the model then learns from the whole training set. There is no standard deviation."
)
