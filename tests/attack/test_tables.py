"""Bad tables and options for the commands: one line that says what is wrong, no traceback, no hang, nothing lost."""

import resource
import shlex
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from skldl.cli import main  # noqa: E402 - after the check for the extra
from skldl.data import Columns, from_table  # noqa: E402
from skldl.tabular import TableEncoder  # noqa: E402

SECONDS = 60
GOOD = "x,z,a,b\n" + "\n".join(f"{i},{i % 3},{i / 50},{1 - i / 50}" for i in range(1, 31)) + "\n"
BAD_FILES = {
    "empty": b"",
    "header alone": b"x,a,b\n",
    "zeros": b"\0" * 300,
    "noise": np.random.default_rng(0).bytes(2000),
    "picture": b"\x89PNG\r\n\x1a\n" + b"0" * 200,
    "zip": b"PK\x03\x04" + b"0" * 200,
    "half a parquet file": b"PAR1" + b"0" * 50,
    "page": b"<!doctype html><html><body>404</body></html>",
    "one column": b"x\n1\n2\n",
    "two headers alike": GOOD.replace("x,z", "x,x", 1).encode(),
    "short row": GOOD.replace("15,0,0.3,0.7\n", "15,0\n").encode(),
    "long row": GOOD.replace("15,0,0.3,0.7\n", "15,0,0.3,0.7,9,9\n").encode(),
    "text label": GOOD.replace("15,0,0.3,0.7\n", "15,0,much,0.7\n").encode(),
    "negative label": GOOD.replace("15,0,0.3,0.7\n", "15,0,-0.3,1.3\n").encode(),
    "label sums to two": GOOD.replace("15,0,0.3,0.7\n", "15,0,1.0,1.0\n").encode(),
    "infinite label": GOOD.replace("15,0,0.3,0.7\n", "15,0,inf,0.7\n").encode(),
    "infinite feature": GOOD.replace("15,0,0.3,0.7\n", "inf,0,0.3,0.7\n").encode(),
    "open quote": GOOD.replace("15,0", '"15,0').encode(),
    "cut in the middle": GOOD.encode()[: len(GOOD) // 2] + b"\x80\x81",
    "json": b'[{"x": 1, "a": 0.5, "b": 0.5}]',
    "single row": b"x,a,b\n1,0.5,0.5\n",
    "no features": b"a,b\n0.5,0.5\n0.2,0.8\n0.1,0.9\n",
}


def table(names, row):
    """Thirty rows with the labels a and b at the end."""
    return "\n".join([f"{names},a,b", *(f"{row(i)},{i / 50},{1 - i / 50}" for i in range(1, 31))]).encode()


MANY = {
    "columns": table(",".join(f"x{j}" for j in range(2000)), lambda i: ",".join(f"{i * j % 7}" for j in range(2000))),
    "empty columns": table("x" + "," * 2000, lambda i: f"{i}" + "," * 2000),
    "characters": table("x", lambda i: "w" * 10**5 + str(i)),
    "words": table("x", lambda i: " ".join(f"w{i}and{j}" for j in range(5000))),
    "quotation marks": table("x", lambda i: '"' + '""' * 10**5 + f'{i}"'),
    "lines in a cell": table("x", lambda i: '"' + "\n" * 10**4 + f'{i}"'),
    "cells": GOOD.replace("15,0,0.3,0.7\n", "15,0,0.3,0.7" + ",9" * 10**5 + "\n").encode(),
    "blank lines": GOOD.replace("\n", "\n" * 10**4).encode(),
}
"""Multiplicity: nothing in these tables is wrong, there is only much of it."""
BAD_OPTIONS = (
    *("--labels nothing_*", "--labels a", "--labels a,b,q", "--labels ''", "--labels a,b --kind shares"),
    *("--labels a,b --weight q", "--labels a,b --groups q", "--labels a,b --weight a", "--labels a,b --drop q"),
    *("--labels a,b --text q", "--labels a,b --categories q", "--labels a,b --folds 1", "--labels a,b --folds x"),
    *("--labels a,b --model nobody", "--labels a,b --model os:system", "--labels a,b --set alpha=1"),
    *("--labels a,b --model sa-bfgs --set alpha=-1", "--labels a,b --model sa-bfgs --set alpha=much"),
    *("--labels a,b --model sa-bfgs --set nothing=1", "--labels a,b --model sa-bfgs --set fit_intercept=maybe"),
    *("--labels a,b --model aa-knn --set n_neighbors=0", "--labels a,b --model aa-knn --set n_neighbors=1000"),
    *("--labels a,b --seed -1", "--labels a,b --values 1", "--labels a,b --values x,y", "--labels a,b --decimal x"),
    *("--labels a,b --encoding klingon", "--labels a,b --preset slow", "--labels a,b --budget soon"),
    *("--labels a,b --model sa-bfgs --preset best", "--labels a,b --selection-rows 0", "--labels a,b --nonsense"),
    *(
        "--labels a,b --drop x,z",
        "--labels a,b --text-ngrams lines",
        "--labels x,z",
        "--labels a,b --kind votes --folds 0",
    ),
)


def attack(campaign, capsys, what, line, *, may_succeed=False):
    capsys.readouterr()
    try:
        with campaign.limited(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning is a fair answer to nonsense
            status = main(shlex.split(line))
    except SystemExit as end:
        status = end.code
    except TimeoutError:
        status = "hang"
    except BaseException as error:
        status = f"traceback {type(error).__name__}: {error}"
    text = "".join(capsys.readouterr())  # evaluate lists what failed on standard output
    if isinstance(status, str):
        verdict = "hang" if status == "hang" else "unclear"
    elif status == 0:
        verdict = "right" if may_succeed else "silent"
    else:
        verdict = "clear" if "Traceback" not in text and len(text.strip()) > 15 else "unclear"
    campaign.judge(verdict, f"{what}: {status} {text[-150:]}")


@pytest.mark.slow
def test_roles_of_many_columns_take_linear_time():
    """20,000 columns with a role took 16 seconds of CPU time: each was searched for in a list of all."""
    names = [f"c{place}" for place in range(20_000)]
    table = pd.DataFrame(np.ones((2, len(names))), columns=names).assign(x=[1.0, 2.0], a=0.5, b=0.5)
    features = table.drop(columns=["a", "b"])
    began = time.process_time()
    assert list(from_table(table, Columns(["a", "b"], drop=names)).X) == ["x"]
    from_table(table, Columns(["a", "b"], categories=names))
    TableEncoder(categories=names).know_columns(features)
    assert time.process_time() - began < 3


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_much_of_one_thing(tmp_path, monkeypatch, capsys, campaign, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "many.csv").write_bytes(MANY[name])
    for line in (
        "fit many.csv --labels a,b --model sa-bfgs --out m.skldl --overwrite",
        "fit many.csv --labels a,b --model sa-bfgs --out m.skldl --overwrite --stream",
        "predict m.skldl many.csv --out p.csv --overwrite",
    ):
        attack(campaign, capsys, f"many {name}: {line}", line, may_succeed=True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 3 * 2**20  # in KiB


@pytest.mark.slow
def test_bad_tables_and_options(tmp_path, monkeypatch, capsys, campaign):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    assert main(shlex.split("fit good.csv --labels a,b --model sa-bfgs --out good.skldl")) == 0
    model = (tmp_path / "good.skldl").read_bytes()
    for place, (name, content) in enumerate(BAD_FILES.items()):
        for ending in ("csv", "parquet"):
            file = f"bad{place}.{ending}"
            (tmp_path / file).write_bytes(content)
            may = name in ("infinite feature",)
            lines = (
                f"fit {file} --labels a,b --model sa-bfgs --out m.skldl",
                f"evaluate {file} --labels a,b --models sa-bfgs --folds 2 --inner-folds 2 --jobs 1 "
                f"--out s{place}{ending}",
                f"explain good.skldl {file} --repeats 1",
            )
            for line in lines:
                attack(campaign, capsys, f"{name}: {line}", line, may_succeed=may or "explain" in line)
            attack(
                campaign,
                capsys,
                f"{name}: predict",
                f"predict good.skldl {file} --out p.csv --overwrite",
                may_succeed=True,
            )
            assert (tmp_path / file).read_bytes() == content
    for options in BAD_OPTIONS:
        attack(campaign, capsys, f"fit {options}", f"fit good.csv {options} --out m.skldl")
    for line in (
        *("fit nowhere.csv --labels a,b --out m.skldl", "fit good.csv --labels a,b --out good.csv", "predict good.csv"),
        *("fit good.csv --labels a,b --out nowhere/m.skldl", "predict good.skldl good.csv --out good.csv --overwrite"),
        *(
            "predict good.skldl good.csv --out good.skldl --overwrite",
            "predict good.csv good.skldl",
            "inspect good.csv",
        ),
        *("inspect nowhere.skldl", "explain good.skldl good.csv --row 0", "explain good.skldl good.csv --row 99"),
        *("explain good.skldl good.csv --repeats 0", "report nowhere", "bench nowhere.toml", "bench good.csv"),
    ):
        attack(campaign, capsys, line, line)
    assert (tmp_path / "good.csv").read_text() == GOOD
    assert (tmp_path / "good.skldl").read_bytes() == model
    assert campaign.counts["tried"] > 200
