"""Smoke test of an installed package: ``python -I tools/smoke_test.py EXTRA``, or ``none`` for no extra.

Runs with the Python of an environment that holds the wheel with one extra and nothing else, in a temporary folder, so
that nothing is imported from the repository. Each check uses the features of its extra as a user would. The
commands are called as processes. Prints one line for each check and ends with a traceback at the first failure.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

SECONDS_TO_START = 120
COMMAND = [sys.executable, "-I", "-m", "skldl"]


def run(*arguments: str, status: int = 0) -> str:
    """Output of a command of ``skldl``; an error if it ends with another exit status."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=300)
    if done.returncode != status:
        raise AssertionError(
            f"skldl {' '.join(arguments)} ended with status {done.returncode}, not {status}:\n{done.stderr}"
        )
    return done.stdout + done.stderr


def core() -> None:
    """Every public name can be imported; bundled data, an estimator and a measure work."""
    import numpy as np

    import skldl
    from skldl.data import load_lexicon
    from skldl.metrics import evaluate

    assert "site-packages" in skldl.__file__, f"skldl comes from {skldl.__file__}, not from the wheel"
    assert skldl.__version__ == metadata.version("scikit-ldl")
    for name in skldl.__all__:
        getattr(skldl, name)
    X, D = load_lexicon()
    P = skldl.SABFGS(alpha=1e-3).fit(X[:500], D[:500]).predict(X[500:600])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert evaluate(D[500:600], P)["kullback_leibler"] > 0
    skldl.show_versions()


def without_extras() -> None:
    """The environment holds no optional dependency, and the command says which extra it needs."""
    from skldl.utils.dependencies import PACKAGES

    installed = {distribution.name.lower().replace("_", "-") for distribution in metadata.distributions()}
    found = installed & set(PACKAGES["extras"])
    assert not found, f"the environment should be empty, but holds {', '.join(sorted(found))}"
    assert "scikit-ldl[cli]" in run("--help", status=2)


def write_table(path: str = "faces.csv") -> str:
    """A small table with a number, a category and three labels."""
    lines = ["age,town,emo_joy,emo_anger,emo_fear"]
    for row in range(60):
        joy = 0.2 + 0.01 * (row % 30)
        anger = 0.5 * (1 - joy) if row % 2 else 0.25 * (1 - joy)
        lines.append(f"{20 + row % 30},{('Ulm', 'Bonn')[row % 2]},{joy:.4f},{anger:.4f},{1 - joy - anger:.4f}")
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def fit_model() -> str:
    """A model file that ``skldl fit`` wrote."""
    if not Path("faces.skldl").exists():
        run("fit", write_table(), "--labels", "emo_*", "--model", "sa-bfgs", "--out", "faces.skldl")
    return "faces.skldl"


def small_study() -> object:
    """Two candidates and the mean on a small artificial dataset."""
    import numpy as np

    from skldl.data import Dataset
    from skldl.experiments import Candidate, Study

    generator = np.random.default_rng(0)
    datasets = []
    for name in ("one", "two"):
        X = generator.normal(size=(36, 3))
        scores = np.exp(X @ generator.normal(size=(3, 3)))
        datasets.append(Dataset(name, X, scores / scores.sum(axis=1, keepdims=True)))
    candidates = [
        Candidate("kNN", "skldl:AAKNN", {"n_neighbors": 3}),
        Candidate("SA-BFGS", "skldl:SABFGS", {"alpha": 0.01}),
        Candidate("Mean", "skldl:MeanDistribution"),
    ]
    return Study(datasets, candidates, folds=3, inner_folds=2)


def cli() -> None:
    """The commands that read and write tables, models and figures."""
    model = fit_model()
    run("predict", model, "faces.csv", "--out", "predictions.csv")
    header, first = Path("predictions.csv").read_text(encoding="utf-8").splitlines()[:2]
    shares = [float(cell) for name, cell in zip(header.split(","), first.split(","), strict=True) if "emo" in name]
    assert len(shares) == 3, header
    assert abs(sum(shares) - 1) < 1e-4, first
    assert "emo_joy" in run("inspect", model)
    run("evaluate", "faces.csv", "--labels", "emo_*", "--models", "sa-bfgs")
    assert "kullback_leibler" in run("measures")
    run("datasets")


def bench() -> None:
    """A study, its tables and its statistics."""
    from skldl.experiments import run_study, statistics

    results = run_study(small_study(), out="study", keep_predictions="none")
    assert not results.failures
    assert "SA-BFGS" in str(results.table("kullback_leibler"))
    assert len(results.to_pandas()) == 18
    statistics.compare(results, "kullback_leibler")


