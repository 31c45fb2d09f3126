"""Cases of the frozen numbers: the whole way from a CSV of votes to a report, through the command line.

Every command runs in this process; the numbers are read from the files that it writes and, where they are printed with
three digits or more behind the point, from its output. Wording takes no part.
"""

import contextlib
import functools
import io
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from cases import Case
from functions import flat, numbers_in

from skldl.cli import main

LABELS = ("--labels", "label_*")
MODELS: dict[str, tuple[str, ...]] = {
    "sa-bfgs": ("--model", "sa-bfgs", "--weight", "n", "--drop", "item,note", "--groups", "person"),
    "fast": ("--preset", "fast", "--folds", "3", "--drop", "item", "--text", "note", "--weight", "n"),
    "stream": ("--stream", "--drop", "item", "--text", "note"),
    "stream sa-iis": (
        "--stream",
        "--model",
        "sa-iis",
        "--set",
        "max_iter=10",
        "--drop",
        "item,note,day",
        "--categories",
        "person",
    ),
    "intervals": ("--model", "aa-knn", "--set", "n_neighbors=9", "--drop", "item,note", "--intervals"),
}
"""Options of ``skldl fit`` by the name of the model's case."""
TABLES = ("canberra", "chebyshev", "clark", "cosine", "intersection", "kullback_leibler", "skill")


def way_cases() -> Iterator[Case]:
    """A case for each step; the first that is computed runs them all."""
    yield Case("way: convert votes", lambda: steps()["convert"])
    for name in MODELS:
        yield Case(f"way: fit {name}", functools.partial(lambda name: steps()[f"fit {name}"], name))
        yield Case(f"way: predict {name}", functools.partial(lambda name: steps()[f"predict {name}"], name))
    for name in ("monitor", "evaluate", "bench", "statistics", "report"):
        yield Case(f"way: {name}", functools.partial(lambda name: steps()[name], name))


def write_votes(path: Path) -> None:
    """Votes of five raters on sixty items, with a number, a category, prose, a date and the name of a person."""
    generator = np.random.default_rng(11)
    lines = ["item,who,says,age,town,note,day,person"]
    for item in range(60):
        age, town = generator.normal(40, 12), generator.choice(["Ulm", "Bonn", "Kiel"])
        note = " ".join(generator.choice(["sun", "rain", "wind", "cold", "warm"], 4))
        of_item = f"{'' if item % 9 == 4 else f'{age:.1f}'},{town},{note},2024-{1 + item % 12:02d}-{1 + item % 27:02d}"
        chance = np.array([1 + 0.05 * max(0.0, age - 30), 1 + 2 * (town == "Ulm"), 1.5])
        for rater in range(5):
            if generator.random() < 0.85:
                says = generator.choice(["joy", "anger", "fear"], p=chance / chance.sum())
                lines.append(f"{item},r{rater},{says},{of_item},p{item % 20}")
    path.write_text("\n".join(lines) + "\n")


def run(*arguments: str) -> str:
    """Run a command in this process; returns what it printed, or raises if it failed."""
    out, errors = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["skldl", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        warnings.catch_warnings(),
    ):
        try:
            status: object = main()
        except SystemExit as end:  # version 0.2.0
            status = end.code
        if status:
            raise RuntimeError(f"skldl {' '.join(arguments)}: {errors.getvalue()}") from None
    return out.getvalue() + errors.getvalue()


def printed_numbers(text: str) -> np.ndarray:
    """Numbers with three digits or more behind the point, in rising order: sentences may change."""
    return np.sort(np.array(re.findall(r"-?\d+\.\d{3,}", text), dtype=np.float64))


def json_numbers(value: Any) -> list[float]:
    """All numbers in a JSON value, in rising order: names of entries may change."""
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return sorted(number for part in parts for number in json_numbers(part))
    return [float(value)] if isinstance(value, int | float) else []


def page_numbers(page: str) -> np.ndarray:
    """Numbers of a report: means and deviations in its tables, and the distributions of its instances."""
    page = re.sub(r"<(svg|script|style).*?</\1>", " ", page, flags=re.DOTALL)
    instances = re.search(r"<h2[^>]*>Instances</h2>(.*?)<h2", page, flags=re.DOTALL)
    cells = re.findall(r"(-?\d+\.\d+) ± (\d+\.\d+)", page)
    return flat(np.array(cells, dtype=np.float64), printed_numbers(re.sub("<[^>]*>", " ", instances[1])))


@functools.cache
def steps() -> dict[str, np.ndarray]:
    """Go the whole way in a temporary folder; from the name of each step to its numbers."""
    with tempfile.TemporaryDirectory() as folder:
        return _steps(Path(folder), lambda name: str(Path(folder) / name))


def _steps(folder: Path, path: Callable[[str], str]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    write_votes(folder / "votes.csv")
    voted = ("--item", "item", "--annotator", "who", "--label", "says")
    run(
        "convert",
        path("votes.csv"),
        "--from",
        "votes",
        *voted,
        "--weight",
        "n",
        "--raters",
        path("r.csv"),
        "--out",
        path("d.csv"),
    )
    found["convert"] = flat(numbers_in((folder / "d.csv").read_text()), numbers_in((folder / "r.csv").read_text()))
    for name, options in MODELS.items():
        model, target = path(f"{name}.skldl"), path(f"{name}.csv")
        printed = run("fit", path("d.csv"), *LABELS, *options, "--out", model)
        level = ("--level", "0.8", "--monitor", path("m.json")) if name == "intervals" else ()
        run("predict", model, path("d.csv"), "--out", target, "--digits", "15", *level)
        found[f"fit {name}"] = printed_numbers(printed)
        found[f"predict {name}"] = numbers_in(Path(target).read_text())
    found["monitor"] = np.array(json_numbers(json.loads((folder / "m.json").read_text())))
    protocol = ("--folds", "2", "--jobs", "1", "--drop", "item,note,day")
    run(
        "evaluate",
        path("d.csv"),
        *LABELS,
        *protocol,
        "--models",
        "sa-bfgs,aa-knn",
        "--inner-folds",
        "2",
        "--out",
        path("e"),
    )
    found["evaluate"] = _tables(folder / "e")
    run(
        "bench",
        "--datasets",
        path("d.csv"),
        *LABELS,
        *protocol,
        "--candidates",
        "sa-iis,aa-knn,mean",
        "--out",
        path("b"),
    )
    found["bench"] = _tables(folder / "b")
    found["statistics"] = printed_numbers((folder / "b" / "statistics.md").read_text())
    (folder / "b" / "report.html").unlink()
    run("report", path("b"))
    found["report"] = page_numbers((folder / "b" / "report.html").read_text())
    return found


def _tables(folder: Path) -> np.ndarray:
    return flat(*(numbers_in((folder / "tables" / f"{name}.csv").read_text()) for name in TABLES))
