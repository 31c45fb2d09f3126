"""Mutated model files: a victim process loads them and predicts, and counts what happens.

Run by ``test_model_files.py`` as ``python mutations.py FOLDER FIRST COUNT``. FOLDER holds the models to mutate and what
each predicts for (``NAME.skldl`` with ``NAME.npy`` or ``NAME.csv``). Every file is decided by its number, so that a
crash can be repeated: the last number printed is the one.
"""

import hashlib
import io
import json
import resource
import signal
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import sparse

SECONDS_PER_FILE = 20
ADDRESS_SPACE = 8 * 2**30
ODD = [-1, 0, 1, 2, 7, 2**31 - 1, 2**31, -(2**31), 2**62, -(2**62), 10**30, 0.5, 1e308, None, True, "x", "", [], {}]
TYPES = [
    ("builtins", "list"), ("builtins", "dict"), ("builtins", "eval"), ("os", "system"), ("numpy", "ndarray"),
    ("numpy", "void"), ("sklearn.tree._tree", "Tree"), ("sklearn.neighbors._kd_tree", "KDTree"),
    ("sklearn.pipeline", "Pipeline"), ("skldl.baseline", "MeanDistribution"), ("joblib.memory", "Memory"),
    ("scipy.sparse._csr", "csr_matrix"), ("numpy.random.mtrand", "RandomState"), ("builtins", "bytearray"),
]  # fmt: skip
LOADERS = [
    "ObjectNode", "DictNode", "ListNode", "TupleNode", "NdArrayNode", "TreeNode", "JsonNode", "TypeNode", "PartialNode",
    "ConstructorFromReduceNode", "CachedNode", "SparseMatrixNode", "MethodNode", "FunctionNode", "DTypeNode",
]  # fmt: skip


TEXT = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}


