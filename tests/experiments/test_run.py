"""Running studies: equal numbers whatever the number of jobs, choices, records, predictions, data."""

import json
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldl import MeanDistribution
from skldl.data import Dataset
from skldl.exceptions import DatasetNotFoundError, LengthMismatchError, StudyError, UnknownDatasetError
from skldl.experiments import Candidate, Study, plan_study, run_study
from skldl.experiments.tasks import kept_rows
from skldl.metrics import clark, kullback_leibler
from skldl.selection import derive_seed, rounds_of

TIMES = ("seconds", "selection_seconds", "fit_seconds", "predict_seconds", "peak_memory_mib")


def numbers(results):
    """All that the records say, apart from times and memory."""
    return [{k: v for k, v in record.items() if k not in TIMES} for record in results.selections + results.evaluations]


@pytest.mark.parametrize(
    "protocol", ["nested", *(pytest.param(protocol, marks=pytest.mark.slow) for protocol in ("geng2016", "holdout"))]
)
def test_the_numbers_do_not_depend_on_the_number_of_jobs(protocol, small_study):
    study = small_study(protocol=protocol)
    assert numbers(run_study(study)) == numbers(run_study(study, n_jobs=2))


def test_the_seed_changes_the_numbers_and_nothing_else_does(small_study, results):
    assert numbers(run_study(small_study())) == numbers(results)
    assert numbers(run_study(small_study(random_state=1))) != numbers(results)


def test_geng2016_chooses_the_setting_that_is_best_over_all_rotations(small_study, problem):
    study = small_study(protocol="geng2016", folds=4)
    data = problem("one")
    found = run_study(study)
    scores = np.zeros(3)
    for round_ in rounds_of(data, study.layout, 0):
        ((fit, validation),) = round_.tuning
        for i, k in enumerate((1, 3, 8)):
            model = KNeighborsRegressor(k).fit(data.X[fit], data.D[fit])
            scores[i] += kullback_leibler(data.D[validation], model.predict(data.X[validation])) / 4
    best = (1, 3, 8)[int(np.argmin(scores))]
    assert found.chosen("one", "kNN") == [{"n_neighbors": best}] * 4
    recorded = np.mean(
        [r["values"] for r in found.selections if (r["dataset"], r["candidate"]) == ("one", "kNN")], axis=0
    )
    np.testing.assert_allclose(recorded, scores)
    for round_, value in zip(rounds_of(data, study.layout, 0), found.values("clark", "one", "kNN"), strict=True):
        model = KNeighborsRegressor(best).fit(data.X[round_.train], data.D[round_.train])
        assert value == pytest.approx(clark(data.D[round_.test], model.predict(data.X[round_.test])))


def test_nested_chooses_inside_each_training_part(small_study, problem, results):
    study, data = small_study(), problem("one")
    for round_, chosen in zip(rounds_of(data, study.layout, 0), results.chosen("one", "kNN"), strict=True):
        scores = []
        for k in (1, 3, 8):
            trials = []
            for fit, validation in round_.tuning:
                model = KNeighborsRegressor(k).fit(data.X[fit], data.D[fit])
                trials.append(kullback_leibler(data.D[validation], model.predict(data.X[validation])))
            scores.append(np.mean(trials))
        assert chosen == {"n_neighbors": (1, 3, 8)[int(np.argmin(scores))]}


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        ("skldl:AAKNN", {"weights": ("uniform", "distance"), "n_neighbors": (1, 4, 9)}),
        ("skldl:SABFGS", {"fit_intercept": (False, True), "alpha": (1.0, 0.1, 0.0)}),
        ("skldl:SAIIS", {"max_iter": (2, 5)}),
    ],
)
def test_work_shared_along_a_path_changes_no_choice(problem, estimator, grid):
    path = list(grid)[-1]
    data = problem("d", sample_weight=np.linspace(1, 2, 36) if estimator != "skldl:AAKNN" else None)
    with_path = Candidate("a", estimator, grid=grid, path=path)
    without = Candidate("a", estimator, grid={name: grid[name] for name in grid if name != path} | {path: grid[path]})
    one, other = (run_study(Study([data], [c], folds=3, protocol="geng2016")) for c in (with_path, without))
    for shared, apart in zip(one.selections, other.selections, strict=True):
        np.testing.assert_allclose(shared["values"], apart["values"], rtol=1e-4)
        assert shared["errors"] == apart["errors"] == []
    assert one.chosen("d", "a") == other.chosen("d", "a")


def test_a_path_that_breaks_in_the_middle_keeps_what_it_had(problem):
    candidate = Candidate("k", "skldl:AAKNN", grid={"n_neighbors": (2, 4, -1)}, path="n_neighbors")
    found = run_study(Study([problem("d")], [candidate], folds=3, protocol="geng2016"))
    assert not found.failures
    assert found.chosen("d", "k")[0]["n_neighbors"] in (2, 4)
    assert str(found.selections[0]["values"][2]) == "nan"
    assert "n_neighbors=-1" in found.selections[0]["errors"][0]


