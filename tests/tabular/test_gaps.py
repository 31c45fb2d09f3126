"""Tables with empty label cells: read, fitted, judged by what was observed, and refused by models that cannot."""

import numpy as np
import pandas as pd
import pytest

from skldl import SABFGSCV
from skldl.cli import main
from skldl.cli._app import run
from skldl.data import from_table, load_dataset, make_missing
from skldl.exceptions import DataError, NonFiniteError, RowSumError
from skldl.experiments import Candidate, Study, run_study
from skldl.metrics import kullback_leibler
from skldl.persistence import load
from skldl.tabular import column_effects, fit_table
from skldl.testing import make_distributions

LABELS = ["label_w", "label_x", "label_y", "label_z"]


@pytest.fixture(scope="module")
def rows():
    return make_distributions(60, 3, 4)


@pytest.fixture(scope="module")
def table(rows):
    X, D = rows
    return pd.DataFrame(np.column_stack([X, make_missing(D, 0.4)]), columns=["a", "b", "c", *LABELS])


def test_empty_label_cells_are_gaps_of_the_dataset(table):
    dataset = from_table(table, "label_*")
    expected = make_missing(make_distributions(60, 3, 4)[1], 0.4)
    seen = ~np.isnan(expected)
    np.testing.assert_allclose(dataset.D[seen], expected[seen])
    assert dataset.reading == "degrees"
    assert any("label cells are empty" in note for note in dataset.notes)
    told = dataset.describe()
    assert sum(told["mean_distribution"]) == pytest.approx(1.0)
    assert 0 <= told["mean_entropy_share"] <= 1


def test_empty_cells_of_counts_stay_errors(table):
    counts = table.assign(**{name: table[name] * 10 for name in LABELS})
    with pytest.raises(NonFiniteError, match="a label, is empty"):
        from_table(counts, "label_*", kind="counts")
    with pytest.raises(RowSumError, match="of the labels sum to"):
        from_table(counts, "label_*")


def test_the_automatic_choice_takes_a_model_that_learns_from_gaps(rows, table):
    X, D = rows
    fitted = fit_table(table, "label_*")
    assert isinstance(fitted.model[-1], SABFGSCV)
    assert any("SA-BFGS-CV was taken" in note for note in fitted.warnings)
    P = fitted.model.predict(pd.DataFrame(X, columns=["a", "b", "c"]))
    assert kullback_leibler(D, P) < 0.5 * kullback_leibler(D, np.tile(D.mean(axis=0), (60, 1)))
    assert fitted.choice.beats_mean


def test_models_that_need_every_degree_say_so(table):
    with pytest.raises(DataError, match=r"AAKNN needs every degree.*SABFGSCV"):
        fit_table(table, "label_*", model="aa-knn")
    with pytest.raises(DataError, match="need every degree"):
        fit_table(table, "label_*", preset="best")


def test_the_reading_can_be_said(table):
    shares = table.copy()
    shares[LABELS] = shares[LABELS].div(shares[LABELS].sum(axis=1), axis=0)
    fitted = fit_table(shares, "label_*", model="sa-bfgs", settings={"missing": "renormalised"})
    assert fitted.model[-1].missing_ == "renormalised"


def test_command_line(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table.to_csv("gaps.csv", index=False)
    monkeypatch.setattr("sys.argv", ["skldl", "fit", "gaps.csv", "--labels", "label_*", "--out", "m.skldl"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    said = capsys.readouterr()
    assert "SA-BFGS-CV" in said.out + said.err
    P = load("m.skldl").predict(table[["a", "b", "c"]])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_studies_compare_with_what_was_observed(table, tmp_path):
    path = tmp_path / "gaps.csv"
    table.to_csv(path, index=False)
    dataset = load_dataset(path, labels="label_*")
    candidate = Candidate("SA-BFGS", "skldl:SABFGS", params={"missing": "degrees", "fit_intercept": True})
    study = Study([dataset], [candidate], folds=2, order="file", measures=["kullback_leibler"])
    results = run_study(study, out=tmp_path / "study")
    X, D = dataset.X, dataset.D
    model = candidate.make({}, 0).fit(X[30:], D[30:])
    expected = -model.score(X[:30], D[:30])
    found = results.values("kullback_leibler", dataset.name, "SA-BFGS")[0]
    assert found == pytest.approx(expected, rel=1e-9)


def test_columns_are_explained_by_what_was_observed(table):
    """The divergence without shuffling is the mean, row by row, of the distributions with the rest as one label."""
    model = fit_table(table, "label_*").model
    features, gaps = table[["a", "b", "c"]], from_table(table, "label_*").D
    effects = column_effects(model, features, gaps, n_repeats=2, sample_weight=np.arange(60) + 1)
    losses = []
    for row, predicted in zip(gaps, model.predict(features), strict=True):
        seen = ~np.isnan(row)
        true = np.append(row[seen], 1 - row[seen].sum())
        guess = np.append(predicted[seen], 1 - predicted[seen].sum())
        losses.append(sum(t * np.log(t / g) for t, g in zip(true, guess, strict=True) if t > 1e-12))
    told = [seen.any() for seen in ~np.isnan(gaps)]
    expected = np.average(np.array(losses)[told], weights=(np.arange(60) + 1)[told])
    assert effects.divergence == pytest.approx(expected, rel=1e-9)
    assert effects.importance.max() > 0


def test_commands_take_a_table_with_gaps(table, tmp_path, monkeypatch, capsys):
    """What ``skldl fit`` names as the next step works, and ``evaluate`` compares models that can."""
    monkeypatch.chdir(tmp_path)
    table.to_csv("t.csv", index=False)
    assert run(["fit", "t.csv", "--labels", "label_*", "--out", "m.skldl"]) == 0
    assert run(["explain", "m.skldl", "t.csv", "--repeats", "1"]) == 0
    assert "Without shuffling the divergence is" in capsys.readouterr().out
    options = ["--folds", "2", "--inner-folds", "2", "--measures", "kullback-leibler", "--jobs", "1"]
    assert run(["evaluate", "t.csv", "--labels", "label_*", *options]) == 0
    told = capsys.readouterr().out
    assert "IncomLDL" in told
    assert "failed" not in told


def test_the_note_names_the_other_reading_where_there_is_one(table):
    gaps = table[LABELS].to_numpy()
    scaled = table.assign(**dict(zip(LABELS, (gaps / np.nansum(gaps, axis=1, keepdims=True)).T, strict=True)))
    scaled = scaled[scaled[LABELS].notna().any(axis=1)]
    assert any("settings={'missing': 'degrees'}" in note for note in fit_table(scaled, "label_*").warnings)
    other = fit_table(scaled, "label_*", model="sa-bfgs-cv", settings={"missing": "degrees"})
    assert other.model[-1].missing == "degrees"
    assert not any("settings=" in note for note in fit_table(table, "label_*").warnings)