def unpack(path: Path) -> tuple[dict, dict[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        about = json.loads(archive.read("skldl.json"))
        with zipfile.ZipFile(io.BytesIO(archive.read("model.skops"))) as inner:
            return about, {name: inner.read(name) for name in inner.namelist()}


def pack(path: Path, about: dict, members: dict[str, bytes], damage=None) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as inner:
        for name, content in members.items():
            inner.writestr(name, content)
    content = buffer.getvalue()
    if damage is not None:
        content = damage(bytearray(content))
    about = {**about, "sha256": hashlib.sha256(content).hexdigest()}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("skldl.json", json.dumps(about))
        archive.writestr("model.skops", content)


def nodes_of(schema: dict) -> list[dict]:
    found, waiting = [], [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "__loader__" in item:
                found.append(item)
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return found


def arrays_in(members: dict[str, bytes]) -> list[str]:
    return [name for name in members if name.endswith((".npy", ".npz"))]


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def change_cells(generator: np.random.Generator, array: np.ndarray) -> np.ndarray:
    array = array.copy()
    if not array.size:
        return array
    if array.dtype.names:
        field = array[generator.choice(array.dtype.names)]
        changed = change_cells(generator, np.ascontiguousarray(field))
        field[...] = changed
        return array
    flat = array.reshape(-1)
    for place in generator.integers(flat.size, size=generator.choice([1, 1, 3, flat.size])):
        if array.dtype.kind in "iu":
            bounds = np.iinfo(array.dtype)
            options = [bounds.max, bounds.min, 0, int(place), array.size, array.size + 1, 10**6]
            flat[place] = np.clip(generator.choice(options), bounds.min, bounds.max)
        elif array.dtype.kind == "f":
            flat[place] = generator.choice([np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0, 5e-324])
        elif array.dtype.kind == "b":
            flat[place] = not flat[place]
        else:
            flat[place] = flat[0]
    return array


def change_shape(generator: np.random.Generator, array: np.ndarray) -> np.ndarray:
    kind = generator.integers(6)
    if kind == 0:
        return array[: len(array) // 2] if array.ndim else np.full(3, array)
    if kind == 1:
        return array.T
    if kind == 2:
        return array.reshape(-1)
    if kind == 3 and not array.dtype.names:
        return array.astype(generator.choice(["<f8", "<f4", "<i8", "<i4", ">f8", "<U5", "?"]))
    if kind == 4:
        return np.concatenate([array, array]) if array.ndim else array[None, None]
    return array[:0] if array.ndim else array.reshape(1)


def change_array(generator, about, members):
    name = generator.choice(arrays_in(members))
    change = change_cells if generator.random() < 0.7 else change_shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of casts to other types, which are the attack
        if name.endswith(".npy"):
            members[name] = npy(change(generator, np.load(io.BytesIO(members[name]))))
            return
        content = dict(np.load(io.BytesIO(members[name])))
        part = generator.choice(["data", "indices", "indptr", "shape", "format"])
        content[part] = change(generator, content[part]) if part != "format" else np.array(b"coo")
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **content)
        members[name] = buffer.getvalue()


def change_header(generator, about, members):
    name = generator.choice([name for name in members if name.endswith(".npy")])
    shape = generator.choice(["(1000000000000,)", "(-1,)", "(3, 4, 5)", "(2**62, 8)", "()", "(0,)", "(99999999,)"])
    header = (
        f"{{'descr': {generator.choice(['<f8', '|O', '<i8', '<V9'])!r}, 'fortran_order': False, 'shape': {shape}, }}"
    )
    header = header.ljust(117) + "\n"
    body = members[name][128:]
    members[name] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + body


def change_schema(generator, about, members):
    schema = json.loads(members["schema.json"])
    for _ in range(generator.choice([1, 1, 2, 5])):
        nodes = nodes_of(schema)
        node = nodes[generator.integers(len(nodes))]
        other = nodes[generator.integers(len(nodes))]
        kind = generator.integers(9)
        if kind == 0:
            node["__module__"], node["__class__"] = TYPES[generator.integers(len(TYPES))]
        elif kind == 1:
            node["__loader__"] = LOADERS[generator.integers(len(LOADERS))]
        elif kind == 2:
            values = [item for item in nodes if item["__loader__"] == "JsonNode"]
            values[generator.integers(len(values))]["content"] = json.dumps(ODD[generator.integers(len(ODD))])
        elif kind == 3:
            node["__id__"] = other.get("__id__")
        elif kind == 4:
            node.pop(list(node)[generator.integers(len(node))])
        elif kind == 5:
            content = json.loads(json.dumps(other))
            node.clear()
            node.update(content)
        elif kind == 6:
            node[list(node)[generator.integers(len(node))]] = ODD[generator.integers(len(ODD))]
        elif kind == 7:
            files = [item for item in nodes if "file" in item]
            files[generator.integers(len(files))]["file"] = files[generator.integers(len(files))]["file"]
        else:
            content = node.get("content")
            if isinstance(content, list) and content:
                content.pop(generator.integers(len(content)))
            elif isinstance(content, dict) and content:
                content.pop(list(content)[generator.integers(len(content))])
    schema.setdefault("protocol", 2)
    members["schema.json"] = json.dumps(schema).encode()


def change_multiplicity(generator, about, members):
    """One thing many times: objects of one array, large when unpacked, or of one identity; values of JSON."""
    schema = json.loads(members["schema.json"])
    nodes = nodes_of(schema)
    arrays = [node for node in nodes if "file" in node]
    node = generator.choice(arrays if generator.random() < 0.7 else nodes)
    place = generator.choice([item for item in nodes if item["__loader__"] == "DictNode"])
    if node.get("file", "").endswith(".npz"):
        buffer = io.BytesIO()
        sparse.save_npz(buffer, sparse.csr_matrix(np.ones((1, 2**22), np.int8)))
        members[node["file"]] = buffer.getvalue()
    elif "file" in node:
        members[node["file"]] = npy(np.zeros(2**22))
    elif generator.random() < 0.3:
        node = {**TEXT, "content": "[" + "[]," * 2 * 10**7 + "[]]"}
    number = min(generator.choice([200, 20_000]), max(2, 10**7 // len(json.dumps(node))))  # else writing takes too long
    identity = generator.choice(["the same", "none", "new"])
    place["__id__"] = "many"
    for i in range(number):
        identities = {"the same": {}, "none": {"__id__": 0}, "new": {"__id__": f"new {i}"}}
        place["content"][f"attribute{i}"] = node | identities[identity]
    names = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
    place["key_types"] = {
        **TEXT,
        "__class__": "list",
        "__loader__": "ListNode",
        "content": [names] * len(place["content"]),
    }
    members["schema.json"] = json.dumps(schema).encode()


def change_members(generator, about, members):
    names = list(members)
    name, other = generator.choice(names), generator.choice(names)
    kind = generator.integers(4)
    if kind == 0:
        members.pop(name)
    elif kind == 1:
        members[name] = members[other]
    elif kind == 2:
        members[name] = members[name][: len(members[name]) // 2]
    else:
        members[name] = bytes(2**26 if generator.random() < 0.9 else 2**30)


def change_description(generator, about, members):
    place = generator.choice(list(about))
    about[place] = ODD[generator.integers(len(ODD))]
    if place == "versions":
        about["versions"] = {"scikit-ldl": ODD[generator.integers(len(ODD))]}


CHANGES = [change_array, change_header, change_schema, change_members, change_description, change_multiplicity]
SHARES = [0.45, 0.05, 0.3, 0.05, 0.05, 0.1]


def mutate(number: int, source: Path, target: Path) -> None:
    generator = np.random.default_rng([11, number])
    about, members = unpack(source)
    for _ in range(generator.choice([1, 1, 1, 2, 3])):
        CHANGES[generator.choice(len(CHANGES), p=SHARES)](generator, about, members)
        if not arrays_in(members) or "schema.json" not in members:
            break

    def damage(content: bytearray) -> bytes:
        for place in generator.integers(len(content), size=3):
            content[place] ^= int(generator.integers(1, 256))
        return bytes(content)

    pack(target, about, members, damage if generator.random() < 0.03 else None)


def main(folder: Path, first: int, count: int) -> None:
    import skldl
    from skldl.exceptions import ModelFileError

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    warnings.simplefilter("ignore")  # crashes are looked for; damaged numbers overflow
    models = sorted(folder.glob("*.skldl"))
    inputs = {}
    for path in models:
        if path.with_suffix(".csv").exists():
            import pandas as pd

            inputs[path] = pd.read_csv(path.with_suffix(".csv"))
        else:
            inputs[path] = np.load(path.with_suffix(".npy"))
    skldl.load(models[0])  # imports take their time, once
    outcomes: Counter = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "mutated.skldl"
        for number in range(first, first + count):
            source = models[number % len(models)]
            print(number, source.stem, flush=True)
            try:
                mutate(number, source, target)
            except MemoryError:
                raise
            except Exception as error:  # the mutation itself does not always apply
                outcomes[f"not applied: {type(error).__name__}"] += 1
                continue
            signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_FILE)  # of this process: a busy machine is no hang
            try:
                model = skldl.load(target)
            except ModelFileError:
                outcomes["rejected"] += 1
            except Exception as error:
                outcomes[f"unclear: {type(error).__name__}"] += 1
                print(f"unclear: {error!r}", flush=True)
            else:
                try:
                    model.predict(inputs[source])
                    outcomes["predicted"] += 1
                except Exception:
                    outcomes["predict raised"] += 1
            signal.setitimer(signal.ITIMER_PROF, 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"outcomes": outcomes, "peak_bytes": peak}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
