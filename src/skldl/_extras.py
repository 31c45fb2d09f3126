"""Imports that need an optional dependency: if it is missing, the error names the extra that brings it."""

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
        What needs it, as the error says; the module itself if empty.

    Returns
    -------
    module
        The module.

    Raises
    ------
    ModuleNotFoundError
        That says which extra to install, if a package outside of this one is missing.
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
