"""How much memory a task needed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

try:
    import resource
except ImportError:  # not available on Windows without a further package
    resource = None  # type: ignore[assignment]  # a module elsewhere


@contextmanager
def peak_memory() -> Iterator[dict[str, float | None]]:
    """Measure the greatest resident memory of the process while the block runs, in MiB.

    Linux lets a process reset its high-water mark. On other systems the figure is the mark since the process began,
    and on Windows there is none.
    """
    found: dict[str, float | None] = {"mib": None}
    resettable = _reset_high_water_mark()
    try:
        yield found
    finally:
        found["mib"] = _high_water_mark() if resettable else _mark_since_start()


def _reset_high_water_mark() -> bool:
    try:
        with open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")
    except OSError:
        return False
    return True


def _high_water_mark() -> float:
    with open("/proc/self/status") as stream:
        line = next(line for line in stream if line.startswith("VmHWM:"))
    return round(int(line.split()[1]) / 1024, 1)


def _mark_since_start() -> float | None:
    if resource is None:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
