"""The table of docs/scale.md follows from the results of benchmarks/scale.py, which runs on few rows."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="the benchmarks are in the repository")


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
