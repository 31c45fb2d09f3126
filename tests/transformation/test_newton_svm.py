"""The machines of many pairs at once against LIBSVM, the optimality conditions and the duality gap."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError
from sklearn.metrics.pairwise import rbf_kernel

from skldl.simplex import softmax
from skldl.testing import make_distributions
from skldl.transformation import _newton_svm
from skldl.transformation._kernel import KernelFactor, KernelMatrix, solve_regularised
from skldl.transformation._newton_svm import solve_machines
from skldl.transformation._pairwise_svm import label_costs, solve_pairs
from skldl.transformation._splitting import come_near

PAIRS = np.triu_indices(4, 1)


def make_problem(C, *, gamma=0.5, n_samples=120, equal_mass=True, one_hot=False):
    X, D = make_distributions(n_samples=n_samples, n_labels=4)
    if one_hot:
        D = np.eye(4)[(np.random.default_rng(1).uniform(size=(n_samples, 1)) > D.cumsum(axis=1)[:, :3]).sum(axis=1)]
    weights = 4 * D
    costs = weights * label_costs(weights.sum(axis=0), n_samples, C, equal_mass=equal_mass)
    return rbf_kernel(X, gamma=gamma), costs


def solve(K, costs, start=None, offset=None):
    u, v = costs.T[PAIRS[0]], costs.T[PAIRS[1]]
    kernel = K if isinstance(K, KernelFactor) else KernelMatrix(K)
    return solve_machines(kernel, u, v, u - v if start is None else start, np.zeros(6) if offset is None else offset)


@pytest.fixture(params=[np.inf, 0.0], ids=["Newton", "split"])
def steps(request, monkeypatch):
    """Newton steps alone, or after steps that come near the optimum."""
    monkeypatch.setattr(_newton_svm, "LONG", request.param)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize("equal_mass", [False, True])
@pytest.mark.parametrize(("C", "gamma"), [(0.3, 0.5), (1.0, 0.05), (5.0, 0.5), (50.0, 3.0)])
def test_equals_libsvm(C, gamma, equal_mass, one_hot):
    K, costs = make_problem(C, gamma=gamma, equal_mass=equal_mass, one_hot=one_hot)
    found = solve(K, costs)
    assert found.solved.all()
    coefficients, offset, _ = solve_pairs(np.tile(K, (2, 2)), costs, PAIRS, kernel="precomputed")
    np.testing.assert_allclose(found.values[found.solved], (K @ coefficients + offset).T[found.solved], atol=1e-4)


def assert_optimal(found, K, costs, C):
    """Primal and dual objective meet, γ is feasible, and no row violates its optimality condition."""
    assert found.solved.all()
    for k, (a, b) in enumerate(zip(*PAIRS, strict=True)):
        u, v, gamma, values = costs[:, a], costs[:, b], found.gamma[k], found.values[k]
        np.testing.assert_allclose(values, K @ gamma + found.offset[k], atol=1e-9)
        quadratic = gamma @ K @ gamma
        primal = quadratic / 2 + (u * np.maximum(0, 1 - values) + v * np.maximum(0, 1 + values)).sum()
        dual = (u + v).sum() - np.abs(gamma - (u - v)).sum() - quadratic / 2
        assert primal == pytest.approx(dual, rel=1e-8)
        assert gamma.sum() == pytest.approx(0, abs=1e-7 * max(1.0, C / 50))
        assert (gamma <= u).all()
        assert (gamma >= -v).all()
        inside = np.abs(values) < 1 - 1e-6
        np.testing.assert_allclose(gamma[inside], (u - v)[inside], atol=1e-9 * C)
        np.testing.assert_allclose(gamma[values > 1 + 1e-6], -v[values > 1 + 1e-6], atol=1e-9 * C)
        np.testing.assert_allclose(gamma[values < -1 - 1e-6], u[values < -1 - 1e-6], atol=1e-9 * C)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("C", [0.3, 5.0, 50.0, 1e4, 1e5])
def test_duality_gap(C):
    """At a large C too."""
    K, costs = make_problem(C)
    assert_optimal(solve(K, costs), K, costs, C)


@pytest.mark.parametrize(("n_samples", "n_features", "seed"), [(200, 60, 0), (300, 8, 1)])
def test_inner_problems_of_many_steps_come_to_an_end(n_samples, n_features, seed):
    """With 60 features by a δ that grows within them (`MANY_STEPS`), with 8 by one that then stays (`FEW_STEPS`)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    scores = X @ rng.normal(size=(n_features, 4)) / np.sqrt(n_features) + rng.normal(scale=0.5, size=(n_samples, 4))
    weights = 4 * softmax(3 * scores)
    costs = weights * label_costs(weights.sum(axis=0), n_samples, 1e5, equal_mass=True)
    K = rbf_kernel(X, gamma=1 / n_features)
    assert_optimal(solve(K, costs), K, costs, 1e5)


