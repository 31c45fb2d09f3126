"""Checks of model files: nothing in a file from a stranger may run code, exhaust memory or crash compiled code.

skops writes an estimator as a zip archive: ``schema.json``, a tree of nodes that name a loader and a type, and one
``.npy`` or ``.npz`` file for each array. skops itself checks only the names of the types. The rest is checked in two
steps.

`checked_archive` works before anything is built: how large everything together is when unpacked (`Budget`), which
loader builds which type, that an array is as long as its header says, that one object is described in one way, and the
arguments of those constructors in compiled code that do not check them (decision trees, losses, random numbers).
Neighbour trees are not built from the file, but from their data.

`check_loaded` works on the model that was built, before its first use: compiled code of scikit-learn and SciPy does not
check the index arrays of a fitted model, so that each must stay inside the array that it indexes. A class of this
package can add a check: its method ``_check_fitted_state(self)`` is called, and raises `ValueError`.
"""

import hashlib
import io
import json
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.neighbors import BallTree, KDTree, KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import Tree

from skldl._algorithms import ALGORITHMS, CAPABILITIES, MODEL_PARTS, estimator_class
from skldl.base import BaseLDL
from skldl.utils.budget import Budget
from skldl.utils.dependencies import import_with_extra
from skldl.utils.typing import AnyArray

MAX_NESTED = 100
"""Levels of objects within objects; models of this package need about thirty."""
MAX_JOBS = 1024
"""Largest ``n_jobs`` of a loaded model; chosen by hand."""
MAX_N_GRAM = 20
"""Largest length of the n-grams of a loaded text encoder; chosen by hand."""
SCHEMA = "schema.json"
PROTOCOL = 2  # of skops: older ones, with loaders that it keeps for old files, were never written by this package

_SIZED = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
SCALARS = frozenset(f"numpy.{name}" for name in ("bool", "bool_", "float32", "float64", "str_", *_SIZED))
PLAIN = frozenset(f"builtins.{kind.__name__}" for kind in (bool, float, int, str))
TREE = "sklearn.tree._tree.Tree"
SPARSE = frozenset(f"scipy.sparse._{f}.{f}_{k}" for f in ("csr", "csc") for k in ("array", "matrix"))

_TREE_KINDS = {"KDTree": KDTree, "KDTree64": KDTree, "BallTree": BallTree, "BallTree64": BallTree}
NEIGHBOUR_TREES = frozenset(
    f"sklearn.neighbors._{'kd' if name.startswith('KD') else 'ball'}_tree.{name}" for name in _TREE_KINDS
)
EUCLIDEAN = "sklearn.metrics._dist_metrics.EuclideanDistance64"
POOL_SIZE = 4  # the default of NumPy's seed sequences

VETTED_MODULES = (
    "sklearn._loss.",
    "sklearn.compose._column_transformer",
    "sklearn.compose._target",
    "sklearn.cross_decomposition.",
    "sklearn.decomposition._pca",
    "sklearn.decomposition._truncated_svd",
    "sklearn.discriminant_analysis",
    "sklearn.dummy",
    "sklearn.ensemble._bagging",
    "sklearn.ensemble._forest.ExtraTreesClassifier",
    "sklearn.ensemble._forest.ExtraTreesRegressor",
    "sklearn.ensemble._forest.RandomForestClassifier",
    "sklearn.ensemble._forest.RandomForestRegressor",
    "sklearn.ensemble._hist_gradient_boosting.",
    "sklearn.ensemble._stacking",
    "sklearn.ensemble._voting",
    "sklearn.feature_extraction.text",
    "sklearn.feature_selection.",
    "sklearn.gaussian_process.",
    "sklearn.impute._base",
    "sklearn.kernel_ridge",
    "sklearn.linear_model.",
    "sklearn.multiclass",
    "sklearn.multioutput",
    "sklearn.naive_bayes",
    "sklearn.neighbors._classification.KNeighborsClassifier",
    "sklearn.neighbors._regression.KNeighborsRegressor",
    "sklearn.neighbors._unsupervised.",
    "sklearn.neural_network._multilayer_perceptron",
    "sklearn.pipeline",
    "sklearn.preprocessing._data",
    "sklearn.preprocessing._discretization",
    "sklearn.preprocessing._encoders",
    "sklearn.preprocessing._function_transformer",
    "sklearn.preprocessing._label",
    "sklearn.preprocessing._target_encoder",
    "sklearn.svm._classes.LinearSVC",
    "sklearn.svm._classes.LinearSVR",
    "sklearn.svm._classes.SVC",
    "sklearn.svm._classes.SVR",
    "sklearn.tree._classes.",
)
"""Parts of scikit-learn whose fitted models work through NumPy, which checks every index, or are checked here."""

