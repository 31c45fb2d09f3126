"""Folds: which rows are held out together, with groups and seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold

from skldl.exceptions import StudyError
from skldl.selection import assign_folds, derive_seed, hold_out, pairs_of


@given(st.integers(2, 12), st.integers(0, 60), st.none() | st.integers(0, 5))
def test_folds_are_contiguous_chunks_of_an_order(n_folds, extra, seed):
    n = n_folds + extra
    fold_of = assign_folds(n, n_folds, random_state=seed)
    sizes = np.bincount(fold_of, minlength=n_folds)
    assert sizes.sum() == n
    assert sizes.max() - sizes.min() <= 1
    if seed is None:
        expected = np.concatenate([np.full(len(c), i) for i, c in enumerate(np.array_split(np.arange(n), n_folds))])
        np.testing.assert_array_equal(fold_of, expected)


def test_shuffled_folds_depend_on_the_seed_alone():
    one, again, other = (assign_folds(50, 5, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    assert (one != assign_folds(50, 5)).any()


@given(st.lists(st.integers(0, 7), min_size=8, max_size=40), st.none() | st.integers(0, 3))
def test_groups_stay_together(groups, seed):
    groups = [*range(3), *groups]
    fold_of = assign_folds(len(groups), 3, random_state=seed, groups=groups)
    for group in set(groups):
        assert len({int(fold) for fold, g in zip(fold_of, groups, strict=True) if g == group}) == 1
    assert set(fold_of) == {0, 1, 2}
    rest, held = hold_out(len(groups), 0.2, random_state=0, groups=groups)
    assert not {groups[i] for i in rest} & {groups[i] for i in held}


def test_too_few_rows_or_groups():
    with pytest.raises(StudyError, match=r"tiny has 3 rows, too few for 5 folds. Use at most 3"):
        assign_folds(3, 5, name="tiny")
    with pytest.raises(StudyError, match="has 2 groups, too few for 3 folds"):
        assign_folds(6, 3, groups=[1, 1, 1, 2, 2, 2])
    with pytest.raises(StudyError, match="only one group"):
        hold_out(4, 0.2, random_state=0, groups=[1, 1, 1, 1])
    with pytest.raises(StudyError, match="only one row"):
        hold_out(1, 0.2, random_state=0)


def test_hold_out_splits_all_rows():
    rest, held = hold_out(11, 0.2, random_state=3)
    np.testing.assert_array_equal(np.sort(np.concatenate([rest, held])), np.arange(11))
    assert len(held) == 2
    assert len(hold_out(2, 0.01, random_state=0)[1]) == 1


@pytest.mark.parametrize(("n", "n_folds"), [(2, 2), (17, 5), (100, 10)])
def test_a_random_state_gives_the_folds_of_scikit_learn(n, n_folds):
    """Estimators that chose by KFold before get the same folds, to the last row, with and without groups."""
    rows, groups = np.arange(n), np.random.default_rng(0).permutation(n) % max(2, n_folds + 1)
    ours = pairs_of(assign_folds(n, n_folds, random_state=np.random.RandomState(0)))
    for (train, test), own in zip(KFold(n_folds, shuffle=True, random_state=0).split(rows), ours, strict=True):
        np.testing.assert_array_equal(train, own[0])
        np.testing.assert_array_equal(test, own[1])
    ours = pairs_of(assign_folds(n, 2, random_state=np.random.RandomState(0), groups=groups))
    splitter = GroupKFold(2, shuffle=True, random_state=0)
    for (train, test), own in zip(splitter.split(rows, groups=groups), ours, strict=True):
        np.testing.assert_array_equal(train, own[0])
        np.testing.assert_array_equal(test, own[1])


def test_seeds_differ_with_every_part_and_stay_positive():
    seeds = {derive_seed(*parts) for parts in [(0, "a", 1), (0, "a", 2), (0, "b", 1), (1, "a", 1), (0, "a1", "")]}
    assert len(seeds) == 5
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert derive_seed(0, "x") == derive_seed(0, "x")


def test_pairs_cover_all_rows():
    pairs = list(pairs_of(np.array([1, 0, 1, 2])))
    assert [held.tolist() for _, held in pairs] == [[1], [0, 2], [3]]
    assert [rest.tolist() for rest, _ in pairs] == [[0, 2, 3], [1, 3], [0, 1, 2]]
