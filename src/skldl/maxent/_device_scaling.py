"""Improved iterative scaling on rows that lie on a device: about one pass for each iteration, Newton on the host.

As in `skldl.maxent._rows_scaling`, a pass at weights θ gives the loss and the moments that the equations of the next
increments probably need. Everything is computed in double precision.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl._array_api import as_double, as_type_of, is_device_array, namespace, row_blocks, space, take_rows, to_numpy
from skldl._typing import FloatArray
from skldl.maxent._blocks import weighted_softmax
from skldl.maxent._iterations import Scaling, State
from skldl.maxent._rows_scaling import Masses, Nodes, RowsEquations, few_values
from skldl.maxent._scaling import LOG_OF_NOTHING, balance, chebyshev_nodes, newton

CELLS = 2**25
"""Numbers in the largest temporary array."""


class DeviceScaling(Scaling):
    """`Scaling` of rows on a device.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Features.
    D : array of shape (n_samples, n_labels)
        Distributions.
    sample_weight : array of shape (n_samples,) or None
        Weights in double precision.
    """

    def __init__(self, X: Any, D: Any, sample_weight: Any) -> None:
        xp, device = space(X)
        self.X, self.weight = X, sample_weight
        self.total = float(X.shape[0]) if sample_weight is None else float(xp.sum(sample_weight))
        target = xp.zeros((X.shape[1], D.shape[1]), dtype=xp.float64, device=device)
        lengths = []
        for some in row_blocks(X.shape[0], max(X.shape[1], D.shape[1]), CELLS):
            rows, of_rows = as_double(X[some, ...]), as_double(D[some, ...])
            if sample_weight is not None:
                of_rows = of_rows * sample_weight[some][:, None]
            target += rows.T @ of_rows
            lengths.append(xp.sum(xp.abs(rows), axis=1))
        self.g = xp.concat(lengths)
        self.target = to_numpy(target) / self.total
        self.n_labels = D.shape[1]
        self.equations: DeviceEquations | None = None
        values = to_numpy(xp.unique_values(self.g))
        values = values[values > 0]
        if len(values):
            self.equations = DeviceEquations(self, few_values(values), bool(xp.min(X) < 0))

    def share(self, rows: slice) -> Any:
        """Weights of some rows, such that all sum to one."""
        return 1.0 / self.total if self.weight is None else self.weight[rows] / self.total

    def state(self, theta: FloatArray) -> State:
        """Loss and moments at θ, in one pass; rows that are zero throughout are predicted to be uniform."""
        nodes = Nodes("none", False, np.zeros(0)) if self.equations is None else self.equations.next_nodes()
        log_partition, moments = self.run(theta, nodes)
        loss = log_partition - float(np.vdot(self.target, theta))
        return State(theta, Masses(theta, nodes, moments), loss)

    def predictions(self, theta: FloatArray, cells_per_row: int) -> Iterator[tuple[slice, Any, Any, Any]]:
        """Blocks of rows: their place, features, masses ω p (labels × rows) and part of the log-partition."""
        xp = namespace(self.X)
        for some in row_blocks(self.X.shape[0], cells_per_row, CELLS):
            rows = as_double(self.X[some, ...])
            scores = as_type_of(theta.T, rows) @ rows.T
            part = weighted_softmax(scores, self.share(some), xp, safe=False)
            yield some, rows, scores, part

    def run(self, theta: FloatArray, nodes: Nodes) -> tuple[float, tuple[FloatArray, FloatArray]]:
        """Log-partition at θ, and the moments of the positive and of the negative part of X."""
        xp, device = space(self.X)
        p, c = self.X.shape[1], self.n_labels
        count = {"none": 1, "sums": 1, "values": len(nodes.values)}.get(nodes.kind, nodes.count)
        log_partition = xp.zeros((), dtype=xp.float64, device=device)
        sides = [xp.zeros((count * c, p), dtype=xp.float64, device=device) for _ in range(1 + nodes.has_negative)]
        for some, rows, P, part in self.predictions(theta, (count + 1) * c + 2 * p):
            log_partition += part
            if nodes.kind == "none":
                continue
            masses = xp.reshape(self._shares(self.g[some], nodes)[:, None, :] * P, (count * c, -1))
            sides[0] += masses @ (xp.clip(rows, 0.0) if nodes.has_negative else rows)
            if nodes.has_negative:
                sides[1] += masses @ xp.clip(-rows, 0.0)
        found = [to_numpy(side).reshape(count, c, p).transpose(0, 2, 1) for side in sides]
        if nodes.kind in ("none", "sums"):
            found = [side[0] for side in found]
        second = found[1] if nodes.has_negative else np.zeros_like(found[0])
        return float(log_partition), (found[0], second)

    def _shares(self, g: Any, nodes: Nodes) -> Any:
        """Share of each node, value or sum (rows) in each row of X (columns)."""
        xp = namespace(g)
        if nodes.kind == "sums":
            return xp.ones_like(g)[None, :]
        if nodes.kind == "values":
            return as_double(as_type_of(nodes.values, g)[:, None] == g)
        _, at_nodes = chebyshev_nodes(nodes.middle, nodes.half_width, nodes.count)
        t = xp.clip((g - nodes.middle) / nodes.half_width, -1.0, 1.0)
        orders = as_type_of(np.arange(nodes.count), g)
        return as_type_of(at_nodes.T, g) @ xp.cos(orders[:, None] * xp.acos(t))


class DeviceEquations(RowsEquations):
    """`RowsEquations` of rows on a device."""

    def __init__(self, scaling: DeviceScaling, values: FloatArray, has_negative: bool) -> None:
        self.scaling, self.total, self.has_negative = scaling, scaling.total, has_negative
        self._prepare(scaling.target, values)

    def _moments_at_nodes(self, P: Any, count: int) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
        if P.nodes.count != count:
            P.nodes = self.next_nodes(count)
            P.moments = self.scaling.run(P.theta, P.nodes)[1]
        return chebyshev_nodes(self.middle, self.half_width, count)[0], P.moments

    def _solve_far(self, P: Any, far: npt.NDArray[np.intp], delta: FloatArray) -> None:
        """Roots with sums over all rows: one pass for each step of Newton's method."""
        places = far[:, 0], far[:, 1]

        def evaluate(at: FloatArray) -> tuple[FloatArray, FloatArray]:
            value, slope = self._far_sums(P.theta, far, at)
            return balance(value[0], slope[0], value[1], slope[1], self.log_up[places], self.log_down[places])

        delta[places] = newton(evaluate, delta[places], np.inf)[0]

    def _far_sums(
        self, theta: FloatArray, far: npt.NDArray[np.intp], delta: FloatArray
    ) -> tuple[list[FloatArray], list[FloatArray]]:
        """ln Σ m e^{±δg} and the mean of g under these terms, for both signs, over all rows."""
        xp = namespace(self.scaling.X)
        parts: list[list[tuple[FloatArray, ...]]] = [[], []]
        for some, rows, P, _ in self.scaling.predictions(theta, self.scaling.n_labels + 4 * len(far)):
            masses = take_rows(P, far[:, 1]) * take_rows(rows.T, far[:, 0])
            g = self.scaling.g[some]
            for side, sign in enumerate((1.0, -1.0)):
                positive = xp.clip(sign * masses, 0.0)
                logs = xp.where(positive > 0, xp.log(xp.where(positive > 0, positive, 1.0)), LOG_OF_NOTHING)
                exponents = logs + as_type_of(sign * delta, g)[:, None] * g
                top = xp.max(exponents, axis=1)
                terms = xp.exp(exponents - top[:, None])
                parts[side].append(tuple(to_numpy(part) for part in (top, xp.sum(terms, axis=1), terms @ g)))
        values, slopes = [], []
        for blocks in parts:
            tops, totals, weighted = (np.stack(column) for column in zip(*blocks, strict=True))
            top = tops.max(axis=0)
            scale = np.exp(np.maximum(tops - top, LOG_OF_NOTHING))
            total = (totals * scale).sum(axis=0)
            values.append(np.log(total) + top)
            slopes.append((weighted * scale).sum(axis=0) / total)
        return values, slopes


def scaling_for(X: Any, D: Any, sample_weight: Any) -> Scaling:
    """Improved iterative scaling on NumPy's rows or on those of a device."""
    return (DeviceScaling if is_device_array(X) else Scaling)(X, D, sample_weight)