COMPILED = frozenset(
    (
        "numpy.dtype",
        *SPARSE,
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        f"{__name__}.NeighbourTree",
        TREE,
    )
)
"""Types that skops rejects because compiled code does not check their arrays; here these are checked."""

TYPES_OF_LOADER: dict[str, Set[str]] = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "SetNode": {"builtins.set"},
    "JsonNode": {"builtins.str"},
    "SliceNode": {"builtins.slice"},
    "TypeNode": PLAIN | SCALARS,  # a key of text would become a list of its characters
    "NdArrayNode": {"numpy.ndarray"} | SCALARS,
    "DTypeNode": {"numpy.dtype"},
    "SparseMatrixNode": SPARSE,
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "RandomGeneratorNode": {"numpy.random._generator.Generator"},
    "TreeNode": {TREE},
}
"""Loaders of skops and what each may build; `checked_archive` adds the estimators, losses and ufuncs."""


def rebuild(content: bytes, *, trusted: Set[str], budget: Budget) -> Any:
    """Rebuild an estimator from what skops wrote, with all checks of this module.

    Parameters
    ----------
    content : bytes
        The archive of skops.
    trusted : set of str
        Full names of types that the caller vouches for: any loader may build them, without checks of their
        attributes.
    budget : Budget
        What the model may take when unpacked.

    Returns
    -------
    estimator
        The model.

    Raises
    ------
    UntrustedType
        If it holds a type that may not be built.
    ModelFileError
        If it takes more than the budget.
    Exception
        Of any other class if something else is wrong: crafted content can fail anywhere in NumPy, SciPy, scikit-learn
        and skops.
    """
    skops = import_with_extra("skops.io", "save", user="A model file")
    content = checked_archive(content, trusted=trusted, budget=budget)
    names = set(skops.get_untrusted_types(data=content))
    known = _own_types(names) | COMPILED | trusted
    if unknown := sorted(names - known):
        raise UntrustedType(unknown[0], f"it holds the type {unknown[0]}")
    model = skops.loads(content, trusted=sorted(known))
    check_loaded(model, trusted)
    return model


def _own_types(names: Set[str]) -> Set[str]:
    """Which of these types are estimators of this package or parts of them; the estimators are imported."""
    estimators = {f"{algorithm.module}.{algorithm.class_name}": algorithm for algorithm in ALGORITHMS}
    found = [estimator_class(algorithm) for name, algorithm in estimators.items() if name in names]
    parts = {full_name(part) for kind in found for part in getattr(kind, "_model_parts", ())}
    return names & (estimators.keys() | parts | set(MODEL_PARTS))


# The archive


