"""Times of this version as ratios to those of an earlier one, in one run on one machine.

    git worktree add ../before 76ec434
    SKLDL_DATA=DIR python benchmarks/before_after.py ../before                       # all sections
    SKLDL_DATA=DIR python benchmarks/before_after.py ../before fits --repeats 20     # one, more carefully
    SKLDL_DATA=DIR python benchmarks/before_after.py ../before fits --only 'SABFGS *'

Each version runs in a process of its own, with this Python, one thread, and the package from ``CHECKOUT/src``. The two
take turns, so that both see the same load of the machine; times are CPU seconds, the least of all turns. Sections:

- ``import``: ``import skldl`` and ``import skldl.base`` in a fresh process;
- ``fits``: estimators on five sets of the paper, and AAKNN with predictions on 200,000 rows of eight numbers;
- ``records``: features of one JSON record, and of a hundred, by a fitted `TableEncoder`;
- ``tables``: fit and transform of `TableEncoder` on 20,000 rows of numbers, categories, dates and prose;
- ``measures``: `metrics.evaluate` on 100 and on 200,000 rows;
- ``service``: CPU time of ``skldl serve`` for a request of one row and for a batch, by the clients of serve.py.

A row passes if it takes at most 1.25 times the time before, or one millisecond more if that is larger. The results go
to ``results/before_after.json``; rows that are not measured again stay.
"""

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUT = HERE / "results" / "before_after.json"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
MAX_RATIO, MAX_DIFFERENCE = 1.25, 1e-3
MIN_SECONDS = 0.02
"""A turn repeats an action that takes less until it takes about so long: the clock counts in microseconds."""
PATIENCE = 60.0
"""An action whose turns have taken more CPU seconds than this is not repeated, beyond two turns."""
SETS = ("SJAFFE", "Yeast_alpha", "SBU_3DFE", "Natural_Scene", "Movie")
SECTIONS = ("import", "fits", "records", "tables", "measures", "service")


# -- in the process of one version


def actions(section: str) -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    """Name of each action, and a function that prepares it and returns what is timed."""
    if section == "fits":
        yield from _fits()
    elif section == "records":
        for kind in ("numbers", "all kinds"):
            for n_records in (1, 100):
                yield f"{n_records} records of {kind}", lambda k=kind, n=n_records: _records(k, n)
    elif section == "tables":
        yield "fit of the encoder", lambda: _table_encoder(fit=True)
        yield "transform by the encoder", lambda: _table_encoder(fit=False)
    elif section == "measures":
        for n_rows in (100, 200_000):
            yield f"evaluate {n_rows} rows", lambda n=n_rows: _evaluate(n)


def _fits() -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    import skldl

    estimators: dict[str, Callable[[], Any]] = {
        "SABFGS": lambda: skldl.SABFGS(alpha=1e-3, fit_intercept=True),
        "SABFGSCV": skldl.SABFGSCV,
        "SAIIS": lambda: skldl.SAIIS(max_iter=20),
        "PTBayes": skldl.PTBayes,
        "AAKNN": lambda: skldl.AAKNN(20),
        "AAKNNCV": lambda: skldl.AAKNNCV(random_state=0),
        "PTSVM": lambda: skldl.PTSVM(gamma="scale", max_samples=600, random_state=0),
    }
    for name, make in estimators.items():
        for data in SETS:
            yield f"{name} fit {data}", lambda m=make, d=data: _fit(m, d)
    for data in SETS:
        yield f"AAKNN fit and predict {data}", lambda d=data: _neighbours(d)
    yield "AAKNN fit and predict 200,000 x 8", lambda: _many_neighbours()


def _paper_set(name: str) -> tuple[Any, Any]:
    import numpy as np
    from scipy import io, sparse

    content = io.loadmat(Path(os.environ["SKLDL_DATA"]) / f"{name}.mat")
    X = content["features"]
    X = sparse.csr_matrix(X, dtype=np.float64) if name == "Movie" else X.astype(np.float64)
    return X, content["labels"].astype(np.float64)


def _fit(make: Callable[[], Any], data: str) -> Callable[[], Any]:
    X, D = _paper_set(data)
    return lambda: make().fit(X, D)


def _neighbours(data: str) -> Callable[[], Any]:
    import skldl

    X, D = _paper_set(data)
    X_new = X[:500]
    return lambda: skldl.AAKNN(20).fit(X, D).predict(X_new)


def _many_neighbours() -> Callable[[], Any]:
    import numpy as np

    import skldl

    generator = np.random.default_rng(0)
    X, D = generator.normal(size=(200_000, 8)), generator.dirichlet(np.ones(5), 200_000)
    X_new = generator.normal(size=(2_000, 8))
    return lambda: skldl.AAKNN(20).fit(X, D).predict(X_new)


