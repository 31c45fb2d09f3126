"""Docstrings of everything public: parameters, return values and an example, without exception.

Public is what ``skldl`` and its public modules and subpackages define or export. The examples themselves run as
doctests. `test_reference.py` checks that all of this has a page.
"""

import importlib
import inspect
import pkgutil
import typing
import warnings
from dataclasses import fields, is_dataclass
from functools import cached_property

import pytest
from numpydoc.docscrape import NumpyDocString

import skldl

COMMANDS = "skldl.cli."  # the functions there are commands: their docstrings are the help text, in another format


DEEPER = ("skldl.experiments.statistics", "skldl.metrics.selection")  # public modules inside of subpackages


def public_objects():
    """Everything public by its full name: classes, their methods and properties, functions.

    A method that several classes inherit comes once, with the name of the class that defines it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modules with old names
        modules = [skldl]
        names = [info.name for info in pkgutil.iter_modules(skldl.__path__, "skldl.") if "._" not in info.name]
        modules += [importlib.import_module(name) for name in [*names, *DEEPER]]
    seen = {}
    for module in modules:
        exported = getattr(module, "__all__", None)
        for name in list(vars(module)) if exported is None else exported:
            value = getattr(module, name)
            home = getattr(value, "__module__", "")
            if name.startswith("_") or not home.startswith("skldl" if exported else module.__name__):
                continue
            if inspect.isclass(value):
                seen[f"{value.__module__}.{name}"] = value
                for member in dir(value):
                    definition = inspect.getattr_static(value, member)
                    definition = getattr(definition, "__func__", definition)  # of a class method
                    function = function_of(definition)
                    if not member.startswith("_") and function is not None:
                        seen[f"{function.__module__}.{function.__qualname__}"] = definition
            elif inspect.isfunction(value):
                seen[f"{value.__module__}.{name}"] = value
    return {name: value for name, value in seen.items() if not name.startswith(COMMANDS)}


def function_of(member):
    """The function of a method or property that this package defines; None for all other members of a class."""
    function = member.fget if isinstance(member, property) else getattr(member, "func", member)
    return function if inspect.isfunction(function) and function.__module__.startswith("skldl") else None


def parsed(target):
    documentation = inspect.getdoc(target)
    assert documentation, "a public object needs a docstring"
    return NumpyDocString(documentation)


def parameters_of(target):
    if inspect.isclass(target) and (target.__init__ is object.__init__) and "__new__" not in vars(target):
        return []
    if inspect.isclass(target) and issubclass(target, BaseException) and "__init__" not in vars(target):
        return []  # all have a message, and nothing else
    if getattr(target, "_is_protocol", False):
        return []  # a protocol is never called
    return [name for name in inspect.signature(target).parameters if name[0] != "_" and name not in ("self", "cls")]


def documented(sections, *names):
    return [part.strip(" *") for name in names for entry in sections[name] for part in entry.name.split(",")]


OBJECTS = public_objects()
PROPERTIES = {name: value for name, value in OBJECTS.items() if isinstance(value, property | cached_property)}
CALLABLES = {name: value for name, value in OBJECTS.items() if name not in PROPERTIES}
FUNCTIONS = {name: value for name, value in CALLABLES.items() if inspect.isfunction(value)}
WITH_EXAMPLE = {  # the example of a class shows its methods
    name: value for name, value in CALLABLES.items() if inspect.isclass(value) or value.__qualname__ == value.__name__
}


def test_there_are_objects_to_look_at():
    assert len(OBJECTS) > 400
    assert {"skldl.base.BaseLDL.fit", "skldl.metrics._skill.skill_of_losses"} <= set(OBJECTS)


@pytest.mark.parametrize("name", CALLABLES)
def test_every_parameter_is_documented_in_the_order_of_the_signature(name):
    target = CALLABLES[name]
    sections = parsed(target)
    expected = parameters_of(target)
    found = documented(sections, "Parameters", "Other Parameters")
    if inspect.isclass(target) and not found:  # results that users read but do not make
        found = [part for part in documented(sections, "Attributes") if part in expected]
    assert found == expected


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_return_value_is_documented(name):
    target = FUNCTIONS[name]
    sections = parsed(target)
    result = inspect.signature(target).return_annotation
    assert result is not inspect.Signature.empty, "the signature does not say what is returned"
    if result is None or result is typing.NoReturn:
        assert not sections["Returns"]
    else:
        assert sections["Returns"] or sections["Yields"], f"returns {result}, and no section says what that is"


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_every_class_and_function_has_an_example(name):
    assert ">>> " in "\n".join(parsed(WITH_EXAMPLE[name])["Examples"])


WITH_REFERENCES = [name for name, value in OBJECTS.items() if "References\n---" in (inspect.getdoc(value) or "")]


@pytest.mark.parametrize("name", WITH_REFERENCES)
def test_references_are_numbered_one_by_one(name):
    lines = [line for line in parsed(OBJECTS[name])["References"] if line.strip()]
    assert [line for line in lines if not line.startswith((".. [", " "))] == []  # else they run together on the site
    numbers = [line.split("]")[0].removeprefix(".. [") for line in lines if line.startswith(".. [")]
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]


def test_every_estimator_names_its_source():
    without = {"MeanDistribution"}  # a baseline, which nobody published
    sources = {name for name in skldl.ESTIMATORS if "References\n---" in inspect.getdoc(getattr(skldl, name))}
    assert set(skldl.ESTIMATORS) - sources == without


@pytest.mark.parametrize("name", PROPERTIES)
def test_every_property_is_documented(name):
    assert parsed(PROPERTIES[name])["Summary"]


@pytest.mark.parametrize("name", [name for name, value in CALLABLES.items() if is_dataclass(value)])
def test_every_field_is_documented(name):
    """Also those that the signature does not have."""
    names = {field.name for field in fields(CALLABLES[name]) if not field.name.startswith("_")}
    assert names - set(documented(parsed(CALLABLES[name]), "Parameters", "Attributes")) == set()


def inner_objects():
    """Functions, classes and methods without underscore of all other modules, by their full names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modules with old names
        names = [info.name for info in pkgutil.walk_packages(skldl.__path__, "skldl.") if info.name != "skldl.__main__"]
        modules = [importlib.import_module(name) for name in names]
    defined = [
        value for module in modules for name, value in vars(module).items() if is_defined_in(module, name, value)
    ]
    methods = [
        function
        for value in defined
        if inspect.isclass(value)
        for name, function in vars(value).items()
        if inspect.isfunction(function) and not name.startswith("_")
    ]
    return {f"{value.__module__}.{value.__qualname__}": value for value in [*defined, *methods]}


def is_defined_in(module, name, value):
    kinds = inspect.isfunction(value) or inspect.isclass(value)
    return kinds and not name.startswith("_") and value.__module__ == module.__name__


def test_docstrings_inside_of_the_package_fit_the_signatures():
    """They may leave parameters out altogether; those that they name are those of the signature."""
    inner = {name: value for name, value in inner_objects().items() if name not in OBJECTS}
    assert len(inner) > 1000
    wrong = []
    for name, value in inner.items():
        if not inspect.getdoc(value):
            if "._" not in name and not name.startswith("skldl.utils."):
                wrong.append(f"{name} has no docstring")
        elif not name.startswith(COMMANDS):
            found = documented(parsed(value), "Parameters", "Other Parameters")
            expected = parameters_of(value)
            if found and inspect.getfullargspec(value).varkw in expected:  # each name may have its own entry
                expected = expected[:-1] + found[len(expected) - 1 :]
            if found and found != expected:
                wrong.append(f"{name} documents {found}, not {expected}")
    assert wrong == []
