"""Validation: each fault has an error class of its own, and a message with the place, the value and what to do."""

import datetime
import re
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import NotFittedError

from skldl import AAKNN, AAKNNCV, SABFGS, SABFGSCV, SAIIS, LDLClassifier, MeanDistribution, PTBayes, exceptions
from skldl.chunks import ArrayRows, IterableRows
from skldl.data import Dataset
from skldl.distributions import PropagationEnhancer, from_counts
from skldl.enhancement import GLLE
from skldl.exceptions import DataError, SampleWeightError
from skldl.metrics import kullback_leibler
from skldl.tabular import TableEncoder
from skldl.testing import make_distributions
from skldl.utils.validation import check_distributions, check_numbers, check_weights

X, D = make_distributions(n_samples=20, n_features=3, n_labels=3)
NAMES = ["joy", "anger", "fear"]


def change(table: np.ndarray, row: int, column: int, value: float) -> np.ndarray:
    table = table.copy()
    table[row, column] = value
    return table


BAD_D = {
    "nan": (change(D, 4, 1, np.nan), exceptions.NonFiniteError, r"contains NaN: row 4, label 1.*Remove such rows"),
    "infinity": (change(D, 4, 2, np.inf), exceptions.NonFiniteError, "contains infinity: row 4, label 2"),
    "negative": (change(D, 3, 0, -0.25), exceptions.NegativeDegreeError, r"Row 3.*degree -0\.25 \(label 0\)"),
    "counts": (np.full((20, 3), 2), exceptions.RowSumError, r"Row 0 of y sums to 6.*20 rows.*from_counts"),
    "one row off": (change(D, 7, 0, 1.0), exceptions.RowSumError, r"Row 7 of y sums to 1\.\d+, not 1\. "),
    "zero row": (D * (np.arange(20) != 5)[:, None], exceptions.ZeroRowError, "Row 5 of y is all zero"),
    "one dimension": (D[:, 0], exceptions.DimensionError, r"1 dimension \(shape \(20,\)\).*from_labels"),
    "three dimensions": (D[None], exceptions.DimensionError, "3 dimensions"),
    "length": (D[:-1], exceptions.LengthMismatchError, "X has 20 rows and y has 19"),
    "empty": (D[:0], exceptions.EmptyDataError, "empty"),
    "one label": (np.ones((20, 1)), exceptions.SingleLabelError, "d and 1 - d"),
    "strings": (D.astype(str).tolist(), exceptions.NotNumericError, "row 0, label 0.*from_labels"),
    "class names": (np.array(["a", "b"] * 10), exceptions.DimensionError, "from_labels"),
    "ragged": ([[0.5, 0.5]] * 19 + [[1.0]], exceptions.DimensionError, "different lengths .from 1 to 2"),
    "sparse": (sparse.csr_matrix(D), exceptions.SparseDistributionError, r"y\.toarray\(\)"),
    "complex": (D.astype(complex), exceptions.NotNumericError, "Complex data not supported"),
    "missing object": (change(D.astype(object), 2, 1, None), exceptions.NonFiniteError, "row 2, label 1 is missing"),
    "duplicate names": (
        pd.DataFrame(D, columns=["joy", "fear", "joy"]),
        exceptions.DuplicateLabelError,
        "'joy' is used for columns 0 and 2",
    ),
}


@pytest.mark.parametrize("case", BAD_D)
def test_bad_distributions_have_their_own_error(case):
    bad, kind, message = BAD_D[case]
    with pytest.raises(kind, match=message) as caught:
        AAKNN(1).fit(X, bad)
    assert isinstance(caught.value, ValueError)
    row = re.search(r"\b[Rr]ow (\d+)\b(?! instance)", str(caught.value))
    assert caught.value.row == (None if row is None else int(row[1]))


def test_errors_name_the_label():
    frame = pd.DataFrame(change(D, 3, 1, np.nan), columns=NAMES)
    with pytest.raises(exceptions.NonFiniteError, match="row 3, label 'anger'"):
        AAKNN(1).fit(X, frame)
    with pytest.raises(exceptions.NonFiniteError, match="row 3, label 'anger'"):
        AAKNN(1).fit(X, pl.DataFrame(change(D, 3, 1, np.nan), schema=NAMES))
    with pytest.raises(exceptions.NegativeDegreeError, match="label 'joy'"):
        AAKNN(1).fit(X, pd.DataFrame(change(D, 3, 0, -1.0), columns=NAMES))


