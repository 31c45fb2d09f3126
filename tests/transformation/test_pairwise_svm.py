"""The machines of pairs against LIBSVM on explicit weighted copies, and against the optimality conditions."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from skldl import PTSVM
from skldl.testing import make_distributions
from skldl.transformation import _newton_svm, _pair_fit, _pairwise_svm
from skldl.transformation._newton_svm import primal_objective
from skldl.transformation._pairwise_svm import Machines, label_costs, machines_between_margins, solve_pairs

PAIRS = np.triu_indices(3, 1)


def explicit_machine(K, u, v):
    """LIBSVM on every row twice; returns decision values on the training rows."""
    first, second = np.flatnonzero(u), np.flatnonzero(v)
    copies = np.concatenate([first, second])
    model = SVC(kernel="precomputed", C=1.0, tol=1e-9)
    sides = np.repeat([1, -1], [len(first), len(second)])
    model.fit(K[np.ix_(copies, copies)], sides, sample_weight=np.concatenate([u[first], v[second]]))
    return model.decision_function(K[:, copies])


def make_problem(C, gamma=0.5, n_samples=40, equal_mass=True, one_hot=False):
    X, D = make_distributions(n_samples=n_samples)
    if one_hot:
        D = np.eye(3)[D.argmax(axis=1)]
    weights = 3 * D
    costs = weights * label_costs(weights.sum(axis=0), n_samples, C, equal_mass=equal_mass)
    return X, rbf_kernel(X, gamma=gamma), costs


def objective(values, quadratic, u, v):
    return quadratic / 2 + (u * np.maximum(0, 1 - values) + v * np.maximum(0, 1 + values)).sum()


@pytest.mark.parametrize("one_hot", [False, True])
def test_closed_form_equals_libsvm_where_it_is_optimal(one_hot):
    _, K, costs = make_problem(C=0.05, one_hot=one_hot)
    machines = machines_between_margins(K @ costs, costs, PAIRS)
    assert machines.optimal.all()
    for k, (a, b) in enumerate(zip(*PAIRS, strict=True)):
        g = K @ (costs[:, a] - costs[:, b])
        expected = explicit_machine(K, costs[:, a], costs[:, b])
        np.testing.assert_allclose(g - g.mean(), expected - expected.mean(), atol=1e-6)
        # More than one offset is optimal: the objective must be the same, not the offset.
        quadratic = (costs[:, a] - costs[:, b]) @ g
        mine = objective(g + machines.offset[k], quadratic, costs[:, a], costs[:, b])
        assert mine == pytest.approx(objective(expected, quadratic, costs[:, a], costs[:, b]), rel=1e-9)


@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize(("C", "equal_mass"), [(1.0, True), (30.0, True), (1.0, False)])
def test_libsvm_route_equals_explicit_copies(C, equal_mass, one_hot):
    _, K, costs = make_problem(C, equal_mass=equal_mass, one_hot=one_hot)
    assert not machines_between_margins(K @ costs, costs, PAIRS).optimal.any()
    gamma, offset, _ = solve_pairs(np.tile(K, (2, 2)), costs, PAIRS, kernel="precomputed")
    for k, (a, b) in enumerate(zip(*PAIRS, strict=True)):
        u, v = costs[:, a], costs[:, b]
        np.testing.assert_allclose(K @ gamma[:, k] + offset[k], explicit_machine(K, u, v), atol=2e-5)
        assert (gamma[:, k] <= u + 1e-9).all()
        assert (gamma[:, k] >= -v - 1e-9).all()
        assert gamma[:, k].sum() == pytest.approx(0, abs=1e-9)


def test_duality_gap_of_one_variable_per_row():
    """The dual of the module's docstring reaches the primal objective."""
    _, K, costs = make_problem(C=5.0)
    gamma, offset, _ = solve_pairs(np.tile(K, (2, 2)), costs, PAIRS, kernel="precomputed")
    for k, (a, b) in enumerate(zip(*PAIRS, strict=True)):
        u, v = costs[:, a], costs[:, b]
        quadratic = gamma[:, k] @ K @ gamma[:, k]
        primal = objective(K @ gamma[:, k] + offset[k], quadratic, u, v)
        dual = (u + v).sum() - np.abs(gamma[:, k] - (u - v)).sum() - quadratic / 2
        assert primal == pytest.approx(dual, rel=1e-6)


