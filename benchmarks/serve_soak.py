"""Memory of ``skldl serve`` under load over a long time.

``python benchmarks/serve_soak.py --minutes 30`` sends requests of every kind at a limited rate: single rows, batches in
JSON, CSV and Parquet, explanations, the page, the counters, and malformed bodies. Connections are opened anew now and
then, and SIGHUP reloads the model every few minutes. Each line of ``results/serve_soak.jsonl`` has the minute, the
resident memory in MiB, open files, threads, answers so far and CPU seconds so far. At the end the script prints the
sentence of ``docs/deployment.md``, and fails if a request was lost, if a status was unexpected or if the number of
lines in the log is not the number of requests; no file is written then.
"""

import argparse
import http.client
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from serve import OUT as OUT_OF_LOAD
from serve import SKLDL, cpu_seconds, make_model, resident_megabytes

OUT = OUT_OF_LOAD.with_name("serve_soak.jsonl")
BATCH = 500
REOPEN_AFTER = 200
CALLERS = 3


def bodies(table):
    """Kinds of requests: weight, method, path, type, body, expected statuses."""
    rows = table.to_dict("records")
    batch = pd.concat([table] * 2, ignore_index=True).head(BATCH)
    parquet = io.BytesIO()
    batch.to_parquet(parquet)
    text = json.dumps(rows[:3]).encode()
    kinds = [
        (100, "POST", "/predict", "application/json", json.dumps(rows[0]).encode(), {200}),
        (20, "POST", "/predict", "application/json", json.dumps([rows[1] | {"x3": None}]).encode(), {200}),
        (4, "POST", "/predict", "application/json", batch.to_json(orient="records").encode(), {200}),
        (4, "POST", "/predict", "text/csv", batch.to_csv(index=False).encode(), {200}),
        (4, "POST", "/predict", "application/vnd.apache.parquet", parquet.getvalue(), {200}),
        (2, "POST", "/explain", "application/json", json.dumps(rows[2]).encode(), {200}),
        (1, "GET", "/", "", b"", {200}),
        (1, "GET", "/metrics", "", b"", {200}),
        (1, "GET", "/schema", "", b"", {200}),
        (4, "GET", "/nowhere", "", b"", {404}),
        (4, "POST", "/predict", "application/json", json.dumps([rows[0] | {"x1": "x"}]).encode(), {422}),
        (4, "POST", "/predict", "application/json", b"[" * 3000, {400}),
        (4, "POST", "/predict", "text/csv", b'x0,x1\n1,"2\n', {400, 422}),
        (2, "POST", "/predict", "application/vnd.apache.parquet", parquet.getvalue()[:-40], {400, 422}),
    ]
    cut = [(1, "POST", "/predict", "application/json", text[:at], {400}) for at in (1, 200, 500, len(text) - 1)]
    return kinds + cut


class Caller(threading.Thread):
    """Sends requests at a given rate on connections that it keeps for a while."""

    def __init__(self, port, kinds, rate, seed, end):
        super().__init__(daemon=True)
        self._port, self._kinds, self._pause, self._end = port, kinds, 1.0 / rate, end
        self._chance = random.Random(seed)
        self.statuses, self.faults = Counter(), []

    def run(self):
        weights = [kind[0] for kind in self._kinds]
        due, sent, connection = time.monotonic(), 0, None
        while time.monotonic() < self._end:
            if sent % REOPEN_AFTER == 0:
                if connection is not None:
                    connection.close()
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            sent += 1
            _, method, path, kind, body, expected = self._chance.choices(self._kinds, weights)[0]
            try:
                connection.request(method, path, body, {"Content-Type": kind, "Host": "localhost"})
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.faults.append(f"{method} {path}: {error!r}")
                connection.close()
                continue
            self.statuses[answer.status] += 1
            if answer.status not in expected:
                self.faults.append(f"{method} {path} {kind} {body[:60]!r}: {answer.status}")
            due = max(due + self._pause, time.monotonic() - 1.0)
            time.sleep(max(0.0, due - time.monotonic()))
        if connection is not None:
            connection.close()


