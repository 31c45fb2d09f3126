"""Imports of optional dependencies: if one is missing, the error names the extra that installs it."""

from importlib import import_module
from typing import Any


def import_with_extra(module: str, extra: str, *, user: str = "") -> Any:
    """Import a module that needs the dependencies of an extra.

    Parameters
    ----------
    module : str
        Name of the module.
    extra : str
        Name of the extra.
    user : str, default=""
        What needs it, for the error message; the module itself if empty.

    Returns
    -------
    module
        The module.

    Raises
    ------
    ModuleNotFoundError
        If a package other than skldl is missing; the message names the extra to install.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] == "skldl":
            raise
        raise ModuleNotFoundError(
            f"{user or module} needs {error.name.partition('.')[0]}, which comes with the extra {extra!r}: "
            f"pip install 'scikit-ldl[{extra}]'",
            name=error.name,
        ) from error
