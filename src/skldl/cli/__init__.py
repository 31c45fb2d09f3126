"""The command `skldl`. Needs the extra ``cli``."""

import os
import signal
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit status.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The words after ``skldl``; None for those of this process, which then ends at once on SIGTERM.

    Returns
    -------
    int
        0 if all went well, 2 for a mistake of the user (bad data, unknown name, missing file), 1 for an error of this
        package or a study with failed tasks, 130 if interrupted.

    Examples
    --------
    >>> from skldl.cli import main
    >>> main(["datasets", "describe", "nothing"])
    2
    """
    try:
        from skldl.cli._app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("cyclopts", "rich"):
            raise
        print("skldl: the command line needs the extra 'cli': pip install 'scikit-ldl[cli]'", file=sys.stderr)
        return 2
    if sys.stderr is None:  # the stream was closed before Python started
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process runs
    if sys.stdout is None:
        print("skldl: standard output is closed. Redirect it, to a file or to /dev/null.", file=sys.stderr)
        return 2
    if arguments is None:
        signal.signal(signal.SIGTERM, _exit_on_sigterm)
        arguments = sys.argv[1:]
    return run(arguments)


def _exit_on_sigterm(*_: object) -> None:
    """Remove unfinished files and end the process; an exception could be caught by code on its way."""
    from skldl.utils.files import discard_unfinished

    discard_unfinished()
    os._exit(143)  # 128 + SIGTERM, as a shell reports it
