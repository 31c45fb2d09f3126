"""docs/architecture.md is true: the modules and files that it names exist, its layers are those of the contracts."""

import ast
import importlib
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from skldl.names import ALGORITHMS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
if not PAGE.exists():
    pytest.skip("the page is in the repository, not in the package", allow_module_level=True)
SOURCE = ROOT / "src" / "skldl"
TEXT = PAGE.read_text(encoding="utf-8")
WORDS = set(re.findall(r"`([^`\n]+)`", TEXT))
FAMILIES = {algorithm.module.split(".")[1] for algorithm in ALGORITHMS}


def modules_in(text):
    """The names of modules and packages directly below ``skldl`` that a text has in backticks."""
    known = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    return set(re.findall(r"`(\w+)`", text)) & known


def contract_layers():
    """From each module to the number of its layer in the contracts, counted from the lowest."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (c["layers"] for c in pyproject["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    return {name: place for place, layer in enumerate(reversed(layers)) for name in re.findall(r"\w+", layer)}


def rows_of_the_table():
    """The second column of the table of layers."""
    return [row.split("|")[2] for row in TEXT.splitlines() if re.match(r"\| \d+ \|", row)]


def identifiers():
    """Every name that the package defines: functions, classes, attributes and variables."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
    return found


def test_every_module_is_named():
    """Families of algorithms follow from their registration: the page need not name each."""
    missing = set(contract_layers()) - modules_in(TEXT) - FAMILIES
    assert missing == set()


def test_the_table_has_the_order_of_the_contracts():
    layers = contract_layers()
    heights = [[layers[name] for name in modules_in(row)] for row in rows_of_the_table()]
    assert len(heights) > 10
    assert all(heights)
    for lower, upper in pairwise(heights):
        assert max(lower) < min(upper), (lower, upper)


def test_every_module_inside_a_package_exists():
    named = [
        (package, word)
        for package, part in re.findall(r"Inside\s`(\w+)`(.*?)(?=Inside\s`|\n\n)", TEXT, flags=re.DOTALL)
        for word in re.findall(r"`(_\w+)`", part)
    ]
    assert len(named) > 30
    assert [f"{package}/{word}" for package, word in named if not (SOURCE / package / f"{word}.py").exists()] == []


def test_every_path_exists():
    """A path of the repository, or one inside of the package; those that are made are ignored by git."""
    made = {path.strip("/") for path in (ROOT / ".gitignore").read_text(encoding="utf-8").split()}
    paths = {word for word in WORDS if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?|\w+\.(py|pyi|html|toml|md)", word)} - made
    assert len(paths) > 10
    places = [ROOT, SOURCE]
    missing = [
        path
        for path in paths
        if not any((place / path).exists() or (place / f"{path}.py").exists() for place in places)
    ]
    assert missing == []


def test_every_private_name_and_every_name_with_dots_exists():
    known = identifiers() | {path.stem for path in SOURCE.rglob("*.py")}
    assert {word for word in WORDS if re.fullmatch(r"_\w+", word)} - known == set()
    dotted = {word for word in WORDS if re.fullmatch(r"(skldl|sklearn)(\.\w+)+", word)}
    assert len(dotted) > 3
    for word in dotted:
        module, _, name = word.rpartition(".")
        assert hasattr(importlib.import_module(module), name) or importlib.util.find_spec(word), word
