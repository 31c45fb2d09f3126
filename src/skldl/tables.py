"""The name of `skldl.tabular` and parts of `skldl.data` until 0.1; it goes in 0.4."""

import warnings

from skldl.tabular import *  # noqa: F403

warnings.warn(
    "skldl.tables is now skldl.tabular (models) and skldl.data (files, columns); the old name goes in 0.4.",
    DeprecationWarning,
    stacklevel=2,
)
