"""PTBayes against scikit-learn's discriminants on copies, naive Bayes on weights, scipy's densities, and odd data."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from skldl import PTBayes
from skldl.chunks import ArrayRows
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions

DRAWS = "the draws differ"


@pytest.mark.parametrize("covariance", ["full", "diag", "tied"])
def test_passes_the_common_checks(covariance):
    check_estimator(PTBayes(covariance))


def test_passes_the_common_checks_when_it_draws():
    expected = {
        "check_sample_weight_equivalence_on_dense_data": DRAWS,
        "check_sample_weight_equivalence_on_sparse_data": DRAWS,
        "check_label_permutation": DRAWS,
        "check_weight_two_is_row_twice": DRAWS,
        "check_odd_shapes": "shares among 120 draws differ from the degrees by more than 0.05",
    }
    check_estimator(PTBayes(resample="multinomial"), expected_failed_checks=expected)


def in_eighths(n_samples=60, n_features=3, n_labels=3):
    """Distributions in eighths, so that eight times each row holds whole numbers of copies."""
    X, D = make_distributions(n_samples, n_features, n_labels)
    counts = np.stack([np.random.default_rng(i).multinomial(8, d) for i, d in enumerate(D)])
    copies = np.repeat(np.tile(np.arange(n_samples)[:, None], n_labels).ravel(), counts.ravel())
    labels = np.repeat(np.tile(np.arange(n_labels), n_samples), counts.ravel())
    return X, counts / 8, X[copies], labels


def test_full_is_quadratic_discriminant_analysis_on_copies():
    X, D, X_copies, labels = in_eighths()
    oracle = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X_copies, labels)
    # It divides by N − 1 (in some versions), we by N: take the ratio out of its fitted scalings.
    ratio = [c[0, 0] / X_copies[labels == j, 0].var() for j, c in enumerate(oracle.covariance_)]
    oracle.scalings_ = [scaling / r for scaling, r in zip(oracle.scalings_, ratio, strict=True)]
    P = PTBayes("full", pooling=0, reg=0).fit(X, D).predict(X)
    np.testing.assert_allclose(P, oracle.predict_proba(X), atol=1e-6)


def test_tied_is_linear_discriminant_analysis_on_copies():
    X, D, X_copies, labels = in_eighths()
    oracle = LinearDiscriminantAnalysis(solver="lsqr").fit(X_copies, labels)
    for model in (PTBayes("tied", reg=0), PTBayes("full", pooling=1, reg=0)):
        np.testing.assert_allclose(model.fit(X, D).predict(X), oracle.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_diag_is_naive_bayes_on_weighted_copies(form):
    X, D = make_distributions(60, 4, 3)
    weight = np.linspace(1, 3, 60)
    copies, labels = np.repeat(X, 3, axis=0), np.tile([0, 1, 2], 60)
    oracle = GaussianNB(var_smoothing=0.0).fit(copies, labels, (weight[:, None] * D).ravel())
    oracle.var_ += 0.1 * np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight).max()
    P = PTBayes("diag", pooling=0, reg=0.1).fit(form(X), D, weight).predict(form(X))
    np.testing.assert_allclose(P, oracle.predict_proba(X), atol=1e-10)


def test_the_formula_of_the_docstring_by_scipy_densities():
    X, D = make_distributions(50, 3, 4)
    weight = np.linspace(1, 2, 50)
    mass = weight[:, None] * D
    priors = mass.sum(axis=0) / mass.sum()
    means = mass.T @ X / mass.sum(axis=0)[:, None]
    own = np.stack([np.cov(X.T, aweights=m, bias=True) for m in mass.T])
    pooled = np.tensordot(priors, own, axes=1)
    ridge = 0.2 * np.diag(np.cov(X.T, aweights=weight, bias=True)).max() * np.eye(3)
    joint = np.column_stack(
        [
            p * stats.multivariate_normal(m, 0.7 * c + 0.3 * pooled + ridge).pdf(X)
            for p, m, c in zip(priors, means, own, strict=True)
        ]
    )
    model = PTBayes("full", pooling=0.3, reg=0.2).fit(X, D, weight)
    np.testing.assert_allclose(model.predict(X), joint / joint.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(model.priors_, priors)
    np.testing.assert_allclose(model.means_, means)


@pytest.mark.parametrize("covariance", ["full", "diag", "tied"])
def test_sparse_and_dense_features_mix(covariance):
    X, D = make_distributions(40, 5, 3)
    X[X < 0.5] = 0.0
    for fitted in (PTBayes(covariance).fit(X, D), PTBayes(covariance).fit(sparse.csr_matrix(X), D)):
        expected = PTBayes(covariance).fit(X, D).predict(X)
        np.testing.assert_allclose(fitted.predict(sparse.csr_matrix(X)), expected, atol=1e-10)
        np.testing.assert_allclose(fitted.predict(X), expected, atol=1e-10)


@pytest.mark.parametrize("covariance", ["full", "diag", "tied"])
@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_singular_data_give_a_finite_prediction(covariance, reg):
    X, D = make_distributions(15, 30, 4)
    X[:, :3] = 7.0  # constant features
    X[:, 5] = X[:, 6]
    D[:, 2] = 0.0
    D /= D.sum(axis=1, keepdims=True)
    model = PTBayes(covariance, reg=reg).fit(X, D)
    P = model.predict(np.vstack([X, X + 100, 1e6 * X]))
    assert np.isfinite(P).all()
    assert np.all(P[:, 2] == 0)
    assert model.priors_[2] == 0
    assert np.isnan(model.means_[2]).all()


@pytest.mark.parametrize("covariance", ["full", "diag", "tied"])
def test_a_far_origin_costs_no_digits_on_dense_features(covariance):
    X, D = make_distributions(400, 4, 3)
    X = np.round(X * 256) / 256 * 2**-12  # so that the shifted features are exact
    expected = PTBayes(covariance).fit(X, D).predict(X)
    np.testing.assert_allclose(PTBayes(covariance).fit(X + 2**26, D).predict(X + 2**26), expected, atol=1e-8)


def test_sparse_features_that_lose_all_digits_are_rejected():
    X, D = make_distributions(2000, 4, 3)
    X += 1e9
    X[:, 1] = X[:, 0]
    X[0] = 0.0  # so that no column can be centred
    weight = np.ones(2000)
    weight[0] = 2e-4
    with pytest.raises(ValueError, match="Raise reg"):
        PTBayes("full", reg=0).fit(sparse.csr_matrix(X), D, weight)


@pytest.mark.parametrize("covariance", ["full", "diag", "tied"])
def test_a_sparse_column_without_zeros_is_centred(covariance):
    X, D = make_distributions(60, 4, 3)
    X = np.round(X * 256) / 256
    X[X[:, 0] < 0.4, 0] = 0.0
    expected = PTBayes(covariance, reg=0.01).fit(X, D).predict(X)
    X[:, 1] += 1e7
    rows = sparse.csr_matrix(X)
    np.testing.assert_allclose(PTBayes(covariance, reg=0.01).fit(rows, D).predict(rows), expected, atol=1e-7)


@pytest.mark.parametrize("covariance", ["full", "diag", "tied"])
def test_a_sparse_column_whose_only_zero_weighs_nothing_is_rejected(covariance):
    X, D = make_distributions(60, 4, 3)
    X[:, 1] += 1e7
    X[0, 1] = 0.0
    weight = np.ones(60)
    weight[0] = 1e-30
    with pytest.raises(ValueError, match=r"Column 1 of the sparse X has mean 1e.07.*pass a dense X"):
        PTBayes(covariance).fit(sparse.csr_matrix(X), D, weight)
    assert np.isfinite(PTBayes(covariance).fit(X, D, weight).predict(X)).all()


def one_flag_missing():
    """Features of which the last is 1 in every row but one, and distributions."""
    X, D = make_distributions(100, 4, 3)
    X = np.column_stack([X, np.ones(100)])
    X[7, 4] = 0.0
    return X, D


def test_a_row_that_is_never_drawn_does_not_decide_how_a_column_is_measured():
    """With its zero a column would be measured from 0, where it has no digits."""
    X, D = make_distributions(100, 4, 3)
    X[:, 3] = 1e7 + np.arange(100)
    X[7, 2:] = 0.0
    weight = np.ones(100)
    weight[7] = 1e-9  # the chance that it is drawn is 3e-9
    model = PTBayes(resample="multinomial", random_state=0)
    expected = model.fit(X, D, weight).predict(X[:7])
    found = model.fit(sparse.csr_matrix(X), D, weight).predict(sparse.csr_matrix(X[:7]))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_column_of_nearly_one_value_keeps_its_digits():
    X, D = one_flag_missing()
    X[:, :4] *= 1e-3
    weight = np.ones(100)
    weight[7] = 1e-5
    expected = PTBayes("diag", reg=0, pooling=0).fit(X, D, weight).predict(X)
    rows = sparse.csr_matrix(X)
    found = PTBayes("diag", reg=0, pooling=0).fit(rows, D, weight).predict(rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("covariance", ["full", "diag", "tied"])
@pytest.mark.parametrize("value", [1.0, -0.3])
@pytest.mark.parametrize("tiny", [1e-6, 1e-8, 5e-9, 1e-12, 1e-30])
def test_a_sparse_column_of_one_value_and_a_zero_of_tiny_weight_is_fitted(covariance, value, tiny):
    X, D = one_flag_missing()
    X[:, :4] *= 1e-3  # the flag counts, too
    X[:, 4] *= value
    weight = np.ones(100)
    weight[7] = tiny
    rows = sparse.csr_matrix(X)
    for reg in (0.1, 0.0):
        expected = PTBayes(covariance, reg=reg).fit(X, D, weight)
        for data in ((rows, D, weight), (ArrayRows(rows, D, weight, chunk_rows=30),)):
            model = PTBayes(covariance, reg=reg).fit(*data)
            np.testing.assert_allclose(model.predict(rows), expected.predict(X), atol=1e-7)
            np.testing.assert_allclose(model.means_, expected.means_, atol=1e-15)


ROWS = np.arange(100.0)


@pytest.mark.parametrize("column", [1e7 + ROWS, np.where(ROWS == 50, 0.5, 1.0), np.where(ROWS == 50, 2.0, 1.0)])
def test_a_sparse_column_of_more_values_and_a_zero_of_tiny_weight_is_rejected(column):
    X, D = one_flag_missing()
    X[:, 4] *= column
    weight = np.ones(100)
    weight[[7, 50]] = 1e-12
    rows = sparse.csr_matrix(X)
    for data in ((rows, D, weight), (ArrayRows(rows, D, weight, chunk_rows=30),)):
        with pytest.raises(ValueError, match="Column 4 of the sparse X"):
            PTBayes().fit(*data)


def test_draws_tend_to_the_weights():
    X, D = make_distributions(5, 2, 3)
    X, D = np.tile(X, (4000, 1)), np.tile(D, (4000, 1))
    expected = PTBayes().fit(X, D).predict(X[:5])
    drawn = PTBayes(resample="multinomial", random_state=0).fit(X, D).predict(X[:5])
    np.testing.assert_allclose(drawn, expected, atol=0.02)
    assert np.abs(drawn - expected).max() > 1e-6


def test_labels_that_are_never_drawn_get_nothing():
    X, D = make_distributions(4, 2, 3)
    D = np.column_stack([D * (1 - 1e-9), np.full(4, 1e-9)])
    P = PTBayes(resample="multinomial", random_state=0).fit(X, D).predict(X)
    assert np.all(P[:, 3] == 0)


def test_prediction_of_more_rows_than_a_block():
    X, D = make_distributions(50, 3, 4)
    many = np.tile(X, (25_000, 1))  # 5,000,000 degrees
    for covariance in ("full", "diag", "tied"):
        model = PTBayes(covariance).fit(X, D)
        P = model.predict(many).reshape(-1, *D.shape)
        np.testing.assert_allclose(P, np.broadcast_to(model.predict(X), P.shape), rtol=0, atol=1e-14)


def test_a_thousand_labels():
    X, D = make_distributions(50, 3, 1000)
    for covariance in ("full", "diag", "tied"):
        P = PTBayes(covariance).fit(X, D).predict(X)
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("covariance", ["full", "diag", "tied"])
def test_path_is_that_of_single_fits(covariance):
    X, D = make_distributions(50, 3, 4)
    for param, values in (("reg", [1.0, 0.0, 0.3]), ("pooling", [0.0, 1.0, 0.3])):
        expected = [PTBayes(covariance).set_params(**{param: v}).fit(X, D).predict(X[:9]) for v in values]
        path = list(PTBayes(covariance).predict_path(X, D, X[:9], param=param, values=values))
        np.testing.assert_allclose(path, expected, atol=1e-13)
    assert len(list(PTBayes().predict_path(X, D, X, param="covariance", values=["full", "diag"]))) == 2
    with pytest.raises(ValueError, match="reg=-1"):
        list(PTBayes().predict_path(X, D, X, param="reg", values=[-1]))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"covariance": "round"}, "covariance='round'"),
        ({"resample": "twice"}, "resample='twice'"),
        ({"pooling": 1.5}, "pooling=1.5"),
        ({"reg": -0.1}, "reg=-0.1"),
        ({"reg": np.inf}, "reg=inf"),
    ],
)
def test_bad_parameters_are_rejected(params, message):
    with pytest.raises(ValueError, match=message):
        PTBayes(**params).fit(*make_distributions())


@pytest.mark.parametrize("dataset", ["Yeast_alpha", "SJAFFE", "SBU_3DFE", "Natural_Scene"])
def test_naive_bayes_with_defaults_is_no_worse_than_naive_bayes_on_drawn_examples(paper_data, dataset):
    X, D = paper_data(dataset)
    order = np.random.default_rng(0).permutation(len(X))
    test, train = order[: len(X) // 10], order[len(X) // 10 :]
    drawn = np.random.default_rng(1).choice(D[train].size, size=D[train].size, p=(D[train] / len(train)).ravel())
    rows, labels = np.divmod(drawn, D.shape[1])
    peer = GaussianNB(var_smoothing=0.1).fit(X[train][rows], labels)
    peer_score = kullback_leibler(D[test], peer.predict_proba(X[test]))
    assert kullback_leibler(D[test], PTBayes("diag").fit(X[train], D[train]).predict(X[test])) < peer_score


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_too_many_features_for_a_matrix_name_what_to_do(covariance):
    X = sparse.csr_matrix(([1.0, 2.0], ([0, 1], [0, 9_999_999])), shape=(2, 10_000_000))
    with pytest.raises(MemoryError, match=r"10,000,000 × 10,000,000 .* covariance='diag'"):
        PTBayes(covariance=covariance).fit(X, [[0.2, 0.8], [0.6, 0.4]])