def boost() -> None:
    """Gradient boosting uses LightGBM."""
    import skldl

    X, D = skldl.testing.make_distributions()
    skldl.GradientBoostingLDL(5, engine="lightgbm").fit(X, D).predict(X)
    assert "lightgbm" in sys.modules


def dask() -> None:
    """A study runs on a Dask cluster."""
    from distributed import LocalCluster

    from skldl.experiments import run_study

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        results = run_study(small_study(), scheduler=cluster.scheduler_address, keep_predictions="none")
    assert not results.failures
    assert len(results.evaluations) == 18


def plot() -> None:
    """A figure is drawn and saved."""
    import skldl
    from skldl.plots import DistributionDisplay

    X, D = skldl.testing.make_distributions()
    P = skldl.MeanDistribution().fit(X, D).predict(X)
    DistributionDisplay.from_predictions(D, P).figure_.savefig("figure.png")
    assert Path("figure.png").stat().st_size > 1000


def report() -> None:
    """The report of a study, in one file."""
    from skldl.experiments import run_study
    from skldl.report import write_report

    run_study(small_study(), out="reported", keep_predictions="sample")
    page = write_report("reported").read_text(encoding="utf-8")
    assert "SA-BFGS" in page


def save() -> None:
    """A model goes to a file and comes back."""
    import numpy as np

    import skldl

    X, D = skldl.testing.make_distributions()
    model = skldl.SABFGS(alpha=0.01).fit(X, D)
    np.testing.assert_array_equal(skldl.load(skldl.save(model, "model.skldl")).predict(X), model.predict(X))


def serve() -> None:
    """The service answers over HTTP, shows its page and ends on a signal."""
    model = fit_model()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen([*COMMAND, "serve", model, "--port", str(port)], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(f"{address}/ready", process)
        request = urllib.request.Request(
            f"{address}/predict", b'[{"age": 31, "town": "Ulm"}]', {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = answer.read().decode()
        assert "emo_joy" in content, content
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert "<html" in answer.read().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.communicate()


def wait_for(address: str, process: "subprocess.Popen[str]") -> None:
    """Wait until a service answers; an error if it ended or takes too long."""
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        if process.poll() is not None:
            raise AssertionError(f"the service ended with status {process.returncode}: {process.communicate()[1]}")
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"no answer from {address} after {SECONDS_TO_START} seconds")


def onnx() -> None:
    """A model is exported, and onnxruntime runs it."""
    import numpy as np
    import onnxruntime

    run("export", fit_model(), "--onnx", "faces.onnx")
    session = onnxruntime.InferenceSession("faces.onnx", providers=["CPUExecutionProvider"])
    row = {"age": np.array([[31.0]]), "town": np.array([["Ulm"]], dtype=object)}
    (predicted,) = session.run(["distribution"], row)
    np.testing.assert_allclose(predicted.sum(axis=1), 1, rtol=1e-6)


def gpu() -> None:
    """The package through which arrays of other libraries are read is there; those libraries are the user's own."""
    import array_api_compat
    import numpy as np

    assert array_api_compat.is_numpy_array(np.zeros(1))


CHECKS: dict[str, tuple[Callable[[], None], ...]] = {
    "none": (without_extras,),
    "bench": (bench,),
    "boost": (boost,),
    "cli": (cli, bench, save, plot, report),
    "dask": (dask,),
    "gpu": (gpu,),
    "onnx": (cli, onnx),
    "plot": (plot,),
    "report": (plot, bench, report),
    "save": (save,),
    "serve": (cli, serve),
    "all": (cli, bench, boost, dask, plot, report, save, serve, onnx),
}
"""What is run for each extra, after `core`. An extra of pyproject.toml that is missing here fails a test."""


def main(extra: str) -> None:
    """Run the checks of one extra.

    Parameters
    ----------
    extra : str
        Name of the extra, or ``none``.
    """
    os.environ["MPLBACKEND"] = "Agg"
    warnings.simplefilter("default")  # shown, but no failure: other packages may warn
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for check in (core, *CHECKS[extra]):
            start = time.perf_counter()
            check()
            print(
                json.dumps({"extra": extra, "check": check.__name__, "seconds": round(time.perf_counter() - start, 1)})
            )
        os.chdir("/")


if __name__ == "__main__":
    main(sys.argv[1])
