"""docs/scale.md follows from the results of benchmarks/scale.py, which runs on few rows, and of benchmarks/gpu.py."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="the benchmarks are in the repository")


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


@pytest.fixture
def scale(load_script, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    return load_script("benchmarks/scale.py")


def test_the_page_is_up_to_date(scale):
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert scale.render(page) == page, "run: python benchmarks/scale.py --page"


def test_rows_are_the_same_in_files_and_in_memory(scale, monkeypatch, tmp_path):
    from skldl.chunks import ParquetRows

    monkeypatch.setattr(scale, "FILE_ROWS", 400)
    X, D = scale.dense_rows(0, 1000)
    scale.write_files(tmp_path, 1000)
    parts = list(ParquetRows(tmp_path, labels="r_*"))
    np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), X)
    np.testing.assert_allclose(np.concatenate([part[1] for part in parts]), D, atol=1e-15)


def test_measurements_agree_about_the_model(scale, monkeypatch):
    monkeypatch.setattr(scale, "N_COLUMNS", 1 << 8)
    rows = {
        kind: scale.measure(kind, 2000) for kind in ("memory", "two threads", "copies", "text chunks", "text memory")
    }
    assert rows["memory"]["held-out KL"] == rows["two threads"]["held-out KL"]
    assert rows["copies"]["held-out KL"] == pytest.approx(rows["memory"]["held-out KL"], rel=1e-3)
    assert rows["text chunks"]["held-out KL"] == pytest.approx(rows["text memory"]["held-out KL"], rel=1e-9)


def test_figures_of_the_gpu_come_from_the_records(load_script):
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
