"""Numbers in a notation that is not read: with a percent sign, a currency, a unit, or blanks between thousands.

A column of such cells is text to the reader, and as categories it would lose the order of its numbers.
"""

import re
import unicodedata

_SIGN = "[+\u2212\u2013-]"
_THOUSANDS = "|".join(rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+" for mark in (" ", "'", "\u2019", "_", r"\.", ","))
_NUMBER = rf"(?:{_THOUSANDS}|\d+|(?=[.,]))(?:[.,]\d+)?(?:[eEdD][+-]?\d+)?"
_CURRENCY = r"(?:[^\W\d_]{0,2}[$\u20a0-\u20cf\u00a3\u00a5]|USD|EUR|GBP|CHF|JPY|CNY)"
_AMOUNT = rf"{_SIGN}? ?{_CURRENCY}? ?{_SIGN}? ?{_NUMBER} ?(?:[%\u2030]|{_CURRENCY})?"
# A minus may follow a number that is longer than a digit: 2- is a mark of a school.
_OTHERWISE = re.compile(rf"{_AMOUNT}|(?=.{{3}}){_AMOUNT}[\u2212\u2013-]|\({_AMOUNT}\)")
_WITH_UNIT = re.compile(rf"{_SIGN}?{_NUMBER} ?([^\W\d_]{{1,4}})")


def is_number_otherwise(cell: str) -> bool:
    """Whether a cell that is no plain number is one for a person, in a notation that is not read.

    Percentages, amounts of money, marks between thousands, digits of other scripts and the like.

    Examples
    --------
    >>> [is_number_otherwise(cell) for cell in ("35.2 %", "$5", "1'234.50", "(12)", "A4", "3-8", "10 kg")]
    [True, True, True, True, False, False, False]
    """
    return _OTHERWISE.fullmatch(_simple(cell)) is not None


def unit_of(cell: str) -> str | None:
    """The short word that follows the number of a cell, such as kg; None if the cell is anything else.

    Examples
    --------
    >>> unit_of("10.5 kg"), unit_of("10.5"), unit_of("kg 10")
    ('kg', None, None)
    """
    found = _WITH_UNIT.fullmatch(_simple(cell))
    return found[1] if found else None


def _simple(cell: str) -> str:
    """All kinds of blanks as the plain one, and wide letters as narrow ones."""
    return unicodedata.normalize("NFKC", cell).strip()
