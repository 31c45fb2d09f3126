"""Load on ``skldl serve``: single rows against a bare service of the same framework, and batches.

A linear model on 20 columns of numbers is served; the bare service reads the body and returns a constant. Both run in
turn on one core each, the load generator on another, in several rounds; the ratio of their CPU times in the same round
is what counts on a machine that others use. ``python benchmarks/serve.py`` takes about four minutes and writes
``results/serve.jsonl``, of which ``docs/deployment.md`` has the table that it prints at the end.
``benchmarks/serve_soak.py`` keeps a mixed load up for a long time and watches memory.
"""

import argparse
import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd

import skldl
from skldl.tabular import fit_table

N_COLUMNS, N_LABELS = 20, 5
OUT = Path(__file__).parent / "results" / "serve.jsonl"
TITLES = {
    "skldl": "single rows, 16 connections",
    "quiet": "the same with `--quiet`",
    "bare": "the same with the bare service",
    "json": "JSON batches",
    "csv": "CSV batches",
    "parquet": "Parquet batches",
}
SKLDL = [sys.executable, "-m", "skldl"]
BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def predict(request):
    await request.body()
    return Response(CONSTANT, media_type="application/json")

CONSTANT = sys.argv[2].encode()
uvicorn.run(Starlette(routes=[Route("/predict", predict, methods=["POST"]),
                              Route("/ready", lambda request: Response("ok"))]),
            port=int(sys.argv[1]), access_log=False, log_level="error")
"""


def make_model(path):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, N_COLUMNS)).round(4)
    S = X[:, :5] @ generator.normal(size=(5, N_LABELS))
    D = np.exp(S - S.max(axis=1, keepdims=True))
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(N_COLUMNS)])
    labels = pd.DataFrame(D / D.sum(axis=1, keepdims=True), columns=[f"y{j}" for j in range(N_LABELS)])
    fitted = fit_table(pd.concat([table, labels], axis=1), "y*", model="sa-bfgs", settings={"alpha": 0.001})
    skldl.save(fitted.model, path, description=fitted.description)
    return table


class Client(asyncio.Protocol):
    """One connection that sends the same request again as soon as it is answered."""

    def __init__(self, request, results):
        self._request, self._results = request, results
        self._waiting, self._missing = b"", 0

    def connection_made(self, transport):
        self._transport = transport
        self._send()

    def _send(self):
        if self._results["stop"]:
            self._transport.close()
            return
        self._begun = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data):
        if self._missing:
            self._missing -= len(data)
        else:
            self._waiting += data
            head = self._waiting.find(b"\r\n\r\n")
            if head < 0:
                return
            at = self._waiting.lower().index(b"content-length:")
            length = int(self._waiting[at + 15 : self._waiting.index(b"\r\n", at)])
            if not self._waiting.startswith(b"HTTP/1.1 200"):
                raise SystemExit(self._waiting[:500].decode())
            self._missing = length - (len(self._waiting) - head - 4)
            self._waiting = b""
        if not self._missing:
            self._results["seconds"].append(time.perf_counter() - self._begun)
            self._send()


async def _load(port, request, seconds, connections):
    results = {"seconds": [], "stop": False}
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: Client(request, results), "127.0.0.1", port)
    begun = time.perf_counter()
    await asyncio.sleep(seconds)
    took, n_answers = time.perf_counter() - begun, len(results["seconds"])
    results["stop"] = True
    await asyncio.sleep(0.2)
    return n_answers / took, results["seconds"]


def load(port, body, kind="application/json", *, seconds=3.0, connections=16):
    """Answers per second, and how long each took."""
    lines = ("POST /predict HTTP/1.1", f"Host: localhost:{port}", f"Content-Type: {kind}")
    head = "\r\n".join((*lines, f"Content-Length: {len(body)}", "", ""))
    try:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_load(port, head.encode() + body, seconds, connections))
    except ModuleNotFoundError:
        return asyncio.run(_load(port, head.encode() + body, seconds, connections))


def start(command, port):
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready"):
                return process
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the service did not start")


def cpu_seconds(process):
    """CPU time of the service, which other processes on the machine hardly change."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(process):
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measured(what, number, process, port, body, n_rows=1, **options):
    """One run of the load generator as a line of the record."""
    before = cpu_seconds(process)
    rate, seconds = load(port, body, **options)
    return {
        "what": what,
        "round": number,
        "rows_per_second": round(rate * n_rows),
        "cpu_us_per_row": round(1e6 * (cpu_seconds(process) - before) / (len(seconds) * n_rows), 3),
        "p99_ms": round(1000 * float(np.percentile(seconds, 99)), 1),
        "load_average": round(os.getloadavg()[0], 1),
    }


