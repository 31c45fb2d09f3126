"""The page of accuracy is what the results of the benchmark say."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from skldl.testing import make_distributions

ROOT = Path(__file__).parents[2]


def test_missing_cells_stay_empty_and_the_least_is_bold(tmp_path, monkeypatch, load_script):
    script = load_script("docs/make_accuracy.py")
    entries = [
        {
            "dataset": name,
            "model": model,
            "order": "shuffled",
            "folds": 3,
            "kullback_leibler": value,
            "by_fold": [value] * 3,
            "fit_cpu_seconds": 2.0,
        }
        for name, model, value in (("A", "auto", 0.1), ("A", "mean", 0.3), ("B", "auto", 0.0123))
    ]
    monkeypatch.setattr(script, "RESULTS", tmp_path / "accuracy.json")
    monkeypatch.setattr(script, "AUTOML_RESULTS", tmp_path / "automl.json")
    script.RESULTS.write_text(json.dumps(entries))
    text = script.page()
    assert "choose models by themselves" not in text
    assert "| A (3) | **0.1000** | 0.3000 |" in text
    assert "| B (3) | 0.01230 |  |" in text
    assert "Folds in file order" not in text
    assert "A 2.0, B 2.0." in text


def test_a_model_that_is_ahead_over_the_first_folds_is_named(load_script):
    def entry(model, *by_fold):
        mean = sum(by_fold) / len(by_fold)
        return {"dataset": "A", "model": model, "kullback_leibler": mean, "by_fold": by_fold}

    sentences = load_script("docs/make_accuracy.py")._ahead_on_few_folds
    ours = entry("auto", 0.2, 0.2, 0.2, 0.1)
    assert sentences([ours, entry("sklearn forest", 0.1, 0.1, 0.1, 0.9)]) == [
        "On A, sklearn forest is better than `AutoLDL` over the first 3 folds: 0.10000 against 0.20000.",
        "",
    ]
    assert sentences([ours, entry("sklearn forest", 0.3, 0.3, 0.3, 0.1)]) == []


def test_single_models_that_are_ahead_are_named_with_their_error(load_script):
    def entry(model, *by_fold):
        mean = sum(by_fold) / len(by_fold)
        return {"dataset": "A", "model": model, "kullback_leibler": mean, "by_fold": by_fold}

    sentences = load_script("docs/make_accuracy.py")._against_single_models
    ours = entry("auto", 0.2, 0.3, 0.4)
    assert sentences([ours, entry("mean", 0.1, 0.1, 0.1), entry("sklearn forest", 0.1, 0.1, 0.1)]) == []
    assert sentences([ours, entry("linear", 0.5, 0.5, 0.5)])[0].startswith("No single model of this package is better")
    gaps = np.array([0.1, 0.15, -0.01])
    error = gaps.std(ddof=1) / np.sqrt(3)
    assert sentences([ours, entry("forest", *(np.array([0.2, 0.3, 0.4]) - gaps))])[0] == (
        f"On A, `RandomForestLDL` is better than `AutoLDL` by {gaps.mean():.2g} ± {error:.1g} (standard error over "
        "folds), in 2 of 3 folds."
    )


def test_other_packages_are_compared_on_the_first_fold(tmp_path, monkeypatch, load_script):
    script = load_script("docs/make_accuracy.py")
    ours = {"dataset": "A", "model": "auto", "order": "shuffled", "folds": 2, "kullback_leibler": 0.15}
    theirs = {"dataset": "A", "package": "FLAML", "package_version": "2.7", "seconds": 60.0, "kullback_leibler": 0.3}
    monkeypatch.setattr(script, "RESULTS", tmp_path / "accuracy.json")
    monkeypatch.setattr(script, "AUTOML_RESULTS", tmp_path / "automl.json")
    script.RESULTS.write_text(json.dumps([ours | {"by_fold": [0.1, 0.2], "fit_cpu_seconds": 2.0}]))
    endless = theirs | {"package": "Slow", "kullback_leibler": None, "stopped_after": 300.0}
    script.AUTOML_RESULTS.write_text(json.dumps([theirs, endless]))
    text = script.page()
    assert "| A (1) | **0.1000** | 0.3000 | stopped after 300 s |" in text
    assert "The limit was 60 seconds for one fit" in text
    script.AUTOML_RESULTS.write_text(json.dumps([theirs | {"folds": 2, "by_fold": [0.05, 0.55]}]))
    assert "| A (2) | **0.1500** | 0.3000 |" in script.page()


def test_folds_are_those_of_the_published_table(load_script):
    import numpy as np

    script = load_script("benchmarks/accuracy.py")
    train, test = script.folds_of(25, "shuffled")[0]
    np.testing.assert_array_equal(test, np.random.default_rng(0).permutation(25)[:3])
    assert sorted([*train, *test]) == list(range(25))
    np.testing.assert_array_equal(script.folds_of(25, "file")[0][1], [0, 1, 2])


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (["SJAFFE", "--models", "auto,ridge"], "there is no model 'ridge'; known are: auto"),
        (["SJAFFE", "yeast"], "there is no set 'yeast'; known are: SJAFFE"),
        (["SJAFFE:11"], "'SJAFFE:11': the number of folds must be 1 to 10"),
    ],
)
def test_names_are_checked_before_anything_is_measured(load_script, monkeypatch, capsys, options, reported):
    script = load_script("benchmarks/accuracy.py")
    monkeypatch.setattr(script, "measure", lambda *_: pytest.fail("measured"))
    monkeypatch.setattr("sys.argv", ["accuracy.py", *options])
    with pytest.raises(SystemExit):
        script.main()
    assert reported in capsys.readouterr().err


def test_the_examples_of_the_script_name_models_that_it_knows(load_script):
    script = load_script("benchmarks/accuracy.py")
    for words in re.findall(r'--models (?:"([^"]+)"|(\S+))', script.__doc__):
        assert set("".join(words).split(",")) <= set(script.MODELS)


@pytest.mark.parametrize("options", [["yeast"], ["SJAFFE", "--packages", "flaml"]])
def test_names_of_packages_and_sets_are_checked_first(load_script, monkeypatch, capsys, options):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    script = load_script("benchmarks/automl.py")
    monkeypatch.setattr(script, "measure", lambda *_: pytest.fail("measured"))
    monkeypatch.setattr("sys.argv", ["automl.py", *options])
    with pytest.raises(SystemExit):
        script.main()
    assert f"{options[-1]!r} is not one of" in capsys.readouterr().err


def test_a_package_that_does_not_end_is_stopped(load_script, monkeypatch):
    pytest.importorskip("pandas", reason="the script gives tables to the packages")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    script = load_script("benchmarks/automl.py")

    class Endless(script.AutoGluonRegressor):
        def fit(self, X, y):
            while True:
                pass

    monkeypatch.setitem(script.REGRESSORS, "FLAML", Endless)
    monkeypatch.setattr(script.importlib.metadata, "version", lambda _: "1.0")
    monkeypatch.setattr(script, "load_dataset", lambda _: make_distributions(40))
    entry = script.measure("SJAFFE", "FLAML", 0.02)
    assert entry["kullback_leibler"] is None
    assert entry["stopped_after"] == script.PATIENCE * 0.02
