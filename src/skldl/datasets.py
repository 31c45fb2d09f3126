"""The name of `skldl.data` until 0.1; it goes in 0.4."""

import warnings

from skldl.data import *  # noqa: F403

warnings.warn("skldl.datasets is now called skldl.data; the old name goes in 0.4.", DeprecationWarning, stacklevel=2)
