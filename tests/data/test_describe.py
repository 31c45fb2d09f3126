import json
import math

import numpy as np
import pytest
from scipy import sparse

from skldl.data import Dataset, _describe, describe, load_dataset, statistics_table
from skldl.exceptions import DataError, LengthMismatchError


def test_facts_of_a_table_known_by_heart():
    X = np.array([[1.0, 0, 2, 5], [1, 0, 2, 5], [0, 3, -4, 5], [2, 0, 4, 5], [-0.0, 3, -4, 5]])
    D = np.array([[0.5, 0.5], [1, 0], [0.25, 0.75], [0.5, 0.5], [0, 1]])
    card = describe((X, D), name="toy")
    assert (card.name, card.n_samples, card.n_features, card.n_labels) == ("toy", 5, 4, 2)
    assert card.zero_share == pytest.approx(5 / 20)
    assert card.feature_range == (-4, 5)
    assert card.feature_sum_range == (4, 11)
    assert card.rank == 3
    assert card.constant_features == 1
    assert card.duplicate_rows == 2  # a negative zero is a zero
    assert card.label_zeros == 2
    assert card.smallest_degree == 0.25
    quarter = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert card.mean_entropy == pytest.approx((2 * math.log(2) + quarter) / 5)
    mean = D.mean(axis=0)
    divergence = np.mean([sum(d * math.log(d / m) for d, m in zip(row, mean, strict=True) if d) for row in D])
    assert card.divergence_from_mean == pytest.approx(divergence)


@pytest.mark.parametrize("most_work", [2e9, 0])
def test_sparse_and_dense_agree(monkeypatch, most_work):
    monkeypatch.setattr(_describe, "_MAX_SVD_WORK", most_work)
    X = sparse.random(60, 30, density=0.1, format="csr", random_state=0)
    X = sparse.vstack([X, X[:7]]).tocsr()
    X.data[0] = 0  # stored zeros are zeros
    D = np.random.default_rng(0).dirichlet(np.ones(4), size=67)
    from_sparse, from_dense = describe((X, D)).to_dict(), describe((X.toarray(), D)).to_dict()
    assert from_sparse.pop("is_sparse") is True
    assert from_dense.pop("is_sparse") is False
    for key, value in from_dense.items():
        assert from_sparse[key] == value if key == "warnings" else from_sparse[key] == pytest.approx(value), key


@pytest.mark.parametrize("shape", [(200, 40), (40, 200)])
def test_rank_by_gram_matrix_equals_rank_by_singular_values(monkeypatch, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(shape[0], 25)) @ rng.normal(size=(25, shape[1]))
    X[:, 3] *= 1e6  # badly scaled columns do not hide the rank
    X[:, 5] = 0
    D = np.full((shape[0], 2), 0.5)
    assert describe((X, D)).rank == 25
    monkeypatch.setattr(_describe, "_MAX_SVD_WORK", 0)
    assert describe((X, D)).rank == 25
    assert describe((sparse.csr_matrix(X), D)).rank == 25
    monkeypatch.setattr(_describe, "_MAX_GRAM", 30)
    card = describe((X, D))
    assert card.rank is None
    assert "not computed: too large" in str(card)


def test_warnings_worth_knowing():
    rng = np.random.default_rng(0)
    D = rng.dirichlet(np.ones(3), size=40)
    assert describe((rng.normal(size=(40, 5)), D)).warnings == ()
    cases = {
        "Fewer rows (40) than features (50)": (rng.normal(size=(40, 50)), D),
        "rank 1 of at most 3": (np.outer(np.arange(40.0), [1, 2, 3]), D),
        "1 feature is constant": (np.column_stack([np.arange(40.0), np.ones(40)]), D),
        "Only 4 of 40 rows of X are distinct": (np.arange(40.0)[:, None] // 10, D),
        "nearly uniform": (rng.normal(size=(40, 2)), np.full((40, 3), 1 / 3)),
        "differ little from their mean": (rng.normal(size=(40, 2)), np.tile([0.9, 0.1], (40, 1))),
        "120 degrees are exactly zero": (rng.normal(size=(60, 2)), np.eye(3)[np.arange(60) % 3]),
    }
    for text, data in cases.items():
        assert any(text in warning for warning in describe(data).warnings), text
    X = rng.normal(size=(40, 2))
    X[7] = X[3]
    assert describe((X, D)).warnings == (
        "1 row of X is a copy of an earlier one: neighbours tie, and folds can share rows.",
    )


def test_notes_of_the_catalogue_are_on_the_card(table):
    dataset = Dataset("Yeast_spo", *table, label_names=("a", "b", "c"))
    assert any("share one X" in warning for warning in describe(dataset).warnings)


def test_card_prints_and_goes_to_json(table):
    card = describe(table)
    text = str(card)
    assert text.startswith("data\n  samples, features, labels  7 × 4, 3 labels")
    assert "mean entropy of D" in text
    assert json.loads(json.dumps(card.to_dict()))["feature_range"] == list(card.feature_range)
    assert str(describe((sparse.csr_matrix(table[0]), table[1]))).count("(sparse matrix)") == 1


def test_bad_data_are_refused(table):
    X, D = table
    with pytest.raises(LengthMismatchError):
        describe((X[:3], D))
    with pytest.raises(DataError, match="NaN or infinity"):
        describe((np.full_like(X, np.nan), D))
    with pytest.raises(DataError, match="shape"):
        describe((X[:, 0], D))
    with pytest.raises(DataError, match="sums to 2"):
        describe((X, D * 2))


def test_table_mixes_datasets_cards_names_and_missing_files(no_data, table):
    dataset = Dataset("toy", *table, label_names=("a", "b", "c"))
    rows = statistics_table([dataset, describe(dataset), "Artificial", "s-JAFFE"])
    assert rows[0] == rows[1]
    assert rows[2]["n"] == 500
    assert rows[3] == {
        "dataset": "SJAFFE", "n": 213, "q": 243, "c": 6,
        "zeros_in_D": None, "duplicates": None, "rank": None, "sparsity": None, "entropy": None,
    }  # fmt: skip
    assert str(rows).splitlines()[4].split() == ["SJAFFE", "213", "243", "6"]


def test_table_of_the_paper_has_sixteen_rows(no_data):
    rows = statistics_table()
    assert len(rows) == 16
    assert [row["c"] for row in rows] == [3, 18, 15, 14, 7, 6, 6, 4, 4, 3, 2, 68, 9, 6, 6, 5]


def test_table_without_rows():
    assert str(statistics_table([])) == "(no rows)"


def test_cards_of_the_paper(paper_data):
    paper_data("Movie")
    movie, yeast, sjaffe = (describe(load_dataset(name)) for name in ("Movie", "Yeast_alpha", "SJAFFE"))
    assert (movie.rank, movie.label_zeros, movie.is_sparse) == (1812, 18, True)
    assert round(movie.zero_share, 3) == 0.989
    assert (yeast.rank, yeast.label_zeros, yeast.duplicate_rows) == (24, 1, 30)
    assert (sjaffe.rank, sjaffe.duplicate_rows) == (212, 1)
    assert sjaffe.feature_sum_range == pytest.approx((1, 1))
    assert sjaffe.warnings[0].startswith("Fewer rows")


def test_name_instead_of_data(no_data):
    assert describe("artificial") == describe(load_dataset("Artificial"))