def batch_bodies(table, n_rows):
    """Name, media type and body of a batch in each format."""
    frame = pd.concat([table] * (n_rows // len(table) + 1), ignore_index=True).head(n_rows)
    parquet = io.BytesIO()
    frame.to_parquet(parquet)
    return (
        ("json", "application/json", frame.to_json(orient="records").encode()),
        ("csv", "text/csv", frame.to_csv(index=False).encode()),
        ("parquet", "application/vnd.apache.parquet", parquet.getvalue()),
    )


def rounds_of(processes, table, options):
    """Lines of the record: in each round single rows by each service, then batches."""
    row, bodies = json.dumps([table.iloc[0].to_dict()]).encode(), batch_bodies(table, options.rows)
    for _, port in processes.values():
        load(port, row, seconds=0.5)
    for number in range(1, options.rounds + 1):
        for name, (process, port) in processes.items():
            yield measured(name, number, process, port, row)
        for name, kind, body in bodies:
            more = {"kind": kind, "seconds": 4.0, "connections": 2}
            yield measured(name, number, *processes["skldl"], body, options.rows, **more)


def markdown(record):
    """The table of ``docs/deployment.md``: least and greatest value over the rounds."""
    lines = ["| | rows in a second | CPU time of the service for a row |", "|---|---|---|"]
    costs = {(line["what"], line["round"]): line["cpu_us_per_row"] for line in record}
    for what, title in TITLES.items():
        rates = [line["rows_per_second"] for line in record if line["what"] == what]
        ratios = [cost / costs["bare", number] for (name, number), cost in costs.items() if name == what]
        against = (
            f", {min(ratios):.1f} to {max(ratios):.1f} times the bare service" if what in ("skldl", "quiet") else ""
        )
        least, most = _ends([cost for (name, _), cost in costs.items() if name == what])
        lines.append(f"| {title} | {' to '.join(_ends(rates))} | {least} to {most} µs{against} |")
    return "\n".join(lines)


def _ends(values):
    """Least and greatest value with three significant digits."""
    shown = [float(f"{value:.3g}") for value in (min(values), max(values))]
    return [f"{value:,.0f}" if value >= 100 else f"{value:g}" for value in shown]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--out", type=Path, default=OUT)
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "linear.skldl"
        table = make_model(path)
        ports = {"skldl": 8765, "bare": 8766, "quiet": 8767}
        answer = '[{"y0":0.5,"y1":0.2,"y2":0.1,"y3":0.1,"y4":0.1,"top":"y0","entropy":1.2345678901234567}]'
        commands = {
            "skldl": [*SKLDL, "serve", str(path), "--port", "8765"],
            "bare": [sys.executable, "-c", BARE, "8766", answer],
            "quiet": [*SKLDL, "serve", str(path), "--port", "8767", "--quiet"],
        }
        processes = {name: (start(command, ports[name]), ports[name]) for name, command in commands.items()}
        try:
            record = []
            for line in rounds_of(processes, table, options):
                record.append(line)
                print(*line.values(), flush=True)
        finally:
            for process, _ in processes.values():
                process.terminate()
                process.wait()
    options.out.write_text("".join(json.dumps(line) + "\n" for line in record), encoding="ascii")
    print(markdown(record))


if __name__ == "__main__":
    main()
