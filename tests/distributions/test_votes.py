"""Votes: shares, agreement against published figures, the noise ceiling against known truth, bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skldl.annotators import DawidSkene
from skldl.distributions import from_counts, from_votes
from skldl.exceptions import (
    DataError,
    DimensionError,
    DuplicateVoteError,
    EmptyDataError,
    MissingLabelError,
    SampleWeightError,
    UnknownLabelError,
    ZeroRowError,
)
from skldl.metrics import PAPER_MEASURES, chebyshev

N = None
# The reliability data of Krippendorff's "Computing Krippendorff's alpha-reliability": four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
    [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
]
UNITS = [list(unit) for unit in zip(*OBSERVERS, strict=True)]


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_meets_the_published_example(level, published):
    assert from_votes(UNITS).alpha(level) == pytest.approx(published, abs=5e-4)


def test_alpha_by_hand_with_answers_of_several_labels():
    votes = from_votes([["c", "c", "d"], ["d", None, "d"], ["c", ["c", "d"], "c"]])
    observed = 4 * 1 / 2 + 4 * 0.5 / 2
    expected = 2 * (4 * 3 * 1 + 4 * 1 * 0.5 + 3 * 1 * 0.5) / 7
    assert votes.alpha() == pytest.approx(1 - observed / expected)


def test_alpha_at_its_ends():
    assert from_votes([["a", "a"], ["b", "b"]]).alpha() == 1
    assert from_votes([["a", "a"], ["a", "a"]], labels=["a", "b"]).alpha() == 1
    assert from_votes([["a", "b"], ["b", "a"]]).alpha() < 0
    with pytest.raises(DataError, match="two annotators"):
        from_votes([["a", None], ["b", None]]).alpha()
    with pytest.raises(DataError, match="several labels"):
        from_votes([[["a", "b"], "b"]]).alpha("ordinal")
    with pytest.raises(DataError, match="numbers"):
        from_votes([["a", "b"]]).alpha("interval")
    with pytest.raises(ValueError, match="level='ratio'"):
        from_votes([["a", "b"]]).alpha("ratio")


ANSWERS = st.lists(st.lists(st.sampled_from([None, 0, 1, 2]), min_size=3, max_size=3), min_size=1, max_size=12)


@given(ANSWERS)
def test_wide_long_and_counts_agree(rows):
    rows = [[0, *row] for row in rows]  # nobody without an answer
    wide = from_votes(rows, labels=[0, 1, 2])
    counts = np.array([[row.count(label) for label in range(3)] for row in rows])
    np.testing.assert_array_equal(wide.counts, counts)
    np.testing.assert_allclose(wide.D, from_counts(counts))
    np.testing.assert_array_equal(wide.n_votes, counts.sum(axis=1))
    triples = [(i, r, cell) for i, row in enumerate(rows) for r, cell in enumerate(row)]
    table = dict(zip(("word", "who", "label"), map(list, zip(*triples, strict=True)), strict=True))
    long = from_votes(table, item="word", annotator="who", label="label", labels=[0, 1, 2])
    np.testing.assert_array_equal(long.counts, wide.counts)
    assert long.items == list(range(len(rows)))


def test_weights_by_position_and_by_name():
    rows = [["a", "b"], ["b", "b"]]
    expected = [[0.75, 0.25], [0, 1]]
    np.testing.assert_allclose(from_votes(rows, weights=[3, 1]).D, expected)
    frame = pd.DataFrame(rows, columns=["ann", "bob"])
    np.testing.assert_allclose(from_votes(frame, weights={"bob": 1, "ann": 3}).D, expected)
    for bad in ([1], [1, -1], [0, 0], [1, np.nan], {"ann": 1}, {"ann": 1, "bob": 1, "eve": 1}):
        with pytest.raises(SampleWeightError):
            from_votes(frame, weights=bad)


def test_several_labels_share_a_mass_of_one_in_wide_and_long_tables():
    wide = from_votes([[{"a", "b"}, "a"]])
    np.testing.assert_allclose(wide.D, [[0.75, 0.25]])
    table = {"i": [1, 1, 1], "r": ["x", "x", "y"], "l": ["a", "b", "a"]}
    for votes in (table, pd.DataFrame(table), pl.DataFrame(table)):
        long = from_votes(votes, item="i", annotator="r", label="l")
        np.testing.assert_allclose(np.asarray(long.D), [[0.75, 0.25]])
        np.testing.assert_array_equal(long.n_votes, [2])
        assert long.annotators == ["x", "y"]
    lists = from_votes({"i": [1, 1], "r": ["x", "y"], "l": [["a", "b"], ["a"]]}, item="i", annotator="r", label="l")
    np.testing.assert_allclose(lists.D, [[0.75, 0.25]])


def test_tables_in_and_out():
    wide = pd.DataFrame([["a", "b"], [None, "b"]], index=["w1", "w2"], columns=["ann", "bob"])
    votes = from_votes(wide)
    pd.testing.assert_frame_equal(votes.D, pd.DataFrame({"a": [0.5, 0.0], "b": [0.5, 1.0]}, index=["w1", "w2"]))
    assert (votes.items, votes.annotators, votes.label_names) == (["w1", "w2"], ["ann", "bob"], ["a", "b"])
    votes = from_votes(pl.DataFrame({"ann": ["a", None], "bob": ["b", "b"]}))
    assert votes.D.to_dict(as_series=False) == {"a": [0.5, 0.0], "b": [0.5, 1.0]}
    long = pd.DataFrame({"i": ["w2", "w1"], "r": [1, 1], "l": ["a", "b"]})
    assert list(from_votes(long, item="i", annotator="r", label="l").D.index) == ["w2", "w1"]


def test_items_without_answers_and_smoothing():
    rows = [["a", "b"], [None, None], ["b", []]]
    with pytest.raises(ZeroRowError, match="Row 1 of votes"):
        from_votes(rows)
    dropped = from_votes(rows, empty="drop")
    assert (dropped.items, dropped.D.shape, list(dropped.n_votes)) == ([0, 2], (2, 2), [2, 1])
    np.testing.assert_allclose(from_votes(rows, empty="uniform").D[1], [0.5, 0.5])
    np.testing.assert_allclose(from_votes(rows, smoothing=1).D, [[0.5, 0.5], [0.5, 0.5], [1 / 3, 2 / 3]])
    missing = pd.DataFrame({"i": [1, 2], "r": [1, 1], "l": ["a", None]})
    smoothed = from_votes(missing, item="i", annotator="r", label="l", labels=["a", "b"], smoothing=1)
    assert list(smoothed.n_votes) == [1, 0]


LONG = {"item": "i", "annotator": "r", "label": "l"}


@pytest.mark.parametrize(
    ("votes", "options", "error", "words"),
    [
        ([["a", "z"]], {"labels": ["a", "b"]}, UnknownLabelError, "annotator 1 to item 0 holds the label 'z'"),
        ([[["a", "a"], "b"]], {}, DuplicateVoteError, "'a' twice"),
        ({"i": [1, 1], "r": [1, 1], "l": ["a", "a"]}, LONG, DuplicateVoteError, "Row 1 of votes.*'a' twice"),
        ({"i": [1, None], "r": [1, 1], "l": ["a", "b"]}, LONG, MissingLabelError, "Row 1 of votes has no 'i'"),
        ({"i": [1], "r": [1, 1], "l": ["a", "b"]}, LONG, DimensionError, "different lengths"),
        ({"i": [1], "r": [1]}, LONG, DataError, "no column 'l'"),
        ([["a"]], LONG, DimensionError, "DataFrame or a dict"),
        ({"i": [], "r": [], "l": []}, LONG, EmptyDataError, "no rows"),
        ([["a", "b"], ["a"]], {}, DimensionError, "Row 1 of votes has 1 cells"),
        (["ab", "cd"], {}, DimensionError, "Row 0 of the table"),
        ([[None, None]], {}, MissingLabelError, "not a single answer"),
        ([[["a", None], "b"]], {}, MissingLabelError, "annotator 0 to item 0"),
        ([["a", "b"]], {"item": "i"}, ValueError, "three columns"),
        ([["a", "b"]], {"empty": "zero"}, ValueError, "empty="),
        ([], {}, EmptyDataError, "no rows"),
    ],
)
def test_bad_votes(votes, options, error, words):
    with pytest.raises(error, match=words):
        from_votes(votes, **options)


def _long_table(
    n_votes: int, item: str = "tweet", worker: str = "worker", answer: str = "mood", *, each: int = 1
) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    workers, moods = draw.integers(0, 30, n_votes).astype(str), draw.choice(list("abcd"), n_votes)
    return pd.DataFrame({item: np.arange(n_votes) // each, worker: np.char.add("w", workers), answer: moods})


@pytest.mark.parametrize("model", [from_votes, lambda votes: DawidSkene().fit(votes)], ids=["fractions", "DawidSkene"])
@pytest.mark.parametrize("form", [lambda table: table, pl.from_pandas, lambda table: table.to_numpy().tolist()])
@pytest.mark.parametrize("each", [1, 4])  # votes for each item
def test_a_long_table_without_names_of_columns_is_rejected(form, model, each):
    words = "looks like a long table .*different kinds.*item=, annotator= and label="
    with pytest.raises(DataError, match=words):
        model(form(_long_table(400, each=each)))


@pytest.mark.parametrize("form", [lambda table: table, pl.from_pandas])
def test_columns_named_item_annotator_and_label_are_those_of_a_long_table(form):
    table = form(_long_table(5, "item", "annotator", "label"))
    with pytest.raises(DataError, match=r"columns named .*item=, annotator= and label="):
        from_votes(table)
    named = {name: name for name in ("item", "annotator", "label")}
    assert from_votes(table, **named, labels=list("abcd")).D.shape == (5, 4)


def test_wide_tables_of_any_labels_are_accepted():
    draw = np.random.default_rng(0)
    for labels in (list("abcd"), [1, 2, 3, 4], [1.5, 2, 3, "don't know"]):
        cells = np.array(labels, dtype=object)[draw.integers(0, 4, (20, 5))]
        assert from_votes(pd.DataFrame(cells)).D.shape == (20, 4)
    free_text = [[f"{person} says {item}" for person in "abc"] for item in range(100)]
    assert from_votes(free_text).D.shape == (100, 300)
    half = pd.DataFrame({"numbers": range(60), "words": draw.choice(list("ab"), 60)})  # few labels
    assert from_votes(half).D.shape == (60, 62)


def _draw(truth: np.ndarray, n_votes: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return (generator.random((len(truth), n_votes, 1)) > np.cumsum(truth, axis=1)[:, None]).sum(axis=2)


@pytest.mark.parametrize("kind", ["dirichlet", "ordered"])
def test_noise_ceiling_meets_what_the_true_distributions_score(kind):
    generator = np.random.default_rng(0)
    if kind == "dirichlet":
        truth = generator.dirichlet(np.full(5, 1.0), 1500)
    else:  # no Dirichlet at all: bells of different widths
        offset = (np.arange(5) - generator.uniform(0, 4, 1500)[:, None]) / generator.uniform(0.7, 2, 1500)[:, None]
        truth = np.exp(-0.5 * offset**2)
        truth /= truth.sum(axis=1, keepdims=True)
    votes = from_votes(_draw(truth, 12, 1), labels=range(5))
    ceiling = votes.noise_ceiling(n_splits=5)
    assert list(ceiling) == list(PAPER_MEASURES)
    for name, measure in PAPER_MEASURES.items():
        best = 1.0 if measure.higher_is_better else 0.0
        true_loss = abs(best - measure(votes.D, truth))
        assert abs(best - ceiling[name].ceiling) == pytest.approx(true_loss, rel=0.06)
        assert abs(best - ceiling[name].split_half) > 1.2 * true_loss


def test_noise_ceiling_is_repeatable_takes_weights_and_rejects_what_it_cannot_do():
    truth = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    rows = _draw(truth, 6, 0)
    votes = from_votes(rows, labels=[0, 1, 2])
    one = votes.noise_ceiling(chebyshev, n_splits=3)
    assert one == votes.noise_ceiling("chebyshev", n_splits=3)
    assert one != votes.noise_ceiling("chebyshev", n_splits=3, random_state=1)
    scaled = from_votes(rows, labels=[0, 1, 2], weights=np.full(6, 50.0)).noise_ceiling("chebyshev", n_splits=3)
    assert scaled["chebyshev"].ceiling == pytest.approx(one["chebyshev"].ceiling)
    muted = from_votes(rows, labels=[0, 1, 2], weights=[1, 1, 1, 0, 0, 0]).noise_ceiling("chebyshev", n_splits=3)
    three = from_votes(rows[:, :3], labels=[0, 1, 2]).noise_ceiling("chebyshev", n_splits=3)
    assert muted["chebyshev"].ceiling == pytest.approx(three["chebyshev"].ceiling)
    with pytest.raises(ValueError, match="n_splits=0"):
        votes.noise_ceiling(n_splits=0)
    with pytest.raises(ValueError, match="'wrong'"):
        votes.noise_ceiling(["wrong"])
    with pytest.raises(DataError, match="two answers"):
        from_votes([["a"], ["b"]]).noise_ceiling()


def test_the_ceiling_is_the_noise_floor_wherever_votes_are_whole():
    rows = _draw(np.random.default_rng(0).dirichlet(np.ones(3), 100), 6, 0)
    for options in ({}, {"weights": np.full(6, 2.5)}, {"weights": [1, 1, 1, 1, 0, 0]}):
        votes = from_votes(rows, labels=[0, 1, 2], **options)
        floors, ceilings = votes.noise_floor(), votes.noise_ceiling(n_splits=1)
        assert {name: found.ceiling for name, found in ceilings.items()} == {n: f.value for n, f in floors.items()}
        assert votes.noise_ceiling(chebyshev, n_splits=1, random_state=None)["chebyshev"].ceiling > 0
    smoothed = from_votes(rows, labels=[0, 1, 2], smoothing=0.5).noise_ceiling(n_splits=1)
    assert smoothed["chebyshev"].ceiling < ceilings["chebyshev"].ceiling


@pytest.mark.parametrize("library", [pd, pl])
def test_equal_numbers_are_one_label_in_long_and_wide_form(library):
    whole = from_votes([[4, 5], [4, 4], [5, 5]])
    assert whole.label_names == [4, 5]
    gappy = library.DataFrame({"a": [4, 4, None], "b": [5, 4, 5]})
    wide = from_votes(gappy)
    assert [type(name) for name in wide.label_names] == [int, int]
    np.testing.assert_allclose(np.asarray(wide.D)[:2], whole.D[:2])
    assert [str(name) for name in wide.D.columns] == ["4", "5"]
    for columns in ([4, 5.0, 4.0, 4], [4.0, 5, np.float32(4), np.int8(4)]):
        long = {"i": [0, 0, 1, 1], "r": [0, 1, 0, 1], "y": columns}
        votes = from_votes(long, item="i", annotator="r", label="y")
        assert votes.label_names == [4, 5]
        np.testing.assert_allclose(votes.D, whole.D[:2])
    assert from_votes([[0.5, 1.0]]).label_names == [0.5, 1]
    assert from_votes([[4.0, 5]], labels=[5.0, 4.0]).label_names == [5, 4]
    with pytest.raises(DuplicateVoteError, match="the label 4 twice"):
        from_votes([[[4, 4.0], 5]])
    with pytest.raises(DataError, match=r"4 \(int\) and '4' \(str\) look the same"):
        from_votes([[4, "4"]])


def test_printed_votes_are_short():
    votes = from_votes(np.arange(60_000).reshape(20_000, 3) % 30)
    assert repr(votes) == "Votes(20000 items, 3 annotators, 60000 answers, 30 labels: 0, 1, 2, 3, 4, …)"
    assert len(repr(from_votes([["x" * 500, "y" * 500]]))) < 150


@pytest.mark.parametrize("strength", [0.8, 5.0, 40.0])
def test_estimated_smoothing_is_the_maximum_likelihood_of_a_dirichlet_multinomial(strength):
    generator = np.random.default_rng(0)
    mean = np.array([0.2, 0.5, 0.3])
    truth = generator.dirichlet(strength * mean, 800)
    rows = _draw(truth, 8, 1)
    votes = from_votes(rows, labels=range(3), smoothing="estimate")
    counts = from_votes(rows, labels=range(3)).counts.astype(int)
    pooled = (counts.sum(axis=0) + 0.5) / (counts.sum() + 1.5)
    grid = np.exp(np.linspace(np.log(0.2), np.log(200), 400))
    likelihood = [stats.dirichlet_multinomial.logpmf(counts, s * pooled, 8).sum() for s in grid]
    best = grid[int(np.argmax(likelihood))]
    assert votes.smoothing.sum() == pytest.approx(best, rel=0.03)
    assert votes.smoothing.sum() == pytest.approx(strength, rel=0.35)
    np.testing.assert_allclose(votes.D, (counts + votes.smoothing) / (8 + votes.smoothing.sum()))
    raw = counts / 8
    assert ((votes.D - truth) ** 2).sum() < ((raw - truth) ** 2).sum()


def test_estimated_smoothing_does_not_depend_on_the_scale_of_weights():
    rows = _draw(np.random.default_rng(0).dirichlet(np.ones(3), 100), 6, 0)
    small = from_votes(rows, weights=[1, 1, 1, 0.5, 0.5, 0], smoothing="estimate")
    large = from_votes(rows, weights=np.array([1, 1, 1, 0.5, 0.5, 0]) * 1000, smoothing="estimate")
    np.testing.assert_allclose(small.D, large.D)
    np.testing.assert_allclose(small.sample_weight, 4**2 / 3.5)
    np.testing.assert_allclose(from_votes(rows).sample_weight, 6)
    unasked = from_votes([["a", "b"], [None, None]], smoothing="estimate")
    np.testing.assert_allclose(unasked.D[1], [0.5, 0.5])
    assert 0 < unasked.sample_weight[1] < 0.01
    with pytest.raises(ValueError, match="'estimate'"):
        from_votes(rows, smoothing="guess")


def test_weights_that_are_no_real_numbers():
    for weights in ([1j, 1], np.ma.masked_array([1.0, 2.0], [False, True]), np.array([1, 2], dtype="m8[s]"), ["x", 1]):
        with pytest.raises(SampleWeightError):
            from_votes([["a", "b"]], weights=weights)
