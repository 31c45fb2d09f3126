"""Crafted archives: types, sizes, headers, members and descriptions are rejected before anything is built."""

import hashlib
import io
import json
import os
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skldl
from skldl import persistence
from skldl.exceptions import ModelFileError
from skldl.testing import make_distributions

X, D = make_distributions()
FOREST = skldl.AARegressor(RandomForestRegressor(2, random_state=0)).fit(X, D)
MEAN = skldl.MeanDistribution().fit(X, D)


def test_types_and_loaders(opened):
    file = opened(MEAN)
    file.attribute("n_labels_").update(__loader__="PartialNode", __id__="partial")
    file.rejects("made by PartialNode")
    file = opened(FOREST)
    for _, node in file.nodes(loader="TreeNode"):
        node["__loader__"] = "ConstructorFromReduceNode"
    file.rejects("ConstructorFromReduceNode")
    file = opened(MEAN)
    file.schema["protocol"] = 1
    file.rejects("does not follow protocol")
    file = opened(MEAN)
    file.schema.update(__module__="sklearn.cluster._kmeans", __class__="KMeans")
    file.rejects(r"holds the type sklearn\.cluster\._kmeans\.KMeans.*trusted=\['sklearn\.cluster")
    file = opened(MEAN)
    file.schema = file.attribute("label_names_") | {"protocol": 2}
    file.rejects("not an estimator")
    model = make_pipeline(FunctionTransformer(np.log1p), LogisticRegression()).fit(X, D.argmax(axis=1))
    np.testing.assert_array_equal(skldl.load(opened(model).write()).predict(X), model.predict(X))


def test_one_identity_is_one_object(opened):
    file = opened(FOREST)
    trees = [node for _, node in file.nodes(loader="TreeNode")]
    trees[0]["__id__"] = trees[1]["__id__"]
    file.rejects("described in two ways")


def test_sizes(opened):
    file = opened(MEAN)
    file.members["bomb.npy"] = bytes(2**30)
    file.rejects("more than 1,073,741,824 bytes when unpacked")
    assert file.path.stat().st_size < 2**21
    path = skldl.save(MEAN, file.path)
    with pytest.raises(ModelFileError, match=r"max_bytes=\d+"):
        skldl.load(path, max_bytes=100)
    with zipfile.ZipFile(path) as archive:
        content = archive.read("model.skops")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("skldl.json", json.dumps(file.about)[:-1] + ', "x": [' + "[]," * 2**23 + "0]}")
        archive.writestr("model.skops", content)
    with pytest.raises(ModelFileError, match="bytes when unpacked"):
        persistence.inspect(path)


def packed(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def packed_matrix(n):
    buffer = io.BytesIO()
    matrix = {"indices": np.zeros(n, np.int32), "indptr": np.array([0, n]), "data": np.zeros(n, np.int8)}
    np.savez_compressed(buffer, **matrix, format=np.array(b"csr"), shape=np.array([1, 1]))
    return buffer.getvalue()


ARRAY = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy", "file": "b.npy"}
MATRIX = {
    "__class__": "csr_matrix",
    "__module__": "scipy.sparse._csr",
    "__loader__": "SparseMatrixNode",
    "type": "scipy",
    "file": "b.npz",
}
LIST = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
JSON = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}


@pytest.mark.parametrize(
    ("content", "max_bytes"),
    [
        ([{**ARRAY, "__id__": f"copy {i}"} for i in range(30)], 10**7),
        ([{**ARRAY, "__id__": 0} for i in range(30)], 10**7),  # skops takes it for no identity
        ([ARRAY] * 30, 10**7),
        ([{**MATRIX, "__id__": f"copy {i}"} for i in range(5)], 10**7),
        ([{**JSON, "content": "[" + "[]," * 10**5 + "[]]"}], 6 * 10**6),
        ([[] for _ in range(10**5)], 6 * 10**6),
    ],
    ids=["arrays", "arrays 0", "arrays without identity", "matrices", "values", "parts"],
)
def test_everything_that_is_unpacked_counts_together(opened, content, max_bytes):
    file = opened(MEAN)
    file.members |= {"b.npy": packed(np.zeros(50_000)), "b.npz": packed_matrix(500_000)}
    file.attribute("n_features_in_").update(LIST, content=content, __id__="many")
    path = file.write()
    assert path.stat().st_size < 25_000
    with pytest.raises(ModelFileError, match=f"more than {max_bytes:,} bytes when unpacked"):
        skldl.load(path, max_bytes=max_bytes)
    with pytest.raises(ModelFileError, match="cannot be rebuilt"):
        skldl.load(path, max_bytes=10**9)