def test_a_similarity_can_be_the_criterion(small_study, candidates):
    study = small_study(protocol="geng2016", criterion="cosine", candidates=[candidates["knn"]])
    found = run_study(study)
    values = np.mean([r["values"] for r in found.selections if r["dataset"] == "one"], axis=0)
    assert found.chosen("one", "kNN")[0] == {"n_neighbors": (1, 3, 8)[int(np.argmax(values))]}


def test_a_fixed_test_set_is_tested_once(problem, candidates):
    test = problem("t", seed=5, n=9)
    data = problem("d", X_test=test.X, D_test=test.D, apart=True)
    found = run_study(Study([data], [candidates["knn"]], protocol="geng2016", measures=["clark"], repeats=2))
    assert found.n_expected("d") == 2
    (k,) = {c["n_neighbors"] for c in found.chosen("d", "kNN")[:1]}
    model = KNeighborsRegressor(k).fit(data.X, data.D)
    assert found.values("clark", "d", "kNN")[0] == pytest.approx(clark(test.D, model.predict(test.X)))
    assert found.averaged == ["d"]  # nothing else is there


def test_records_say_everything(results):
    record = next(r for r in results.evaluations if r["candidate"] == "Tree")
    assert record["seed"] == derive_seed(0, "one", "Tree", 0, 0)
    assert set(record["measures"]) == {"clark", "cosine", "kullback_leibler"}
    assert record["params"].keys() == {"max_depth"}
    assert record["versions"].keys() == {"skldl", "python", "numpy", "scipy", "scikit-learn"}
    assert record["fit_seconds"] >= 0
    assert record["peak_memory_mib"] > 1
    assert (record["n_train"], record["n_test"]) == (24, 12)
    assert len(record["selection"]["values"]) == 2
    assert results.info["one"]["fingerprint"] == record["fingerprint"]
    json.dumps(record)


class Chatty(MeanDistribution):
    """Warns, counts iterations, and takes weights."""

    def fit(self, X, y, sample_weight=None):
        warnings.warn("change the parameter", UserWarning, stacklevel=1)
        self.n_iter_ = np.array([3, 4])
        return super().fit(X, y, sample_weight)


def test_warnings_and_iterations_are_recorded(problem):
    pipeline = make_pipeline(StandardScaler(), Chatty())
    found = run_study(Study([problem("d")], [Candidate("c", Chatty()), Candidate("p", pipeline)], folds=2))
    for record in found.evaluations[:4]:
        assert record["warnings"] == ["UserWarning: change the parameter"]
        assert record["n_iter"] == 4


def test_weights_reach_the_fit_and_the_measures(problem):
    weight = np.where(np.arange(36) % 2, 1.0, 3.0)
    data = problem("d", sample_weight=weight)
    pipeline = make_pipeline(StandardScaler(), MeanDistribution())
    study = Study(
        [data], [Candidate("p", pipeline), Candidate("Mean", "skldl:MeanDistribution")], folds=2, order="file"
    )
    found = run_study(study)
    round_ = rounds_of(data, study.layout, 0)[0]
    mean = np.average(data.D[round_.train], axis=0, weights=weight[round_.train])
    expected = clark(data.D[round_.test], np.tile(mean, (18, 1)), weight[round_.test])
    assert found.values("clark", "d", "Mean")[0] == pytest.approx(expected)
    assert found.values("clark", "d", "p")[0] == pytest.approx(expected)


def test_weights_take_part_in_selection(problem):
    weight = np.where(np.arange(36) % 2, 1.0, 3.0)
    candidate = Candidate("t", "sklearn.tree:DecisionTreeRegressor", grid={"max_depth": (1, 3)})
    found = run_study(Study([problem("d", sample_weight=weight)], [candidate], folds=2, inner_folds=2))
    assert not found.failures


def test_a_problem_is_checked(problem):
    data = problem("d")
    with pytest.raises(LengthMismatchError, match="d: 3 groups for 36 rows"):
        problem("d", groups=[1, 2, 3])
    with pytest.raises(ValueError, match="sums to"):
        Dataset("d", data.X, data.D * 2)
    with pytest.raises(ValueError, match="36"):
        Dataset("d", data.X[:5], data.D)
    listed = Dataset("d", data.X.tolist(), data.D.tolist(), groups=["a"] * 36)
    assert listed.describe()["n_groups"] == 1
    assert listed.family == data.family
    assert listed.fingerprint != data.fingerprint
    assert Dataset("d", sparse.csc_matrix(data.X), data.D).X.format == "csr"


def test_data_frames_take_part(problem):
    import pandas as pd

    data = problem("d")
    frame = Dataset("d", pd.DataFrame(data.X, columns=list("abc")), pd.DataFrame(data.D, columns=["x", "y", "z"]))
    assert frame.label_names == ("x", "y", "z")
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), KNeighborsRegressor())
    study = Study([frame], [Candidate("p", pipeline, grid={"kneighborsregressor__n_neighbors": (2, 5)})], folds=3)
    assert not run_study(study).failures
    other = pd.DataFrame(data.X, columns=["a", "b", "d"])
    assert Dataset("d", other, data.D).family != frame.family
    text = pd.DataFrame({"a": ["x", "y"] * 18, "b": np.arange(36)})
    assert Dataset("d", text, data.D).family != Dataset("d", text.assign(a="x"), data.D).family


