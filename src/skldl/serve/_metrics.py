"""Counters of the service in the text format of Prometheus.

All counters are changed only in the event loop, so that they need no lock. Labels come from the routes, the models and
their columns, so that their number is bounded.
"""

import os
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the latency histogram in seconds."""

_UNUSUAL = {
    "unknown_categories": "Cells with a category that the model does not know.",
    "far_outside_range": "Numbers more than one width outside the range of the training table.",
    "empty_rows": "Rows without any feature.",
}


class Metrics:
    """Counters of requests, rows and reloads.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.request("/predict", "faces", 200, 0.002)
    >>> metrics.rows("faces", 3, {"unknown_categories": {"town": 1}})
    >>> [line for line in metrics.text().splitlines() if line.startswith("skldl_rows_total")]
    ['skldl_rows_total{model="faces"} 3']
    """

    def __init__(self) -> None:
        self.running = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._buckets: dict[str, list[int]] = {}
        self._rows: Counter[tuple[str]] = Counter()
        self._unusual: dict[str, Counter[tuple[str, str]]] = {what: Counter() for what in _UNUSUAL}
        self._reloads: Counter[tuple[str]] = Counter()

    def request(self, route: str, model: str, status: int, seconds: float) -> None:
        """Count an answered request by its route: addresses as sent would make the number of labels unbounded."""
        self._requests[route, model, status] += 1
        self._seconds[route] += seconds
        if route not in self._buckets:
            self._buckets[route] = [0] * (len(BUCKETS) + 1)
        self._buckets[route][bisect_left(BUCKETS, seconds)] += 1

    def rows(self, model: str, n_rows: int, unusual: Mapping[str, Mapping[str, int]]) -> None:
        """Count predicted rows and their unusual cells, which `TableEncoder.unusual` counts."""
        self._rows[(model,)] += n_rows
        for what, counts in unusual.items():
            for column, count in counts.items():
                self._unusual[what][model, column] += count

    def reload(self, result: str) -> None:
        """Count a reload of the model files: its result is ``ok`` or ``failed``."""
        self._reloads[(result,)] += 1

    def text(self, loaded: Mapping[str, float] | None = None) -> str:
        """Write everything in the text format of Prometheus; ``loaded`` has seconds since 1970 by model."""
        lines: list[str] = []

        def write(
            name: str, meaning: str, labels: Sequence[str], samples: Mapping[Any, float], kind: str = "counter"
        ) -> None:
            lines.extend((f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"))
            lines.extend(f"{name}{_labels(labels, key)} {value:.17g}" for key, value in sorted(samples.items()))

        write("skldl_requests_total", "Requests that were answered.", ("route", "model", "status"), self._requests)
        errors: Counter[tuple[str, str]] = Counter()
        for (route, _, status), count in self._requests.items():
            if status >= 400:
                errors[route, "server" if status >= 500 else "client"] += count
        meaning = "Requests that were answered with an error, by the side that caused it."
        write("skldl_errors_total", meaning, ("route", "side"), errors)
        name = "skldl_request_duration_seconds"
        meaning = "Time from the first byte of a request to the last of its answer."
        write(name, meaning, (), {}, "histogram")
        for route, counts in sorted(self._buckets.items()):
            total = 0
            for end, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += count
                lines.append(f"{name}_bucket{_labels(('route', 'le'), (route, end))} {total}")
            lines.append(f"{name}_sum{_labels(('route',), (route,))} {self._seconds[route]:.9g}")
            lines.append(f"{name}_count{_labels(('route',), (route,))} {total}")
        write("skldl_rows_total", "Rows that were predicted.", ("model",), self._rows)
        for what, meaning in _UNUSUAL.items():
            labels = ("model",) if what == "empty_rows" else ("model", "column")  # a whole row has no column
            write(f"skldl_{what}_total", meaning, labels, self._unusual[what])
        write("skldl_requests_running", "Requests that are being answered.", (), {(): self.running}, "gauge")
        write("skldl_reloads_total", "Reloads of the model files.", ("result",), self._reloads)
        times = {(model,): seconds for model, seconds in (loaded or {}).items()}
        write("skldl_model_loaded_timestamp_seconds", "When the model was loaded.", ("model",), times, "gauge")
        if (memory := resident_bytes()) is not None:
            write("process_resident_memory_bytes", "Resident memory.", (), {(): memory}, "gauge")
        return "\n".join(lines) + "\n"


def resident_bytes() -> int | None:
    """Resident memory of this process, where the system reports it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def _labels(names: Sequence[str], values: Sequence[object]) -> str:
    pairs = [f'{name}="{_escaped(str(value))}"' for name, value in zip(names, values, strict=False)]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
