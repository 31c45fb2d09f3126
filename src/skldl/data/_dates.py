"""Dates in the cells of a table: typed ones, and text in an unambiguous format."""

import re

import numpy as np
import pandas as pd

from skldl.exceptions import TableError

_CLOCK = (
    r"((?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?|24:00(?::00)?)(?:[.,]\d+)?\s*([AaPp][Mm])?\s*(?:Z|[+-]\d{2}:?\d{2})?"
)
_TIME = rf"(?:[T ]\s?{_CLOCK})?"
# From the name of a way to write dates to its pattern; the groups are the date, and where there is one, the
# time and its half of the day.
_PATTERNS = {
    "%Y-%m-%d": re.compile(rf"(\d{{4}}-\d{{2}}-\d{{2}}){_TIME}"),
    "%Y/%m/%d": re.compile(rf"(\d{{4}}/\d{{1,2}}/\d{{1,2}}){_TIME}"),
    "%d.%m.%Y": re.compile(rf"(\d{{1,2}}\.\d{{1,2}}\.\d{{4}}){_TIME}"),
    "%d/%m/%Y": re.compile(rf"(\d{{1,2}}/\d{{1,2}}/\d{{4}}){_TIME}"),
    "%m/%d/%Y": re.compile(rf"(\d{{1,2}}/\d{{1,2}}/\d{{4}}){_TIME}"),
    "%d-%m-%Y": re.compile(rf"(\d{{1,2}}-\d{{1,2}}-\d{{4}}){_TIME}"),
    "%m-%d-%Y": re.compile(rf"(\d{{1,2}}-\d{{1,2}}-\d{{4}}){_TIME}"),
    "%d.%m.%y": re.compile(rf"(\d{{1,2}}\.\d{{1,2}}\.\d{{2}}){_TIME}"),
    "%d/%m/%y": re.compile(rf"(\d{{1,2}}/\d{{1,2}}/\d{{2}}){_TIME}"),
    "%m/%d/%y": re.compile(rf"(\d{{1,2}}/\d{{1,2}}/\d{{2}}){_TIME}"),
    "%d-%b-%Y": re.compile(rf"(\d{{1,2}}-[A-Za-z]{{3}}-\d{{4}}){_TIME}"),
    "%d %b %Y": re.compile(rf"(\d{{1,2}} [A-Za-z]{{3}} \d{{4}}){_TIME}"),
    "%b %d, %Y": re.compile(rf"([A-Za-z]{{3}} \d{{1,2}}, \d{{4}}){_TIME}"),
    "%Y-%m": re.compile(r"((?:19|20)\d{2}-(?:0[1-9]|1[0-2]))()()"),
    "%H:%M": re.compile(rf"(){_CLOCK}"),
}
_MONTHS = re.compile(
    r"\b(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|t|tember|ober|ember)\b", re.IGNORECASE
)
_LIKE_A_DATE = re.compile(
    r"\d{1,4}[-/. ]{1,2}(?:\d{1,2}|[^\W\d_]{3,9}\.?)[-/., ]{1,2}\d{1,4}\b.*|\w{3,9}\.? \d{1,2},? \d{4}.*"
    r"|(?:.* )?\d{1,2}:\d{2}(?::\d{2})?.*|(?:19|20)\d{2}[-/ ]?(?:W|Q|KW|CW) ?\d{1,2}"
)
TYPED = "typed"
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LOOKED_AT = 20


def as_dates(column: pd.Series, written: str) -> pd.Series:
    """Dates and times in local time, without a time zone; NaT where a cell is not written in the given format."""
    if pd.api.types.is_datetime64_any_dtype(column):
        if isinstance(column.dtype, pd.ArrowDtype):  # of which some operations on dates are not implemented
            column = pd.to_datetime(column.astype(object))
        years = column.dt.year
        if not years.dropna().between(1, 9999).all():
            raise TableError(
                f"Column {str(column.name)!r} holds dates of the years {years.min():.0f} to {years.max():.0f}. Only "
                "the years 1 to 9999 are taken as dates: check the unit in which they were written."
            )
        return column.dt.tz_localize(None)
    if written == TYPED:
        written = "%Y-%m-%d"
    pattern = _PATTERNS[written]
    found = [pattern.fullmatch(_text(cell)) if pd.notna(cell) else None for cell in column.astype(object)]
    if written == "%H:%M":
        days = pd.Series([pd.NaT if match is None else pd.Timestamp(0) for match in found], index=column.index)
    else:
        dates = [None if match is None else match[1] for match in found]
        days = pd.to_datetime(pd.Series(dates, index=column.index, dtype=object), format=written, errors="coerce")
    hours = pd.to_timedelta([_time_of_day(match) for match in found], errors="coerce")
    return days + pd.Series(hours, index=column.index)


