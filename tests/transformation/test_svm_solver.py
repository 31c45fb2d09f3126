"""The machines of many pairs at once against LIBSVM, the optimality conditions and the duality gap.

The solver is tested alone: a distribution that is predicted hides by how much a machine misses its optimum.
"""

from threading import Thread

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import LinAlgError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from skldl.simplex import softmax
from skldl.testing import make_distributions
from skldl.transformation._svm_solver import (  # optima are compared with scikit-learn's; PTSVM returns only couplings
    KernelMatrix,
    LinearKernel,
    label_costs,
    solve_between_margins,
    solve_machines,
    solve_regularised,
)

PAIRS = np.triu_indices(4, 1)


def make_problem(C, *, gamma=0.5, n_samples=120, equal_mass=True, one_hot=False):
    X, D = make_distributions(n_samples=n_samples, n_labels=4)
    if one_hot:
        D = np.eye(4)[(np.random.default_rng(1).uniform(size=(n_samples, 1)) > D.cumsum(axis=1)[:, :3]).sum(axis=1)]
    weights = 4 * D
    costs = weights * label_costs(weights.sum(axis=0), n_samples, C, equal_mass=equal_mass)
    return rbf_kernel(X, gamma=gamma), costs


def by_libsvm(K, u, v, tol=1e-6):
    """Decision values of LIBSVM, which is given every row twice, on all rows."""
    first, second = np.flatnonzero(u), np.flatnonzero(v)
    copies = np.concatenate([first, second])
    model = SVC(kernel="precomputed", C=1.0, tol=tol)
    sides = np.repeat([1, -1], [len(first), len(second)])
    model.fit(K[np.ix_(copies, copies)], sides, sample_weight=np.concatenate([u[first], v[second]]))
    return model.decision_function(K[:, copies])


def objective(values, quadratic, u, v):
    return quadratic / 2 + (u * np.maximum(0, 1 - values) + v * np.maximum(0, 1 + values)).sum()


@pytest.mark.parametrize("one_hot", [False, True])
def test_closed_form_equals_libsvm_where_it_is_optimal(one_hot):
    K, costs = make_problem(C=0.02, one_hot=one_hot)
    factor, offset, optimal = solve_between_margins(K @ costs, costs, PAIRS)
    assert optimal.all()
    np.testing.assert_array_equal(factor, 1.0)
    for k, (a, b) in enumerate(zip(*PAIRS, strict=True)):
        u, v = costs[:, a], costs[:, b]
        g = K @ (u - v)
        expected = by_libsvm(K, u, v, tol=1e-9)
        np.testing.assert_allclose(g - g.mean(), expected - expected.mean(), atol=1e-6)
        # More than one offset is optimal: the objective must be the same, not the offset.
        mine = objective(g + offset[k], (u - v) @ g, u, v)
        assert mine == pytest.approx(objective(expected, (u - v) @ g, u, v), rel=1e-8)


def test_the_test_of_optimality_is_sharp():
    """Just below the largest C with all rows between the margins the closed form holds; just above, it is beaten."""
    K, costs = make_problem(C=1.0)
    pair = np.array([0]), np.array([2])
    u, v = costs[:, 0], costs[:, 2]
    spread = np.ptp(K @ (u - v))
    for factor, optimal in [(1.999 / spread, True), (2.001 / spread, False)]:
        assert solve_between_margins(K @ costs * factor, costs * factor, pair)[2][0] == optimal
    u, v = u * 2.5 / spread, v * 2.5 / spread
    found = solve_machines(KernelMatrix(K), u[None], v[None], (u - v)[None], np.zeros(1))
    best = objective(found.values[0], found.gamma[0] @ K @ found.gamma[0], u, v)
    g = K @ (u - v)
    assert best < min(objective(g + t, (u - v) @ g, u, v) for t in np.linspace(-3, 3, 601))


def test_offset_stays_in_the_interval_of_optimal_ones():
    values = np.array([0.9, -0.9, 0.8])
    costs = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
    sums = np.column_stack([values, np.zeros(3)])
    _, offset, optimal = solve_between_margins(sums, costs, (np.array([0]), np.array([1])))
    assert optimal[0]
    assert abs(values + offset[0]).max() <= 1


def test_exchanging_the_labels_turns_the_sign_of_closed_forms():
    K, costs = make_problem(0.02)
    (_, forth, optimal), (_, back, other) = (
        solve_between_margins(K @ costs, costs, pairs) for pairs in (PAIRS, PAIRS[::-1])
    )
    np.testing.assert_array_equal(optimal, other)
    np.testing.assert_allclose(forth[optimal], -back[optimal], atol=1e-12)


def test_a_label_without_mass_has_no_machine():
    costs = np.array([[1.0, 0.0, 0.0, 1.0], [2.0, 0.0, 0.0, 2.0]])
    factor, offset, optimal = solve_between_margins(costs + 5.0, costs, np.triu_indices(4, 1))
    np.testing.assert_array_equal(factor, [0, 0, 1, 0, 0, 0])
    assert optimal.all()
    np.testing.assert_array_equal(offset, 0)


def test_label_costs():
    mass = np.array([10.0, 40.0, 0.0])
    np.testing.assert_allclose(label_costs(mass, 20.0, 2.0, equal_mass=True)[:2] * mass[:2], 40.0)
    np.testing.assert_allclose(label_costs(mass, 20.0, 2.0, equal_mass=False), 2.0 * 20.0 / (50 / 3))


def solve(K, costs, start=None, offset=None):
    u, v = costs.T[PAIRS[0]], costs.T[PAIRS[1]]
    kernel = K if isinstance(K, KernelMatrix) else KernelMatrix(K)
    return solve_machines(kernel, u, v, u - v if start is None else start, np.zeros(6) if offset is None else offset)