BAD_X = {
    "nan": (change(X, 4, 1, np.nan), exceptions.NonFiniteError, "NaN.*row 4, column 1.*Imput"),
    "infinity": (change(X, 4, 1, np.inf), exceptions.NonFiniteError, "infinity.*row 4, column 1"),
    "named nan": (
        pd.DataFrame(change(X, 4, 1, np.nan), columns=list("abc")),
        exceptions.NonFiniteError,
        "row 4, column 'b'",
    ),
    "text": (
        pd.DataFrame({"a": X[:, 0], "town": ["Ulm"] * 20}),
        exceptions.NotNumericError,
        "'Ulm' in row 0, column 'town'.*OneHotEncoder",
    ),
    "sparse nan": (sparse.csr_matrix(change(X, 4, 1, np.nan)), exceptions.NonFiniteError, "NaN: row 4, column 1"),
    "several nan": (X * np.where(X > 0.9, np.nan, 1), exceptions.NonFiniteError, r"NaN \(\d+ cells\): row"),
    "one dimension": (X[:, 0], exceptions.DimensionError, "Expected 2D array"),
    "three dimensions": (X[None], exceptions.DimensionError, "dim 3"),
    "no rows": (X[:0], exceptions.EmptyDataError, "0 sample"),
    "no columns": (X[:, :0], exceptions.EmptyDataError, "0 feature"),
    "complex": (X.astype(complex), exceptions.NotNumericError, "Complex data not supported"),
    "empty sparse": (sparse.csr_matrix((0, 3)), exceptions.EmptyDataError, "0 sample"),
    "ragged": ([[1.0, 2.0], [3.0]] * 10, exceptions.DataError, "inhomogeneous"),
}


