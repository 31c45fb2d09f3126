"""Every figure: nothing empty, nothing outside, no two texts on top of each other, from 2 to 68 labels."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skldl import plots
from skldl.annotators import DawidSkene, RaterSummary, rater_table

LABELS = [2, 9, 68]
NAMES = ["PT-Bayes", "PT-SVM", "AA-kNN", "AA-BP", "SA-IIS", "SA-BFGS", "Mean"]
YEAST = ["alpha", "cdc", "elu", "diau", "heat", "spo", "cold", "dtt", "spo5", "spoem"]
DATASETS = [*[f"Yeast-{name}" for name in YEAST], "Movie"]


def label_names(n_labels):
    return [f"disease number {i}" for i in range(n_labels)]


@pytest.mark.parametrize("n_labels", LABELS)
@pytest.mark.parametrize(
    "display",
    [
        plots.DistributionDisplay,
        plots.CalibrationDisplay,
        plots.ResidualsDisplay,
    ],
)
def test_per_label_figures(display, n_labels, make_predictions, check_figure):
    D, predicted = make_predictions(n_labels)
    check_figure(display.from_predictions(D, predicted, label_names=label_names(n_labels)).figure_)


@pytest.mark.parametrize("n_labels", LABELS)
def test_cases(n_labels, make_predictions, check_figure):
    D, _ = make_predictions(n_labels)
    check_figure(plots.LabelCasesDisplay.from_predictions(D, label_names=label_names(n_labels)).figure_)


@pytest.mark.parametrize("n_labels", LABELS)
def test_flow(n_labels, make_predictions, check_figure):
    D, predicted = make_predictions(n_labels)
    check_figure(plots.FlowDisplay.from_predictions(D, predicted["AA-kNN"]).figure_)


def test_examples(make_predictions, check_figure):
    made = [make_predictions(n, NAMES, n_samples=1) for n in (68, 7, 2)]
    tables = {name: [predicted[name] for _, predicted in made] for name in NAMES[:4]}
    check_figure(plots.ExamplesDisplay.from_predictions([D for D, _ in made], tables).figure_)


def test_manifold_and_triangle(make_predictions, check_figure):
    D, predicted = make_predictions(3, NAMES, n_samples=100)
    check_figure(plots.ManifoldDisplay.from_predictions(D, predicted).figure_)
    check_figure(plots.TernaryDisplay.from_predictions(D, predicted, label_names=label_names(3)).figure_)


@pytest.mark.parametrize("n_models", [7, 20])
def test_figures_about_ranks(n_models, check_figure):
    names = NAMES if n_models == 7 else [f"some long method {i}" for i in range(n_models)]
    scores = np.random.default_rng(0).random((len(DATASETS), n_models))
    check_figure(
        plots.RankHeatmapDisplay.from_scores(scores, names=names, dataset_names=DATASETS, title="Clark ↓").figure_
    )
    check_figure(plots.CriticalDifferenceDisplay.from_scores(scores, names=names, title="Clark ↓").figure_)


def test_skill(check_figure):
    generator = np.random.default_rng(0)
    skills = {name: {model: float(generator.normal(0.2, 0.4)) for model in NAMES} for name in DATASETS}
    check_figure(plots.SkillDisplay(skills, {"Movie": 0.6}).plot().figure_)


def test_curves(check_figure):
    generator = np.random.default_rng(0)
    curves = {name: generator.random((4, 3)) for name in NAMES}
    check_figure(plots.LearningCurveDisplay(np.array([10, 100, 200, 500]), curves).plot().figure_)
    check_figure(plots.SensitivityDisplay("alpha", [0.0, 0.1, 1.0, 10.0], curves).plot().figure_)
    check_figure(plots.SensitivityDisplay("covariance", ["full", "tied", "diag", "ledoit-wolf"], curves).plot().figure_)
    check_figure(plots.ConvergenceDisplay({"SA-IIS": [3.0, 2.0, 1.5], "SA-BFGS": [3.0, 1.1, 1.0]}).plot().figure_)
    values = {name: generator.random(5) for name in NAMES}
    for ratio in (1.01, 1.4, 2.0, 10.0):  # from a few per cent of a decade to many decades
        seconds = {name: 0.0021 * ratio**i for i, name in enumerate(NAMES)}
        display = plots.QualityTimeDisplay(seconds, values).plot()
        check_figure(display.figure_)
        low, high = display.ax_.get_xlim()
        assert sum(low <= tick <= high for tick in display.ax_.get_xticks()) > 1
    assert [text.get_text() for text in display.ax_.texts] == NAMES  # ten times slower each: beside their points
    assert display.ax_.get_legend() is None
    display = plots.QualityTimeDisplay(dict.fromkeys(NAMES, 1.0), dict.fromkeys(NAMES, 1.0)).plot()
    assert len(display.ax_.get_legend().get_texts()) == len(NAMES)
    check_figure(display.figure_)


def test_long_names_that_begin_alike_can_be_told_apart(make_predictions, check_figure):
    names = [f"neighbours with weights and a long name, variant {i}" for i in range(8)]
    made = [make_predictions(n, names, n_samples=1) for n in (7, 3)]
    tables = {name: [predicted[name] for _, predicted in made] for name in names}
    display = plots.ExamplesDisplay.from_predictions([D for D, _ in made], tables)
    check_figure(display.figure_)
    assert len({row[0].get_ylabel() for row in display.axes_}) == 8
    skill = plots.SkillDisplay({"a": {name: i / 8 for i, name in enumerate(names)}}).plot()
    assert len({text.get_text() for text in skill.ax_.get_legend().get_texts()}) == 8


@pytest.mark.parametrize("n_labels", [9, 68])
def test_small_axes_thin_out_the_names(n_labels, make_predictions, check_figure):
    D, predicted = make_predictions(n_labels)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    plots.DistributionDisplay.from_predictions(D, predicted, label_names=label_names(n_labels), ax=left)
    plots.ResidualsDisplay.from_predictions(D, predicted, label_names=label_names(n_labels), ax=right)
    check_figure(figure)


def test_several_panels_divide_the_place_of_given_axes(make_predictions, check_figure):
    D, predicted = make_predictions(68)
    figure, axes = plt.subplots(1, 2, figsize=(20, 7), layout="constrained")
    display = plots.CalibrationDisplay.from_predictions(D, predicted, ax=axes[0])
    assert display.figure_ is figure
    plots.LabelCasesDisplay.from_predictions(D[:, :4] / D[:, :4].sum(axis=1, keepdims=True), ax=axes[1])
    check_figure(figure)
    with pytest.raises(ValueError, match="not part of a grid"):
        plots.LabelCasesDisplay.from_predictions(D, ax=figure.add_axes((0, 0, 1, 1)))


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "$x^2", "$broken{$", "tab\tand\nline", "\x07bell", "名"])
def test_any_name_can_be_drawn(name, recwarn):
    D = [[0.2, 0.3, 0.5]]
    display = plots.DistributionDisplay.from_predictions(D, {name: D}, label_names=[name, "b", "c"])
    display.figure_.canvas.draw()
    assert all("missing from font" in str(warning.message) for warning in recwarn)


@pytest.mark.parametrize(("n_raters", "n_labels"), [(3, 2), (40, 9), (300, 30)])
def test_raters(n_raters, n_labels, check_figure):
    generator = np.random.default_rng(0)
    truth = generator.integers(0, n_labels, 80)
    votes = np.where(generator.random((80, n_raters)) < 0.7, truth[:, None], 0).astype(object)
    votes[:, 1] = generator.integers(0, n_labels, 80)
    model = DawidSkene("one-coin").fit(votes, labels=range(n_labels))
    display = plots.RatersDisplay.from_model(model)
    check_figure(display.figure_)
    assert len(display.axes_) == 3
    names = np.array([f"a long name of label {j}" for j in range(n_labels)], dtype=object)
    unordered = DawidSkene("one-coin").fit(names[votes.astype(int)], labels=names.tolist())
    display = plots.RatersDisplay.from_model(unordered, table=rater_table(unordered))
    check_figure(display.figure_)
    assert len(display.axes_) == 2
    np.testing.assert_allclose(display.confusion.sum(axis=1), 1)


def test_some_of_many_raters(check_figure):
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 4, 60)
    votes = np.where(generator.random((60, 230)) < 0.7, truth[:, None], 0)
    summary = RaterSummary.from_dict(RaterSummary.from_votes(votes).to_dict())
    display = plots.RatersDisplay.from_summary(summary)
    check_figure(display.figure_)
    assert display.axes_[0].get_ylabel() == "200 of 230 raters, best first"
    assert len(display.axes_[0].get_yticks()) == 0
