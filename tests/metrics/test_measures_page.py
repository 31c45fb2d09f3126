"""The page of measures in the documentation says what the objects say."""

import importlib.util
from pathlib import Path

from skldl.metrics import MEASURES

DOCS = Path(__file__).parents[2] / "docs"


def test_page_is_up_to_date():
    specification = importlib.util.spec_from_file_location("make_measures", DOCS / "make_measures.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    page = (DOCS / "measures.md").read_text(encoding="utf-8")
    assert page == module.render(), "run: python docs/make_measures.py"
    tables = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(tables) == len(MEASURES)
    assert all(line.count("|") == 7 for line in tables)
