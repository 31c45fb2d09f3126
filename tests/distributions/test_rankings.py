"""Rankings: the program against a general solver, unanimity, Plackett-Luce against its likelihood, Natural_Scene."""

import itertools
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import io, optimize, special
from sklearn.exceptions import ConvergenceWarning

from skldl.distributions import from_rankings
from skldl.exceptions import (
    DimensionError,
    EmptyDataError,
    LengthMismatchError,
    RankingError,
    SingleLabelError,
    UnknownLabelError,
    ZeroRowError,
)

RANKING = st.permutations(range(5)).flatmap(lambda order: st.integers(0, 5).map(lambda cut: list(order[:cut])))
ITEM = st.lists(RANKING, min_size=1, max_size=6).filter(any)
METHODS = ["program", "plackett-luce"]


def _before(ranking, a, b):
    """Whether a ranking puts a before b: listed earlier, or listed while b is not."""
    return a in ranking and (b not in ranking or ranking.index(a) < ranking.index(b))


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None)
@given(items=st.lists(ITEM, min_size=1, max_size=4))
def test_rows_sum_to_one_and_respect_unanimous_rankers(method, items):
    D = from_rankings(items, n_labels=5, method=method)
    np.testing.assert_allclose(D.sum(axis=1), 1)
    for d, rankings in zip(D, items, strict=True):
        marked = set().union(*rankings)
        assert all((d[j] > 0) for j in marked)
        if method == "program":
            assert all(d[j] == 0 for j in set(range(5)) - marked)
        for a, b in itertools.permutations(range(5), 2):
            forward = any(_before(ranking, a, b) for ranking in rankings)
            backward = any(_before(ranking, b, a) for ranking in rankings)
            if forward and not backward:
                assert d[a] > d[b]


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None, max_examples=30)
@given(item=ITEM, order=st.permutations(range(5)), seed=st.integers(0, 99))
def test_names_of_labels_and_order_of_rankers_do_not_matter(method, item, order, seed):
    expected = from_rankings([item], n_labels=5, method=method)[0]
    renamed = [[order[label] for label in ranking] for ranking in item]
    np.random.default_rng(seed).shuffle(renamed)
    np.testing.assert_allclose(from_rankings([renamed], n_labels=5, method=method)[0, order], expected, atol=1e-7)


def test_program_meets_a_general_solver():
    items = [
        [[0, 1, 2], [1, 0], [0], [2, 1]],
        [[0, 1], [0, 1], [0]],
        [[3, 1, 0, 2], [2, 0, 1, 3], [3], [0, 3]],
    ]
    margin, evenness = 0.05, 1e-3
    for item, d in zip(items, from_rankings(items, n_labels=4), strict=True):
        marked = sorted(set().union(*item))
        share = np.array([[np.mean([_before(r, a, b) for r in item]) for b in marked] for a in marked])

        def objective(scores, share=share):  # free of constraints, in scores whose softmax is the distribution
            x = special.softmax(scores)
            slack = np.maximum(margin - (x[:, None] - x[None]), 0)
            return 1e3 * ((share * slack**2).sum() - evenness * np.log(x).sum())

        solution = optimize.minimize(objective, np.zeros(len(marked)), method="BFGS", options={"gtol": 1e-7})
        np.testing.assert_allclose(d[marked], special.softmax(solution.x), atol=1e-6)


def test_program_keeps_the_order_where_margins_do_not_fit():
    D = from_rankings([[list(range(60))]], n_labels=60)[0]
    assert (np.diff(D) < 0).all()
    assert D.min() > 0


