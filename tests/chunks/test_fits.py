"""Estimators on rows in chunks: the same predictions as in memory, repeated to the last digit."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from skldl import AAKNN, SABFGS, SABFGSCV, SAIIS, AutoLDL, MeanDistribution, PTBayes, RandomForestLDL, SmoothLossLDL
from skldl.chunks import ArrayRows, FolderJournal, IterableRows, ParquetRows, RecordedRows
from skldl.exceptions import DataError, SampleWeightError
from skldl.maxent import _moments, _sabfgscv
from skldl.maxent._folds import Folds  # a fit that shows whether its folds are independent takes minutes

FORMS = ("dense", "single", "sparse")
MODELS = {
    "mean": MeanDistribution(),
    "paper": SABFGS(),
    "intercept": SABFGS(1e-3, fit_intercept=True),
    "bfgs": SABFGS(1e-3, fit_intercept=True, solver="bfgs"),
    "cv": SABFGSCV([1e-3, 1e-1, 10.0], cv=3),
    "cv raw": SABFGSCV([0.0, 1e-3, 1.0], cv=3, scaling="raw", one_standard_error=True),
    "iis": SAIIS(max_iter=20),
    "iis accelerated": SAIIS(max_iter=8, accelerate=True, init="eye"),
    "tied": PTBayes(),
    "full": PTBayes("full"),
    "diag": PTBayes("diag"),
}

LONGER = ("bfgs", "cv raw", "iis accelerated", "tied", "mean")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, marks=pytest.mark.slow if form != "dense" and name in LONGER else ())
        for name in MODELS
        for form in FORMS
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some models end at max_iter
@pytest.mark.filterwarnings("ignore:SABFGS without intercept")  # the features are centred
def test_predictions_are_those_in_memory(name, form, table, as_form):
    X, D, weight = table(200)
    X = as_form(X, form)
    for w in (None, weight):
        expected = MODELS[name].fit(X, D, w)
        found = clone(expected).fit(ArrayRows(X, D, w, chunk_rows=77))
        np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=0, atol=1e-9)
        if hasattr(expected, "coef_"):
            np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-7)
            assert found.n_iter_ == expected.n_iter_
    again = clone(expected).fit(ArrayRows(X, D, weight, chunk_rows=77))
    np.testing.assert_array_equal(again.predict(X), found.predict(X))


@pytest.mark.slow
def test_cross_validation_scores_are_those_in_memory(table):
    X, D, weight = table(300)
    for w in (None, weight):
        expected, rows = SABFGSCV().fit(X, D, w), ArrayRows(X, D, w, chunk_rows=77)
        found = SABFGSCV().fit(rows)
        np.testing.assert_allclose(found.cv_scores_, expected.cv_scores_, atol=1e-12)
        assert (found.alpha_, found.scaling_) == (expected.alpha_, expected.scaling_)
        assert rows.n_passes < 60  # 170 fits share them


def test_threads_change_no_digit(table):
    X, D, weight = table(5000, 4, 40)  # several blocks
    for form in (X, X.astype(np.float32)):
        expected = SABFGS(1e-3, fit_intercept=True).fit(form, D, weight)
        found = SABFGS(1e-3, fit_intercept=True, n_jobs=3).fit(form, D, weight)
        np.testing.assert_array_equal(found.coef_, expected.coef_)
    D = np.where(np.random.default_rng(0).random(D.shape) < 0.02, np.nan, D)
    models = [SABFGS(1e-2, missing="degrees", max_iter=3, n_jobs=n_jobs) for n_jobs in (None, 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # three steps
        np.testing.assert_array_equal(*(model.fit(X, D).coef_ for model in models))


def test_few_passes(table):
    X, D, _ = table(400)
    rows = ArrayRows(X, D, chunk_rows=100)
    model = SABFGS(1e-3, fit_intercept=True).fit(rows)
    assert rows.n_passes == model.n_evaluations_ + 1
    rows = ArrayRows(np.abs(X), D, chunk_rows=100)
    model = SABFGS().fit(rows)
    assert rows.n_passes == model.n_evaluations_ + 1  # the way to the mean costs none of its own
    rows = ArrayRows(X, D)
    PTBayes().fit(rows)
    assert rows.n_passes == 2


def test_few_rows_of_many_features_are_fitted_as_in_memory(table):
    X, D, weight = table(40, 60)
    for rows in (ArrayRows(X, D, weight, chunk_rows=9), IterableRows([(X[:9], D[:9]), (X[9:], D[9:])])):
        w = weight if isinstance(rows, ArrayRows) else None
        for model in (SABFGS(1e-3, fit_intercept=True), SABFGSCV(cv=3)):
            expected = model.fit(X, D, w).predict(X)
            np.testing.assert_array_equal(clone(model).fit(rows).predict(X), expected)


def test_many_columns_take_the_diagonal(monkeypatch, table):
    monkeypatch.setattr(_moments, "MAX_MATRIX", 4)
    X, D, _ = table(300)
    for form in (X, sparse.csr_matrix(X)):
        for model in (SABFGS(1e-3, fit_intercept=True), SABFGSCV([1e-3, 0.1], cv=3)):
            expected = model.fit(form, D).predict(X)
            found = clone(model).fit(ArrayRows(form, D, chunk_rows=77)).predict(X)
            np.testing.assert_allclose(found, expected, atol=1e-9)
    plain = SABFGS(1e-2, whiten=False, fit_intercept=True)
    expected = plain.fit(X, D).predict(X)
    np.testing.assert_allclose(plain.fit(ArrayRows(X, D, chunk_rows=77)).predict(X), expected, atol=1e-7)


def test_plain_search_and_warm_start(table):
    X, D, _ = table(300, 3)
    X = X[:, 1:]
    plain = SABFGS(1e-2, whiten=False, fit_intercept=True, init="eye")
    expected = plain.fit(X, D).predict(X)
    np.testing.assert_allclose(plain.fit(ArrayRows(X, D, chunk_rows=77)).predict(X), expected, atol=1e-7)
    warm = SABFGS(1e-2, fit_intercept=True, warm_start=True).fit(ArrayRows(X, D, chunk_rows=77))
    rows = ArrayRows(X, D, chunk_rows=77)
    assert warm.fit(rows).n_iter_ <= 1
    with pytest.raises(ValueError, match="warm_start=True, but the fit before had 2 features"):
        warm.fit(ArrayRows(X[:, :1], D))


@pytest.mark.parametrize("scale", [1e90, 1e-90])
def test_weights_of_any_size(scale, table):
    X, D, weight = table(200)
    for model in (SABFGS(1e-3, fit_intercept=True), PTBayes(), MeanDistribution()):
        expected = model.fit(X, D, weight * scale).predict(X)
        found = clone(model).fit(ArrayRows(X, D, weight * scale, chunk_rows=50)).predict(X)
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_tiny_weight_before_an_ordinary_one(table):
    X, D, _ = table(40)
    weight = np.where(np.arange(40) < 20, 1e-90, 1.0)
    found = MeanDistribution().fit(ArrayRows(X, D, weight, chunk_rows=10)).distribution_
    np.testing.assert_allclose(found, D[20:].mean(axis=0), rtol=1e-14)


@pytest.mark.parametrize("weight", [1e101, 1e-101])
def test_weights_far_from_one_are_rejected(weight, table):
    X, D, _ = table(40)
    weights = np.where(np.arange(40) == 13, weight, 1.0)
    with pytest.raises(SampleWeightError, match=r"row 13 is 1e[+-]101, more than a factor of 1e\+100 from 1") as raised:
        MeanDistribution().fit(ArrayRows(X, D, weights, chunk_rows=10))
    assert raised.value.row == 13


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a few iterations
def test_iterative_scaling_with_roots_far_away():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * np.logspace(-1, 1, 60)[:, None]
    D = rng.dirichlet(np.ones(3), size=60)
    model = SAIIS(max_iter=3, init=rng.normal(size=(3, 3)))
    for form in (X, sparse.csr_matrix(X)):
        expected, rows = clone(model).fit(form, D), ArrayRows(form, D, chunk_rows=17)
        np.testing.assert_allclose(clone(model).fit(rows).coef_, expected.coef_, rtol=1e-9)
        assert rows.n_passes > 10  # Newton's method over all rows
    few_sums = (rng.random((60, 3)) < 0.5).astype(float)
    for form in (np.eye(3)[rng.integers(0, 3, 60)], few_sums, -few_sums, few_sums * rng.choice([-1, 1], (60, 3))):
        found = SAIIS(max_iter=4).fit(ArrayRows(form, D, chunk_rows=17)).coef_
        np.testing.assert_allclose(found, SAIIS(max_iter=4).fit(form, D).coef_, atol=1e-12)
    zeros = ArrayRows(np.zeros((60, 2)), D, chunk_rows=17)
    np.testing.assert_allclose(SAIIS().fit(zeros).predict(np.zeros((1, 2))), 1 / 3)


def test_a_sparse_column_whose_variance_is_lost_is_rejected(table):
    X, D, _ = table(100)
    X = X.copy()
    X[:, 3] = 1e8 + np.arange(100) * 1e-4
    with pytest.raises(ValueError, match="Column 3 of the sparse X"):
        SABFGS(1e-3, fit_intercept=True).fit(ArrayRows(sparse.csr_matrix(X), D, chunk_rows=30))
    X[0, 3] = 0.0  # not stored, in a row of tiny weight
    weight = np.ones(100)
    weight[0] = 1e-10
    with pytest.raises(ValueError, match=r"Column 3 of the sparse X .* values from 0 to 1"):
        SABFGS(1e-3, fit_intercept=True).fit(ArrayRows(sparse.csr_matrix(X), D, weight, chunk_rows=30))


def test_warnings_are_those_in_memory(table):
    X, D, _ = table(200)
    X = X[:, 3:] - X[:, 3:].mean(axis=0)
    with pytest.warns(UserWarning, match="SABFGS without intercept"):
        SABFGS().fit(ArrayRows(X, _skewed(D), chunk_rows=60))


def _skewed(D):
    skewed = D * [1, 1e-3, 1e-3, 1e-3]
    return skewed / skewed.sum(axis=1, keepdims=True)


def test_folds_are_those_of_scikit_learn(table):
    X, D, _ = table(103)
    expected = SABFGSCV(cv=KFold(5, shuffle=True, random_state=0)).fit(X, D)
    for arguments in ((X, D), (ArrayRows(X, D, chunk_rows=40),)):
        np.testing.assert_allclose(SABFGSCV(cv=5).fit(*arguments).cv_scores_, expected.cv_scores_, rtol=1e-9)


def test_folds_of_a_hash_are_independent_and_of_about_the_same_size():

    hashed = Folds(5)
    found = hashed.of(0, 100_000)
    np.testing.assert_array_equal(found[1234:2000], hashed.of(1234, 766))
    sizes = np.bincount(found, minlength=5)
    assert abs(sizes - 20_000).max() < 4 * np.sqrt(100_000 * 0.2 * 0.8)
    both = np.bincount(found[:-1] * 5 + found[1:], minlength=25)  # neighbours fall independently
    assert abs(both - 4000).max() < 5 * np.sqrt(4000)


def test_searches_that_take_too_much_memory_do_not_run_side_by_side(monkeypatch, table):
    X, D, _ = table(60)
    model = SABFGSCV([1e-3, 0.1], cv=3, scaling="raw")
    together, apart = ArrayRows(X, D, chunk_rows=77), ArrayRows(X, D, chunk_rows=77)
    expected = clone(model).fit(together)
    one_by_one = clone(model).fit(ArrayRows(X, D, chunk_rows=2))  # no row of some folds in a chunk
    np.testing.assert_allclose(one_by_one.cv_scores_, expected.cv_scores_, atol=1e-12)
    monkeypatch.setattr(_sabfgscv, "MAX_NUMBERS", (42 * 24 + 36) * 2)  # two of the three folds
    found = clone(model).fit(apart)
    np.testing.assert_allclose(found.cv_scores_, expected.cv_scores_, rtol=1e-12)
    assert apart.n_passes > together.n_passes


def test_cross_validation_with_hashed_folds(monkeypatch, table):
    X, D, _ = table(300)
    expected = SABFGSCV(cv=3).fit(X, D)
    monkeypatch.setattr(_sabfgscv, "MAX_SHUFFLED", 10)
    found = SABFGSCV(cv=3).fit(ArrayRows(X, D, chunk_rows=77))
    np.testing.assert_allclose(found.cv_scores_.mean(axis=1), expected.cv_scores_.mean(axis=1), rtol=0.1)
    # one fold checked by hand: held out, and scored at the largest alpha, the mean distribution
    folds = Folds(3).of(0, 300)
    mean = D[folds != 0].mean(axis=0)
    largest = int(np.argmax(found.alphas_))
    divergence = (D[folds == 0] * np.log(D[folds == 0] / mean)).sum(axis=1).mean()
    assert found.cv_scores_[largest, 0] == pytest.approx(divergence, rel=1e-3)


def test_what_is_not_supported_for_rows_in_chunks_is_an_error(table):
    X, D, _ = table(30)
    rows = ArrayRows(X, D)
    for model in (AAKNN(), RandomForestLDL(), AutoLDL(), SmoothLossLDL()):
        with pytest.raises(DataError, match=f"{type(model).__name__} cannot learn from rows in chunks") as raised:
            model.fit(rows)
        assert set(re.findall(r"\w+", str(raised.value))) >= {
            "MeanDistribution",
            "PTBayes",
            "SABFGS",
            "SABFGSCV",
            "SAIIS",
        }
    with pytest.raises(DataError, match="leave y and sample_weight out"):
        SABFGS().fit(rows, D)
    with pytest.raises(DataError, match="holds no label distributions"):
        SABFGS().fit(ArrayRows(X))
    with pytest.raises(DataError, match="groups need all rows"):
        SABFGSCV().fit(rows, groups=np.arange(30))
    with pytest.raises(DataError, match="a number of folds"):
        SABFGSCV(cv=[([0], [1])]).fit(rows)
    with pytest.raises(ValueError, match="cv=40 folds need at least 40 rows"):
        SABFGSCV(cv=40).fit(rows)
    with pytest.raises(DataError, match="resample='multinomial' needs all rows"):
        PTBayes(resample="multinomial").fit(rows)
    with pytest.raises(ValueError, match="alpha"):
        SABFGS(alpha=-1).fit(rows)


def test_a_failed_fit_leaves_the_model_as_it_was(table):
    X, D, _ = table(60)
    model = SABFGS(1e-3, fit_intercept=True).fit(X, D)
    coef, names = model.coef_, model.label_names_
    wrong = D.copy()
    wrong[50] *= 2
    with pytest.raises(DataError, match="Row 50"):
        model.fit(ArrayRows(X[:, :3], wrong, chunk_rows=20))
    assert model.coef_ is coef
    assert model.label_names_ is names
    assert model.n_features_in_ == 6


def test_an_interrupted_fit_resumes(table, tmp_path):
    X, D, weight = table(300)

    class Killed(Exception):
        pass

    for number, model in enumerate((SABFGS(1e-3, fit_intercept=True), SABFGSCV([1e-3, 0.1], cv=3), SAIIS(max_iter=5))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # five iterations of SAIIS
            whole = ArrayRows(X, D, weight, chunk_rows=77)
            expected = model.fit(whole).coef_
            folder = tmp_path / str(number)

            def stop_at_third(passes, replayed):
                if passes == 3 and not replayed:
                    raise Killed

            rows = RecordedRows(ArrayRows(X, D, weight, chunk_rows=77), folder, on_pass=stop_at_third)
            with pytest.raises(Killed):
                clone(model).fit(rows)
            seen = []
            again = RecordedRows(
                ArrayRows(X, D, weight, chunk_rows=77), folder, on_pass=lambda *pair, seen=seen: seen.append(pair)
            )
            found = clone(model).fit(again)
            np.testing.assert_array_equal(found.coef_, expected)
            assert [number for number, replayed in seen if replayed] == [1, 2, 3]
            assert again.rows.n_passes == whole.n_passes - 3
            (folder / "pass-00002.npz").write_bytes(b"damaged")
            other = RecordedRows(ArrayRows(X, D, weight, chunk_rows=77), folder)
            np.testing.assert_array_equal(clone(model).fit(other).coef_, expected)
            assert other.rows.n_passes == 1  # the damaged one alone
            changed = RecordedRows(ArrayRows(X, D, weight, chunk_rows=77), folder, fingerprint="other data")
            clone(model).fit(changed)
            assert changed.rows.n_passes == whole.n_passes
            changed.journal.clear()
            assert not list(folder.iterdir())


def test_a_damaged_record_counts_as_none(tmp_path):
    journal = FolderJournal(tmp_path)
    journal.put(1, "key", (np.arange(5.0), 3.0))
    file = tmp_path / "pass-00001.npz"
    content = file.read_bytes()
    for length in range(0, len(content), 7):
        file.write_bytes(content[:length])
        assert journal.get(1) is None
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        found = journal.get(1)
        if found is not None:  # it hit what nobody reads, such as the date of a member
            assert found[0] == "key"
            np.testing.assert_array_equal(found[1][0], np.arange(5.0))
            assert found[1][1:] == (3.0,)
    np.savez(file, np.array("key"), np.arange(5.0), 3.0)  # without the number of sums
    assert journal.get(1) is None
    file.write_bytes(content)
    assert journal.get(1) is not None
    assert journal.get(2) is None


def test_progress_counts_passes_and_rows(table, tmp_path):
    X, D, _ = table(100)
    for make in (lambda rows: rows, lambda rows: RecordedRows(rows, tmp_path)):
        seen = []
        rows = make(ArrayRows(X, D, chunk_rows=40))
        rows.progress = lambda passes, n_rows, seen=seen: seen.append((passes, n_rows))
        model = PTBayes().fit(rows)
        assert model.predict(rows).shape == (100, 4)
        assert rows.n_rows == 100
        assert seen == [(1, 40), (1, 80), (1, 100), (2, 40), (2, 80), (2, 100)]
    with pytest.raises(DataError, match="not a source of rows"):
        RecordedRows(X, tmp_path)


def test_fits_from_parquet_equal_those_from_arrays(table, parquet_folder):
    X, D, weight = table(250)
    rows = ParquetRows(parquet_folder(X, D, weight), labels="r_*", weight="w", batch_rows=60)
    for model in (SABFGS(1e-3, fit_intercept=True), SABFGSCV([0.01, 0.1], cv=3), PTBayes("full")):
        expected = model.fit(X, D, weight).predict(X)
        found = clone(model).fit(rows)
        np.testing.assert_allclose(found.predict(rows), expected, atol=1e-9)
        assert list(found.feature_names_in_) == [f"x{k}" for k in range(6)]
