"""Dawid-Skene: against a dense EM written out, crowd-kit and numerical optimisation; bad input."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skldl.annotators import DawidSkene, RaterSummary
from skldl.distributions import from_votes
from skldl.exceptions import (
    DataError,
    DimensionError,
    DuplicateVoteError,
    EmptyDataError,
    MissingLabelError,
    UnknownLabelError,
)

LONG = {"item": "item", "annotator": "who", "label": "says"}
MODELS = ["confusion", "one-coin", "ordinal"]


def fit_steps(model, votes, n_steps, **options):
    """Exactly so many steps of EM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # with tol=0 it never does
        return model.set_params(max_iter=n_steps, tol=0.0).fit(votes, **LONG, **options)


def dense_em(votes, n_steps, *, kind, pseudo, pseudo_truth, gold=None):
    """EM with loops and arrays of shape (items, raters): slow, and as the paper writes it."""
    n_items, n_raters, c = (int(np.max(votes[name])) + 1 for name in ("item", "who", "says"))
    answer = np.full((n_items, n_raters), -1)
    answer[votes["item"], votes["who"]] = votes["says"]
    T = np.stack([(answer == k).sum(axis=1) for k in range(c)], axis=1) / (answer >= 0).sum(axis=1, keepdims=True)
    for i, k in (gold or {}).items():
        T[i] = np.eye(c)[k]
    for _ in range(n_steps):
        prior = (T.sum(axis=0) + pseudo_truth) / (T.sum() + c * pseudo_truth)
        confusion = np.empty((n_raters, c, c))
        for r in range(n_raters):
            N = pseudo.copy()
            for i in range(n_items):
                if answer[i, r] >= 0:
                    N[:, answer[i, r]] += T[i]
            if kind == "one-coin":
                q = np.trace(N) / N.sum()
                confusion[r] = (1 - q) / (c - 1)
                np.fill_diagonal(confusion[r], q)
            else:
                confusion[r] = N / N.sum(axis=1, keepdims=True)
        for i in range(n_items):
            p = prior.copy()
            for r in range(n_raters):
                if answer[i, r] >= 0:
                    p *= confusion[r][:, answer[i, r]]
            T[i] = p / p.sum()
        for i, k in (gold or {}).items():
            T[i] = np.eye(c)[k]
    return T, prior, confusion


@pytest.fixture(scope="module")
def votes(simulate, one_coin_raters):
    return simulate(one_coin_raters([0.9, 0.8, 0.7, 0.6, 0.4, 0.34], 3), 60, 4)


@pytest.mark.parametrize("gold", [None, {0: 1, 7: 2, 30: 0}])
@pytest.mark.parametrize("strength", [0.0, 3.0])
@pytest.mark.parametrize("kind", ["confusion", "one-coin"])
def test_same_as_dense_em(votes, kind, strength, gold):
    model = fit_steps(DawidSkene(kind, prior_strength=strength, prior_accuracy=0.6), votes[1], 7, gold=gold)
    each_row = strength if kind == "confusion" else strength / 3
    pseudo = np.full((3, 3), each_row * 0.2) + np.eye(3) * each_row * 0.4
    T, prior, confusion = dense_em(votes[1], 7, kind=kind, pseudo=pseudo, pseudo_truth=strength / 3, gold=gold)
    raters, items = np.array(model.annotators_), np.array(model.items_)
    np.testing.assert_allclose(model.posterior_, T[items], atol=1e-9)
    np.testing.assert_allclose(model.class_prior_, prior, atol=1e-12)
    np.testing.assert_allclose(model.confusion_, confusion[raters], atol=1e-9)
    if gold:
        assert model.labels_[model.items_.index(7)] == 2


