"""Cells of a new table that the training table did not hold."""

from typing import Any

import pandas as pd

from skldl.data._cells import checked_numbers
from skldl.tabular._encoder_steps import MISSING_CATEGORY, words_of
from skldl.tabular._known_categories import known_categories


def unusual_cells(encoder: Any, table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Count unknown categories, numbers far outside the range, and empty rows, as `TableEncoder.unusual` says.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    table : DataFrame
        Its columns.

    Returns
    -------
    dict
        Counts by the name of the column.
    """
    unknown, outside = {}, {}
    for name, known in known_categories(encoder.encoder_).items():
        words = words_of(encoder, table[name], MISSING_CATEGORY)
        unknown[name] = int((table[name].notna() & ~words.isin(known.every)).sum())
    for name, (least, most) in getattr(encoder, "ranges_", {}).items():
        numbers, width = checked_numbers(table[name]), most - least
        outside[name] = int(((numbers < least - width) | (numbers > most + width)).sum())
    return {
        "unknown_categories": {name: count for name, count in unknown.items() if count},
        "far_outside_range": {name: count for name, count in outside.items() if count},
        "empty_rows": {"rows": count} if (count := int(table.isna().all(axis=1).sum())) else {},
    }
