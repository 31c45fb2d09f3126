"""Optional dependencies, whose import errors name the extra to install, and `show_versions`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

PACKAGES = {
    "core": ("numpy", "scipy", "scikit-learn", "pooch", "joblib", "cloudpickle", "threadpoolctl"),
    "extras": (
        "array-api-compat",
        "baycomp",
        "cyclopts",
        "distributed",
        "httptools",
        "jinja2",
        "lightgbm",
        "matplotlib",
        "onnx",
        "onnxruntime",
        "orjson",
        "pandas",
        "pyarrow",
        "rich",
        "scikit-posthocs",
        "skops",
        "starlette",
        "uvicorn",
        "uvloop",
    ),
}


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
    """Make the ``__getattr__`` of a package whose names are imported when they are first used.

    Parameters
    ----------
    package : str
        Name of the package.
    **homes : mapping
        For each extra, the modules that need it, with their names.
    """
    modules_of = {
        name: (module, extra) for extra, modules in homes.items() for module, names in modules.items() for name in names
    }

    def find(name: str) -> Any:
        if name not in modules_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, extra = modules_of[name]
        return getattr(import_with_extra(f"{package}.{module}", extra), name)

    return find


@cache
def array_api_compat() -> Any:
    """The package array-api-compat: the copy that scikit-learn carries from version 1.7 on, or the one installed."""
    for name in ("sklearn.externals.array_api_compat", "array_api_compat"):
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(
        "Arrays of other libraries than NumPy need scikit-learn 1.7 or later, or array-api-compat: "
        "pip install 'scikit-ldl[gpu]'",
        name="array_api_compat",
    )


def show_versions() -> None:
    """Print the versions of Python, of this package and of its dependencies, and the threads of BLAS and OpenMP.

    Examples
    --------
    >>> import skldl
    >>> skldl.show_versions()  # doctest: +ELLIPSIS
    scikit-ldl ...
    Python ...
    """
    import platform

    import skldl  # imported here, since the package imports this module first

    print(f"scikit-ldl {skldl.__version__}")
    print(f"Python {platform.python_version()} ({platform.platform()}, {sys.executable})")
    for group, names in PACKAGES.items():
        print(f"{group}:")
        for name in names:
            print(f"  {name} {_version(name)}")
    for line in _threads():
        print(line)


def _threads() -> list[str]:
    """Libraries that compute in several threads, and their numbers of threads."""
    import sklearn.base  # noqa: F401 - threadpoolctl sees loaded libraries only: this loads those of NumPy and SciPy
    from threadpoolctl import threadpool_info

    pools = [f"  {pool['internal_api']} {pool['version']}: {pool['num_threads']}" for pool in threadpool_info()]
    return ["threads:", *pools] if pools else ["threads: none found"]


def _version(package: str) -> str:
    from importlib import metadata  # takes as long as the rest of `import skldl`

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "is not installed"
