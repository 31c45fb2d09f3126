"""The support vector machines of the pairs of labels, on weighted examples whose two copies share one row.

For one pair, row i carries the cost u_i of missing the first label and v_i of missing the second. With f = g + b the
machine (C-SVC) minimises

    ½‖g‖² + Σ_i u_i·max(0, 1 − f_i) + v_i·max(0, 1 + f_i).

Both copies of a row share x_i, so one dual variable per row is enough: g = Σ_i γ_i k(x_i, ·), and γ maximises

    −½ γᵀKγ − Σ_i |γ_i − m_i|   with   Σ_i γ_i = 0,  −v_i ≤ γ_i ≤ u_i,  m = u − v.

Where |f_i| < 1 both hinges of row i are active and γ_i = m_i. If that holds for every row, as it does for most label
distributions once u and v have equal sums, the machine is known without a solver: g = Km. `machines_between_margins`
tests this optimality condition exactly, for all pairs at once; the pairs that fail need a solver.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import config_context
from sklearn.svm import SVC

from skldl.exceptions import DataError
from skldl.utils.typing import FloatArray, IntArray

LIBSVM_TOLERANCE = 1e-6
"""Smaller than LIBSVM's default 1e-3, at little cost, so that rounding of the weights does not affect predictions."""
LIBSVM_MOST_STEPS = 1_000_000
"""With a linear kernel of unscaled features LIBSVM may not terminate, and it cannot be interrupted."""
LIBSVM_ALL_STEPS, LIBSVM_LEAST_STEPS = 20_000_000, 10_000
"""Steps for all machines that are solved together, and at least for each of them: else they could take hours."""


class QuietSVC(SVC):
    """LIBSVM that reports an early stop only in ``fit_status_``: filters of warnings are not thread-safe."""

    def _warn_from_fit_status(self) -> None:
        pass


def label_costs(mass: FloatArray, each: float, C: float, *, equal_mass: bool) -> FloatArray:
    """Cost of one unit of weight of each label.

    Parameters
    ----------
    mass : ndarray of shape (n_labels,)
        Total weight of each label in the training rows.
    each : float
        The average mass of the labels, in a part of the rows as in all of them.
    C : float
        Cost of one unit of weight.
    equal_mass : bool
        Give every label this mass, not only their average.
    """
    if equal_mass:
        return C * each / np.where(mass > 0, mass, 1.0)
    return np.full(len(mass), C * each / mass.mean())


@dataclass(frozen=True)
class Machines:
    """Machines of many pairs: f = factor·(Ku − Kv) + offset, if `optimal`."""

    factor: FloatArray
    offset: FloatArray
    optimal: npt.NDArray[np.bool_]

    def take(self, block: slice) -> Self:
        """Return some of the pairs."""
        return replace(self, **{field.name: getattr(self, field.name)[block] for field in fields(self)})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Put pairs that were taken apart together again."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


def machines_between_margins(sums: FloatArray, costs: FloatArray, pairs: tuple[IntArray, IntArray]) -> Machines:
    """Machines with γ = m for the given pairs, and whether each is optimal.

    A pair of which one label has no mass leaves nothing to separate: its factor is zero, and so is its machine.

    Parameters
    ----------
    sums : ndarray of shape (n_samples, n_labels)
        K @ costs over the training rows.
    costs : ndarray of shape (n_samples, n_labels)
        Cost of missing each label in each row: u and v are two columns of it.
    pairs : pair of ndarray of shape (n_pairs,)
        First and second label of each pair.
    """
    a, b = pairs
    mass = costs.sum(axis=0)
    factor = ((mass[a] > 0) & (mass[b] > 0)).astype(np.float64)
    values = sums[:, a] - sums[:, b]
    values *= factor
    inner = costs.T @ sums
    total = mass[a] + mass[b]
    mean = factor * (inner[a, a] - inner[a, b] + inner[b, a] - inner[b, b]) / np.where(total > 0, total, 1.0)
    offset, fits = offset_between_margins(values, costs[:, a] > 0, costs[:, b] > 0, mean)
    sums_to_zero = factor * np.abs(mass[a] - mass[b]) <= 1e-12 * total
    return Machines(factor, offset, fits & sums_to_zero)


