"""What the figures show is what they were given; what they compute is right; what they reject, they explain."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldl import MeanDistribution, plots
from skldl.exceptions import DimensionError, LengthMismatchError
from skldl.metrics import clark, evaluate, kullback_leibler
from skldl.testing import make_distributions


def bar_heights(ax):
    return [patch.get_height() for patch in ax.patches]


def test_distribution_draws_the_row_asked_for(make_predictions):
    D, predicted = make_predictions(5)
    display = plots.DistributionDisplay.from_predictions(D, predicted, row=7)
    np.testing.assert_allclose(bar_heights(display.ax_), D[7], rtol=1e-12)
    lines = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    for name, table in predicted.items():
        np.testing.assert_array_equal(lines[name], table[7])


def test_names_come_from_the_estimator_the_table_or_the_caller():
    X, D = make_distributions()
    table = pd.DataFrame(D, columns=["joy", "anger", "fear"])
    model = make_pipeline(StandardScaler(), MeanDistribution()).fit(X, table)

    def words(display):
        return [tick.get_text() for tick in display.ax_.get_xticklabels()]

    assert words(plots.DistributionDisplay.from_estimator(MeanDistribution().fit(X, table), X, D))[0] == "joy"
    assert words(plots.DistributionDisplay.from_estimator(model, X, table))[1] == "anger"
    assert words(plots.DistributionDisplay.from_estimator(model, X, D))[2] == "label_2"
    assert words(plots.DistributionDisplay.from_estimator(model, X, D, label_names=["a", "b", "c"]))[2] == "c"
    assert list(plots.DistributionDisplay.from_estimator(model, X, D).predicted) == ["MeanDistribution"]
    with pytest.raises(LengthMismatchError, match="2 label names were given for 3 labels"):
        plots.DistributionDisplay.from_estimator(model, X, D, label_names=["a", "b"])


@pytest.mark.parametrize("empty", [{}])
def test_empty_mappings_are_rejected(empty):
    with pytest.raises(ValueError, match="predictions is empty"):
        plots.ResidualsDisplay.from_predictions([[0.5, 0.5]], empty)
    with pytest.raises(ValueError, match="estimators is empty"):
        plots.ResidualsDisplay.from_estimator(empty, [[1.0]], [[0.5, 0.5]])


def test_cases_follow_from_the_distribution():
    X, D = make_distributions()
    display = plots.LabelCasesDisplay.from_estimator(MeanDistribution().fit(X, D), X)
    np.testing.assert_allclose(display.cases[2], D.mean(axis=0))
    np.testing.assert_allclose(display.cases.sum(axis=1), 1)
    drawn = [[patch.get_width() for patch in ax.patches] for ax in display.axes_]
    np.testing.assert_array_equal(drawn, display.cases)
    everything = plots.LabelCasesDisplay.from_predictions([[0.5, 0.3, 0.2]], fraction=1.0).cases
    np.testing.assert_allclose(everything[1], 1 / 3)
    tied = plots.LabelCasesDisplay.from_predictions([[0.6, 0.2, 0.2]]).cases
    np.testing.assert_allclose(tied[1], 1 / 3)


class TestDecorrelationStretch:
    def test_channels_become_uncorrelated_and_equally_wide(self):
        generator = np.random.default_rng(0)
        pixels = generator.normal(size=(500, 3)) @ generator.normal(size=(3, 3)) + [3, 4, 5]
        stretched = decorrelate(pixels, clip=0)
        covariance = np.cov(stretched.reshape(-1, 3), rowvar=False)
        np.testing.assert_allclose(covariance, np.eye(3) * covariance[0, 0], atol=1e-12)
        assert stretched.min() == 0
        assert stretched.max() == 1

    def test_what_was_white_already_is_only_scaled(self):
        pixels = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
        np.testing.assert_allclose(decorrelate(pixels, clip=0), (pixels + 1) / 2, atol=1e-12)

    def test_distributions_keep_their_constant_sum(self):
        D = np.random.default_rng(0).dirichlet([5, 9, 20], size=(30, 20))
        stretched = decorrelate(D, clip=0)
        assert stretched.shape == D.shape
        np.testing.assert_allclose(stretched.sum(axis=-1), stretched[0, 0].sum(), atol=1e-9)

    def test_one_reference_gives_equal_colours_to_equal_pixels(self):
        D = np.random.default_rng(0).dirichlet([5, 9, 20], size=100)
        np.testing.assert_array_equal(decorrelate(D[:10], reference=D), decorrelate(D)[:10])

    def test_clipping(self):
        pixels = np.random.default_rng(0).normal(size=(1000, 3))
        stretched = decorrelate(pixels, clip=0.1)
        assert np.mean(stretched == 0) == pytest.approx(0.1, abs=0.001)
        assert np.mean(stretched == 1) == pytest.approx(0.1, abs=0.001)

    def test_one_colour_becomes_grey(self):
        np.testing.assert_array_equal(decorrelate(np.ones((4, 4, 3))), 0.5)

    def test_bad_input(self):
        with pytest.raises(ValueError, match=r"clip=0\.5"):
            decorrelate(np.eye(3), clip=0.5)
        with pytest.raises(DimensionError, match="last axis"):
            decorrelate(np.ones((2, 3)), reference=np.ones((2, 4)))


decorrelate = plots.decorrelation_stretch


def test_manifold_shows_the_stretched_images(make_predictions):
    D, predicted = make_predictions(3, n_samples=12)
    display = plots.ManifoldDisplay.from_predictions(D, predicted, shape=(3, 4))
    shown = [ax.images[0].get_array() for ax in display.axes_]
    np.testing.assert_allclose(shown[0], decorrelate(D.reshape(3, 4, 3)), atol=1e-12)
    expected = decorrelate(predicted["AA-kNN"].reshape(3, 4, 3), reference=D.reshape(3, 4, 3))
    np.testing.assert_allclose(shown[1], expected, atol=1e-12)
    assert f"{kullback_leibler(D, predicted['AA-kNN']):.2g}" in display.axes_[1].get_title()
    with pytest.raises(DimensionError, match="12 points do not fill a grid of 3 × 3"):
        plots.ManifoldDisplay.from_predictions(D, predicted)
    with pytest.raises(DimensionError, match="there are 2"):
        plots.ManifoldDisplay.from_predictions(D[:, :2] / D[:, :2].sum(axis=1, keepdims=True), D[:, [0, 0]] * 0 + 0.5)


def test_examples_print_the_measures_and_the_best_in_bold(make_predictions):
    D, predicted = make_predictions(4, n_samples=3)
    display = plots.ExamplesDisplay.from_predictions(D, predicted)
    for row, name in enumerate(predicted):
        for column in range(3):
            assert display.values[name][column] == evaluate(D[[column]], predicted[name][[column]])
            texts = {text.get_text().split()[0]: text for text in display.axes_[row][column].texts}
            value = display.values[name][column]["clark"]
            assert float(texts["Clark"].get_text().split()[1]) == pytest.approx(value, abs=6e-4)
            assert (texts["Clark"].get_fontweight() == "bold") == (value == display.best(column, "clark"))
            assert (texts["Cos"].get_fontweight() == "bold") == (
                display.values[name][column]["cosine"]
                == max(rows[column]["cosine"] for rows in display.values.values())
            )
    with pytest.raises(LengthMismatchError, match="A has 1 predictions for 2 instances"):
        plots.ExamplesDisplay([D[0], D[1]], {"A": [D[0]]}, ["", ""])


def test_examples_of_one_table_and_one_model(make_predictions):
    D, predicted = make_predictions(4)
    display = plots.ExamplesDisplay.from_predictions(D, predicted["Mean"], rows=[5])
    np.testing.assert_allclose(bar_heights(display.axes_[0][0]), predicted["Mean"][5])
    np.testing.assert_array_equal(display.axes_[0][0].lines[0].get_ydata(), D[5])
    X, D = make_distributions()
    models = {"mean": MeanDistribution().fit(X, D)}
    assert plots.ExamplesDisplay.from_estimator(models, X, D).titles[3] == "instance 3, 3 labels"


def test_flow_turns_degrees_into_labels():
    display = plots.FlowDisplay.from_predictions([[0.6, 0.3, 0.1]], [[0.5, 0.2, 0.3]], threshold=0.25)
    real, predicted, positive, scores, decided = (bar_heights(chart) for chart in display.charts_)
    assert real == pytest.approx([0.6, 0.3, 0.1])
    assert predicted == scores == pytest.approx([0.5, 0.2, 0.3])
    assert positive == [1, 1, 0]
    assert decided == [1, 0, 1]


class TestCalibration:
    def test_bins_have_equal_size_and_the_right_means(self):
        generator = np.random.default_rng(0)
        guess, real = generator.random(100), generator.random(100)
        curve = plots.calibration_curve(real, guess, n_bins=4)
        order = np.argsort(guess).reshape(4, 25)
        np.testing.assert_allclose(curve.predicted, guess[order].mean(axis=1))
        np.testing.assert_allclose(curve.true, real[order].mean(axis=1))
        assert curve.error == pytest.approx(np.abs(curve.predicted - curve.true).mean())

    def test_a_constant_prediction_is_one_bin(self):
        curve = plots.calibration_curve([0.2, 0.4], [0.5, 0.5])
        assert curve.predicted.tolist() == [0.5]
        assert curve.error == pytest.approx(0.2)

    def test_bad_bins(self):
        with pytest.raises(ValueError, match="n_bins=0"):
            plots.calibration_curve([0.2], [0.5], n_bins=0)

    def test_many_labels_show_the_worst(self, make_predictions):
        D, _ = make_predictions(20)
        P = D.copy()
        P[:, 13] += 0.5
        P /= P.sum(axis=1, keepdims=True)
        display = plots.CalibrationDisplay.from_predictions(D, P, max_panels=3)
        assert len(display.axes_) == 3
        assert display.shown_[0] == 13
        assert "3 of 20 labels" in display.figure_.get_suptitle()


def test_residuals_are_quantiles_of_the_difference(make_predictions):
    D, predicted = make_predictions(4)
    display = plots.ResidualsDisplay.from_predictions(D, predicted)
    np.testing.assert_allclose(display.quantiles["Mean"][2], np.median(predicted["Mean"] - D, axis=0))
    line = next(line for line in display.ax_.lines if line.get_label() == "Mean")
    np.testing.assert_array_equal(line.get_xdata(), display.quantiles["Mean"][2])


def test_triangle_places_points_by_their_degrees():
    display = plots.TernaryDisplay.from_predictions(
        [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1 / 3, 1 / 3, 1 / 3]], np.full((4, 3), 1 / 3)
    )
    real = next(line for line in display.ax_.lines if line.get_label() == "real").get_xydata()
    np.testing.assert_allclose(real, [[0, 0], [1, 0], [0.5, 0.75**0.5], [0.5, 0.75**0.5 / 3]], atol=1e-12)
    assert len(plots.TernaryDisplay.from_predictions(np.full((500, 3), 1 / 3), np.full((500, 3), 1 / 3)).true) == 100
    with pytest.raises(DimensionError, match="there are 2"):
        plots.TernaryDisplay.from_predictions([[0.5, 0.5]], [[0.5, 0.5]])


class TestRanks:
    scores = pd.DataFrame({"A": [0.1, 0.2, 0.3], "B": [0.2, 0.2, 0.1], "C": [0.3, np.nan, 0.2]}, index=["x", "y", "z"])

    def test_heat_map(self):
        display = plots.RankHeatmapDisplay.from_scores(self.scores)
        np.testing.assert_array_equal(display.ranks, [[1, 2, 3], [1.5, 1.5, np.nan], [3, 1, 2]])
        assert display.dataset_names == ["x", "y", "z"]
        words = [text.get_text() for text in display.ax_.texts]
        assert words == ["1", "2", "3", "1.5", "1.5", "3", "1", "2", "1.83", "1.50", "2.50"]

    def test_the_row_of_averages_can_be_left_out(self):
        ranks = np.array([[1.0, 2.0], [2.0, 1.0]])
        texts = []
        for average in (True, False):
            display = plots.RankHeatmapDisplay(ranks, ["x", "y"], ["A", "B"], average=average).plot()
            texts.append([text.get_text() for text in display.ax_.texts])
            assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["x", "y", "average rank"][
                : 2 + average
            ]
        assert texts == [["1", "2", "2", "1", "1.50", "1.50"], ["1", "2", "2", "1"]]

    def test_direction(self):
        display = plots.RankHeatmapDisplay.from_scores(self.scores, higher_is_better=True)
        np.testing.assert_array_equal(display.ranks[0], [3, 2, 1])

    def test_critical_difference_of_the_textbook(self):
        """Demšar (2006): 4 classifiers on 14 datasets have a critical difference of 1.25 at 0.05."""
        scores = np.random.default_rng(0).random((14, 4))
        display = plots.CriticalDifferenceDisplay.from_scores(scores, names="ABCD")
        assert display.critical_difference == pytest.approx(1.25, abs=0.005)
        np.testing.assert_allclose(display.average_ranks, stats.rankdata(scores, axis=1).mean(axis=0))

    def test_incomplete_datasets_are_left_out(self):
        display = plots.CriticalDifferenceDisplay.from_scores(self.scores)
        np.testing.assert_allclose(display.average_ranks, [2, 1.5, 2.5])

    @pytest.mark.parametrize(
        ("ranks", "groups"),
        [
            ([1, 2, 3, 4], []),
            ([1, 1.5, 3, 3.5], [(0, 1), (2, 3)]),
            ([3, 3.9, 1, 1.9], [(0, 1), (2, 3)]),
            ([2, 2], [(0, 1)]),
        ],
    )
    def test_groups(self, ranks, groups):
        names = [str(i) for i in range(len(ranks))]
        assert plots.CriticalDifferenceDisplay(np.array(ranks), names, 0.95).plot().groups == groups

    def test_bad_tables(self):
        with pytest.raises(LengthMismatchError, match="3 columns, but 0 names"):
            plots.RankHeatmapDisplay.from_scores(np.ones((2, 3)))
        with pytest.raises(LengthMismatchError, match="2 models and 1 datasets"):
            plots.CriticalDifferenceDisplay.from_scores(np.ones((1, 2)), names="AB")


class TestCurves:
    X, D = make_distributions(60)

    def test_learning_curve(self):
        models = {"kNN": KNeighborsRegressor(3), "Mean": MeanDistribution()}
        display = plots.LearningCurveDisplay.from_estimator(
            models, self.X, self.D, measure="clark", train_sizes=[10, 40], cv=3
        )
        train, test = np.arange(20, 30), np.arange(20)
        model = MeanDistribution().fit(self.X[train], self.D[train])
        assert display.curves["Mean"][0, 0] == pytest.approx(clark(self.D[test], model.predict(self.X[test])))
        line = next(line for line in display.ax_.lines if line.get_label() == "kNN")
        np.testing.assert_allclose(line.get_ydata(), display.curves["kNN"].mean(axis=1))
        assert display.ax_.get_ylabel() == "Clark (lower is better)"

    def test_sensitivity(self):
        display = plots.SensitivityDisplay.from_estimator(
            KNeighborsRegressor(), self.X, self.D, param="n_neighbors", values=[1, 5, 25], measure="cosine", cv=3
        )
        assert display.curves["KNeighborsRegressor"].shape == (3, 3)
        assert 0.5 < display.curves["KNeighborsRegressor"].min() <= 1
        assert display.ax_.get_xscale() == "log"

    @pytest.mark.parametrize(
        ("values", "scale"),
        [([0, 1, 2], "symlog"), ([1, 2, 3], "linear"), (["a", "b", "c"], "linear"), ([0, 0, 0], "linear")],
    )
    def test_scale_of_the_axis(self, values, scale):
        display = plots.SensitivityDisplay("p", values, {"A": np.ones((3, 1))}).plot()
        assert display.ax_.get_xscale() == scale

    def test_convergence(self):
        model = MeanDistribution().fit(self.X, self.D)
        with pytest.raises(ValueError, match="MeanDistribution has no loss_curve_"):
            plots.ConvergenceDisplay.from_estimator(model)
        model.loss_curve_ = [3.0, 2.0, 1.0]
        display = plots.ConvergenceDisplay.from_estimator({"A": make_pipeline(model), "B": model})
        np.testing.assert_array_equal(display.ax_.lines[0].get_xydata(), [[1, 2], [2, 1]])

    def test_quality_against_time(self):
        models = {"kNN": KNeighborsRegressor(3), "Mean": MeanDistribution()}
        display = plots.QualityTimeDisplay.from_estimator(models, self.X, self.D, measure="cosine", cv=3)
        assert not display.ax_.yaxis_inverted()
        assert min(display.seconds["kNN"]) > 0
        x, y = display.ax_.containers[1].lines[0].get_xydata()[0]
        assert y == pytest.approx(np.mean(display.values["Mean"]))
        assert x == pytest.approx(stats.gmean(display.seconds["Mean"]))

    def test_unknown_measures_are_rejected(self):
        with pytest.raises(ValueError, match="'clarke' is not known"):
            plots.QualityTimeDisplay.from_estimator(MeanDistribution(), self.X, self.D, measure="clarke")

    def test_other_quantities_have_their_own_name(self):
        display = plots.QualityTimeDisplay({"A": 1.0}, {"A": 1.0}, "average rank").plot()
        assert display.ax_.get_ylabel() == "average rank (lower is better)"
        assert display.ax_.yaxis_inverted()


def drawn_lines(*names):
    D = [[0.2, 0.8]]
    return plots.DistributionDisplay.from_predictions(D, dict.fromkeys(names, D)).ax_.lines


def test_looks_differ_and_stay():
    names = ["SA-BFGS", *[f"other {i}" for i in range(20)], "MeanDistribution"]
    looks = [(line.get_color(), line.get_marker()) for line in drawn_lines(*names)]
    assert len(set(looks)) == len(names)
    (line,) = drawn_lines("sa_bfgs")
    assert looks[0] == (line.get_color(), line.get_marker())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a\x00b", "a\ufffdb"),
        ("  much   space ", "much space"),
        ("x" * 20 + "y" * 9, "x" * 15 + "…" + "y" * 8),
        (7, "7"),
    ],
)
def test_plain_names(name, text):
    (line,) = drawn_lines(name)
    assert line.get_label() == text


def test_settings_of_the_user_stay_as_they_are():
    before = dict(plt.rcParams)
    plots.FlowDisplay().plot()
    assert dict(plt.rcParams) == before


def test_coverage_against_level():
    from skldl.uncertainty import DirichletSpread

    X, D = make_distributions(n_samples=80)
    model = DirichletSpread(MeanDistribution(), random_state=0).fit(X, D)
    display = plots.CoverageDisplay.from_spread({"one": model, "two": model}, X, D)
    line = display.ax_.get_lines()[1]
    np.testing.assert_allclose(line.get_ydata(), model.coverage(X, D).observed)
    assert line.get_label() == f"one (error {model.coverage(X, D).error:.3f})"
    assert list(plots.CoverageDisplay.from_spread(model, X, D).curves) == ["Dirichlet spread"]
