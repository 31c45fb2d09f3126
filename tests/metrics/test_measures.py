"""What holds for measures as such: identities, ranges, options, inputs, errors, weights, scorers, pickling."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.model_selection import cross_val_score

import skldl.metrics as metrics
from skldl import MeanDistribution
from skldl.exceptions import (
    DimensionError,
    LengthMismatchError,
    NegativeDegreeError,
    NonFiniteError,
    RowSumError,
    SampleWeightError,
    UnknownNameError,
)
from skldl.metrics import CHA_MEASURES, MEASURES, PAPER_MEASURES, SCORERS, Bound, Measure, evaluate, kullback_leibler

ALL = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())


def distributions(n_rows=5, n_labels=4):
    degrees = st.one_of(st.just(0.0), st.floats(1e-12, 1.0), st.sampled_from([1e-300, 5e-324, 0.25]))

    def normalise(rows):
        rows = rows + 0.0
        rows[np.arange(n_rows), rows.argmax(axis=1)] += 0.1
        return rows / rows.sum(axis=1, keepdims=True)

    return arrays(np.float64, (n_rows, n_labels), elements=degrees).map(normalise)


def unclamped(measure, true, pred, eps):
    """Values of the formula itself: `Measure.rowwise` lowers those above the bound to it, and so cannot exceed it."""
    return replace(measure, bound=Bound("∞", np.inf)).rowwise(true, pred, eps=eps if measure.uses_eps else None)


@given(distributions(), distributions())
@settings(max_examples=60, deadline=None)
def test_never_nan_and_always_in_range(true, pred):
    for measure in MEASURES.values():
        for eps in (None, 0, 1e-300) if measure.uses_eps else (None,):
            values = measure.rowwise(true, pred, eps=eps)
            assert not np.isnan(values).any(), measure.name
            assert values.min() >= measure.lower - 1e-12, measure.name
            assert values.max() <= measure.upper(4), measure.name
            values = unclamped(measure, true, pred, eps)
            assert values.min() >= measure.lower - 1e-12, measure.name
            assert values.max() <= measure.upper(4) + 1e-12, measure.name


def extreme_pairs(n_labels):
    """True and predicted rows at which every measure reaches its bounds; the number of labels is even and above two."""
    first, last = np.eye(n_labels)[[0, -1]]
    ends = (first + last) / 2
    half = np.repeat([2.0 / n_labels, 0.0], n_labels // 2)
    rising = np.arange(1.0, n_labels + 1)
    rising /= rising.sum()
    pairs = [(first, first), (rising, rising), (first, last), (half, half[::-1]), (rising, rising[::-1]), (ends, first)]
    return tuple(np.array(rows) for rows in zip(*pairs, strict=True))


def assert_bounds_are_reached(measure, n_labels):
    values = unclamped(measure, *extreme_pairs(n_labels), 0.0)
    assert values.max() == pytest.approx(measure.upper(n_labels), rel=1e-14)
    assert values.min() == pytest.approx(measure.lower, rel=1e-14, abs=1e-15)


@ALL
@pytest.mark.parametrize("n_labels", [4, 6, 10])
def test_bounds_are_reached_by_the_formula_itself(measure, n_labels):
    assert_bounds_are_reached(measure, n_labels)


@pytest.mark.parametrize(
    "measure",
    [
        metrics.minkowski.with_options(power=1.5),
        metrics.minkowski.with_options(power=1),
        metrics.earth_mover.with_options(values=[1, 2, 4, 9]),
        metrics.error_of_mean.with_options(values=[9, 4, 2, 1]),
        metrics.top_k.with_options(k=2),
    ],
    ids=lambda measure: measure.name,
)
def test_bounds_that_depend_on_options_are_reached(measure):
    assert_bounds_are_reached(measure, 4)


def test_identities(pair):
    value = {name: measure.rowwise(*pair) for name, measure in MEASURES.items()}
    same = np.testing.assert_allclose
    same(value["sorensen"], 1 - value["czekanowski"], rtol=1e-12)
    same(value["sorensen"], value["city_block"] / 2, rtol=1e-12)
    same(value["topsoe"], 2 * value["jensen_shannon"], rtol=1e-15)
    same(value["jensen_difference"], value["jensen_shannon"], rtol=1e-15)
    same(value["probabilistic_symmetric_chi2"], 2 * value["squared_chi2"], rtol=1e-15)
    same(value["ruzicka"], 1 - value["soergel"], rtol=1e-12)
    same(value["tanimoto"], value["soergel"], rtol=1e-15)
    same(value["jaccard"], 1 - value["kumar_hassebrook"], rtol=1e-12)
    same(value["intersection"], value["czekanowski"], rtol=1e-12)
    same(value["motyka"], value["czekanowski"] / 2, rtol=1e-15)
    same(value["kulczynski_s"], 1 / value["kulczynski_d"], rtol=1e-12)
    same(value["gower"], value["city_block"] / 5, rtol=1e-15)
    same(value["harmonic_mean"], 1 - value["squared_chi2"] / 2, rtol=1e-12)
    same(value["squared_chord"], 2 - 2 * value["fidelity"], rtol=1e-10)
    same(value["hellinger"], 2 * np.sqrt(1 - value["fidelity"]), rtol=1e-10)
    same(value["divergence"], 2 * value["clark"] ** 2, rtol=1e-12)
    same(value["jeffreys"], value["kullback_leibler"] + value["reversed_kullback_leibler"], rtol=1e-12)
    same(value["additive_symmetric_chi2"], value["pearson_chi2"] + value["neyman_chi2"], rtol=1e-15)
    same(value["bhattacharyya"], -np.log(value["fidelity"]), rtol=1e-12)


@ALL
def test_label_order_matters_only_for_ordered_labels(measure, pair):
    true, pred = pair
    shuffled = measure.rowwise(true[:, [3, 0, 4, 1, 2]], pred[:, [3, 0, 4, 1, 2]])
    unchanged = np.allclose(shuffled, measure.rowwise(true, pred), rtol=1e-9)
    assert unchanged == (measure.family != "ordered labels")


ONE_SIDED = {"pearson_chi2", "neyman_chi2", "kullback_leibler", "k_divergence", "reversed_kullback_leibler"}


@pytest.mark.parametrize("name", sorted({**CHA_MEASURES, **metrics.VICISSITUDE_MEASURES}))
def test_symmetric_unless_one_sided(name, pair):
    true, pred = pair
    forward, backward = MEASURES[name].rowwise(true, pred), MEASURES[name].rowwise(pred, true)
    assert np.allclose(forward, backward, rtol=1e-9) == (name not in ONE_SIDED)


def test_metadata_is_complete():
    families = {}
    for measure in CHA_MEASURES.values():
        families[measure.family] = families.get(measure.family, 0) + 1
    assert families == {
        "Lp Minkowski": 4,
        "L1": 6,
        "intersection": 7,
        "inner product": 6,
        "fidelity or squared chord": 5,
        "squared L2 or χ²": 8,
        "Shannon's entropy": 6,
        "combinations": 3,
    }
    assert {measure.family for measure in metrics.VICISSITUDE_MEASURES.values()} == {"vicissitude"}
    assert list(PAPER_MEASURES) == ["chebyshev", "clark", "canberra", "kullback_leibler", "cosine", "intersection"]
    for name, measure in MEASURES.items():
        assert getattr(metrics, name) is measure
        assert measure.__name__ == measure.key == measure.name == name
        assert measure.formula
        assert measure.text
        assert measure.zeros
        assert measure.use.endswith(".")
        assert measure.arrow in "↑↓"
        assert measure.uses_eps == ("eps" in measure.zeros)
    assert metrics.clark.range == "[0, √c]"
    assert metrics.spearman.range == "[-1, 1]"
    assert "clark" in repr(metrics.clark)


def test_measures_cannot_be_changed():
    with pytest.raises(AttributeError):
        metrics.clark.name = "other"
    with pytest.raises(TypeError):
        metrics.minkowski.options["power"] = 2


# -- options


@ALL
def test_tables_lists_and_single_precision(measure, pair):
    true, pred = pair
    expected = measure.rowwise(true, pred)
    names = list("abcde")
    for make in (
        lambda rows: pd.DataFrame(rows, columns=names),
        lambda rows: pl.DataFrame(rows, schema=names),
        lambda rows: rows.tolist(),
        np.asfortranarray,
    ):
        np.testing.assert_array_equal(measure.rowwise(make(true), make(pred)), expected)
    single = measure.rowwise(true.astype(np.float32), pred.astype(np.float32))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, expected, rtol=2e-2, atol=1e-6)


def test_the_arguments_stay_as_they_are(pair):
    true, pred = (array.copy() for array in pair)
    evaluate(true, pred, measures=MEASURES)
    np.testing.assert_array_equal(true, pair[0])
    np.testing.assert_array_equal(pred, pair[1])


@pytest.mark.parametrize("call", [metrics.clark, metrics.clark.rowwise, evaluate])
def test_bad_distributions_get_a_clear_error(call):
    good = [[0.5, 0.5], [0.2, 0.8]]
    with pytest.raises(LengthMismatchError, match="number of rows differs"):
        call(good, good[:1])
    with pytest.raises(LengthMismatchError, match="number of labels differs"):
        call(good, [[0.5, 0.5, 0.0]] * 2)
    with pytest.raises(NonFiniteError, match="D_pred contains NaN: row 1, label 0"):
        call(good, [[0.5, 0.5], [np.nan, 0.5]])
    with pytest.raises(RowSumError, match="Row 0 of D_true sums to 3"):
        call([[1, 2], [0.5, 0.5]], good)
    with pytest.raises(NegativeDegreeError, match="D_pred"):
        call(good, [[-0.5, 1.5], [0.5, 0.5]])
    with pytest.raises(DimensionError, match="D_true"):
        call([0.5, 0.5], good)


def test_eps_must_make_sense():
    good = [[0.5, 0.5]]
    with pytest.raises(TypeError, match="clark has no logarithm"):
        metrics.clark(good, good, eps=1e-3)
    for eps in (-0.1, 1.0, np.nan):
        with pytest.raises(ValueError, match="eps="):
            metrics.kullback_leibler(good, good, eps=eps)


# -- weights


@ALL
def test_weight_two_is_the_row_twice(measure, pair):
    true, pred = pair
    weight = np.ones(40)
    weight[:7] = 2
    twice = measure(np.vstack([true, true[:7]]), np.vstack([pred, pred[:7]]))
    assert measure(true, pred, weight) == pytest.approx(twice, rel=1e-12)
    assert measure(true, pred) == pytest.approx(measure.rowwise(true, pred).mean())


def test_row_without_weight_does_not_count():
    true, pred = [[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]
    assert metrics.kullback_leibler(true, pred, [0, 1], eps=0) == 0
    assert metrics.kullback_leibler(true, pred, eps=0) == np.inf


@pytest.mark.parametrize("weight", [[1], [1, -1], [0, 0], [1, np.nan]])
def test_bad_weights_get_a_clear_error(weight):
    good = [[0.5, 0.5], [0.2, 0.8]]
    with pytest.raises(SampleWeightError):
        metrics.clark(good, good, weight)
    with pytest.raises(SampleWeightError):
        evaluate(good, good, weight)


# -- several at once


def test_evaluate_equals_the_single_measures(pair):
    weight = np.random.default_rng(0).random(40)
    together = evaluate(*pair, weight, measures=MEASURES)
    assert list(together) == list(MEASURES)
    for name, measure in MEASURES.items():
        assert together[name] == measure(*pair, weight)
    assert list(evaluate(*pair)) == list(PAPER_MEASURES)


def test_evaluate_takes_names_objects_and_options(pair):
    values = evaluate(*pair, measures=["clark", metrics.top_k, metrics.top_k.with_options(k=3)])
    assert list(values) == ["clark", "top_k", "top_k(k=3)"]
    assert evaluate(*pair, measures="clark") == {"clark": metrics.clark(*pair)}
    assert evaluate(*pair, measures=[]) == {}
    with pytest.raises(UnknownNameError, match=r"No measure is called 'clarke'. The known ones are .*clark,"):
        evaluate(*pair, measures=["clarke"])


def test_blocks_of_rows_leave_no_seam():
    generator = np.random.default_rng(1)
    true, pred = (generator.dirichlet(np.ones(3), 25_000) for _ in range(2))
    halves = np.concatenate([metrics.clark.rowwise(true[i : i + 12_500], pred[i : i + 12_500]) for i in (0, 12_500)])
    np.testing.assert_array_equal(metrics.clark.rowwise(true, pred), halves)


# -- scikit-learn and pickling


def test_scorers_have_the_right_sign(pair):
    X = np.arange(40.0)[:, None]
    D = pair[0]
    for name, measure in MEASURES.items():
        scores = cross_val_score(MeanDistribution(), X, D, scoring=SCORERS[name], cv=4)
        folds = np.split(np.arange(40), 4)
        expected = [measure(D[fold], np.tile(np.delete(D, fold, axis=0).mean(axis=0), (10, 1))) for fold in folds]
        np.testing.assert_allclose(scores, expected if measure.higher_is_better else -np.array(expected), rtol=1e-9)


@ALL
def test_pickle_and_copy_give_the_same_object(measure):
    assert pickle.loads(pickle.dumps(measure)) is measure
    assert copy.deepcopy(measure) is measure


def test_options_survive_pickling(pair):
    for measure in (
        metrics.top_k.with_options(k=3),
        metrics.minkowski.with_options(power=1.5),
        metrics.earth_mover.with_options(values=[1, 2, 4, 8, 16]),
    ):
        back = pickle.loads(pickle.dumps(measure))
        assert (back.name, back.options) == (measure.name, measure.options)
        assert back(*pair) == measure(*pair)
    scorer = pickle.loads(pickle.dumps(SCORERS["clark"]))
    assert scorer._score_func is metrics.clark


def test_someone_elses_measure_works_everywhere(pair):
    own = Measure("own", "Own", "mine", r"\sum_j |d_j|", "Σ|d|", False, _own)
    assert evaluate(*pair, measures=[own])["own"] == pytest.approx(1)
    for same in (copy.copy(own), pickle.loads(pickle.dumps(own))):
        assert same(*pair) == own(*pair)
        assert (same.name, same.range) == ("own", "[0, ∞]")


def _own(pair):
    return np.asarray(pair.p.sum(axis=0))


@pytest.mark.parametrize("measure", MEASURES.values(), ids=str)
def test_a_wrong_sum_changes_nothing(measure):
    """Rows that sum to one within the tolerance are divided by their sum, so no measure rewards a larger one."""
    generator = np.random.default_rng(0)
    D, P = generator.dirichlet(np.ones(5), 30), generator.dirichlet(np.ones(5), 30)
    expected = measure.rowwise(D, P)
    for factor in (1.00099, 0.99901):
        np.testing.assert_allclose(measure.rowwise(D, factor * P), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(measure.rowwise(factor * D, P), expected, rtol=1e-9, atol=1e-12)


def test_kullback_leibler_is_never_negative():
    generator = np.random.default_rng(0)
    D = generator.dirichlet(np.full(50, 0.05), 2000)
    assert kullback_leibler.rowwise(D, D * 1.0009).min() >= 0
    assert kullback_leibler.rowwise(D, np.nextafter(D, 1)).min() >= 0


def test_huge_weights_keep_the_mean():
    values, weight = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], np.array([1.0, 2.0, 1.0])
    expected = kullback_leibler(values, [[0.5, 0.5]] * 3, weight)
    assert kullback_leibler(values, [[0.5, 0.5]] * 3, 8e307 * weight) == pytest.approx(expected)


@pytest.mark.parametrize("name", list(MEASURES))
@pytest.mark.parametrize("n_labels", [3, 68, 500])
def test_rounding_takes_no_value_out_of_the_range(name, n_labels):
    """The cosine of a row with itself was 1 + 4e-16, and so its loss below 0."""
    rng = np.random.default_rng(0)
    D = rng.dirichlet(np.full(n_labels, 0.5), size=300)
    P = np.vstack([D[:100], D[100:200] * (1 + 1e-15 * rng.normal(size=(100, n_labels))), D[299:199:-1]])
    P /= P.sum(axis=1, keepdims=True)
    measure = MEASURES[name]
    values = measure.rowwise(D, P)
    assert measure.lower <= values.min()
    assert values.max() <= measure.upper(n_labels)
    if measure.has_zero_loss:
        assert measure.loss(values, n_labels).min() >= 0


@pytest.mark.parametrize("name", list(MEASURES))
def test_losses_are_lower_for_better_values(name):
    measure = MEASURES[name]
    rng = np.random.default_rng(0)
    D, P = rng.dirichlet(np.ones(4), size=(2, 30))
    values = measure.rowwise(D, P)
    losses = measure.loss(values, 4)
    steps = np.diff(losses[np.argsort(values)])
    assert (steps <= 0).all() if measure.higher_is_better else (steps >= 0).all()
    assert np.ptp(losses) == pytest.approx(np.ptp(values))
    if measure.has_zero_loss:
        assert losses.min() >= 0
        if measure.higher_is_better:
            np.testing.assert_allclose(measure.loss(measure.upper(4), 4), 0)
    columns = measure.loss([[0.1, 0.2], [0.1, 0.2]], [[3], [7]])
    np.testing.assert_allclose(columns, [measure.loss([0.1, 0.2], 3), measure.loss([0.1, 0.2], 7)])
