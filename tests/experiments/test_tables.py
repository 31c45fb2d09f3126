"""Tables: ranks, decimals, skill, marks of failure, and all their forms."""

import csv
import io
import re
import shutil
import subprocess
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from skldl import MeanDistribution
from skldl.data import Dataset
from skldl.exceptions import UnknownNameError
from skldl.experiments import Candidate, Study, run_study
from skldl.experiments.statistics import rank_rows
from skldl.experiments.tables import (
    average_ranks,
    dataset_table,
    decimals_to_distinguish,
    format_deviation,
    format_rank,
    measure_table,
    settings_table,
    skill_table,
    time_table,
)
from skldl.utils.tables import Cell, TextTable


@given(arrays(np.float64, (3, 5), elements=st.integers(0, 6).map(float)))
def test_ranks_are_those_of_scipy(values):
    np.testing.assert_array_equal(rank_rows(values, higher_is_better=False), rankdata(values, axis=1))
    np.testing.assert_array_equal(rank_rows(values, higher_is_better=True), rankdata(-values, axis=1))


def test_ranks_with_rounding_errors_and_missing_values():
    ranks = rank_rows(np.array([[0.1 + 0.2, 0.3, np.nan, 0.2]]), higher_is_better=False)
    np.testing.assert_array_equal(ranks, [[2.5, 2.5, np.nan, 1.0]])


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([0.174, 0.01472, 0.01483, 0.036], 4),
        ([0.992862, 0.992904, 0.965], 5),
        ([0.5, 0.5], 3),
        ([0.1, np.nan, 0.1001], 4),
        ([1.0, 1.0 + 1e-12], 3),
        ([1.0, 1.0 + 3e-9], 8),
        ([np.nan], 3),
        ([0.00003, 0.0008], 5),
        ([0.00003, 0.00004], 5),
        ([0.0, 1e-17], 3),
    ],
)
def test_just_enough_decimals(values, decimals):
    assert decimals_to_distinguish(np.array(values), np.full(len(values), np.nan)) == decimals


@pytest.mark.parametrize(("deviations", "decimals"), [([0.0, 0.0], 8), ([0.0002, 2e-5], 6), ([0.02, 2e-5], 5)])
def test_not_more_decimals_than_the_deviations_allow(deviations, decimals):
    assert decimals_to_distinguish(np.array([0.5, 0.5 + 3e-9]), np.array(deviations)) == decimals


@given(arrays(np.float64, 6, elements=st.floats(0, 5), unique=True))
def test_different_values_are_printed_differently_unless_they_are_too_close(values):
    decimals = decimals_to_distinguish(values, np.zeros(6))
    assert decimals >= 3
    printed = [f"{value:.{decimals}f}" for value in np.sort(values)]
    for (one, other), (low, high) in zip(pairwise(printed), pairwise(np.sort(values)), strict=True):
        assert one != other or high - low <= 2e-8


def test_deviations_and_ranks_in_print():
    assert [format_deviation(v) for v in (0.0123, 0.0005, 0.00049, 0.00004, 0.0, 3.2)] == [
        *("0.012", "0.001", "0.0005", "0.00004", "0.000", "3.200")
    ]
    assert [format_rank(r) for r in (1.0, 3.5)] == ["1", "3.5"]


def test_a_table_as_in_the_paper(fake):
    results = fake(np.array([[0.1, 0.2, 0.4], [0.3, 0.15, 0.2]]), folds=3)
    table = results.table("Clark")
    assert table.title == "Clark ↓: mean ± std (rank)"
    assert table.head == ["Dataset", "algorithm 0", "algorithm 1", "Mean", "Skill"]
    assert table.rows[0] == (
        "set 0",
        [Cell("0.100 ± 0.000 (1)", True), Cell("0.200 ± 0.000 (2)"), Cell("0.400 ± 0.000 (3)"), Cell("75.0%")],
    )
    assert table.foot == [("Average rank", [Cell("2.00"), Cell("1.50", True), Cell("2.50"), Cell("")])]
    similar = results.table("cosine")
    assert similar.title.startswith("Cosine ↑")
    assert [cell.best for cell in similar.rows[0][1]] == [True, False, False, False]
    assert similar.rows[0][1][3].text == "75.0%"
    with pytest.raises(UnknownNameError, match=r"The study did not compute canberra. It has clark, cosine"):
        results.table("canberra")


