"""Docstrings of everything public: parameters, return values and an example, without exception.

Public is what ``skldl`` and its public modules and subpackages define or export. The examples themselves run as
doctests.
"""

import importlib
import inspect
import pkgutil
import typing
import warnings

import pytest
from numpydoc.docscrape import NumpyDocString

import skldl

COMMANDS = "skldl.cli."  # the functions there are commands: their docstrings are the help text, in another format


def public_objects():
    """Everything public by its full name: classes, their methods and properties, functions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modules with old names
        modules = [skldl]
        names = [info.name for info in pkgutil.iter_modules(skldl.__path__, "skldl.") if "._" not in info.name]
        modules += [importlib.import_module(name) for name in names]
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
                for member, definition in vars(value).items():
                    function = getattr(definition, "__func__", definition)  # of a class method
                    if not member.startswith("_") and (inspect.isfunction(function) or isinstance(function, property)):
                        seen[f"{value.__module__}.{name}.{member}"] = function
            elif inspect.isfunction(value):
                seen[f"{value.__module__}.{name}"] = value
    return {name: value for name, value in seen.items() if not name.startswith(COMMANDS)}


def parsed(target):
    documentation = inspect.getdoc(target)
    assert documentation, "a public object needs a docstring"
    return NumpyDocString(documentation)


def parameters_of(target):
    if inspect.isclass(target) and (target.__init__ is object.__init__) and "__new__" not in vars(target):
        return []
    if inspect.isclass(target) and issubclass(target, BaseException):
        return []  # all have a message, and nothing else
    if getattr(target, "_is_protocol", False):
        return []  # a protocol is never called
    return [name for name in inspect.signature(target).parameters if name[0] != "_" and name not in ("self", "cls")]


def documented(sections, *names):
    return [part.strip(" *") for name in names for entry in sections[name] for part in entry.name.split(",")]


OBJECTS = public_objects()
CALLABLES = {name: value for name, value in OBJECTS.items() if not isinstance(value, property)}
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


@pytest.mark.parametrize("name", [name for name, value in OBJECTS.items() if isinstance(value, property)])
def test_every_property_is_documented(name):
    assert parsed(OBJECTS[name])["Summary"]
