"""Every measure against its formula in 60 digits, written here a second time from the definitions."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from skldl.metrics import CHA_MEASURES, LATER_MEASURES, MEASURES, PAPER_MEASURES, VICISSITUDE_MEASURES

EPS = float(np.finfo(np.float64).eps)
TOLERANCE = 1e-12  # absolute below 1, relative above; the same for the six and for all others
INF = mpf("inf")
GREATEST = mpf(float(np.finfo(np.float64).max))


@pytest.fixture(autouse=True)
def _sixty_digits():
    with mpmath.workdps(60):
        yield


def over(a, b):
    """a / b with 0/0 = 0 and x/0 = ∞."""
    if b == 0:
        return mpf(0) if a == 0 else INF
    return a / b


def ln(x):
    return mpmath.log(x) if x > 0 else -INF


def a_ln(a, x):
    """a ln x with 0 ln 0 = 0."""
    return mpf(0) if a == 0 else a * ln(x)


def total(function, p, q):
    return mpmath.fsum(function(a, b) for a, b in zip(p, q, strict=True))


def kl(p, q, e):
    return total(lambda a, b: mpf(0) if a == 0 else (a * ln(a / max(b, e)) if max(b, e) > 0 else INF), p, q)


def jeffreys_term(a, b, e):
    if a == b:
        return mpf(0)
    top, bottom = max(a, e), max(b, e)
    return INF if top == 0 or bottom == 0 else (a - b) * ln(top / bottom)


def taneja_term(a, b, e):
    middle = (a + b) / 2
    if middle == 0:
        return mpf(0)
    root = mpmath.sqrt(max(a, e) * max(b, e))
    return INF if root == 0 else middle * ln(middle / root)


def topsoe(p, q):
    return total(lambda a, b: a_ln(a, over(2 * a, a + b)) + a_ln(b, over(2 * b, a + b)), p, q)


def jensen_difference(p, q):
    return total(lambda a, b: (a_ln(a, a) + a_ln(b, b)) / 2 - a_ln((a + b) / 2, (a + b) / 2), p, q)


def running(p):
    sums = []
    for a in p:
        sums.append((sums[-1] if sums else mpf(0)) + a)
    return sums


def earth_mover(p, q):
    return mpmath.fsum(abs(a - b) for a, b in zip(running(p)[:-1], running(q)[:-1], strict=True))


def tops(p):
    return [j for j, a in enumerate(p) if a == max(p)]


def argmax_accuracy(p, q):
    return mpf(len(set(tops(p)) & set(tops(q)))) / len(tops(q))


def top_two(p, q):
    """Enumerate which two labels a random choice among ties can name."""
    from itertools import combinations

    order = sorted(q, reverse=True)
    sure = [j for j, b in enumerate(q) if b > order[1]]
    tied = [j for j, b in enumerate(q) if b == order[1]]
    if len(tied) > 50:  # only rows of 1,000 labels: count instead of enumerating
        return mpf(1) if set(sure) & set(tops(p)) else 1 - mpf(len(set(tied) - set(tops(p)))) / len(tied)
    draws = [set(sure) | set(draw) for draw in combinations(tied, 2 - len(sure))]
    return mpf(sum(bool(draw & set(tops(p))) for draw in draws)) / len(draws)


def ranks(p):
    return [sum(b < a for b in p) + mpf(sum(b == a for b in p) + 1) / 2 for a in p]


def spearman(p, q):
    a, b = ranks(p), ranks(q)
    middle = mpf(len(p) + 1) / 2
    spread = mpmath.sqrt(sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b))
    return over(sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True)), spread)


def kendall(p, q):
    p, q = np.array(p, dtype=float), np.array(q, dtype=float)
    upper = np.triu_indices(len(p), 1)
    a, b = (np.sign(x[:, None] - x[None, :])[upper] for x in (p, q))
    return over(mpf(int((a * b).sum())), mpmath.sqrt(mpf(int((a * a).sum())) * mpf(int((b * b).sum()))))


def d2(a, b):
    return (a - b) ** 2


def root_d2(a, b):
    return (mpmath.sqrt(a) - mpmath.sqrt(b)) ** 2


def S(function):
    return lambda p, q, e: total(function, p, q)


def l1(p, q):
    return total(lambda a, b: abs(a - b), p, q)


def small(p, q):
    return total(min, p, q)


def large(p, q):
    return total(max, p, q)


def both(p, q):
    return total(lambda a, b: a + b, p, q)


def dot(p, q):
    return total(lambda a, b: a * b, p, q)


def pearson(p, q, e):
    return total(lambda a, b: over(d2(a, b), max(b, e)), p, q)


def euclid2(p, q):
    return total(d2, p, q)


def chord(p, q):
    return total(root_d2, p, q)


def fid(p, q):
    return total(lambda a, b: mpmath.sqrt(a * b), p, q)


def relative(p, q, power):
    return total(lambda a, b: over(abs(a - b), a + b) ** power, p, q)


FORMULAE = {
    "euclidean": lambda p, q, e: mpmath.sqrt(euclid2(p, q)),
    "city_block": lambda p, q, e: l1(p, q),
    "minkowski": lambda p, q, e: mpmath.cbrt(total(lambda a, b: abs(a - b) ** 3, p, q)),
    "chebyshev": lambda p, q, e: max(abs(a - b) for a, b in zip(p, q, strict=True)),
    "sorensen": lambda p, q, e: l1(p, q) / both(p, q),
    "gower": lambda p, q, e: l1(p, q) / len(p),
    "soergel": lambda p, q, e: l1(p, q) / large(p, q),
    "kulczynski_d": lambda p, q, e: over(l1(p, q), max(small(p, q), e)),
    "canberra": lambda p, q, e: relative(p, q, 1),
    "lorentzian": S(lambda a, b: mpmath.log(1 + abs(a - b))),
    "intersection": lambda p, q, e: small(p, q),
    "wave_hedges": S(lambda a, b: over(abs(a - b), max(a, b))),
    "czekanowski": lambda p, q, e: 2 * small(p, q) / both(p, q),
    "motyka": lambda p, q, e: small(p, q) / both(p, q),
    "kulczynski_s": lambda p, q, e: over(small(p, q), max(l1(p, q), e)),
    "ruzicka": lambda p, q, e: small(p, q) / large(p, q),
    "tanimoto": lambda p, q, e: (both(p, q) - 2 * small(p, q)) / (both(p, q) - small(p, q)),
    "inner_product": lambda p, q, e: dot(p, q),
    "harmonic_mean": S(lambda a, b: 2 * over(a * b, a + b)),
    "cosine": lambda p, q, e: dot(p, q) / mpmath.sqrt(dot(p, p) * dot(q, q)),
    "kumar_hassebrook": lambda p, q, e: dot(p, q) / (dot(p, p) + dot(q, q) - dot(p, q)),
    "jaccard": lambda p, q, e: euclid2(p, q) / (dot(p, p) + dot(q, q) - dot(p, q)),
    "dice": lambda p, q, e: euclid2(p, q) / (dot(p, p) + dot(q, q)),
    "fidelity": lambda p, q, e: fid(p, q),
    "bhattacharyya": lambda p, q, e: -ln(max(fid(p, q), e)),
    "hellinger": lambda p, q, e: mpmath.sqrt(2 * chord(p, q)),
    "matusita": lambda p, q, e: mpmath.sqrt(chord(p, q)),
    "squared_chord": lambda p, q, e: chord(p, q),
    "squared_euclidean": lambda p, q, e: euclid2(p, q),
    "pearson_chi2": pearson,
    "neyman_chi2": lambda p, q, e: pearson(q, p, e),
    "squared_chi2": S(lambda a, b: over(d2(a, b), a + b)),
    "probabilistic_symmetric_chi2": S(lambda a, b: 2 * over(d2(a, b), a + b)),
    "divergence": lambda p, q, e: 2 * relative(p, q, 2),
    "clark": lambda p, q, e: mpmath.sqrt(relative(p, q, 2)),
    "additive_symmetric_chi2": lambda p, q, e: total(
        lambda a, b: over(d2(a, b) * (max(a, e) + max(b, e)), max(a, e) * max(b, e)), p, q
    ),
    "kullback_leibler": kl,
    "jeffreys": lambda p, q, e: total(lambda a, b: jeffreys_term(a, b, e), p, q),
    "k_divergence": S(lambda a, b: a_ln(a, over(2 * a, a + b))),
    "topsoe": lambda p, q, e: topsoe(p, q),
    "jensen_shannon": lambda p, q, e: topsoe(p, q) / 2,
    "jensen_difference": lambda p, q, e: jensen_difference(p, q),
    "taneja": lambda p, q, e: total(lambda a, b: taneja_term(a, b, e), p, q),
    "kumar_johnson": lambda p, q, e: total(
        lambda a, b: over((a**2 - b**2) ** 2, 2 * (max(a, e) * max(b, e)) ** mpf("1.5")), p, q
    ),
    "average_l1_linf": lambda p, q, e: (l1(p, q) + max(abs(a - b) for a, b in zip(p, q, strict=True))) / 2,
    "vicis_wave_hedges": lambda p, q, e: total(lambda a, b: over(abs(a - b), max(min(a, b), e)), p, q),
    "vicis_symmetric_chi2_1": lambda p, q, e: total(lambda a, b: over(d2(a, b), max(min(a, b), e) ** 2), p, q),
    "vicis_symmetric_chi2_2": lambda p, q, e: total(lambda a, b: over(d2(a, b), max(min(a, b), e)), p, q),
    "vicis_symmetric_chi2_3": S(lambda a, b: over(d2(a, b), max(a, b))),
    "max_symmetric_chi2": lambda p, q, e: max(pearson(p, q, e), pearson(q, p, e)),
    "min_symmetric_chi2": lambda p, q, e: min(pearson(p, q, e), pearson(q, p, e)),
    "reversed_kullback_leibler": lambda p, q, e: kl(q, p, e),
    "earth_mover": lambda p, q, e: earth_mover(p, q),
    "cumulative_jensen_shannon": lambda p, q, e: topsoe(running(p), running(q)) / 2,
    "error_of_mean": lambda p, q, e: abs(mpmath.fsum(j * (a - b) for j, (a, b) in enumerate(zip(p, q, strict=True)))),
    "argmax_accuracy": lambda p, q, e: argmax_accuracy(p, q),
    "error_probability": lambda p, q, e: 1 - mpmath.fsum(p[j] for j in tops(q)) / len(tops(q)),
    "top_k": lambda p, q, e: top_two(p, q),
    "spearman": lambda p, q, e: spearman(p, q),
    "kendall": lambda p, q, e: kendall(p, q),
    "zero_one_loss": lambda p, q, e: 1 - argmax_accuracy(p, q),
    "match_rate": lambda p, q, e: (
        mpmath.fsum(a * b for a, b in zip(top_two_chances(p), top_two_chances(q), strict=True)) / 2
    ),
    "divisiveness_error": lambda p, q, e: abs(smaller_half(p) - smaller_half(q)),
}


def top_two_chances(row):
    """Chance of each label to be among the two largest, over all ways to break ties."""
    order = sorted(row, reverse=True)
    last = order[1]
    sure, tied = sum(x > last for x in row), sum(x == last for x in row)
    return [mpf(1) if x > last else mpf(2 - sure) / tied if x == last else mpf(0) for x in row]


def smaller_half(row):
    half = len(row) // 2
    return min(mpmath.fsum(row[:half]), mpmath.fsum(row[-half:]))


def normal(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return rows / rows.sum(axis=1, keepdims=True)


def make_cases():
    generator = np.random.default_rng(7)
    random = [generator.dirichlet(np.ones(6), 8) for _ in range(2)]
    sharp = [generator.dirichlet(np.full(5, 0.05), 6) for _ in range(2)]
    holes = [normal(generator.random((8, 7)) * (generator.random((8, 7)) < 0.5) + [1e-3, 0, 0, 0, 0, 0, 0])] * 2
    holes[1] = normal(generator.random((8, 7)) * (generator.random((8, 7)) < 0.5) + [0, 0, 0, 0, 0, 0, 1e-3])
    hot = np.eye(4)
    same = np.vstack([generator.dirichlet(np.ones(4), 3), [[0.5, 0.5, 0, 0]], [[0.25] * 4], hot[:1]])
    near = generator.dirichlet(np.ones(5), 4)
    tiny = np.array([[1e-300, 0.5, 0.5, 0.0], [0.25, 0.75, 1e-300, 1e-300], [1e-300, 1e-300, 1.0, 0.0]])
    tiny_pred = np.array([[0.5, 0.5, 0.0, 1e-300], [1e-300, 1.0, 2e-300, 0.0], [1.0, 0.0, 1e-300, 5e-324]])
    rounded = [normal(np.add(generator.integers(0, 4, (10, 5)), [1, 0, 0, 0, 0])) for _ in range(2)]
    return {
        "random": random,
        "sharp": sharp,
        "zeros": holes,
        "one-hot": [hot[[0, 0, 3, 1]], hot[[0, 1, 2, 1]]],
        "identical": [same, same],
        "nearly identical": [near, normal(near * (1 + 1e-9 * generator.standard_normal(near.shape)))],
        "1e-300": [tiny, tiny_pred],
        "ties": rounded,
        "two labels": [normal(generator.random((5, 2))), normal(generator.random((5, 2)))],
        "1000 labels": [generator.dirichlet(np.ones(1000), 1) for _ in range(2)],
        "1000 labels with zeros": [normal(np.maximum(generator.random((1, 1000)) - 0.7, 0)) for _ in range(2)],
    }


CASES = make_cases()


def exact_values(name, true, pred, eps):
    rows = ([mpf(float(x)) for x in row] for row in true), ([mpf(float(x)) for x in row] for row in pred)
    values = [FORMULAE[name](p, q, mpf(eps)) for p, q in zip(*rows, strict=True)]
    return np.array([float("inf") if value > GREATEST else float(value) for value in values])


def agree(values, exact):
    with np.errstate(invalid="ignore"):
        error = np.where(values == exact, 0.0, np.abs(values - exact) / np.maximum(1.0, np.abs(exact)))
    return error.max() <= TOLERANCE


def test_every_measure_has_a_formula_here():
    assert set(FORMULAE) == set(MEASURES)
    assert (len(PAPER_MEASURES), len(CHA_MEASURES), len(VICISSITUDE_MEASURES)) == (6, 45, 6)
    assert len(MEASURES) == 45 + 6 + len(LATER_MEASURES)


# the oracle of 1000 labels takes most of the time
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if "1000" in case else case for case in CASES]
)
@pytest.mark.parametrize("name", MEASURES)
def test_equals_its_formula_in_high_precision(name, case):
    true, pred = CASES[case]
    values, exact = MEASURES[name].rowwise(true, pred), exact_values(name, true, pred, EPS)
    assert agree(values, exact), f"{values} instead of {exact}"


@pytest.mark.parametrize("eps", [0.0, 1e-5])
@pytest.mark.parametrize("name", [name for name, measure in MEASURES.items() if measure.uses_eps])
def test_floor_is_as_stated(name, eps):
    for case, (true, pred) in CASES.items():
        if "1000" in case:
            continue
        values, exact = MEASURES[name].rowwise(true, pred, eps=eps), exact_values(name, true, pred, eps)
        assert agree(values, exact), f"{case}: {values} instead of {exact}"


def test_zero_floor_gives_the_true_infinity():
    infinite = {
        name
        for name, measure in MEASURES.items()
        if measure.uses_eps and np.isinf(measure([[1.0, 0.0]], [[0.0, 1.0]], eps=0))
    }
    assert infinite == {name for name, measure in MEASURES.items() if measure.uses_eps} - {"kulczynski_s"}
    assert MEASURES["kulczynski_s"]([[1.0, 0.0]], [[1.0, 0.0]], eps=0) == np.inf
    assert MEASURES["kullback_leibler"]([[1.0, 0.0]], [[0.0, 1.0]]) == pytest.approx(-np.log(EPS))


NOT_ONE_WHERE_TIED = ("inner_product", "spearman", "kendall", "error_probability", "match_rate")


@pytest.mark.parametrize("name", MEASURES)
def test_identical_rows_are_at_the_best_value(name):
    same, _ = CASES["identical"]
    measure = MEASURES[name]
    values = measure.rowwise(same, same)
    if not measure.higher_is_better and name != "error_probability":
        assert np.abs(values).max() < 1e-15
    elif measure.upper(4) < np.inf and name not in NOT_ONE_WHERE_TIED:
        # where the top is tied, a named label is right whichever it is
        np.testing.assert_allclose(values, measure.upper(4), rtol=1e-15)
