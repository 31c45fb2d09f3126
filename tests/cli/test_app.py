"""The command line as a whole: exit status, one-line errors, and --debug for the traceback."""

import ast
import inspect
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import skldl
from skldl.cli import _app, main
from skldl.cli._wording import spelled, worded
from skldl.exceptions import DataError, Message, Parameter, TableError


@pytest.fixture
def command(monkeypatch):
    """Put one command in the place of all others, which does what the test says."""

    def install(action):
        app = _app.App(name="skldl", result_action="return_value", suppress_keyboard_interrupt=False)
        app.command(action, name="act")
        monkeypatch.setattr(_app, "app", app)

    return install


def raising(error: BaseException):
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (DataError("Row 3\nis bad. Correct it."), 2, "skldl: Row 3 is bad. Correct it.\n"),
        (FileNotFoundError(2, "No such file", "a.csv"), 2, "skldl: a.csv: No such file\n"),
        (RuntimeError("our mistake"), 1, "skldl: RuntimeError: our mistake (--debug shows where)\n"),
        (ModuleNotFoundError("no", name="pandas.core"), 2, "needs the package pandas: pip install 'scikit-ldl[cli]'"),
        (ModuleNotFoundError("no", name="strange"), 2, "needs the package strange: pip install strange"),
        (KeyboardInterrupt(), 130, "skldl: interrupted\n"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_errors_are_one_line_with_an_exit_status(command, capsys, error, status, message):
    command(raising(error))
    assert _app.run(["act"]) == status
    captured = capsys.readouterr().err
    assert message in captured
    assert captured.count("\n") <= 1


@pytest.mark.parametrize("error", [DataError("bad"), RuntimeError("ours"), ModuleNotFoundError("no", name="x")])
def test_debug_shows_the_traceback(command, error):
    command(raising(error))
    with pytest.raises(type(error)):
        _app.run(["act", "--debug"])


def test_warnings_are_one_line(command, capsys):
    command(lambda: warnings.warn("two\nlines", UserWarning, stacklevel=1))
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # the tests turn warnings into errors
        assert _app.run(["act"]) == 0
    assert capsys.readouterr().err == "Note: two lines\n"


def test_what_a_command_returns_is_the_exit_status(command):
    command(lambda: 3)
    assert _app.run(["act"]) == 3
    command(lambda: None)
    assert _app.run(["act"]) == 0


def test_mistakes_in_the_command_line_are_the_users(command, capsys):
    def act(number: int) -> None:
        print(number)

    command(act)
    assert _app.run(["act", "many"]) == 2
    assert 'unable to convert "many"' in capsys.readouterr().err
    assert _app.run(["atc"]) == 2
    with pytest.raises(Exception, match="atc"):
        _app.run(["atc", "--debug"])


def test_main_leaves_with_the_status(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["skldl", "--version"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    assert capsys.readouterr().out.strip() == skldl.__version__


def test_help_names_every_command():
    done = subprocess.run(
        [sys.executable, "-c", "from skldl.cli import main; main()", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Usage: skldl" in done.stdout
    assert not done.stderr


def test_told_to_end_it_ends_at_once(monkeypatch):
    """The handler of SIGTERM leaves no unfinished file and does not go through exceptions."""
    from skldl import cli
    from skldl.utils import files as whole_files

    done = []
    monkeypatch.setattr(whole_files, "discard_unfinished", lambda: done.append("discarded"))
    monkeypatch.setattr(cli.os, "_exit", done.append)
    cli._end_at_once()
    assert done == ["discarded", 143]


def test_the_hint_names_the_command_that_was_meant(capsys):
    assert _app.run(["fit"]) == 2
    assert capsys.readouterr().err.endswith("Try: skldl fit --help\n")


def test_every_parameter_that_a_message_can_name_is_an_option():
    """What `fit` and `convert` hand to the library is named as the user typed it."""
    from skldl.cli.convert import convert
    from skldl.cli.fit import fit
    from skldl.data import Columns, TableFile, convert_table
    from skldl.tabular import FitOptions, fit_table

    of_python = {"columns", "header", "on_progress", "options", "self", "state", "table"}
    typed = {word for command in (fit, convert) for word in _option_names(command)}
    for function in (TableFile.__init__, convert_table, fit_table, Columns, FitOptions):
        for name in set(inspect.signature(function).parameters) - of_python:
            assert spelled(Parameter(name)) in typed, name


def _option_names(command):
    shown = _app.App(name="x", result_action="return_value")
    shown.default(command)
    return {name for argument in shown.assemble_argument_collection() for name in argument.names}


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([Parameter("settings", {"alpha": 0.1, "solver": "bfgs"}), ": no"], "--set alpha=0.1 --set solver=bfgs: no"),
        ([Parameter("settings", {"hidden": [3, 4]})], "--set 'hidden=[3, 4]'"),
        ([Parameter("intervals", True), " needs more rows."], "--intervals needs more rows."),
        ([Parameter("selection_rows", 1)], "--selection-rows 1"),
        (["See ", Parameter("data_home"), "."], "See --data."),
        ([Parameter("drop", ["a", "b c"])], "--drop 'a,b c'"),
        ([Parameter("source", "votes")], "--from votes"),
        (
            ["in Python with fit_table(options=FitOptions(intervals=True))"],
            "in Python with fit_table(options=FitOptions(intervals=True))",
        ),
    ],
)
def test_messages_name_options(parts, shown):
    for text in (Message(*parts), TableError(*parts), UserWarning(Message(*parts))):
        assert worded(text) == shown


def test_only_options_of_the_command_are_named(command, capsys):
    def act(*, drop: str = "") -> None:
        raise TableError(Parameter("drop", ["a"]), " and ", Parameter("alpha", 1))

    command(act)
    assert _app.run(["act"]) == 2
    assert capsys.readouterr().err == "skldl: --drop a and alpha=1\n"


def test_names_of_columns_stay_as_they_are(tmp_path, monkeypatch, capsys):
    """A column may be called as a parameter is written in Python."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},{'oops' if i == 7 else i},0.5,0.5" for i in range(12)]
    Path("d.csv").write_text("\n".join(["settings=1,kind=odd,label_a,label_b", *lines]))
    assert _app.run(["fit", "d.csv", "--labels", "label_*", "--model", "mean", "--out", "m.skldl"]) == 2
    assert capsys.readouterr().err == (
        "skldl: Column 'kind=odd' is mostly numbers, but holds 'oops' (row 8). If these cells mean a missing value, "
        "empty them or name them with --na; if it is not numeric, set --categories kind=odd.\n"
    )
    assert _app.run(["fit", "d.csv", "--labels", "emo_*", "--out", "m.skldl"]) == 2
    assert "--labels 'emo_*': the table has no such column. It has 'settings=1', 'kind=odd'" in capsys.readouterr().err


def test_the_library_names_no_option_of_the_command_line():
    """Who calls a function has parameters, which the command line words as options; whole commands may be named."""
    found = []
    for path in Path(skldl.__file__).parent.rglob("*.py"):
        if path.parent.name == "cli":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant | ast.JoinedStr) or id(node) in described | inside:
                continue
            text = ast.unparse(node)
            if re.search(r"(?<![\w-])--[a-z]", text) and not re.search(r"\b(skldl|pip) [a-z]+\b.* --[a-z]", text):
                found.append(f"{path.name}: {text}")
    assert not found


def test_the_package_runs_as_a_module():
    ran = subprocess.run([sys.executable, "-m", "skldl", "--version"], capture_output=True, text=True, check=True)
    assert skldl.__version__ in ran.stdout
