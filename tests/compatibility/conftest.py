"""Files of earlier versions are read with whatever scikit-learn is installed, unless that is older than their own."""

import re
from importlib import metadata

import pytest

from skldl import persistence


def minor_version(text):
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


@pytest.fixture
def read_model():
    """Read a model file; skip the test if an older scikit-learn than the one that wrote it is installed."""

    def read(path):
        written_with = persistence.inspect(path)["versions"]["scikit-learn"]
        if minor_version(metadata.version("scikit-learn")) < minor_version(written_with):
            pytest.skip(f"written with scikit-learn {written_with}; no scikit-learn reads models of a later one")
        return persistence.read(path)

    return read
