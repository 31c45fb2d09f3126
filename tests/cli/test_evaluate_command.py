"""``skldl evaluate``: tables of a comparison, stopped and continued."""

import numpy as np
import pandas as pd
import pytest

import skldl


def test_evaluate_gives_the_tables_of_bench(here, cli):
    line = "evaluate faces.csv --labels 'emo_*' --groups person --candidates sa-bfgs --measures kl --folds 3 --jobs 1"
    shown = cli(f"{line} --out compared").out
    assert "Kullback-Leibler" in shown
    assert "Protocol nested" in shown
    for name in ("records.jsonl", "README.md", "statistics.md", "tables/kullback_leibler.csv", "report.html"):
        assert (here / "compared" / name).is_file()
    results = skldl.experiments.StudyResults.load("compared")
    assert results.candidates == ["SA-BFGS", "Mean"]
    assert results.info["faces"]["n_groups"] == 40
    means = results.means("kl")[0]
    assert means[0] < means[1]
    assert "`skldl bench study.toml` runs it again" in (here / "compared" / "README.md").read_text(encoding="utf-8")


def test_labels_that_never_vary_have_no_skill_and_no_width_by_any_measure(here, cli):
    """Losses of rounding error decided: the skill was −∞ by Intersection and 0 % by others, a width -0.000."""
    rows = np.random.default_rng(0).normal(size=(60, 3))
    table = pd.DataFrame(rows, columns=list("abc")).assign(l0=0.1, l1=0.2, l2=0.7)
    table.to_csv("same.csv", index=False)
    line = "evaluate same.csv --labels 'l*' --models sa-bfgs,forest --folds 3 --inner-folds 2 --jobs 1 --out compared"
    shown = cli(line).out
    lines = [line.split() for line in shown.splitlines() if line.split()[:1] == ["same"]]
    assert [line[-1] for line in lines if len(line) > 1] == ["0.0%"] * 6
    assert "−∞" not in shown
    assert "-0.000" not in shown


def test_a_large_table_gets_no_coverage_and_a_note(here, cli, monkeypatch):
    line = "evaluate faces.csv --labels 'emo_*' --drop person --models mean --measures kl --folds 2 --jobs 1"
    small = cli(f"{line} --out small")
    assert "Coverage" in small.out
    assert "left out" not in small.err
    monkeypatch.setattr("skldl.cli.evaluate.MAX_KEPT_ROWS", 100)
    large = cli(f"{line} --out large")
    assert "Coverage" not in large.out
    assert "more than 100 rows, so coverage and width of intervals are left out" in large.err


@pytest.mark.slow
def test_evaluate_goes_on_where_it_was_stopped(here, cli):
    line = "evaluate faces.csv --labels 'emo_*' --drop person --models aa-knn --measures kl --folds 3 --jobs 1"
    assert "--resume needs --out" in cli(f"{line} --resume", status=2).err
    shown = cli(f"{line} --out whole").out
    assert "Continue it with --resume" in cli(f"{line} --out whole", status=2).err
    records = here / "whole" / "records.jsonl"
    kept = records.read_bytes().splitlines(keepends=True)[:4]
    records.write_bytes(b"".join(kept))
    assert cli(f"{line} --out whole --resume").out == shown
    assert records.read_bytes().startswith(b"".join(kept))


def test_evaluate_by_default_in_a_new_folder(here, faces, monkeypatch, cli):
    faces.assign(w=1.0, key=[f"k{i}" for i in range(120)]).to_csv("noted.csv", index=False)
    line = "evaluate noted.csv --labels 'emo_*' --drop person --weight w --models mean,aaknn --folds 2 --inner-folds 2"
    assert "Note: Column 'key'" in cli(f"{line} --jobs 1 --measures kl").err
    assert skldl.experiments.StudyResults.load("skldl-noted").info["noted"]["weighted"]


def test_tasks_that_the_machine_failed_can_be_run_again(here, cli, monkeypatch):
    def starve(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("skldl.cli._study_output._report_line", lambda results, folder: "")
    with monkeypatch.context() as patch:
        patch.setattr(skldl.AAKNN, "_fit", starve)
        options = "--models aaknn --folds 2 --inner-folds 2 --measures kl --jobs 1"
        shown = cli(f"evaluate faces.csv --labels 'emo_*' {options} --out {'run-' * 20}", status=1).out
    (again,) = (line.partition("Run them again: skldl ")[2] for line in shown.splitlines() if "Run them" in line)
    assert "failed" not in cli(f"{again} --jobs 1").out.casefold()


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (
            KeyboardInterrupt(),
            130,
            "Stopped. Completed tasks are recorded; continue with: skldl evaluate with the",
        ),
        (OSError(28, "No space left"), 2, "The disk of run is full."),
    ],
)
def test_a_comparison_that_is_stopped_says_how_to_go_on(here, cli, monkeypatch, error, status, message):
    def stop(*arguments, **options):
        raise error

    monkeypatch.setattr("skldl.cli._study_output.run_study", stop)
    line = "evaluate faces.csv --labels 'emo_*' --models mean --folds 2 --inner-folds 2 --jobs 1 --out run"
    said = cli(line, status=status).err
    assert message in said
    assert "--resume and --out run" in said
