import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import skldl.data
from skldl.data import load_lexicon
from skldl.exceptions import DatasetError

ROOT = Path(__file__).parents[2]
DATA = Path(skldl.data.__file__).parent / "bundled"


@pytest.fixture(scope="module")
def lexicon():
    return load_lexicon()


def test_sizes_and_names(lexicon):
    assert (lexicon.n_samples, lexicon.n_features, lexicon.n_labels) == (7506, 512, 9)
    assert lexicon.label_names == ("-4", "-3", "-2", "-1", "0", "1", "2", "3", "4")
    assert len(lexicon.tokens) == len(set(lexicon.tokens)) == 7506
    assert "MIT" in lexicon.terms


def test_counts_and_distributions_come_from_the_votes(lexicon):
    assert lexicon.votes.shape == (7506, 10)
    assert lexicon.votes.min() == -4
    assert lexicon.votes.max() == 4
    row = lexicon.tokens.index("lol")  # second of two lines in the source, the one VADER uses
    assert lexicon.votes[row].tolist() == [1, 3, 4, 1, 2, 4, 1, 2, -1, 1]
    assert lexicon.counts[row].tolist() == [0, 0, 0, 1, 0, 4, 2, 1, 2]
    assert lexicon.D[row].tolist() == [0, 0, 0, 0.1, 0, 0.4, 0.2, 0.1, 0.2]
    assert (lexicon.counts.sum(axis=1) == 10).all()
    np.testing.assert_allclose(lexicon.D.sum(axis=1), 1, rtol=1e-15)
    np.testing.assert_allclose(lexicon.D @ np.arange(-4, 5), lexicon.votes.mean(axis=1), atol=1e-12)


def test_features_say_which_ngrams_a_token_holds(lexicon):
    assert sparse.issparse(lexicon.X)
    assert lexicon.X.format == "csr"
    assert set(lexicon.X.data.tolist()) == {1.0}
    for row in (0, 1000, 7505, lexicon.tokens.index("fed up")):
        padded = f" {lexicon.tokens[row]} "
        present = {lexicon.feature_names[j] for j in lexicon.X[row].indices}
        assert present == {ngram for ngram in lexicon.feature_names if ngram in padded}


def test_features_are_the_most_frequent_ngrams_in_a_fixed_order(lexicon):
    held = {}
    for token in lexicon.tokens:
        padded = f" {token} "
        ngrams = {padded[i : i + size] for size in (1, 2, 3, 4) for i in range(len(padded) - size + 1)}
        for ngram in ngrams - {" "}:
            held[ngram] = held.get(ngram, 0) + 1
    expected = sorted(held, key=lambda ngram: (-held[ngram], ngram))
    assert lexicon.feature_names == tuple(expected[:512])
    assert load_lexicon(3).feature_names == tuple(expected[:3])
    assert load_lexicon(len(expected)).n_features == len(expected)
    with pytest.raises(ValueError, match=f"is more than the {len(expected)} different"):
        load_lexicon(len(expected) + 1)


@pytest.mark.parametrize("n_features", [0, -5, 1.5, None, True])
def test_bad_number_of_features(n_features):
    with pytest.raises(ValueError, match=r"n_features=.* must be a whole number"):
        load_lexicon(n_features)


def test_missing_file_says_to_install_again(monkeypatch):
    monkeypatch.setattr("skldl.data._vader._LEXICON", "elsewhere.npz")
    with pytest.raises(DatasetError, match="Install the package again"):
        load_lexicon()


def test_licence_and_provenance_stand_beside_the_file():
    assert "Permission is hereby granted, free of charge" in (DATA / "LICENSE-vader.txt").read_text()
    digest = hashlib.sha256((DATA / "vader_lexicon.npz").read_bytes()).hexdigest()
    assert digest in (DATA / "PROVENANCE.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool():
    path = ROOT / "tools" / "make_lexicon.py"
    if not path.exists():
        pytest.skip("tools/ is not part of this copy of the source")
    spec = importlib.util.spec_from_file_location("make_lexicon", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tool_keeps_the_second_of_two_lines(tool):
    votes = [f"[{k}, 0, 0, 0, 0, 0, 0, 0, 0, 0]" for k in (1, 2, -4)]
    text = "".join(f"{token}\t0\t0\t{vote}\n" for token, vote in zip(["a b", ":)", "a b"], votes, strict=True))
    ratings = tool.read_lexicon(text)
    assert list(ratings) == [":)", "a b"]
    assert ratings["a b"][0] == -4
    with pytest.raises(ValueError, match="Line 1 holds"):
        tool.read_lexicon("x\t0\t0\t[5, 0, 0, 0, 0, 0, 0, 0, 0, 0]")


def test_tool_writes_the_same_content_again(tool, tmp_path):
    lexicon = load_lexicon()
    tokens, votes = lexicon.tokens, lexicon.votes
    for name in ("one.npz", "two.npz"):
        tool.write_lexicon(dict(zip(tokens, votes.tolist(), strict=True)), tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with np.load(tmp_path / "one.npz", allow_pickle=False) as new, np.load(DATA / "vader_lexicon.npz") as bundled:
        for key in ("tokens", "votes"):
            np.testing.assert_array_equal(new[key], bundled[key])