def test_the_test_of_optimality_is_sharp():
    """Just below the largest C with all rows between the margins the closed form holds; just above, it is beaten."""
    _, K, costs = make_problem(C=1.0)
    a, b = 0, 2
    spread = np.ptp(K @ (costs[:, a] - costs[:, b]))
    for factor, optimal in [(1.999 / spread, True), (2.001 / spread, False)]:
        machines = machines_between_margins(K @ costs * factor, costs * factor, (np.array([a]), np.array([b])))
        assert machines.optimal[0] == optimal
    scaled = costs * 2.5 / spread
    g = K @ (scaled[:, a] - scaled[:, b])
    gamma, offset, _ = solve_pairs(np.tile(K, (2, 2)), scaled, ([a], [b]), kernel="precomputed")
    best = objective(K @ gamma[:, 0] + offset[0], gamma[:, 0] @ K @ gamma[:, 0], scaled[:, a], scaled[:, b])
    closed = min(
        objective(g + t, (scaled[:, a] - scaled[:, b]) @ g, scaled[:, a], scaled[:, b]) for t in np.linspace(-3, 3, 601)
    )
    assert best < closed


def test_offset_stays_in_the_interval_of_optimal_ones():
    values = np.array([[0.9, 0.0], [-0.9, 0.0], [0.8, 0.0]])
    costs = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
    sums = np.column_stack([values[:, 0], np.zeros(3)])
    machines = machines_between_margins(sums, costs, (np.array([0]), np.array([1])))
    assert machines.optimal[0]
    assert abs(values[:, 0] + machines.offset[0]).max() <= 1


@pytest.mark.parametrize("C", [0.05, 5.0])
def test_exchanging_the_labels_turns_the_sign(C):
    _, K, costs = make_problem(C)
    flipped = PAIRS[::-1]
    forth, back = (machines_between_margins(K @ costs, costs, pairs) for pairs in (PAIRS, flipped))
    np.testing.assert_array_equal(forth.optimal, back.optimal)
    np.testing.assert_allclose(forth.offset[forth.optimal], -back.offset[back.optimal], atol=1e-12)
    copies = np.tile(K, (2, 2))
    gamma, offset, _ = solve_pairs(copies, costs, PAIRS, kernel="precomputed")
    gamma_back, offset_back, _ = solve_pairs(copies, costs, flipped, kernel="precomputed")
    np.testing.assert_array_equal(gamma, -gamma_back)
    np.testing.assert_array_equal(offset, -offset_back)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("one_hot", [False, True])
def test_rows_in_place_of_the_kernel(form, one_hot):
    X, K, costs = make_problem(C=5.0, one_hot=one_hot)
    gamma, offset, _ = solve_pairs(np.tile(K, (2, 2)), costs, PAIRS, kernel="precomputed")
    from_rows = solve_pairs(form(np.vstack([X, X])), costs, PAIRS, kernel="rbf", gamma=0.5)
    np.testing.assert_allclose(K @ from_rows[0], K @ gamma, atol=1e-4)
    np.testing.assert_allclose(from_rows[1], offset, atol=1e-4)


def test_a_label_without_mass_has_no_machine():
    costs = np.array([[1.0, 0.0, 0.0, 1.0], [2.0, 0.0, 0.0, 2.0]])
    machines = machines_between_margins(costs + 5.0, costs, np.triu_indices(4, 1))
    np.testing.assert_array_equal(machines.factor, [0, 0, 1, 0, 0, 0])
    assert machines.optimal.all()
    np.testing.assert_array_equal(machines.offset, 0)


