"""``skldl bench`` as a person uses it."""

import re
import sys

import numpy as np
import pytest

from skldl.cli import _progress, main
from skldl.cli._progress import Forecast, show_time, watch  # tests of times need tasks of known duration
from skldl.experiments import Progress, StudyResults, load_study
from skldl.experiments.tasks import Task

STUDY = """
name = "little"
folds = 3
inner_folds = 2
measures = ["clark", "cosine"]
datasets = ["{data}", "Human_Gene"]

[[candidates]]
name = "AA-kNN"
estimator = "sklearn.neighbors:KNeighborsRegressor"
grid = {{ n_neighbors = [1, 5] }}
path = "n_neighbors"
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SKLDL_DATA", raising=False)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    share = 1 / (1 + np.exp(-X[:, 0]))
    lines = ["a,b,label_x,label_y", *(f"{a},{b},{s},{1 - s}" for (a, b), s in zip(X, share, strict=True))]
    (tmp_path / "little.csv").write_text("\n".join(lines))
    (tmp_path / "study.toml").write_text(STUDY.format(data="little.csv"))
    return "study.toml"


@pytest.fixture
def no_report(monkeypatch):
    """Where the report is not what is tested, it need not be drawn."""
    monkeypatch.setattr("skldl.report.write_report", lambda folder, results: "")


def test_a_study_from_start_to_end(study, tmp_path, capsys):
    assert main(["bench", study, "--jobs", "1"]) == 0
    said = capsys.readouterr()
    assert "Not found, and so left out: Human_Gene." in said.err
    assert "Clark ↓: mean ± std (rank)" in said.out
    assert "Average rank" not in said.out  # over one dataset it says nothing
    assert "Protocol nested. Nested cross-validation." in said.out
    assert "Records, tables and statistics: skldl-little/ (start with README.md)" in said.out
    folder = tmp_path / "skldl-little"
    for name in (
        "records.jsonl",
        "study.toml",
        "statistics.md",
        "tables/clark.csv",
        "tables/clark.md",
        "tables/time.tex",
        "report.html",
    ):
        assert (folder / name).stat().st_size > 0
    assert StudyResults.load(folder).candidates == ["AA-kNN", "Mean"]
    assert load_study(folder / "study.toml").name == "little"
    assert main(["bench", study, "--jobs", "1"]) == 0  # without --out nothing is in the way
    assert (tmp_path / "skldl-little-2").is_dir()


@pytest.mark.usefixtures("no_report")
def test_resuming_needs_no_study(study, capsys):
    assert main(["bench", study, "--out", "here", "--jobs", "1"]) == 0
    first = capsys.readouterr().out
    assert main(["bench", study, "--out", "here", "--jobs", "1"]) == 2
    assert "Continue it with --resume, or name another folder" in capsys.readouterr().err
    with open("here/records.jsonl", "ab") as stream:
        stream.write(b'{"kind": "eval')
    assert main(["bench", "--resume", "--out", "here", "--jobs", "1"]) == 0
    again = capsys.readouterr()
    assert again.out == first
    assert "was torn" in again.err
    assert main(["bench", "--resume", "--out", "here", "--dry-run"]) == 0
    assert "Together 0 tasks, 0 fits." in capsys.readouterr().out
    assert main(["bench", study, "--resume", "--out", "here", "--seed", "9"]) == 2
    assert "belong to another study: seed was 0, now 9" in capsys.readouterr().err


def test_an_interrupted_study_says_how_to_go_on(study, monkeypatch, capsys):
    def interrupt(call):
        raise KeyboardInterrupt

    monkeypatch.setattr("skldl.experiments.tasks.Call.run", interrupt)
    assert main(["bench", study, "--out", "here", "--jobs", "1"]) == 130
    lines = capsys.readouterr().err.splitlines()
    assert any(line.endswith("continue with: skldl bench --resume --out here") for line in lines)
    assert main(["bench", study, "--out", "there", "--data", ".", "--keep-predictions", "all", "--jobs", "1"]) == 130
    assert "--resume --out there --data . --keep-predictions all" in capsys.readouterr().err


def test_dry_run_counts_and_runs_nothing(study, tmp_path, capsys):
    assert main(["bench", study, "--dry-run", "--folds", "4"]) == 0
    said = capsys.readouterr().out
    assert "little · AA-kNN: 4 tasks, 20 fits" in said
    assert "Together 8 tasks, 24 fits. Nothing was run." in said
    assert not (tmp_path / "skldl-little").exists()


@pytest.mark.usefixtures("no_report")
def test_options_choose_what_runs(study, capsys):
    words = ["bench", "tkde2016", "--datasets", "little.csv,artificial", "--algorithms", "mean,SA_BFGS", "--dry-run"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "protocol geng2016, 10 folds, order file" in said
    assert "Artificial · SA-BFGS: 1 tasks" in said
    assert "little · Mean: 10 tasks, 10 fits" in said
    options = [
        "--protocol",
        "nested",
        "--repeats",
        "2",
        "--folds",
        "3",
        "--order",
        "shuffled",
        "--measures",
        "KL,clark",
    ]
    assert main([*words, *options]) == 0
    assert "protocol nested, 3 folds, order shuffled" in capsys.readouterr().out
    assert main(["bench", study, "--algorithms", "sklearn.tree:DecisionTreeRegressor", "--dry-run"]) == 0
    assert "little · DecisionTreeRegressor: 3 tasks, 3 fits" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "No study is called 'nonsense'"),
        (["nowhere.toml"], "no study file nowhere.toml"),
        (["tkde2016", "--data", "nowhere"], "--data nowhere is not a folder"),
        (["demo", "--algorithms", "magic"], "No algorithm is called 'magic'"),
        (["demo", "--datasets", "yeast_alfa"], "yeast_alfa"),
        (["demo", "--measures", "gini"], "No measure is called 'gini'"),
        (["demo", "--protocol", "loo"], "--protocol loo is not one of"),
        (["demo", "--folds", "1"], "--folds 1 must be"),
        (["demo", "--folds", "many"], "folds"),
        (["demo", "--resume"], "--resume needs --out"),
        (["--resume", "--out", "misspelt"], "start it again without --resume; else check --out"),
        (["demo", "--jobs", "0"], "--jobs 0 must be at least 1"),
        (["demo", "--retry-failed", "--out", "x"], "--retry-failed needs --resume"),
        (["demo", "--keep-predictions", "some", "--out", "x"], "--keep-predictions some"),
    ],
)
def test_mistakes_are_reported_in_one_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *words]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert len(said.splitlines()) == 1
    assert "Traceback" not in said


@pytest.mark.usefixtures("no_report")
def test_failures_show_in_the_exit_status(study, capsys):
    bad = "sklearn.gaussian_process:GaussianProcessRegressor"
    path = "study.toml"
    with open(path, "a") as stream:
        stream.write(f'\n[[candidates]]\nname = "Bad"\nestimator = "{bad}"\nparams = {{ alpha = -1.0 }}\n')
    assert main(["bench", study, "--jobs", "1", "--out", "bad"]) == 1
    said = capsys.readouterr().out
    assert "failed 3/3" in said
    assert "Failed: little · Bad · evaluation 1" in said
    assert main(["bench", "--resume", "--retry-failed", "--out", "bad", "--jobs", "1"]) == 1
    assert main(["bench", study, "--folds", "12", "--jobs", "1", "--out", "more"]) == 1
    assert "… and 2 more; see README.md there." in capsys.readouterr().out


@pytest.mark.usefixtures("no_report")
def test_help_shows_an_example_that_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--help"]) == 0
    said = capsys.readouterr().out
    example = re.search(r"skldl (bench --candidates .*)", said)[1]
    assert main([*example.split(), "--dry-run"]) == 0


def test_the_package_of_a_test_is_asked_for_before_the_work(study, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "baycomp", None)
    assert main(["bench", study]) == 2
    assert "pip install 'scikit-ldl[bench]'" in capsys.readouterr().err
    assert not (tmp_path / "skldl-little").exists()


def test_without_the_packages_of_the_report_the_rest_is_written(study, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "skldl.report", None)
    assert main(["bench", study, "--jobs", "1", "--out", "plain"]) == 0
    assert "pip install 'scikit-ldl[report]'" in capsys.readouterr().out
    assert (tmp_path / "plain" / "statistics.md").exists()
    assert not (tmp_path / "plain" / "report.html").exists()


# The forecast and the lines of progress are tested inside: outside they depend on how long tasks take.
TASKS = tuple(Task("evaluation", "d", name, 0, fold) for name in ("quick", "slow") for fold in range(3))


def record(task, seconds):
    return {**vars(task), "seconds": seconds}


def test_the_forecast_learns_from_what_is_done():
    forecast = Forecast(2)
    assert forecast.seconds_left(TASKS) is None
    forecast.learn(TASKS[0], 1.0)
    assert forecast.seconds_left(TASKS[1:]) == pytest.approx(5 / 2)
    forecast.learn(TASKS[3], 10.0)
    assert forecast.seconds_left((TASKS[1], TASKS[2], TASKS[4], TASKS[5])) == pytest.approx(22 / 2)
    assert forecast.seconds_left((Task("selection", "e", "slow", 0, 0),)) == pytest.approx(10 / 2)
    assert forecast.seconds_left((Task("selection", "d", "new", 0, 0),)) == pytest.approx(5.5 / 2)
    assert forecast.seconds_left((Task("selection", "e", "new", 0, 0),)) == pytest.approx(5.5 / 2)
    assert [show_time(s) for s in (None, 5.4, 200.0)] == ["", "about 5 s left", "about 3 min left"]


def test_plain_lines_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "SECONDS_BETWEEN_LINES", 0.0)
    with watch(1) as report:
        report(Progress(0, 6, None, TASKS))
        report(Progress(1, 6, record(TASKS[0], 2.0), TASKS[1:]))
    assert capsys.readouterr().err.splitlines() == ["0 of 6 tasks", "1 of 6 tasks, about 10 s left"]
    monkeypatch.setattr(_progress, "SECONDS_BETWEEN_LINES", 60.0)
    with watch(1) as report:
        report(Progress(1, 6, record(TASKS[0], 2.0), TASKS[1:]))
    assert capsys.readouterr().err == ""


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with watch(2) as report:
        report(Progress(0, 6, None, TASKS))
        report(Progress(1, 6, record(TASKS[0], 2.0), TASKS[1:]))
        report(Progress(6, 6, record(TASKS[5], 2.0), ()))
    said = capsys.readouterr().err
    assert "6/6" in said