@pytest.mark.parametrize("kind", ["confusion", "one-coin"])
def test_same_as_crowd_kit(votes, kind):
    crowdkit = pytest.importorskip(
        "crowdkit.aggregation",
        reason="crowd-kit is not installed (of its dependencies this test needs nltk, tqdm and attrs alone)",
    )
    table = pd.DataFrame({"task": votes[1]["item"], "worker": votes[1]["who"], "label": votes[1]["says"]})
    peer = (crowdkit.DawidSkene if kind == "confusion" else crowdkit.OneCoinDawidSkene)(n_iter=25, tol=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, about pandas
        theirs = peer.fit_predict_proba(table)[[0, 1, 2]]
    ours = fit_steps(DawidSkene(kind, prior_strength=0.0), votes[1], 25)
    np.testing.assert_allclose(ours.posterior_, theirs.loc[ours.items_].to_numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", MODELS)
def test_every_step_raises_the_objective(votes, kind):
    model = DawidSkene(kind, tol=1e-10, max_iter=500).fit(votes[1], **LONG)
    assert np.diff(model.objective_).min() > -1e-9
    half = {name: column[:150] for name, column in votes[1].items()}
    rest = {name: column[150:] for name, column in votes[1].items()}
    partial = DawidSkene(kind, tol=1e-10, max_iter=500).fit(half, labels=[0, 1, 2], **LONG).partial_fit(rest, **LONG)
    assert np.diff(partial.objective_).min() > -1e-9


def test_objective_is_the_log_posterior(votes):
    model = DawidSkene(prior_strength=1.5).fit(votes[1], **LONG)
    pseudo = model._pseudo_counts(3)
    total = 1.5 / 3 * np.log(model.class_prior_).sum()
    total += sum((pseudo * np.log(confusion)).sum() for confusion in model.confusion_)
    for i, item in enumerate(model.items_):
        p = model.class_prior_.copy()
        for vote in np.flatnonzero(votes[1]["item"] == item):
            p *= model.confusion_[model.annotators_.index(votes[1]["who"][vote])][:, votes[1]["says"][vote]]
        total += np.log(p.sum())
        np.testing.assert_allclose(model.posterior_[i], p / p.sum(), atol=1e-12)
    assert model.objective_[-1] == pytest.approx(total)


def test_ordered_probit_meets_numerical_optimisation():
    """With the truth of all items known, severity and spread are those of the largest likelihood of the answers."""
    values = [-2, -1, 0, 1.5, 2]
    counts = np.random.default_rng(0).poisson(3, size=(4, 5, 5)) + 20 * np.eye(5, dtype=int)
    rater, truth, answer = (np.repeat(place.ravel(), counts.ravel()) for place in np.indices(counts.shape))
    votes = {"item": np.arange(len(rater)), "who": rater, "says": [values[y] for y in answer]}
    gold = {i: values[k] for i, k in enumerate(truth)}
    model = DawidSkene("ordinal", prior_strength=0.0, tol=1e-12).fit(votes, gold=gold, **LONG)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)
    edges = np.array([-np.inf, -1.5, -0.5, 0.75, 1.75, np.inf])

    def loss(x, N):
        P = np.diff(stats.norm.cdf(edges[None], np.array(values)[:, None] + x[0], np.exp(x[1])), axis=1)
        return -(N * np.log(P)).sum()

    for name, N in enumerate(counts):
        r = model.annotators_.index(name)
        best = optimize.minimize(loss, [0.0, 0.0], args=(N,), method="Nelder-Mead", options={"xatol": 1e-8})
        np.testing.assert_allclose([model.severity_[r], np.log(model.spread_[r])], best.x, atol=1e-4)
        assert -(N * np.log(model.confusion_[r])).sum() <= best.fun + 1e-7


def test_severity_and_spread_are_found(simulate):
    severity, spread = np.array([-0.8, 0.0, 0.0, 0.3, 1.2]), np.array([0.5, 0.5, 0.8, 0.6, 0.7])
    edges = np.array([-np.inf, -1.5, -0.5, 0.5, 1.5, np.inf])
    values = np.arange(-2.0, 3.0)
    centre = values[None, :, None] + severity[:, None, None]
    confusion = np.diff(stats.norm.cdf(edges, centre, spread[:, None, None]), axis=2)
    truth, votes = simulate(confusion, 1500, 5)
    votes["says"] = votes["says"] - 2
    model = DawidSkene("ordinal").fit(votes, gold={int(i): int(truth[i]) - 2 for i in range(200)}, **LONG)
    order = np.argsort(model.annotators_)
    np.testing.assert_allclose(model.severity_[order], severity, atol=0.12)
    np.testing.assert_allclose(model.spread_[order], spread, atol=0.12)
    with pytest.raises(DataError, match="ascending order"):
        DawidSkene("ordinal").fit(votes, labels=[2, 1, 0, -1, -2], **LONG)
    names = np.array(["bad", "poor", "fair", "good", "best"])
    worded = {**votes, "says": names[votes["says"] + 2]}
    by_name = DawidSkene("ordinal").fit(worded, labels=names, **LONG)  # in this order, one step apart
    assert by_name.severity_[by_name.annotators_.index(4)] > by_name.severity_[by_name.annotators_.index(0)] + 1


def test_one_vote_for_each_rater_has_a_maximum_of_the_likelihood():
    """It determines neither severity nor spread: the Hessian is singular without a ridge."""
    model = DawidSkene("ordinal", prior_strength=0.0).fit([[0, 1, 2]])
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)
    assert model.severity_[0] < model.severity_[1] < model.severity_[2]


