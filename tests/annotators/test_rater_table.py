"""The table of raters: informedness and reliability against known raters, intervals, flags, weights."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from skldl.annotators import DawidSkene, rater_table
from skldl.distributions import from_votes
from skldl.exceptions import SampleWeightError

LONG = {"item": "item", "annotator": "who", "label": "says"}


@pytest.fixture(scope="module")
def crowd(simulate, one_coin_raters):
    """Eighty raters of known reliability, of whom eight answer at random; four labels."""
    reliability = np.random.default_rng(0).uniform(0.5, 0.95, 80)
    reliability[::10] = 0.25
    truth, votes = simulate(one_coin_raters(reliability, 4), 2500, 6)
    return reliability, truth, votes


@pytest.mark.parametrize("kind", ["confusion", "one-coin"])
def test_quality_of_known_raters(crowd, kind):
    reliability, _, votes = crowd
    table = rater_table(DawidSkene(kind).fit(votes, **LONG), ordered=False)
    true = reliability[np.array(table.rater)]
    informed = (true - 0.25) / 0.75
    assert np.abs(table.reliability - true).max() < 0.12
    assert np.abs(table.informedness - informed).max() < 0.2
    assert abs(np.mean(table.informedness - informed)) < 0.02
    for low, high, known in (
        (table.reliability_low, table.reliability_high, true),
        (table.informedness_low, table.informedness_high, informed),
    ):
        assert 0.85 <= np.mean((low <= known) & (known <= high)) <= 1.0
        assert (high - low).mean() < 0.25
    flagged = np.array(["spammer" in flags for flags in table.flags])
    assert flagged[informed == 0].mean() >= 0.75
    assert not flagged[informed > 0].any()
    assert np.isnan(table.severity).all()


def test_informedness_by_hand():
    # three certain raters and one to judge; gold items make the truth certain: T⁻ is one-hot
    truth = np.array([0, 0, 0, 1, 1, 2])
    answer = np.array([0, 0, 1, 1, 2, 2])
    model = DawidSkene("one-coin").fit(answer[:, None], gold=dict(enumerate(truth.tolist())), labels=[0, 1, 2])
    q, t = np.array([2, 2, 2]) / 6, np.array([3, 2, 1]) / 6
    nominal = rater_table(model, ordered=False)
    assert nominal.agreement[0] == pytest.approx(4 / 6)
    assert nominal.informedness[0] == pytest.approx((4 / 6 - q @ t) / (1 - t @ t))
    S = -np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    ordered = rater_table(model)
    assert ordered.informedness[0] == pytest.approx((-2 / 6 - q @ S @ t) / (0 - t @ S @ t))
    assert ordered.severity[0] == pytest.approx(2 / 6)
    assert ordered.severity_low[0] < 2 / 6 < ordered.severity_high[0]


def test_interval_of_a_rater_who_is_always_right_is_narrow():
    truth = np.arange(120) % 3
    table = rater_table(DawidSkene("one-coin").fit(np.stack([truth] * 4, axis=1)))
    assert table.reliability_low.min() > 0.95
    # 120 votes of a rater who is right in 97 % of the cases may all be right
    assert table.informedness_low.min() > 0.92


@pytest.mark.parametrize(("n_labels", "n_items"), [(2, 15), (2, 40), (4, 15)])
def test_the_interval_of_the_informedness_covers_beside_a_perfect_rater(n_labels, n_items):
    inside = []
    for seed in range(200):
        generator = np.random.default_rng(seed)
        truth = generator.integers(0, n_labels, n_items)
        votes = [truth] + [
            np.where(generator.random(n_items) < 0.8, truth, generator.integers(0, n_labels, n_items)) for _ in range(2)
        ]
        table = rater_table(DawidSkene("one-coin").fit(np.stack(votes, axis=1)), ordered=False)
        inside.append(table.informedness_low[1] <= 0.8 <= table.informedness_high[1])
    assert np.mean(inside) >= 0.91  # ± 1.5 % standard error; it was .76 to .88 with the normal distribution


def test_own_votes_take_no_part(simulate, one_coin_raters):
    """The agreement is the mean probability of the answer under the posterior of the other raters."""
    _, votes = simulate(one_coin_raters([0.9, 0.8, 0.7], 2), 200, 2)
    model = DawidSkene().fit(votes, **LONG)
    confusion = {name: model.confusion_[r] for r, name in enumerate(model.annotators_)}
    given = {name: [] for name in confusion}
    for vote, (item, who, says) in enumerate(zip(*votes.values(), strict=True)):
        p = model.class_prior_.copy()
        for other in np.flatnonzero(votes["item"] == item):
            if other != vote:
                p *= confusion[votes["who"][other]][:, votes["says"][other]]
        given[who].append(p[says] / p.sum())
    table = rater_table(model)
    np.testing.assert_allclose(table.agreement, [np.mean(given[name]) for name in table.rater], atol=1e-6)


def test_flags_habit_contrary_and_too_few_votes(simulate, one_coin_raters):
    truth, votes = simulate(one_coin_raters([0.9, 0.85, 0.8, 0.8, 0.75], 3), 300, 4)
    extra = {
        "always one": (np.arange(120), np.ones(120, dtype=int)),
        "mostly two": (np.arange(200), np.where(np.arange(200) % 3 > 0, 2, truth[:200])),
        "contrary": (np.arange(150), (truth[:150] + 1) % 3),
        "newcomer": (np.arange(5), np.ones(5, dtype=int)),
        "alone": (np.arange(900, 920), np.zeros(20, dtype=int)),
    }
    who = np.concatenate([votes["who"].astype(object), *[[name] * len(items) for name, (items, _) in extra.items()]])
    item = np.concatenate([votes["item"], *[items for items, _ in extra.values()]])
    says = np.concatenate([votes["says"], *[answers for _, answers in extra.values()]])
    names = np.array(["x", "y", "z"])
    model = DawidSkene().fit({"item": item, "who": who, "says": names[says]}, **LONG)
    table = rater_table(model)
    flags = dict(zip(table.rater, table.flags, strict=True))
    assert flags["always one"] == "spammer habit"
    assert "habit" in flags["mostly two"]
    assert flags["contrary"] == "contrary"
    assert flags["newcomer"] == flags["alone"] == ""
    assert all(flags[name] == "" for name in range(5))
    favourite = dict(zip(table.rater, table.favourite, strict=True))
    assert (favourite["always one"], favourite["mostly two"]) == ("y", "z")
    alone = table.rater.index("alone")
    assert table.n_compared[alone] == 0
    assert np.isnan(table.informedness[alone])
    weights = table.rater_weights()
    assert weights["contrary"] == 0
    assert weights["always one"] < 0.01
    assert 0 < weights["alone"] < max(weights.values())
    assert np.average(table.weight, weights=table.n_votes) == pytest.approx(1)
    assert "2 habit" in repr(table)


def test_few_votes_are_drawn_to_the_crowd(simulate, one_coin_raters):
    _, votes = simulate(one_coin_raters(np.linspace(0.4, 0.95, 20), 2), 400, 5)
    few = {"item": np.arange(4), "who": np.full(4, 99), "says": votes["says"][np.arange(4) * 5]}
    both = {name: np.concatenate([votes[name], few[name]]) for name in votes}
    table = rater_table(DawidSkene("one-coin").fit(both, **LONG), ordered=False)
    place = table.rater.index(99)
    centre = np.average(table.informedness, weights=table.n_votes)
    scale = table.weight.max() / table.informedness[table.weight.argmax()]
    pulled = table.weight[place] / scale
    assert abs(pulled - centre) < 0.6 * abs(table.informedness[place] - centre)


def test_weights_bring_the_distributions_nearer_to_those_of_careful_raters():
    generator = np.random.default_rng(0)
    D = generator.dirichlet([1.0, 1.0, 1.0], 400)
    draws = [(generator.random((400, 1)) > D.cumsum(axis=1)).sum(axis=1) for _ in range(12)]
    spam = [generator.integers(0, 3, 400) for _ in range(6)] + [np.full(400, 2)]
    rows = np.stack(draws + spam, axis=1)
    table = rater_table(DawidSkene("one-coin").fit(rows), ordered=False)
    careful, plain, weighted = from_votes(rows[:, :12]).D, from_votes(rows).D, from_votes(rows, weights=table).D
    assert np.abs(weighted - careful).mean() < 0.25 * np.abs(plain - careful).mean()
    assert np.abs(weighted - D).mean() < np.abs(plain - D).mean()
    assert table.weight[12:].max() < 0.3 * table.weight[:12].min()


def test_columns_rows_and_frame(crowd):
    table = rater_table(DawidSkene().fit(crowd[2], **LONG))
    frame = pd.DataFrame(table.columns())
    assert len(frame) == len(table) == 80
    assert list(frame.columns)[:3] == ["rater", "n_votes", "n_compared"]
    row = table.rows()[3]
    assert row["weight"] == table.weight[3]
    assert all(isinstance(value, int | float | str) for value in row.values())
    assert len(repr(table)) < 120


def test_from_votes_takes_model_table_and_rejects_unknown_raters():
    rows = [["a", "a", "b"], ["b", "b", "a"], ["a", "a", "a"], ["b", "b", "a"]]
    model = DawidSkene("one-coin").fit(rows)
    np.testing.assert_allclose(
        from_votes(rows, weights=model).D, from_votes(rows, weights=rater_table(model).rater_weights()).D
    )
    fewer = from_votes([row[:2] for row in rows], weights=model)
    assert fewer.annotators == [0, 1]
    with pytest.raises(SampleWeightError, match=r"without a weight are \[3\]"):
        from_votes([[*row, "a"] for row in rows], weights=model)


def test_bad_options_and_unfitted():
    with pytest.raises(NotFittedError):
        rater_table(DawidSkene())
    model = DawidSkene().fit([["a", "b"], ["a", "a"]])
    for options in ({"level": 1.0}, {"level": "much"}, {"habit_excess": 0.0}, {"min_votes": 0}, {"min_votes": 2.5}):
        with pytest.raises(ValueError, match=next(iter(options))):
            rater_table(model, **options)
    assert np.isnan(rater_table(model).severity).all()
    assert np.isfinite(rater_table(model, ordered=True).severity).all()


def test_code_of_the_documentation_runs_and_prints_what_it_says(capsys):
    page = Path(__file__).parents[2] / "docs" / "annotators.md"
    if not page.exists():
        pytest.skip("docs/ is not part of this copy of the source")
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    exec(code, {})
    assert capsys.readouterr().out.strip() == re.search(r"# (RaterTable.*)", code).group(1)