def test_skill_against_the_mean(fake):
    results = fake(np.array([[0.1, 0.2], [0.3, 0.2], [0.3, 0.0]]))
    np.testing.assert_allclose(results.skills("clark"), [[0.5, 0.0], [-0.5, 0.0], [-np.inf, 0.0]])
    np.testing.assert_allclose(results.skills("cosine")[:2], [[0.5, 0.0], [-0.5, 0.0]])
    table = skill_table(results, "clark")
    assert table.rows[0][1] == [Cell("50.0%", True), Cell("0.0%")]
    assert table.rows[2][1] == [Cell("−∞"), Cell("0.0%", True)]  # nothing can be better than a mean without loss
    assert measure_table(results, "clark").rows[2][1][-1] == Cell("−∞")


def test_failed_cells_are_marked_and_kept_out_of_averages(failing_results):
    table = failing_results.table("clark")
    assert [cells[1].text for _, cells in table.rows] == ["failed 3/3"] * 2
    assert all(cells[1].best is False for _, cells in table.rows)
    assert table.rows[0][1][0].text.endswith("(1)")
    assert np.isnan(average_ranks(failing_results, "clark")).all()
    assert [cell.text for cell in table.foot[0][1]] == ["–", "–", "–", ""]
    assert "Incomplete, and so not in the average rank: one, two" in "\n".join(table.notes)
    assert time_table(failing_results).rows[0][1][1] == Cell("–")
    assert settings_table(failing_results).rows[0][1][0].text.startswith("n_neighbors=")


def test_a_candidate_that_always_fails_leaves_a_readable_table(problem, candidates, monkeypatch):
    results = run_study(Study([problem("d")], [candidates["broken"]], folds=2, measures=["clark"]))
    assert results.table("clark").rows[0][1][-1] == Cell("–")
    monkeypatch.setattr(MeanDistribution, "fit", None)
    failed = run_study(Study([problem("d", n=6)], [Candidate("Mean", "skldl:MeanDistribution")], folds=2))
    assert "failed 2/2" in str(failed.table("clark"))
    assert skill_table(failed, "clark").rows[0][1] == [Cell("–")]


def test_tasks_that_did_not_run_are_reported(tmp_path, small_study):
    run_study(small_study(), out=tmp_path)
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    from skldl.experiments import StudyResults

    assert "not run 1/3" in str(StudyResults.load(tmp_path).table("clark"))


def test_datasets_apart_are_listed_but_not_averaged(problem, candidates, small_study):
    study = small_study(datasets=[problem("one"), problem("two", seed=1, apart=True)])
    results = run_study(study)
    table = results.table("clark")
    assert [name for name, _ in table.rows] == ["one", "two"]
    assert "Not in the average rank: two." in table.notes
    ranks = rank_rows(results.means("clark")[:1], higher_is_better=False)[0]
    np.testing.assert_array_equal(average_ranks(results, "clark"), ranks)


def test_dataset_table(problem, candidates):
    test = problem("t", n=1500, seed=3)
    one, two = problem("a", n=1200), problem("b", n=1200)
    fixed = problem("c", X_test=test.X, D_test=test.D)
    mean = Candidate("Mean", "skldl:MeanDistribution")
    table = dataset_table(run_study(Study([one, Dataset("b", one.X, two.D[::-1]), fixed], [mean], folds=2)))
    assert [cell.text for cell in table.rows[0][1]][:4] == ["a", "1,200", "3", "3"]
    assert table.rows[2][1][1].text == "36 (train), 1,500 (test)"
    assert "These share their features: a, b." in table.notes
    head, *lines = csv.reader(io.StringIO(table.to_csv()))
    assert {len(line) for line in lines} == {len(head)}


def test_settings_table_counts(results):
    table = settings_table(results)
    assert table.head == ["Dataset", "kNN", "Tree"]
    for _, cells in table.rows:
        for cell in cells:
            assert re.fullmatch(r"(n_neighbors|max_depth)=\d( \(\d/3\))?", cell.text)


def test_time_table(small_study):
    results = run_study(small_study(protocol="geng2016"))
    table = time_table(results)
    assert re.fullmatch(r"[\d.]+ (ms|s) / [\d.]+ (ms|s)", table.rows[0][1][0].text)
    assert table.foot[0][0] == "All selection"
    own = sum(r["seconds"] for r in results.selections if r["candidate"] == "kNN")
    assert own > 0
    assert sum(line["kNN all selection"] for line in table.values.values()) == pytest.approx(own, rel=0.01)


