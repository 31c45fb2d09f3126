"""Every command and every program of docs/guide.md, in its order, in one folder."""

import json
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pandas as pd
import pytest

from skldl.cli import main

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


def blocks():
    return re.findall(r"```(python|bash)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.S)


def ask(port, content):
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://localhost:{port}/predict", data=content.encode(), headers=headers)
    end = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except urllib.error.URLError:  # not up yet
            assert time.monotonic() < end
            time.sleep(0.1)


class Story:
    """Runs the blocks; commands of skldl in this process, since that is quicker."""

    def __init__(self, capsys):
        self.capsys = capsys
        self.server = None
        self.shown = {}

    def run(self, language, content):
        if language == "python":
            exec(compile(content, str(GUIDE), "exec"), {})
            return
        for line in content.splitlines():
            self.command(line)

    def command(self, line):
        if line.startswith("skldl serve"):
            with socket.socket() as free:
                free.bind(("localhost", 0))
                self.port = free.getsockname()[1]
            words = [*shlex.split(line.removesuffix("&"))[1:-1], str(self.port)]
            program = [sys.executable, "-m", "skldl", *words]
            self.server = subprocess.Popen(program, stderr=subprocess.DEVNULL)
        elif line.startswith("skldl "):
            assert main(shlex.split(line)[1:]) == 0, self.capsys.readouterr().err
            self.shown[line.split()[1]] = self.capsys.readouterr().out
        elif line.startswith("curl "):
            self.status, self.answer = ask(self.port, shlex.split(line)[-1])
        else:
            shim = f'skldl() {{ "{sys.executable}" -m skldl "$@"; }}\n'
            subprocess.run(["bash", "-ec", shim + line], check=True)


@pytest.mark.slow
def test_the_guide(tmp_path, monkeypatch, capsys):
    pytest.importorskip("skops")
    pytest.importorskip("uvicorn")
    monkeypatch.chdir(tmp_path)
    story = Story(capsys)
    try:
        for language, content in blocks():
            story.run(language, content)
        wrong = ask(story.port, '[{"wort": "schön"}]')
    finally:
        if story.server is not None:
            story.server.terminate()
            story.server.wait()
    assert "Skill" in story.shown["evaluate"]
    assert "Written to words.skldl" in story.shown["fit"]
    assert "values       -4, -3" in story.shown["inspect"]
    predicted = pd.read_csv("predictions.csv").set_index("word")
    assert list(predicted)[:2] == ["r-4", "r-3"]
    assert predicted.loc["delightful", "expected"] > predicted.loc["horrible", "expected"]
    pd.testing.assert_frame_equal(pd.read_csv("again.csv"), predicted.reset_index(drop=True))
    assert Path("effects.png").stat().st_size > 1000
    assert story.status == 200
    (served,) = json.loads(story.answer)
    assert served["r2"] == pytest.approx(predicted.loc["delightful", "r2"], abs=5e-7)  # the file has six digits
    assert wrong[0] == 422
    assert "lacks the column 'word'" in wrong[1]
