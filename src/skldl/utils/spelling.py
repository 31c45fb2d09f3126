"""Names as people type them: case, ``-``, ``_``, dots and blanks make no difference."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

from skldl.exceptions import UnknownNameError

Thing = TypeVar("Thing")


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """Bring a name to the form in which names are compared.

    Examples
    --------
    >>> plain("s-BU_3DFE") == plain("SBU_3DFE") == plain("sbu 3dfe")
    True
    """
    return "".join(letter for letter in name.casefold() if letter not in "-_." and not letter.isspace())


def split_list(words: str | Iterable[str]) -> list[str]:
    """Cut a comma-separated list; a list is taken as it is.

    Examples
    --------
    >>> split_list("AA-kNN, sa-bfgs,")
    ['AA-kNN', 'sa-bfgs']
    """
    pieces = words.split(",") if isinstance(words, str) else words
    return [piece.strip() for piece in pieces if piece.strip()]


def find(word: str, known: Mapping[str, Thing], what: str) -> Thing:
    """Find the thing with a name, in any spelling; ``what`` says in the error what was looked for.

    Examples
    --------
    >>> find("aaknn", {"AA-kNN": 1, "AA-BP": 2}, "algorithm")
    1
    """
    by_plain_name = {plain(name): thing for name, thing in known.items()}
    try:
        return by_plain_name[plain(word)]
    except KeyError:
        text = repr(word) if len(word) <= 100 else f"{word[:99]!r}…"
        raise UnknownNameError(f"No {what} is called {text}. Known here: {', '.join(dict.fromkeys(known))}.") from None
