"""Dates in the cells of a table: typed ones, and text in an unambiguous format."""

import re

import numpy as np
import pandas as pd

_TIME = r"(?:[T ](\d{1,2}:\d{2}(?::\d{2})?)(?:[.,]\d+)?\s*(?:Z|[+-]\d{2}:?\d{2})?)?"
# From the name of a way to write dates to its pattern; the groups are the date and, where there is one, the time.
_PATTERNS = {
    "%Y-%m-%d": re.compile(rf"(\d{{4}}-\d{{2}}-\d{{2}}){_TIME}"),
    "%Y/%m/%d": re.compile(rf"(\d{{4}}/\d{{1,2}}/\d{{1,2}}){_TIME}"),
    "%d.%m.%Y": re.compile(rf"(\d{{1,2}}\.\d{{1,2}}\.\d{{4}}){_TIME}"),
    "%d/%m/%Y": re.compile(rf"(\d{{1,2}}/\d{{1,2}}/\d{{4}}){_TIME}"),
    "%m/%d/%Y": re.compile(rf"(\d{{1,2}}/\d{{1,2}}/\d{{4}}){_TIME}"),
    "%d %b %Y": re.compile(rf"(\d{{1,2}} [A-Za-z]{{3}} \d{{4}}){_TIME}"),
    "%b %d, %Y": re.compile(rf"([A-Za-z]{{3}} \d{{1,2}}, \d{{4}}){_TIME}"),
}
TYPED = "typed"
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LOOKED_AT = 20


def as_dates(column: pd.Series, written: str) -> pd.Series:
    """Dates and times in local time, without a time zone; NaT where a cell is not written in the given format."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return column.dt.tz_localize(None)
    cells = column.astype(object)
    if written == TYPED:
        written = "%Y-%m-%d"
    pattern = _PATTERNS[written]
    found = [pattern.fullmatch(str(cell).strip()) if pd.notna(cell) else None for cell in cells]
    dates = [None if match is None else match[1] for match in found]
    days = pd.to_datetime(pd.Series(dates, index=column.index, dtype=object), format=written, errors="coerce")
    times = [(match[2] if match else None) or "0:00" for match in found]
    hours = pd.to_timedelta([time if time.count(":") == 2 else f"{time}:00" for time in times], errors="coerce")
    return days + pd.Series(hours, index=column.index)


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
    seconds = (dates - pd.Timestamp(0)).dt.total_seconds()
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
    first = [str(cell).strip() for cell in present.iloc[:_LOOKED_AT]]
    fitting = [way for way, pattern in _PATTERNS.items() if first and all(map(pattern.fullmatch, first))]
    return [way for way in fitting if not np.any(as_dates(present, way).isna())]
