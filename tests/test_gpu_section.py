"""The section of ``docs/scale.md`` on the GPU says what the result file holds."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "docs").exists():
    pytest.skip("the documentation is in the repository, not in the package", allow_module_level=True)
RESULTS = {
    "machine": {"device": "Some GPU", "torch": "2.11"},
    "records": [
        {"section": "measures", "what": "read both tables (float32, 10 × 10)", "least_s": 0.0002},
        {"section": "measures", "what": "evaluate, six measures (float32)", "least_s": 0.0004},
        {"section": "kernel_one", "what": "failed", "error": "…"},
        {"section": "head", "what": "SABFGSCV as a head, 20 × 3 → 2", "least_s": 2.5},
        {
            "section": "head",
            "what": "Adam, rate 0.1, 30 epochs",
            "least_s": 9.0,
            "seconds_to_the_same_divergence": 8.25,
        },
        {"section": "head", "what": "SGD, rate 1, 30 epochs", "least_s": 6.0, "seconds_to_the_same_divergence": None},
    ],
}


def test_figures_come_from_the_records(load_script):
    text = load_script("docs/make_scale.py").page("# Large data\n", RESULTS)
    assert "| Six measures, 10,000,000 × 10, float32 | 0.4 ms | reading both tables: 0.2 ms |" in text
    assert "KernelRidgeLDL`, one penalty" not in text
    assert "(20 × 3 → 2) `SABFGSCV` took 2.5 s" in text
    assert "Of 2 training loops" in text
    assert "1 came within 0.1 %" in text
    assert "(Adam, rate 0.1) needed 8.25 s" in text


def test_other_parts_of_the_page_stay(load_script):
    make_scale = load_script("docs/make_scale.py")
    once = make_scale.page("# Large data\n\nBefore.\n", RESULTS)
    assert once.startswith("# Large data\n\nBefore.\n")
    assert make_scale.page(f"{once}After.\n", RESULTS) == f"{once}After.\n"
    assert "| time |" not in make_scale.page(once, None)


def test_the_page_is_up_to_date(load_script):
    make_scale = load_script("docs/make_scale.py")
    results = json.loads(make_scale.RESULTS.read_text(encoding="utf-8")) if make_scale.RESULTS.exists() else None
    text = make_scale.PAGE.read_text(encoding="utf-8")
    assert make_scale.page(text, results) == text, "run make docs"