class LogReader(threading.Thread):
    """Counts the lines of the log by event, and keeps those that are not JSON."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self._stream, self.events, self.port, self.strange = stream, Counter(), None, []

    def run(self):
        for line in self._stream:
            try:
                entry = json.loads(line)
            except ValueError:
                self.strange.append(line.decode(errors="replace"))  # goes on: a full pipe would stop the service
                continue
            self.events[entry["event"]] += 1
            if entry["event"] == "listening":
                self.port = int(entry["url"].rpartition(":")[2])


def soak(path, table, options):
    command = [*SKLDL, "serve", str(path), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"})
    log = LogReader(process.stderr)
    log.start()
    while log.port is None:
        if process.poll() is not None:
            raise SystemExit("the service did not start")
        time.sleep(0.1)
    begun = time.monotonic()
    end = begun + 60 * options.minutes
    callers = [Caller(log.port, bodies(table), options.rate / CALLERS, seed, end) for seed in range(CALLERS)]
    for caller in callers:
        caller.start()
    record = []
    due, reload_due = begun + options.every, begun + options.reload_every
    while time.monotonic() < end:
        time.sleep(min(1.0, max(0.05, due - time.monotonic())))
        if time.monotonic() >= reload_due:
            process.send_signal(signal.SIGHUP)
            reload_due += options.reload_every
        if time.monotonic() >= due:
            folder = Path(f"/proc/{process.pid}")
            line = {
                "minute": round((time.monotonic() - begun) / 60, 2),
                "resident_mib": round(resident_megabytes(process), 1),
                "open_files": len(os.listdir(folder / "fd")),
                "threads": len(os.listdir(folder / "task")),
                "answers": sum(sum(caller.statuses.values()) for caller in callers),
                "cpu_seconds": cpu_seconds(process),
            }
            record.append(line)
            print(*line.values(), flush=True)
            due += options.every
    for caller in callers:
        caller.join()
    process.terminate()
    status = process.wait(timeout=60)
    log.join(timeout=60)
    return callers, log, status, record


def sentence(record):
    """The sentence on memory in ``docs/deployment.md``."""
    minutes, memory = np.array([(line["minute"], line["resident_mib"]) for line in record]).T
    late = minutes >= minutes[-1] / 2
    slope = 60 * np.polyfit(minutes[late], memory[late], 1)[0] if late.sum() > 1 else float("nan")
    return (
        f"{memory[0]:.1f} MiB after the first minute, {memory[-1]:.1f} MiB after {minutes[-1]:.0f} minutes with "
        f"{record[-1]['answers']:,} requests, between {memory.min():.1f} and {memory.max():.1f} MiB all the time; a "
        f"straight line through the second half {'rises' if slope > 0 else 'falls'} by {abs(slope):.1f} MiB an hour"
    )


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--minutes", type=float, default=30.0)
    options.add_argument("--rate", type=float, default=150.0, help="requests a second")
    options.add_argument("--every", type=float, default=60.0, help="seconds between two measurements")
    options.add_argument("--reload-every", type=float, default=180.0, help="seconds between two reloads")
    options.add_argument("--out", type=Path, default=OUT)
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "linear.skldl"
        callers, log, status, record = soak(path, make_model(path), options)
    statuses = sum((caller.statuses for caller in callers), Counter())
    faults = [fault for caller in callers for fault in caller.faults] + [f"not JSON: {line}" for line in log.strange]
    events = log.events
    print(f"{sum(statuses.values()):,} answers by status {dict(sorted(statuses.items()))}; events {dict(events)}")
    print(f"{sentence(record)}; exit status {status}")
    if faults or status or events["request"] != sum(statuses.values()) or events["reload failed"]:
        print(*faults[:20], sep="\n")
        sys.exit("requests were lost, answered otherwise than expected, or not logged")
    options.out.write_text("".join(json.dumps(line) + "\n" for line in record), encoding="ascii")


if __name__ == "__main__":
    main()
