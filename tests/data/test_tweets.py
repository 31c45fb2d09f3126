"""The bundled tweets and the fetched texts: votes, distributions, features, groups, and an archive that is checked."""

import hashlib
import importlib.util
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from skldl.data import (
    Dataset,
    _download,
    _vader,
    fetch_dataset,
    fetch_vader_texts,
    load_dataset,
    load_lexicon,
    load_tweets,
)
from skldl.distributions import from_votes
from skldl.exceptions import DatasetError, DatasetNotFoundError, UnknownDatasetError
from skldl.experiments.header import raters_of

ROOT = Path(__file__).parents[2]
DATA = Path(_vader.__file__).parent / "bundled"


@pytest.fixture(scope="module")
def tweets():
    return load_tweets()


def test_sizes_names_and_terms(tweets):
    assert (tweets.n_samples, tweets.n_features, tweets.n_labels) == (4200, 1000, 9)
    assert tweets.label_names == ("-4", "-3", "-2", "-1", "0", "1", "2", "3", "4")
    assert len(set(tweets.tokens)) == 4200
    assert "MIT" in tweets.terms


def test_counts_and_distributions_come_from_the_votes(tweets):
    assert tweets.votes.shape == (4200, 99)
    n_votes = np.isfinite(tweets.votes).sum(axis=1)
    assert int(n_votes.sum()) == 159_750
    assert (np.sum(n_votes == 20), n_votes.min(), n_votes.max()) == (3200, 20, 99)
    np.testing.assert_array_equal(tweets.counts.sum(axis=1), n_votes)
    means = np.nanmean(tweets.votes, axis=1)
    assert means[0] == pytest.approx(2.726315789)  # as printed in the source
    np.testing.assert_allclose(tweets.D @ np.arange(-4, 5), means, atol=1e-12)
    rows = [0, 3, 1500, 4199]
    votes = from_votes(tweets.votes[rows], labels=range(-4, 5))
    np.testing.assert_allclose(votes.D, tweets.D[rows])
    np.testing.assert_array_equal(votes.n_votes, n_votes[rows])


def test_features_say_which_words_a_text_holds(tweets):
    assert sparse.issparse(tweets.X)
    assert set(tweets.X.data.tolist()) == {1.0}
    row = tweets.tokens.index("I LOVE this feeling!!! :D")
    present = {tweets.feature_names[j] for j in tweets.X[row].indices}
    assert {"i", "love", "this", "i love", "LOVE", "!!!", ":D", "feeling"} <= present
    assert "LOVE this" not in tweets.feature_names
    n_texts = np.asarray(tweets.X.sum(axis=0)).ravel()
    assert (np.diff(n_texts) <= 0).all()
    assert load_tweets(3).feature_names == tweets.feature_names[:3]
    for bad in (0, True, 1.5, None):
        with pytest.raises(ValueError, match="n_features="):
            load_tweets(bad)
    with pytest.raises(ValueError, match="different words and pairs of the tweets"):
        load_tweets(10**7)


def test_variants_of_a_text_share_a_group(tweets):
    groups, sizes = np.unique(tweets.groups, return_counts=True)
    assert (np.sum(sizes >= 5), sizes[sizes >= 5].sum()) == (30, 200)  # as many contrived texts as the source names
    first = tweets.tokens.index("Anger is ugly.")
    assert tweets.groups[tweets.tokens.index("Anger is very ugly!")] == tweets.groups[first] == first
    assert len(groups) == 4023
    assert len(set(_vader.variant_groups([":)", ":(", "no", "No!"]))) == 3


def test_place_of_a_rating_does_not_tell_the_rater(tweets):
    """What the documentation says: means of columns over 25 texts vary as after shuffling each row."""
    generator = np.random.default_rng(0)
    twenty = tweets.votes[np.isfinite(tweets.votes).sum(axis=1) == 20, :20]
    twenty = twenty - twenty.mean(axis=1, keepdims=True)
    blocks = twenty.reshape(-1, 25, 20)
    shuffled = generator.permuted(twenty, axis=1).reshape(-1, 25, 20)
    assert blocks.mean(axis=1).var() < 1.1 * shuffled.mean(axis=1).var()


def test_licence_and_provenance_stand_beside_the_file():
    digest = hashlib.sha256((DATA / "vader_tweets.npz").read_bytes()).hexdigest()
    text = (DATA / "PROVENANCE.md").read_text(encoding="utf-8")
    assert digest in text
    assert _vader.ARCHIVE_SHA256 in text


