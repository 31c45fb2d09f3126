"""Studies that hide degrees from the candidates: what they learn from, what they are tested on, and the figure."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from skldl import SABFGS
from skldl.cli import main
from skldl.data import Dataset, make_missing
from skldl.distributions import to_label_sets
from skldl.enhancement import LESC
from skldl.exceptions import ParameterError, StudyError
from skldl.experiments import Candidate, Study, load_study, run_study
from skldl.experiments.study import DatasetSpec
from skldl.experiments.study_file import dump_study, parse_study
from skldl.metrics import kullback_leibler
from skldl.plots import MissingRateDisplay
from skldl.selection import search
from skldl.testing import make_distributions
from skldl.utils.missing import comparable_rows

STUDY = """
name = "hidden"
folds = 3
order = "file"
candidates = [
  { name = "SA-BFGS", estimator = "skldl:SABFGS", params = { missing = "renormalised" } },
  { name = "AA-kNN", estimator = "skldl:AAKNN", params = { n_neighbors = 3 } },
]
[[datasets]]
name = "Artificial"
hide = [0.0, 0.5]
renormalise = true
"""


@pytest.fixture(scope="module")
def data():
    X, D = make_distributions(45, 3, 5)
    return Dataset("toy", X, D)


def test_a_study_file_lists_rates_and_says_them_in_the_names():
    study = parse_study(STUDY)
    assert [spec.name for spec in study.datasets] == ["Artificial, 0 % hidden", "Artificial, 50 % hidden"]
    assert {spec.source for spec in study.datasets} == {"Artificial"}
    assert parse_study(dump_study(study)).datasets == study.datasets
    with pytest.raises(StudyError, match="hide = 'half' must be a fraction"):
        parse_study(STUDY.replace("[0.0, 0.5]", '"half"'))


def test_the_command_line_chooses_all_rates_of_a_dataset_by_its_name(tmp_path, capsys):
    (tmp_path / "hidden.toml").write_text(STUDY + '\n[[datasets]]\nname = "Lexicon"\nhide = [0.5]\n')
    assert main(["bench", str(tmp_path / "hidden.toml"), "--datasets", "artificial", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "Artificial, 0 % hidden · SA-BFGS" in said
    assert "Artificial, 50 % hidden · SA-BFGS" in said
    assert "Lexicon" not in said


def test_candidates_learn_from_what_is_left_and_are_tested_on_all_of_it(data):
    candidates = [
        Candidate("SA-BFGS", "skldl:SABFGS", params={"missing": "renormalised", "alpha": 0.01}),
        Candidate("AA-kNN", "skldl:AAKNN", params={"n_neighbors": 3}),
    ]
    spec = DatasetSpec("toy", data=data, hide=[0.0, 0.4], renormalise=True)
    study = Study([spec], candidates, folds=3, order="file", measures=["kullback_leibler"])
    results = run_study(study)
    test = np.arange(15)
    hidden = make_missing(data.D, 0.4, renormalise=True)
    model = SABFGS(0.01, missing="renormalised").fit(data.X[15:], hidden[15:])
    found = results.values("kullback_leibler", "toy, 40 % hidden", "SA-BFGS")[0]
    assert found == pytest.approx(kullback_leibler(data.D[test], model.predict(data.X[test])), rel=1e-9)
    assert len(results.values("kullback_leibler", "toy, 0 % hidden", "AA-kNN")) == 3
    assert any("needs every degree" in record["error"] for record in results.failures)
    display = MissingRateDisplay.of_study(results)["toy"]
    assert list(display.curves) == ["SA-BFGS", "Mean"]  # AA-kNN failed where degrees were hidden
    np.testing.assert_array_equal(display.rates, [0.0, 0.4])
    assert display.curves["SA-BFGS"][1, 0] == found
    drawn = display.plot(Figure().add_subplot())
    np.testing.assert_allclose(drawn.ax_.lines[0].get_xdata(), [0.0, 40.0])


def test_selection_sees_only_what_is_left(data):
    hidden = make_missing(data.D, 0.4)
    part = data.changed(observed=hidden, missing="degrees")
    rows = np.arange(45)
    candidate = Candidate("SA-BFGS", "skldl:SABFGS", params={"missing": "degrees"}, grid={"alpha": (0.1, 0.01)})
    trials = search(part, [candidate], [(rows[15:], rows[:15])]).trials[0]
    model = SABFGS(0.01, missing="degrees").fit(data.X[15:], hidden[15:])
    assert trials.values[0, 1] == pytest.approx(-model.score(data.X[:15], hidden[:15]), rel=1e-9)
    assert part.fingerprint != data.fingerprint
    np.testing.assert_array_equal(part.take(rows[:5]).observed, hidden[:5])


def test_rows_that_carry_nothing_count_as_perfect():
    D, P = np.array([[np.nan, np.nan, 1.0], [0.5, 0.5, np.nan]]), np.array([[0.2, 0.3, 0.5], [0.2, 0.2, 0.6]])
    true, predicted = comparable_rows(D, P, "renormalised")
    np.testing.assert_allclose(true, predicted)
    np.testing.assert_array_equal(comparable_rows(P, P, "degrees")[0], P)


def test_bad_rates_are_rejected(data):
    with pytest.raises(ParameterError, match=r"rate=1\.5"):
        run_study(Study([DatasetSpec("toy", data=data, hide=1.5)], folds=3))


def test_recovery_is_tested_on_the_rows_that_were_enhanced(data):
    enhanced = Candidate(
        "LESC", "skldl.enhancement:EnhancedLDL", params={"enhancer": {"estimator": "skldl.enhancement:LESC"}}
    )
    plain = Candidate("L/|L|", "skldl.enhancement:EnhancedLDL")
    study = Study([DatasetSpec("toy", data=data, recover=True)], [enhanced, plain], measures=["kullback_leibler"])
    results = run_study(study)
    D = LESC().fit_transform(data.X, to_label_sets(data.D, mass=0.5))
    assert results.values("kullback_leibler", "toy", "LESC") == pytest.approx([kullback_leibler(data.D, D)])
    assert len(results.values("kullback_leibler", "toy", "L/|L|")) == 1
    assert parse_study(dump_study(study.with_options(name="again"))).datasets[0].recover


@pytest.mark.parametrize("name", ["missing", "enhancement", "enhancement-learning"])
def test_built_in_studies_load_and_build_their_candidates(name):
    study = load_study(name)
    for candidate in study.candidates:
        candidate.make({}, 0)
