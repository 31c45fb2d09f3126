"""The package as a whole: what importing it pulls in, that its names lead somewhere, that docstrings fit signatures."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
import warnings

import pytest
from numpydoc.docscrape import NumpyDocString

import skldl

EXTRAS = ["cyclopts", "distributed", "jinja2", "matplotlib", "pandas", "polars", "pyarrow", "rich", "skops", "torch"]


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_pulls_in_no_extra_and_no_more_than_scikit_learn_does():
    loaded = run_python("import sys, skldl; print(*sys.modules)").split()
    assert not {name.partition(".")[0] for name in loaded} & {*EXTRAS, "sklearn", "scipy"}


def test_every_public_name_works_without_any_extra():
    run_python(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {EXTRAS!r}: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import skldl\n"
        "for name in skldl.__all__: getattr(skldl, name)\n"
        "X, D = skldl.testing.make_distributions(); skldl.MeanDistribution().fit(X, D).predict(X)"
    )


def test_the_command_names_the_extra_it_needs():
    result = subprocess.run(
        [sys.executable, "-c", "import sys; sys.modules['cyclopts'] = None; from skldl.cli import main; main()"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr == "skldl: the command line needs the extra 'cli': pip install 'scikit-ldl[cli]'\n"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        skldl.Nothing  # noqa: B018 - the access itself is the test
    assert set(dir(skldl)) == set(skldl.__all__)


def public_objects():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [importlib.import_module(info.name) for info in pkgutil.walk_packages(skldl.__path__, "skldl.")]
    seen = {}
    for module in modules:
        for name, value in vars(module).items():
            if name.startswith("_") or not getattr(value, "__module__", "").startswith("skldl"):
                continue
            if "._" in module.__name__:  # private; what it makes public is seen where it is exported
                continue
            if inspect.isclass(value):
                seen[f"{value.__module__}.{name}"] = value
                for method, function in vars(value).items():
                    if inspect.isfunction(function) and not method.startswith("_"):
                        seen[f"{value.__module__}.{name}.{method}"] = function
            elif inspect.isfunction(value):
                seen[f"{value.__module__}.{name}"] = value
    return seen


OBJECTS = public_objects()


@pytest.mark.parametrize("name", OBJECTS)
def test_docstring_fits_the_signature(name):
    target = OBJECTS[name]
    documentation = inspect.getdoc(target)
    assert documentation, "a public object needs a docstring"
    parameters = [
        parameter
        for parameter in inspect.signature(target.__init__ if inspect.isclass(target) else target).parameters
        if parameter not in ("self", "args", "kwargs", "cls")
    ]
    documented = [
        part.strip(" *")
        for parameter in NumpyDocString(documentation)["Parameters"]
        for part in parameter.name.split(",")
    ]
    if documented:
        assert documented == parameters
