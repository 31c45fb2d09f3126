"""A list of ONNX nodes that grows, with constants and names kept for the caller."""

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from skldl.exceptions import DataError

ML = "ai.onnx.ml"
DOUBLE = TensorProto.DOUBLE


class NotExpressible(DataError):
    """A part of a model that ONNX cannot hold, or that this package does not write. To fix it, serve the model file."""


def refuse(part: str, why: str) -> NotExpressible:
    """The error for a part that cannot be exported."""
    return NotExpressible(
        f"{part} cannot be exported to ONNX: {why}. The model file itself works in skldl serve and skldl.load."
    )


class Graph:
    """Nodes and constants of a graph.

    Examples
    --------
    >>> graph = Graph()
    >>> graph.add("Softmax", "scores", axis=1)
    'skldl/Softmax_1'
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = 0

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Append a node with one output, whose name is returned."""
        self._count += 1
        name = f"skldl/{kind}_{self._count}"  # columns of a table have other names
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Append a constant array, and return its name."""
        self._count += 1
        name = f"skldl/constant_{self._count}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def cast(self, name: str, to: int) -> str:
        """Append a conversion to another type."""
        return self.add("Cast", name, to=to)

    def normalized(self, name: str) -> str:
        """Append the division of each row by its sum."""
        return self.add("Div", name, self.add("ReduceSum", name, self.constant([1], np.int64), keepdims=1))
