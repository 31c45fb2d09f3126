"""Messages of the library as the command line shows them: parameters are spelled as options."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from skldl.exceptions import Message, Parameter, WordedError

RENAMED = {
    "data_home": "--data",
    "na_values": "--na",
    "random_state": "--seed",
    "source": "--from",
    "settings": "--set",
    "weigh_raters": "--weights",
}
"""Parameters whose option has another name; the other options are the name of the parameter with hyphens."""

_is_option: ContextVar[Callable[[str], bool]] = ContextVar("is_option", default=lambda option: True)


@contextmanager
def options_of_command(is_option: Callable[[str], bool]) -> Iterator[None]:
    """In this block, spell a parameter as an option only if ``is_option`` is true for the option."""
    before = _is_option.set(is_option)
    try:
        yield
    finally:
        _is_option.reset(before)


def spelled(parameter: Parameter) -> str:
    """Spell a parameter as an option of the command, or as in Python if the command has no such option.

    Examples
    --------
    >>> spelled(Parameter("drop", ["a", "b"])), spelled(Parameter("settings", {"alpha": 0.1, "cv": 5}))
    ('--drop a,b', '--set alpha=0.1 --set cv=5')
    >>> spelled(Parameter("intervals", True)), spelled(Parameter("selection_rows"))
    ('--intervals', '--selection-rows')
    """
    option = RENAMED.get(parameter.name, f"--{parameter.name.replace('_', '-')}")
    if not _is_option.get()(option):
        return str(parameter)
    if not parameter.has_value or parameter.value is True:  # a switch has no value on the command line
        return option
    if parameter.value is False:
        return f"--no-{option.removeprefix('--')}"
    if isinstance(parameter.value, Mapping):
        return " ".join(f"{option} {_quoted(f'{name}={value}')}" for name, value in parameter.value.items())
    if isinstance(parameter.value, list | tuple):
        return f"{option} {_quoted(','.join(map(str, parameter.value)))}"
    return f"{option} {_quoted(str(parameter.value))}"


def _quoted(value: str) -> str:
    return value if re.fullmatch(r"[\w.,:+=-]+", value) else f"'{value}'"


def worded(text: Any) -> str:
    """Word a message, a warning or an error for the terminal: parameters as options, no control characters.

    Examples
    --------
    >>> worded(Message("Leave it out with ", Parameter("drop", ["a"]), "."))
    'Leave it out with --drop a.'
    """
    if isinstance(text, Warning) and text.args:
        text = text.args[0]
    return printable(text.worded(spelled) if isinstance(text, Message | WordedError) else str(text))


def printable(text: str) -> str:
    """Escape control characters, except line breaks: names of columns come from files of any origin.

    Examples
    --------
    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(
        letter
        if letter == "\n" or unicodedata.category(letter) not in ("Cc", "Cf")
        else letter.encode("unicode_escape").decode()
        for letter in text
    )
