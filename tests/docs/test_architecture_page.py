"""docs/architecture.md is true: the modules and files that it names exist, its layers are those of the contracts."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from skldl.names import ALGORITHMS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
if not PAGE.exists():
    pytest.skip("the page is in the repository, not in the package", allow_module_level=True)
SOURCE = ROOT / "src" / "skldl"
TEXT = PAGE.read_text(encoding="utf-8")
WORDS = set(re.findall(r"`([^`\n]+)`", TEXT))
FAMILIES = {algorithm.module.split(".")[1] for algorithm in ALGORITHMS}


def contract_layers():
    """The modules of each layer in the contracts, lowest first."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (c["layers"] for c in pyproject["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    return [set(re.findall(r"\w+", layer)) for layer in reversed(layers)]


def test_the_table_has_the_layers_of_the_contracts():
    """The page need not name each family of algorithms: they follow from their registration."""
    rows = [set(re.findall(r"`(\w+)`", row.split("|")[2])) for row in TEXT.splitlines() if re.match(r"\| \d+ \|", row)]
    assert [row - FAMILIES for row in rows] == [layer - FAMILIES for layer in contract_layers()]


def test_every_path_exists():
    """A path of the repository, or one inside of the package; those that are made are ignored by git."""
    made = {path.strip("/") for path in (ROOT / ".gitignore").read_text(encoding="utf-8").split()}
    paths = {word for word in WORDS if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?|\w+\.(py|pyi|html|toml|md)", word)} - made
    assert paths
    assert {path for path in paths if not any((place / path).exists() for place in (ROOT, SOURCE))} == set()


def test_every_name_with_dots_exists():
    dotted = {word for word in WORDS if re.fullmatch(r"(skldl|sklearn)(\.\w+)+", word)}
    assert dotted
    for word in dotted:
        module, _, name = word.rpartition(".")
        assert hasattr(importlib.import_module(module), name) or importlib.util.find_spec(word), word
