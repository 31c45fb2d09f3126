"""`DirichletSpread`: the concentration of the data is found, draws have the right moments, intervals their coverage."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import softmax

from skldl import SABFGS, BaseLDL, MeanDistribution
from skldl.exceptions import DataError, LabelMismatchError, ParameterError
from skldl.testing import check_estimator
from skldl.uncertainty import DirichletSpread, coverage_curve

WEIGHTS = np.random.default_rng(9).normal(size=(4, 3))


class KnownMean(BaseLDL):
    """Predicts the mean that the rows were drawn around."""

    def _fit(self, X, D, sample_weight):
        pass

    def _predict(self, X):
        return softmax(np.asarray(X) @ WEIGHTS, axis=1)


def draw(seed, n_rows, concentration=20.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    tau = np.broadcast_to(concentration(X) if callable(concentration) else concentration, n_rows)
    D = np.array([rng.dirichlet(t * p) for t, p in zip(tau, softmax(X @ WEIGHTS, axis=1), strict=True)])
    return X, D


def test_common_checks():
    check_estimator(DirichletSpread(SABFGS(alpha=1e-3), random_state=0))


def test_likelihoods_are_those_of_scipy():
    rng = np.random.default_rng(0)
    X, D = draw(0, 200)
    model = DirichletSpread(KnownMean(), concentration="features", random_state=0).fit(X, D)
    P, tau = model.predict(X[:6]), model.predict_concentration(X[:6])
    expected = [stats.dirichlet.logpdf(d, t * p) for d, t, p in zip(D, tau, P, strict=False)]
    np.testing.assert_allclose(model.log_likelihood(X[:6], D[:6]), expected, rtol=1e-10)
    counts = rng.integers(0, 5, size=(6, 3)) + np.array([1, 0, 0])
    known = [stats.dirichlet_multinomial.logpmf(n, t * p, n.sum()) for n, t, p in zip(counts, tau, P, strict=True)]
    coefficient = stats.multinomial(counts.sum(axis=1), np.full(3, 1 / 3)).logpmf(counts)
    coefficient = coefficient + counts.sum(axis=1) * np.log(3)
    np.testing.assert_allclose(model.log_likelihood(X[:6], counts=counts) + coefficient, known, rtol=1e-8)


def test_columns_of_distributions_and_votes_are_matched_by_name():
    X, D = draw(0, 100)
    votes = np.random.default_rng(0).multinomial(9, D)
    labels, counts = (pd.DataFrame(table, columns=["x", "y", "z"]) for table in (D, votes))
    swapped, swapped_counts = labels[["z", "x", "y"]], counts[["z", "x", "y"]]
    model = DirichletSpread(SABFGS(alpha=1e-3), random_state=0).fit(X, labels, counts=counts)
    again = DirichletSpread(SABFGS(alpha=1e-3), random_state=0).fit(X, labels, counts=swapped_counts)
    assert again.concentration_ == model.concentration_
    np.testing.assert_allclose(model.log_likelihood(X, swapped), model.log_likelihood(X, D), rtol=1e-10)
    np.testing.assert_array_equal(model.log_likelihood(X, counts=swapped_counts), model.log_likelihood(X, counts=votes))
    assert model.coverage(X, swapped).error == pytest.approx(model.coverage(X, D).error)
    for options in ({"y": D[:, ::-1]}, {"counts": votes}):
        options = {name: pd.DataFrame(table, columns=["x", "y", "w"]) for name, table in options.items()}
        with pytest.raises(LabelMismatchError, match="label 'z'"):
            model.log_likelihood(X, **options)


@pytest.mark.parametrize("n_votes", [None, 8])
def test_the_model_of_the_concentration_is_at_its_optimum(n_votes):
    """The penalised likelihood has no slope in the coefficients."""
    X, D = draw(0, 300, lambda X: np.exp(3.0 + 0.8 * X[:, 0]))
    counts = None if n_votes is None else np.random.default_rng(1).multinomial(n_votes, D)
    truth = {"y": D} if counts is None else {"counts": counts}
    model = DirichletSpread(KnownMean(), concentration="features", random_state=0)
    model.fit(X, D if counts is None else counts / n_votes, counts=counts)
    assert np.isfinite(model.penalty_)
    end = model.log_coef_.copy()

    def objective(w):
        model.log_coef_ = w
        return model.log_likelihood(X, **truth).mean() - model.penalty_ * (w[1:] @ w[1:])

    for step in 1e-4 * np.eye(len(end)):
        assert abs(objective(end + step) - objective(end - step)) / 2e-4 < 1e-3


def test_the_concentration_is_found_from_distributions_and_from_votes():
    X, D = draw(0, 1500, 25.0)
    model = DirichletSpread(KnownMean(), random_state=0).fit(X, D)
    assert model.concentration_ == pytest.approx(25, rel=0.06)
    np.testing.assert_allclose(model.predict_concentration(X), model.concentration_)
    rng = np.random.default_rng(1)
    counts = rng.multinomial(8, D)
    by_votes = DirichletSpread(KnownMean(), random_state=0).fit(X, counts / 8, counts=counts)
    assert by_votes.concentration_ == pytest.approx(25, rel=0.15)
    shares_alone = DirichletSpread(KnownMean(), random_state=0).fit(X, counts / 8)
    assert shares_alone.concentration_ < 15  # the noise of the votes is taken for scatter


def test_the_concentration_depends_on_features_where_the_data_do():
    def tau(X):
        return np.exp(3.0 + 0.8 * X[:, 0])

    X, D = draw(0, 1200, tau)
    model = DirichletSpread(KnownMean(), concentration="features", random_state=0).fit(X, D)
    X_new, D_new = draw(1, 600, tau)
    assert np.isfinite(model.penalty_)
    assert np.corrcoef(np.log(model.predict_concentration(X_new)), np.log(tau(X_new)))[0, 1] > 0.95
    constant = DirichletSpread(KnownMean(), random_state=0).fit(X, D)
    assert model.log_likelihood(X_new, D_new).mean() > constant.log_likelihood(X_new, D_new).mean() + 0.05
    assert model.log_likelihood_ > constant.log_likelihood_
    thin = DirichletSpread(SABFGS(alpha=1e-3), concentration="features", random_state=0)
    dense, sparse_ = (thin.fit(table, D).predict_concentration(table) for table in (X, sparse.csr_matrix(X)))
    np.testing.assert_allclose(dense, sparse_, rtol=1e-3)


def test_a_constant_is_chosen_where_nothing_depends_on_the_features():
    constants = [
        DirichletSpread(KnownMean(), concentration="features", random_state=0).fit(*draw(seed, 200)).penalty_ >= 0.1
        for seed in range(5)
    ]
    assert np.mean(constants) >= 0.8


def test_draws_have_the_mean_and_the_variance_of_the_model():
    X, D = draw(0, 300, 10.0)
    model = DirichletSpread(KnownMean(), random_state=0).fit(X, D)
    draws = model.sample(X[:3], n_draws=300_000, random_state=0)
    P = model.predict(X[:3])
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)
    np.testing.assert_allclose(draws.mean(axis=0), P, atol=0.002)
    np.testing.assert_allclose(draws.var(axis=0), P * (1 - P) / (model.concentration_ + 1), rtol=0.02)
    np.testing.assert_array_equal(model.sample(X, random_state=0), model.sample(X, random_state=0))
    with pytest.raises(ParameterError, match="n_draws"):
        model.sample(X, 0)


def test_tiny_parameters_give_draws_without_nan():
    X, D = draw(0, 60)
    D = np.eye(3)[D.argmax(axis=1)]
    model = DirichletSpread(MeanDistribution(), floor=1e-100, random_state=0).fit(X, D)
    draws = model.sample(X, n_draws=50, random_state=0)
    assert np.isfinite(draws).all()
    assert draws.max(axis=2).mean() > 0.95


def test_intervals_and_their_curve_have_the_coverage_of_their_level():
    X, D = draw(0, 1000)
    model = DirichletSpread(SABFGS(alpha=1e-4, fit_intercept=True), random_state=0).fit(X, D)
    X_new, D_new = draw(1, 1500)
    lower, upper = model.predict_interval(X_new, 0.9)
    assert ((lower <= D_new) & (D_new <= upper)).mean() == pytest.approx(0.9, abs=0.02)
    curve = model.coverage(X_new, D_new)
    assert curve.error < 0.02
    assert curve.observed[list(curve.levels).index(0.9)] == pytest.approx(
        ((lower <= D_new) & (D_new <= upper)).mean(), abs=1e-3
    )
    assert model.held_out_curve_.error < 0.03
    counts = np.random.default_rng(2).multinomial(15, D_new)
    assert model.coverage(X_new, counts=counts).error < 0.03
    assert model.log_likelihood(X_new, counts=counts).shape == (1500,)


def test_a_wrong_concentration_shows_in_the_curve():
    X, D = draw(0, 800, 5.0)
    model = DirichletSpread(KnownMean(), random_state=0).fit(X, D)
    too_narrow = model.coverage(*draw(1, 800, 2.0))
    too_wide = model.coverage(*draw(1, 800, 60.0))
    assert (too_narrow.observed < too_narrow.levels).all()
    assert (too_wide.observed > too_wide.levels).all()
    assert min(too_narrow.error, too_wide.error) > 0.1


def test_intervals_cover_few_votes():
    X, D = draw(0, 4000, 8.0)
    counts = np.random.default_rng(0).multinomial(4, D)
    model = DirichletSpread(KnownMean(), random_state=0).fit(X, counts / 4, counts=counts)
    assert model.coverage(X, counts=counts).error < 0.01


def test_the_floor_replaces_zeros_alone():
    D = np.array([[0.0, 0.2, 0.8], [0.005, 0.195, 0.8]])
    X, _ = draw(0, 2)
    model = DirichletSpread(KnownMean(), floor=0.01, n_folds=2, random_state=0).fit(X, D)
    filled = [[0.01 / 1.01, 0.2 / 1.01, 0.8 / 1.01], [0.005, 0.195, 0.8]]
    expected = [
        stats.dirichlet.logpdf(d, model.concentration_ * p) for d, p in zip(filled, model.predict(X), strict=True)
    ]
    np.testing.assert_allclose(model.log_likelihood(X, D), expected)


def test_curve_of_uniform_ranks_is_the_diagonal():
    curve = coverage_curve((np.arange(1000) + 0.5) / 1000)
    np.testing.assert_allclose(curve.observed, curve.levels, atol=1e-3)


def test_bad_arguments():
    X, D = draw(0, 30)
    model = DirichletSpread(MeanDistribution(), random_state=0).fit(X, D)
    with pytest.raises(DataError, match="either y"):
        model.log_likelihood(X)
    with pytest.raises(DataError, match="shape"):
        model.log_likelihood(X, D[:3])
    with pytest.raises(DataError, match="at least zero"):
        model.fit(X, D, counts=-D)
    with pytest.raises(ParameterError, match="level"):
        model.predict_interval(X, 1.0)
    with pytest.raises(ParameterError, match="constant"):
        DirichletSpread(MeanDistribution(), concentration="x").fit(X, D)
