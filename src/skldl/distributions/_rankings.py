"""Rankings of several people, which contradict each other, as one distribution."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from skldl.distributions._answers import table_rows
from skldl.distributions._ranking_program import pairwise_shares, plackett_luce, solve_program
from skldl.distributions._tables import (
    check_choice,
    check_names,
    check_not_empty,
    check_two,
    frame_like,
    is_missing,
    position_of,
    sorted_names,
)
from skldl.exceptions import DimensionError, LengthMismatchError, RankingError, ZeroRowError
from skldl.utils.typing import IntArray


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

    **The program.** Let w_ab be the share of the item's rankers that put label a before label b (listed before it, or
    listed while b is not), and M the labels that at least one ranker listed. The distribution is the solution of

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
        Share of the uniform distribution that is mixed in at the end, for those who need degrees above zero.

    Returns
    -------
    ndarray or DataFrame of shape (n_items, n_labels)
        Rows that sum to one; a DataFrame gives a DataFrame of the same library.

    Raises
    ------
    RankingError
        If a ranking names a label twice, or has an empty place.
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
    check_choice(method, ("program", "plackett-luce"), name="method")
    for name, value in (("margin", margin), ("evenness", evenness), ("regularization", regularization)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name}={value!r} must be a finite number above zero.")
    if not 0 <= floor <= 1:
        raise ValueError(f"floor={floor!r} is a share of the uniform distribution and must lie in [0, 1].")
    items = _read(rankings)
    names = _names(items, n_labels, labels)
    places, lengths = _places(items, names, argument="n_labels" if labels is None else "labels")
    marked = np.any((places >= 0) & (places < lengths[:, :, None]), axis=1)
    bare = ~np.any(marked, axis=1)
    if bare.any():
        row = int(np.argmax(bare))
        raise ZeroRowError(f"No ranker listed any label for item {row}, so there is no information. Drop the item.")
    if method == "program":
        D = solve_program(pairwise_shares(places), marked, margin, evenness)
    else:
        D = plackett_luce(places, lengths, regularization, max_iter=5000, tol=1e-10)
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
            raise LengthMismatchError(f"n_labels={n_labels} but labels names {len(names)}. Leave one of them out.")
        return names
    if n_labels is not None:
        return check_two(list(range(n_labels)))
    return sorted_names(label for item in items for ranking in item if ranking for label in ranking)


def _places(items: list[list[list[Any] | None]], names: list[Any], *, argument: str) -> tuple[IntArray, IntArray]:
    """Place of every label in every ranking, and the number of labels before the cut."""
    column = {name: j for j, name in enumerate(names)}
    n_rankers = max(len(item) for item in items)
    places = np.full((len(items), n_rankers, len(names)), -1, dtype=np.int32)
    lengths = np.zeros((len(items), n_rankers), dtype=np.int32)
    for i, item in enumerate(items):
        for r, ranking in enumerate(item):
            if ranking is None:
                continue
            places[i, r] = len(names)
            lengths[i, r] = len(ranking)
            for place, label in enumerate(ranking):
                where = f"Ranking {r} of item {i}"
                if is_missing(label):
                    raise RankingError(f"{where} has no label at place {place}. List labels without gaps, best first.")
                if label not in column:
                    position_of(names, label, where=where, argument=argument)
                if places[i, r, column[label]] < len(names):
                    raise RankingError(f"{where} names the label {label!r} twice. Each label has one place.")
                places[i, r, column[label]] = place
    return places, lengths