def test_a_first_order_method_comes_near_the_optimum():
    K, costs = make_problem(20.0)
    costs[:40] = 0.0  # a fold that is left out
    kernel = KernelMatrix(K)
    u, v = costs.T[PAIRS[0]], costs.T[PAIRS[1]]
    exact = solve_machines(kernel, u, v, u - v, np.zeros(6))
    assert exact.solved.all()
    gamma, offset = come_near(kernel, u, v, u - v, kernel.times(u - v))
    assert ((gamma >= -v) & (gamma <= u)).all()
    np.testing.assert_allclose(kernel.times(gamma) + offset[:, None], exact.values, atol=0.02)
    assert np.abs(kernel.times(u - v) - exact.values).max() > 1.0  # where it began


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_of_the_features_do_not_change_how_it_comes_near(scale):
    """A kernel and costs in other units: f is the same."""
    K, costs = make_problem(20.0)
    u, v = costs.T[PAIRS[0]], costs.T[PAIRS[1]]
    kernel, other = KernelMatrix(K), KernelMatrix(scale * K)
    known, known_offset = come_near(kernel, u, v, u - v, kernel.times(u - v))
    found, offset = come_near(other, u / scale, v / scale, (u - v) / scale, kernel.times(u - v))
    values = kernel.times(known) + known_offset[:, None]
    np.testing.assert_allclose(other.times(found) + offset[:, None], values, atol=0.02)


class CountingKernel(KernelMatrix):
    """Counts the multiplications of the linear systems, up to a factor."""

    work = 0

    def solve(self, systems):
        self.work += sum(len(system.rows) ** 3 for system in systems)
        return super().solve(systems)


def test_pairs_with_many_free_rows_take_few_newton_steps(monkeypatch):
    K, costs = make_problem(100.0, n_samples=500, gamma=2.0)
    work = {}
    for name, limit in (("split", 0.01), ("Newton", np.inf)):
        monkeypatch.setattr(_newton_svm, "LONG", limit)
        kernel = CountingKernel(K)
        u, v = costs.T[PAIRS[0]], costs.T[PAIRS[1]]
        assert_optimal(solve_machines(kernel, u, v, u - v, np.zeros(6)), K, costs, 100.0)
        work[name] = kernel.work
    assert work["split"] < 0.25 * work["Newton"]


@pytest.mark.parametrize(("C", "n_calls"), [(1.0, 0), (100.0, 1)])
def test_first_order_steps_come_in_only_where_newton_steps_take_long(monkeypatch, C, n_calls):
    """With many free rows, but few steps, they took several times as long as Newton's steps alone."""
    calls = []

    def counted(*args):
        calls.append(args)
        return come_near(*args)

    monkeypatch.setattr(_newton_svm, "come_near", counted)
    K, costs = make_problem(C, n_samples=500, gamma=2.0)
    assert_optimal(solve(K, costs), K, costs, C)
    assert len(calls) == n_calls


def test_a_point_that_is_worse_is_not_taken(monkeypatch):
    """With a large C and a narrow kernel the first-order steps can end farther away than where they began."""
    K, costs = make_problem(100.0, n_samples=500, gamma=2.0)
    u, v = costs.T[PAIRS[0]], costs.T[PAIRS[1]]
    work = {}
    for name, limit in (("far", 0.0), ("Newton", np.inf)):
        monkeypatch.setattr(_newton_svm, "LONG", limit)
        monkeypatch.setattr(_newton_svm, "come_near", lambda kernel, u, v, gamma, values: (u.copy(), np.zeros(len(u))))
        kernel = CountingKernel(K)
        assert_optimal(solve_machines(kernel, u, v, u - v, np.zeros(6)), K, costs, 100.0)
        work[name] = kernel.work
    assert work["far"] == work["Newton"]