def test_predictions_are_kept_as_asked(small_study, problem):
    study = small_study(datasets=[problem("one", n=50)])
    found = run_study(study, keep_predictions="sample").predictions("ONE")
    rows = kept_rows(study.datasets[0].data, plan_study(study).rules("sample"))
    np.testing.assert_array_equal(found["rows"], rows)
    assert len(rows) == 20
    np.testing.assert_allclose(found["truth"], study.datasets[0].data.D[rows], rtol=1e-6)
    assert set(found["predicted"]) == {"kNN", "Tree", "Mean"}
    for table in found["predicted"].values():
        np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-5)
    whole = run_study(study, keep_predictions="all").predictions("one")
    assert whole["truth"].shape == (50, 3)
    np.testing.assert_allclose(whole["predicted"]["kNN"][rows], found["predicted"]["kNN"])
    assert run_study(study, keep_predictions="none").predictions("one") is None
    with pytest.raises(StudyError, match="keep_predictions='some'"):
        run_study(study, keep_predictions="some")


def test_predictions_for_a_fixed_test_set_are_kept_too(problem, candidates):
    test = problem("t", seed=5, n=9)
    study = Study([problem("d", X_test=test.X, D_test=test.D)], [candidates["knn"]], measures=["clark"])
    found = run_study(study, keep_predictions="all").predictions("d")
    np.testing.assert_allclose(found["truth"], test.D, rtol=1e-6)
    assert not np.isnan(found["predicted"]["kNN"]).any()


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        (Candidate("x", "skldl:Nothing"), "has no 'Nothing'"),
        (Candidate("x", "skldl:AAKNN", grid={"neighbours": (1, 2)}), "AAKNN has no hyper-parameter 'neighbours'"),
    ],
)
def test_a_candidate_that_cannot_be_built_is_reported_before_the_first_task(candidate, message, small_study, tmp_path):
    with pytest.raises(StudyError, match=message):
        run_study(small_study(candidates=[candidate]), out=tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_the_plan_counts_tasks_and_fits(small_study):
    nested = plan_study(small_study())
    assert nested.n_tasks == 2 * 3 * 3
    fits = {task.candidate: nested.n_fits(task) for task in nested.waves[1]}
    assert fits == {"kNN": 1 + 3 * 2, "Tree": 1 + 2 * 2, "Mean": 1}
    paper = plan_study(small_study(protocol="geng2016"))
    assert [len(wave) for wave in paper.waves] == [2 * 2 * 3, 2 * 3 * 3]
    assert {task.candidate: paper.n_fits(task) for task in paper.waves[0]} == {"kNN": 3, "Tree": 2}
    assert {paper.n_fits(task) for task in paper.waves[1]} == {1}


def test_missing_datasets_are_named_and_left_out(tmp_path, monkeypatch):
    monkeypatch.delenv("SKLDL_DATA", raising=False)
    mean = Candidate("Mean", "skldl:MeanDistribution")
    plan = plan_study(Study(["Artificial", "Human_Gene"], [mean]), data_home=tmp_path)
    assert plan.missing == ("Human_Gene",)
    assert list(plan.datasets) == ["Artificial"]
    assert plan.datasets["Artificial"].D_test.shape == (40401, 3)
    found = run_study(plan)
    assert found.missing == ["Human_Gene"]
    with pytest.raises(DatasetNotFoundError, match="None of the datasets of the study was found: Human_Gene"):
        plan_study(Study(["Human_Gene"], [mean]), data_home=tmp_path)
    with pytest.raises(UnknownDatasetError):
        plan_study(Study(["Artificial", "yeast_alfa"], [mean]), data_home=tmp_path)


def test_a_data_file_takes_part_and_is_found_again(tmp_path):
    path = tmp_path / "moods.csv"
    lines = ["age,label_happy,label_sad", *(f"{i},{0.3 + i / 100},{0.7 - i / 100}" for i in range(20))]
    path.write_text("\n".join(lines))
    found = run_study(Study([str(path)], [Candidate("Mean", "skldl:MeanDistribution")], folds=4), out=tmp_path / "out")
    assert found.datasets == ["moods"]
    assert str(path) in (tmp_path / "out" / "study.toml").read_text()


def test_one_x_is_shared_by_a_family(paper_data):
    paper_data("Yeast_spo")
    paper_data("Yeast_spoem")
    plan = plan_study(Study(["Yeast_spo", "Yeast_spoem"], [Candidate("Mean", "skldl:MeanDistribution")]))
    one, other = plan.datasets.values()
    assert one.X is other.X
    assert run_study(plan).families == [["Yeast_spo", "Yeast_spoem"]]


def test_a_scheduler_that_is_not_there(small_study):
    with pytest.raises(StudyError, match="No Dask scheduler answers at nonsense"):
        run_study(small_study(), scheduler="nonsense://x")
