"""`show_versions`: what a bug report should state about the machine."""

import platform
import sys
from importlib import metadata

import skldl

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


def show_versions() -> None:
    """Print the versions of Python, of this package and of all that it uses, and the threads of BLAS and OpenMP.

    Examples
    --------
    >>> import skldl
    >>> skldl.show_versions()  # doctest: +ELLIPSIS
    scikit-ldl ...
    Python ...
    """
    print(f"scikit-ldl {skldl.__version__}")
    print(f"Python {platform.python_version()} ({platform.platform()}, {sys.executable})")
    for group, names in PACKAGES.items():
        print(f"{group}:")
        for name in names:
            print(f"  {name} {_version(name)}")
    for line in _threads():
        print(line)


def _threads() -> list[str]:
    """Libraries that compute in several threads, and in how many."""
    import sklearn.base  # noqa: F401 - threadpoolctl sees loaded libraries only: this loads those of NumPy and SciPy
    from threadpoolctl import threadpool_info

    pools = [f"  {pool['internal_api']} {pool['version']}: {pool['num_threads']}" for pool in threadpool_info()]
    return ["threads:", *pools] if pools else ["threads: none found"]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "is not installed"
