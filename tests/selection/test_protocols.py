"""Rounds of the protocols: which rows learn, choose and test; given splits; errors."""

import numpy as np
import pytest

from skldl.data import Dataset
from skldl.exceptions import StudyError
from skldl.selection import PROTOCOLS, Layout, rounds_of, shares_choice

N_ROWS = 23


def dataset(n_rows=N_ROWS, **further):
    return Dataset("toy", np.arange(n_rows)[:, None] * 1.0, [[0.5, 0.5]] * n_rows, **further)


def splits(n_folds, n_repeats=1):
    return np.column_stack([np.roll(np.arange(N_ROWS) % n_folds, repeat) for repeat in range(n_repeats)])


def all_rows(*parts):
    return np.array_equal(np.sort(np.concatenate(parts)), np.arange(N_ROWS))


@pytest.mark.parametrize("given", [None, splits(4, 2)])
@pytest.mark.parametrize("order", ["file", "shuffled"])
@pytest.mark.parametrize("repeat", [0, 1])
def test_geng2016_validates_on_the_next_fold(given, order, repeat):
    layout = Layout("geng2016", folds=4, order=order)
    rounds = rounds_of(dataset(splits=given), layout, repeat)
    assert len(rounds) == 4
    for number, each in enumerate(rounds):
        ((fit, validation),) = each.tuning
        assert all_rows(each.train, each.test)
        assert all_rows(fit, validation, each.test)
        np.testing.assert_array_equal(validation, rounds[(number + 1) % 4].test)
    if given is not None:
        np.testing.assert_array_equal(rounds[2].test, np.flatnonzero(given[:, repeat] == 2))
    elif order == "file":
        np.testing.assert_array_equal(rounds[0].test, np.arange(6))
    else:
        assert not np.array_equal(rounds[0].test, rounds_of(dataset(), layout, 1 - repeat)[0].test)


@pytest.mark.parametrize("given", [None, splits(4)])
def test_nested_chooses_inside_the_rows_that_learn(given):
    rounds = rounds_of(dataset(splits=given), Layout("nested", folds=4, inner_folds=3))
    assert all_rows(*(each.test for each in rounds))
    for each in rounds:
        assert all_rows(each.train, each.test)
        assert len(each.tuning) == 3
        np.testing.assert_array_equal(np.sort(np.concatenate([rows for _, rows in each.tuning])), each.train)
        for fit, validation in each.tuning:
            np.testing.assert_array_equal(np.sort(np.r_[fit, validation]), each.train)


def test_holdout_tests_and_validates_on_a_fifth():
    (each,) = rounds_of(dataset(), Layout("holdout"))
    ((fit, validation),) = each.tuning
    assert all_rows(fit, validation, each.test)
    np.testing.assert_array_equal(np.sort(np.r_[fit, validation]), each.train)
    assert (len(each.test), len(validation)) == (5, 4)
    other = rounds_of(dataset(), Layout("holdout"), repeat=1)[0]
    assert not np.array_equal(other.test, each.test)


def test_holdout_tests_each_given_split():
    rounds = rounds_of(dataset(splits=splits(3)), Layout("holdout"))
    for fold, each in enumerate(rounds):
        np.testing.assert_array_equal(each.test, np.flatnonzero(splits(3)[:, 0] == fold))
        ((fit, validation),) = each.tuning
        np.testing.assert_array_equal(np.sort(np.r_[fit, validation]), each.train)
    assert len(rounds) == 3


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_groups_stay_together(protocol):
    groups = np.arange(N_ROWS) // 2
    for each in rounds_of(dataset(groups=groups), Layout(protocol, folds=4, inner_folds=3)):
        for learn, held in [(each.train, each.test), *each.tuning]:
            assert not set(groups[learn]) & set(groups[held])


def test_a_fixed_test_set_is_tested_once():
    fixed = dataset(X_test=np.ones((2, 1)), D_test=[[0.5, 0.5]] * 2)
    for protocol in PROTOCOLS:
        (each,) = rounds_of(fixed, Layout(protocol))
        assert each.test is None
        assert all_rows(each.train)
        assert [len(rows) for rows in each.tuning[0]] == [18, 5]
        assert not shares_choice(fixed, protocol)
    assert [shares_choice(dataset(), protocol) for protocol in ("geng2016", "nested", "holdout")] == [
        True,
        False,
        False,
    ]


def test_a_small_training_part_has_fewer_inner_folds():
    rounds = rounds_of(dataset(6), Layout("nested", folds=2, inner_folds=5))
    assert [len(each.tuning) for each in rounds] == [3, 3]
    with pytest.raises(StudyError, match="The training part of toy has 1 rows"):
        rounds_of(dataset(2), Layout("nested", folds=2))


def test_given_splits_must_suffice():
    with pytest.raises(StudyError, match="2 repeats, not for 3"):
        rounds_of(dataset(splits=splits(4, 2)), Layout("nested"), repeat=2)
    with pytest.raises(StudyError, match="1 repeat, not for 2"):
        rounds_of(dataset(splits=splits(4)), Layout("nested"), repeat=1)
    with pytest.raises(StudyError, match="at least 3 folds"):
        rounds_of(dataset(splits=splits(2)), Layout("geng2016"))
