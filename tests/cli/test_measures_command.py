"""``skldl measures`` as a person runs it."""

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

mpl.use("Agg")

from skldl.cli import measures as command
from skldl.metrics import MEASURES, evaluate
from skldl.metrics.selection import Robustness, Run


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    plt.close("all")


@pytest.fixture
def pair():
    generator = np.random.default_rng(0)
    return generator.dirichlet(np.ones(3), 50), generator.dirichlet(np.ones(3), 50)


def test_lists_every_measure_on_one_line_when_piped(cli):
    lines = cli(["measures"]).out.splitlines()
    for name, measure in MEASURES.items():
        [line] = [line for line in lines if line[2:].split(" ")[0] == name]
        assert measure.arrow in line
        assert measure.range in line
        assert measure.text in line
        assert line.startswith(" *") == (name in evaluate([[0.5, 0.5]], [[0.5, 0.5]]))
        assert measure.family in lines


def test_fits_a_terminal_of_80_columns(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    out = cli(["measures"]).out
    assert max(map(len, out.splitlines())) <= 80
    assert "(Σd+Σp−Σmin(d,p))" in out


def test_latex(cli):
    out = cli(["measures", "--latex"]).out
    assert all(measure.formula in out for measure in MEASURES.values())


@pytest.mark.parametrize("words", [["measures", "--help"], ["measures", "select", "--help"]])
def test_help_shows_an_example(cli, words):
    assert "skldl measures select" in cli(words).out


def test_selects_and_saves_the_figure(cli):
    out = cli(["measures", "select", "--seed", "1", "--labels", "5", "--out", "tree.png"]).out
    assert "Dirichlet(1) over 5 labels, seed 1" in out
    assert "chosen (6)" in out
    assert "clusters   kept" in out
    assert "figure: tree.png" in out
    assert Path("tree.png").read_bytes().startswith(b"\x89PNG")


def test_repeats_if_asked(cli, monkeypatch):
    runs = tuple(Run(5, 1.0, seed, ("clark", "cosine"), dict.fromkeys(("clusters", "families", "stability"), ""))
                 for seed in range(3))  # fmt: skip
    monkeypatch.setattr(command, "robustness", lambda dissimilarity: Robustness(runs))
    out = cli(["measures", "select", "--repeat"]).out
    assert "most often (100%): clark, cosine" in out
    assert "of the paper's six, 2.0 are chosen on average" in out


def test_reads_npz_and_csv_alike(pair, cli):
    true, pred = pair
    np.savez("both.npz", D_true=true, D_pred=pred)
    header = "id,true_a,true_b,true_c,pred_c,pred_b,pred_a"
    rows = np.column_stack([np.arange(50), true, pred[:, ::-1]])
    np.savetxt("both.csv", rows, delimiter=",", header=header, comments="", fmt="%.17g")
    outputs = []
    for name in ("both.npz", "both.csv"):
        outputs.append(cli(["measures", "select", "--data", name, "--overwrite"]).out)
    assert outputs[0] == outputs[1]
    assert "own data, 50 rows over 3 labels" in outputs[0]
    for read in (command.read_pairs(Path("both.npz")), command.read_pairs(Path("both.csv"))):
        np.testing.assert_array_equal(read, pair)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.csv", None, "There is no file gone.csv"),
        ("empty.csv", "", "empty.csv is empty"),
        ("none.csv", "a,b\n1,2\n", "true_ for none and pred_ for none"),
        ("half.csv", "true_a,true_b,pred_a\n1,0,1\n", "true_ for a, b and pred_ for a"),
        ("text.csv", "true_a,pred_a\nx,1\n", "Row 1 of column 'true_a' holds 'x', where a number belongs"),
        ("short.csv", "true_a,pred_a\n1\n", "line 2 has 1 cells, the header 2"),
        ("broken.npz", "no zip", "cannot be read as a NumPy archive"),
    ],
)
def test_bad_files_get_one_clear_line(cli, name, content, message):
    if content is not None:
        Path(name).write_text(content)
    error = cli(["measures", "select", "--data", name], status=2).err
    assert message in error
    assert error.count("\n") == 1


def test_bad_arguments_get_one_clear_line(cli):
    np.savez("other.npz", X=np.ones(3))
    for words, message in (
        (["--data", "other.npz"], "other.npz holds no 'D_true'; it holds: X (3,)."),
        (["--out", "tree.xyz"], ".png, .pdf, .svg"),
        (["--labels", "1"], "Must be >= 2"),
        (["--concentration", "0"], "Must be > 0"),
        (["--dissimilarity", "cosine"], "sine"),
        (["--out", "nowhere/tree.png"], "nowhere"),
    ):
        assert message in cli(["measures", "select", *words], status=2).err


def test_rows_that_are_no_distributions_are_named(cli):
    np.savez("counts.npz", D_true=np.ones((20, 3)), D_pred=np.ones((20, 3)))
    assert "Row 0 of D_true sums to 3" in cli(["measures", "select", "--data", "counts.npz"], status=2).err


def test_a_figure_is_written_whole_and_over_another_only_on_request(cli, monkeypatch):
    Path("measures.png").write_text("mine")
    assert "--out measures.png exists already" in cli(["measures", "select", "--seed", "1"], status=2).err
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: (_ for _ in ()).throw(OSError("no")))
    cli(["measures", "select", "--seed", "1", "--overwrite"], status=1)
    assert Path("measures.png").read_text() == "mine"
