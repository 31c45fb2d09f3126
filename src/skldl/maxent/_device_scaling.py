"""Improved iterative scaling on rows that lie on a device: about one pass for each iteration, Newton on the host.

As in `skldl.maxent._rows_scaling`, a pass at weights θ gives the loss and the moments that the equations of the next
increments probably need. Everything is computed in double precision.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.chunks._rows import Sums
from skldl.maxent._blocks import weighted_softmax
from skldl.maxent._iterations import Scaling
from skldl.maxent._rows_scaling import Nodes, RowsEquations, RowsScaling, few_values, merge_far
from skldl.maxent._scaling import chebyshev_nodes, exponential_sums, log_of
from skldl.utils.arrays import (
    as_double,
    as_type_of,
    is_device_array,
    least_number,
    namespace,
    row_blocks,
    space,
    take_rows,
    to_numpy,
)
from skldl.utils.typing import FloatArray

CELLS = 2**25
"""Numbers in the largest temporary array."""


class DeviceScaling(RowsScaling):
    """`RowsScaling` of rows on a device.

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
        values = to_numpy(xp.unique_values(self.g))
        values = values[values > 0]
        self.equations = RowsEquations(self, few_values(values), least_number(X) < 0) if len(values) else None

    def share(self, rows: slice) -> Any:
        """Weights of some rows, such that all sum to one."""
        return 1.0 / self.total if self.weight is None else self.weight[rows] / self.total

    def predictions(self, theta: FloatArray, cells_per_row: int) -> Iterator[tuple[slice, Any, Any, Any]]:
        """Blocks of rows: their place, features, masses ω p (labels × rows) and part of the log-partition."""
        xp = namespace(self.X)
        for some in row_blocks(self.X.shape[0], cells_per_row, CELLS):
            rows = as_double(self.X[some, ...])
            scores = as_type_of(theta.T, rows) @ rows.T
            part = weighted_softmax(scores, self.share(some), xp, safe=False)
            yield some, rows, scores, part

    def moments(self, theta: FloatArray, nodes: Nodes) -> tuple[float, tuple[FloatArray, FloatArray]]:
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

    def far_sums(self, theta: FloatArray, far: npt.NDArray[np.intp], delta: FloatArray) -> Sums:
        """`exponential_sums` over all rows for some features and labels, of both signs."""
        xp = namespace(self.X)
        sums: Sums | None = None
        for some, rows, P, _ in self.predictions(theta, self.n_labels + 4 * len(far)):
            masses = (take_rows(P, far[:, 1]) * take_rows(rows.T, far[:, 0])).T
            g = self.g[some]
            sides = [
                exponential_sums(log_of(xp.clip(sign * masses, 0.0)), g, as_type_of(sign * delta, g))
                for sign in (1.0, -1.0)
            ]
            part = tuple(np.stack([to_numpy(side[k]) for side in sides]) for k in range(3))
            sums = part if sums is None else merge_far(sums, part)
        assert sums is not None
        return sums


def scaling_for(X: Any, D: Any, sample_weight: Any) -> Scaling:
    """Improved iterative scaling on NumPy's rows or on those of a device."""
    return (DeviceScaling if is_device_array(X) else Scaling)(X, D, sample_weight)
