import math

import numpy as np
import pytest

from skldl.data import artificial_manifold, make_artificial


def by_hand(x):
    """The paper's equations 16 to 20, one number at a time."""
    a, b, c, d, lam = 1, 0.5, 0.2, 1, 0.01
    t = [a * v + b * v * v + c * v * v * v + d for v in x]
    psi1 = (4 * t[0] + 2 * t[1] + 1 * t[2]) ** 2
    psi2 = (1 * t[0] + 2 * t[1] + 4 * t[2] + lam * psi1) ** 2
    psi3 = (1 * t[0] + 4 * t[1] + 2 * t[2] + lam * psi2) ** 2
    total = psi1 + psi2 + psi3
    return [psi1 / total, psi2 / total, psi3 / total]


def test_distributions_follow_the_printed_equations():
    X, D = make_artificial(50, random_state=3)
    np.testing.assert_allclose(D, [by_hand(x) for x in X.tolist()], rtol=1e-13)


def test_origin_is_known_in_closed_form():
    # t = (1, 1, 1): the three linear forms are 7, so psi = 49, 7.49 squared, (7 + psi2/100) squared
    X, D = artificial_manifold()
    centre = 201 * 100 + 100
    assert X[centre].tolist() == [0.0, 0.0, 0.0]
    psi = [49.0, 7.49**2, (7 + 0.01 * 7.49**2) ** 2]
    np.testing.assert_allclose(D[centre], np.array(psi) / sum(psi), rtol=1e-14)


def test_manifold_is_the_grid_in_documented_order():
    X, D = artificial_manifold()
    assert X.shape == D.shape == (40401, 3)
    for i, j in [(0, 0), (0, 200), (57, 3), (200, 0), (200, 200)]:
        x1, x2 = (i - 100) / 100, (j - 100) / 100
        expected = [x1, x2, math.sin((x1 + x2) * math.pi)]
        np.testing.assert_allclose(X[201 * i + j], expected, atol=1e-14)
        np.testing.assert_allclose(D.reshape(201, 201, 3)[i, j], by_hand(expected), rtol=1e-12)
    np.testing.assert_allclose(np.diff(np.unique(X[:, 0])), 0.01, rtol=1e-12)
    assert X[:, :2].min() == -1
    assert X[:, :2].max() == 1
    np.testing.assert_allclose(D.sum(axis=1), 1, rtol=1e-14)
    assert D.min() > 0


def test_training_set_is_uniform_on_the_cube_and_seeded():
    X, _ = make_artificial(20_000, random_state=0)
    assert X.min() >= -1
    assert X.max() <= 1
    assert np.abs(X.mean(axis=0)).max() < 0.02
    np.testing.assert_allclose(X.var(axis=0), 1 / 3, rtol=0.03)
    assert make_artificial()[0].shape == (500, 3)
    np.testing.assert_array_equal(make_artificial(5, random_state=7)[0], make_artificial(5, random_state=7)[0])
    assert not np.array_equal(make_artificial(5, random_state=7)[0], make_artificial(5, random_state=8)[0])


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, "many", True])
def test_bad_number_of_samples(n_samples):
    with pytest.raises(ValueError, match=r"n_samples=.* must be a whole number of at least 1"):
        make_artificial(n_samples)
