"""The command line as a whole: exit status, one-line errors, and --debug for the traceback."""

import ast
import contextlib
import inspect
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import skldl
from skldl.cli import main
from skldl.data import Columns, TableFile, convert_table
from skldl.exceptions import DataError, Message, Parameter, TableError
from skldl.tabular import FitOptions, fit_table
from skldl.utils.files import whole_file


@pytest.fixture
def datasets_raises(monkeypatch):
    """Let ``skldl datasets`` raise an error."""

    def install(error):
        def fail():
            raise error

        monkeypatch.setattr("skldl.cli.datasets.list_datasets", fail)

    return install


@pytest.fixture
def convert_raises(here, monkeypatch, cli):
    """Let ``skldl convert`` warn and raise an error with a message of these parts, and return what is printed."""

    def printed(*parts):
        def fail(*arguments, **options):
            warnings.warn(Message(*parts), UserWarning, stacklevel=1)
            raise TableError(*parts)

        monkeypatch.setattr("skldl.cli.convert.convert_table", fail)
        with warnings.catch_warnings():
            warnings.simplefilter("always")  # the tests turn warnings into errors
            return cli("convert votes.csv --from votes", status=2).err

    return printed


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
def test_errors_are_one_line_with_an_exit_status(datasets_raises, cli, error, status, message):
    datasets_raises(error)
    printed = cli("datasets", status).err
    assert message in printed
    assert printed.count("\n") <= 1


@pytest.mark.parametrize("error", [DataError("bad"), RuntimeError("ours"), ModuleNotFoundError("no", name="x")])
def test_debug_shows_the_traceback(datasets_raises, error):
    datasets_raises(error)
    with pytest.raises(type(error)):
        main(["datasets", "--debug"])


def test_mistakes_in_the_command_line_are_the_users(cli):
    assert 'unable to convert "many"' in cli("bench --folds many", status=2).err
    assert "atc" in cli("atc", status=2).err
    with pytest.raises(Exception, match="atc"):
        main(["atc", "--debug"])
    assert cli("fit", status=2).err.endswith("Try: skldl fit --help\n")


def test_as_a_process_it_ends_at_once_on_sigterm(tmp_path, monkeypatch, capsys):
    """Without arguments the words are those of the process; SIGTERM leaves no unfinished file."""
    handlers, ended = {}, []
    monkeypatch.setattr(sys, "argv", ["skldl", "--version"])
    monkeypatch.setattr("signal.signal", handlers.__setitem__)
    monkeypatch.setattr("os._exit", ended.append)
    assert main() == 0
    assert capsys.readouterr().out.strip() == skldl.__version__
    with contextlib.suppress(OSError), whole_file(tmp_path / "t.csv"):
        handlers[signal.SIGTERM]()
        assert not list(tmp_path.iterdir())
    assert ended == [143]


def test_help_names_every_command(cli):
    printed = cli("--help")
    assert "Usage: skldl" in printed.out
    assert not printed.err


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([Parameter("settings", {"alpha": 0.1, "solver": "bfgs"}), ": no"], "--set alpha=0.1 --set solver=bfgs: no"),
        ([Parameter("settings", {"hidden": [3, 4]})], "--set 'hidden=[3, 4]'"),
        ([Parameter("intervals", True), " needs more rows."], "--intervals needs more rows."),
        ([Parameter("selection_rows", 1)], "--selection-rows 1"),
        (["See ", Parameter("na_values"), "."], "See --na."),
        ([Parameter("drop", ["a", "b c"])], "--drop 'a,b c'"),
        ([Parameter("source", "votes")], "--from votes"),
        ([Parameter("drop", ["a"]), " and ", Parameter("alpha", 1)], "--drop a and alpha=1"),  # convert has no alpha
        (
            ["in Python with fit_table(options=FitOptions(intervals=True))"],
            "in Python with fit_table(options=FitOptions(intervals=True))",
        ),
    ],
)
def test_messages_name_options_of_the_command(convert_raises, parts, shown):
    assert convert_raises(*parts) == f"Note: {shown}\nskldl: {shown}\n"


def test_every_parameter_that_a_message_can_name_is_an_option(convert_raises):
    """What `fit` and `convert` pass to the library is named as the user typed it."""
    of_python = {"columns", "header", "on_progress", "options", "self", "state", "table"}
    for function in (TableFile.__init__, convert_table, fit_table, Columns, FitOptions):
        for name in set(inspect.signature(function).parameters) - of_python:
            assert convert_raises(Parameter(name)).startswith("Note: --"), name


def test_a_warning_is_one_line(convert_raises):
    assert convert_raises("two\nlines").startswith("Note: two lines\n")


def test_names_of_columns_stay_as_they_are(tmp_path, monkeypatch, cli):
    """A column may be called as a parameter is written in Python."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},{'oops' if i == 7 else i},0.5,0.5" for i in range(12)]
    Path("d.csv").write_text("\n".join(["settings=1,kind=odd,label_a,label_b", *lines]))
    assert cli("fit d.csv --labels 'label_*' --model mean --out m.skldl", status=2).err == (
        "skldl: Column 'kind=odd' is mostly numbers, but holds 'oops' (row 8). If these cells mean a missing value, "
        "empty them or name them with --na; if it is not numeric, set --categories kind=odd.\n"
    )
    printed = cli("fit d.csv --labels 'emo_*' --out m.skldl", status=2).err
    assert "--labels 'emo_*': the table has no such column. It has 'settings=1', 'kind=odd'" in printed


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
