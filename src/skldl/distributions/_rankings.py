"""`from_rankings`: one distribution for each item from several rankings, which may contradict each other."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from skldl.distributions._answers import table_rows
from skldl.distributions._tables import (
    check_names,
    check_not_empty,
    check_two,
    frame_like,
    is_missing,
    position_of,
    sorted_names,
)
from skldl.exceptions import DimensionError, LengthMismatchError, Parameter, RankingError, ZeroRowError
from skldl.utils.parameters import FRACTION, POSITIVE, check_value, one_of
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.warn import warn

MAX_CELLS = 2**22  # of a temporary array (32 MiB); items are solved in blocks of this size
MAX_STEPS = 100  # of Newton's method, before a warning
MAX_HALVINGS = 50  # of a step, which then is below the rounding error of a degree
MAX_PLACKETT_LUCE_STEPS = 5000  # before a warning; chosen by hand
PLACKETT_LUCE_TOL = 1e-10  # largest change of a degree in the last step; the steps converge linearly


def from_rankings(
    rankings: Any,
    n_labels: int | None = None,
    labels: Any = None,
    method: str = "program",
    *,
    margin: float = 0.05,
    evenness: float = 1e-3,
    regularization: float = 0.1,
    floor: float = 0.0,
) -> Any:
    r"""Find the one distribution that agrees best with the rankings of several people.

    Each ranker lists the labels that describe the item, best first, and stops; all other labels are tied below that
    cut. Rankers contradict each other, so no distribution satisfies them all.

    **The program.** Let w_ab be the fraction of the item's rankers that put label a before label b (listed before it,
    or listed while b is not), and M the labels that at least one ranker listed. The distribution is the solution of

    .. math::
        \min_{d,\,\xi} \; \sum_{a, b \in M} w_{ab}\, \xi_{ab}^2 \;-\; \mu \sum_{a \in M} \ln d_a
        \quad\text{subject to}\quad
        d_a - d_b \ge \varepsilon - \xi_{ab}, \quad \xi_{ab} \ge 0, \quad \sum_{a \in M} d_a = 1

    and d = 0 for labels that nobody listed: every ranker requires the margin ε between each two labels that he or she
    ranks, what is missing from it is paid for by its square, and the second term, with a small μ, prefers even
    distributions and keeps degrees above zero. It is convex with exactly one solution, found by Newton's method.
    **If all rankers that distinguish a and b put a first, then d_a > d_b** (exchanging the two degrees otherwise would
    be at least as good, and the solution is unique). Geng (2016) refers to a program of [1]_ without printing it: this
    one is ours, and its two numbers ε and μ are chosen so that it comes near the distributions of Natural_Scene.

    **Plackett-Luce.** The list of a ranker is a sequence of choices; the chance to choose label a among the labels not
    yet listed is its worth over the sum of theirs. The worths that make the lists most likely [2]_ are the
    distribution. A Gamma prior of ``regularization`` pseudo-choices per label keeps them finite and above zero. Degrees
    are far less even than those of the program, and unanimous rankers are respected too.

    Parameters
    ----------
    rankings : nested sequence or DataFrame
        ``rankings[i][r]`` lists the labels that ranker r put before the cut for item i, best first. An empty list means
        that no label describes the item, None that the ranker did not see it; items may have different rankers. In a
        DataFrame, a row is an item and a column is a ranker.
    n_labels : int, default=None
        Number of labels, if they are the whole numbers from 0 on.
    labels : sequence, default=None
        Names of all labels, in the order of the columns of the result. Without it and ``n_labels``, the labels that
        occur, sorted.
    method : {"program", "plackett-luce"}, default="program"
        Which of the two.
    margin : float, default=0.05
        ε of the program.
    evenness : float, default=1e-3
        μ of the program, above zero.
    regularization : float, default=0.1
        Pseudo-choices per label of Plackett-Luce, above zero.
    floor : float, default=0.0
        Fraction of the uniform distribution that is mixed in at the end, if all degrees must be above zero.

    Returns
    -------
    ndarray or DataFrame of shape (n_items, n_labels)
        Rows that sum to one; a DataFrame gives a DataFrame of the same library.

    Raises
    ------
    RankingError
        If a ranking names a label twice, or has an empty position.
    UnknownLabelError
        If a label is not among ``labels``.
    ZeroRowError
        If no ranker listed any label for an item.

    References
    ----------
    .. [1] X. Geng and L. Luo, "Multilabel ranking with inconsistent rankers", CVPR 2014.
    .. [2] D. R. Hunter, "MM algorithms for generalized Bradley-Terry models", Annals of Statistics 32, 2004.

    Examples
    --------
    >>> from skldl.distributions import from_rankings
    >>> three_rankers = [["sky", "sea"], ["sky"], ["sea", "sky"]]
    >>> from_rankings([three_rankers], labels=["sky", "sea", "sun"]).round(3)
    array([[0.508, 0.492, 0.   ]])
    >>> from_rankings([three_rankers], labels=["sky", "sea", "sun"], method="plackett-luce").round(3)
    array([[0.642, 0.344, 0.013]])
    """
    check_value("method", method, one_of("program", "plackett-luce"))
    for name, value in (("margin", margin), ("evenness", evenness), ("regularization", regularization)):
        check_value(name, value, POSITIVE)
    check_value("floor", floor, FRACTION)
    items = _read(rankings)
    names = _names(items, n_labels, labels)
    ranks, lengths = _ranks(items, names, argument="n_labels" if labels is None else "labels")
    marked = np.any((ranks >= 0) & (ranks < lengths[:, :, None]), axis=1)
    bare = ~np.any(marked, axis=1)
    if bare.any():
        row = int(np.argmax(bare))
        raise ZeroRowError(f"No ranker listed any label for item {row}: there is no information. Remove it.", row=row)
    if method == "program":
        D = solve_program(pairwise_fractions(ranks), marked, margin, evenness)
    else:
        D = plackett_luce(ranks, lengths, regularization, max_iter=MAX_PLACKETT_LUCE_STEPS, tol=PLACKETT_LUCE_TOL)
    D = (1.0 - floor) * D + floor / len(names)
    return frame_like(rankings, D / D.sum(axis=1, keepdims=True), names)


def _read(rankings: Any) -> list[list[list[Any] | None]]:
    """Return one list per item of one list per ranker; None for a missing ranker."""
    rows = table_rows(rankings)
    check_not_empty(rows, name="rankings")
    items = []
    for i, row in enumerate(rows):
        item: list[list[Any] | None] = []
        for r, ranking in enumerate(row):
            if is_missing(ranking):
                item.append(None)
                continue
            if isinstance(ranking, str | bytes) or not isinstance(ranking, Iterable):
                raise DimensionError(
                    f"Ranking {r} of item {i} is {ranking!r}, not a list of labels. rankings[i][r] lists the labels "
                    "that ranker r put before the cut for item i; a single ranker needs a list around the list too."
                )
            item.append(list(ranking))
        items.append(item)
    return items


def _names(items: list[list[list[Any] | None]], n_labels: int | None, labels: Any) -> list[Any]:
    if labels is not None:
        names = check_names(labels, name="labels")
        if n_labels is not None and n_labels != len(names):
            raise LengthMismatchError(
                Parameter("n_labels", n_labels), f" but labels names {len(names)}. Leave one of them out."
            )
        return names
    if n_labels is not None:
        return check_two(list(range(n_labels)))
    return sorted_names(label for item in items for ranking in item if ranking for label in ranking)


def _ranks(items: list[list[list[Any] | None]], names: list[Any], *, argument: str) -> tuple[IntArray, IntArray]:
    """Rank of every label in every ranking, and the number of labels before the cut."""
    column = {name: j for j, name in enumerate(names)}
    n_rankers = max(len(item) for item in items)
    ranks = np.full((len(items), n_rankers, len(names)), -1, dtype=np.int32)
    lengths = np.zeros((len(items), n_rankers), dtype=np.int32)
    for i, item in enumerate(items):
        for r, ranking in enumerate(item):
            if ranking is None:
                continue
            ranks[i, r] = len(names)
            lengths[i, r] = len(ranking)
            for rank, label in enumerate(ranking):
                where = f"Ranking {r} of item {i}"
                if is_missing(label):
                    raise RankingError(
                        f"{where} has no label at position {rank}. List labels without gaps, best first."
                    )
                if label not in column:
                    position_of(names, label, where=where, argument=argument)
                if ranks[i, r, column[label]] < len(names):
                    raise RankingError(f"{where} names the label {label!r} twice. List each label at most once.")
                ranks[i, r, column[label]] = rank
    return ranks, lengths


def pairwise_fractions(ranks: IntArray) -> FloatArray:
    """Fraction of an item's rankers that put label a before label b.

    Parameters
    ----------
    ranks : ndarray of shape (n_items, n_rankers, n_labels)
        Rank of each label in each ranking, 0 for the best; the number of labels for all below the cut,
        and -1 for all labels if there is no such ranker.
    """
    wins = np.zeros((ranks.shape[0], ranks.shape[2], ranks.shape[2]))
    for ranker in range(ranks.shape[1]):
        rank = ranks[:, ranker]
        wins += rank[:, :, None] < rank[:, None, :]
    present = (ranks[:, :, 0] >= 0).sum(axis=1)
    return wins / np.maximum(present, 1)[:, None, None]


def solve_program(fractions: FloatArray, marked: npt.NDArray[np.bool_], margin: float, evenness: float) -> FloatArray:
    """Solve the convex program of `from_rankings` for every item, by Newton's method with a step for all at once."""
    D = np.empty(marked.shape)
    step = max(1, MAX_CELLS // marked.shape[1] ** 2)
    for start in range(0, len(D), step):
        rows = slice(start, start + step)
        D[rows] = _newton(
            fractions[rows] * (marked[rows, :, None] & marked[rows, None, :]), marked[rows], margin, evenness
        )
    return D


def _objective(
    d: FloatArray, fractions: FloatArray, marked: npt.NDArray[np.bool_], margin: float, evenness: float
) -> Any:
    """Value of the program for each item; infinite outside the domain of the logarithm."""
    slack = np.maximum(margin - (d[:, :, None] - d[:, None, :]), 0.0)
    inside = np.where(marked, d, 1.0)
    # 1e-300: no logarithm of zero or less, where the value is infinite anyway
    value = (fractions * slack**2).sum(axis=(1, 2)) - evenness * np.log(np.maximum(inside, 1e-300)).sum(axis=1)
    return np.where((inside <= 0).any(axis=1), np.inf, value)


def _newton(fractions: FloatArray, marked: npt.NDArray[np.bool_], margin: float, evenness: float) -> FloatArray:
    """Newton's method on the simplex of the marked labels; the last row and column of the system keep the sum."""
    n_items, n_labels = marked.shape
    d = marked / marked.sum(axis=1, keepdims=True)
    active = np.arange(n_items)
    diagonal = np.arange(n_labels)
    for _ in range(MAX_STEPS):
        point, weight, on = d[active], fractions[active], marked[active]
        slack = np.maximum(margin - (point[:, :, None] - point[:, None, :]), 0.0)
        pull = 2 * weight * slack
        inside = np.where(on, point, 1.0)  # labels that nobody listed stay at 0: any number with a logarithm serves
        gradient = np.where(on, pull.sum(axis=1) - pull.sum(axis=2) - evenness / inside, 0.0)
        curvature = 2 * weight * (slack > 0)
        curvature = curvature + curvature.transpose(0, 2, 1)
        system = np.zeros((len(active), n_labels + 1, n_labels + 1))
        system[:, :n_labels, :n_labels] = -curvature
        system[:, diagonal, diagonal] = curvature.sum(axis=2) + np.where(on, evenness / inside**2, 1.0)
        system[:, :n_labels, n_labels] = system[:, n_labels, :n_labels] = on
        right = np.concatenate([-gradient, np.zeros((len(active), 1))], axis=1)
        step = np.where(on, np.linalg.solve(system, right[..., None])[:, :n_labels, 0], 0.0)
        decrease = -(gradient * step).sum(axis=1)
        before = _objective(point, weight, on, margin, evenness)
        # stop where the predicted decrease is below the rounding error of the objective
        moving = decrease > 1e-12 * evenness + 1e-15 * np.abs(before)
        d[active] = _backtrack(
            point, np.where(moving[:, None], step, 0.0), decrease, before, weight, on, margin, evenness
        )
        active = active[moving]
        if not len(active):
            return d
    warn(  # a convex program in few variables: only extreme settings come here
        "The program behind from_rankings did not converge; choose a larger evenness or smaller margin.",
        ConvergenceWarning,
    )
    return d


def _backtrack(
    point: FloatArray,
    step: FloatArray,
    decrease: FloatArray,
    before: FloatArray,
    fractions: FloatArray,
    marked: npt.NDArray[np.bool_],
    margin: float,
    evenness: float,
) -> FloatArray:
    """Halve the step of each item until Armijo's condition holds; keep the point where rounding leaves no gain."""
    length = np.ones(len(point))
    for _ in range(MAX_HALVINGS):
        new = point + length[:, None] * step
        after = _objective(new, fractions, marked, margin, evenness)
        # 1e-4 is the usual constant of Armijo's condition; 1e-15 allows for rounding
        good = after <= before - 1e-4 * length * np.maximum(decrease, 0.0) + 1e-15 * np.abs(before)
        if good.all():
            return new
        length = np.where(good, length, length / 2)
    return np.where(good[:, None], new, point)


def plackett_luce(ranks: IntArray, lengths: IntArray, regularization: float, max_iter: int, tol: float) -> FloatArray:
    """Worths of the labels under Plackett-Luce with a Gamma prior, by minorisation and maximisation for all items.

    Parameters
    ----------
    ranks : ndarray of shape (n_items, n_rankers, n_labels)
        As in `pairwise_fractions`.
    lengths : ndarray of shape (n_items, n_rankers)
        Number of labels before the cut.
    regularization : float
        Pseudo-wins ρ of every label, against as many chances as a label of average worth would need for them.
    max_iter, tol : int, float
        Maximum number of steps, and the largest change of a worth at which to stop.
    """
    n_items, _, n_labels = ranks.shape
    marked = (ranks >= 0) & (ranks < lengths[:, :, None])
    wins = marked.sum(axis=1) + regularization
    order = np.argsort(np.where(marked, ranks, n_labels), axis=2, kind="stable")
    stage = np.arange(n_labels)[None, None] < lengths[:, :, None]
    last = np.clip(np.where(marked, ranks, lengths[:, :, None] - 1), 0, n_labels - 1)
    taking_part = (lengths > 0)[:, :, None]
    worth = np.full((n_items, n_labels), 1.0 / n_labels)
    active = np.arange(n_items)
    for _ in range(max_iter):
        current = worth[active]
        in_order = np.take_along_axis(np.broadcast_to(current[:, None], order[active].shape), order[active], axis=2)
        remaining = np.cumsum(in_order[:, :, ::-1], axis=2)[:, :, ::-1]  # from the back: no cancellation
        chances = np.cumsum(np.where(stage[active], 1.0 / remaining, 0.0), axis=2)
        exposure = np.take_along_axis(chances, last[active], axis=2) * taking_part[active]
        # the step of minorisation and maximisation: choices of a label over its chances to be chosen
        new = wins[active] / (exposure.sum(axis=1) + regularization * n_labels)
        new /= new.sum(axis=1, keepdims=True)
        worth[active] = new
        active = active[np.abs(new - current).max(axis=1) > tol]
        if not len(active):
            return worth
    warn(
        f"Plackett-Luce did not converge in {max_iter} steps for {len(active)} rows. Choose a larger regularization.",
        ConvergenceWarning,
    )
    return worth
