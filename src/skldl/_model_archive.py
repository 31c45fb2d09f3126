"""The inside of a model file, checked before anything is built from it.

skops writes an estimator as a zip archive: ``schema.json``, a tree of nodes that name a loader and a type, and one
``.npy`` or ``.npz`` file for each array. skops itself checks only the names of the types. `checked_archive` checks
the rest: how large everything is when unpacked, which loader builds which type, that an array is as long as its header
says, that one object is described in one way, and what compiled code takes to build decision trees, losses and random
numbers, which it does not check itself. Neighbour trees are not built from the file, but from their data.
"""

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import BallTree, KDTree

from skldl.utils.typing import AnyArray

MOST_NESTED = 100
"""Levels of objects within objects; models of this package need about thirty."""
SCHEMA = "schema.json"
PROTOCOL = 2  # older ones, with loaders that skops keeps for old files, were never written by this package

_SIZED = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
SCALARS = frozenset(f"numpy.{name}" for name in ("bool", "bool_", "float32", "float64", "str_", *_SIZED))
PLAIN = frozenset(f"builtins.{kind.__name__}" for kind in (bool, float, int, str, list, tuple, dict, set))
TREE = "sklearn.tree._tree.Tree"
SPARSE = frozenset(f"scipy.sparse._{f}.{f}_{k}" for f in ("csr", "csc") for k in ("array", "matrix"))

_TREE_KINDS = {"KDTree": KDTree, "KDTree64": KDTree, "BallTree": BallTree, "BallTree64": BallTree}
NEIGHBOUR_TREES = frozenset(
    f"sklearn.neighbors._{'kd' if name.startswith('KD') else 'ball'}_tree.{name}" for name in _TREE_KINDS
)
EUCLIDEAN = "sklearn.metrics._dist_metrics.EuclideanDistance64"
POOL_SIZE = 4  # the default of NumPy's seed sequences

TYPES_OF_LOADER: dict[str, Set[str]] = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "SetNode": {"builtins.set"},
    "JsonNode": {"builtins.str"},
    "SliceNode": {"builtins.slice"},
    "TypeNode": PLAIN | SCALARS,
    "NdArrayNode": {"numpy.ndarray"} | SCALARS,
    "DTypeNode": {"numpy.dtype"},
    "SparseMatrixNode": SPARSE,
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "RandomGeneratorNode": {"numpy.random._generator.Generator"},
    "TreeNode": {TREE},
}
"""Loaders of skops and what each may build; `checked_archive` adds the estimators, losses and ufuncs."""


def checked_archive(
    content: bytes, *, known_types: Callable[[Set[str]], Set[str]], trusted: Set[str], most_bytes: int
) -> bytes:
    """Check what skops wrote.

    Parameters
    ----------
    content : bytes
        The archive.
    known_types : callable
        From the full names of all types in the archive to those among them that may be built from their attributes.
    trusted : set of str
        Types that the caller vouches for; any loader may build them.
    most_bytes : int
        Bytes that the archive may hold when unpacked.

    Returns
    -------
    bytes
        The archive for skops to read.

    Raises
    ------
    ValueError
        The message describes what is wrong.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = _checked_members(archive, most_bytes)
        schema = json.loads(archive.read(SCHEMA))
        if not isinstance(schema, dict) or schema.get("protocol") != PROTOCOL:
            raise ValueError(f"its schema does not follow protocol {PROTOCOL} of skops")
        nodes: dict[Any, dict[str, Any]] = {}
        known = known_types({type_name(node) for node in _nodes(schema)})
        for node in _nodes(schema):
            if type_name(node) in NEIGHBOUR_TREES:
                _put_data_in_place(node)
            _check_type(node, known, trusted)
            first = nodes.setdefault(node.get("__id__", f"without {len(nodes)}"), node)
            if not _same(first, node, archive):  # skops builds the one that it meets first
                raise ValueError("one object is described in two ways")
        unpacked = sum(sizes[_file(node, sizes)] for node in nodes.values() if "file" in node)
        if unpacked > most_bytes:
            raise ValueError(_too_large(unpacked, most_bytes))
        for node in nodes.values():
            if "file" in node:
                _check_array_file(archive, _file(node, sizes), most_bytes)
        for node in nodes.values():
            if node["__loader__"] in _CHECKS:
                _CHECKS[node["__loader__"]](node, archive)
        return _with_schema(archive, schema)


def _too_large(size: int, most_bytes: int) -> str:
    return f"it would take {size:,} bytes when unpacked, more than {most_bytes:,}; if it is yours, raise max_bytes"


def _checked_members(archive: zipfile.ZipFile, most_bytes: int) -> dict[str, int]:
    """Unpacked size of each member; `zipfile` never unpacks more than these say."""
    members = archive.infolist()
    sizes = {member.filename: member.file_size for member in members}
    if len(sizes) != len(members):
        raise ValueError("two of its members have the same name")
    if SCHEMA not in sizes:
        raise ValueError(f"it holds no {SCHEMA}")
    if sum(sizes.values()) > most_bytes:
        raise ValueError(_too_large(sum(sizes.values()), most_bytes))
    return sizes


def _nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All nodes, from the outside in."""
    level: list[Any] = [schema]
    for _ in range(3 * MOST_NESTED):  # a list in a node in an attribute is three levels of JSON
        following: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                if "__loader__" in item:
                    yield item
                following += item.values()
            elif isinstance(item, list):
                following += item
        level = [item for item in following if isinstance(item, dict | list)]
        if not level:
            return
    raise ValueError("its objects are nested too deeply")


