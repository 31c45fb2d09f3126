"""A model file that can be taken apart and put together again."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest

import skldl
from skldl.exceptions import ModelFileError


class File:
    """A model file that can be taken apart and put together again with a checksum that fits."""

    def __init__(self, model, path):
        self.path = skldl.save(model, path)
        with zipfile.ZipFile(path) as archive:
            self.about = json.loads(archive.read("skldl.json"))
            with zipfile.ZipFile(io.BytesIO(archive.read("model.skops"))) as inner:
                self.members = {name: inner.read(name) for name in inner.namelist()}
        self.schema = json.loads(self.members["schema.json"])

    def nodes(self, **wanted):
        """Nodes with these values, and the attribute under which each is kept."""
        waiting = [("", self.schema)]
        while waiting:
            key, item = waiting.pop()
            if isinstance(item, dict):
                if "__loader__" in item and all(item.get(f"__{name}__") == value for name, value in wanted.items()):
                    yield key, item
                waiting += item.items()
            elif isinstance(item, list):
                waiting += [(key, part) for part in item]

    def attribute(self, name):
        return next(node for key, node in self.nodes() if key == name)

    def array(self, name):
        return np.load(io.BytesIO(self.members[self.attribute(name)["file"]]))

    def put_array(self, name, array):
        buffer = io.BytesIO()
        np.save(buffer, array)
        for key, node in self.nodes():
            if key == name and "file" in node:
                self.members[node["file"]] = buffer.getvalue()

    def put_value(self, name, value):
        for key, node in self.nodes():
            if key == name:
                identity = node.get("__id__")
                node.clear()
                node.update(
                    __class__="str",
                    __module__="builtins",
                    __loader__="JsonNode",
                    content=json.dumps(value),
                    is_json=True,
                )
                node["__id__"] = f"changed {identity}"

    def write(self):
        self.members["schema.json"] = json.dumps(self.schema).encode()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as inner:
            for name, content in self.members.items():
                inner.writestr(name, content)
        about = {**self.about, "sha256": hashlib.sha256(buffer.getvalue()).hexdigest()}
        with zipfile.ZipFile(self.path, "w") as archive:
            archive.writestr("skldl.json", json.dumps(about))
            archive.writestr("model.skops", buffer.getvalue())
        return self.path

    def rejects(self, match):
        with pytest.raises(ModelFileError, match=match):
            skldl.load(self.write())


@pytest.fixture
def opened(tmp_path):
    return lambda model: File(model, tmp_path / "model.skldl")
