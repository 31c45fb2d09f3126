"""The tree of commands, and the handling of errors."""

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache

from cyclopts import App, CycloptsError

import skldl
from skldl.cli._wording import options_of_command, worded
from skldl.exceptions import DataError, ParameterError
from skldl.utils.files import DISK_IS_FULL

# One line for each command: its function and its summary. The module is imported when the command is called.
COMMANDS = {
    "fit": ("skldl.cli.fit:fit", "train a model on a table"),
    "predict": ("skldl.cli.predict:predict", "predict a distribution for each row of a table"),
    "evaluate": ("skldl.cli.evaluate:evaluate", "compare models on your own table"),
    "explain": ("skldl.cli.explain:explain", "show which columns move which label"),
    "serve": ("skldl.cli.serve:serve", "answer requests for predictions, with a page to try the model"),
    "export": ("skldl.cli.export:export", "write a model as ONNX, or describe it in a model card"),
    "inspect": ("skldl.cli.inspect:inspect", "show the contents of a model file"),
    "convert": ("skldl.cli.convert:convert", "turn votes, counts, scores or rankings into distributions"),
    "datasets": ("skldl.cli.datasets:app", "list, describe and fetch datasets"),
    "bench": ("skldl.cli.bench:app", "compare algorithms by a study"),
    "report": ("skldl.cli.report:app", "show the results of a study as one page"),
    "measures": ("skldl.cli.measures:app", "list the measures between distributions, or choose among them"),
}

app = App(
    name="skldl",
    version=skldl.__version__,
    usage="Usage: skldl COMMAND",
    help="\n".join(
        (
            "Label distribution learning: how much does each label describe an instance?\n\n```text",
            *(f"skldl {name:<10} {what}" for name, (_, what) in COMMANDS.items()),
            "```\n\nskldl COMMAND --help shows the options, with examples.",
        )
    ),
    help_format="markdown",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
for _name, (_place, _) in COMMANDS.items():
    app.command(_place, name=_name, show=False)

USER_MISTAKES = (DataError, ParameterError, FileNotFoundError, FileExistsError, IsADirectoryError, PermissionError)


def run(arguments: Sequence[str]) -> int:
    """Run one command line, the arguments after ``skldl``, and return the exit status.

    ``--debug`` in any place shows the traceback of an error.
    """
    debug = "--debug" in arguments
    words = [word for word in arguments if word != "--debug"]
    with warnings.catch_warnings(), options_of_command(_option_finder(words)):
        warnings.showwarning = _show_warning
        return _run(words, debug=debug)


def _run(words: list[str], *, debug: bool) -> int:
    try:
        status = app(words, exit_on_error=False, print_error=False)
        return status if isinstance(status, int) else 0
    except CycloptsError as error:
        if debug:
            raise
        command = f"skldl {words[0]}" if words and words[0] in COMMANDS else "skldl"
        print(f"skldl: {' '.join(str(error).split())} Try: {command} --help", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("skldl: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has closed the pipe, as head does
        _forget_standard_output()
        return 0
    except ModuleNotFoundError as error:
        if debug:
            raise
        return _name_extra(error)
    except Exception as error:
        if debug:
            raise
        print(f"skldl: {_one_line(error)}", file=sys.stderr)
        return 2 if isinstance(error, USER_MISTAKES) else 1


def _options_of(words: Sequence[str]) -> set[str]:
    """The options of the command that these words call; empty if there is no such command."""
    try:
        command = app.parse_commands(list(words))[1][-1]
        if command.default_command is None:  # only skldl, without a command
            return set()
        return {name for argument in command.assemble_argument_collection() for name in argument.names}
    except (CycloptsError, ImportError):
        return set()


def _option_finder(words: Sequence[str]) -> Callable[[str], bool]:
    """A function whether an option is one of the command, or of ``fit``, which made the model that the command uses.

    Options are collected when the first message names one, since this imports the module of the command.
    """
    options = cache(lambda: _options_of(words))
    options_of_fit = cache(lambda: _options_of(["fit"]))
    return lambda option: option in options() or option in options_of_fit()


def _forget_standard_output() -> None:
    """Discard buffered output, so that Python does not report the closed pipe when it exits."""
    with contextlib.suppress(OSError, ValueError):  # standard output may have no file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_EXTRA_OF = {
    "pandas": "cli",
    "scikit_posthocs": "bench",
    "baycomp": "bench",
    "matplotlib": "plot",
    "jinja2": "report",
    "pyarrow": "cli",
    "skops": "save",
    "distributed": "dask",
    "starlette": "serve",
    "uvicorn": "serve",
    "orjson": "serve",
    "onnx": "onnx",
    "onnxruntime": "onnx",
}


def _name_extra(error: ModuleNotFoundError) -> int:
    package = (error.name or "").partition(".")[0]
    extra = _EXTRA_OF.get(package)
    hint = f"pip install 'scikit-ldl[{extra}]'" if extra else f"pip install {package}"
    print(f"skldl: this command needs the package {package}: {hint}", file=sys.stderr)
    return 2


def _show_warning(message: Warning | str, *place: object, **more: object) -> None:
    """Print a warning on one line, without its place in the code."""
    print(f"Note: {' '.join(worded(message).split())}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in DISK_IS_FULL:  # of a stream, such as standard output
        return f"The output could not be written: {error.strerror}."
    text = " ".join(worded(error).split())
    return text if isinstance(error, USER_MISTAKES) else f"{type(error).__name__}: {text} (--debug shows where)"
