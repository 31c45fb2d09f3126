"""The command `skldl`: parse, call, print. Needs the extra ``cli``."""

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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that unfinished files are taken away
    sys.exit(run(sys.argv[1:]))
