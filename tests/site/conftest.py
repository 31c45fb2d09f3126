"""The site that ``make site`` has built, and the browser that the tests of reports use."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_specification = importlib.util.spec_from_file_location("report_conftest", ROOT / "tests" / "report" / "conftest.py")
_report = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(_report)
browser = _report.browser


@pytest.fixture(scope="session")
def site():
    folder = ROOT / "site"
    if not (folder / "index.html").exists():
        pytest.skip("there is no site: make site builds it and runs these tests")
    return folder
