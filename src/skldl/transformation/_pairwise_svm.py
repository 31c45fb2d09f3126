"""The support vector machines of the pairs of labels, on weighted examples whose two copies share one row.

For one pair, row i carries the cost u_i of missing the first label and v_i of missing the second. With f = g + b the
machine (C-SVC) minimises

    ½‖g‖² + Σ_i u_i·max(0, 1 − f_i) + v_i·max(0, 1 + f_i).

Both copies of a row share x_i, so one dual variable per row is enough: g = Σ_i γ_i k(x_i, ·), and γ maximises

    −½ γᵀKγ − Σ_i |γ_i − m_i|   with   Σ_i γ_i = 0,  −v_i ≤ γ_i ≤ u_i,  m = u − v.

Where |f_i| < 1 both hinges of row i are active and γ_i = m_i. If that holds for every row, as it does for most label
distributions once u and v have equal sums, the machine is known without a solver: g = Km. `offset_between_margins`
tests this optimality condition exactly, for all pairs at once; the pairs that fail go to LIBSVM.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.svm import SVC

FloatArray = npt.NDArray[np.floating]
IndexArray = npt.NDArray[np.intp]

LIBSVM_TOLERANCE = 1e-6
"""Much finer than LIBSVM's own 1e-3, at little cost: rounding errors in the weights shall not show in predictions."""


def cost_factors(
    first_mass: FloatArray, second_mass: FloatArray, C: float, *, equal_mass: bool
) -> tuple[FloatArray, FloatArray]:
    """Cost of one unit of weight of the first and of the second label of each pair.

    With ``equal_mass`` both labels of a pair cost their mean mass in total. A pair of which one label has no mass
    leaves nothing to separate: its factors are zero, and so will be its machine.
    """
    if not equal_mass:
        factor = np.where((first_mass > 0) & (second_mass > 0), C, 0.0)
        return factor, factor
    both = (first_mass > 0) & (second_mass > 0)
    mean = np.where(both, C * (first_mass + second_mass) / 2.0, 0.0)
    return mean / np.where(both, first_mass, 1.0), mean / np.where(both, second_mass, 1.0)


@dataclass(frozen=True)
class Machines:
    """Machines of many pairs: f = first_factor·K w_a − second_factor·K w_b + offset, if `optimal`."""

    first_factor: FloatArray
    second_factor: FloatArray
    offset: FloatArray
    optimal: npt.NDArray[np.bool_]

    def take(self, block: slice) -> Self:
        """Return some of the pairs."""
        return replace(self, **{field.name: getattr(self, field.name)[block] for field in fields(self)})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Put pairs that were taken apart together again."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


def machines_between_margins(
    sums: FloatArray, weights: FloatArray, pairs: tuple[IndexArray, IndexArray], C: float, *, equal_mass: bool
) -> Machines:
    """Machines with γ = m for all given pairs, and whether each is optimal.

    Parameters
    ----------
    sums : ndarray of shape (n_samples, n_labels)
        K @ weights over the training rows.
    weights : ndarray of shape (n_samples, n_labels)
        Weight of each row with each label.
    pairs : pair of ndarray of shape (n_pairs,)
        First and second label of each pair.
    C : float
        Cost of one unit of weight.
    equal_mass : bool
        See `cost_factors`.
    """
    a, b = pairs
    mass = weights.sum(axis=0)
    first, second = cost_factors(mass[a], mass[b], C, equal_mass=equal_mass)
    values = first * sums[:, a] - second * sums[:, b]
    inner = weights.T @ sums
    total = first * mass[a] + second * mass[b]
    moment = first * (first * inner[a, a] - second * inner[a, b]) + second * (
        first * inner[b, a] - second * inner[b, b]
    )
    centre = moment / np.where(total > 0, total, 1.0)
    offset, fits = offset_between_margins(values, weights[:, a] > 0, weights[:, b] > 0, centre)
    balanced = np.abs(first * mass[a] - second * mass[b]) <= 1e-12 * total  # Σγ = 0
    return Machines(first, second, offset, fits & balanced)


def offset_between_margins(
    values: FloatArray,
    first_present: npt.NDArray[np.bool_],
    second_present: npt.NDArray[np.bool_],
    centre: FloatArray,
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Offset b of machines with γ = m, and whether an optimal one exists.

    An offset is optimal if f ≤ 1 wherever the first label is present and f ≥ −1 wherever the second is. That leaves an
    interval, which may be empty. Of its points the one nearest to −centre is taken: unlike the middle of the interval,
    which two extreme rows decide, it hardly changes from one training set to the next.
    """
    highest = np.max(values, axis=0, where=first_present, initial=-np.inf)
    lowest = np.min(values, axis=0, where=second_present, initial=np.inf)
    return np.clip(-centre, -1.0 - lowest, 1.0 - highest), highest - lowest <= 2.0


def solve_pairs(
    copies: Any, first_cost: FloatArray, second_cost: FloatArray, **kernel: Any
) -> tuple[FloatArray, FloatArray]:
    """Solve pairs one after the other by LIBSVM.

    Parameters
    ----------
    copies : array or sparse matrix with 2 * n_samples rows
        The training rows twice, or the kernel matrix of these.
    first_cost, second_cost : ndarray of shape (n_samples, n_pairs)
        The costs u and v; every column has a positive sum.
    **kernel
        ``kernel`` and ``gamma`` as `sklearn.svm.SVC` takes them.

    Returns
    -------
    coefficients : ndarray of shape (n_samples, n_pairs)
        γ of each pair.
    offset : ndarray of shape (n_pairs,)
        b of each pair.
    """
    solutions = [_solve_pair(copies, u, v, kernel) for u, v in zip(first_cost.T, second_cost.T, strict=True)]
    return np.column_stack([gamma for gamma, _ in solutions]), np.array([offset for _, offset in solutions])


def _solve_pair(copies: Any, u: FloatArray, v: FloatArray, kernel: dict[str, Any]) -> tuple[FloatArray, float]:
    """γ and b of one pair; exchanging u and v changes their signs and nothing else."""
    n_samples = len(u)
    differs = int(np.argmax(u != v))
    if u[differs] < v[differs]:  # LIBSVM stops within a tolerance: let it see the same problem in both orders
        gamma, offset = _solve_pair(copies, v, u, kernel)
        return -gamma, -offset
    machine = SVC(C=1.0, tol=LIBSVM_TOLERANCE, **kernel)
    machine.fit(copies, np.repeat([1, -1], n_samples), sample_weight=np.concatenate([u, v]))
    dual = np.zeros(2 * n_samples)
    dual[machine.support_] = machine.dual_coef_.toarray()[0] if sparse.issparse(copies) else machine.dual_coef_[0]
    return dual[:n_samples] + dual[n_samples:], float(machine.intercept_[0])