def test_missing_file_says_to_install_again(monkeypatch):
    monkeypatch.setattr(_vader, "_TWEETS", "elsewhere.npz")
    with pytest.raises(DatasetError, match="Install the package again"):
        load_tweets()


def test_tool_writes_the_same_content_again(tmp_path):
    path = ROOT / "tools" / "make_tweets.py"
    if not path.exists():
        pytest.skip("tools/ is not part of this copy of the source")
    spec = importlib.util.spec_from_file_location("make_tweets", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tweets = load_tweets()
    ratings = [row[~np.isnan(row)].astype(int).tolist() for row in tweets.votes]
    tool.write_tweets(list(tweets.tokens), ratings, tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz", allow_pickle=False) as new, np.load(DATA / "vader_tweets.npz") as bundled:
        for key in ("texts", "ratings", "n_ratings"):
            np.testing.assert_array_equal(new[key], bundled[key])
    with pytest.raises(ValueError, match="line feed"):
        tool.write_tweets(["two\nlines"], [[1]], tmp_path / "two.npz")


def test_parts_of_a_dataset_by_place():
    lexicon = load_lexicon(5)
    assert lexicon[0] is lexicon.X
    assert lexicon[1] is lexicon[-1] is lexicon.D
    assert lexicon[:] == (lexicon.X, lexicon.D)
    with pytest.raises(IndexError):
        lexicon[2]
    with pytest.raises(TypeError, match=r"dataset\.X"):
        lexicon["X"]
    with pytest.raises(TypeError):
        len(Dataset("toy", np.eye(2), np.eye(2)))


RATINGS = {"1_1": [1, 2, 0], "1_2": [-4, 4], "2_1": [0, 0, 0, 3]}


def archive(path, texts=None, ratings=None, stem="amazonReviewSnippets"):
    """A small archive in the form of the published one."""
    if ratings is None:
        ratings = "".join(f"{key}\t{sum(r) / len(r)}\t0.5\t{r}\r\n" for key, r in RATINGS.items())
    texts = "2_1\t0.75\tfine\r\n1_1\t1\tgood, really good\r\n1_2\t0\tbad\r\n" if texts is None else texts
    with tarfile.open(path, "w:gz") as target:
        for part, text in (("GroundTruth", texts), ("anonDataRatings", "\ufeff" + ratings)):
            content = text.encode("utf-8")
            member = tarfile.TarInfo(f"hutto_ICWSM_2014/{stem}_{part}.txt")
            member.size = len(content)
            target.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def small(monkeypatch):
    """Take archives of three texts as the published one."""

    def accept(path):
        monkeypatch.setattr(_vader, "ARCHIVE_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
        source = _vader.SOURCES["products"]
        monkeypatch.setitem(_vader.SOURCES, "products", _vader._Source(source.stem, 3, "Three."))
        return path

    return accept


def test_texts_are_read_out_of_a_local_copy(small, tmp_path):
    path = small(archive(tmp_path / "mine.tar.gz"))
    products = fetch_vader_texts("products", path, n_features=2)
    assert products.tokens == ("fine", "good, really good", "bad")  # the order of the texts, not of the ratings
    assert products.counts.sum(axis=1).tolist() == [4, 3, 2]
    assert products.votes[2, :2].tolist() == [-4, 4]
    assert np.isnan(products.votes[2, 2:]).all()
    assert products.groups.tolist() == [0, 1, 1]
    assert products.feature_names[0] == "bad"
    assert products.source == str(path)


def test_archive_is_downloaded_once_and_checked(small, no_data, tmp_path, monkeypatch):
    path = small(archive(tmp_path / "original.tar.gz"))
    asked = []

    def download(url, target, *, max_bytes):
        asked.append(url)
        target.write_bytes(path.read_bytes())

    monkeypatch.setattr(_download, "download", download)
    assert fetch_vader_texts("products", n_features=2).n_samples == 3
    assert fetch_vader_texts("products", n_features=2).n_samples == 3
    assert asked == [_vader.ARCHIVE_URL]
    assert [file.name for file in no_data.iterdir()] == [_vader.ARCHIVE]
    monkeypatch.setattr(_vader, "ARCHIVE_SHA256", "0" * 64)
    with pytest.raises(DatasetError, match="is not the published file: its sha256 is"):
        fetch_vader_texts("products")
    with pytest.raises(DatasetError, match=r"vader.* was deleted: .* is not the published file"):
        fetch_vader_texts("products", data_home=tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


def test_failures_say_what_to_do(no_data, tmp_path, monkeypatch):
    def offline(url, target, *, max_bytes):
        raise OSError("no route to host")

    monkeypatch.setattr(_download, "download", offline)
    with pytest.raises(DatasetError, match=r"no route to host.*archive=.*put it into"):
        fetch_vader_texts("films")
    with pytest.raises(DatasetError, match="There is no file"):
        fetch_vader_texts("films", tmp_path / "nothing.tar.gz")
    with pytest.raises(UnknownDatasetError, match="products, films, news"):
        fetch_vader_texts("books")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DatasetError, match="cannot be written to"):
        fetch_vader_texts("films", data_home=tmp_path / "file" / "sub")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ratings": "1_1\t1\t0\t[1, 5]\n"}, "no ratings from -4 to 4"),
        ({"ratings": "1_1\t2\t0\t[1, 1]\n"}, "with their mean"),
        ({"ratings": "1_1\tx\n"}, "no ratings from -4 to 4"),
        ({"texts": "1_1\t1\n"}, "no identifier, mean and text"),
        ({"texts": "1_1\t1\tone\n"}, "holds 1 texts and 3 rows"),
        ({"stem": "other"}, "cannot be read as the archive"),
    ],
)
def test_archive_with_other_content(small, tmp_path, options, words):
    path = small(archive(tmp_path / "mine.tar.gz", **options))
    with pytest.raises(DatasetError, match=words):
        fetch_vader_texts("products", path)


def test_file_that_is_no_archive(small, tmp_path):
    (tmp_path / "mine.tar.gz").write_bytes(b"no archive")
    with pytest.raises(DatasetError, match="cannot be read as the archive"):
        fetch_vader_texts("products", small(tmp_path / "mine.tar.gz"))


def test_groups_of_films_and_tweets():
    read = _vader.RatedTexts([str(i) for i in range(65)], ["x"] * 65, [[0]] * 65)
    assert np.bincount(_vader._groups("films", read)).tolist() == [30, 30, 5]
    assert set(_vader._groups("tweets", read)) == {0}


def test_raters_of_films_can_be_told_apart(tmp_path, monkeypatch):
    """Within a block of thirty sentences a place belongs to one person; no person is in two blocks."""
    ratings = {str(i): [1, 2, 0] if i < 30 else [0, -1] for i in range(35)}
    lines = "".join(f"{key}\t{sum(r) / len(r)}\t0.5\t{r}\n" for key, r in ratings.items())
    texts = "".join(f"{key}\t1\tfilm number {key}\n" for key in ratings)
    path = archive(tmp_path / "a.tar.gz", texts, lines, "movieReviewSnippets")
    monkeypatch.setattr(_vader, "ARCHIVE_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setitem(_vader.SOURCES, "films", _vader._Source("movieReviewSnippets", 35, "Films."))
    films = fetch_vader_texts("films", path, n_features=2)
    assert films.raters.shape == films.votes.shape == (35, 3)
    assert (films.raters[:30] == films.raters[0]).all()
    assert (films.raters[30:] == films.raters[30]).all()
    assert len(np.unique(films.raters)) == 6
    assert raters_of(films)["raters"]["n_raters"] == 5  # the last place is empty in the second block
    assert load_tweets(2).raters is None
    assert load_lexicon(2).raters is None


def test_fetched_texts_have_names(small, no_data, tmp_path, monkeypatch):
    """load_dataset looks for the archive and never downloads it; fetch_dataset does."""
    with pytest.raises(
        DatasetNotFoundError, match=r"hutto_ICWSM_2014.tar.gz was not found .*fetch_dataset\('VADER prod"
    ):
        load_dataset("VADER products")
    path = small(archive(tmp_path / "original.tar.gz"))
    word_presence = _vader.word_presence
    monkeypatch.setattr(
        _vader, "word_presence", lambda texts, n_features, called: word_presence(texts, 2, called=called)
    )
    monkeypatch.setattr(_download, "download", lambda url, target, *, max_bytes: target.write_bytes(path.read_bytes()))
    fetched = fetch_dataset("vader-products", data_home=tmp_path / "mine")
    assert fetched.name == "VADER products"
    assert load_dataset("VADER_products", tmp_path / "mine").tokens == fetched.tokens
    monkeypatch.setenv("SKLDL_DATA", str(tmp_path / "mine"))
    assert load_dataset("vader products").fingerprint == fetched.fingerprint
    with pytest.raises(DatasetError, match="labels= is for files given by path"):
        load_dataset("VADER products", labels="a")
    with pytest.raises(UnknownDatasetError, match="Did you mean VADER films"):
        load_dataset("vader film")