def _same(one: Any, other: Any, archive: zipfile.ZipFile) -> bool:
    """Whether two descriptions build the same.

    Identities may differ, since nodes of one identity are compared themselves, and so may names of equal files: what
    an object makes only when it is asked for its state is written anew each time. So is a dtype, as an empty array.
    """
    if one is other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        if one.get("__loader__") == other.get("__loader__") == "DTypeNode":
            return True
        return one.keys() == other.keys() and all(
            _same_file(one[key], other[key], archive) if key == "file" else _same(one[key], other[key], archive)
            for key in one
            if key != "__id__"
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(*pair, archive) for pair in zip(one, other, strict=True))
    return bool(one == other)


def _same_file(one: Any, other: Any, archive: zipfile.ZipFile) -> bool:
    return bool(one == other or archive.read(str(one)) == archive.read(str(other)))


def type_name(node: Mapping[str, Any]) -> str:
    """Full name of the type that a node stands for."""
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _check_type(node: dict[str, Any], known: Set[str], trusted: Set[str]) -> None:
    loader, name, identity = node["__loader__"], type_name(node), node.get("__id__", 0)
    if not isinstance(loader, str) or not isinstance(identity, int | str):
        raise ValueError("a node has no loader or no identity")
    if name in trusted:
        return
    if loader == "ObjectNode":
        allowed = name in known
    elif loader == "LossNode":
        allowed = name.startswith(("sklearn._loss._loss.", "_loss."))
    elif loader == "FunctionNode":  # skops lets only ufuncs pass
        allowed = name.startswith(("numpy.", "scipy.special."))
    else:
        allowed = name in TYPES_OF_LOADER.get(loader, ())
    if not allowed:
        raise UntrustedType(name, f"it holds the type {name}, made by {loader}")


