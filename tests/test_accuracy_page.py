"""The page of accuracy is what the results of the benchmark say."""

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[1]


def load_script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current():
    script = load_script(ROOT / "docs" / "make_accuracy.py")
    assert script.PAGE.read_text(encoding="utf-8") == script.page()


def test_missing_cells_stay_empty_and_the_least_is_bold(tmp_path, monkeypatch):
    script = load_script(ROOT / "docs" / "make_accuracy.py")
    entries = [
        {
            "dataset": name,
            "model": model,
            "order": "shuffled",
            "folds": 3,
            "kullback_leibler": value,
            "fit_cpu_seconds": 2.0,
        }
        for name, model, value in (("A", "auto", 0.1), ("A", "mean", 0.3), ("B", "auto", 0.0123))
    ]
    monkeypatch.setattr(script, "RESULTS", tmp_path / "accuracy.json")
    script.RESULTS.write_text(json.dumps(entries))
    text = script.page()
    assert "| A (3) | **0.1000** | 0.3000 |" in text
    assert "| B (3) | 0.01230 |  |" in text
    assert "Folds in file order" not in text
    assert "A 2.0, B 2.0." in text


def test_folds_are_those_of_the_published_table():
    import numpy as np

    script = load_script(ROOT / "benchmarks" / "accuracy.py")
    train, test = script.folds_of(25, "shuffled")[0]
    np.testing.assert_array_equal(test, np.random.default_rng(0).permutation(25)[:3])
    assert sorted([*train, *test]) == list(range(25))
    np.testing.assert_array_equal(script.folds_of(25, "file")[0][1], [0, 1, 2])