def checked_archive(content: bytes, *, trusted: Set[str], budget: Budget) -> bytes:
    """Check what skops wrote before anything is built, and return the archive for skops to read; see `rebuild`."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = _checked_members(archive, budget)
        text = archive.read(SCHEMA)
        budget.take_values(text)
        schema = json.loads(text)
        _require(
            isinstance(schema, dict) and schema.get("protocol") == PROTOCOL,
            f"its schema does not follow protocol {PROTOCOL} of skops",
        )
        has_neighbour_trees = False
        for node in _nodes(schema):
            if type_name(node) in NEIGHBOUR_TREES:
                _replace_by_data(node)
                has_neighbour_trees = True
        nodes = _distinct_nodes(schema, archive)
        names = {type_name(node) for node in nodes}
        vetted = {name for name in names if name.startswith(VETTED_MODULES)}
        buildable = (_own_types(names) | vetted | COMPILED) - {TREE}  # trees are built by a loader of their own
        unpacked: dict[str, int] = {}
        for node in nodes:
            _check_type(node, buildable, trusted)
            if node["__loader__"] == "JsonNode":
                budget.take_values(str(node["content"]).encode(errors="surrogatepass"))
            if "file" in node:
                name = _file(node, sizes)
                if name in unpacked:  # another object from the same file takes the same again
                    budget.take(unpacked[name])
                else:
                    unpacked[name] = _check_array_file(archive, name, budget)
        for node in nodes:
            if node["__loader__"] in _CHECKS_OF_LOADER:
                _CHECKS_OF_LOADER[node["__loader__"]](node, archive)
        return _with_schema(archive, schema) if has_neighbour_trees else content


def _require(condition: Any, text: str) -> None:
    if not condition:
        raise ValueError(text)


def _checked_members(archive: zipfile.ZipFile, budget: Budget) -> dict[str, int]:
    """Unpacked size of each member; `zipfile` never unpacks more than these say."""
    members = archive.infolist()
    sizes = {member.filename: member.file_size for member in members}
    _require(len(sizes) == len(members), "two of its members have the same name")
    _require(SCHEMA in sizes, f"it holds no {SCHEMA}")
    budget.take(sum(sizes.values()))
    return sizes


def _nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All nodes, from the outside in."""
    level: list[Any] = [schema]
    for _ in range(3 * MAX_NESTED):  # a list in a node in an attribute is three levels of JSON
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


def _distinct_nodes(schema: dict[str, Any], archive: zipfile.ZipFile) -> list[dict[str, Any]]:
    """One node of each identity, and all nodes without identity: what skops builds.

    skops describes an object again wherever it is referred to, and builds the description that it meets first: all
    descriptions of one identity must build the same. Each part is hashed once, however often it is referred to.
    """
    first: dict[Any, dict[str, Any]] = {}
    distinct, repeated = [], []
    for node in _nodes(schema):
        identity = node.get("__id__", 0)
        _require(isinstance(identity, int | str), "a node has an identity that is neither a number nor a text")
        if identity and identity in first:
            repeated.append(node)
            continue
        distinct.append(node)
        if identity:  # without one, or with 0, skops builds every node anew
            first[identity] = node
    contents = _Contents(archive)
    for node in repeated:
        same = contents.of(first[node["__id__"]]) == contents.of(node)
        _require(same, "one object is described in two ways")
    return distinct