def test_partial_fit_learns_what_fit_learns(simulate, one_coin_raters):
    truth, votes = simulate(one_coin_raters([0.9, 0.85, 0.8, 0.7, 0.6, 0.34], 3), 600, 4)
    order = np.random.default_rng(1).permutation(len(votes["item"]))
    votes = {name: column[order] for name, column in votes.items()}
    whole = DawidSkene().fit(votes, **LONG)
    pieces = DawidSkene().partial_fit({n: c[:400] for n, c in votes.items()}, labels=[0, 1, 2], **LONG)
    first = DawidSkene().fit({n: c[:400] for n, c in votes.items()}, labels=[0, 1, 2], **LONG)
    np.testing.assert_array_equal(pieces.posterior_, first.posterior_)
    for start in range(400, len(order), 250):
        pieces.partial_fit({n: c[start : start + 250] for n, c in votes.items()}, **LONG)
    place = [pieces.items_.index(item) for item in whole.items_]
    assert sorted(pieces.annotators_) == sorted(whole.annotators_)
    rater = [pieces.annotators_.index(name) for name in whole.annotators_]
    assert np.abs(pieces.posterior_[place] - whole.posterior_).mean() < 0.03
    assert np.abs(pieces.confusion_[rater] - whole.confusion_).max() < 0.08
    # what was kept for later calls is what the votes and truths of now give
    by_hand = np.zeros_like(pieces.confusion_)
    for i, r, y in zip(pieces._triples.item, pieces._triples.rater, pieces._triples.label, strict=True):
        by_hand[r, :, y] += pieces.posterior_[i]
    np.testing.assert_allclose(pieces._counts, by_hand, atol=1e-9)
    np.testing.assert_allclose(pieces._truth_totals, pieces.posterior_.sum(axis=0))
    right = np.array(pieces.labels_) == truth[np.array(pieces.items_)]
    assert right.mean() > 0.85


def test_partial_fit_takes_gold_and_rejects_second_answers():
    votes = [["a", "a", "b"], ["b", "b", "a"], ["a", "b", "b"]]
    model = DawidSkene("one-coin").fit(votes, gold={2: "b"})
    assert model.labels_[2] == "b"
    model.partial_fit({"item": [9], "who": ["new"], "says": ["a"]}, gold={9: "b", 0: "b"}, **LONG)
    assert model.items_ == [0, 1, 2, 9]
    assert [model.labels_[i] for i in (0, 3)] == ["b", "b"]
    before = model.posterior_.copy()
    with pytest.raises(DuplicateVoteError, match=r"Annotator 0 answered twice to item 1 \('b' and 'a'; 1 such"):
        model.partial_fit({"item": [1], "who": [0], "says": ["a"]}, **LONG)
    with pytest.raises(UnknownLabelError, match="'c'"):
        model.partial_fit({"item": [1], "who": [5], "says": ["c"]}, **LONG)
    with pytest.raises(UnknownLabelError, match="cannot change"):
        model.partial_fit({"item": [1], "who": [5], "says": ["a"]}, labels=["b", "a"], **LONG)
    np.testing.assert_array_equal(model.posterior_, before)
    with pytest.raises(DataError, match="fitted as 'one-coin'"):
        model.set_params(model="confusion").partial_fit({"item": [1], "who": [5], "says": ["a"]}, **LONG)