@pytest.mark.parametrize("case", BAD_X)
def test_bad_features_have_their_own_error(case):
    bad, kind, message = BAD_X[case]
    with pytest.raises(kind, match=f"(?s){message}") as caught:
        MeanDistribution().fit(bad, D)
    assert isinstance(caught.value, ValueError)
    row = re.search(r"\brow (\d+)\b", str(caught.value))
    assert caught.value.row == (None if row is None else int(row[1]))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(20), "row 0 is -1"),
        (np.zeros(20), "zero for every row"),
        (np.ones(19), "19 entries, but there are 20 rows"),
        (np.ones((20, 1)), r"shape \(20, 1\)"),
        (np.r_[np.nan, np.ones(19)], "row 0 is nan"),
        (["a"] * 20, "must hold real numbers"),
        (np.r_[np.ones(19), 1e-101], r"row 19 is 1e-101, more than a factor of 1e\+100 from their mean"),
        (np.r_[1.0, np.full(19, 1e101)], r"row 0 is 1, more than a factor of 1e\+100 from their mean"),
        (np.r_[0.0, 1e-300, np.full(18, 1e300)], r"row 1 is 1e-300, more than a factor"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(exceptions.SampleWeightError, match=message) as caught:
        MeanDistribution().fit(X, D, sample_weight=weight)
    row = re.search(r"row (\d+) is", str(caught.value))
    assert caught.value.row == (None if row is None else int(row[1]))


def test_weights_that_pass():
    assert check_weights(None, 3) is None
    np.testing.assert_array_equal(check_weights(2, 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(check_weights(pd.Series([1, 2, 3]), 3), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(check_weights([0, 1e-99, 1], 3), [0.0, 1e-99, 1.0])
    for factor in (1e-300, 1e-40, 1e40, 1e300):  # sums and squares must not overflow
        scaled = check_weights(factor * np.array([1.0, 0.0, 3.0]), 3)
        assert 0.1 < scaled.max() <= 1
        np.testing.assert_allclose(scaled / scaled[0], [1.0, 0.0, 3.0], rtol=1e-15)
    given = np.ones(3)
    assert not np.shares_memory(check_weights(given, 3), given)


def test_predicting_with_other_features():
    model = MeanDistribution().fit(pd.DataFrame(X, columns=list("abc")), D)
    with pytest.raises(exceptions.FeatureMismatchError, match="same order"):
        model.predict(pd.DataFrame(X, columns=list("cba")))
    for other in (X[:, :2], sparse.csr_matrix(X[:, :2])):
        with pytest.raises(exceptions.FeatureMismatchError, match="expecting 3 features"):
            MeanDistribution().fit(X, D).predict(other)
    with pytest.raises(NotFittedError):
        MeanDistribution().predict(X)


def test_rows_are_renormalised_exactly_and_the_input_is_kept():
    nearly = D * 1.0009
    before = nearly.copy()
    assert np.abs(check_distributions(nearly).sum(axis=1) - 1).max() < 1e-15
    np.testing.assert_array_equal(nearly, before)
    with pytest.raises(exceptions.RowSumError):
        check_distributions(D * 1.0011)


def test_rows_that_sum_to_one_up_to_rounding_are_not_divided():
    """A division would put one rounding error in the place of another, and cost a copy."""
    rows = np.random.default_rng(0).dirichlet(np.ones(18), 200)
    assert (rows.sum(axis=1) != 1.0).any()
    assert check_distributions(rows, leave_rounding=True) is rows
    assert check_distributions(rows) is not rows  # the digits of a dataset stay what they were
    rows[7] *= 1 + 1e-12
    checked = check_distributions(rows, leave_rounding=True)
    assert checked is not rows
    assert abs(checked[7].sum() - 1) < 1e-15


@pytest.mark.parametrize(
    "table",
    [
        D.tolist(),
        D.astype(np.float32),
        pd.DataFrame(D),
        pl.DataFrame(D),
        np.eye(3, dtype=int)[[0, 1, 2] * 2],
        [[Decimal("0.5"), Decimal("0.5")]],
        pd.DataFrame({"a": [0.25, 0.75], "b": [0.75, 0.25]}, dtype="Float64"),
        np.array([[True, False], [False, True]]),
    ],
    ids=["list", "float32", "pandas", "polars", "integers", "Decimal", "nullable", "boolean"],
)
def test_tables_that_pass(table):
    checked = check_distributions(table)
    assert checked.dtype == np.float64
    np.testing.assert_allclose(checked.sum(axis=1), 1, atol=1e-15)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_no_degrees_must_be_finite(value):
    with pytest.raises(exceptions.NonFiniteError, match="row 4, label 1"):
        check_numbers(change(D, 4, 1, value), name="scores")


def test_huge_but_finite_numbers_are_not_called_infinite():
    np.testing.assert_array_equal(check_numbers(np.full((2, 2), 1e308), name="scores"), 1e308)
    with pytest.raises(exceptions.RowSumError, match="sums to"):
        check_distributions(np.full((2, 2), 1e308))


def test_pairs_must_have_one_shape():
    with pytest.raises(exceptions.LengthMismatchError, match="number of rows differs"):
        kullback_leibler(D, D[:-1])
    with pytest.raises(exceptions.LengthMismatchError, match="number of labels differs"):
        kullback_leibler(D, np.full((20, 2), 0.5))
    with pytest.raises(exceptions.RowSumError, match="Row 0 of D_pred sums to 2"):
        kullback_leibler(D, 2 * D)


def test_names_from_pandas_and_polars():
    for frame, labels in [
        (pd.DataFrame(X, columns=list("abc")), pd.DataFrame(D, columns=NAMES)),
        (pl.DataFrame(X, schema=list("abc")), pl.DataFrame(D, schema=NAMES)),
    ]:
        model = MeanDistribution().fit(frame, labels)
        assert list(model.feature_names_in_) == list("abc")
        assert list(model.label_names_) == NAMES
        assert model.predict(frame).shape == D.shape
    assert list(MeanDistribution().fit(X, D).label_names_) == ["label_0", "label_1", "label_2"]
    assert list(MeanDistribution().fit(X, pd.DataFrame(D)).label_names_) == ["0", "1", "2"]


@pytest.mark.parametrize(
    "use",
    [
        lambda X, D: MeanDistribution().fit(X, D),
        lambda X, D: LDLClassifier(MeanDistribution()).fit(X.collect(), D),
        lambda X, D: PropagationEnhancer().fit(X.collect(), D),
        lambda X, D: from_counts(D),
        lambda X, D: TableEncoder().fit(X),
    ],
)
def test_a_lazy_frame_is_rejected_with_what_to_do(use):
    with pytest.raises(DataError, match=r"is a LazyFrame, .*collect\(\)"):
        use(pl.LazyFrame(X), pl.LazyFrame(D, schema=NAMES))


def test_names_from_pyarrow():
    arrow = pytest.importorskip("pyarrow")
    frame, labels = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(D, columns=NAMES)
    tables = [arrow.Table.from_pandas(table) for table in (frame, labels)]
    model = MeanDistribution().fit(*tables)
    assert (list(model.feature_names_in_), list(model.label_names_)) == (list("abc"), NAMES)
    assert kullback_leibler(labels, arrow.Table.from_pandas(labels[NAMES[::-1]])) == 0
    with pytest.raises(exceptions.FeatureMismatchError, match="names"):
        model.predict(arrow.Table.from_pandas(frame[list("bac")]))
    for time in (datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), datetime.timedelta(1)):
        with pytest.raises(exceptions.NotNumericError, match="column 'when' of X holds dates or durations"):
            model.fit(arrow.table({"age": range(20), "when": [time] * 20}), D)


def test_float32_features_stay_single_and_are_not_copied():
    seen = []

    class Spy(MeanDistribution):
        def _fit(self, X, D, sample_weight):
            seen.append(X)
            super()._fit(X, D, sample_weight)

    features = X.astype(np.float32)
    Spy().fit(features, D)
    assert seen[0].dtype == np.float32
    assert np.shares_memory(seen[0], features)


def test_none_is_named_as_what_is_missing():
    with pytest.raises(exceptions.DimensionError, match="D_pred has 0 dimensions"):
        check_distributions(None, name="D_pred")


UNREAL = {
    "masked": np.ma.masked_array([[0.4, 0.6], [0.5, 0.5]], [[False, True], [False, False]]),
    "dates": np.array([["2020-01-01", "2020-01-02"]] * 2, dtype="M8[ns]"),
    "durations": np.array([[1, 2]] * 2, dtype="m8[s]"),
    "complex": np.array([[0.5 + 0j, 0.5], [0.5, 0.5]]),
    "date objects": np.array([[np.datetime64("2020-01-01"), 1.0]] * 2, dtype=object),
    "duration objects": [[np.timedelta64(1, "s"), 1.0]] * 2,
    "complex objects": np.array([[1j, 1.0]] * 2, dtype=object),
    "pandas dates": pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2020-01-02"]), "b": [0.5, 0.5]}),
    "pandas zoned dates": pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 2, utc=True), "b": [0.5, 0.5]}),
    "pandas durations": pd.DataFrame({"a": pd.to_timedelta([1, 2], unit="s"), "b": [0.5, 0.5]}),
    "pandas periods": pd.DataFrame({"a": pd.period_range("2020-01", periods=2, freq="M"), "b": [0.5, 0.5]}),
    "polars dates": pl.DataFrame({"a": [datetime.date(2020, 1, 1)] * 2, "b": [0.5, 0.5]}),
    "polars durations": pl.DataFrame({"a": [datetime.timedelta(1)] * 2, "b": [0.5, 0.5]}),
}