def test_each_identity_is_compared_once(opened, monkeypatch):
    """Every further reference to an array in two files took the time to unpack both."""
    reads = []
    read = zipfile.ZipFile.read
    monkeypatch.setattr(
        zipfile.ZipFile, "read", lambda self, name, *more: reads.append(name) or read(self, name, *more)
    )
    numbers = []
    for n_references in (2, 200):
        file = opened(MEAN)
        file.members |= dict.fromkeys(("b.npy", "c.npy"), packed(np.zeros(10**4)))
        nodes = [{**ARRAY, "__id__": 7, "file": "bc"[i % 2] + ".npy"} for i in range(n_references)]
        file.attribute("n_features_in_").update(LIST, content=nodes, __id__="many")
        path = file.write()
        reads.clear()
        with pytest.raises(ModelFileError, match="n_features_in_"):
            skldl.load(path)
        numbers.append(len(reads))
    assert numbers[0] == numbers[1]


def test_descriptions_that_double_at_every_level(opened):
    """A dtype that is described a second time in short: walks over its parts took 2²⁶ steps."""

    def dtype(level, full=True):
        node = {"__class__": "dtype", "__module__": "numpy", "__loader__": "DTypeNode", "__id__": f"d{level}"}
        parts = [dtype(level + 1), dtype(level + 1, full=False)] if full and level < 26 else []
        return {**node, "content": {**LIST, "content": parts}}

    file = opened(MEAN)
    file.attribute("n_features_in_").update(LIST, content=[dtype(0)], __id__="many")
    file.rejects("described in two ways")


@pytest.mark.skipif(os.name == "nt", reason="has no such devices")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_devices_are_rejected(device):
    for use in (skldl.load, persistence.inspect):
        with pytest.raises(ModelFileError, match=f"{device} is a pipe or a device"):
            use(device)


def test_headers_of_arrays(opened):
    whole = opened(MEAN).members[opened(MEAN).attribute("distribution_")["file"]]
    for old, new in [
        (b"(3,)", b"(4,)"),
        (b"'<f8'", b"'|O' "),
        (b"\x93NUMPY\x01", b"\x93NUMPY\x03"),
        (b"(3,)", b"(-3,)"),
    ]:
        file = opened(MEAN)
        changed = whole.replace(old, new)
        assert changed != whole
        file.members[file.attribute("distribution_")["file"]] = changed
        file.rejects("cannot be rebuilt")
    file = opened(MEAN)
    file.attribute("distribution_")["file"] = "nothing.npy"
    file.rejects("an array is missing")


def test_nesting(opened):
    file = opened(MEAN)
    node = file.attribute("label_names_")
    for _ in range(400):
        node["content"] = [{"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}]
        node = node["content"][0]
    file.rejects("nested too deeply")


def test_members_of_the_archive(opened):
    file = opened(MEAN)
    path = file.write()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as inner:
        inner.writestr("schema.json", json.dumps(file.schema))
        with pytest.warns(UserWarning, match="Duplicate name"):
            inner.writestr("schema.json", json.dumps(file.schema))
    for content, match in ((buffer.getvalue(), "same name"), (b"no archive", "BadZipFile")):
        about = {**file.about, "sha256": hashlib.sha256(content).hexdigest()}
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("skldl.json", json.dumps(about))
            archive.writestr("model.skops", content)
        with pytest.raises(ModelFileError, match=match):
            skldl.load(path)


@pytest.mark.parametrize(
    "about",
    [
        [],
        {},
        {"versions": []},
        {"versions": {}},
        {"sha256": 3},
        {"description": "x"},
        {"created": None},
        {"format": True},
    ],
)
def test_broken_descriptions(opened, about):
    file = opened(MEAN)
    file.about = about if about in ([], {}) else {**file.about, **about}
    path = file.path
    with zipfile.ZipFile(path) as archive:
        content = archive.read("model.skops")
    if about != {"sha256": 3} and file.about:
        file.about["sha256"] = hashlib.sha256(content).hexdigest()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("skldl.json", json.dumps(file.about))
        archive.writestr("model.skops", content)
    for use in (skldl.load, persistence.inspect, persistence.read):
        with pytest.raises(ModelFileError, match="not a model file"):
            use(path)


@pytest.mark.parametrize("description", [{"features": 3}, {"features": {"a": "odd"}, "roles": None}, {"note": "mine"}])
def test_a_description_of_any_kind_can_be_shown(tmp_path, capsys, description):
    inspect = pytest.importorskip("skldl.cli.inspect").inspect
    inspect(skldl.save(MEAN, tmp_path / "m.skldl", description=description))
    assert all(name in capsys.readouterr().out for name in list(description)[:1])


@pytest.mark.parametrize("part", ["indptr", "indices"])
def test_wild_indices_of_sparse_rows(opened, part):
    """The search of neighbours would compute with the training rows while the model is built."""
    file = opened(skldl.AAKNN(n_neighbors=3).fit(sparse.csr_matrix(X), D))
    name = next(name for name in file.members if name.endswith(".npz"))
    arrays = dict(np.load(io.BytesIO(file.members[name])))
    arrays[part][7] = -(2**31)
    changed = io.BytesIO()
    np.savez(changed, **arrays)
    file.members[name] = changed.getvalue()
    file.rejects("rebuilt with the packages installed here: ind")


def test_sparse_rows_are_read_again(tmp_path):
    model = skldl.AAKNN(n_neighbors=3).fit(sparse.csr_matrix(X), D)
    again = skldl.load(skldl.save(model, tmp_path / "rows.skldl"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