def test_order_of_votes_and_names_of_labels_do_not_matter(votes):
    plain = DawidSkene().fit(votes[1], **LONG)
    order = np.random.default_rng(0).permutation(len(votes[1]["item"]))
    mixed = {name: column[order] for name, column in votes[1].items()}
    names = np.array(["z", "y", "x"])
    renamed = DawidSkene().fit({**mixed, "says": names[mixed["says"]]}, **LONG)
    place = [renamed.items_.index(item) for item in plain.items_]
    assert renamed.label_names_ == ["x", "y", "z"]
    np.testing.assert_allclose(renamed.posterior_[place][:, ::-1], plain.posterior_, atol=1e-9)


def test_all_forms_of_a_table_give_the_same():
    wide = [["a", "a", None], ["b", "a", "b"], [None, "b", "b"], ["a", "a", "b"]]
    rows = [(i, r, cell) for i, row in enumerate(wide) for r, cell in enumerate(row) if cell]
    long = dict(zip(("item", "who", "says"), map(list, zip(*rows, strict=True)), strict=True))
    expected = DawidSkene().fit(wide)
    assert expected.items_ == [0, 1, 2, 3]
    for table, names in (
        (long, LONG),
        (pd.DataFrame(long), LONG),
        (pl.DataFrame(long), LONG),
        (pd.DataFrame(wide), {}),
        ({**long, "says": np.array(long["says"])}, LONG),
        ({**long, "item": [f"i{i}" for i in long["item"]]}, LONG),
    ):
        found = DawidSkene().fit(table, **names)
        np.testing.assert_allclose(found.posterior_, expected.posterior_)
    assert from_votes(wide).D.shape == expected.posterior_.shape


@pytest.mark.parametrize("model", ["confusion", "one-coin", "ordinal"])
def test_annotators_have_one_order_in_votes_and_models(model):
    draw = np.random.default_rng(0)
    truth = draw.integers(1, 4, 30)
    answers = np.where(draw.random((30, 4)) < 0.8, truth[:, None], draw.integers(1, 4, (30, 4))).astype(object)
    answers[0, 0] = answers[0, 1] = None  # the first votes are of the others
    answers[:, 2] = None  # a rater without a vote
    wide = pd.DataFrame(answers, columns=list("zabc"))
    fitted = DawidSkene(model).fit(wide)
    assert fitted.annotators_ == from_votes(wide).annotators == list("zabc")
    np.testing.assert_array_equal(from_votes(wide, weights=fitted).weights, list(fitted.rater_weights().values()))
    assert fitted.rater_weights()["b"] == pytest.approx(1.0, abs=0.5)  # that of a typical rater
    assert RaterSummary.from_votes(wide).table.rater == list("zabc")
    long = wide.rename_axis("item").reset_index().melt("item", var_name="who", value_name="says")[::-1]
    names = {"item": "item", "annotator": "who", "label": "says"}
    again = DawidSkene(model).fit(long, **names)
    assert again.annotators_ == from_votes(long, **names).annotators == list("cbaz")
    np.testing.assert_allclose(again.confusion_[::-1], fitted.confusion_, atol=1e-3)


def test_equal_numbers_are_one_label():
    whole = DawidSkene().fit([[1, 2, 1], [2, 2, 1]])
    gappy = DawidSkene().fit(pd.DataFrame([[1, 2, 1], [2, 2, 1], [None, 2, None]]).iloc[:2])
    assert gappy.label_names_ == [1, 2]
    assert [type(name) for name in gappy.label_names_] == [int, int]
    np.testing.assert_allclose(whole.posterior_, gappy.posterior_)