@pytest.mark.parametrize("kind", UNREAL)
def test_masked_cells_dates_and_complex_numbers_are_rejected_as_features_and_degrees(kind):
    values, D = UNREAL[kind], np.full((2, 2), 0.5)
    with pytest.raises(DataError):
        MeanDistribution().fit(values, D)
    with pytest.raises(DataError):
        MeanDistribution().fit(D, D).predict(values)
    with pytest.raises(DataError):
        check_numbers(values, name="D")


@pytest.mark.parametrize(
    "weights",
    [
        np.array([1 + 1j, 1]),
        [1j, 1],
        np.array([1, 2], dtype="m8[s]"),
        np.array(["2020", "2021"], dtype="M8[Y]"),
        np.ma.masked_array([1.0, 2.0], [False, True]),
        pd.Series(pd.to_timedelta([1, 2], unit="s")),
        np.array([np.timedelta64(1, "s"), 1.0], dtype=object),
    ],
)
def test_weights_that_are_no_real_numbers_are_rejected(weights):
    D = np.full((2, 2), 0.5)
    with pytest.raises(SampleWeightError):
        MeanDistribution().fit(D, D, sample_weight=weights)


@pytest.mark.parametrize(
    "use",
    [
        lambda X, Y: PropagationEnhancer(n_neighbors=1).fit(X, Y),
        lambda X, Y: GLLE(n_neighbors=1).fit_transform(X, Y),
        lambda X, Y: LDLClassifier(MeanDistribution(), threshold=0.5).fit(X, Y),
        lambda X, Y: LDLClassifier(MeanDistribution()).fit(X, Y[:, 0]),
        lambda X, Y: SABFGS().fit(IterableRows([(X, np.ma.masked_array([[0.5, 0.5]] * 4, Y.mask))])),
    ],
    ids=["propagation", "enhancer", "classifier of sets", "classifier", "chunks"],
)
@pytest.mark.parametrize("which", ["features", "labels"])
def test_masked_cells_are_rejected_wherever_features_and_labels_enter(use, which):
    X, Y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 1.0]]), np.array([[1, 0], [0, 1], [1, 1], [0, 1]])
    X, Y = np.ma.masked_array(X, np.zeros_like(X)), np.ma.masked_array(Y, np.zeros_like(Y))
    use(X, Y)  # no cell is masked
    (X if which == "features" else Y)[1, 0] = np.ma.masked
    with pytest.raises(DataError, match=r"masked array with 1 masked cells, the first at \(1,"):
        use(X, Y)


