"""What the documentation says is what happens: its Python runs, its figures are right, its links lead somewhere."""

import ast
import importlib
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from skldl.chunks import ArrayRows
from skldl.cli import main
from skldl.metrics import Skill
from skldl.testing import check_estimator, make_distributions

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "user-guide").glob("*.md"))


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_the_readme_code_runs_and_gives_the_figure_beside_it():
    (code,) = python_blocks(ROOT / "README.md")
    promised = [
        float(number) for number in re.search(r"# Skill\(([\d.]+), 95% interval ([\d.]+) to ([\d.]+)\)", code).groups()
    ]
    *statements, last = ast.parse(code).body
    names: dict = {}
    exec(compile(ast.Module(statements, []), "README.md", "exec"), names)
    skill = eval(ast.unparse(last.value.args[0]), names)
    assert isinstance(skill, Skill)
    np.testing.assert_allclose([skill, skill.low, skill.high], promised, atol=2e-3)


def test_the_examples_for_contributors_fail_only_the_checks_they_name(tmp_path, monkeypatch):
    code = "\n\n".join(python_blocks(ROOT / "CONTRIBUTING.md"))
    (tmp_path / "median_distribution.py").write_text(code)  # a module of its own, so that it can be pickled
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("median_distribution")
    reason = "the median takes no weights"
    check_estimator(
        module.MedianDistribution(),
        expected_failed_checks={
            "check_weight_two_is_row_twice": reason,
            "check_sample_weight_equivalence_on_dense_data": reason,
            "check_sample_weight_equivalence_on_sparse_data": reason,
        },
    )
    check_estimator(module.MeanOfRows())
    X, D = make_distributions()
    model = module.MeanOfRows().fit(ArrayRows(X, D))
    np.testing.assert_allclose(model.distribution_, D.mean(axis=0))


def commands(page: Path) -> list[str]:
    """Calls of skldl: lines of blocks that are not Python, and words in backticks."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?!python)\w*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line.rpartition("|")[2].strip() for block in blocks for line in block.splitlines()]
    found = [line for line in lines if line.startswith("skldl ")]
    return found + re.findall(r"`(skldl [a-z][^`]*)`", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_have_the_options_that_are_shown(page, monkeypatch, capsys):
    pytest.importorskip("cyclopts")
    monkeypatch.setenv("COLUMNS", "300")  # so that no name of an option is wrapped
    for command in commands(page):
        words = [word for word in shlex.split(command, comments=True)[1:] if word != "--help"]
        assert main([*words, "--help"]) == 0
        said = capsys.readouterr().out
        assert f"Usage: skldl {words[0]}" in said, f"{page.name}: {command}"
        shown = {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)}
        table = re.findall(r"^│[* ]{1,4}((?:--?[a-z][\w-]* )+)", said, flags=re.MULTILINE)
        assert shown <= set(" ".join(table).split()), f"{page.name}: {command}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    for target in targets:
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