def offset_between_margins(
    values: FloatArray,
    first_present: npt.NDArray[np.bool_],
    second_present: npt.NDArray[np.bool_],
    mean: FloatArray,
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Offset b of machines with γ = m, and whether an optimal one exists.

    An offset is optimal if f ≤ 1 wherever the first label is present and f ≥ −1 wherever the second is. That leaves an
    interval, which may be empty. Of its points the one nearest to minus the mean of g is taken: unlike the middle of
    the interval, which two extreme rows decide, it hardly changes from one training set to the next.
    """
    highest = np.max(values, axis=0, where=first_present, initial=-np.inf)
    lowest = np.min(values, axis=0, where=second_present, initial=np.inf)
    return np.clip(-mean, -1.0 - lowest, 1.0 - highest), highest - lowest <= 2.0


def solve_pairs(
    copies: Any,
    costs: FloatArray,
    pairs: tuple[IntArray, IntArray],
    *,
    tol: float | None = None,
    max_iter: int | None = None,
    **kernel: Any,
) -> tuple[FloatArray, FloatArray, int]:
    """Solve pairs one after the other by LIBSVM.

    Parameters
    ----------
    copies : array or sparse matrix with 2 * n_samples rows
        The training rows twice, or the kernel matrix of these.
    costs : ndarray of shape (n_samples, n_labels)
        Cost of missing each label in each row.
    pairs : pair of ndarray of shape (n_pairs,)
        First and second label of each pair, with mass in both.
    tol : float, default=None
        Where LIBSVM stops; None is `LIBSVM_TOLERANCE`.
    max_iter : int, default=None
        Most steps of LIBSVM for one pair; None is `LIBSVM_MOST_STEPS`.
    **kernel
        ``kernel`` and ``gamma`` as `sklearn.svm.SVC` takes them.

    Returns
    -------
    coefficients : ndarray of shape (n_samples, n_pairs)
        γ of each pair.
    offset : ndarray of shape (n_pairs,)
        b of each pair.
    n_stopped : int
        Number of pairs that ``max_iter`` kept from their optimum.
    """
    options = {
        "tol": LIBSVM_TOLERANCE if tol is None else tol,
        "max_iter": LIBSVM_MOST_STEPS if max_iter is None else max_iter,
        **kernel,
    }
    with config_context(assume_finite=True, skip_parameter_validation=True):
        solutions = [_solve_pair(copies, costs[:, a], costs[:, b], options) for a, b in zip(*pairs, strict=True)]
    coefficients, offset, stopped = zip(*solutions, strict=True)
    return np.column_stack(coefficients), np.array(offset), sum(stopped)


def _solve_pair(copies: Any, u: FloatArray, v: FloatArray, options: dict[str, Any]) -> tuple[FloatArray, float, bool]:
    """γ and b of one pair, and whether LIBSVM was stopped; exchanging u and v changes signs and nothing else."""
    n_samples = len(u)
    differs = int(np.argmax(u != v))
    if u[differs] < v[differs]:  # LIBSVM stops within a tolerance: let it see the same problem in both orders
        gamma, offset, stopped = _solve_pair(copies, v, u, options)
        return -gamma, -offset, stopped
    cost, sides = np.concatenate([u, v]), np.repeat([1, -1], n_samples)
    present = np.flatnonzero(cost)
    if len(present) < len(cost):  # SVC counts its support vectors without the rows of weight zero: leave these out
        cost, sides = cost[present], sides[present]
        copies = copies[np.ix_(present, present)] if options["kernel"] == "precomputed" else copies[present]
    machine = QuietSVC(C=1.0, **options)
    try:
        machine.fit(copies, sides, sample_weight=cost)
    except ValueError as error:
        if "not finite" not in str(error):  # what scikit-learn says of the result of LIBSVM
            raise
        raise DataError(
            "LIBSVM could not solve a machine of PTSVM: its numbers overflowed. Scale the features "
            "(sklearn.preprocessing.StandardScaler), or choose a smaller C."
        ) from error
    dual = np.zeros(2 * n_samples)
    dual[present[machine.support_]] = (
        machine.dual_coef_.toarray()[0] if sparse.issparse(copies) else machine.dual_coef_[0]
    )
    return dual[:n_samples] + dual[n_samples:], float(machine.intercept_[0]), machine.fit_status_ != 0
