"""AABP: gradient against finite differences, sparse against dense, stopping, determinism, and better than the mean."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from skldl import AABP, MeanDistribution
from skldl.losses import resolve_loss
from skldl.metrics import earth_mover, kullback_leibler
from skldl.neural._network import ACTIVATIONS, loss_and_gradient  # an error in a gradient only slows the training
from skldl.simplex import softmax
from skldl.testing import CHECKS, check_estimator, make_distributions
from skldl.utils.scaling import standardize

SPLIT = "which rows are held out depends on their number"


def test_passes_the_common_checks():
    expected = {
        "check_sample_weight_equivalence_on_dense_data": SPLIT,
        "check_sample_weight_equivalence_on_sparse_data": SPLIT,
        "check_weight_two_is_row_twice": SPLIT,
    }
    check_estimator(AABP(), expected_failed_checks=expected)


@pytest.mark.parametrize("check", sorted(CHECKS.keys() - {"check_weight_two_is_row_twice"}))
def test_passes_our_checks_with_adam(check):
    CHECKS[check](AABP(8, solver="adam", max_iter=30, learning_rate=0.01))


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_passes_our_checks_without_held_out_rows(check):
    # Few iterations: rounding errors grow along the path of a network, so that long paths part.
    CHECKS[check](AABP(8, early_stopping=False, max_iter=10))


def make_problem(form=np.asarray, hidden=(5,), seed=0):
    random = np.random.RandomState(seed)
    X, D = make_distributions(30, 4, 3)
    X = np.where(X < 0.3, 0.0, X)
    sizes = [4, *hidden, 3]
    theta = random.normal(size=sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes)))
    features = standardize(form(X), X.mean(axis=0), X.std(axis=0))
    return theta, sizes, features, D, random.uniform(0.1, 2, size=30)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(5,), (6, 4, 3)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_gradient_against_finite_differences(activation, hidden, form, monkeypatch):
    monkeypatch.setattr("skldl.neural._network.BLOCK_ROWS", 7)
    theta, *rest = make_problem(form, hidden)
    arguments = (*rest, ACTIVATIONS[activation], 0.3)
    expected = optimize.approx_fprime(theta, lambda t: loss_and_gradient(t, *arguments)[0], 1e-7)
    np.testing.assert_allclose(loss_and_gradient(theta, *arguments)[1], expected, atol=2e-5, rtol=1e-4)


def test_sparse_products_are_those_of_standardised_rows():
    _, _, dense, _, _ = make_problem()
    _, _, scarce, _, _ = make_problem(sparse.csr_matrix)
    right, left = np.arange(8.0).reshape(4, 2), np.arange(60.0).reshape(30, 2)
    np.testing.assert_allclose(scarce.times(right), dense.X @ right, atol=1e-12)
    np.testing.assert_allclose(scarce.transposed_times(left), dense.X.T @ left, atol=1e-10)
    np.testing.assert_allclose(scarce.take([3, 1]).times(right), dense.X[[3, 1]] @ right, atol=1e-12)


def test_training_starts_at_the_mean_distribution():
    X, D = make_distributions()
    D[:, 1] = 0.0
    D /= D.sum(axis=1, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a single step, on purpose
        model = AABP(early_stopping=False, solver="adam", max_iter=1, learning_rate=1e-12, alpha=0.0).fit(X, D)
    np.testing.assert_allclose(model.predict(X), MeanDistribution().fit(X, D).predict(X), atol=1e-6)
    np.testing.assert_allclose(model.loss_curve_, 1.0, atol=1e-6)


@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_learns_what_a_network_can_learn(solver, activation):
    X, D = make_distributions(300, 3, 3, random_state=3)
    X_new, D_new = X[200:], D[200:]
    model = AABP(16, solver=solver, activation=activation, learning_rate=0.01, max_iter=100, random_state=0)
    P = model.fit(X[:200], D[:200]).predict(X_new)
    mean = MeanDistribution().fit(X[:200], D[:200]).predict(X_new)
    assert kullback_leibler(D_new, P) < 0.7 * kullback_leibler(D_new, mean)


def test_weights_reach_a_stationary_point_of_the_documented_objective():
    X, D = make_distributions(50, 3, 3)
    weight, alpha = np.linspace(1, 2, 50), 0.02
    model = AABP(3, early_stopping=False, alpha=alpha, tol=1e-14, max_iter=5000, random_state=0).fit(X, D, weight)
    mean, scale = np.average(X, axis=0, weights=weight), np.sqrt(np.cov(X.T, aweights=weight, bias=True).diagonal())
    error_of_mean = weight @ ((D - np.average(D, axis=0, weights=weight)) ** 2).sum(axis=1)
    standard = (X - mean) / scale

    def objective(flat):
        A, b, B, c = (part.reshape(shape) for part, shape in zip(np.split(flat, [9, 12, 21]), shapes, strict=True))
        z = softmax(np.tanh(standard @ A + b) @ B + c)
        return weight @ ((z - D) ** 2).sum(axis=1) / error_of_mean + alpha / 2 * ((A**2).sum() + (B**2).sum())

    shapes = (3, 3), 3, (3, 3), 3
    (A, B), (b, c) = model.coefs_, model.intercepts_
    theta = np.concatenate([(A * scale[:, None]).ravel(), b + mean @ A, B.ravel(), c])
    np.testing.assert_allclose(objective(theta), model.loss_curve_[-1], rtol=1e-9)
    assert np.abs(optimize.approx_fprime(theta, objective, 1e-7)).max() < 1e-5
    assert np.all(np.diff(model.loss_curve_) <= 0)
    assert model.n_iter_ == len(model.loss_curve_)
    assert model.validation_scores_ == []


@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
def test_early_stopping_keeps_the_best_weights(solver):
    X, D = make_distributions(60, 20, 3)
    model = AABP(solver=solver, n_iter_no_change=4, max_iter=1000, learning_rate=0.01, random_state=0).fit(X, D)
    scores = model.validation_scores_
    best = int(np.argmax(scores)) + 1
    assert model.n_iter_ == len(scores) == best + 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is ended at the best step
        until_best = AABP(solver=solver, max_iter=best, learning_rate=0.01, random_state=0).fit(X, D)
    np.testing.assert_array_equal(model.predict(X), until_best.predict(X))


def test_early_stopping_may_keep_the_mean_distribution():
    generator = np.random.default_rng(0)
    X, D = generator.normal(size=(60, 20)), generator.dirichlet(np.ones(3), size=60)  # there is nothing to learn
    model = AABP(max_iter=1000, random_state=0).fit(X, D)
    np.testing.assert_allclose(model.predict(X), MeanDistribution().fit(X, D).predict(X), atol=1e-12)


def test_adam_without_held_out_rows_stops_by_tol():
    X, D = make_distributions()
    model = AABP(4, solver="adam", early_stopping=False, tol=0.5, n_iter_no_change=3, max_iter=50, batch_size=8)
    assert model.set_params(random_state=0).fit(X, D).n_iter_ < 50


@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
def test_not_converged_is_a_warning_that_names_the_parameter(solver):
    with pytest.warns(ConvergenceWarning, match="max_iter=2 iterations"):
        AABP(solver=solver, max_iter=2, early_stopping=False, tol=0.0).fit(*make_distributions())


@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # so few iterations do not converge
def test_path_over_iterations_is_one_training(early_stopping, solver, monkeypatch):
    X, D = make_distributions()
    values = [3, 1, 12, 5, 5]
    estimator = AABP(6, solver=solver, early_stopping=early_stopping, n_iter_no_change=4, random_state=0)
    expected = [estimator.set_params(max_iter=value).fit(X, D).predict(X) for value in values]
    calls = []
    train = AABP._train
    monkeypatch.setattr(AABP, "_train", lambda *args: calls.append(1) or train(*args))
    path = list(estimator.predict_path(X, D, X, param="max_iter", values=values))
    assert len(calls) == 1
    np.testing.assert_allclose(path, expected, atol=1e-12)


def test_constant_features_and_offsets_do_no_harm():
    X, D = make_distributions()
    expected = AABP(random_state=0).fit(X, D).predict(X)
    moved = np.column_stack([1000 * X + 1e5, np.full(len(X), 3.0)])
    P = AABP(random_state=0).fit(moved, D).predict(moved)
    assert np.isfinite(P).all()
    mean = MeanDistribution().fit(X, D).predict(X)
    assert kullback_leibler(D, P) < kullback_leibler(D, mean)
    assert kullback_leibler(D, expected) < kullback_leibler(D, mean)


def test_predicts_in_blocks(monkeypatch):
    X, D = make_distributions()
    model = AABP(random_state=0).fit(X, D)
    expected = model.predict(X)
    monkeypatch.setattr("skldl.neural._aabp.BLOCK_ROWS", 7)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-14)


def test_a_single_row_cannot_be_held_out():
    with pytest.raises(ValueError, match="early_stopping=False"):
        AABP().fit([[1.0]], [[0.5, 0.5]])
    np.testing.assert_allclose(AABP(early_stopping=False).fit([[1.0]], [[0.3, 0.7]]).predict([[1.0]]), [[0.3, 0.7]])


def test_hidden_layers_may_be_a_number_or_any_sequence():
    X, D = make_distributions()
    shapes = [(4, 5), (5, 3)]
    for sizes in (5, (5,), [5], np.array([5])):
        assert [w.shape for w in AABP(sizes, random_state=0).fit(X, D).coefs_] == shapes


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hidden_layer_sizes": 0}, "hidden_layer_sizes=0"),
        ({"hidden_layer_sizes": ()}, "hidden_layer_sizes="),
        ({"hidden_layer_sizes": (3, 2.5)}, "hidden_layer_sizes="),
        ({"activation": "sign"}, "activation='sign'"),
        ({"solver": "sgd"}, "solver='sgd'"),
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"tol": np.inf}, "tol=inf"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_iter_no_change": 1.5}, "n_iter_no_change=1.5"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"learning_rate": 0.0}, "learning_rate=0.0"),
        ({"validation_fraction": 1.0}, "validation_fraction=1.0"),
    ],
)
def test_bad_parameters_are_rejected(params, message):
    with pytest.raises(ValueError, match=message):
        AABP(**params).fit(*make_distributions())


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_only_ratios_of_weights_count(scale):
    X, D = make_distributions()
    weight = np.linspace(1.0, 3.0, len(X))
    expected = AABP(random_state=0).fit(X, D, weight).predict(X)
    np.testing.assert_allclose(AABP(random_state=0).fit(X, D, scale * weight).predict(X), expected, atol=1e-6)


def test_no_worse_than_the_squared_error_of_a_plain_network():
    X, D = make_distributions(200, 3, 3)
    ours = AABP(8, early_stopping=False, alpha=0.0, max_iter=2000, random_state=0).fit(X, D).predict(X)
    theirs = MLPRegressor(
        hidden_layer_sizes=(8,), activation="tanh", solver="lbfgs", alpha=0.0, max_iter=2000, random_state=0
    )
    plain = theirs.fit(X, D).predict(X)
    assert ((ours - D) ** 2).sum() < 1.05 * ((plain - D) ** 2).sum()


@pytest.mark.parametrize("dataset", ["Yeast_alpha", "SJAFFE", "SBU_3DFE", "Natural_Scene", "Movie"])
def test_beats_the_mean_distribution_on_the_papers_data(paper_data, dataset):
    X, D = paper_data(dataset)
    ours, means = [], []
    for test in np.array_split(np.random.default_rng(0).permutation(len(D)), 10)[: 1 if dataset == "Movie" else 3]:
        train = np.setdiff1d(np.arange(len(D)), test)
        for estimator, scores in ((AABP(random_state=0), ours), (MeanDistribution(), means)):
            scores.append(estimator.fit(X[train], D[train]).score(X[test], D[test]))
    assert np.mean(ours) > np.mean(means)


@pytest.mark.parametrize("loss", ["kullback_leibler", "cad", "qfd2", "cjs", "dldl_v2", {"unimodal": 1}])
def test_gradient_of_other_losses_by_differences(loss):
    X, D = make_distributions(12, 3, 4)
    sizes = [3, 5, 4]
    theta = np.random.RandomState(0).uniform(-1, 1, size=sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes)))
    theta += 0.3 * np.random.default_rng(0).normal(size=theta.size)
    features, weight = standardize(X, X.mean(axis=0), X.std(axis=0)), np.linspace(0.5, 1.5, 12)
    arguments = (sizes, features, D, weight, ACTIVATIONS["tanh"], 0.01, resolve_loss(loss))
    _, gradient = loss_and_gradient(theta, *arguments)
    for place in range(0, theta.size, 3):
        step = np.zeros_like(theta)
        step[place] = 1e-6
        slope = (loss_and_gradient(theta + step, *arguments)[0] - loss_and_gradient(theta - step, *arguments)[0]) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_objective_is_the_loss_in_units_of_the_mean():
    X, D = make_distributions(100, 3, 6)
    model = AABP(loss="cad", alpha=0.0, early_stopping=False, max_iter=1000, tol=1e-4, random_state=0).fit(X, D)
    mean = np.tile(D.mean(axis=0), (100, 1))
    assert model.loss_curve_[-1] == pytest.approx(earth_mover(D, model.predict(X)) / earth_mover(D, mean), abs=0.01)
    assert model.loss_curve_[-1] < 0.8


def test_unknown_loss():
    X, D = make_distributions()
    with pytest.raises(ValueError, match="loss='emd'"):
        AABP(loss="emd").fit(X, D)
