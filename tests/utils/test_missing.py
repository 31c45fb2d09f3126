"""Missing degrees: validation of tables with gaps, the two meanings of NaN, and the arithmetic of all estimators."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from skldl import AAKNN, SABFGS, SABFGSCV, AutoLDL, IncomLDL, LDLClassifier, MeanDistribution, StackingLDL, WInLDL
from skldl.data import make_missing
from skldl.enhancement import EnhancedLDL
from skldl.exceptions import (
    DataError,
    MissingDegreesWarning,
    MissingLabelError,
    NegativeDegreeError,
    NonFiniteError,
    RowSumError,
)
from skldl.metrics import kullback_leibler
from skldl.testing import make_distributions
from skldl.uncertainty import CalibratedLDL, ConformalLDL
from skldl.utils.missing import (
    check_partial_distributions,
    fill_gaps,
    mean_distribution,
    observed_pair,
    row_divergences,
)

nan = float("nan")
TRUE_DEGREES = [[0.5, nan, nan], [0.2, 0.3, 0.5], [nan, nan, 0.1], [nan, 0.4, nan]]
RATIOS = [[0.5, 0.5, nan], [0.2, 0.3, 0.5], [nan, 0.75, 0.25]]


def test_auto_warns_which_meaning_it_assumes():
    with pytest.warns(MissingDegreesWarning, match="missing=.auto. takes them as missing=.degrees."):
        assert check_partial_distributions(TRUE_DEGREES, "auto")[1] == "degrees"
    with pytest.warns(MissingDegreesWarning, match="missing='renormalised': only their ratios"):
        assert check_partial_distributions(RATIOS, "auto")[1] == "renormalised"


def test_named_meanings_do_not_warn():
    assert check_partial_distributions(TRUE_DEGREES, "degrees")[1] == "degrees"
    assert check_partial_distributions(RATIOS, "renormalised")[1] == "renormalised"


def test_cells_that_follow_from_the_others_are_filled_in():
    D, meaning = check_partial_distributions([[0.5, nan, 0.2], [0.4, 0.6, nan], [nan, nan, 1.0]], "degrees")
    assert meaning == "complete"
    np.testing.assert_allclose(D, [[0.5, 0.3, 0.2], [0.4, 0.6, 0.0], [0.0, 0.0, 1.0]])


def test_rounding_is_corrected():
    D, _ = check_partial_distributions([[0.5004, 0.5, nan], [0.2, 0.3, 0.5004]], "renormalised")
    np.testing.assert_allclose(np.nansum(D, axis=1), 1.0, rtol=1e-15)


@pytest.mark.parametrize(
    "table", [pd.DataFrame(TRUE_DEGREES).astype("Float64"), [[0.5, None, None], *TRUE_DEGREES[1:]]]
)
def test_missing_values_of_all_kinds_are_gaps(table):
    D, _ = check_partial_distributions(table, "degrees")
    np.testing.assert_array_equal(np.isnan(D), np.isnan(TRUE_DEGREES))


@pytest.mark.parametrize(
    ("table", "missing", "error", "message"),
    [
        ([[0.7, 0.7, nan], [0.2, 0.3, 0.5]], "degrees", RowSumError, "row 0 of y sum to 1.4"),
        ([[0.2, 0.3, 0.5], [0.3, 0.3, nan]], "renormalised", RowSumError, "set missing='degrees'"),
        ([[nan, 0.3, 0.1], [0.2, 0.3, 0.4]], "degrees", RowSumError, "Row 1 of y sums to 0.9"),
        ([[nan, -0.3, 0.1], [0.2, 0.3, 0.5]], "degrees", NegativeDegreeError, "Row 0"),
        ([[nan, np.inf, 0.1], [0.2, 0.3, 0.5]], "degrees", NonFiniteError, "infinity"),
        ([[nan, 0.3, nan], [nan, 0.3, nan]], "degrees", DataError, "Label 0 of y is observed in no row"),
        ([[nan] * 3, [nan] * 3], "auto", DataError, "has information"),
        ([[1.0, nan, nan], [nan, nan, 1.0]], "renormalised", DataError, "at least 2 observed"),
        ([[0.5, 0.5, nan, nan], [nan, nan, 0.5, 0.5]], "renormalised", DataError, "fall into 2 groups"),
    ],
)
def test_what_cannot_be_learnt_from_is_rejected(table, missing, error, message):
    with pytest.raises(error, match=message):
        check_partial_distributions(table, missing)


def test_labels_that_are_tied_by_others_are_one_group():
    table = [[0.5, 0.5, nan, nan], [nan, nan, 0.5, 0.5], [nan, 0.5, 0.5, nan]]
    assert check_partial_distributions(table, "renormalised")[1] == "renormalised"


def test_tags_say_who_learns_from_missing_degrees():
    assert get_tags(SABFGS()).target_tags.missing_degrees
    assert not get_tags(AAKNN()).target_tags.missing_degrees


@pytest.mark.parametrize("cell", [nan, None])
def test_estimators_that_need_every_degree_name_those_that_do_not(cell):
    X, D = make_distributions()
    table = D.astype(object) if cell is None else D.copy()
    table[1, 1] = cell
    with pytest.raises(NonFiniteError, match=r"AAKNN needs every degree\..*MeanDistribution, SABFGS, SABFGSCV"):
        AAKNN().fit(X, table)


@pytest.mark.parametrize(
    "model",
    [
        ConformalLDL(SABFGS()),
        CalibratedLDL(SABFGS()),
        StackingLDL([("linear", SABFGS()), ("mean", MeanDistribution())]),
        AutoLDL(),
        EnhancedLDL(estimator=SABFGS()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_around_others_reject_gaps_even_if_what_they_hold_could_learn_from_them(model):
    X, D = make_distributions()
    message = rf"row \d+, label \d\. {type(model).__name__} needs every degree.*skldl\.incomplete\.complete"
    with pytest.raises(NonFiniteError, match=message):
        model.fit(X, make_missing(D, 0.3))
    assert not getattr(get_tags(model).target_tags, "missing_degrees", False)


def test_missing_labels_of_a_classifier_are_rejected():
    X, D = make_distributions()
    with pytest.raises(MissingLabelError, match="y holds nan in row 0, which is not a label"):
        LDLClassifier(SABFGS()).fit(X, make_missing(D, 0.3))


@pytest.mark.parametrize("model", [SABFGS(), SABFGSCV(), IncomLDL(), WInLDL(), MeanDistribution()], ids=repr)
def test_rows_without_a_ratio_are_counted_in_a_warning(model):
    X, D = make_distributions(60, 3, 4)
    ratios = make_missing(D, 0.5, renormalise=True)
    ratios[[0, 4, 9]] = [nan, 1.0, nan, nan]
    with pytest.warns(MissingDegreesWarning, match="3 of 60 rows of y have fewer than two observed labels"):
        model.fit(X, ratios)
    assert (model.missing_, model.n_left_out_) == ("renormalised", 3)
    kept = np.delete(np.arange(60), [0, 4, 9])
    alone = clone(model).set_params(missing="renormalised").fit(X[kept], ratios[kept])
    assert alone.n_left_out_ == 0
    if not isinstance(model, SABFGSCV):  # whose folds contain these rows, too
        np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-9)
    assert clone(model).fit(X, D).n_left_out_ == 0


@pytest.mark.parametrize("meaning", ["degrees", "renormalised"])
def test_mean_distribution_is_the_most_likely_constant(meaning):
    rng = np.random.default_rng(0)
    D = rng.dirichlet([1, 2, 3, 4], size=50)
    D[rng.uniform(size=D.shape) < 0.4] = nan
    weight = rng.uniform(1, 2, size=50)
    if meaning == "renormalised":
        D /= np.maximum(np.nansum(D, axis=1, keepdims=True), 1e-12)

    def loss(scores):
        log_P = np.tile(scores - np.log(np.exp(scores).sum()), (50, 1))
        useful = (~np.isnan(D)).sum(axis=1) >= (2 if meaning == "renormalised" else 1)
        return (weight * row_divergences(D, log_P, meaning))[useful].sum()

    best = optimize.minimize(loss, np.zeros(4), tol=1e-12).x
    np.testing.assert_allclose(mean_distribution(D, weight, meaning), np.exp(best) / np.exp(best).sum(), atol=1e-5)


def test_the_mean_of_complete_rows_is_their_mean():
    X, D = make_distributions()
    np.testing.assert_allclose(MeanDistribution("degrees").fit(X, D).distribution_, D.mean(axis=0), rtol=1e-14)


def test_the_mean_recovers_a_constant_from_ratios():
    truth = np.array([0.1, 0.2, 0.3, 0.4])
    D = np.tile(truth, (30, 1))
    D[np.random.default_rng(0).uniform(size=D.shape) < 0.4] = nan
    D = D[(~np.isnan(D)).sum(axis=1) > 1]
    D /= np.nansum(D, axis=1, keepdims=True)
    model = MeanDistribution("renormalised").fit(np.ones((len(D), 1)), D)
    np.testing.assert_allclose(model.distribution_, truth, atol=1e-9)
    assert model.missing_ == "renormalised"


@pytest.mark.parametrize("meaning", ["degrees", "renormalised"])
def test_measures_of_pairs_equal_the_divergence_of_what_was_observed(meaning):
    table = np.array(TRUE_DEGREES if meaning == "degrees" else RATIOS)
    P = np.random.default_rng(0).dirichlet([1, 1, 1], size=len(table))
    true, predicted, kept = observed_pair(table, P, meaning)
    assert kept.all()
    expected = row_divergences(table, np.log(P), meaning).mean()
    assert kullback_leibler(true, predicted) == pytest.approx(expected, rel=1e-12)


def test_pairs_without_predicted_mass_are_spread_evenly():
    _, predicted, _ = observed_pair(np.array([[0.5, 0.5, nan]]), np.array([[0.0, 0.0, 1.0]]), "renormalised")
    np.testing.assert_array_equal(predicted, [[0.5, 0.5, 0.0]])


def test_score_of_complete_rows_is_that_of_the_base_class():
    X, D = make_distributions()
    model = SABFGS().fit(X, D)
    assert model.score(X, D) == -kullback_leibler(D, model.predict(X))


def test_score_and_complete_follow_the_names_of_the_labels():
    X, D = make_distributions()
    table = pd.DataFrame(D, columns=["a", "b", "c"])
    model = SABFGS().fit(X, table)
    hidden = table.copy()
    hidden.iloc[:10, 0] = nan
    hidden.iloc[:10, 1] = nan
    turned = hidden[["c", "a", "b"]]
    clean = clone(model).set_params(missing="degrees").fit(X, table)
    assert clean.score(X, hidden) == pytest.approx(clean.score(X, turned))
    np.testing.assert_allclose(clean.complete(X, hidden)[:, [2, 0, 1]], clean.complete(X, turned))
    weight = np.where(np.arange(len(X)) < 10, 1.0, 0.0)
    assert clean.score(X, hidden, weight) == pytest.approx(clean.score(X[:10], hidden[:10]))


def test_complete_keeps_what_was_observed():
    X, D = make_distributions(40, 4, 5)
    hidden = D.copy()
    hidden[np.random.default_rng(0).uniform(size=D.shape) < 0.4] = nan
    seen = ~np.isnan(hidden)
    model = SABFGS(missing="degrees").fit(X, hidden)
    filled = model.complete(X, hidden)
    np.testing.assert_allclose(filled[seen], D[seen], atol=1e-12)
    np.testing.assert_allclose(filled.sum(axis=1), 1.0, rtol=1e-12)
    ratios = hidden / np.nansum(hidden, axis=1, keepdims=True)
    kept = seen.sum(axis=1) > 1
    model = SABFGS(missing="renormalised").fit(X[kept], ratios[kept])
    filled = model.complete(X[kept], ratios[kept])
    again = np.where(seen[kept], filled, 0.0)
    np.testing.assert_allclose(again / again.sum(axis=1, keepdims=True), np.nan_to_num(ratios[kept]), atol=1e-12)
    P = model.predict(X[kept])
    np.testing.assert_allclose(filled[~seen[kept]], P[~seen[kept]], atol=1e-12)


def test_missing_labels_without_predicted_mass_share_the_rest_evenly():
    filled = fill_gaps(np.array([[0.5, nan, nan]]), np.array([[1.0, 0.0, 0.0]]), "degrees")
    np.testing.assert_allclose(filled, [[0.5, 0.25, 0.25]])


def test_model_selection_of_scikit_learn_works_with_gaps():
    X, D = make_distributions(60, 3, 5)
    hidden = make_missing(D, 0.4)
    pipeline = make_pipeline(StandardScaler(), SABFGS(missing="degrees", fit_intercept=True))
    scores = cross_val_score(pipeline, X, hidden, cv=3)
    assert (scores < 0).all()
    search = GridSearchCV(SABFGS(missing="degrees"), {"alpha": [10.0, 0.01]}, cv=3).fit(X, hidden)
    assert search.best_params_ == {"alpha": 0.01}
    assert get_tags(pipeline[-1]).target_tags.missing_degrees
