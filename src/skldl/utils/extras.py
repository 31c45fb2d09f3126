"""Imports of optional dependencies: if one is missing, the error names the extra that installs it."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def import_with_extra(module: str, extra: str, *, user: str = "") -> Any:
    """Import a module that needs the dependencies of an extra; if one is missing, the error says so.

    ``user`` is what needs it, for the message; by default the module itself.
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


def lazy_names(package: str, **homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose names are imported when they are first used.

    For each extra, ``homes`` says which names are in which modules that need it.
    """
    places = {
        name: (module, extra) for extra, modules in homes.items() for module, names in modules.items() for name in names
    }

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, extra = places[name]
        return getattr(import_with_extra(f"{package}.{module}", extra), name)

    return find
