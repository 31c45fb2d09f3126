"""The command `skldl`: parse, call, print. Needs the extra ``cli``."""

import os
import signal
import sys


def main() -> None:
    """Run the command line and leave with its exit status."""
    try:
        from skldl.cli._app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("cyclopts", "rich"):
            raise
        print("skldl: the command line needs the extra 'cli': pip install 'scikit-ldl[cli]'", file=sys.stderr)
        sys.exit(2)
    _check_standard_streams()
    signal.signal(signal.SIGTERM, _end_at_once)
    sys.exit(run(sys.argv[1:]))


def _check_standard_streams() -> None:
    """Refuse to run where results would go nowhere; Python has None in the place of a stream that is closed."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process runs
    if sys.stdout is None:
        print("skldl: standard output is closed. Redirect it, to a file or to /dev/null.", file=sys.stderr)
        sys.exit(2)


def _end_at_once(*_: object) -> None:
    """End without unfinished files. An exception would do, if all code that it passes let it through."""
    from skldl.utils.files import discard_unfinished

    discard_unfinished()
    os._exit(143)
