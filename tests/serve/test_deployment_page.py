"""docs/deployment.md: its programs run where MLflow is installed; what it names is there."""

import inspect
import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import skldl
from skldl.export._onnx import MAX_DIFFERENCE  # the page states these five constants, which are not public
from skldl.serve import Limits
from skldl.serve._app import OPEN_ROUTES
from skldl.serve._bodies import DIGITS
from skldl.serve._connections import LINGER_SECONDS, MAX_HEADER_BYTES, MORE_CONNECTIONS
from skldl.serve._server import MIN_KEY_LENGTH
from skldl.tabular._prediction import LEVEL

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "deployment.md"
RESULTS = ROOT / "benchmarks" / "results"


@pytest.mark.filterwarnings("ignore")  # those of MLflow
def test_mlflow_logs_and_loads_a_model_file(faces_model, tmp_path, monkeypatch, capsys):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed; it is no dependency of any extra")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    Path("faces.skldl").write_bytes(faces_model.read_bytes())
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    module, program = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    Path("skldl_model.py").write_text(module)
    names = {}
    exec(compile(program, str(PAGE), "exec"), names)
    assert "emo_joy" in capsys.readouterr().out
    again = mlflow.pyfunc.load_model(names["logged"].model_uri).predict(names["rows"])
    np.testing.assert_allclose(again, skldl.load(faces_model).predict(names["rows"]), atol=1e-15)


def test_the_page_names_every_route_option_and_metric(client):
    text = PAGE.read_text(encoding="utf-8")
    for path in (*OPEN_ROUTES, "/predict", "/explain", "/schema", "/metrics", "/models", "/openapi.json"):
        assert f"{path}`" in text or f"{path}," in text, path
    options = re.findall(r"^(\w+)$", inspect.getdoc(import_module("skldl.cli.serve").serve), flags=re.M)
    assert {
        "max_body",
        "max_rows",
        "timeout",
        "max_concurrent",
        "max_columns",
        "no_key",
        "quiet",
        "host",
        "port",
    } <= set(options)
    for option in ("--max-body", "--max-rows", "--timeout", "--max-concurrent", "--max-columns", "--no-key", "--quiet"):
        assert option in text
    measured = set(re.findall(r"^# TYPE (skldl_\w+)", client.get("/metrics").text, flags=re.M))
    for name in re.findall(r"`(skldl_\w+?)`", text):
        assert name in measured, name


def test_the_page_has_the_limits_of_the_code():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    for words in (
        f"`--max-body` ({Limits.body_bytes // 2**20} MiB), `--max-rows` ({Limits.rows:,}), `--timeout` "
        f"({Limits.seconds:g} s), `--max-concurrent` ({Limits.concurrent}), `--max-columns` ({Limits.columns:,} in",
        f"Headers may have {MAX_HEADER_BYTES // 2**10} KiB",
        f"at most {MORE_CONNECTIONS} connections besides",
        f"had {LINGER_SECONDS:g} seconds to read it",
        f"`SKLDL_API_KEY` ({MIN_KEY_LENGTH} characters or more)",
        f"with probability {LEVEL} unless `?level=` is given",
        f"CSV answers have {DIGITS} digits by default",
        f"must agree to {MAX_DIFFERENCE:.0e}".replace("e-0", "e-"),
    ):
        assert words in text, words


def recorded(name):
    return [json.loads(line) for line in (RESULTS / name).read_text(encoding="ascii").splitlines()]


def test_the_load_on_the_page_is_that_of_the_record(load_script):
    script, record, text = load_script("benchmarks/serve.py"), recorded("serve.jsonl"), PAGE.read_text(encoding="utf-8")
    assert script.markdown(record) in text
    loads = [line["load_average"] for line in record]
    rounds = f"of {record[-1]['round']} rounds on two cores of an AMD EPYC, "
    assert f"{rounds}at a load average of {min(loads)} to {max(loads)}," in " ".join(text.split())


def test_the_memory_on_the_page_is_that_of_the_record(load_script, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")  # the script imports its neighbour
    sentence = load_script("benchmarks/serve_soak.py").sentence(recorded("serve_soak.jsonl"))
    assert f"{sentence} (" in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_container_runs_the_service_without_root():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER skldl$", lines, flags=re.M)
    assert '"skldl", "serve"' in lines
    allowed = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--from)(.+)$", lines, flags=re.M)]
    assert allowed == {name for names in copied for name in names}  # what is not allowed cannot be copied
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]  # runs when pip builds the package
    assert allowed >= {"pyproject.toml", "README.md", "LICENSE", "src", hook}


@pytest.mark.slow
def test_the_container_has_what_the_service_imports(faces_model):
    """Packages that the Dockerfile removes are not needed to load a model, to predict and to explain."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (imports,) = re.findall(r'python -c "(import skldl[^"]+|import pyarrow[^"]+)"', lines)
    (removed,) = re.findall(r"pip uninstall --yes (.+?) \\\n", lines)
    modules = {"scikit-posthocs": "scikit_posthocs", "pillow": "PIL", "fonttools": "fontTools"}
    names = [modules.get(word, word) for word in removed.split()]
    assert "matplotlib" in names
    program = f"""
import sys
sys.modules.update(dict.fromkeys({names!r}))  # importing one of them fails
{imports}
from skldl.serve import Service
model = Service({{"faces": {str(faces_model)!r}}}).model("faces")
record = {{"age": 31.0, "town": "Ulm", "smoker": "no"}}
assert model.explain(record)["prediction"]["top"] == model.predict_records([record]).columns["top"][0]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