class _Contents:
    """Hashes of what descriptions build, each computed once.

    Identities do not count, since nodes of one identity are compared themselves, nor do names of equal files: skops
    writes state that an object creates on request anew each time.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._members = {member.filename: (member.CRC, member.file_size) for member in archive.infolist()}
        self._alike = Counter(self._members.values())
        self._known: dict[Any, Any] = {}

    def of(self, item: Any) -> Any:
        """Hash of an object or list of the schema; other values as they are."""
        if not isinstance(item, dict | list):
            return item
        if id(item) not in self._known:
            if isinstance(item, list):
                parts: list[Any] = [self.of(part) for part in item]
            else:
                described = ((key, part) for key, part in item.items() if key != "__id__")
                parts = [(key, self._file(part) if key == "file" else self.of(part)) for key, part in described]
            self._known[id(item)] = hashlib.sha256(repr((type(item), parts)).encode(errors="surrogatepass")).digest()
        return self._known[id(item)]

    def _file(self, name: Any) -> Any:
        if (
            not isinstance(name, str) or name not in self._members or self._alike[self._members[name]] < 2
        ):  # no other file can be equal
            return name
        if name not in self._known:
            self._known[name] = hashlib.sha256(self._archive.read(name)).digest()
        return self._known[name]


def type_name(node: Mapping[str, Any]) -> str:
    """Full name of the type of a node."""
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _check_type(node: dict[str, Any], buildable: Set[str], trusted: Set[str]) -> None:
    loader, name = node["__loader__"], type_name(node)
    _require(isinstance(loader, str), "a node has no loader")
    if name in trusted:
        return
    if loader == "ObjectNode":
        allowed = name in buildable
    elif loader == "LossNode":
        allowed = name.startswith(("sklearn._loss._loss.", "_loss."))
    elif loader == "FunctionNode":  # skops builds ufuncs alone
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
    name, ending = node["file"], _ENDINGS.get(node["__loader__"], "")
    _require(isinstance(name, str) and name in sizes and name.endswith(ending), "an array is missing")
    return name


_ENDINGS = {"NdArrayNode": ".npy", "SparseMatrixNode": ".npz"}


def _check_array_file(archive: zipfile.ZipFile, name: str, budget: Budget) -> int:
    """Check the arrays in a file, and return the bytes that an object takes with them and the copy of its file."""
    size = archive.getinfo(name).file_size
    if name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
            inner_size = sum(member.file_size for member in inner.infolist())
            budget.take(inner_size)
            for member in inner.infolist():
                with inner.open(member) as stream:
                    _check_header(stream, member.file_size, member.filename)
        _check_matrix(sparse.load_npz(io.BytesIO(archive.read(name))))
        return size + inner_size
    if name.endswith(".npy"):
        with archive.open(name) as stream:
            _check_header(stream, size, name)
    return size


def _check_matrix(matrix: Any) -> None:
    """Require valid indices before anything is built: an estimator may compute with its rows while it is rebuilt."""
    _require(matrix.format in ("csr", "csc"), f"a sparse matrix has the format {matrix.format}")
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
            raise ValueError("the parameter of a loss is not a number")


def _check_generator(node: Mapping[str, Any], archive: zipfile.ZipFile) -> None:
    """Require a seed of the usual size: mixing a very large one would not end in reasonable time."""
    if _value(node["content"]["seed_seq"]["content"]["pool_size"], archive) != POOL_SIZE:
        raise ValueError("random numbers have a seed of another size")


_CHECKS_OF_LOADER = {"TreeNode": _check_tree, "LossNode": _check_loss, "RandomGeneratorNode": _check_generator}


class NeighbourTree:
    """Data of a neighbour tree of scikit-learn, a placeholder for the tree until the model has been checked."""

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


def _replace_by_data(node: dict[str, Any]) -> None:
    """Replace the description of a neighbour tree by that of its `NeighbourTree`."""
    state = node["content"]["content"]  # the tuple of BinaryTree.__getstate__ in sklearn/neighbors/_binary_tree.pxi.tp
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
    """Require a tree, in which children come after their parent and have one parent; return its depth, 0 for a leaf."""
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
    """Require positions in an array of this size."""
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < size):
        raise ValueError(f"a {what} is outside of 0 to {size - 1}")


def _with_schema(archive: zipfile.ZipFile, schema: dict[str, Any]) -> bytes:
    """Copy the archive with another schema."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as changed:
        for name in archive.namelist():
            changed.writestr(name, json.dumps(schema) if name == SCHEMA else archive.read(name))
    return buffer.getvalue()


# The model that was built


def check_loaded(model: Any, trusted: Set[str]) -> None:
    """Check every object of a model that was rebuilt, and build its neighbour trees; raises ValueError.

    ``trusted`` are full names of types that the caller vouches for: their attributes are not checked.
    """
    vouched_for = full_name(type(model)) in trusted
    _require(
        vouched_for or isinstance(model, BaseEstimator), f"it holds a {type(model).__name__}, which is not an estimator"
    )
    waiting, seen = [model], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, _HARMLESS):
            continue
        seen.add(id(item))
        if isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, list | tuple | set):
            waiting += item
        elif isinstance(item, np.ndarray):
            waiting += list(item.flat) if item.dtype == object else []
        elif full_name(type(item)) not in trusted:
            waiting += _check_object(item)


_HARMLESS = (type(None), bool, int, float, str, slice, type, np.generic, np.dtype, np.ufunc, Tree, BallTree, KDTree)