def _table(n_rows: int, *, plain: bool = False) -> Any:
    import numpy as np
    import pandas as pd

    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.normal(size=(n_rows, 20)).round(4), columns=[f"x{i}" for i in range(20)])
    if plain:
        return frame
    for column, n_words in (("town", 12), ("trade", 40), ("colour", 5)):
        frame[column] = generator.choice([f"{column} {word}" for word in range(n_words)], n_rows)
    frame["smoker"] = generator.random(n_rows) < 0.3
    return frame


def _records(kind: str, n_records: int) -> Callable[[], Any]:
    from skldl.tabular import TableEncoder

    frame = _table(500, plain=kind == "numbers")
    encode = _record_encoder(TableEncoder(dense=True).fit(frame))
    records = json.loads(frame.head(n_records).to_json(orient="records"))
    return lambda: encode(records)


def _record_encoder(encoder: Any) -> Callable[[Any], Any]:
    """The function of a version that encodes JSON records: a method of the encoder; in 0.2.0 a class of the service."""
    if hasattr(encoder, "encode_records"):
        return encoder.encode_records
    from skldl.serve._records import RecordEncoder

    return RecordEncoder(encoder)


def _table_encoder(*, fit: bool) -> Callable[[], Any]:
    import numpy as np
    import pandas as pd

    from skldl.tabular import TableEncoder

    frame = _table(20_000)
    generator = np.random.default_rng(1)
    frame["when"] = pd.date_range("2020-01-01", periods=len(frame), freq="7h").strftime("%Y-%m-%d %H:%M")
    words = np.array([f"word{i}" for i in range(300)])
    frame["prose"] = [" ".join(cells) for cells in generator.choice(words, (len(frame), 6))]
    encoder = TableEncoder(text=["prose"])
    if fit:
        return lambda: encoder.fit(frame)
    encoder.fit(frame)
    return lambda: encoder.transform(frame)


def _evaluate(n_rows: int) -> Callable[[], Any]:
    import numpy as np

    from skldl.metrics import evaluate

    generator = np.random.default_rng(0)
    D, P = (generator.dirichlet(np.ones(10), n_rows) for _ in range(2))
    return lambda: evaluate(D, P)


def answer_requests() -> None:
    """Time the actions named on standard input, one JSON value for each line; runs in the process of one version."""
    warnings.simplefilter("ignore")
    ready: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        section, name, n_times = json.loads(line)
        if name not in ready:
            ready.clear()
            ready[name] = dict(actions(section))[name]()
            ready[name]()  # what is imported and kept at the first call is no part of the times
        action = ready[name]
        start = time.process_time()
        for _ in range(n_times):
            action()
        print(json.dumps((time.process_time() - start) / n_times), flush=True)


# -- in the process that compares


