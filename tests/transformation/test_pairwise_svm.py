"""The machines of pairs against LIBSVM on explicit weighted copies, and against the optimality conditions."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from skldl.testing import make_distributions
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
    gamma, offset = solve_pairs(np.tile(K, (2, 2)), costs, PAIRS, kernel="precomputed")
    for k, (a, b) in enumerate(zip(*PAIRS, strict=True)):
        u, v = costs[:, a], costs[:, b]
        np.testing.assert_allclose(K @ gamma[:, k] + offset[k], explicit_machine(K, u, v), atol=2e-5)
        assert (gamma[:, k] <= u + 1e-9).all()
        assert (gamma[:, k] >= -v - 1e-9).all()
        assert gamma[:, k].sum() == pytest.approx(0, abs=1e-9)


def test_duality_gap_of_one_variable_per_row():
    """The dual of the module's docstring reaches the primal objective."""
    _, K, costs = make_problem(C=5.0)
    gamma, offset = solve_pairs(np.tile(K, (2, 2)), costs, PAIRS, kernel="precomputed")
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
    gamma, offset = solve_pairs(np.tile(K, (2, 2)), scaled, ([a], [b]), kernel="precomputed")
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
    gamma, offset = solve_pairs(copies, costs, PAIRS, kernel="precomputed")
    gamma_back, offset_back = solve_pairs(copies, costs, flipped, kernel="precomputed")
    np.testing.assert_array_equal(gamma, -gamma_back)
    np.testing.assert_array_equal(offset, -offset_back)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("one_hot", [False, True])
def test_rows_in_place_of_the_kernel(form, one_hot):
    X, K, costs = make_problem(C=5.0, one_hot=one_hot)
    gamma, offset = solve_pairs(np.tile(K, (2, 2)), costs, PAIRS, kernel="precomputed")
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
