import re

import numpy as np
import pytest

from skldl.data import CATALOGUE, find_entry, list_datasets, load_dataset
from skldl.exceptions import DatasetError, UnknownDatasetError, UnknownNameError

# the paper's Table 1
TABLE_2 = """
Yeast-alpha 2465 24 18
Yeast-cdc 2465 24 15
Yeast-elu 2465 24 14
Yeast-diau 2465 24 7
Yeast-heat 2465 24 6
Yeast-spo 2465 24 6
Yeast-cold 2465 24 4
Yeast-dtt 2465 24 4
Yeast-spo5 2465 24 3
Yeast-spoem 2465 24 2
Human_Gene 30542 36 68
Natural_Scene 2000 294 9
SJAFFE 213 243 6
SBU_3DFE 2500 243 6
Movie 7755 1869 5
"""


def test_sizes_are_those_of_the_paper():
    entries = [find_entry(line.split()[0]) for line in TABLE_2.split("\n") if line]
    assert [entry.name for entry in entries] == list(CATALOGUE)
    for entry, line in zip(entries, TABLE_2.strip().split("\n"), strict=True):
        assert [entry.n_samples, entry.n_features, entry.n_labels] == [int(part) for part in line.split()[1:]]


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("yeast-ALPHA", "Yeast_alpha"),
        ("Yeast spo5", "Yeast_spo5"),
        ("s-JAFFE", "SJAFFE"),
        ("sjaffe", "SJAFFE"),
        ("s-BU_3DFE", "SBU_3DFE"),
        ("Natural Scene", "Natural_Scene"),
        ("human gene", "Human_Gene"),
        ("MOVIE", "Movie"),
    ],
)
def test_spellings_of_the_paper(spelling, name):
    assert find_entry(spelling).name == name


def test_every_entry_can_be_cited_and_fetched():
    for entry in CATALOGUE.values():
        assert "Label distribution learning" in entry.citation
        assert "non-profit" in entry.terms
        assert entry.url == f"https://raw.githubusercontent.com/SpriteMisaka/PyLDL/main/datasets/{entry.name}.mat"
        assert entry.sha256 is None or re.fullmatch("[0-9a-f]{64}", entry.sha256)
        assert entry.label_names is None or len(set(entry.label_names)) == entry.n_labels
    assert [name for name, entry in CATALOGUE.items() if entry.sha256 is None] == ["Human_Gene", "Natural_Scene"]
    assert len({entry.sha256 for entry in CATALOGUE.values()}) == 14


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownDatasetError, match="Did you mean Yeast_alpha") as caught:
        find_entry("Yeast_alfa")
    assert isinstance(caught.value, DatasetError)
    assert isinstance(caught.value, UnknownNameError)
    with pytest.raises(
        UnknownDatasetError, match=r"no dataset 'qqq'. Known are: Lexicon, Tweets, Art.*, Yeast_alpha, "
    ):
        find_entry("qqq")


def test_list_names_everything_that_loads_by_name():
    table = list_datasets()
    texts = ["VADER products", "VADER films", "VADER news"]
    assert [row["name"] for row in table] == ["Lexicon", "Tweets", "Artificial", *texts, *CATALOGUE]
    for row in table[:3]:
        dataset = load_dataset(row["name"])
        assert (row["n"], row["q"], row["c"]) == (dataset.n_samples, dataset.n_features, dataset.n_labels)
    assert "Yeast_spoem      2,465     24   2  fetch_dataset" in str(table)


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "Human_Gene"])
def test_real_files_load(paper_data, name):
    X, D = paper_data(name)
    dataset = load_dataset(name)
    assert dataset.name == name
    assert dataset.X.dtype == np.float64
    if name == "Movie":
        assert dataset.X.format == "csr"
        assert (dataset.X != X).nnz == 0
    else:
        np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_allclose(dataset.D, D, rtol=1e-12)
    assert len(dataset.label_names) == D.shape[1]
    assert dataset.source.endswith(f"{name}.mat")


def test_order_of_emotions_in_sbu_3dfe(paper_data):
    # 25 rows per person: four strengths each of AN DI FE HA, one neutral, four each of SA SU
    _, D = paper_data("SBU_3DFE")
    mean = D.reshape(100, 25, 6).mean(axis=0)
    blocks = {"anger": 0, "disgust": 4, "fear": 8, "happiness": 12, "sadness": 17, "surprise": 21}
    for emotion, start in blocks.items():
        block = mean[start : start + 4]
        rise = block[3] - block[0]
        assert CATALOGUE["SBU_3DFE"].label_names[np.argmax(rise)] == emotion


def test_order_of_emotions_in_sjaffe(paper_data):
    # the first model's images: neutral, then HA SA SU AN DI FE, the order of the ratings published with JAFFE
    _, D = paper_data("SJAFFE")
    strongest = D[3:22].argmax(axis=1).tolist()
    assert list(dict.fromkeys(strongest)) == [0, 1, 2, 3, 4, 5]
    assert CATALOGUE["SJAFFE"].label_names == ("happiness", "sadness", "surprise", "anger", "disgust", "fear")


def test_stars_of_movie_rise(paper_data):
    _, D = paper_data("Movie")
    assert (D @ np.arange(1, 6)).mean() > 3  # Netflix ratings average above three; in falling order they would not


def test_what_comes_with_the_package_is_suggested_and_not_fetched():
    with pytest.raises(UnknownDatasetError, match="Did you mean Tweets"):
        load_dataset("Tweetz")
    with pytest.raises(UnknownDatasetError, match=r"load_dataset\('Tweets'\)"):
        find_entry("tweets")