def test_label_costs():
    mass = np.array([10.0, 40.0, 0.0])
    np.testing.assert_allclose(label_costs(mass, 20.0, 2.0, equal_mass=True)[:2] * mass[:2], 40.0)
    np.testing.assert_allclose(label_costs(mass, 20.0, 2.0, equal_mass=False), 2.0 * 20.0 / (50 / 3))


def test_machines_taken_apart_and_joined():
    machines = Machines(np.arange(5.0), np.arange(5.0) + 1, np.arange(5) % 2 == 0)
    joined = Machines.join([machines.take(slice(0, 2)), machines.take(slice(2, 9))])
    np.testing.assert_array_equal(joined.factor, machines.factor)
    np.testing.assert_array_equal(joined.offset, machines.offset)
    np.testing.assert_array_equal(joined.optimal, machines.optimal)


def test_where_neither_solver_ends_the_better_point_is_kept(monkeypatch):
    """Linear kernel, features in the thousands: LIBSVM stopped at 1.7 times the optimum, Newton's method near it."""
    monkeypatch.setattr(_pairwise_svm, "LIBSVM_MOST_STEPS", 20_000)
    monkeypatch.setattr(_pair_fit, "LIBSVM_MOST_STEPS", 20_000)
    seen = []
    keep = _pair_fit._keep_better

    def spy(solutions, left, gamma, offset, kernel, pair_costs):
        keep(solutions, left, gamma, offset, kernel, pair_costs)
        products = solutions.values[left] - solutions.offset[left][:, None]
        objective = primal_objective(solutions.gamma[left], products, solutions.values[left], *pair_costs)
        of_libsvm = kernel.times(gamma)
        other = primal_objective(gamma, of_libsvm, of_libsvm + offset[:, None], *pair_costs)
        seen.append((objective, other, kernel.features(), pair_costs))

    monkeypatch.setattr(_pair_fit, "_keep_better", spy)
    rng = np.random.default_rng(0)
    X, D = 1000 * rng.normal(size=(120, 5)), rng.dirichlet(np.ones(2), 120)
    with pytest.warns(ConvergenceWarning, match="short of their optimum"):
        PTSVM(kernel="linear").fit(X, D)
    assert any((other > 1.1 * objective).any() for objective, other, *_ in seen)
    for objective, _, features, costs in seen:
        for found, first, second in zip(objective, *costs, strict=True):
            rows = np.flatnonzero(first + second)
            least = least_hinge_loss(features[rows] / 1000, first[rows], second[rows])
            assert least * (1 - 1e-6) <= found <= 1.01 * least


def least_hinge_loss(X, first, second):
    """The least Σ u·max(0, 1 − f) + v·max(0, 1 + f) over linear f, by linear programming; ½‖w‖² is next to nothing."""
    n, q = X.shape
    rows = np.column_stack([X, np.ones(n)])
    upper = sparse.bmat([[-rows, -np.eye(n), None], [rows, None, -np.eye(n)]])
    cost = np.concatenate([np.zeros(q + 1), first, second])
    bounds = [(None, None)] * (q + 1) + [(0, None)] * (2 * n)
    return linprog(cost, A_ub=upper, b_ub=-np.ones(2 * n), bounds=bounds).fun


def test_many_machines_share_the_steps_of_libsvm(monkeypatch):
    monkeypatch.setattr(_pair_fit, "LIBSVM_ALL_STEPS", 300)
    monkeypatch.setattr(_pair_fit, "LIBSVM_LEAST_STEPS", 20)
    monkeypatch.setattr(_newton_svm, "MOST_STEPS", 3)
    X, D = make_distributions(n_labels=4)
    with pytest.warns(ConvergenceWarning, match=r"of (6 machines after 50|30 machines after 20) steps") as caught:
        PTSVM(kernel="linear").fit(1e8 * X, D)
    assert sorted(len(str(one.message).partition(" machines")[0].split()[-1]) for one in caught) == [1, 2]
