"""How settings are chosen and tested: the rounds of a protocol, and what it means in words."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skldl.experiments.problem import Problem
from skldl.experiments.study import Study
from skldl.selection._folds import assign_folds, derive_seed, hold_out, pairs_of

IntArray = npt.NDArray[np.intp]
HELD_OUT_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Round:
    """One test: rows to learn from, rows to test on, and the pairs of rows on which a setting is chosen before.

    Attributes
    ----------
    train : ndarray of int
        Rows to learn from.
    test : ndarray of int or None
        Rows to test on; None means the fixed test set of the problem.
    tuning : tuple of pairs
        Rows to fit on and rows to validate on, for each trial of a setting.
    """

    train: IntArray
    test: IntArray | None
    tuning: tuple[tuple[IntArray, IntArray], ...]


@dataclass(frozen=True)
class Protocol:
    """A protocol.

    Attributes
    ----------
    name : str
        The word that chooses it.
    meaning : str
        What it does, for the reader of a table.
    shares_choice : bool
        Whether one setting, the best over all rounds together, serves all rounds.
    rounds : callable
        From problem, study and number of the repeat to the rounds.
    """

    name: str
    meaning: str
    shares_choice: bool
    rounds: Callable[[Problem, Study, int], list[Round]]


def rounds_of(problem: Problem, study: Study, repeat: int) -> list[Round]:
    """Lay out the rounds of one repeat.

    Parameters
    ----------
    problem : Problem
        The data. A fixed test set overrides the protocol: one round, settings chosen on a random fifth.
    study : Study
        Protocol, folds, order and seed.
    repeat : int
        Number of the repeat, from 0.

    Returns
    -------
    list of Round
        The rounds.
    """
    if problem.has_test_set:
        return [_round(problem, study, repeat, np.arange(problem.n_samples), None)]
    return PROTOCOLS[study.protocol].rounds(problem, study, repeat)


def shares_choice(problem: Problem, study: Study) -> bool:
    """Whether one setting serves all rounds of this problem."""
    return PROTOCOLS[study.protocol].shares_choice and not problem.has_test_set


def _fold_of(problem: Problem, study: Study, repeat: int) -> IntArray:
    seed = None if study.order == "file" else derive_seed(study.seed, "folds", repeat)
    return assign_folds(problem.n_samples, study.folds, seed=seed, groups=problem.groups, name=problem.name)


def _geng2016(problem: Problem, study: Study, repeat: int) -> list[Round]:
    fold_of = _fold_of(problem, study, repeat)
    rounds = []
    for fold, (train, test) in enumerate(pairs_of(fold_of)):
        validation = (fold + 1) % study.folds
        tuning = (np.flatnonzero((fold_of != fold) & (fold_of != validation)), np.flatnonzero(fold_of == validation))
        rounds.append(Round(train, test, (tuning,)))
    return rounds


def _nested(problem: Problem, study: Study, repeat: int) -> list[Round]:
    rounds = []
    for fold, (train, test) in enumerate(pairs_of(_fold_of(problem, study, repeat))):
        groups = None if problem.groups is None else problem.groups[train]
        most = len(train) if groups is None else len(np.unique(groups))
        inner = assign_folds(
            len(train),
            max(2, min(study.inner_folds, most)),
            seed=derive_seed(study.seed, "inner folds", repeat, fold),
            groups=groups,
            name=f"The training part of {problem.name}",
        )
        tuning = tuple((train[fit], train[validation]) for fit, validation in pairs_of(inner))
        rounds.append(Round(train, test, tuning))
    return rounds


def _holdout(problem: Problem, study: Study, repeat: int) -> list[Round]:
    train, test = hold_out(
        problem.n_samples,
        HELD_OUT_SHARE,
        seed=derive_seed(study.seed, "test", repeat),
        groups=problem.groups,
        name=problem.name,
    )
    return [_round(problem, study, repeat, train, test)]


def _round(problem: Problem, study: Study, repeat: int, train: IntArray, test: IntArray | None) -> Round:
    """A round whose setting is chosen on a random fifth of the training part."""
    fit, validation = hold_out(
        len(train),
        HELD_OUT_SHARE,
        seed=derive_seed(study.seed, "validation", repeat),
        groups=None if problem.groups is None else problem.groups[train],
        name=f"The training part of {problem.name}",
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
            "part in the choice: the figures are a little too good, in the same way for every contender with a grid.",
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
