"""Columns are matched by name where there are names; predictions carry the names of the labels if asked to."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone

from skldl import AAKNN, SABFGS, AutoLDL, LDLClassifier, MeanDistribution, StackingLDL
from skldl.distributions import PropagationEnhancer
from skldl.enhancement import GLLE, KM, EnhancedLDL
from skldl.exceptions import FeatureMismatchError, LabelMismatchError
from skldl.metrics import MEASURES, chebyshev, evaluate, mu, skill
from skldl.tabular import TableEncoder
from skldl.testing import make_distributions
from skldl.utils.column_names import order_of_labels

TRUE = pd.DataFrame({"a": [0.7, 0.2], "b": [0.1, 0.2], "c": [0.2, 0.6]})
OTHER = pd.DataFrame({"a": [0.6, 0.1], "b": [0.2, 0.3], "c": [0.2, 0.6]})
TURNED = ["c", "a", "b"]


@pytest.mark.parametrize("name", MEASURES)
def test_measures_align_labels_by_name(name):
    expected = MEASURES[name].rowwise(TRUE.to_numpy(), OTHER.to_numpy())
    np.testing.assert_array_equal(MEASURES[name].rowwise(TRUE, OTHER[TURNED]), expected)


def test_all_ways_to_measure_align():
    assert evaluate(TRUE, OTHER[TURNED]) == evaluate(TRUE, OTHER)
    assert mu(TRUE, OTHER[TURNED]) == mu(TRUE, OTHER)
    reference = pd.DataFrame([[0.5, 0.2, 0.3]], columns=["a", "b", "c"])
    assert skill(TRUE, OTHER, reference[TURNED]) == skill(TRUE, OTHER, reference)
    assert chebyshev(pl.from_pandas(TRUE), OTHER[TURNED]) == chebyshev(TRUE, OTHER)


def test_other_labels_are_rejected_and_nameless_tables_are_taken_by_position():
    with pytest.raises(LabelMismatchError, match=r"'b'.*'x'"):
        chebyshev(TRUE, OTHER.rename(columns={"b": "x"}))
    with pytest.raises(LabelMismatchError, match=r"should be a label 'c', but .* has no such column. Rename"):
        order_of_labels(["a", "b", "c"], ["a", "b"], name="D_pred")
    for nameless in (OTHER.to_numpy(), pd.DataFrame(OTHER.to_numpy())):
        assert chebyshev(TRUE, nameless) == chebyshev(TRUE, OTHER)
    whole = TRUE.set_axis([2, 0, 1], axis=1)
    assert chebyshev(whole, whole[[0, 1, 2]]) == 0


def test_score_aligns_labels_with_those_of_fit():
    X = np.array([[0.0], [1.0]])
    model = SABFGS(alpha=0.1, fit_intercept=True).fit(X, TRUE)
    assert model.score(X, TRUE[TURNED]) == pytest.approx(model.score(X, TRUE))
    with pytest.raises(LabelMismatchError):
        model.score(X, TRUE.rename(columns={"a": "x"}))
    assert SABFGS().fit(X, TRUE.to_numpy()).score(X, TRUE) <= 0


def test_integer_columns_in_another_order_are_rejected():
    X, D = make_distributions(20)
    table = pd.DataFrame(X)
    model = SABFGS().fit(table, D)
    with pytest.raises(FeatureMismatchError, match="another order"):
        model.predict(table[table.columns[::-1]])
    np.testing.assert_array_equal(model.predict(X), model.predict(table))
    named = SABFGS().fit(table.set_axis([7 + j for j in range(X.shape[1])], axis=1), D)
    np.testing.assert_array_equal(named.predict(table), named.predict(X))  # 0, 1, 2, … is no name
    with pytest.raises(FeatureMismatchError, match="other names"):
        named.predict(table.set_axis([8 + j for j in range(X.shape[1])], axis=1))
    model.fit(X, D).predict(table[table.columns[::-1]])  # a fit without names forgets those before


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_predictions_as_a_table(output):
    X = pd.DataFrame({"x": [0.0, 1.0]}, index=["first", "second"])
    model = MeanDistribution().set_output(predict=output)
    table = clone(model).fit(X, TRUE).predict(X)
    assert list(table.columns) == ["a", "b", "c"]
    np.testing.assert_allclose(np.asarray(table), np.tile(TRUE.mean().to_numpy(), (2, 1)))
    if output == "pandas":
        assert list(table.index) == ["first", "second"]
    assert isinstance(model.set_output(predict="default").fit(X, TRUE).predict(X), np.ndarray)
    assert model.set_output() is model
    by_scikit_learns_word = MeanDistribution().set_output(transform=output).fit(X, TRUE).predict(X)
    pd.testing.assert_frame_equal(pd.DataFrame(by_scikit_learns_word), pd.DataFrame(table))


@pytest.mark.parametrize("word", ["predict", "transform"])
def test_an_unknown_output_is_rejected(word):
    with pytest.raises(ValueError, match=f"{word}='arrow'"):
        MeanDistribution().set_output(**{word: "arrow"})


@pytest.mark.parametrize("enhancer", [PropagationEnhancer(), KM(), GLLE()])
@pytest.mark.parametrize(("output", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_enhanced_labels_as_a_table(enhancer, output, kind):
    X, D = make_distributions(30)
    names = [f"emotion {j}" for j in range(D.shape[1])]
    Y = pd.DataFrame((np.median(D, axis=1)[:, None] <= D).astype(int), columns=names)
    for labels in (Y, pl.from_pandas(Y)):
        expected = np.asarray(clone(enhancer).fit_transform(X, labels))
        table = clone(enhancer).set_output(transform=output).fit_transform(X, labels)
        assert (type(table), list(table.columns)) == (kind, names)
        np.testing.assert_allclose(table.to_numpy(), expected)
    fitted = clone(enhancer).set_output(transform=output).fit(X, Y)
    assert (type(fitted.transform(X, Y)), list(fitted.transform(X, Y).columns)) == (kind, names)
    with config_context(transform_output=output):  # the learner inside is not disturbed
        learner = EnhancedLDL(enhancer, MeanDistribution()).fit(X, D)
        classifier = LDLClassifier(MeanDistribution(), enhance=enhancer, threshold=0.5).fit(X, Y)
    assert learner.predict(X).shape == D.shape == classifier.predict(X).shape


def test_features_of_tables_as_a_table_of_polars():
    table = pd.DataFrame({"age": [31, 54, 20], "town": ["Ulm", "Bonn", "Ulm"]})
    features = TableEncoder().set_output(transform="polars").fit_transform(table)
    assert features.columns == ["age", "town=Bonn", "town=Ulm"]
    np.testing.assert_allclose(features.to_numpy(), TableEncoder(dense=True).fit_transform(table))


def test_members_that_give_tables_do_not_disturb_an_ensemble():
    X, D = make_distributions(40)
    members = [("knn", AAKNN().set_output(predict="pandas")), ("linear", SABFGS().set_output(predict="pandas"))]
    expected = StackingLDL([("knn", AAKNN()), ("linear", SABFGS())], random_state=0).fit(X, D).predict(X)
    np.testing.assert_allclose(StackingLDL(members, random_state=0).fit(X, D).predict(X), expected)
    table = AutoLDL(members=["forest"], random_state=0).set_output(predict="pandas").fit(X, D).predict(X)
    assert list(table.columns) == [f"label_{j}" for j in range(D.shape[1])]
