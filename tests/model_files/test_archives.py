"""Crafted archives: types, sizes, headers, members and descriptions are rejected before anything is built."""

import hashlib
import io
import json
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
    file.attribute("n_labels_")["__loader__"] = "PartialNode"
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
    file.members["bomb.npy"] = bytes(2**29)
    file.rejects("bytes when unpacked, more than 536,870,912")
    assert file.path.stat().st_size < 2**20
    file = opened(MEAN)
    node = file.attribute("distribution_")
    copies = [{**node, "__id__": f"copy {i}"} for i in range(300)]
    file.members[node["file"]] = file.members[node["file"]].ljust(2**21)
    file.attribute("label_names_").update(content=copies)
    file.rejects("bytes when unpacked")
    path = skldl.save(MEAN, file.path)
    with pytest.raises(ModelFileError, match=r"max_bytes=\d+"):
        skldl.load(path, max_bytes=100)
    with zipfile.ZipFile(path) as archive:
        content = archive.read("model.skops")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("skldl.json", json.dumps(file.about) + " " * 2**26)
        archive.writestr("model.skops", content)
    with pytest.raises(ModelFileError, match="bytes when unpacked"):
        persistence.inspect(path)


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
