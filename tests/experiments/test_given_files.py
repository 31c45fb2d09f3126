"""Study files with arrays, given splits and settings for text; predictions as Parquet; escaping of names."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import io

from skldl.exceptions import DatasetError, LengthMismatchError, StudyError
from skldl.experiments import Candidate, DatasetSpec, Study, StudyResults, dump_study, plan_study, run_study
from skldl.experiments.outputs import output_texts, write_outputs
from skldl.experiments.statistics_text import statistics_text
from skldl.experiments.study_file import parse_study
from skldl.selection import Layout, rounds_of
from skldl.utils.tables import markdown_text

MEAN = Candidate("Mean", "skldl:MeanDistribution")
KNN = Candidate("kNN", "skldl:AAKNN", grid={"n_neighbors": (2, 5)}, path="n_neighbors")
N_ROWS = 24


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, counts = rng.normal(size=(N_ROWS, 3)), rng.integers(1, 9, size=(N_ROWS, 4))
    person = np.array([f"p{row // 4}" for row in range(N_ROWS)])
    weight = np.linspace(1, 2, N_ROWS)
    np.savez("data.npz", A=X, B=counts, person=person, weight=weight, short=weight[:5])
    cells = np.array(person, dtype=object)[:, None]
    io.savemat("data.mat", {"A": X, "B": counts, "person": cells, "weight": weight})
    table = pd.DataFrame(X, columns=list("abc")).assign(**{f"d_{j}": counts[:, j] for j in range(4)}, person=person)
    table.to_csv("data.csv", index=False)
    return tmp_path


def study_text(entry, **options):
    head = "".join(f"{key} = {value!r}\n" for key, value in ({"folds": 3, "measures": ["clark"]} | options).items())
    return f"{head}candidates = ['Mean']\n[[datasets]]\nname = 'd'\n{entry}\n"


@pytest.mark.parametrize("ending", ["npz", "mat"])
def test_arrays_of_a_file_are_named_like_columns(ending):
    text = (
        f"source = 'data.{ending}'\nfeatures = 'A'\nlabels = 'B'\nkind = 'counts'\ngroups = 'person'\nweight = 'weight'"
    )
    study = parse_study(study_text(text))
    assert parse_study(dump_study(study)) == study
    plan = plan_study(study)
    data = plan.datasets["d"]
    expected = pd.read_csv("data.csv")
    np.testing.assert_allclose(data.X, expected[["a", "b", "c"]])
    counts = expected.filter(like="d_").to_numpy()
    np.testing.assert_allclose(data.D, counts / counts.sum(axis=1, keepdims=True))
    assert data.groups.tolist() == expected.person.tolist()
    np.testing.assert_allclose(data.sample_weight, np.linspace(1, 2, N_ROWS))
    for round_ in rounds_of(data, study.layout):
        assert not set(data.groups[round_.train]) & set(data.groups[round_.test])
    assert not run_study(plan).failures


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("labels = 'B'\nkind = 'votes'", "kind='votes' is for tables; an array of labels is one of distribution"),
        ("labels = ['A', 'B']", "labels= must name one array of data.npz, not 2"),
        ("labels = 'B'\nkind = 'counts'\ndrop = 'a'", "drop= is about the columns of a table"),
        ("features = 'A'\nlabels = 'B'\nkind = 'counts'\ngroups = 'who'", "holds no 'who'; it holds A, B, person"),
        ("features = 'A'\nlabels = 'B'\nkind = 'counts'\nweight = 'short'", "has 5 values for 24 rows"),
    ],
)
def test_wrong_descriptions_of_arrays_are_rejected(entry, message):
    with pytest.raises((StudyError, DatasetError), match=message):
        plan_study(parse_study(study_text(f"source = 'data.npz'\n{entry}")))


TABLE = "source = 'data.csv'\nlabels = 'd_*'\nkind = 'counts'\n"


def write_splits(*columns):
    pd.DataFrame({f"repeat {place}": column for place, column in enumerate(columns)}).to_csv("splits.csv", index=False)


def test_given_splits_replace_the_folds():
    fold_of = [*np.repeat([10, 2, 1, 10], 5), *["train"] * 4]  # sorted as numbers: 1, 2, 10
    write_splits(fold_of, fold_of[::-1])
    study = parse_study(study_text(TABLE + "drop = 'person'\nsplits = 'splits.csv'", repeats=2))
    assert parse_study(dump_study(study)) == study
    plan = plan_study(study)
    assert plan.n_tasks == 2 * 3
    data = plan.datasets["d"]
    for repeat, column in enumerate((fold_of, fold_of[::-1])):
        for name, round_ in zip((1, 2, 10), rounds_of(data, study.layout, repeat), strict=True):
            inside = [row for row, fold in enumerate(column) if fold == name]
            assert round_.test.tolist() == inside
            assert sorted([*round_.train, *round_.test]) == list(range(N_ROWS))
    results = run_study(plan, keep_predictions="all")
    assert not results.failures
    assert results.state("d", "Mean") == ""
    assert results.n_expected("d") == 6
    assert "The splits of d were given in a file." in output_texts(results)["README.md"]
    tested = [record["predictions"]["rows"] for record in results.evaluations if record["repeat"] == 0]
    assert sorted(row for rows in tested for row in rows) == list(range(20))
    other = plan_study(parse_study(study_text(TABLE + "drop = 'person'", repeats=2)))
    assert other.datasets["d"].fingerprint != data.fingerprint
    with pytest.raises(StudyError, match="splits are given for 2 repeats, not for 3"):
        plan_study(study.with_options(repeats=3))


@pytest.mark.parametrize("protocol", ["nested", "geng2016", "holdout"])
def test_every_protocol_takes_given_splits(protocol):
    write_splits([*range(3)] * 8)
    spec = DatasetSpec("d", source="data.csv", labels="d_*", kind="counts", drop=["person"], splits="splits.csv")
    results = run_study(Study([spec], [KNN], protocol=protocol, inner_folds=2, measures=["clark"]))
    assert not results.failures
    assert [record["n_test"] for record in results.evaluations] == [8] * 6
    data = plan_study(Study([spec], [KNN])).datasets["d"]
    for round_ in rounds_of(data, Layout(protocol, inner_folds=2)):
        for fit, validation in round_.tuning:
            assert not set(validation) & set(round_.test)
            assert set(fit) | set(validation) <= set(round_.train)


def test_a_single_given_test_set():
    write_splits(["test"] * 6 + [None] * 18)
    spec = DatasetSpec("d", source="data.csv", labels="d_*", kind="counts", drop="person", splits="splits.csv")
    results = run_study(Study([spec], [KNN], measures=["clark"]))
    assert [record["n_test"] for record in results.evaluations] == [6, 6]
    with pytest.raises(StudyError, match="geng2016 needs at least 3 folds"):
        plan_study(Study([spec], [KNN], protocol="geng2016"))


@pytest.mark.parametrize(
    ("columns", "entry", "message"),
    [
        ([[1, 2] * 5], "drop = 'person'", "has 10 lines for the 24 rows of data"),
        ([["train"] * 24], "drop = 'person'", "names no fold"),
        ([[3] * 24], "drop = 'person'", "all rows are in the fold '3'"),
        ([[1, 2] * 12, [1, 2, 3] * 8], "drop = 'person'", "the repeats have 2 and 3 folds"),
        ([[1, 2] * 12], "groups = 'person'", "row 1 is in the fold '1', and other rows of its group are not"),
    ],
)
def test_impossible_splits_are_rejected(columns, entry, message):
    write_splits(*columns)
    with pytest.raises(StudyError, match=message):
        plan_study(parse_study(study_text(f"{TABLE}{entry}\nsplits = 'splits.csv'")))


def test_a_file_of_splits_that_is_not_there_is_reported():
    with pytest.raises(StudyError, match=r"there is no file of splits nowhere\.csv"):
        plan_study(parse_study(study_text(TABLE + "drop = 'person'\nsplits = 'nowhere.csv'")))


def test_splits_of_a_dataset_in_python(problem):
    data = problem("d", splits=np.arange(36) % 4)
    assert data.splits.shape == (36, 1)
    assert data.take(np.arange(5)).splits.ravel().tolist() == [0, 1, 2, 3, 0]
    with pytest.raises(LengthMismatchError, match="4 lines of splits for 36 rows"):
        problem("d", splits=[0, 1, 0, 1])


def test_tokens_of_text(workplace):
    rng = np.random.default_rng(0)
    words = rng.choice(["good", "bad", "rain", "sun", "late"], size=(N_ROWS, 6))
    table = pd.read_csv("data.csv").assign(says=[" ".join(row) for row in words])
    table.to_csv("data.csv", index=False)
    entry = TABLE + "drop = 'person'\ntext = 'says'\n"
    one, other = (parse_study(study_text(f"{entry}text_ngrams = '{word}'")) for word in ("words", "characters"))
    assert parse_study(dump_study(other)) == other
    assert one.fingerprint() != other.fingerprint()
    plan = plan_study(other)
    assert plan.encoders["d"].text_ngrams == "characters"
    widths = [plan_study(s).encoders["d"].fit_transform(plan.datasets["d"].X).shape[1] for s in (one, other)]
    assert widths[0] != widths[1]
    with pytest.raises(StudyError, match="text_ngrams = 'letters' is not one of auto, words, characters"):
        parse_study(study_text(f"{entry}text_ngrams = 'letters'"))
    plain = parse_study(study_text(entry))
    assert "text_ngrams" not in dump_study(plain)


def test_encode_takes_no_features():
    with pytest.raises(StudyError, match="encode=True takes drop="):
        plan_study(parse_study(study_text(TABLE + "encode = true\nfeatures = 'a'")))


@pytest.mark.parametrize("keep", ["all", "predictions", "none"])
def test_predictions_are_written_as_parquet(problem, tmp_path, keep):
    datasets = [problem("one/../x", n=30, label_names=("a", "b <c>", "d")), problem("one-..-x", seed=1, n=30)]
    study = Study(datasets, [KNN], folds=3, repeats=2, measures=["clark"])
    results = run_study(study, out=tmp_path / "run", keep_predictions=keep)
    paths = [path for path in write_outputs(results, tmp_path / "run") if path.suffix == ".parquet"]
    if keep == "none":
        assert paths == []
        assert "parquet" not in output_texts(results)["README.md"]
        return
    assert [path.relative_to(tmp_path / "run").as_posix() for path in paths] == [
        "predictions/one-..-x.parquet",
        "predictions/one-..-x-1.parquet",
    ]
    table = pd.read_parquet(paths[0])
    assert len(table) == 2 * 2 * (30 if keep == "all" else 20)
    part = table[(table.candidate == "kNN") & (table.repeat == 0)].sort_values("row")
    found = results.predictions("one/../x", D_true=datasets[0].D)
    predicted = part[[f"predicted.{name}" for name in datasets[0].label_names]].to_numpy()
    np.testing.assert_allclose(predicted, found["predicted"]["kNN"], rtol=1e-6)
    np.testing.assert_array_equal(part["row"], found["rows"])
    true = [name for name in table if name.startswith("true.")]
    assert len(true) == (3 if keep == "all" else 0)  # the data may have no open licence
    if keep == "all":
        np.testing.assert_allclose(part[true], datasets[0].D, rtol=1e-6)
    again = [path.read_bytes() for path in paths]
    write_outputs(StudyResults.load(tmp_path / "run"), tmp_path / "run")
    assert [path.read_bytes() for path in paths] == again


def test_names_are_escaped_in_markdown(problem):
    nasty = "[x](http://evil) <img src=x> `a` *b*\n# c | d"
    candidate = Candidate(f"k {nasty}", "skldl:AAKNN", {"n_neighbors": 99})
    study = Study([problem(nasty), problem("two", seed=1)], [candidate, MEAN], folds=3, name=nasty, title=nasty)
    results = run_study(study)
    for text in (output_texts(results)["README.md"], statistics_text(results)):
        assert "](http" not in text.replace("\\](http", "")
        assert "<img" not in text
        assert "\n# c" not in text
    assert markdown_text(nasty) == r"[x\](http://evil) &lt;img src=x> \`a\` \*b\* # c \| d"


@pytest.fixture
def page_of_records():
    page = Path(__file__).parents[2] / "docs" / "records.md"
    if not page.exists():
        pytest.skip("the pages are in the repository, not in the package")
    return page.read_text(encoding="utf-8")


def test_the_documentation_names_every_key_of_study_files(page_of_records):
    section = page_of_records.split("## A study file")[1].split("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, flags=re.MULTILINE)
    reported = [re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))) for table in tables]
    for keys, kind in zip(reported, (Study, Candidate, DatasetSpec), strict=True):
        known = {field.name for field in dataclasses.fields(kind)} - {"trust", "data"}
        assert sorted(keys) == sorted(key.replace("random_state", "seed") for key in known)


def test_the_study_file_of_the_documentation(workplace, page_of_records):
    (text,) = re.findall(r"^```toml\n(.*?)^```", page_of_records, flags=re.DOTALL | re.MULTILINE)
    table = pd.read_csv("data.csv").rename(columns=lambda name: name.replace("d_", "emo_"))
    answers = [f"no {'bad' if row % 3 else 'good'} answer, number {row}" for row in range(N_ROWS)]
    table.assign(item=range(N_ROWS), answer=answers).to_csv("survey.csv", index=False)
    write_splits(np.repeat([1, 2], 12))
    with np.load("data.npz") as content:
        np.savez("arrays.npz", X=content["A"], counts=content["B"], person=content["person"])
    study = parse_study(text).with_options(folds=3, candidates=[KNN], measures=["clark"], inner_folds=2)  # 24 rows
    results = run_study(study)
    assert not results.failures
    assert [results.n_expected(name) for name in results.datasets] == [2, 3]