class Version:
    """The process of one version."""

    def __init__(self, checkout: Path) -> None:
        self.environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str((checkout / "src").resolve())}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--answer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment,
        )

    def seconds(self, section: str, name: str, n_times: int) -> float:
        """CPU seconds of one call, in the mean of ``n_times``."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([section, name, n_times]), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{name} failed with {self.environment['PYTHONPATH']}")
        return float(json.loads(answer))

    def import_seconds(self, module: str) -> float:
        """CPU seconds that an import takes in a fresh process."""
        code = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
        command = [sys.executable, "-c", code]
        return float(subprocess.run(command, env=self.environment, check=True, capture_output=True).stdout)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def alternate(measure: Callable[[Version], float], versions: tuple[Version, Version], repeats: int) -> list[float]:
    """Minimum time of both versions, which take turns; each is the first in every other turn."""
    least, spent = [float("inf")] * 2, 0.0
    for turn in range(repeats):
        for place in (0, 1) if turn % 2 == 0 else (1, 0):
            seconds = measure(versions[place])
            least[place] = min(least[place], seconds)
            spent += seconds
        if turn and spent > PATIENCE:
            break
    return least


def measure_section(
    section: str, versions: tuple[Version, Version], repeats: int, only: str
) -> Iterator[dict[str, Any]]:
    """A row of results for each action."""
    if section == "import":
        for module in ("skldl", "skldl.base"):
            name = f"import {module}"
            if fnmatch.fnmatchcase(name, only):
                yield row(section, name, *alternate(lambda v, m=module: v.import_seconds(m), versions, 2 * repeats))
        return
    for name, _ in actions(section):
        if fnmatch.fnmatchcase(name, only):
            first = max(version.seconds(section, name, 1) for version in versions)
            n_times = max(1, int(MIN_SECONDS / max(first, 1e-7)))
            yield row(section, name, *alternate(lambda v: v.seconds(section, name, n_times), versions, repeats))


def measure_service(checkouts: tuple[Path, Path], repeats: int) -> Iterator[dict[str, Any]]:
    """CPU time of the service for a row: of a request with one row, and of a batch of 2,000."""
    from serve import cpu_seconds, load, start

    frame = _table(400)
    labels = [f"y_{j}" for j in range(5)]
    weights = frame.iloc[:, :5].to_numpy().clip(-1, 1) + 2
    frame[labels] = weights / weights.sum(axis=1, keepdims=True)
    bodies = {"one row": json.dumps([json.loads(frame.iloc[:1, :24].to_json(orient="records"))[0]]).encode()}
    batch = frame.sample(2000, replace=True, random_state=0).iloc[:, :24]
    bodies["JSON batch"] = batch.to_json(orient="records").encode()
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        frame.to_csv(table, index=False)
        try:
            for port, checkout in zip((8765, 8766), checkouts, strict=True):
                environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str((checkout / "src").resolve())}
                command = [sys.executable, "-c", "from skldl.cli import main; main()"]
                model = str(Path(folder) / f"{port}.skldl")
                fit = [
                    "fit",
                    str(table),
                    "--labels",
                    "y_*",
                    "--model",
                    "sa-bfgs",
                    "--set",
                    "alpha=0.001",
                    "--out",
                    model,
                ]
                subprocess.run([*command, *fit], env=environment, check=True, capture_output=True)
                code = (
                    f"import sys; sys.path.insert(0, {environment['PYTHONPATH']!r}); from skldl.cli import main; main()"
                )
                serve = [sys.executable, "-c", code, "serve", model, "--port", str(port), "--quiet"]
                processes.append((start(serve, port), port))
            for name, body in bodies.items():
                least, rates = [float("inf")] * 2, [0.0] * 2
                for turn in range(repeats):
                    for place in (0, 1) if turn % 2 == 0 else (1, 0):
                        process, port = processes[place]
                        before = cpu_seconds(process)
                        rate, seconds = load(port, body, seconds=2.0)
                        least[place] = min(least[place], (cpu_seconds(process) - before) / len(seconds))
                        rates[place] = max(rates[place], rate)
                yield row("service", name, *least) | {"requests a second": [round(rate) for rate in rates]}
        finally:
            for process, _ in processes:
                process.terminate()
                process.wait()


def row(section: str, name: str, before: float, after: float) -> dict[str, Any]:
    """One line of the results."""
    passes = after <= max(MAX_RATIO * before, before + MAX_DIFFERENCE)
    times = {"before s": float(f"{before:.4g}"), "after s": float(f"{after:.4g}"), "ratio": round(after / before, 3)}
    return {"section": section, "name": name, **times, "passes": passes}


def keep(results: list[dict[str, Any]], target: Path) -> None:
    """Write the results; rows of the file that were not measured in this run stay."""
    from _common import machine

    old = json.loads(target.read_text())["rows"] if target.exists() else []
    new = {(line["section"], line["name"]): line for line in [*old, *results]}
    rows = sorted(new.values(), key=lambda line: SECTIONS.index(line["section"]))
    target.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


def main() -> int:
    """Compare, print and keep."""
    if sys.argv[1:] == ["--answer"]:
        answer_requests()
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of the earlier version")
    parser.add_argument("sections", nargs="*", metavar="section", help=f"by default all: {', '.join(SECTIONS)}")
    parser.add_argument("--after", type=Path, default=HERE.parent, help="the later version; by default this checkout")
    parser.add_argument("--repeats", type=int, default=7, help="turns of each action (7)")
    parser.add_argument("--only", default="*", help="pattern of names of actions, as of files")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    sections = options.sections or list(SECTIONS)
    if unknown := set(sections) - set(SECTIONS):
        parser.error(f"unknown sections: {', '.join(sorted(unknown))}")
    checkouts = (options.before, options.after)
    versions = (Version(options.before), Version(options.after))
    results = []
    try:
        for section in sections:
            lines = (
                measure_service(checkouts, options.repeats)
                if section == "service"
                else measure_section(section, versions, options.repeats, options.only)
            )
            for line in lines:
                results.append(line)
                mark = "" if line["passes"] else "  <-- slower than allowed"
                print(f"{line['ratio']:7.3f}  {line['before s']:10.3g} s  {section}: {line['name']}{mark}", flush=True)
    finally:
        for version in versions:
            version.end()
    keep(results, options.out)
    return int(not all(line["passes"] for line in results))


if __name__ == "__main__":
    sys.exit(main())
