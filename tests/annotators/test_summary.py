"""The summary of raters: the model that suits the labels, plain values and back, and no single vote in it."""

import json

import numpy as np
import pytest

from skldl.annotators import DawidSkene, RaterSummary, rater_table
from skldl.experiments.store import json_ready


def votes_of(n_raters, n_items=60, seed=0):
    generator = np.random.default_rng(seed)
    truth = generator.integers(1, 6, n_items)
    seen = np.clip(truth[:, None] + generator.integers(-1, 2, (n_items, n_raters)), 1, 5)
    seen[:, -1] = generator.integers(1, 6, n_items)
    return seen


def test_numbers_in_words_are_a_scale_with_their_values():
    """A severity of one step on the scale 10, 20, 40 is not one label: words read as numbers keep their distances."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 2, 400)
    votes = np.stack([truth, truth, truth + 1], axis=1)
    words = np.array(["10", "20", "40"])[votes]
    summary = RaterSummary.from_votes(words, labels=["10", "20", "40"])
    numbers = np.array([10, 20, 40])[votes]
    model = DawidSkene("ordinal").fit(numbers)
    assert summary.model == "ordinal"
    assert summary.label_names == [10, 20, 40]
    np.testing.assert_allclose(summary.table.severity, rater_table(model).severity)
    assert summary.table.severity[2] > 5  # in the unit of the scale, not in places of labels
    shuffled = RaterSummary.from_votes(words, labels=["40", "10", "20"])
    np.testing.assert_allclose(shuffled.table.severity, summary.table.severity)


@pytest.mark.parametrize("names", [["low", "mid", "high"], ["1", "1.0", "2"], [True, False, "x"], ["1", "2", "inf"]])
def test_other_labels_have_no_scale(names):
    votes = np.array(names, dtype=object)[np.random.default_rng(1).integers(0, 3, (40, 4))]
    summary = RaterSummary.from_votes(votes, labels=names)
    assert summary.model == "one-coin"
    assert summary.label_names == names
    assert np.isnan(summary.table.severity).all()


def test_confusion_is_the_mean_over_votes():
    votes = votes_of(4).astype(object)
    votes[:40, 0] = None  # one rater has fewer votes, and counts less
    model = DawidSkene().fit(votes)
    summary = RaterSummary.from_model(model)
    shares = [0.1 if name == 0 else 0.3 for name in model.annotators_]
    expected = sum(share * confusion for share, confusion in zip(shares, model.confusion_, strict=True))
    np.testing.assert_allclose(summary.confusion, expected)
    assert (summary.n_raters, summary.n_votes) == (4, 200)


def test_through_json_and_back():
    votes = votes_of(5).astype(object)
    votes[:, 4] = None
    votes[0, 4] = 3
    summary = RaterSummary.from_votes(votes)
    reported = json.loads(json.dumps(json_ready(summary.to_dict()), allow_nan=False))
    again = RaterSummary.from_dict(reported)
    for name, column in summary.table.columns().items():
        if isinstance(column[0], float):
            np.testing.assert_allclose(again.table.columns()[name], column, rtol=1e-5)
        else:
            assert [str(value) for value in again.table.columns()[name]] == [str(value) for value in column]
    np.testing.assert_allclose(again.confusion, summary.confusion, rtol=1e-5)
    assert np.isnan(again.table.informedness).sum() == 1  # unknown from a single vote
    assert (again.model, again.n_raters, again.flagged) == (summary.model, 5, summary.flagged)


def test_of_many_raters_some_are_kept_and_all_are_counted():
    summary = RaterSummary.from_votes(votes_of(450, 30))
    reported = summary.to_dict(named=False)
    assert reported["n_raters"] == 450
    assert reported["n_votes"] == 450 * 30
    assert reported["raters"]["rater"] == [str(number) for number in range(1, 201)]
    kept = reported["raters"]["informedness"]
    assert kept[0] == pytest.approx(summary.table.informedness.max(), rel=1e-5)
    assert kept[-1] == pytest.approx(summary.table.informedness.min(), rel=1e-5)
    assert kept == sorted(kept, reverse=True)
    assert sum(reported["flagged"].values()) == sum(len(flags.split()) for flags in summary.table.flags)
    assert len(json.dumps(json_ready(reported))) < 60_000