def test_plackett_luce_is_the_most_likely_distribution():
    item = [[0, 1], [1, 0, 2], [2], [0]]
    rho = 0.1

    def minus_log_posterior(scores):
        worth = np.exp(scores)
        value = (rho * scores - rho * 4 * worth).sum()
        for ranking in item:
            left = [0, 1, 2, 3]
            for label in ranking:
                value += scores[label] - np.log(worth[left].sum())
                left.remove(label)
        return -value

    solution = optimize.minimize(minus_log_posterior, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    expected = np.exp(solution.x) / np.exp(solution.x).sum()
    found = from_rankings([item], n_labels=4, method="plackett-luce", regularization=rho)[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_missing_rankers_do_not_count_and_blocks_change_nothing(monkeypatch):
    with_gaps = from_rankings([[["a", "b"], None, ["a"]], [["b"], ["a"]]], labels=["a", "b"])
    np.testing.assert_allclose(with_gaps[0], from_rankings([[["a", "b"], ["a"]]], labels=["a", "b"])[0])
    monkeypatch.setattr("skldl.distributions._rankings.MAX_CELLS", 1)
    again = from_rankings([[["a", "b"], None, ["a"]], [["b"], ["a"]]], labels=["a", "b"])
    np.testing.assert_array_equal(again, with_gaps)


def test_tables_names_and_floor():
    frame = pd.DataFrame({"ann": [["sky", "sea"], ["sea"]], "bob": [["sky"], None]}, index=["p1", "p2"])
    D = from_rankings(frame)
    assert (list(D.columns), list(D.index)) == (["sea", "sky"], ["p1", "p2"])
    D = from_rankings(pl.DataFrame({"ann": [["sky", "sea"]], "bob": [["sky"]]}), labels=["sky", "sea", "sun"])
    assert D.columns == ["sky", "sea", "sun"]
    floored = from_rankings([[[0], [0, 1]]], n_labels=3, floor=0.03)
    assert floored.min() == pytest.approx(0.01)
    np.testing.assert_allclose(floored.sum(), 1)


@pytest.mark.parametrize(
    ("rankings", "options", "error", "words"),
    [
        ([[["a", "a"]]], {"labels": ["a", "b"]}, RankingError, "Ranking 0 of item 0 names the label 'a' twice"),
        ([[["a", None]]], {"labels": ["a", "b"]}, RankingError, "no label at position 1"),
        ([[["a", "z"]]], {"labels": ["a", "b"]}, UnknownLabelError, "'z'"),
        ([[[0, 9]]], {"n_labels": 9}, UnknownLabelError, "9"),
        ([[["a"]], [[]]], {"labels": ["a", "b"]}, ZeroRowError, "item 1"),
        ([[["a"]]], {}, SingleLabelError, "only one class"),
        ([[["a"]]], {"labels": ["a", "b"], "n_labels": 3}, LengthMismatchError, "n_labels=3"),
        ([["a", "b"]], {}, DimensionError, "Ranking 0 of item 0 is 'a'"),
        ([], {}, EmptyDataError, "no rows"),
        ([[["a", "b"]]], {"method": "borda"}, ValueError, "method='borda'"),
        ([[["a", "b"]]], {"margin": 0}, ValueError, "margin=0"),
        ([[["a", "b"]]], {"evenness": -1}, ValueError, "evenness=-1"),
        ([[["a", "b"]]], {"regularization": np.inf}, ValueError, "regularization=inf"),
        ([[["a", "b"]]], {"floor": 2}, ValueError, "floor=2"),
    ],
)
def test_bad_rankings(rankings, options, error, words):
    with pytest.raises(error, match=words):
        from_rankings(rankings, **options)


@pytest.mark.parametrize(
    ("method", "limit", "words"),
    [("plackett-luce", "MAX_PLACKETT_LUCE_STEPS", "regularization"), ("program", "MAX_STEPS", "evenness")],
)
def test_a_search_that_stops_early_warns(monkeypatch, method, limit, words):
    monkeypatch.setattr(f"skldl.distributions._rankings.{limit}", 1)
    with pytest.warns(ConvergenceWarning, match=words):
        from_rankings([[[0, 1], [1, 0, 2]]], n_labels=3, method=method)


@pytest.fixture(scope="module")
def natural_scene():
    """Rankings and published distributions, which stand in different orders."""
    folder = Path(os.environ.get("SKLDL_DATA", "no folder"))
    if not (folder / "Natural_Scene_rankings.mat").exists():
        pytest.skip("SKLDL_DATA names no folder with Natural_Scene_rankings.mat (the data carry no open licence)")
    pictures = io.loadmat(folder / "Natural_Scene_rankings.mat")["pic"].ravel()
    rankings = []
    for picture in pictures:
        rows = np.asarray(picture["label"], dtype=int).tolist()
        rankings.append([[label - 1 for label in row[: row.index(10)]] for row in rows])
    return rankings, io.loadmat(folder / "Natural_Scene.mat")["labels"].astype(float)


def _distance_as_multisets(D, marked, published):
    """Mean Chebyshev distance under the best assignment of images to rows with the same set of marked labels."""
    groups = defaultdict(lambda: ([], []))
    for row, pattern in enumerate(marked):
        groups[pattern.tobytes()][0].append(row)
    for row, pattern in enumerate(published > 1e-3):
        groups[pattern.tobytes()][1].append(row)
    total = 0.0
    for ours, theirs in groups.values():
        assert len(ours) == len(theirs)
        distance = np.abs(D[ours][:, None] - published[theirs][None]).max(axis=2)
        total += distance[optimize.linear_sum_assignment(distance)].sum()
    return total / len(D)


def test_natural_scene_comes_near_the_published_distributions(natural_scene):
    rankings, published = natural_scene
    D = from_rankings(rankings, n_labels=9)
    uniform = (D > 0) / (D > 0).sum(axis=1, keepdims=True)
    assert _distance_as_multisets(uniform, D > 0, published) == pytest.approx(0.044, abs=0.001)
    assert _distance_as_multisets(D, D > 0, published) < 0.025


@pytest.mark.parametrize("method", METHODS)
def test_natural_scene_respects_unanimous_rankers(natural_scene, method):
    rankings, _ = natural_scene
    D = from_rankings(rankings, n_labels=9, method=method)
    place = np.full((len(rankings), 10, 9), 9)
    for i, item in enumerate(rankings):
        for r, ranking in enumerate(item):
            place[i, r, ranking] = np.arange(len(ranking))
    before = (place[:, :, :, None] < place[:, :, None, :]).any(axis=1)
    unanimous = before & ~before.transpose(0, 2, 1)
    assert unanimous.sum() > 10_000
    assert (D[:, :, None] > D[:, None, :])[unanimous].all()