class UntrustedType(ValueError):
    """A type that may not be built; `name` is its name."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def _file(node: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    name = node["file"]
    if not isinstance(name, str) or name not in sizes or name == SCHEMA:
        raise ValueError("an array is missing")
    return name


def _check_array_file(archive: zipfile.ZipFile, name: str, most_bytes: int) -> None:
    if name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
            if sum(member.file_size for member in inner.infolist()) > most_bytes:
                raise ValueError(f"its matrix {name} is too large when unpacked")
            for member in inner.infolist():
                with inner.open(member) as stream:
                    _check_header(stream, member.file_size, member.filename)
        _check_matrix(sparse.load_npz(io.BytesIO(archive.read(name))))
    elif name.endswith(".npy"):
        with archive.open(name) as stream:
            _check_header(stream, archive.getinfo(name).file_size, name)


def _check_matrix(matrix: Any) -> None:
    """Require valid indices before anything is built: an estimator may compute with its rows while it is rebuilt."""
    if matrix.format not in ("csr", "csc"):
        raise ValueError(f"a sparse matrix has the format {matrix.format}")
    matrix.check_format(full_check=True)


def _check_header(stream: Any, size: int, name: str) -> None:
    """Require that the array is exactly as long as its header states, and holds only numbers or text."""
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"its array {name} has the format {version}")
    shape, _, dtype = read(stream)
    if dtype.hasobject or any(length < 0 for length in shape):
        raise ValueError(f"its array {name} holds objects")
    if math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise ValueError(f"its array {name} does not have the length that its header states")


def _check_tree(node: Mapping[str, Any], archive: zipfile.ZipFile) -> None:
    """Require a valid decision tree without references outside of it."""
    n_features, n_classes, n_outputs = (_value(item, archive) for item in node["__reduce__"]["args"]["content"])
    state = {key: _value(item, archive) for key, item in node["content"]["content"].items()}
    nodes, values = state["nodes"], state["values"]
    sizes = np.asarray(n_classes)
    if type(n_features) is not int or type(n_outputs) is not int or sizes.dtype.kind != "i" or sizes.ndim != 1:
        raise ValueError("a tree does not state its numbers of features and outputs")
    if not 1 <= n_outputs == len(sizes) or sizes.min() < 1 or nodes.ndim != 1:
        raise ValueError("a tree has another number of outputs than it states")
    if values.shape != (len(nodes), n_outputs, sizes.max()):
        raise ValueError("a tree has another number of values than nodes")
    if state["node_count"] != len(nodes):
        raise ValueError("a tree has another number of nodes than it states")
    leaf = nodes["left_child"] == -1
    depth = check_branches(nodes["left_child"], nodes["right_child"], leaf)
    if type(state["max_depth"]) is not int or state["max_depth"] < depth:
        raise ValueError("a tree is deeper than it states")
    check_range(nodes["feature"][~leaf], n_features, "feature of a tree")


def _check_loss(node: Mapping[str, Any], archive: zipfile.ZipFile) -> None:
    """Require that a loss consists of numbers only."""
    arguments = node["__reduce__"]["args"]["content"]
    if node["content"]["content"] or len(arguments) > 1:
        raise ValueError("a loss holds more than its parameter")
    for argument in arguments:
        if not isinstance(_value(argument, archive), int | float):
            raise ValueError("the parameter of a loss is no number")


def _check_generator(node: Mapping[str, Any], archive: zipfile.ZipFile) -> None:
    """Require a seed of the usual size: mixing a very large one would not end in reasonable time."""
    if _value(node["content"]["seed_seq"]["content"]["pool_size"], archive) != POOL_SIZE:
        raise ValueError("random numbers have a seed of another size")


_CHECKS = {"TreeNode": _check_tree, "LossNode": _check_loss, "RandomGeneratorNode": _check_generator}


class NeighbourTree:
    """Data of a neighbour tree of scikit-learn; it replaces the tree until the model has been checked."""

    kind: str
    data: AnyArray
    leaf_size: int
    metric: str

    def build(self) -> Any:
        """Build the tree; from the same data scikit-learn builds the same tree."""
        if not isinstance(self.leaf_size, int) or self.leaf_size < 1:
            raise ValueError("a neighbour tree has no size of its leaves")
        data = np.asarray(self.data, dtype=np.float64)
        if data.ndim != 2 or not data.size or not np.isfinite(data).all():
            raise ValueError("a neighbour tree has no data")
        if self.metric not in _DISTANCES.values():
            raise ValueError("a neighbour tree has an unknown distance")
        return _TREE_KINDS[self.kind](data, leaf_size=self.leaf_size, metric=self.metric)


_DISTANCES = {  # those without parameters of their own, which a file could set to anything
    EUCLIDEAN: "euclidean",
    "sklearn.metrics._dist_metrics.ManhattanDistance64": "manhattan",
    "sklearn.metrics._dist_metrics.ChebyshevDistance64": "chebyshev",
}
_STAND_IN = f"{__name__}.{NeighbourTree.__name__}"


def _put_data_in_place(node: dict[str, Any]) -> None:
    """Turn the description of a neighbour tree into that of its `NeighbourTree`."""
    state = node["content"]["content"]
    data, leaf_size, metric, weight = state[0], state[4], state[11], state[12]
    distance = _DISTANCES.get(type_name(metric))
    if distance is None or weight.get("content") != "null":
        raise ValueError("a neighbour tree has weights, or a distance other than " + ", ".join(_DISTANCES.values()))
    kind, name = (_node("JsonNode", str, json.dumps(text)) for text in (node["__class__"], distance))
    parts = {"kind": kind, "data": data, "leaf_size": leaf_size, "metric": name}
    names = _node("ListNode", list, [_node("TypeNode", str) for _ in parts])
    node["__module__"], _, node["__class__"] = _STAND_IN.rpartition(".")
    node["__loader__"] = "ObjectNode"
    node["content"] = {**_node("DictNode", dict, parts), "key_types": names}


def _node(loader: str, kind: type, content: Any = None) -> dict[str, Any]:
    node = {"__class__": kind.__name__, "__module__": "builtins", "__loader__": loader}
    return node if content is None else {**node, "content": content}


def _value(node: Mapping[str, Any], archive: zipfile.ZipFile) -> Any:
    """Number or array of a node."""
    if node["__loader__"] == "JsonNode":
        return json.loads(node["content"])
    if node["__loader__"] == "NdArrayNode" and node["type"] == "numpy":
        array = np.load(io.BytesIO(archive.read(node["file"])), allow_pickle=False)
        return array if type_name(node) == "numpy.ndarray" else array.item()
    raise ValueError("a tree holds something other than numbers")


def check_branches(left: AnyArray, right: AnyArray, leaf: AnyArray) -> int:
    """Demand a tree: children come after their parent, each has one parent. Give its depth, 0 for a single leaf."""
    if not len(leaf):
        raise ValueError("a tree has no nodes")
    inner = np.flatnonzero(~leaf)
    children = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    check_range(children, len(leaf), "child in a tree")
    if (children <= np.concatenate([inner, inner])).any() or len(np.unique(children)) != len(children):
        raise ValueError("a tree has a cycle")
    level, depth = np.zeros(1, dtype=np.int64), 0
    while True:  # every node has one parent, so that all levels together have no more nodes than the tree
        level = level[~leaf[level]]
        if not len(level):
            return depth
        level, depth = np.concatenate([left[level], right[level]]).astype(np.int64), depth + 1


def check_range(numbers: AnyArray, size: int, what: str) -> None:
    """Demand that all numbers are positions in something of this size."""
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < size):
        raise ValueError(f"a {what} is outside of 0 to {size - 1}")


def _with_schema(archive: zipfile.ZipFile, schema: dict[str, Any]) -> bytes:
    """The same archive with another schema."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as changed:
        for name in archive.namelist():
            changed.writestr(name, json.dumps(schema) if name == SCHEMA else archive.read(name))
    return buffer.getvalue()