def full_name(kind: type) -> str:
    """Module and name of a class, as model files write it."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _check_object(item: Any) -> list[Any]:
    """Check one object, and return its children."""
    if sparse.issparse(item):
        _check_matrix(item)
        return []
    if isinstance(item, np.random.RandomState):
        # a position in the 624 words of the Mersenne Twister; 624 means that all of them are used up
        check_range(np.array([item.get_state(legacy=False)["state"]["pos"]]), 625, "position in random numbers")
        return []
    if isinstance(item, np.random.Generator):
        kind = type(item.bit_generator)
        _require(kind is np.random.PCG64, f"random numbers come from {kind.__name__}")
        return []
    if not hasattr(item, "__dict__"):  # distances and losses in compiled code hold numbers only
        return []
    state = vars(item)
    _check_settings(item, state)
    _require(not isinstance(item, NeighbourTree), "a neighbour tree is in the wrong place")
    for name, value in state.items():
        if isinstance(value, NeighbourTree):
            setattr(item, name, value.build())
    for kind, check in CHECKS.items():
        if isinstance(item, kind):
            check(item)
    if hasattr(item, "_check_fitted_state"):
        item._check_fitted_state()
    return list(state.values())


def _check_settings(item: Any, state: dict[str, Any]) -> None:
    _require(state.get("memory") is None, f"{type(item).__name__} has a cache on disk (memory=), which can hold code")
    n_jobs = state.get("n_jobs")
    _require(n_jobs is None or abs(n_jobs) <= MAX_JOBS, f"n_jobs={n_jobs!r} is more than {MAX_JOBS}")
    shadowed = [name for name in state if callable(getattr(type(item), name, None)) or name in CAPABILITIES.values()]
    _require(not shadowed, f"an attribute replaces {type(item).__name__}.{', '.join(shadowed)}")
    if "n_features_in_" in state:
        size = state["n_features_in_"]
        _require(_is_whole(size) and size >= 0, f"n_features_in_={size!r} is not a number of features")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_learner(model: BaseLDL) -> None:
    if hasattr(model, "label_names_"):
        names = model.label_names_  # a list of one large array many times would become a larger one
        _require(isinstance(names, np.ndarray) and names.ndim == 1, "the names of the labels are not an array")
        _require(model.n_labels_ == len(names), "the labels are not as many as their names")


def _check_decision_tree(model: Any) -> None:
    if hasattr(model, "tree_"):
        _require(type(model.tree_) is Tree, "a decision tree holds no tree")
        _require(model.tree_.n_features == model.n_features_in_, "a tree has other features than its estimator")


def _check_forest(model: Any) -> None:
    for tree in getattr(model, "estimators_", ()):
        _require(isinstance(tree, DecisionTreeRegressor | DecisionTreeClassifier), "a forest holds something else")
        _require(tree.tree_.n_features == model.n_features_in_, "a tree has other features than its forest")
        _require(tree.tree_.n_outputs == model.n_outputs_, "a tree has other outputs than its forest")
        if hasattr(model, "n_classes_"):
            same = np.array_equal(np.atleast_1d(model.n_classes_), tree.tree_.n_classes)
            _require(same, "a tree has other classes than its forest")


def _check_boosting(model: Any) -> None:
    if not hasattr(model, "_predictors"):
        return
    _require(model._preprocessor is None, "gradient boosting on categories is not checked")
    _require(not np.any(model._bin_mapper.is_categorical_), "gradient boosting on categories is not checked")
    _require(len(model._bin_mapper.is_categorical_) == model.n_features_in_, "the bins are for other features")
    n_trees = model.n_trees_per_iteration_
    for iteration in model._predictors:
        _require(len(iteration) == n_trees, "an iteration of gradient boosting has another number of trees")
        for predictor in iteration:
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            check_branches(nodes["left"], nodes["right"], leaf)
            check_range(nodes["feature_idx"][~leaf], model.n_features_in_, "feature of a tree")
            _require(not nodes["is_categorical"].any(), "gradient boosting on categories is not checked")
    _require(np.asarray(model._baseline_prediction).size == n_trees, "gradient boosting starts at another size")


def _check_neighbors(model: Any) -> None:
    if not hasattr(model, "_fit_X"):
        return
    shape = (model.n_samples_fit_, model.n_features_in_)
    _require(
        model._fit_X.shape == shape, "the training rows of a neighbour search differ in number from what it states"
    )
    tree = getattr(model, "_tree", None)
    if tree is not None:
        _require(isinstance(tree, BallTree | KDTree), "a neighbour search holds something that is not a tree")
        _require(np.asarray(tree.data).shape == shape, "a neighbour tree has other rows than its search")
    _require(isinstance(model.effective_metric_, str), "a neighbour search has no metric")


def _check_categories(encoder: Any) -> None:
    """Require a column for every code of a category: SciPy does not check column indices."""
    if not hasattr(encoder, "categories_"):
        return
    for values in encoder.categories_:
        if values.dtype.kind != "O":  # found by bisection
            known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
            _require((known[1:] > known[:-1]).all(), "categories are not sorted")
    if not isinstance(encoder, OneHotEncoder):
        return
    _require(encoder.drop is None and encoder.drop_idx_ is None, "OneHotEncoder(drop=...) is not checked")
    rare = encoder._infrequent_indices if encoder._infrequent_enabled else [None] * len(encoder.categories_)
    grouped = encoder._default_to_infrequent_mappings if encoder._infrequent_enabled else rare
    columns = zip(encoder.categories_, encoder._n_features_outs, rare, grouped, strict=True)
    for values, n_columns, others, codes in columns:
        if others is not None:
            check_range(np.asarray(others), len(values), "rare category")
        codes = np.arange(len(values)) if codes is None else np.asarray(codes)
        _require(len(codes) == len(values) and codes.dtype.kind == "i", "categories and their codes differ in number")
        check_range(codes, n_columns, "category")


def _check_text(vectorizer: Any) -> None:
    _require(vectorizer.input == "content", "a text encoder reads files")
    _require(vectorizer.analyzer in ("word", "char", "char_wb"), "a text encoder has an analyzer of its own")
    _require(vectorizer.token_pattern in (None, r"(?u)\b\w\w+\b"), "a text encoder has a pattern of its own")
    low, high = vectorizer.ngram_range
    _require(_is_whole(low) and _is_whole(high) and 1 <= low <= high <= MAX_N_GRAM, "n-grams are too long")
    if hasattr(vectorizer, "vocabulary_"):
        positions = sorted(vectorizer.vocabulary_.values())
        _require(positions == list(range(len(positions))), "the positions of words are not numbered from 0")


def _check_support_vectors(model: Any) -> None:
    """LIBSVM receives pointers and does not check the number of support vectors of each class."""
    if not hasattr(model, "support_vectors_"):
        return
    _require(model.kernel in ("linear", "poly", "rbf", "sigmoid") and not model._sparse, "an SVM is not checked")
    n_support = np.asarray(model._n_support)
    n_vectors, n_classes = len(model.support_), len(n_support)
    _require(n_support.dtype == np.int32 and n_support.min(initial=0) >= 0 and n_classes >= 2, "an SVM has no classes")
    _require(
        isinstance(model, SVR) or n_support.sum() == n_vectors, "support vectors differ in number from what it states"
    )
    _require(isinstance(model, SVC) or n_classes == 2, "an SVM for regression has classes")
    shapes = {
        "support_vectors_": (n_vectors, model.n_features_in_),
        "_dual_coef_": (n_classes - 1, n_vectors),
        "_intercept_": (n_classes * (n_classes - 1) // 2,),
    }
    for name, shape in shapes.items():
        array = getattr(model, name)
        _require(array.shape == shape and array.dtype == np.float64, f"{name} of an SVM has another shape")
    _require(model.support_.dtype == np.int32 and model.shape_fit_[1] == model.n_features_in_, "an SVM is inconsistent")
    _require(not model._probA.size and not model._probB.size, "an SVM with probabilities is not checked")
    classes = getattr(model, "classes_", None)
    _require(classes is None or len(classes) == n_classes, "an SVM has other classes than it states")


CHECKS: dict[Any, Callable[[Any], None]] = {
    BaseLDL: _check_learner,
    (DecisionTreeClassifier, DecisionTreeRegressor): _check_decision_tree,
    (ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor): _check_forest,
    (HistGradientBoostingClassifier, HistGradientBoostingRegressor): _check_boosting,
    (NearestNeighbors, KNeighborsClassifier, KNeighborsRegressor): _check_neighbors,
    (OneHotEncoder, OrdinalEncoder): _check_categories,
    (CountVectorizer, HashingVectorizer): _check_text,
    (SVC, SVR): _check_support_vectors,
}
"""Checks of the fitted state, by class."""
