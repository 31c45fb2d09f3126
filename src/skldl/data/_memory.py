"""Memory of large tables that are not needed any more, back to the system."""

import contextlib
import ctypes


def release_unused_memory() -> None:
    """Release memory that Arrow and the C library cache.

    After a large CSV file Arrow holds more than the table itself; and columns that were freed leave holes that the C
    library of Linux keeps, though larger arrays cannot use them. Elsewhere only Arrow's part is done.
    """
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError, TypeError):  # there is no such function on other systems
        ctypes.CDLL(None).malloc_trim(0)
