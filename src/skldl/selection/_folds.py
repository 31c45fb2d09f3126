"""Assignment of rows to folds: contiguous chunks of the file or of a shuffled order; groups stay together."""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, GroupShuffleSplit

from skldl.exceptions import StudyError
from skldl.utils.typing import IntArray


def derive_seed(*parts: object) -> int:
    """Make a seed from anything that names a task, the same on every machine and in every process.

    Parameters
    ----------
    *parts : object
        Identifies the task; their ``repr`` is hashed.

    Returns
    -------
    int
        The seed.

    Examples
    --------
    >>> derive_seed(0, "Yeast_alpha", "AA-BP", 3) == derive_seed(0, "Yeast_alpha", "AA-BP", 3)
    True
    """
    digest = hashlib.sha256("\0".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1  # 31 bits: what every generator takes as a seed


def assign_folds(
    n_samples: int, n_folds: int, *, random_state: Any = None, groups: Any = None, name: str = "the data"
) -> IntArray:
    """Give each row the number of its fold.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    n_folds : int
        Number of folds.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling, or where it is drawn from; None keeps the order of the file. ``RandomState(0)`` makes the
        folds of scikit-learn's ``KFold(n_folds, shuffle=True, random_state=0)``.
    groups : array-like of shape (n_samples,), default=None
        Rows of one group come into the same fold.
    name : str
        Name of the data in the error message.

    Returns
    -------
    ndarray of shape (n_samples,)
        Number of the fold of each row, from 0.

    Examples
    --------
    >>> assign_folds(7, 3)
    array([0, 0, 0, 1, 1, 2, 2])
    >>> assign_folds(4, 2, groups=["a", "b", "b", "a"])
    array([1, 0, 0, 1])
    """
    units, what = (n_samples, "rows") if groups is None else (len(np.unique(groups)), "groups")
    if units < n_folds:
        raise StudyError(f"{name} has {units} {what}, too few for {n_folds} folds. Use at most {units} folds.")
    fold_of = np.empty(n_samples, dtype=np.intp)
    if groups is None:
        given = random_state is None or isinstance(random_state, np.random.RandomState)
        generator = random_state if given else np.random.default_rng(random_state)
        order = np.arange(n_samples) if generator is None else generator.permutation(n_samples)
        for fold, rows in enumerate(np.array_split(order, n_folds)):
            fold_of[rows] = fold
        return fold_of
    splitter = GroupKFold(n_folds, shuffle=random_state is not None, random_state=random_state)
    for fold, (_, rows) in enumerate(splitter.split(fold_of, groups=groups)):
        fold_of[rows] = fold
    return fold_of


def shuffled_folds(n_samples: int, n_folds: int, groups: Any, random_state: Any, name: str = "the data") -> IntArray:
    """As `assign_folds`, with fewer folds than asked for, but at least two, if there are fewer rows or groups.

    Examples
    --------
    >>> shuffled_folds(3, 10, None, random_state=0)
    array([1, 2, 0])
    """
    units = n_samples if groups is None else len(np.unique(groups))
    return assign_folds(n_samples, max(2, min(n_folds, units)), random_state=random_state, groups=groups, name=name)


def pairs_of(fold_of: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Go through the folds: the rows outside of each, and the rows in it.

    Parameters
    ----------
    fold_of : ndarray of int of shape (n_samples,)
        Fold of each row, from 0; rows with -1 are in no fold.

    Yields
    ------
    train, test : ndarray of int
        Rows outside the fold and rows in it.

    Examples
    --------
    >>> import numpy as np
    >>> next(pairs_of(np.array([0, 0, 1])))
    (array([2]), array([0, 1]))
    """
    for fold in range(int(fold_of.max()) + 1):
        yield np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)


def hold_out(
    n_samples: int, fraction: float, *, random_state: int, groups: Any = None, name: str = "the data"
) -> tuple[IntArray, IntArray]:
    """Hold out a random fraction of the rows, at least one and not all.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    fraction : float
        Fraction to hold out.
    random_state : int
        Seed of the draw.
    groups : array-like of shape (n_samples,), default=None
        Rows of one group stay on one side; then the fraction is a fraction of the groups.
    name : str
        Name of the data in the error message.

    Returns
    -------
    rest, held : ndarray of int
        The row numbers of both parts, ascending.

    Examples
    --------
    >>> rest, held = hold_out(10, 0.2, random_state=0)
    >>> len(rest), len(held)
    (8, 2)
    """
    units, what = (n_samples, "row") if groups is None else (len(np.unique(groups)), "group")
    if units < 2:
        raise StudyError(f"{name} has only one {what}: nothing can be held out.")
    cut = min(max(1, round(units * fraction)), units - 1)
    if groups is not None:
        splitter = GroupShuffleSplit(1, test_size=cut, random_state=random_state)
        rest, held = next(splitter.split(np.empty(n_samples), groups=groups))
        return np.sort(rest), np.sort(held)
    order = np.random.default_rng(random_state).permutation(n_samples)
    return np.sort(order[cut:]), np.sort(order[:cut])
