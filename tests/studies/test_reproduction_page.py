"""The page on the paper's experiment, its figures, and the script that runs its studies: all from records."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from comparison.claims import Verdict
from comparison.published import REASONS
from skldl.data import Dataset
from skldl.exceptions import DatasetNotFoundError
from skldl.experiments import Candidate, Study, StudyResults, run_study
from skldl.experiments.tables import NOTHING
from skldl.metrics import PAPER_MEASURES
from skldl.metrics.selection import select_measures

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").exists(), reason="the pages are in the repository, not in the package"
)


@pytest.fixture(scope="module")
def page(load_script):
    return load_script("docs/make_reproduction.py")


def test_the_page_says_what_the_records_say(page):
    text = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    fixed = page.load("tkde2016-fixed")
    mean = page.cells_of(fixed, "Mean", "Yeast", column="SA-BFGS")
    agree, loosely = sum(m.agrees for m in mean), sum(m.agrees_loosely for m in mean)
    assert f"the mean, which learns nothing from the features, {agree} of 60 (loosely {loosely})" in text
    assert "studies/tkde2016/study.toml" in text


def test_other_settings_do_not_give_the_columns_of_neighbours_and_of_scaling(page):
    """Twice as many means are equal to the last digit as with any other candidate; in the column of SA-BFGS not."""
    paper, fixed, start = (page.load(name) for name in ("tkde2016", "tkde2016-fixed", "tkde2016-start"))
    table = [line for line in page.controls(paper, fixed, start, None).splitlines() if line.startswith("|")]
    head, _, *rows = [line.strip("| ").split(" | ") for line in table]
    cells = {name: [[int(number) for number in cell.split(" / ")] for cell in row] for name, *row in rows}
    assert head == ["Candidate", "AA-kNN", "SA-IIS", "SA-BFGS"]
    assert cells.pop("Number of cells") == [[60, 60, 43], [60, 60, 42], [60, 60, 43]]
    assert len(cells) == len(paper.candidates) + len(fixed.candidates) + len(start.candidates) - 2  # the mean once
    equal = {name: [numbers[1] for numbers in row] for name, row in cells.items()}
    for column, setting in ((0, "AA-kNN (k=4)"), (1, "SA-IIS (eye, 150)")):
        others = max(row[column] for name, row in equal.items() if name != setting)
        assert equal[setting][column] > 2 * others
        assert cells[setting][column][0] == 60
    assert sum(row[2] > 0.8 * equal["SA-BFGS (alpha = 0.0)"][2] for row in equal.values()) > 5


def test_in_random_folds_the_deviations_of_the_paper_do_not_come_out(page):
    """Each draw by itself: a deviation over thirty chunks would not be one over ten."""
    findings = sys.modules["findings"]
    fixed, random = page.load("tkde2016-fixed"), page.load("tkde2016-random")
    assert (random.study["order"], random.study["repeats"]) == ("shuffled", 3)
    for candidate in ("AA-kNN (k=4)", "SA-BFGS"):
        repeats = findings.cells_of_repeats(random, candidate, "Yeast")
        assert [len(cells) for cells in repeats] == [60, 60, 60]
        values = random.values("clark", "Yeast_spo", candidate)
        for number, cells in enumerate(repeats):
            match = next(m for m in cells if (m.dataset, m.published.measure) == ("Yeast_spo", "clark"))
            own = values[10 * number : 10 * number + 10]
            assert (match.ours, match.deviation) == pytest.approx((own.mean(), own.std(ddof=1)), rel=1e-12)
        in_order, telling = findings.conclusive_deviations(page.cells_of(fixed, candidate, "Yeast"))
        assert in_order >= telling - 1
        assert all(2 * findings.conclusive_deviations(cells)[0] < telling for cells in repeats)
    text = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    assert "`skldl bench tkde2016-fixed --order shuffled --repeats 3` runs" in text


def test_what_is_said_of_neighbours_and_columns_follows_from_the_records(page):
    """ "In all cells but one": the reason for the differences of AA-kNN counts them."""
    fixed = page.load("tkde2016-fixed")
    settings = {"Yeast": 4, "Natural": 1, "Movie": 1, "SJAFFE": 7}
    cells = [m for prefix, k in settings.items() for m in page.cells_of(fixed, f"AA-kNN (k={k})", prefix)]
    assert (sum(m.agrees for m in cells), len(cells)) == (77, 78)
    assert any("in all cells but one" in reason.text for reason in REASONS)
    tuned = page.as_column_of(page.load("tkde2016"), "SA-BFGS")
    assert sum(not m.agrees for cells in tuned.values() for m in cells) == 1


def test_a_claim_about_time_is_open_where_the_two_runs_differ(page, monkeypatch):
    paper, nested = page.load("tkde2016"), page.load("tkde2016-nested")
    printed = "Printed in the paper: 3 ms: holds."
    verdicts = {"holds": "a", "does not hold": "b"}
    found = [[Verdict("Fast.", verdict, f"Here {text}. {printed}")] for verdict, text in verdicts.items()]
    monkeypatch.setattr(page, "check_time_claims", lambda results: found[results is nested])
    last = page.claims(paper, nested).splitlines()[-1]
    open_cell = "**undecided: the two runs differ**"
    assert last == f"| Fast. | {open_cell} | {open_cell} | Here a. {printed} Under `nested`: Here b. |"
    found[1] = found[0]
    assert page.claims(paper, nested).splitlines()[-1] == f"| Fast. | **holds** | **holds** | Here a. {printed} |"


@pytest.mark.parametrize("name", ["tkde2016", "tkde2016-nested", "tkde2016-fixed", "tkde2016-random", "tkde2016-start"])
def test_the_page_names_the_command_that_makes_the_records(page, load_script, name):
    """With the options of `make study`."""
    text = sys.modules["findings"].study_file(page.load(name), name)
    study, *options = re.search(r"It is the one that `skldl bench ([^`]*)` runs\.", text)[1].split()
    run = next(run for run in load_script("tools/run_studies.py").RUNS if run.name == name)
    assert (study, options) == (run.study, run.options())


def test_the_records_of_two_machines_agree_as_the_readme_of_the_studies_says():
    given, nested = (
        {
            (record["dataset"], record["fold"]): record
            for record in StudyResults.load(ROOT / "studies" / name).evaluations
            if record["candidate"] == "PT-SVM"
        }
        for name in ("tkde2016", "tkde2016-nested")
    )
    pairs = [(given[key], nested[key]) for key in given]
    pairs = [(a, b) for a, b in pairs if a["params"] == b["params"] and a["versions"] != b["versions"]]
    text = " ".join((ROOT / "studies/README.md").read_text(encoding="utf-8").split())
    assert f"chose the same setting on different machines, {len(pairs)} tests, no measure differs by more" in text
    for a, b in pairs:
        np.testing.assert_allclose(list(a["measures"].values()), list(b["measures"].values()), rtol=5e-10)


def tiny_study(**options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    scores = np.exp(X @ rng.normal(size=(3, 4)))
    datasets = [
        Dataset("Wide", X, scores / scores.sum(axis=1, keepdims=True)),
        Dataset("Narrow", X, scores[:, :2] / scores[:, :2].sum(axis=1, keepdims=True)),
    ]
    knn = Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (1, 3, 8)}, path="n_neighbors")
    reported = {"protocol": "geng2016", "folds": 4, "order": "file", "name": "tkde2016"}
    return Study(datasets, [knn], **reported | options)


def test_both_protocols_stand_side_by_side_on_the_same_chunks(page):
    protocols = sys.modules["protocols"]  # one of the files that the page is made of
    first = run_study(tiny_study(), keep_predictions="none")
    nested = run_study(tiny_study(protocol="nested", inner_folds=3), keep_predictions="none")
    np.testing.assert_array_equal(first.means("clark")[:, 1], nested.means("clark")[:, 1])  # the mean chooses nothing
    nested.evaluations[0]["measures"]["clark"] *= 1 + 1e-12  # another machine
    table = protocols.protocol_table(first, nested, "clark", first.datasets, first.candidates)
    one, other = (results.means("clark")[0, 0] for results in (first, nested))
    assert table.rows[0][1][0].text == f"{one:.4f} / {other:.4f}"
    rises = nested.means("clark")[:, 0] / first.means("clark")[:, 0] - 1
    assert table.foot[0][1][0].text == f"{sum(rises > 1e-9)} of 2"
    assert table.foot[0][1][1].text == "0 of 2"
    assert table.foot[1][1][0].text == f"{rises.mean():+.2%} (most {rises.max():+.1%})"
    assert table.foot[1][1][1].text == "+0.00% (most +0.0%)"
    for record in nested.evaluations:
        if record["candidate"] == "AA-kNN":
            record["status"] = "failed"
    failed = StudyResults([nested.header, *nested.info.values(), *nested.evaluations])
    foot = protocols.protocol_table(first, failed, "clark", first.datasets, first.candidates).foot
    assert [row[1][0].text for row in foot] == [NOTHING, NOTHING]
    text = page.protocols(first, nested)
    assert "geng2016 / nested" in text
    assert "**It is older than the one" in text
    assert "has no records yet" in page.protocols(first, None)


def test_the_page_names_ends_of_grids_under_nested_and_records_of_another_machine(page, monkeypatch):
    first = run_study(tiny_study(), keep_predictions="none")
    nested = run_study(tiny_study(protocol="nested", inner_folds=3), keep_predictions="none")
    monkeypatch.setattr(nested, "chosen", lambda dataset, candidate: [{"n_neighbors": 8}] * (dataset == "Wide"))
    assert "- AA-kNN: n_neighbors = 8 is the largest value tried on Wide, and" in page.protocols(first, nested)
    monkeypatch.setattr(nested, "chosen", lambda dataset, candidate: [{"n_neighbors": 3}])
    text = page.protocols(first, nested)
    assert "- none was chosen" in text
    assert "another machine" not in text
    nested.evaluations[0]["versions"] = {**nested.evaluations[0]["versions"], "numpy": "0.0"}
    assert "1 of the 16 tasks (AA-kNN on Wide) ran on another machine" in page.protocols(first, nested)
    nested.evaluations[1]["selection"]["versions"] = {"numpy": "0.0"}
    nested.evaluations[2]["selection_seconds"] = 0.0  # in steps whose versions were not kept
    assert "3 of the 16 tasks (AA-kNN on Wide) ran on another machine" in page.protocols(first, nested)


def test_grids_of_single_datasets_are_on_the_page(page):
    grids = {"Narrow": {"n_neighbors": (2, 5)}, "Wide": {"n_neighbors": (2, 5)}}
    knn = Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (1, 3)}, grids=grids)
    results = run_study(replace(tiny_study(), candidates=[knn]), keep_predictions="none")
    assert page.own_grids(results)[-1] == "- Narrow, Wide: AA-kNN with n_neighbors: 2, 5"
    assert page.own_grids(run_study(tiny_study(), keep_predictions="none")) == []
    assert "- Narrow, Wide: AA-kNN with n_neighbors: 2, 5" in page.how(results)


def test_a_study_that_is_not_complete_is_not_shown(page, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "STUDIES", tmp_path)
    assert page.load("some") is None
    run_study(tiny_study(), out=tmp_path / "some", keep_predictions="none")
    assert page.load("some").datasets == ["Wide", "Narrow"]
    records = tmp_path / "some" / "records.jsonl"
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:-1]))
    assert page.load("some") is None


def test_predictions_are_kept_without_the_truth():
    study = tiny_study()
    results = run_study(study, keep_predictions="predictions")
    whole = run_study(study, keep_predictions="sample")
    assert not any("truth" in info for info in results.info.values())
    assert results.predictions("Wide") is None
    D = study.datasets[0].data.D
    found, expected = results.predictions("Wide", D_true=D), whole.predictions("Wide")
    assert results.kept_rows("Wide") == found["rows"].tolist() == expected["rows"].tolist()
    np.testing.assert_array_equal(found["truth"], D[found["rows"]])
    for candidate, table in found["predicted"].items():
        np.testing.assert_array_equal(table, expected["predicted"][candidate])
    assert run_study(study, keep_predictions="none").predictions("Wide", D_true=D) is None


def test_figures_are_drawn_where_predictions_and_truth_are_at_hand(page, tmp_path, monkeypatch, capsys, load_script):
    figures = load_script("docs/make_study_figures.py")
    study = tiny_study()
    run_study(study, out=tmp_path / "study", keep_predictions="predictions")
    monkeypatch.setattr(figures, "STUDY", tmp_path / "study")
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "figures")
    known = {}

    def load_dataset(name):
        if name not in known:
            raise DatasetNotFoundError(name)
        return known[name]

    monkeypatch.setattr(figures, "load_dataset", load_dataset)
    figures.main()
    assert "No figures drawn: Wide, Narrow not found" in capsys.readouterr().out
    known["Wide"] = study.datasets[0].data
    figures.main()
    assert "No figures drawn: Narrow not found" in capsys.readouterr().out
    assert not (tmp_path / "figures").exists()
    known |= {spec.name: spec.data for spec in study.datasets}
    figures.main()
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {"measures.json", *(f"{name}.png" for name in page.PICTURES)}
    results = StudyResults.load(tmp_path / "study")
    monkeypatch.setattr(page, "HERE", tmp_path)
    text = page.figures(results)
    assert text.count("![") == 2
    assert "whose predictions are in the records: Wide (4 labels), Narrow (2 labels)." in text
    found = results.predictions("Wide", D_true=known["Wide"].D)
    predicted = np.concatenate(list(found["predicted"].values()))
    selection = select_measures(np.tile(found["truth"], (2, 1)), predicted)
    n_clusters = len({selection.clusters[measure] for measure in PAPER_MEASURES})
    assert "It is that of Wide: 20 rows predicted by 2 candidates. The distance is the sine" in text
    assert f"Here the six are in {n_clusters} clusters" in text
    assert "contain no predictions" in page.figures(run_study(study, keep_predictions="none"))
    known["Wide"] = Dataset("Wide", known["Wide"].X + 1, known["Wide"].D)  # other data of the same name
    assert figures.true_distributions(results, "Wide") is None


def test_the_figures_of_the_page_are_of_all_datasets_of_the_study():
    """They were once drawn on a machine without the data, of the artificial dataset alone."""
    found = json.loads((ROOT / "docs/figures/measures.json").read_text(encoding="utf-8"))
    results = StudyResults.load(ROOT / "studies/tkde2016")
    assert found["n_datasets"] == sum(bool(results.kept_rows(name)) for name in results.datasets)
    assert list(found["examples"].values()) == [18, 7, 4, 2]
