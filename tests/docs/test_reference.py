"""The API reference is complete: public names, fitted attributes, and what `See Also` leads to.

Parameters, properties and fields are checked in `test_docstrings.py`.
"""

import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString
from sklearn.linear_model import LogisticRegression, Ridge

import skldl
from skldl.testing import make_distributions

DOCS = Path(__file__).parents[2] / "docs"
if not DOCS.exists():
    pytest.skip("the pages are in the repository, not in the package", allow_module_level=True)


def load_reference():
    specification = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["reference"] = module
    specification.loader.exec_module(module)
    return module


REFERENCE = load_reference()
ENTRIES = [entry for entry in REFERENCE.entries() if entry.home == entry.full_name]
CLASSES = [entry for entry in ENTRIES if entry.kind == "class" and not entry.is_error]


def routines():
    """Every public function and method with its name; a method that is inherited comes once."""
    found = {}
    for entry in ENTRIES:
        if entry.kind == "function":
            found[entry.full_name] = entry.value
    for entry in CLASSES:
        for name in REFERENCE.members(entry.value):
            member = inspect.getattr_static(entry.value, name)
            if isinstance(member, (classmethod, staticmethod)):
                member = member.__func__
            if inspect.isfunction(member) and member not in found.values():
                found[f"{entry.full_name}.{name}"] = member
    return found


ROUTINES = routines()


def sections(target):
    return NumpyDocString(inspect.getdoc(target) or "")


def attributes_of(target):
    return {name.strip() for entry in sections(target)["Attributes"] for name in entry.name.split(",")}


def test_every_public_module_is_in_the_reference():
    modules = {f"skldl.{module.name}" for module in pkgutil.iter_modules(skldl.__path__) if module.name[0] != "_"}
    listed = {*REFERENCE.MODULES, *REFERENCE.NOT_DOCUMENTED}
    assert modules - listed == set(), "list them in MODULES of docs/reference.py"
    assert {name for name in listed if importlib.util.find_spec(name) is None} == set()


def test_every_public_name_has_its_place():
    pages = REFERENCE.pages()
    for entry in ENTRIES:
        if entry.has_page:
            assert f"generated/{entry.full_name}.rst" in pages
            assert f"   generated/{entry.full_name}\n" in pages[f"{entry.module}.rst"], entry
        elif entry.home == entry.full_name:
            assert f":: {entry.name}\n" in pages[f"{entry.module}.rst"], entry
    names = {name for module in REFERENCE.MODULES for name in getattr(importlib.import_module(module), "__all__", ())}
    assert names - {"__version__", *skldl._SUBMODULES} <= {entry.name for entry in REFERENCE.entries()}


def test_every_constant_is_explained():
    assert {entry.full_name for entry in ENTRIES if entry.kind == "data"} == set(REFERENCE.CONSTANTS)


def test_every_docstring_with_a_page_is_checked(load_script):
    checked = set(load_script("tests/docs/test_docstrings.py").OBJECTS.values())
    pages = {entry.full_name: entry.value for entry in CLASSES} | ROUTINES
    assert [name for name, value in pages.items() if value not in checked] == []


def test_every_see_also_leads_somewhere():
    known = {entry.name for entry in REFERENCE.entries()} | {entry.full_name for entry in REFERENCE.entries()}
    broken = []
    for name, target in [*((entry.full_name, entry.value) for entry in CLASSES), *ROUTINES.items()]:
        for others, _ in sections(target)["See Also"]:
            broken += [f"{name}: {other}" for other, _ in others if other not in known and not exists(other)]
    assert broken == []


def exists(dotted):
    """Whether a name with dots leads to a module, or to what a module holds."""
    module, _, rest = dotted.rpartition(".")
    while module:
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            return False
        try:
            value = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, more = module.rpartition(".")
            rest = f"{more}.{rest}"
            continue
        for part in rest.split("."):
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def test_names_that_lead_nowhere_are_found_out():
    assert exists("skldl.metrics.clark.rowwise")
    assert exists("sklearn.linear_model.Ridge")
    assert not exists("skldl.metrics.clerk")
    assert not exists("no_such_package.name")
    assert not exists("SABFGX")


QUICK = {
    "AutoLDL": {"members": ["linear", "neighbours"]},
    "LDLF": {"n_estimators": 1},
    "LDLogitBoost": {"n_estimators": 2},
    "RandomForestLDL": {"n_estimators": 10, "kind": "random", "min_samples_leaf": 5, "max_features": 0.5},
}
INSIDE = {
    "classifier": LogisticRegression(),
    "estimator": skldl.SABFGS(alpha=1e-2),
    "estimators": [("mean", skldl.MeanDistribution()), ("neighbours", skldl.AAKNN())],
    "regressor": Ridge(),
}


def quick_estimator(name):
    """An estimator with few trees, and with a learner inside where its constructor needs one."""
    signature = inspect.signature(getattr(skldl, name))
    needed = [key for key, value in signature.parameters.items() if value.default is inspect.Parameter.empty]
    return getattr(skldl, name)(**{key: INSIDE[key] for key in needed}, **QUICK.get(name, {}))


@pytest.mark.filterwarnings("ignore")  # forty rows and few iterations: warnings about the fit are expected
@pytest.mark.parametrize("name", skldl.ESTIMATORS)
def test_every_fitted_attribute_is_described(name):
    """An attribute may be described in the base class, to which the page of every estimator leads."""
    X, D = make_distributions(40, 3, 3)
    model = quick_estimator(name).fit(X, D.argmax(axis=1) if name == "LDLClassifier" else D)
    fitted = {attribute for attribute in vars(model) if attribute.endswith("_") and not attribute.startswith("_")}
    ours = [base for base in type(model).__mro__ if base.__module__.startswith("skldl")]
    described = set().union(*map(attributes_of, ours))
    assert fitted - described == set()
    assert fitted & described


def test_the_pages_of_estimators_lead_to_the_attributes_of_their_base():
    pages = REFERENCE.pages_of_objects()
    for name in skldl.ESTIMATORS:
        page = pages[f"generated/skldl.{name}.rst"]
        assert ("skldl.BaseLDL" in page) == issubclass(getattr(skldl, name), skldl.BaseLDL)