def test_masked_features_of_a_dataset_are_rejected():
    with pytest.raises(DataError, match="X of a is a masked array"):
        Dataset("a", np.ma.masked_array(X, X[1, 1] == X), D)


def test_masked_arrays_without_masked_cells_pass():
    D = np.ma.masked_array(np.full((2, 2), 0.5))
    np.testing.assert_allclose(MeanDistribution().fit(D, D).predict(D), 0.5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_plain_arrays_are_checked_like_other_features(dtype):
    """A plain array takes a shorter way through the checks: it must record, forget, warn and reject the same."""
    X, D = np.array([[0.0, 1.0], [1.0, 3.0]], dtype=dtype), [[0.2, 0.8], [0.5, 0.5]]
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = MeanDistribution().fit(frame, D)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    model.fit(X, D)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    model.predict(X)
    with pytest.raises(exceptions.FeatureMismatchError, match="3 features"):
        model.predict(np.ones((1, 3), dtype=dtype))
    for bad in (np.nan, np.inf):
        with pytest.raises(exceptions.NonFiniteError, match="row 1"):
            model.predict(np.array([[0, 1], [bad, 1]], dtype=dtype))
        with pytest.raises(exceptions.NonFiniteError, match="row 1"):
            model.fit(np.array([[0, 1], [bad, 1]], dtype=dtype), D)
    large = np.full((2, 2), 3e38, dtype=dtype)  # finite, though the sum of float32 is not
    model.fit(large, D).predict(large)
    model.fit(pd.DataFrame(X, columns=[0, 1]), D).fit(X, D)
    model.predict(pd.DataFrame(X, columns=[1, 0]))  # the array had no names


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("model", [AAKNN(2), AAKNNCV(), SAIIS(max_iter=3)], ids=["AAKNN", "AAKNNCV", "SAIIS"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # three iterations are enough here
def test_sparse_matrices_mean_the_same_however_they_are_stored(model, kind):
    """Cells in several parts, out of order and with indices of 64 bits; the caller's matrix stays as it is."""
    X, D = make_distributions(30, 4, 3)
    expected = model.fit(kind(X), D).predict(kind(X))
    plain = kind(X)
    order = [place for first, end in pairwise(plain.indptr) for place in reversed(range(first, end))]
    halves, indices = np.repeat(plain.data[order] / 2, 2), np.repeat(plain.indices[order], 2)
    stored = kind((halves, indices, 2 * plain.indptr), shape=X.shape)
    stored.indices, stored.indptr = stored.indices.astype(np.int64), stored.indptr.astype(np.int64)
    np.testing.assert_allclose(stored.toarray(), X, rtol=1e-15)
    before = stored.data.copy(), stored.indices.copy(), stored.indptr.copy()
    np.testing.assert_allclose(model.fit(stored, D).predict(stored), expected, atol=1e-9)
    for array, kept in zip((stored.data, stored.indices, stored.indptr), before, strict=True):
        np.testing.assert_array_equal(array, kept)
        assert array.dtype == kept.dtype


def test_a_sparse_cell_whose_parts_sum_to_infinity_is_rejected():
    X = sparse.csr_matrix((np.array([1e308, 1e308, 1.0]), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    with np.errstate(over="ignore"), pytest.raises(exceptions.NonFiniteError, match="infinity"):
        AAKNN(1).fit(X, [[0.5, 0.5], [0.2, 0.8]])


# Numbers whose squares overflow, and tables all of whose squares vanish

SQUARING = [SABFGS(), SABFGS(fit_intercept=True), SABFGSCV(), PTBayes(), PTBayes("diag")]
FORMS = {"array": np.asarray, "sparse": sparse.csr_matrix, "table": pd.DataFrame}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("scale", "size"), [(1e160, "large"), (-1e200, "large"), (1e-160, "small")])
def test_features_whose_squares_overflow_or_vanish_are_rejected(form, scale, size):
    with pytest.raises(DataError, match=f"whose squares are too {size} .*Multiply X by a power of ten") as caught:
        MeanDistribution().fit(FORMS[form](scale * X), D)
    if size == "large":
        row, column = np.unravel_index(X.argmax(), X.shape)
        assert f"(row {row}, column {column})" in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
def test_new_rows_may_be_small_but_not_huge(form):
    model = MeanDistribution().fit(FORMS[form](X), D)
    assert model.predict(FORMS[form](1e-300 * X)).shape == D.shape
    assert model.predict(FORMS[form](1e150 * (X / X.max()))).shape == D.shape  # the largest is still accepted
    with pytest.raises(DataError, match="too large for double precision"):
        model.predict(FORMS[form](1e151 * X))


@pytest.mark.parametrize("model", SQUARING, ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_huge_rows_in_chunks_are_rejected_likewise(model, form):
    X, D = make_distributions(n_samples=40)
    with pytest.raises(DataError, match=r"whose squares are too large .*Multiply X by a power of ten"):
        model.fit(ArrayRows(form(1e160 * X), D, chunk_rows=15))
    X[:15] *= 1e-200  # the squares of one chunk may vanish
    assert np.isfinite(model.fit(ArrayRows(form(X), D, chunk_rows=15)).predict(X)).all()


@pytest.mark.parametrize(("scale", "size"), [(1e160, "large"), (1e-160, "small")])
def test_extreme_arrays_on_a_device_are_rejected_likewise(scale, size, monkeypatch):
    xp = pytest.importorskip("array_api_strict")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True), pytest.raises(DataError, match=f"whose squares are too {size}"):
        MeanDistribution().fit(xp.asarray(scale * X), xp.asarray(D))


@pytest.mark.parametrize("model", SQUARING, ids=repr)
def test_a_column_of_tiny_numbers_and_a_table_of_zeros_pass(model):
    X, D = make_distributions(n_samples=40)
    expected = model.fit(np.column_stack([X, np.zeros(40)]), D).predict(np.column_stack([X, np.zeros(40)]))
    tiny = np.column_stack([X, np.full(40, 1e-300)])
    np.testing.assert_allclose(model.fit(tiny, D).predict(tiny), expected, atol=1e-9)
    assert np.isfinite(model.fit(np.zeros((40, 2)), D).predict(np.zeros((3, 2)))).all()


@pytest.mark.filterwarnings("ignore:SAIIS stopped at max_iter=20")  # any number of iterations can be compared
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_scaling_by_iterations_takes_any_unit(scale):
    X, D = make_distributions(n_samples=40)
    expected = SAIIS(max_iter=20, tol=0).fit(abs(X), D).predict(abs(X))
    found = SAIIS(max_iter=20, tol=0).fit(scale * abs(X), D).predict(scale * abs(X))
    np.testing.assert_allclose(found, expected, atol=1e-9)