@pytest.fixture(params=[np.inf, 0.0], ids=["Newton", "split"])
def steps(request, monkeypatch):
    """Newton steps alone, or after steps that come near the optimum."""
    monkeypatch.setattr("skldl.transformation._svm_solver.SPLITTING_START", request.param)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize("equal_mass", [False, True])
@pytest.mark.parametrize(("C", "gamma"), [(0.3, 0.5), (1.0, 0.05), (5.0, 0.5), (50.0, 3.0)])
def test_equals_libsvm(C, gamma, equal_mass, one_hot):
    K, costs = make_problem(C, gamma=gamma, equal_mass=equal_mass, one_hot=one_hot)
    found = solve(K, costs)
    assert found.solved.all()
    for values, a, b in zip(found.values, *PAIRS, strict=True):
        np.testing.assert_allclose(values, by_libsvm(K, costs[:, a], costs[:, b]), atol=1e-4)


def assert_optimal(found, K, costs, C):
    """Primal and dual objective meet, γ is feasible, and no row violates its optimality condition."""
    assert found.solved.all()
    for k, (a, b) in enumerate(zip(*PAIRS, strict=True)):
        u, v, gamma, values = costs[:, a], costs[:, b], found.gamma[k], found.values[k]
        np.testing.assert_allclose(values, K @ gamma + found.offset[k], atol=1e-9)
        quadratic = gamma @ K @ gamma
        primal = objective(values, quadratic, u, v)
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


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_unit_of_the_kernel_does_not_matter(scale):
    """A kernel and costs in other units: f is the same."""
    K, costs = make_problem(20.0)
    np.testing.assert_allclose(solve(scale * K, costs / scale).values, solve(K, costs).values, atol=1e-6)


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
        monkeypatch.setattr("skldl.transformation._svm_solver.SPLITTING_START", limit)
        kernel = CountingKernel(K)
        u, v = costs.T[PAIRS[0]], costs.T[PAIRS[1]]
        assert_optimal(solve_machines(kernel, u, v, u - v, np.zeros(6)), K, costs, 100.0)
        work[name] = kernel.work
    assert work["split"] < 0.25 * work["Newton"]


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
    u, v = (costs.T[labels] for labels in pairs)
    whole = solve_machines(KernelMatrix(K), u, v, u - v, np.zeros(10))
    folds = np.tile(costs, (5, 1, 1))
    for fold in range(5):
        folds[fold, 50 * fold : 50 * (fold + 1)] = 0.0
    u, v = (np.concatenate([fold.T[labels] for fold in folds]) for labels in pairs)
    work = {}
    for name, limit in (("split", 0.0), ("Newton", np.inf)):
        monkeypatch.setattr("skldl.transformation._svm_solver.SPLITTING_START", limit)
        kernel = CountingKernel(K)
        assert solve_machines(kernel, u, v, np.tile(whole.gamma, (5, 1)), np.tile(whole.offset, 5)).solved.all()
        work[name] = kernel.work
    assert work["split"] < work["Newton"]


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


def test_singular_systems_get_a_larger_ridge():
    matrix = np.ones((3, 3)) - 1e-9 * np.eye(3)  # not positive definite
    solution = solve_regularised(matrix, 1e-12, np.ones((3, 1)))
    assert np.isfinite(solution).all()


def fails(*args):
    """The Cholesky factor of a kernel matrix that rounding has made indefinite may not exist."""
    raise LinAlgError("1-th leading minor of the array is not positive definite")


def ends_far_away(kernel, u, v, gamma, values):
    """So it can be with a large C and a narrow kernel."""
    return u.copy(), np.zeros(len(u))


@pytest.mark.parametrize("split", [fails, ends_far_away])
def test_splitting_steps_that_do_not_help_change_nothing(monkeypatch, split):
    K, costs = make_problem(5.0)
    expected = solve(K, costs)
    monkeypatch.setattr("skldl.transformation._svm_solver.SPLITTING_START", 0.0)
    monkeypatch.setattr("skldl.transformation._svm_solver._split", split)
    found = solve(K, costs)
    assert found.solved.all()
    np.testing.assert_array_equal(found.values, expected.values)


def test_threads_that_smooth_with_another_ridge_do_not_disturb_each_other():
    """Another thread replaces the inverse that is kept, just when this one has found that it is the right one."""
    K, _ = make_problem(1.0)
    kernel = KernelMatrix(K)
    coefficients = np.ones((1, len(K)), dtype=np.float32)
    expected = kernel.smooth(coefficients, 0.5)
    np.testing.assert_allclose(expected, 0.5 * np.linalg.solve(K + 0.5 * np.eye(len(K)), coefficients.T).T, atol=1e-5)

    class Ridge(float):
        def __ne__(self, other):
            thread = Thread(target=kernel.smooth, args=(coefficients, 4.0))
            thread.start()
            thread.join()
            return float(self) != other

    np.testing.assert_array_equal(kernel.smooth(coefficients, Ridge(0.5)), expected)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_linear_kernel_is_not_stored(form):
    X, D = make_distributions(n_samples=80, n_features=6, n_labels=4)
    costs = 4 * D * label_costs(4 * D.sum(axis=0), 80, 2.0, equal_mass=True)
    whole, linear = solve(X @ X.T, costs), solve(LinearKernel(form(X)), costs)
    assert linear.solved.all()
    np.testing.assert_allclose(linear.values, whole.values, atol=1e-6)


def test_too_few_steps_solve_nothing(monkeypatch):
    monkeypatch.setattr("skldl.transformation._svm_solver.MAX_STEPS", 2)
    assert not solve(*make_problem(5.0)).solved.any()
