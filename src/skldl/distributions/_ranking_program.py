"""Two conversions of rankings into a distribution, vectorised over the rows: a convex program, and Plackett-Luce."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.warn import warn

_ENTRIES = 2**22  # cells of the largest temporary array
_MAX_STEPS = 100


def pairwise_shares(places: IntArray) -> FloatArray:
    """Share of an item's rankers that put label a before label b.

    Parameters
    ----------
    places : ndarray of shape (n_items, n_rankers, n_labels)
        Place of each label in each ranking, 0 for the best; the number of labels for all below the cut,
        and -1 throughout for a ranker that is not there.
    """
    wins = np.zeros((places.shape[0], places.shape[2], places.shape[2]))
    for ranker in range(places.shape[1]):
        place = places[:, ranker]
        wins += place[:, :, None] < place[:, None, :]
    present = (places[:, :, 0] >= 0).sum(axis=1)
    return wins / np.maximum(present, 1)[:, None, None]


def solve_program(shares: FloatArray, marked: npt.NDArray[np.bool_], margin: float, evenness: float) -> FloatArray:
    """Solve the convex program of `from_rankings` for every item, by Newton's method with a step for all at once."""
    D = np.empty(marked.shape)
    step = max(1, _ENTRIES // marked.shape[1] ** 2)
    for start in range(0, len(D), step):
        rows = slice(start, start + step)
        D[rows] = _newton(
            shares[rows] * (marked[rows, :, None] & marked[rows, None, :]), marked[rows], margin, evenness
        )
    return D


def _objective(d: FloatArray, shares: FloatArray, marked: npt.NDArray[np.bool_], margin: float, evenness: float) -> Any:
    slack = np.maximum(margin - (d[:, :, None] - d[:, None, :]), 0.0)
    inside = np.where(marked, d, 1.0)
    value = (shares * slack**2).sum(axis=(1, 2)) - evenness * np.log(np.maximum(inside, 1e-300)).sum(axis=1)
    return np.where((inside <= 0).any(axis=1), np.inf, value)


def _newton(shares: FloatArray, marked: npt.NDArray[np.bool_], margin: float, evenness: float) -> FloatArray:
    """Newton's method on the simplex of the marked labels; the last row and column of the system keep the sum."""
    n_items, n_labels = marked.shape
    d = marked / marked.sum(axis=1, keepdims=True)
    active = np.arange(n_items)
    diagonal = np.arange(n_labels)
    for _ in range(_MAX_STEPS):
        point, weight, on = d[active], shares[active], marked[active]
        slack = np.maximum(margin - (point[:, :, None] - point[:, None, :]), 0.0)
        pull = 2 * weight * slack
        inside = np.where(on, point, 1.0)
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
    shares: FloatArray,
    marked: npt.NDArray[np.bool_],
    margin: float,
    evenness: float,
) -> FloatArray:
    """Halve the step of each item until the objective falls as it should; stay where rounding leaves no gain."""
    length = np.ones(len(point))
    for _ in range(50):
        new = point + length[:, None] * step
        after = _objective(new, shares, marked, margin, evenness)
        good = after <= before - 1e-4 * length * np.maximum(decrease, 0.0) + 1e-15 * np.abs(before)
        if good.all():
            return new
        length = np.where(good, length, length / 2)
    return np.where(good[:, None], new, point)


def plackett_luce(places: IntArray, lengths: IntArray, regularization: float, max_iter: int, tol: float) -> FloatArray:
    """Worths of the labels under Plackett-Luce with a Gamma prior, by minorisation and maximisation for all items.

    Parameters
    ----------
    places : ndarray of shape (n_items, n_rankers, n_labels)
        As in `pairwise_shares`.
    lengths : ndarray of shape (n_items, n_rankers)
        Number of labels before the cut.
    regularization : float
        Pseudo-wins ρ of every label, against as many chances as a label of average worth would need for them.
    max_iter, tol : int, float
        Maximum number of steps, and the largest change of a worth at which to stop.
    """
    n_items, _, n_labels = places.shape
    marked = (places >= 0) & (places < lengths[:, :, None])
    wins = marked.sum(axis=1) + regularization
    order = np.argsort(np.where(marked, places, n_labels), axis=2, kind="stable")
    stage = np.arange(n_labels)[None, None] < lengths[:, :, None]
    last = np.clip(np.where(marked, places, lengths[:, :, None] - 1), 0, n_labels - 1)
    taking_part = (lengths > 0)[:, :, None]
    worth = np.full((n_items, n_labels), 1.0 / n_labels)
    active = np.arange(n_items)
    for _ in range(max_iter):
        current = worth[active]
        in_order = np.take_along_axis(np.broadcast_to(current[:, None], order[active].shape), order[active], axis=2)
        remaining = np.cumsum(in_order[:, :, ::-1], axis=2)[:, :, ::-1]  # from the back: no cancellation
        chances = np.cumsum(np.where(stage[active], 1.0 / remaining, 0.0), axis=2)
        exposure = np.take_along_axis(chances, last[active], axis=2) * taking_part[active]
        new = wins[active] / (exposure.sum(axis=1) + regularization * n_labels)
        new /= new.sum(axis=1, keepdims=True)
        worth[active] = new
        active = active[np.abs(new - current).max(axis=1) > tol]
        if not len(active):
            return worth
    warn(
        f"Plackett-Luce did not settle within {max_iter} steps for {len(active)} rows; choose a larger regularization.",
        ConvergenceWarning,
    )
    return worth
