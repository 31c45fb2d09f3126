"""Names, candidates and studies: valid and invalid ones, and the messages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldl.exceptions import StudyError, UnknownNameError
from skldl.experiments import Candidate, DatasetSpec, Study, builtin_studies, dump_study, load_study
from skldl.experiments.study_file import parse_study
from skldl.names import find_candidate
from skldl.utils.spelling import find, plain, split_list

MEAN = Candidate("Mean", "skldl:MeanDistribution")


def test_names_match_whatever_the_spelling():
    assert plain("AA-kNN") == plain("aa_knn") == plain("AAKNN")
    assert plain("s-BU_3DFE") == plain("SBU 3DFE")
    assert split_list(" a, b ,,c") == ["a", "b", "c"]
    with pytest.raises(UnknownNameError, match=r"No algorithm is called 'x'. Known here: AA-kNN"):
        find("x", {"AA-kNN": 1}, "algorithm")


def test_settings_go_through_the_grid_with_the_path_fastest():
    candidate = Candidate("c", "m:C", grid={"k": (1, 2), "w": ("a", "b")}, path="k")
    assert candidate.settings == ({"w": "a", "k": 1}, {"w": "a", "k": 2}, {"w": "b", "k": 1}, {"w": "b", "k": 2})
    assert candidate.needs_selection
    assert Candidate("c", "m:C").settings == ({},)
    assert not Candidate("c", "m:C", grid={"k": (1,)}).needs_selection


def test_make_sets_parameters_and_seeds():
    candidate = Candidate("t", "sklearn.tree:DecisionTreeRegressor", {"max_depth": 3}, {"min_samples_leaf": (1, 2)})
    model = candidate.make({"min_samples_leaf": 2}, random_state=7)
    assert (model.max_depth, model.min_samples_leaf, model.random_state) == (3, 2, 7)
    fixed = Candidate("t", "sklearn.tree:DecisionTreeRegressor", {"random_state": 1}).make(random_state=7)
    assert fixed.random_state == 1
    nested = Candidate(
        "b", "sklearn.ensemble:BaggingRegressor", {"estimator": {"estimator": "sklearn.svm:SVR", "C": 9}}
    )
    assert nested.make(random_state=5).estimator.C == 9
    assert nested.make(random_state=5).random_state == 5


def test_a_pipeline_takes_part():
    pipeline = make_pipeline(StandardScaler(), KNeighborsRegressor())
    candidate = Candidate("p", pipeline, {"kneighborsregressor__weights": "distance"})
    made = candidate.make({"kneighborsregressor__n_neighbors": 2})
    assert made is not pipeline
    assert made.get_params()["kneighborsregressor__n_neighbors"] == 2
    assert pipeline.get_params()["kneighborsregressor__n_neighbors"] == 5
    assert candidate.class_name == "KNeighborsRegressor"
    assert "StandardScaler" in candidate.to_dict()["described"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Candidate("", "m:C"), "needs a name"),
        (lambda: Candidate("c", "m:C", grid={"k": ()}), "the grid of k has no value"),
        (lambda: Candidate("c", "m:C", grid={"k": (1,)}, path="w"), "path = 'w' is not"),
        (lambda: Candidate("c", "no colon").make(), "must look like 'package.module:Class'"),
        (lambda: Candidate("c", "no_such_package_at_all:C").make(), "no module 'no_such_package_at_all'"),
        (lambda: Candidate("c", "skldl.baseline:Nothing").make(), "has no 'Nothing'"),
        (lambda: Candidate("c", "skldl:AAKNN", {"k": 1}).make(), "cannot be built: .* argument 'k'"),
        (lambda: MEAN.make({"k": 1}), "MeanDistribution has no hyper-parameter 'k'"),
    ],
)
def test_bad_candidates_are_rejected(build, message):
    with pytest.raises(StudyError, match=message):
        build()


def test_defaults_of_a_study():
    study = Study(["a"], [Candidate("c", "m:C")], protocol="geng2016")
    assert study.datasets == (DatasetSpec("a"),)
    assert [c.name for c in study.candidates] == ["c", "Mean"]
    assert (study.order, study.control, study.baseline) == ("file", "Mean", "Mean")
    assert study.with_options(protocol="nested").order == "shuffled"
    assert study.with_options(repeats=2).order == "shuffled"
    assert study.with_options(order="shuffled", folds=None).order == "shuffled"
    renamed = Study(["a"], [Candidate("average", "skldl:MeanDistribution")])
    assert (len(renamed.candidates), renamed.control) == (1, "average")
    assert Study(["a"], [MEAN], measures=["KL", "Clark"]).measures == ("kullback_leibler", "clark")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "loo"}, "protocol='loo' is not one of"),
        ({"datasets": []}, "names no dataset"),
        ({"datasets": ["a", "A"]}, "Two datasets are called"),
        ({"candidates": [MEAN, Candidate("m-e-a-n", "m:C")]}, "Two candidates"),
        ({"measures": []}, "names no measure"),
        ({"folds": 1}, "folds=1 must be an integer, at least 2"),
        ({"folds": 2.5}, "folds=2.5"),
        ({"repeats": True}, "repeats=True"),
        ({"protocol": "geng2016", "folds": 2}, "geng2016 needs at least 3 folds"),
        ({"order": "sorted"}, "order='sorted'"),
        ({"timeout": True}, "timeout=True must be a number of seconds above 0"),
        ({"order": "s" * 5000}, r"order='s+\.\.\.s+' is not one of"),
        ({"datasets": ["d" * 301]}, "The name of a dataset, 'd{98}…, has 301 characters; at most 300"),
        ({"order": "file", "repeats": 2}, "the same in every repeat"),
    ],
)
def test_bad_studies_are_rejected(options, message):
    with pytest.raises(StudyError, match=message):
        Study(**{"datasets": ["a"], "candidates": [MEAN]} | options)


def test_unknown_names_in_a_study_are_rejected():
    with pytest.raises(UnknownNameError, match="No measure is called 'gini'"):
        Study(["a"], [MEAN], measures=["gini"])
    with pytest.raises(UnknownNameError, match="No candidate is called 'x'"):
        Study(["a"], [MEAN], control="x")


def test_fingerprint_changes_with_what_changes_numbers_only():
    study = Study(["a"], [MEAN])
    assert study.fingerprint() == Study(["a"], [MEAN], title="other words").fingerprint()
    assert study.fingerprint() == Study([DatasetSpec("a", source="moved.csv")], [MEAN]).fingerprint()
    others = [study.with_options(**change) for change in ({"random_state": 1}, {"folds": 5}, {"criterion": "clark"})]
    others.append(Study(["a"], [Candidate("Mean", "skldl:MeanDistribution", grid={"k": (1,)})]))
    assert len({study.fingerprint(), *(other.fingerprint() for other in others)}) == 5


def test_the_built_in_studies_have_the_six_algorithms_and_the_mean():
    assert {"demo", "tkde2016"} <= set(builtin_studies())
    names = {"PT-Bayes", "PT-SVM", "AA-kNN", "AA-BP", "SA-IIS", "SA-BFGS", "Mean"}
    for name in ("demo", "tkde2016"):
        assert {candidate.name for candidate in load_study(name).candidates} == names
    paper = load_study("TKDE-2016")
    assert len(paper.datasets) == 16
    assert (paper.protocol, paper.order, paper.folds) == ("geng2016", "file", 10)
    svm = next(candidate for candidate in paper.candidates if candidate.name == "PT-SVM")
    assert "max_samples" not in svm.params  # all rows
    assert min(svm.grid["C"]) == 1e-3


@pytest.mark.parametrize("name", ["demo", "tkde2016"])
def test_a_study_survives_its_file(name, tmp_path):
    study = load_study(name)
    path = tmp_path / "copy.toml"
    path.write_text(dump_study(study), encoding="utf-8")
    assert load_study(path) == study
    assert load_study(path).fingerprint() == study.fingerprint()


_VALUES = st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.dictionaries(st.text(), _VALUES | st.lists(_VALUES), max_size=4), st.text(min_size=1).filter(plain))
def test_any_parameters_survive_the_file(params, name):
    study = Study([name], [MEAN, Candidate("other", "m:C", params)], title=name)
    assert parse_study(dump_study(study)) == study


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("datasets = [", "is not valid TOML"),
        pytest.param(f"datasets = {'[' * 5000}{']' * 5000}", "nested too deeply", id="deep"),
        ("candidates = ['Mean']", "no list 'datasets'"),
        ("datasets = ['a']", "no list 'candidates'"),
        ("datasets = ['a']\ncandidates = ['Mean']\nfold = 3", "unknown key 'fold'"),
        ("datasets = [{ apart = true }]\ncandidates = ['Mean']", "a dataset has no name"),
        ("datasets = [{ nam = 'a' }]\ncandidates = ['Mean']", "unknown key 'nam'"),
        ("datasets = ['a']\ncandidates = [{ name = 'x' }]", "candidate x has no estimator"),
        ("datasets = ['a']\ncandidates = [{ name = 'x', described = 'P()' }]", "was built in Python"),
        ("datasets = ['a']\ncandidates = ['Mean']\nfolds = 1", "the study: folds = 1"),
        ("datasets = 'a'\ncandidates = ['Mean']", "datasets = 'a' must be a list"),
        ("datasets = [3]\ncandidates = ['Mean']", "datasets: 3 is neither a name nor a table"),
        ("datasets = ['a']\ncandidates = [3]", "candidates: 3 is neither a name nor a table"),
        ("datasets = [{ name = 'a', apart = 'no' }]\ncandidates = ['Mean']", "apart = 'no' must be true or false"),
        ("datasets = ['a']\ncandidates = ['Mean']\nmeasures = 'clark'", "measures = 'clark' must be a list"),
        ("datasets = ['a']\ncandidates = ['Mean']\nmeasures = [1]", "measures must be names in quotes, not 1"),
        ("datasets = ['a']\ncandidates = [{ name = 1, estimator = 'm:C' }]", "name = 1 must be text"),
        (
            "datasets = ['a']\ncandidates = [{ name = 'x', estimator = 'm:C', params = 3 }]",
            "params = 3 must be a table",
        ),
        ("datasets = ['a']\ncandidates = [{ name = 'x', estimator = 'm:C', grid = { k = 3 } }]", "grid of k must be a"),
    ],
)
def test_bad_study_files_are_rejected(text, message):
    with pytest.raises(StudyError, match=message):
        parse_study(text)


def test_a_study_file_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("datasets = ['Artificial']\ncandidates = ['Mean']", encoding="utf-8-sig")
    assert load_study(path).datasets[0].name == "Artificial"


def test_a_study_file_in_another_encoding(tmp_path):
    path = tmp_path / "study.toml"
    path.write_bytes("title = 'Gefühle'".encode("latin-1"))
    with pytest.raises(StudyError, match=r"study.toml is not UTF-8.*Save it as UTF-8"):
        load_study(path)


def test_unknown_studies_are_rejected():
    with pytest.raises(FileNotFoundError, match=r"no study file nowhere.toml"):
        load_study("nowhere.toml")
    with pytest.raises(UnknownNameError, match=r"No study is called 'nothing'.*Or give the path"):
        load_study("nothing")


def test_a_study_file_may_name_candidates_by_word():
    study = parse_study("datasets = ['a']\ncandidates = ['sa-bfgs']")
    assert study.candidates[0] == find_candidate("SA-BFGS")


def test_candidates_with_objects_are_distinguished_by_their_text():
    plain_one = Candidate("c", KNeighborsRegressor(), {"metric": np.sum})
    assert plain_one.to_dict()["params"]["metric"] == repr(np.sum)


def test_long_descriptions_are_not_cut():
    long = [
        Candidate("c", make_pipeline(*[StandardScaler(with_mean=n == place) for n in range(28)])) for place in (13, 14)
    ]
    assert long[0].to_dict() != long[1].to_dict()
