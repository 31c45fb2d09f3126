"""The published tables as data, the comparison with them, and the paper's claims."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

from comparison.board import board_of, published_board
from comparison.claims import HOLDS_BY_DATASET, _steps, check_claims, claims_text
from comparison.published import Match, agreement_text, count_text, load_published, match_published, published_table
from skldl.experiments import StudyResults
from skldl.metrics import MEASURES, PAPER_MEASURES

SIX = ["PT-Bayes", "PT-SVM", "AA-kNN", "AA-BP", "SA-IIS", "SA-BFGS"]
NAMES = {"s-JAFFE": "SJAFFE", "s-BU_3DFE": "SBU_3DFE", "Natural Scene": "Natural_Scene"}
AVERAGE_RANKS = {  # the last rows of the paper's tables
    "chebyshev": [5.67, 4.40, 3.13, 4.40, 2.40, 1.00],
    "clark": [5.67, 4.27, 3.00, 4.67, 2.33, 1.07],
    "canberra": [5.73, 4.27, 3.07, 4.60, 2.20, 1.13],
    "kullback_leibler": [5.73, 4.13, 3.40, 4.60, 2.07, 1.07],
    "cosine": [5.67, 4.33, 3.33, 4.53, 2.13, 1.00],
    "intersection": [5.73, 4.33, 3.13, 4.47, 2.33, 1.00],
}


def as_results(cells, *, candidates=SIX, change=lambda cell: cell.mean, times=None, measures=tuple(PAPER_MEASURES)):
    """Results that hold published means, so that everything must agree."""
    datasets = list(dict.fromkeys(cell.dataset for cell in cells))
    study = {"name": "paper", "title": "as printed", "protocol": "geng2016", "measures": list(measures)}
    study |= {"criterion": "clark", "folds": 1, "repeats": 1, "order": "file", "seed": 0, "control": "Mean"}
    study["datasets"] = [{"name": NAMES.get(name, name.replace("-", "_")), "apart": False} for name in datasets]
    study["candidates"] = [{"name": name, "estimator": f"skldl:{name}"} for name in candidates]
    study["candidates"].append({"name": "Mean", "estimator": "skldl:MeanDistribution"})
    records = [{"kind": "header", "format": 2, "study": study, "missing": [], "versions": {}}]
    means = {(cell.dataset, cell.algorithm, cell.measure): change(cell) for cell in cells}
    for name, entry in zip(datasets, study["datasets"], strict=True):
        info = {
            "n_test": 0,
            "apart": name == "Artificial",
            "family": name.partition("-")[0] if "Yeast" in name else name,
            "near_zero_share": float("Scene" in name),
        }
        info |= {"n_samples": 9, "n_features": 2, "n_labels": 9, "mean_entropy_share": 0.5, "fingerprint": name}
        records.append({"kind": "dataset", "name": entry["name"], **info})
        for candidate in [*candidates, "Mean"]:
            values = {}
            for measure in measures:
                worst = 0.01 if MEASURES[measure].higher_is_better else 99.0
                values[measure] = means.get((name, candidate, measure), worst)
            record = {"kind": "evaluation", "dataset": entry["name"], "candidate": candidate, "repeat": 0, "fold": 0}
            seconds = (times or {}).get(candidate, 1.0)
            record |= {"status": "ok", "measures": values, "params": {}, "fit_seconds": seconds, "versions": {}}
            records.append(record | {"predict_seconds": 0.1, "selection_seconds": 0.0})
    return StudyResults(records)


def test_the_tables_are_whole_and_their_ranks_follow_from_their_means():
    cells = load_published()
    assert len(cells) == 16 * 6 * 6
    real = [cell for cell in cells if cell.dataset != "Artificial"]
    for measure, expected in AVERAGE_RANKS.items():
        ranks = [[c.rank for c in real if (c.algorithm, c.measure) == (a, measure)] for a in SIX]
        np.testing.assert_allclose(np.mean(ranks, axis=1), expected, atol=0.0051)
    for dataset in {cell.dataset for cell in cells}:
        for measure in PAPER_MEASURES:
            row = sorted((c for c in cells if (c.dataset, c.measure) == (dataset, measure)), key=lambda c: c.rank)
            means = [c.mean if MEASURES[measure].higher_is_better else -c.mean for c in row]
            assert means == sorted(means, reverse=True)
            assert all(c.std is None for c in row) == (dataset == "Artificial")


def test_the_published_numbers_agree_with_themselves():
    results = as_results(load_published())
    matches = match_published(results)
    assert len(matches) == 576
    assert all(match.agrees for match in matches)
    assert "**576 of 576 cells agree; by the loose rule 576.**" in agreement_text(results)
    table = published_table(results, "clark")
    assert table.foot[0][1][0].text == "16 of 16"
    assert all(cell.best for _, cells in table.rows for cell in cells)


@pytest.mark.parametrize(
    ("factor", "units", "agrees"),
    [(1.0199, 0, True), (1.0, 1, True), (1.0, -1, True), (1.03, 3, False), (0.9, 0, False)],
)
def test_agreement_is_two_percent_or_the_last_digit(factor, units, agrees):
    chosen = [cell for cell in load_published() if (cell.dataset, cell.measure) == ("Yeast-alpha", "clark")]
    results = as_results(chosen, change=lambda c: c.mean * factor + units * 10.0**-c.decimals)
    matches = match_published(results)
    assert {match.agrees for match in matches if match.published.measure == "clark"} == {agrees}


@pytest.mark.parametrize(
    ("printed", "decimals", "ours", "agrees", "loosely"),
    [
        (0.99, 4, 0.9902, True, True),  # 2 % of what it lacks
        (0.99, 4, 0.9905, False, True),
        (0.99, 3, 0.989, True, True),  # the last printed digit
        (0.99, 3, 0.9885, False, True),
        (0.5, 3, 0.509, True, True),
        (0.5, 3, 0.52, False, False),
    ],
)
def test_a_similarity_is_judged_by_what_it_lacks(printed, decimals, ours, agrees, loosely):
    cell = replace(next(c for c in load_published() if c.measure == "cosine"), mean=printed, decimals=decimals)
    match = Match(cell, "d", "c", ours, 0.0)
    assert (match.agrees, match.agrees_loosely) == (agrees, loosely)


def test_both_counts_are_named_where_they_differ():
    cells = [c for c in load_published() if (c.dataset, c.measure) == ("Yeast-alpha", "cosine")]
    results = as_results(cells, change=lambda c: c.mean - 0.015)
    matches = [m for m in match_published(results) if m.published.measure == "cosine"]
    assert count_text(matches) == "0 of 6 (loosely 5)"  # of the least, .743, .015 are more than 2 %
    assert count_text([m for m in match_published(as_results(cells)) if m.published.measure == "cosine"]) == "6 of 6"


def test_any_candidate_can_be_compared_with_a_column():
    cells = [c for c in load_published() if c.dataset == "Yeast-alpha"]
    matches = match_published(as_results(cells), column="SA-BFGS")
    assert len(matches) == 7 * 6
    assert {m.published.algorithm for m in matches} == {"SA-BFGS"}
    assert [m.agrees for m in matches if m.candidate == "Mean"] == [False] * 6
    assert all(m.agrees for m in matches if m.candidate == "SA-BFGS")


def test_deviations_agree_within_a_tenth_or_the_last_digit():
    real = next(cell for cell in load_published() if cell.dataset == "Yeast-alpha" and cell.measure == "clark")
    assert (real.std, real.std_decimals) == (0.076, 3)
    agreeing = [Match(real, "d", "c", 1.0, deviation).deviation_agrees for deviation in (0.083, 0.069, 0.085, 0.06)]
    assert agreeing == [True, True, False, False]
    small = replace(real, std=0.001)
    assert [Match(small, "d", "c", 1.0, deviation).deviation_agrees for deviation in (0.002, 0.0021)] == [True, False]
    artificial = next(cell for cell in load_published() if cell.dataset == "Artificial")
    assert Match(artificial, "d", "c", 1.0, np.nan).deviation_agrees
    cells = [real, replace(real, std=0.002), small, replace(real, std=0.0), artificial]
    assert [Match(cell, "d", "c", 1.0, 0.0).deviation_is_conclusive for cell in cells] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(("ours", "equal"), [(0.2349, True), (0.2351, False), (0.2246, False), (0.23, True)])
def test_a_mean_rounds_to_the_printed_one(ours, equal):
    cell = replace(load_published()[0], mean=0.23, decimals=2)
    assert Match(cell, "d", "c", ours, 0.0).rounds_to_it == equal


def test_differences_are_explained_where_they_are():
    results = as_results(load_published(), change=lambda c: c.mean * 0.5)
    text = agreement_text(results)
    for name in SIX:
        assert f"- {name}: " in text
    assert "- Artificial: " in text
    assert "- s-BU_3DFE: " in text
    distances = sum(not MEASURES[cell.measure].higher_is_better for cell in load_published())
    assert f"ours is better in {distances - text.count('nothing')}" in text


def test_the_paper_s_claims_on_the_paper_s_own_numbers():
    verdicts = {verdict.claim: verdict for verdict in check_claims(as_results(load_published()))}
    order = [v for claim, v in verdicts.items() if claim.startswith("Average ranks on")]
    # every dataset counted once the printed order comes out; with the Yeast sets as one it does not throughout
    for verdict in order:
        assert verdict.verdict == ("holds" if "Chebyshev" in verdict.claim else HOLDS_BY_DATASET)
        assert "on the same 15 datasets: SA-BFGS 1." in verdict.evidence
        assert verdict.evidence.count("τ = 1.00), with every family counted once") == 2
        assert verdict.evidence.endswith(f": {verdict.verdict}.")
    clark = next(verdict.evidence for verdict in order if "Clark" in verdict.claim)
    ours, _, printed = clark.partition("The ranks printed")  # means that were rounded tie where the paper ranks
    assert "AA-BP 4.63" in ours
    assert "AA-BP 4.67" in printed
    specialised = verdicts["SA-BFGS performs better than SA-IIS."].verdict
    assert specialised == "holds in 4 of 6 families; mixed in Movie; no clear difference in Human Gene"
    assert verdicts["SA-BFGS achieves the best performance in most cases."].verdict == "holds"
    neighbours = verdicts["AA-kNN performs better than AA-BP."]  # not on Movie, nor by more than half on Natural Scene
    assert neighbours.verdict == "holds in 4 of 6 families; mixed in Natural_Scene, Movie"
    assert "Natural_Scene 3 of 6" in neighbours.evidence
    assert "Movie 2 of 6" in neighbours.evidence
    near_zero = next(v for claim, v in verdicts.items() if "Human Gene and Natural Scene" in claim)
    assert near_zero.verdict == "holds"
    best = verdicts["SA-BFGS achieves the best performance in most cases."].evidence
    cells = [c for c in load_published() if c.dataset != "Artificial"]
    tables = {(c.dataset, c.measure): [] for c in cells}
    for c in cells:
        sign = -1 if MEASURES[c.measure].higher_is_better else 1
        tables[c.dataset, c.measure].append((sign * c.mean, c.algorithm))
    winners = sum(min(t)[0] == next(v for v, name in t if name == "SA-BFGS") for t in tables.values())
    lowest = "SA-BFGS has the lowest loss of the six, possibly tied and however small the difference, in"
    assert best.startswith(f"{lowest} {winners} of 90 cells, in the paper's")
    assert "holds in 4 of 6 families" in claims_text(list(verdicts.values()))
    assert not any(word in claim for claim in verdicts for word in ("because", "overfit", "Gaussian", "optimisation"))


def test_cells_of_few_measures_are_compared_with_as_many_of_the_paper():
    cells = [c for c in load_published() if c.measure in ("clark", "cosine")]
    verdicts = check_claims(as_results(cells, measures=("clark", "cosine")))
    best = next(v for v in verdicts if "most cases" in v.claim).evidence
    assert best.count("of 30") == 2


def test_a_claim_that_holds_on_one_family_alone_does_not_hold():
    """The ten Yeast sets are one X: winning on all of them, and nowhere else, is one family."""

    def only_yeast(cell):
        good = (cell.algorithm == "AA-kNN") == cell.dataset.startswith("Yeast")
        loss = 0.1 if good else 0.2
        return 1 - loss if MEASURES[cell.measure].higher_is_better else loss

    verdicts = {v.claim: v for v in check_claims(as_results(load_published(), change=only_yeast))}
    verdict = verdicts["AA-kNN performs better than AA-BP."]
    others = "Human Gene, Natural_Scene, SJAFFE, SBU_3DFE, Movie"
    assert verdict.verdict == f"does not hold, except in Yeast; reversed in {others}"
    better, _, worse = verdict.evidence.partition("; worse: ")
    assert better == "Cells in which AA-kNN is better: 60 of 60 in Yeast, 0 of 30 outside"
    assert worse.startswith("0 of 60 in Yeast, 30 of 30 outside.")
    assert verdicts["SA-BFGS achieves the best performance in most cases."].verdict == "holds in 5 of 6 families"


@pytest.mark.parametrize(("change", "clear"), [(0.009, False), (0.011, True)])
def test_differences_below_one_per_cent_are_none(change, clear):
    def nearly_equal(cell):
        loss = 0.2 * (1 - change) if cell.algorithm in ("AA-kNN", "SA-BFGS") else 0.2
        return 1 - loss if MEASURES[cell.measure].higher_is_better else loss

    verdicts = {v.claim: v for v in check_claims(as_results(load_published(), change=nearly_equal))}
    verdict = verdicts["AA-kNN performs better than AA-BP."].verdict
    assert verdict == "holds" if clear else verdict.startswith("does not hold; no clear difference in Yeast, ")
    special = verdicts["The specialised algorithms (SA-IIS, SA-BFGS) are generally better than the other four."]
    assert special.verdict.startswith("does not hold; no clear difference in Yeast, ")


@pytest.mark.parametrize(("change", "differ", "clearly"), [(0.1, True, True), (0.005, True, False), (0, False, False)])
def test_measures_differ_if_they_rank_apart(change, differ, clearly):
    def contradict(cell):
        worse = (cell.algorithm == "AA-kNN") == (cell.measure == "clark")
        loss = 0.2 * (1 + change * worse)
        return 1 - loss if MEASURES[cell.measure].higher_is_better else loss

    verdicts = check_claims(as_results(load_published(), change=contradict))
    verdict = next(v for v in verdicts if "often differs" in v.claim)
    by_ranks = "holds" if differ else "does not hold"
    assert verdict.verdict == f"{by_ranks} for ranks; for differences of more than 1% on {15 * clearly} of 15 datasets"
    ranks, _, clear = verdict.evidence.partition("Datasets on which an algorithm is better")
    assert f"Yeast {10 * differ} of 10" in ranks.partition("; in the printed ranks")[0]
    assert f"Yeast {10 * clearly} of 10" in clear.partition("; in the printed means")[0]


def test_cells_of_the_published_records_are_counted_by_family():
    folder = Path(__file__).parents[2] / "studies" / "tkde2016"
    if not (folder / "records.jsonl").exists():
        pytest.skip("the records are in the repository, not in the package")
    results = StudyResults.load(folder)
    board = board_of(results)
    assert board.families["Yeast"] == [name for name in results.datasets if name.startswith("Yeast")]
    knn, bp = board.place("AA-kNN"), board.place("AA-BP")
    counts = board.count(lambda losses: losses[:, knn] < losses[:, bp])
    by_hand = dict.fromkeys(board.families, 0)
    for measure in results.measures:
        means = results.means(measure) * (-1 if MEASURES[measure].higher_is_better else 1)
        for family, names in board.families.items():
            for name in names:
                row = means[results.datasets.index(name)]
                by_hand[family] += row[results.candidates.index("AA-kNN")] < row[results.candidates.index("AA-BP")]
    assert counts == by_hand


def test_claims_fail_on_numbers_turned_upside_down():
    def upside_down(cell):
        return 1 / cell.mean

    verdicts = check_claims(as_results(load_published(), change=upside_down))
    order = [verdict.verdict for verdict in verdicts if verdict.claim.startswith("Average ranks on")]
    assert set(order) == {"does not hold"}
    assert next(v for v in verdicts if "most cases" in v.claim).verdict == "does not hold"


def test_an_order_with_one_step_wrong_does_not_hold():
    def change(cell):  # SA-IIS and AA-kNN in each other's place
        other = {"SA-IIS": "AA-kNN", "AA-kNN": "SA-IIS"}.get(cell.algorithm, cell.algorithm)
        key = (cell.dataset, other, cell.measure)
        return next(c.mean for c in load_published() if (c.dataset, c.algorithm, c.measure) == key)

    verdicts = check_claims(as_results([c for c in load_published() if c.dataset.startswith("Yeast")], change=change))
    order = next(v for v in verdicts if v.claim.startswith("Average ranks on Clark"))
    assert order.verdict == "does not hold"
    assert "(4 of 5 steps, τ = 0.87)" in order.evidence


def test_a_dataset_that_is_not_there_is_reported():
    cells = [c for c in load_published() if c.dataset != "Human Gene"]
    verdict = next(v for v in check_claims(as_results(cells)) if "Human Gene and Natural Scene" in v.claim)
    assert verdict.verdict == "holds for Natural_Scene"
    assert "the other of the two datasets did not take part" in verdict.evidence


def test_claims_need_their_algorithms_and_datasets():
    cells = [
        c for c in load_published() if c.dataset in ("Yeast-alpha", "Movie") and c.algorithm in ("AA-kNN", "AA-BP")
    ]
    results = as_results(cells, candidates=["AA-kNN", "AA-BP"])
    verdicts = check_claims(results)
    unknown = [verdict.claim for verdict in verdicts if verdict.verdict == "cannot be checked here"]
    assert any("SA-BFGS performs better" in claim for claim in unknown)
    assert any("specialised" in claim for claim in unknown)
    assert any("Natural Scene" in claim for claim in unknown)
    assert any("artificial" in claim for claim in unknown)
    assert check_claims(as_results(cells, candidates=["AA-kNN"])) == []


def test_boards_agree_with_scipy_and_with_the_paper():
    own = board_of(as_results(load_published()))
    paper = published_board(replace(own, families=own.families | {"elsewhere": ["unknown"]}))
    assert paper.families == own.families
    for measure in PAPER_MEASURES:
        real = own.losses[measure][: len(own.datasets)]
        ranks = rankdata(real, axis=1)
        np.testing.assert_allclose(own.ranks(measure), ranks.mean(axis=0))
        is_yeast = np.array([name.startswith("Yeast") for name in own.datasets])
        expected = np.vstack([ranks[is_yeast].mean(axis=0), ranks[~is_yeast]]).mean(axis=0)
        np.testing.assert_allclose(own.family_ranks(measure), expected)
        np.testing.assert_allclose(np.round(paper.ranks(measure), 2), AVERAGE_RANKS[measure], atol=0.0051)
    assert own.artificial == ["Artificial"]
    assert paper.algorithms == own.algorithms


@pytest.mark.parametrize(
    ("order", "ranks", "kept"),
    [
        ("a ≻ b ≻ c", [1.0, 2.0, 3.0], [True, True]),
        ("a ≻ b ≻ c", [1.0, 1.0, 3.0], [False, True]),  # a tie is not an order
        ("a ≻ b ≻ c", [1.0, 1.0 + 1e-12, 3.0], [False, True]),  # nor is one that rounding errors make
        ("a = b ≻ c", [1.5, 1.0, 3.0], [True]),  # = asks for nothing between the two
        ("a = b ≻ c", [1.0, 3.5, 3.0], [False]),
        ("a = b = c", [2.0, 2.0, 2.0], []),
    ],
)
def test_steps_of_an_order_with_ties(order, ranks, kept):
    assert _steps(order, ["a", "b", "c"], np.array(ranks)) == kept
