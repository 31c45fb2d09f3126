"""The history of speed: which ratios it keeps, of which version, and when it calls a version slower."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MACHINE = {"cpu": "some", "python": "3.11", "scikit-ldl": "0.2.0", "python-ldl": "0.1.2"}


@pytest.fixture(scope="module")
def history(load_script):
    return load_script("benchmarks/history.py")


def result(folder, section, rows, *, version="0.2.0", **more):
    folder.mkdir(exist_ok=True)
    content = {"machine": MACHINE | {"scikit-ldl": version}, "rows": rows, **more}
    (folder / f"{section}.json").write_text(json.dumps(content), encoding="utf-8")


def test_ratios_are_our_time_divided_by_the_reference(history):
    row = {
        "dataset": "Movie",
        "ours s": 0.1,
        "python-ldl / ours": 4.0,
        "python-ldl / ours diag": 2.0,
        "ours / KNeighborsRegressor": 1.5,
        "ours / bare products": None,
        "every k ≤ 50 / k = 50": 1.1,
        "python-ldl objective − ours": 3.0,
    }
    assert history.ratios_of(row) == {
        "ours / python-ldl": 0.25,
        "ours diag / python-ldl": 0.5,
        "ours / KNeighborsRegressor": 1.5,
    }


def test_only_rows_of_the_version_are_kept_and_older_cases_stay(history, tmp_path):
    results, files = tmp_path / "results", tmp_path / "history"
    rows = [{"dataset": "A", "python-ldl / ours": 2.0}, {"dataset": "B", "python-ldl / ours": 4.0}]
    result(results, "sabfgs", rows, versions={"A": "0.1.0", "B": "0.2.0"})
    result(results, "scaling", [{"algorithm": "Mean", "1000": 0.1}])
    (results / "accuracy.json").write_text("[]")
    path = history.write("0.2.0", results, files)
    assert json.loads(path.read_text())["ratios"] == {"sabfgs": {"B": {"ours / python-ldl": 0.25}}}
    assert history.write("0.3.0", results, files) is None
    result(results, "sabfgs", [{"dataset": "C", "python-ldl / ours": 1.0}])
    again = json.loads(history.write("0.2.0", results, files).read_text())
    assert set(again["ratios"]["sabfgs"]) == {"B", "C"}
    assert again["machines"]["sabfgs"]["cpu"] == "some"


def made(version, **ratios):
    sections = {
        section: {case: {"ours / peer": value} for case, value in cases.items()} for section, cases in ratios.items()
    }
    return {"version": version, "machines": dict.fromkeys(sections, MACHINE), "ratios": sections}


def test_a_slower_section_is_found(history):
    old = made("0.1.0", knn={"A": 1.0, "B": 2.0}, bfgs={"A": 1.0, "B": 1.0}, gone={"A": 1.0})
    new = made("0.2.0", knn={"A": 1.5, "B": 2.4}, bfgs={"A": 2.0, "B": 0.5}, fresh={"A": 1.0})
    text, slower = history.lines(old, new)
    assert slower == ["knn"]  # √(1.5 · 1.2) = 1.34; the geometric mean of 2 and 1/2 is 1
    assert "knn: 1.34 over 2 ratios  SLOWER" in text
    assert "bfgs: 1.00 over 2 ratios" in text
    assert "     2.00  A: ours / peer" in text
    assert text[-2:] == ["measured only now: fresh", "measured only before: gone"]
    assert history.lines(old, new, slower=1.4)[1] == []
    assert history.lines(made("1", a={"A": 1.0}), made("2", b={"A": 1.0}))[0][-1].endswith("share no measurement.")


def test_another_version_of_the_reference_is_named(history):
    old, new = made("0.1.0", knn={"A": 1.0}), made("0.2.0", knn={"A": 1.0})
    new["machines"] = {"knn": MACHINE | {"python-ldl": "0.2.0", "scikit-ldl": "0.2.0", "cpu": "other"}}
    assert "    note: other versions in knn: python-ldl 0.1.2 to 0.2.0" in history.lines(old, new)[0]


def test_the_command(history, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(history, "HISTORY", tmp_path)
    monkeypatch.setattr(sys, "argv", ["history.py", "compare"])
    with pytest.raises(SystemExit, match="Two versions are needed"):
        history.main()
    for version, value in (("0.9.0", 1.0), ("0.10.0", 2.0)):
        (tmp_path / f"{version}.json").write_text(json.dumps(made(version, knn={"A": value})))
    assert history.versions_of(tmp_path) == ["0.9.0", "0.10.0"]
    assert history.main() == 1
    assert capsys.readouterr().out.startswith("0.9.0 to 0.10.0")
    monkeypatch.setattr(sys, "argv", ["history.py", "compare", "0.10.0", "0.9.0"])
    assert history.main() == 0
    monkeypatch.setattr(sys, "argv", ["history.py", "compare", "0.8.0"])
    with pytest.raises(SystemExit, match=r"no history of 0\.8\.0\. Known: 0\.9\.0, 0\.10\.0"):
        history.main()


def test_the_files_of_the_repository_can_be_read(history):
    for path in (ROOT / "benchmarks" / "history").glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content["version"] == path.stem
        assert content["ratios"].keys() == content["machines"].keys()
        assert all(machine["scikit-ldl"] == path.stem for machine in content["machines"].values())


def test_rows_remember_the_version_that_measured_them(load_script, tmp_path, monkeypatch):
    common = load_script("benchmarks/_common.py")
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    result(tmp_path, "knn", [{"dataset": "SJAFFE", "ours s": 1.0}], version="0.1.0")
    common.keep("knn", {"dataset": "Movie", "ours s": 2.0})
    content = json.loads((tmp_path / "knn.json").read_text())
    assert content["versions"] == {"SJAFFE": "0.1.0", "Movie": common.skldl.__version__}
    common.keep("knn", {"dataset": "SJAFFE", "ours s": 0.5})
    content = json.loads((tmp_path / "knn.json").read_text())
    assert set(content["versions"].values()) == {common.skldl.__version__}
    assert len(content["rows"]) == 2
