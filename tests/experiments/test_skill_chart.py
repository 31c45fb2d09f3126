"""The chart of the skill that ends the output of `skldl bench`."""

import re

import numpy as np
import pandas as pd
import pytest

from skldl.cli import main
from skldl.experiments import StudyResults
from skldl.testing import make_distributions

WIDTH = 40  # characters of a bar for a skill of 1
ROW = r"    (\S+) +(\S+%)(?:  )?(.*)"


@pytest.fixture
def chart(tmp_path, monkeypatch, capsys):
    """A function that runs a study of tables and returns the lines from the chart on, and the results."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("skldl.report.write_report", lambda folder, results: "here")

    def run(tables, *options):
        for name, (X, D) in tables.items():
            frame = pd.DataFrame(X).add_prefix("x").join(pd.DataFrame(D).add_prefix("label_"))
            frame.to_csv(f"{name}.csv", index=False)
        words = ["bench", "--datasets", ",".join(f"{name}.csv" for name in tables), "--folds", "2", "--jobs", "1"]
        words += ["--labels", "label_*"]
        assert main([*words, "--algorithms", "aa-knn,sklearn.tree:ExtraTreeRegressor", "--out", "run", *options]) == 0
        lines = capsys.readouterr().out.splitlines()
        start = next((i for i, line in enumerate(lines) if line.startswith("Skill by ")), len(lines))
        return lines[start:], StudyResults.load("run")

    return run


def table(seed):
    return make_distributions(30, random_state=seed)


def assert_bar_shows(bar, skill):
    """A bar is as long as its skill, to an eighth of a character; there is none below zero."""
    eighths = sum(" ▏▎▍▌▋▊▉█".index(sign) for sign in bar)
    assert eighths == pytest.approx(8 * WIDTH * max(skill, 0), abs=0.51)


def test_each_dataset_has_a_bar_for_each_candidate(chart):
    noise = np.random.default_rng(0)
    unlearnable = noise.normal(size=(30, 3)), noise.dirichlet(np.ones(3), 30)
    lines, results = chart({"good": table(0), "noise": unlearnable})
    skills = results.skills("kullback_leibler")
    assert lines[0] == "Skill by Kullback-Leibler: fraction of the loss of Mean that a candidate removes"
    assert skills.min() < 0 < skills.max()
    for title, rows, row in (("  good", lines[2:4], skills[0]), ("  noise", lines[5:7], skills[1])):
        assert title in lines
        shown = dict(re.fullmatch(ROW, line).group(1, 3) for line in rows)
        assert list(shown) == sorted(shown, key=lambda name: -row[results.candidates.index(name)])
        for name, bar in shown.items():
            assert_bar_shows(bar, row[results.candidates.index(name)])
    assert lines[8].startswith("Records, tables and statistics: ")
    assert lines[9:] == ["Report, open it in a browser: here"]


def test_many_datasets_are_one_median(chart):
    lines, results = chart({f"d{seed}": table(seed) for seed in range(5)})
    assert lines[1] == "  Median over 5 datasets"
    for line in lines[2:4]:
        name, percent, bar = re.fullmatch(ROW, line).groups()
        median = float(np.median(results.skills("kullback_leibler")[:, results.candidates.index(name)]))
        assert percent == f"{median:.1%}"
        assert_bar_shows(bar, median)


@pytest.mark.parametrize(("votes", "place"), [(10**18, WIDTH - 1), (20, None)])
def test_the_noise_ceiling_of_votes_is_a_line(chart, votes, place):
    X, D = table(0)
    lines, _ = chart({"votes": (X, np.random.default_rng(0).multinomial(votes, D))}, "--kind", "counts")
    ceiling = float(re.search(r"votes \(│ noise ceiling (\S+)%\)", lines[1])[1]) / 100
    for line in lines[2:4]:
        bar = re.fullmatch(ROW, line)[3]
        assert bar.index("│") == (int(WIDTH * ceiling) if place is None else place)
        assert len(bar) <= WIDTH


def test_there_is_no_chart_without_the_criterion(chart):
    lines, _ = chart({"d": table(0)}, "--measures", "clark")
    assert lines == []