def _text(cell: object) -> str:
    """The cell with months in three letters."""
    return _MONTHS.sub(r"\1", str(cell).strip())


def _time_of_day(match: re.Match[str] | None) -> str:
    """Hours, minutes and seconds since midnight; 13:05 PM is no time."""
    if match is None or not match[2]:
        return "0:00:00"
    hour, _, rest = match[2].partition(":")
    if match[3]:
        if not 1 <= int(hour) <= 12:
            return ""
        hour = str(int(hour) % 12 + 12 * (match[3].lower() == "pm"))
    return f"{hour}:{rest}" if ":" in rest else f"{hour}:{rest}:00"


def looks_like_date(cell: str) -> bool:
    """Whether a cell is a date or a time of day for a person, in whatever way it is written.

    Three numbers with marks between them, names of months beside numbers, hours with minutes, weeks or quarters of a
    year.

    Examples
    --------
    >>> [looks_like_date(cell) for cell in ("3. Mai 2024", "2024-W07", "7:30 Uhr", "18-24", "A-4-7")]
    [True, True, True, False, False]
    """
    return _LIKE_A_DATE.fullmatch(cell.strip()) is not None


def show_date(date: pd.Timestamp, written: str) -> str:
    """Write a date as the dates of a column are written."""
    return date.strftime("%Y-%m-%d" if written == TYPED else written)


def date_parts(dates: pd.Series) -> pd.DataFrame:
    """Numerical features of dates, missing where the date is.

    Month and hour are cyclic, so that each is a point on a circle; each weekday has its own column, since Sunday need
    not be like Monday; year and days are the time that has passed.

    Examples
    --------
    >>> import pandas as pd
    >>> parts = date_parts(pd.Series(pd.to_datetime(["1970-01-04 06:00"])))
    >>> parts.round(2).iloc[0].loc[["days", "hour, sine", "Sunday"]]
    days          3.25
    hour, sine    1.00
    Sunday        1.00
    Name: 0, dtype: float64
    """
    clock = dates.dt
    epoch = pd.Timestamp(0).as_unit(clock.unit)  # nanoseconds would not hold dates before 1677 or after 2262
    seconds = (dates - epoch).dt.total_seconds()
    parts = {"days": seconds / 86400, "year": clock.year.astype(np.float64)}
    hours = clock.hour + clock.minute / 60
    for part, turns in (("month", (clock.month - 1) / 12), ("hour", hours / 24)):
        angle = 2 * np.pi * turns.astype(np.float64)
        parts |= {f"{part}, sine": np.sin(angle), f"{part}, cosine": np.cos(angle)}
    for place, day in enumerate(_WEEKDAYS):
        parts[day] = (clock.day_of_week == place).astype(np.float64).where(dates.notna())
    return pd.DataFrame(parts)


def fitting_formats(column: pd.Series) -> list[str]:
    """All ways in which the dates of a column can be written; with several, day and month cannot be distinguished.

    ``"typed"`` for a column of datetimes; formats of `datetime.strptime` for text that holds nothing but dates.

    Examples
    --------
    >>> import pandas as pd
    >>> fitting_formats(pd.Series(["2024-05-31", "2024-06-01 12:30"])), fitting_formats(pd.Series(["03/04/2024"]))
    (['%Y-%m-%d'], ['%d/%m/%Y', '%m/%d/%Y'])
    """
    if pd.api.types.is_datetime64_any_dtype(column):
        return [TYPED]
    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
        return []
    present = column.dropna()
    first = [_text(cell) for cell in present.iloc[:_LOOKED_AT]]
    fitting = [way for way, pattern in _PATTERNS.items() if first and all(map(pattern.fullmatch, first))]
    return [way for way in fitting if not np.any(as_dates(present, way).isna())]