def test_posterior_collapses_and_weighted_votes_do_not():
    generator = np.random.default_rng(0)
    share = generator.beta(2, 2, 300)
    rows = (generator.random((300, 40)) < share[:, None]).astype(int)
    model = DawidSkene("one-coin").fit(rows)
    assert np.median(model.posterior_.max(axis=1)) > 0.999
    kept = from_votes(rows, weights=model).D[:, 1]
    assert np.abs(kept - share).mean() < 0.07
    assert np.abs(model.posterior_[:, 1] - share).mean() > 0.25


@pytest.mark.parametrize(
    ("table", "options", "error", "words"),
    [
        ([["a", "b"], ["a"]], {}, DimensionError, "Row 1 of votes has 1 cells"),
        ([[None, None]], {}, MissingLabelError, "not a single answer"),
        ([], {}, EmptyDataError, "no rows"),
        ([[["a", "b"], "a"]], {}, DimensionError, "several labels"),
        ([["a", "b"]], {"item": "i"}, ValueError, "three columns"),
        ({"item": [1, None], "who": [1, 2], "says": ["a", "b"]}, LONG, MissingLabelError, "Row 1 of votes has no"),
        ({"item": [1], "who": [1, 2], "says": ["a", "b"]}, LONG, DimensionError, "different lengths"),
        ({"item": [1, 1], "who": [1, 1], "says": ["a", "b"]}, LONG, DuplicateVoteError, "keep one of them"),
        ([["a", "b"]], {"labels": ["a", "c"]}, UnknownLabelError, "'b'"),
        ([["a", "b"]], {"labels": {"a", "b"}}, DataError, "labels is a set"),
        ([["a", "b"]], {"gold": {5: "a"}}, DataError, "none of the items"),
        ([["a", "b"]], {"gold": {0: "z"}}, UnknownLabelError, "gold says 'z'"),
        ([["a", "b"]], {"gold": {0: None}}, MissingLabelError, "gold names no label"),
        ([["a", "b"]], {"gold": ["a"]}, DimensionError, "gold is a list"),
    ],
)
def test_bad_votes(table, options, error, words):
    with pytest.raises(error, match=words):
        DawidSkene().fit(table, **options)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"model": "glad"}, "model='glad'"),
        ({"prior_strength": -1.0}, "prior_strength=-1.0"),
        ({"prior_strength": "2"}, "prior_strength='2'"),
        ({"prior_strength": [[1.0, -1.0], [0.0, 1.0]]}, "prior_strength="),
        ({"prior_strength": np.ones(3)}, "square array"),
        ({"prior_strength": np.ones((3, 3))}, "one row and one"),
        ({"prior_accuracy": 1.0}, "prior_accuracy=1.0"),
        ({"prior_accuracy": "0.7"}, "prior_accuracy='0.7'"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"max_iter": True}, "max_iter=True"),
        ({"tol": np.nan}, "tol=nan"),
        ({"tol": None}, "tol=None"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(ValueError, match=words):
        DawidSkene(**parameters).fit([["a", "b"], ["a", "a"]])


def test_a_matrix_of_pseudo_counts_and_the_warning():
    rows = [["a", "b"], ["a", "a"], ["b", "b"]]
    by_matrix = DawidSkene(prior_strength=[[1.4, 0.6], [0.6, 1.4]]).fit(rows)
    np.testing.assert_allclose(by_matrix.posterior_, DawidSkene().fit(rows).posterior_)
    certain = DawidSkene("ordinal", prior_strength=[[1.0, 0.0], [0.0, 1.0]]).fit(rows)  # no pseudo-count of an error
    assert certain.labels_[1:] == ["a", "b"]
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        DawidSkene(max_iter=1).fit(rows)
    assert clone(by_matrix).get_params()["prior_strength"] == [[1.4, 0.6], [0.6, 1.4]]
    series = DawidSkene().fit(rows, gold=pd.Series({1: "b"}))
    assert series.labels_[1] == "b"
