"""Tables with empty label cells: reading, fitting, evaluation on observed degrees, errors of models that need all."""

import numpy as np
import pandas as pd
import pytest
from scipy import io

from skldl import SABFGSCV
from skldl.cli import main
from skldl.data import Columns, from_table, load_dataset, make_missing
from skldl.exceptions import DataError, NonFiniteError, RowSumError
from skldl.experiments import Candidate, DatasetSpec, Study, run_study
from skldl.experiments.loading import load_datasets
from skldl.metrics import kullback_leibler
from skldl.persistence import load
from skldl.tabular import FitOptions, column_effects, fit_table
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
    assert dataset.missing == "degrees"
    assert any("label cells are empty" in note for note in dataset.notes)
    reported = dataset.describe()
    assert sum(reported["mean_distribution"]) == pytest.approx(1.0)
    assert 0 <= reported["mean_entropy_share"] <= 1


def test_empty_cells_of_counts_stay_errors(table):
    counts = table.assign(**{name: table[name] * 10 for name in LABELS})
    with pytest.raises(NonFiniteError, match="a label, is empty"):
        from_table(counts, Columns("label_*", kind="counts"))
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
    for option in ({"preset": "best"}, {"budget": "10s"}):
        with pytest.raises(DataError, match=r"preset='best' need every degree\. Leave out preset= and budget="):
            fit_table(table, "label_*", options=FitOptions(**option))


def test_the_reading_can_be_said(table):
    shares = table.copy()
    shares[LABELS] = shares[LABELS].div(shares[LABELS].sum(axis=1), axis=0)
    fitted = fit_table(shares, "label_*", model="sa-bfgs", settings={"missing": "renormalised"})
    assert fitted.model[-1].missing_ == "renormalised"


def test_command_line(table, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    table.to_csv("gaps.csv", index=False)
    assert "SA-BFGS-CV" in "".join(cli("fit gaps.csv --labels 'label_*' --out m.skldl"))
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


@pytest.fixture
def ratios(rows, tmp_path):
    """The same rows as a table, a MATLAB file and a NumPy archive: ratios only, and three rows with a single label."""
    X, D = rows
    observed = make_missing(D, 0.5, renormalise=True)
    observed[:3] = [1.0, np.nan, np.nan, np.nan]
    names = ["a", "b", "c"]
    paths = {ending: str(tmp_path / f"ratios.{ending}") for ending in ("csv", "mat", "npz")}
    pd.DataFrame(np.column_stack([X, observed]), columns=[*names, *LABELS]).to_csv(paths["csv"], index=False)
    io.savemat(paths["mat"], {"features": X, "labels": observed, "label_names": np.array(list("wxyz"), dtype=object)})
    np.savez(paths["npz"], X=X, D=observed, label_names=list("wxyz"))
    return paths, observed


def test_arrays_with_gaps_are_read_as_tables_are(ratios):
    paths, observed = ratios
    for path in paths.values():
        dataset = load_dataset(path)
        np.testing.assert_allclose(dataset.D, observed, rtol=1e-12)
        assert dataset.missing == "renormalised"
        assert dataset.label_names == tuple("wxyz")
        (note,) = dataset.notes
        assert note.startswith(f"{np.isnan(observed).sum()} of 240 label cells are empty")
        assert "only their ratios count (missing='renormalised')" in note


def test_gaps_of_arrays_that_follow_from_the_others_are_filled_and_said(tmp_path):
    path = tmp_path / "one.npz"
    np.savez(path, X=np.eye(2), D=[[0.2, 0.3, np.nan], [0.1, 0.2, 0.7]])
    dataset = load_dataset(path)
    np.testing.assert_allclose(dataset.D[0], [0.2, 0.3, 0.5])
    assert "1 of 6 label cells are empty" in dataset.notes[0]
    assert "follow from the others" in dataset.notes[0]


@pytest.mark.parametrize("ending", ["csv", "mat"])
def test_evaluate_counts_rows_without_a_ratio_and_takes_models_that_learn_from_gaps(
    ratios, ending, tmp_path, monkeypatch, cli
):
    monkeypatch.chdir(tmp_path)
    labels = ["--labels", "label_*"] if ending == "csv" else []
    options = [*labels, "--measures", "kullback_leibler", "--folds", "2", "--jobs", "1", "--out", "compared"]
    said = " ".join("".join(cli(["evaluate", ratios[0][ending], *options])).split())
    assert "3 of 60 rows have fewer than two observed labels" in said
    assert "only their ratios count" in said
    assert "IncomLDL" in said
    assert "failed" not in said.casefold()


def test_rows_without_a_ratio_take_no_part_in_the_skill_of_fit(ratios):
    path = ratios[0]["csv"]
    fitted = fit_table(pd.read_csv(path), "label_*")
    without = fit_table(pd.read_csv(path).iloc[3:], "label_*")
    assert any("3 of 60 rows have fewer than two observed labels" in note for note in fitted.warnings)
    assert fitted.description["rows"] == 57
    assert fitted.description["score"] == without.description["score"]


def test_intervals_need_every_degree_and_say_what_to_do(table):
    with pytest.raises(DataError, match=r"intervals are calibrated on rows.*Leave out intervals="):
        fit_table(table, "label_*", options=FitOptions(intervals=True))


def test_groups_of_an_array_file_keep_the_notes(rows, tmp_path):
    X, D = rows
    np.savez(tmp_path / "grouped.npz", X=X, D=make_missing(D, 0.4), person=np.arange(60) // 2)
    spec = DatasetSpec("grouped", source=str(tmp_path / "grouped.npz"), groups="person")
    dataset = load_datasets([spec])[0][0].data
    assert len(np.unique(dataset.groups)) == 30
    assert "label cells are empty" in dataset.notes[0]


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
    reported = [seen.any() for seen in ~np.isnan(gaps)]
    expected = np.average(np.array(losses)[reported], weights=(np.arange(60) + 1)[reported])
    assert effects.divergence == pytest.approx(expected, rel=1e-9)
    assert effects.importance.max() > 0


def test_commands_take_a_table_with_gaps(table, tmp_path, monkeypatch, capsys):
    """What ``skldl fit`` names as the next step works, and ``evaluate`` compares models that can."""
    monkeypatch.chdir(tmp_path)
    table.to_csv("t.csv", index=False)
    assert main(["fit", "t.csv", "--labels", "label_*", "--out", "m.skldl"]) == 0
    assert main(["explain", "m.skldl", "t.csv", "--repeats", "1"]) == 0
    assert "Without shuffling the divergence is" in capsys.readouterr().out
    options = ["--folds", "2", "--inner-folds", "2", "--measures", "kullback-leibler", "--jobs", "1"]
    assert main(["evaluate", "t.csv", "--labels", "label_*", *options]) == 0
    reported = capsys.readouterr().out
    assert "IncomLDL" in reported
    assert "failed" not in reported


def test_the_note_names_the_other_reading_where_there_is_one(table):
    gaps = table[LABELS].to_numpy()
    scaled = table.assign(**dict(zip(LABELS, (gaps / np.nansum(gaps, axis=1, keepdims=True)).T, strict=True)))
    scaled = scaled[scaled[LABELS].notna().any(axis=1)]
    assert any("settings={'missing': 'degrees'}" in note for note in fit_table(scaled, "label_*").warnings)
    other = fit_table(scaled, "label_*", model="sa-bfgs-cv", settings={"missing": "degrees"})
    assert other.model[-1].missing == "degrees"
    assert not any("settings=" in note for note in fit_table(table, "label_*").warnings)
