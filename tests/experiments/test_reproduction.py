"""The paper's numbers, from its data: the acceptance test of the whole chain, and the records in the repository."""

import os
from pathlib import Path

import numpy as np
import pytest

from skldl.experiments import StudyResults, load_study, run_study
from skldl.experiments.output.published import match_published

STUDIES = Path(__file__).parents[2] / "studies"
YEAST = ("alpha", "cdc", "elu", "diau", "heat", "spo", "cold", "dtt", "spo5", "spoem")


def only(name, datasets, candidates):
    study = load_study(name)
    return study.with_options(
        datasets=[dataset for dataset in study.datasets if dataset.name in datasets],
        candidates=[candidate for candidate in study.candidates if candidate.name in candidates],
    )


@pytest.fixture(scope="module")
def data_folder(paper_data):
    for name in YEAST:
        paper_data(f"Yeast_{name}")
    return os.environ["SKLDL_DATA"]


@pytest.mark.slow
def test_every_yeast_cell_of_two_columns_is_the_published_one(data_folder):
    names = [f"Yeast_{name}" for name in YEAST]
    study = only("tkde2016-fixed", names, ["AA-kNN (k=4)", "SA-BFGS"])
    matches = match_published(run_study(study, data_home=data_folder, keep_predictions="none"))
    assert len(matches) == 10 * 6 * 2
    assert [match for match in matches if not match.agrees] == []
    assert sum(match.deviation_agrees for match in matches) >= 118  # with random folds about half of them


@pytest.mark.slow
def test_one_neighbour_gives_the_published_row_of_natural_scene(paper_data):
    paper_data("Natural_Scene")
    study = only("tkde2016-fixed", ["Natural_Scene"], ["AA-kNN (k=1)"])
    matches = match_published(run_study(study, data_home=os.environ["SKLDL_DATA"], keep_predictions="none"))
    assert [m.agrees for m in matches] == [True] * 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tkde2016", "tkde2016-fixed"])
def test_the_records_in_the_repository_come_out_again(name, data_folder):
    if not (STUDIES / name / "records.jsonl").exists():
        pytest.skip("the records are in the repository, not in the package")
    recorded = StudyResults.load(STUDIES / name)
    study = only(name, ["Yeast_spo", "Yeast_spoem"], ["AA-kNN", "AA-kNN (k=4)", "SA-BFGS", "PT-Bayes", "Mean"])
    again = run_study(study, data_home=data_folder, keep_predictions="none")
    for dataset in again.datasets:
        assert again.info[dataset]["fingerprint"] == recorded.info[dataset]["fingerprint"]
        for candidate in again.candidates:
            assert again.chosen(dataset, candidate) == recorded.chosen(dataset, candidate)
            for measure in again.measures:
                one, other = (r.values(measure, dataset, candidate) for r in (again, recorded))
                np.testing.assert_allclose(one, other, rtol=1e-4)


@pytest.mark.parametrize("name", ["tkde2016", "tkde2016-fixed"])
def test_the_records_in_the_repository_belong_to_the_built_in_studies(name):
    folder = STUDIES / name
    if not (folder / "records.jsonl").exists():
        pytest.skip("the records are in the repository, not in the package")
    recorded = StudyResults.load(folder)
    study = load_study(name)
    found = [dataset for dataset in study.datasets if dataset.name in recorded.datasets]
    assert study.with_options(datasets=found).fingerprint() == recorded.header["fingerprint"]
    assert recorded.missing == ["Human_Gene"]
    assert not recorded.failures
    assert all(recorded.predictions(dataset) is None for dataset in recorded.datasets)  # the data are not ours to give
    for measure in recorded.measures:
        made = recorded.table(measure)
        assert (folder / "tables" / f"{measure}.md").read_text(encoding="utf-8") == made.to_markdown()
