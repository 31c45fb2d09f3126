"""`PrintedRows`: a list of rows that prints itself as text."""

from typing import Any


class PrintedRows(list[dict[str, Any]]):
    """Rows with the same keys; ``print(rows)`` shows them in columns, and ``pandas.DataFrame(rows)`` works.

    Examples
    --------
    >>> from skldl.data._printed_rows import PrintedRows
    >>> print(PrintedRows([{"name": "a", "n": 1200}, {"name": "b", "n": None}]))
    name      n
    a     1,200
    b
    """

    def __str__(self) -> str:
        if not self:
            return "(no rows)"
        keys = list(self[0])
        cells = [keys] + [[_as_text(row[key]) for key in keys] for row in self]
        is_number = [any(isinstance(row[key], int | float) for row in self) for key in keys]
        widths = [max(len(line[j]) for line in cells) for j in range(len(keys))]
        lines = []
        for line in cells:
            padded = [
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, is_number, strict=True)
            ]
            lines.append("  ".join(padded).rstrip())
        return "\n".join(lines)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
