"""A study of 100 datasets and 20 candidates: the size of its page, and how the browser opens it."""

import json

import numpy as np
import pytest

from skldl.experiments import StudyResults
from skldl.experiments.tasks import pack
from skldl.report import write_report

N_DATASETS, N_CANDIDATES, N_LABELS, N_FOLDS = 100, 20, 8, 10


def large_study(healthy, seed=0):
    """Records of a study that was never run, with the values of a random generator."""
    rng = np.random.default_rng(seed)
    lines = [json.loads(line) for line in (healthy / "records.jsonl").read_text().splitlines()]
    test = next(line for line in lines if line["kind"] == "evaluation")
    grid = {"estimator": "skldl:AAKNN", "grid": {"n_neighbors": [1, 3, 10, 30, 100]}, "path": "n_neighbors"}
    candidates = [{"name": f"Candidate {j:02d}", **grid} for j in range(N_CANDIDATES - 1)]
    candidates.append({"name": "Mean", "estimator": "skldl:MeanDistribution"})
    names = [f"Dataset {i:03d}" for i in range(N_DATASETS)]
    study = lines[0]["study"] | {"candidates": candidates, "folds": N_FOLDS}
    study["datasets"] = [{"name": name, "apart": False, "source": ""} for name in names]
    records = [lines[0] | {"study": study}]
    for name in names:
        rows = np.sort(rng.choice(500, 2 * N_FOLDS, replace=False))
        truth = {"rows": rows.tolist(), **pack(rng.dirichlet(np.ones(N_LABELS), len(rows)))}
        labels = [f"class {k}" for k in range(N_LABELS)]
        about = {"name": name, "family": name, "n_labels": N_LABELS, "label_names": labels, "truth": truth}
        records.append(lines[1] | about)
        for place, candidate in enumerate(candidates):
            for fold, part in enumerate(np.split(rows, N_FOLDS)):
                value = (0.5 + 0.02 * place) * rng.uniform(0.9, 1.1)
                record = test | {"dataset": name, "candidate": candidate["name"], "fold": fold, "params": {}}
                record["measures"] = dict.fromkeys(test["measures"], value / 2)
                record["predictions"] = {"rows": part.tolist(), **pack(rng.dirichlet(np.ones(N_LABELS), len(part)))}
                record.pop("selection", None)
                if "grid" in candidate:
                    record["params"] = {"n_neighbors": 3}
                    values = (value * rng.uniform(1, 1.2, 5)).tolist()
                    record["selection"] = {"criterion": "kullback_leibler", "values": values, "errors": []}
                records.append(record)
    return StudyResults(records)


@pytest.mark.slow
def test_the_page_of_a_large_study_is_below_three_megabytes_and_opens(healthy, tmp_path, browser):
    page = write_report(tmp_path, large_study(healthy))
    assert page.stat().st_size < 3e6
    text = page.read_text(encoding="utf-8")
    assert text.count('<table class="instance"') == 2 * N_DATASETS
    assert text.count('id="figure-sensitivity-') == 8
    assert text.count('id="figure-critical-') == text.count('id="figure-ranks-') == 1
    assert text.index('id="figure-skill-summary"') < text.index('id="figures"') < text.index('id="figure-skill"')
    for width in (390, 1400):
        browser.open(page, width)
        assert browser.log("browser") == []
        assert browser.run("return document.documentElement.scrollWidth") <= width
