"""Every program of docs/uncertainty.md, in its order; its commands are known options."""

import re
from pathlib import Path

import matplotlib.pyplot as plt

from skldl.cli._app import run

PAGE = Path(__file__).parents[1] / "docs" / "uncertainty.md"


def test_the_programs_run(capsys):
    names: dict = {}
    for content in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S):
        exec(compile(content, str(PAGE), "exec"), names)
    plt.close("all")
    said = capsys.readouterr().out
    assert "explained: 9" in said
    assert 0.0 <= names["spread"].held_out_curve_.error < 0.1


def test_the_page_has_all_its_figures_and_its_options_exist(capsys):
    text = PAGE.read_text(encoding="utf-8")
    assert "@" not in re.sub(r"```.*?```", "", text, flags=re.S)
    for command, option in (
        ("fit", "--intervals"),
        ("predict", "--level"),
        ("predict", "--covers"),
        ("inspect", "--monitor"),
    ):
        assert run([command, "--help"]) == 0
        assert option in capsys.readouterr().out
