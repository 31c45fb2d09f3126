"""Small studies whose records make reports, and a real browser to look at these."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from skldl.data import Dataset
from skldl.experiments import Candidate, Study, run_study
from skldl.report import write_report
from skldl.testing import make_distributions

SCRIPT = "<script>alert(1)</script>"
NEIGHBOURS = Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (1, 3, 9)}, path="n_neighbors")
MEASURES = ("clark", "kullback_leibler", "cosine")
MEAN = Candidate("Mean", "skldl:MeanDistribution")
FIXED = Candidate("fixed & <i>odd</i>", "skldl:AAKNN", params={"n_neighbors": 5})


class Stubborn(RegressorMixin, BaseEstimator):
    """Fails on three labels, and is as good as the mean on others."""

    def fit(self, X, y):
        if y.shape[1] == 3:
            raise RuntimeError("no three </script> labels")
        self.mean_ = y.mean(axis=0)
        return self

    def predict(self, X):
        return np.tile(self.mean_, (len(X), 1))


def problem(name, n_samples=30, n_labels=4, seed=0, **options):
    X, D = make_distributions(n_samples, n_labels=n_labels, random_state=seed)
    return Dataset(name, X, D, **options)


@pytest.fixture(scope="session")
def healthy(tmp_path_factory):
    """Results without any failure, one dataset with a dangerous name, one with the name of a published one."""
    names = (SCRIPT, "</script><!--", "plain", '" onload="alert(2)')
    problems = [
        problem(SCRIPT, label_names=names, seed=1),
        problem("Yeast_alpha", n_labels=18, seed=2),
        problem("three", 40, 3, 3),
    ]
    study = Study(
        problems, [NEIGHBOURS, FIXED, MEAN], name="small", title=f"A small study {SCRIPT}", folds=3, measures=MEASURES
    )
    folder = tmp_path_factory.mktemp("healthy")
    run_study(study, out=folder)
    return folder


@pytest.fixture(scope="session")
def broken(tmp_path_factory):
    """Results with failed tasks, and all predictions kept, those for a square of points among them."""
    X_test, D_test = make_distributions(36, n_labels=3, random_state=9)
    problems = [
        problem("square", 40, 3, 4, X_test=X_test, D_test=D_test, apart=True),
        problem("many", 120, 14, 5),
        problem("three", 120, 3, 6),
    ]
    study = Study(problems, [NEIGHBOURS, Candidate("Stubborn", Stubborn()), MEAN], name="half", folds=2, inner_folds=2)
    folder = tmp_path_factory.mktemp("broken")
    run_study(study, out=folder, keep_predictions="all")
    return folder


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """The least that can be reported: one dataset, the mean alone, the criterion not measured, no predictions."""
    study = Study([problem("one")], [MEAN], measures=["clark"], folds=2)
    folder = tmp_path_factory.mktemp("bare")
    run_study(study, out=folder, keep_predictions="none")
    return folder


@pytest.fixture(scope="session")
def healthy_page(healthy):
    return write_report(healthy)


@pytest.fixture(scope="session")
def broken_page(broken):
    return write_report(broken)


class Browser:
    """A headless Chromium, driven by the few calls of the WebDriver protocol that the tests need."""

    FLAGS = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    )

    def __init__(self, driver, program, profile):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([driver, f"--port={self.port}"], stdout=subprocess.DEVNULL)
        self.session = ""
        for _ in range(100):
            try:
                self.call("GET", "/status")
                break
            except OSError:
                time.sleep(0.1)
        options = {"binary": program, "args": [*self.FLAGS, f"--user-data-dir={profile}"]}
        logs = {"browser": "ALL", "performance": "ALL"}
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": logs}}
        self.session = "/session/" + self.call("POST", "/session", {"capabilities": wanted})["sessionId"]

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, path, width=1400, height=900, *, dark=False, script=True):
        """Open a page in a window of this size, and forget what was logged before."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])
        self.devtools("Emulation.setScriptExecutionDisabled", value=not script)
        self.log("browser")
        self.log("performance")
        self.call("POST", f"{self.session}/url", {"url": path.as_uri()})

    def run(self, code, *arguments):
        """Run JavaScript in the page and return what it returns."""
        return self.call("POST", f"{self.session}/execute/sync", {"script": code, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self.call("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def press(self, key):
        for kind in ("rawKeyDown", "char", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "char" else {}
            self.devtools("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=13, **text)

    def log(self, kind):
        return self.call("POST", f"{self.session}/se/log", {"type": kind})

    def requests(self):
        """Addresses of everything that the page asked for."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def print(self):
        return base64.b64decode(self.devtools("Page.printToPDF", preferCSSPageSize=True)["data"])

    def close(self):
        try:
            if self.session:
                self.call("DELETE", self.session)
        finally:
            self.process.terminate()
            self.process.wait(timeout=20)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    driver = shutil.which("chromedriver")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not driver or not program:
        pytest.skip("no browser: the packages chromium and chromium-driver (Debian) are not installed")
    started = Browser(driver, program, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()
