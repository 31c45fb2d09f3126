"""The tree of commands, and what happens when one of them goes wrong.

Exit status: 0 when all went well, 2 for a mistake of the user (bad data, unknown name, missing file), 1 for ours.
"""

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

import skldl
from skldl.exceptions import DataError

app = App(
    name="skldl",
    version=skldl.__version__,
    help="Label distribution learning: how much does each label describe an instance?",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)

# One line for each command; its module is imported when it is called:
# app.command("skldl.cli.measures:app", name="measures")
app.command("skldl.cli.bench:app", name="bench")
app.command("skldl.cli.convert:convert", name="convert")
app.command("skldl.cli.datasets:app", name="datasets")
app.command("skldl.cli.evaluate:evaluate", name="evaluate")
app.command("skldl.cli.explain:explain", name="explain")
app.command("skldl.cli.fit:fit", name="fit")
app.command("skldl.cli.inspect:inspect", name="inspect")
app.command("skldl.cli.predict:predict", name="predict")

USER_MISTAKES = (DataError, FileNotFoundError, FileExistsError, IsADirectoryError, PermissionError)


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Parameters
    ----------
    arguments : sequence of str
        What stands behind ``skldl``. ``--debug`` anywhere shows the traceback of an error.

    Returns
    -------
    int
        The exit status.
    """
    debug = "--debug" in arguments
    words = [word for word in arguments if word != "--debug"]
    try:
        status = app(words, exit_on_error=False, print_error=False)
        return status if isinstance(status, int) else 0
    except CycloptsError as error:
        if debug:
            raise
        print(f"skldl: {' '.join(str(error).split())} Try: skldl --help", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("skldl: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
    except ModuleNotFoundError as error:
        if debug:
            raise
        return _say_which_extra(error)
    except Exception as error:
        if debug:
            raise
        print(f"skldl: {_one_line(error)}", file=sys.stderr)
        return 2 if isinstance(error, USER_MISTAKES) else 1


_EXTRA_OF = {
    "pandas": "bench",
    "scikit_posthocs": "bench",
    "baycomp": "bench",
    "matplotlib": "plot",
    "jinja2": "report",
    "pyarrow": "cli",
    "skops": "save",
    "distributed": "dask",
}


def _say_which_extra(error: ModuleNotFoundError) -> int:
    package = (error.name or "").partition(".")[0]
    extra = _EXTRA_OF.get(package)
    cure = f"pip install 'scikit-ldl[{extra}]'" if extra else f"pip install {package}"
    print(f"skldl: this command needs the package {package}: {cure}", file=sys.stderr)
    return 2


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, DataError) else f"{type(error).__name__}: {text} (--debug shows where)"
