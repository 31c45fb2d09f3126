"""Pages and parts of pages that scripts write are what these scripts write now."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "docs").exists():
    pytest.skip("the pages are in the repository, not in the package", allow_module_level=True)
SCRIPTS = ("accuracy", "algorithms", "leaderboard", "measures", "reproduction", "scale", "speed")
DRAW = {"choice", "pictures", "study_figures"}
"""Scripts that draw figures, which differ with the version of matplotlib."""


def test_every_script_is_here():
    assert {path.stem.removeprefix("make_") for path in (ROOT / "docs").glob("make_*.py")} == {*SCRIPTS, *DRAW}


@pytest.mark.parametrize("name", SCRIPTS)
def test_pages_are_current(load_script, name):
    for path, text in load_script(f"docs/make_{name}.py").outputs().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: run docs/make_{name}.py"