def test_a_fold_begins_where_all_rows_ended_unless_another_point_is_better(monkeypatch):
    """Without the rows that are held out Σγ is not 0, and the dual objective of such a point may be anything.

    Compared by it, the first-order steps draw some pairs away from their optimum: they are not solved in time, and all
    take several times the work of Newton's method alone. Taken where they are better, they save work.
    """
    X, D = make_distributions(250, 5, 5)
    D = D ** np.linspace(1, 12, 5)
    weights = 5 * D / D.sum(axis=1, keepdims=True)
    costs = weights * label_costs(weights.sum(axis=0), 250, 10.0, equal_mass=False)
    K = rbf_kernel(X, gamma=2.0)
    pairs = np.triu_indices(5, 1)
    gamma, offset, _ = solve_pairs(np.tile(K, (2, 2)), costs, pairs, kernel="precomputed")
    folds = np.tile(costs, (5, 1, 1))
    for fold in range(5):
        folds[fold, 50 * fold : 50 * (fold + 1)] = 0.0
    u, v = (np.concatenate([fold.T[labels] for fold in folds]) for labels in pairs)
    work = {}
    for name, limit in (("split", 0.0), ("Newton", np.inf)):
        monkeypatch.setattr(_newton_svm, "LONG", limit)
        kernel = CountingKernel(K)
        assert solve_machines(kernel, u, v, np.tile(gamma.T, (5, 1)), np.tile(offset, 5)).solved.all()
        work[name] = kernel.work
    assert work["split"] < work["Newton"]


def test_where_no_point_near_the_optimum_is_found_it_begins_where_it_is(monkeypatch):
    """The Cholesky factor of a kernel matrix that rounding has made indefinite may not exist."""

    def fails(*args):
        raise LinAlgError("1-th leading minor of the array is not positive definite")

    K, costs = make_problem(5.0, gamma=0.5)
    expected = solve(K, costs)
    monkeypatch.setattr(_newton_svm, "LONG", 0.0)
    monkeypatch.setattr(_newton_svm, "come_near", fails)
    found = solve(K, costs)
    assert found.solved.all()
    np.testing.assert_array_equal(found.values, expected.values)


def test_start_changes_nothing():
    K, costs = make_problem(3.0)
    found = solve(K, costs)
    rng = np.random.default_rng(0)
    other = solve(K, costs, rng.normal(scale=10, size=found.gamma.shape), rng.normal(scale=5, size=6))
    assert other.solved.all()
    np.testing.assert_allclose(other.values, found.values, atol=1e-7)


def test_rows_without_cost_take_no_part():
    K, costs = make_problem(3.0)
    costs[:30] = 0
    costs *= 120.0 / costs.sum(axis=0)
    found = solve(K, costs)
    part = solve(np.ascontiguousarray(K[30:, 30:]), costs[30:])
    np.testing.assert_array_equal(found.gamma[:, :30], 0)
    np.testing.assert_allclose(found.values[:, 30:], part.values, atol=1e-7)


def test_exchanging_the_labels_turns_the_sign():
    K, costs = make_problem(5.0)
    u, v = costs.T[PAIRS[0]], costs.T[PAIRS[1]]
    forth = solve_machines(KernelMatrix(K), u, v, u - v, np.zeros(6))
    back = solve_machines(KernelMatrix(K), v, u, v - u, np.zeros(6))
    np.testing.assert_allclose(forth.values, -back.values, atol=1e-9)


def test_without_a_row_on_a_margin_the_offset_is_in_the_middle():
    """Two rows of opposite labels far apart, with little cost: any b that keeps |f| ≤ 1 is optimal."""
    K = np.eye(2)
    u, v = np.array([[0.5, 0.0]]), np.array([[0.0, 0.5]])
    found = solve_machines(KernelMatrix(K), u, v, np.zeros((1, 2)), np.array([0.3]))
    assert found.solved.all()
    np.testing.assert_allclose(found.gamma, [[0.5, -0.5]], atol=1e-9)
    assert found.offset[0] == pytest.approx(0, abs=1e-9)


def test_factor_in_place_of_the_matrix():
    X, D = make_distributions(n_samples=80, n_features=6, n_labels=4)
    costs = 4 * D * label_costs(4 * D.sum(axis=0), 80, 2.0, equal_mass=True)
    whole, factor = solve(X @ X.T, costs), solve(KernelFactor(X, 0.0), costs)
    assert factor.solved.all()
    np.testing.assert_allclose(factor.values, whole.values, atol=1e-6)


@pytest.mark.parametrize(("name", "value"), [("MOST_FREE_ROWS", -1), ("MOST_STEPS", 2)])
def test_what_is_not_solved_is_said(monkeypatch, name, value):
    monkeypatch.setattr(_newton_svm, name, value)
    K, costs = make_problem(5.0)
    assert not solve(K, costs).solved.any()


def test_singular_systems_get_a_larger_ridge():
    matrix = np.ones((3, 3)) - 1e-9 * np.eye(3)  # not positive definite
    solution = solve_regularised(matrix, 1e-12, np.ones((3, 1)))
    assert np.isfinite(solution).all()
