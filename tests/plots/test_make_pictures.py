"""The script that makes the pictures of the documentation runs, and makes them small."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "make_pictures.py"


@pytest.mark.slow
def test_it_makes_every_picture_that_is_kept(tmp_path):
    names = runpy.run_path(str(SCRIPT))
    names["save"].__globals__["FOLDER"] = tmp_path / "pictures"
    names["main"]()
    made = {path.name: path.stat().st_size for path in (tmp_path / "pictures").iterdir()}
    kept = {path.name for path in (SCRIPT.parent / "pictures").iterdir()}
    assert set(made) == kept - {"choose.png"}  # written by make_choice.py, with the page that shows it
    assert max(made.values()) < 400_000