NASTY = TextTable(
    "a|b *c* <d> _e_ 100% ↓ ± $x$ #1 {z} ~ ^ \\ & χ²",
    ["Data_set", "A&B", "<script>"],
    [("row_1 | x", [Cell("0.1 ± 0.2 (1)", True), Cell("–")])],
    [("Average", [Cell("1.00"), Cell("≻ • ◦ … → × ≥ ≤ − ·")])],
    ["A note with 5 % & more_"],
    {"a,b": {"x": np.float64(0.1), "y": np.nan}},
    "dataset",
)


def test_markdown_is_escaped():
    text = NASTY.to_markdown()
    assert "&lt;script>" in text
    assert "a\\|b \\*c\\* &lt;d>" in text
    assert "**0.1 ± 0.2 (1)**" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4}


def test_csv_reads_back():
    assert list(csv.reader(io.StringIO(NASTY.to_csv()))) == [["dataset", "x", "y"], ["a,b", "0.1", ""]]


def test_plain_text_marks_the_best():
    text = str(NASTY)
    assert "0.1 ± 0.2 (1)*" in text
    assert text.endswith("A note with 5 % & more_")


def test_a_table_is_split_to_fit_a_width(fake):
    table = fake(np.linspace(0.1, 0.9, 14).reshape(2, 7)).table("clark")
    assert table.fitted(200) == [table]
    (turned,) = table.fitted(60)
    assert turned.head == ["Dataset", "set 0", "set 1", "Average rank"]
    assert turned.rows[0] == ("algorithm 0", [Cell("0.100 (1)", True), Cell("0.531 (1)", True), Cell("1.00", True)])
    many = fake(np.linspace(0.1, 0.9, 70).reshape(10, 7)).table("clark")
    parts = many.fitted(60)
    assert [name for part in parts for name in part.head[1:]] == many.head[1:]
    assert len(parts) > 1
    for part in parts:
        assert sum(part.widths()) + 3 * len(part.head) <= 60
        assert [name for name, _ in part.rows] == [name for name, _ in many.rows]
        assert len(part.foot[0][1]) == len(part.head) - 1
    assert len(many.fitted(5)) == 8  # too narrow for anything: one column each


def structure_of(latex: str) -> None:
    """Check what LaTeX rejects: unbalanced braces and environments, wrong numbers of columns."""
    body = re.sub(r"\\[\\&%$#_{}]", "", "\n".join(line for line in latex.splitlines() if not line.startswith("%")))
    assert body.count("{") == body.count("}")
    assert body.count("$") % 2 == 0
    begun = re.findall(r"\\begin\{(\w+)\}", latex)
    assert sorted(begun) == sorted(re.findall(r"\\end\{(\w+)\}", latex)) == ["document", "table", "tabular"]
    columns = len(re.search(r"\\begin\{tabular\}\{([lc]+)\}", latex)[1])
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert rows
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {columns - 1}
    assert latex.isascii()


@pytest.mark.parametrize(
    "make", [lambda r: NASTY, lambda r: r.table("clark"), dataset_table, settings_table, time_table]
)
def test_latex_has_the_structure_that_compiles(make, results):
    structure_of(make(results).to_latex())


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path, results):
    for number, table in enumerate((NASTY, results.table("cosine"))):
        (tmp_path / f"{number}.tex").write_text(table.to_latex(), encoding="utf-8")
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"{number}.tex"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:]


def test_all_tests_as_a_data_frame(results, failing_results):
    import pandas as pd

    frame = results.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 18
    assert {"dataset", "candidate", "fold", "clark", "param_n_neighbors", "fit_seconds"} <= set(frame.columns)
    means = frame.groupby(["dataset", "candidate"], sort=False)["clark"].mean().unstack(sort=False).to_numpy()
    np.testing.assert_allclose(means, results.means("clark"))
    assert (failing_results.to_pandas()["status"] == "failed").sum() == 6


def test_a_similarity_without_bound_has_no_skill(small_study):
    results = run_study(small_study(measures=["kulczynski_s", "motyka"], criterion="motyka"))
    assert np.isnan(results.skills("kulczynski_s")).all()
    half = (0.5 - results.means("motyka")) / (0.5 - results.means("motyka")[:, [2]])  # Motyka is at most a half
    np.testing.assert_allclose(results.skills("motyka"), 1 - half)
