"""Folders of files that published versions wrote, and one that this version writes now.

Nothing was published yet, so that the folder of this version is the only one: it shows that the files which
``tools/write_compatibility_files.py`` makes are read, and that the tests here notice a file which is not.
"""

import contextlib
import io
import re
import runpy
from importlib import metadata
from pathlib import Path

import pytest

from skldl import persistence

PUBLISHED = sorted(path.parent for path in Path(__file__).parent.glob("files_*/expected.json"))


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


@pytest.fixture(scope="session")
def files_of_this_version(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compatibility") / "files"
    tool = Path(__file__).parents[2] / "tools" / "write_compatibility_files.py"
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(tool))["write"](folder)
    return folder


@pytest.fixture(params=[*PUBLISHED, None], ids=lambda folder: folder.name if folder else "now")
def written(request):
    """A folder of files, of a published version or of this one."""
    return request.param or request.getfixturevalue("files_of_this_version")
