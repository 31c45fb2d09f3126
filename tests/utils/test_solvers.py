"""`minimise` on functions whose minimum is known."""

import itertools

import numpy as np
import pytest
from scipy import optimize

from skldl.utils.solvers import ROUNDING, minimise


def _quadratic(eigenvalues):
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(len(eigenvalues),) * 2))[0]
    A = rotation @ np.diag(eigenvalues) @ rotation.T
    b = np.random.default_rng(1).normal(size=len(eigenvalues))
    solution = np.linalg.solve(A, b)
    return (lambda x: (0.5 * x @ A @ x - b @ x, A @ x - b)), solution, -0.5 * b @ solution


@pytest.mark.parametrize("method", ["lbfgs", "bfgs"])
@pytest.mark.parametrize("eigenvalues", [np.ones(6), np.linspace(0.5, 2, 8), np.logspace(-2, 2, 12)])
def test_quadratic_ends_within_the_bound(method, eigenvalues):
    function, solution, least = _quadratic(eigenvalues)
    run = minimise(function, np.zeros(len(solution)), method=method, tol=1e-10, max_iter=500)
    assert run.converged
    assert run.loss - least <= 1e-10
    assert run.loss == pytest.approx(function(run.x)[0])
    assert len(run.loss_curve) == run.n_iter + 1
    assert np.all(np.diff(run.loss_curve) < ROUNDING * abs(run.loss))


@pytest.mark.parametrize("method", ["lbfgs", "bfgs"])
def test_rounding_of_the_loss_does_not_end_the_run(method):
    """The loss is a difference of larger terms: its last digits rise where the gradient still falls."""
    function, solution, _ = _quadratic(np.logspace(-2, 2, 12))
    rng = np.random.default_rng(0)

    def rounded(x):
        loss, gradient = function(x)
        return loss * (1 + 0.2 * ROUNDING * rng.uniform(-1, 1)), gradient

    run = minimise(rounded, np.zeros(len(solution)), method=method, tol=1e-12, max_iter=500)
    assert run.converged
    np.testing.assert_allclose(run.x, solution, atol=1e-5)


@pytest.mark.parametrize("method", ["lbfgs", "bfgs"])
def test_rosenbrock_is_solved_although_it_is_not_convex(method):
    def function(x):
        return optimize.rosen(x), optimize.rosen_der(x)

    run = minimise(function, np.full(4, -1.2), method=method, tol=1e-12, max_iter=500)
    np.testing.assert_allclose(run.x, 1.0, atol=1e-4)


@pytest.mark.parametrize("method", ["lbfgs", "bfgs"])
def test_every_step_satisfies_the_strong_wolfe_conditions(method):
    function, solution, _ = _quadratic(np.logspace(-1, 2, 10))
    points = []
    minimise(
        function,
        np.zeros(len(solution)),
        method=method,
        tol=1e-10,
        max_iter=60,
        callback=lambda n_iter, x: points.append(x.copy()),
    )
    assert len(points) > 5
    for before, after in itertools.pairwise(points):
        (loss, gradient), (next_loss, next_gradient), step = function(before), function(after), after - before
        assert next_loss <= loss + 1e-4 * gradient @ step + 1e-12
        assert abs(next_gradient @ step) <= 0.9 * abs(gradient @ step) + 1e-12


def test_dense_bfgs_ends_in_as_many_steps_as_scipy():
    function, _, _ = _quadratic(np.logspace(-1, 1, 10))
    ours = minimise(function, np.zeros(10), method="bfgs", tol=1e-9, max_iter=100)
    theirs = optimize.minimize(function, np.zeros(10), jac=True, method="BFGS", options={"gtol": 1e-6})
    assert ours.n_iter <= 1.5 * theirs.nit


def test_lower_bound_ends_a_run_towards_infinity():
    def function(x):
        return float(np.exp(-x).sum()), -np.exp(-x)

    run = minimise(function, np.zeros(2), tol=1e-6, max_iter=200, lower_bound=0.0)
    assert run.converged
    assert run.loss <= 1e-6


def test_max_iter_is_kept_and_reported():
    function, _, _ = _quadratic(np.logspace(-3, 3, 12))
    run = minimise(function, np.zeros(12), tol=1e-14, max_iter=3)
    assert run.n_iter == 3
    assert not run.converged
    assert run.excess > 1e-14


def test_rounding_ends_a_run_that_no_tolerance_ends():
    function, _, least = _quadratic(np.linspace(1, 5, 6))
    run = minimise(function, np.zeros(6), tol=0.0, max_iter=10_000)
    assert run.n_iter < 200
    assert run.n_evaluations < 500
    assert run.loss == pytest.approx(least, abs=1e-14)


def test_values_that_are_not_finite_are_stepped_back_from():
    def function(x):  # only defined for x < 1
        if x[0] >= 1:
            return np.nan, np.full(1, np.nan)
        return float(-x[0] - np.log1p(-x[0]) - x[0] / 2), np.array([-1.5 + 1 / (1 - x[0])])

    run = minimise(function, np.array([-50.0]), tol=1e-12, max_iter=100)
    np.testing.assert_allclose(run.x, 1 / 3, atol=1e-5)


def test_start_at_the_minimum():
    function, solution, _ = _quadratic(np.ones(3))
    run = minimise(function, solution, tol=1e-12, max_iter=10)
    assert run.n_iter == 0
    assert run.converged
    assert run.n_evaluations == 1


def test_metric_decides_how_the_gradient_is_measured():
    class Loose:
        def primal(self, step):
            return 1e-6 * step @ step

        def dual(self, gradient):
            return 0.0

    function, _, _ = _quadratic(np.ones(3))
    assert minimise(function, np.zeros(3), tol=1e-12, max_iter=10, metric=Loose()).n_iter == 0
