"""Write everything that follows from the table of registration: run ``make docs`` after a change of `ALGORITHMS`.

The stub ``src/skldl/__init__.pyi``, by which type checkers and editors know the names that load lazily; the table in
``README.md``; ``docs/algorithms.md``; and the layer of the families in the import contracts of ``pyproject.toml``. A
test fails while one of them is out of date.
"""

import re
import sys
from collections.abc import Mapping
from inspect import getdoc
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from marks import between_marks

import skldl
from skldl._algorithms import CAPABILITIES, can
from skldl.names import ALGORITHMS, Algorithm

ROOT = Path(__file__).resolve().parents[1]
HINT = "written by make docs"


def stub() -> str:
    """The stub of the package, from which a type checker learns its names."""
    modules = sorted([*skldl._SUBMODULES, *skldl._EXTRA_OF])
    lines = [f"from skldl import {name} as {name}" for name in modules]
    lines += sorted(f"from {home} import {name} as {name}" for name, home in skldl._HOME_OF.items())
    return (
        f"# The names of this package for type checkers; {HINT}.\n"
        + "\n".join(lines)
        + "\n\nESTIMATORS: tuple[str, ...]\n__version__: str\n\ndef __dir__() -> list[str]: ...\n"
    )


def readme(text: str) -> str:
    """The README with the current table between its two marks."""
    rows = [f"| `{a.class_name}` | {a.title} | {_summary(a)} |" for a in _first_lines()]
    table = "\n".join(["| class | on the command line | |", "|---|---|---|", *rows])
    return between_marks(text, "algorithms", table)


def page() -> str:
    """The text of ``docs/algorithms.md``."""
    sections = []
    for family in dict.fromkeys(_family(algorithm) for algorithm in ALGORITHMS):
        members = [algorithm for algorithm in ALGORITHMS if _family(algorithm) == family]
        rows = [
            f"| {a.title or '—'} | `{a.class_name}` | {_summary(a)} | {_settings(a.params)} | {_grid(a.grid)} |"
            for a in members
        ]
        head = "| name | class | what it does | fixed | selection tries |\n|---|---|---|---|---|"
        sections.append(f"## `{family}`\n\n{head}\n" + "\n".join(rows) + "\n")
    return (
        "# Algorithms\n\n"
        f"<!-- {HINT} from src/skldl/_algorithms.py. Do not edit by hand. -->\n\n"
        "The name is what `--model`, `--candidates` and a study file take, in any spelling; so is the name "
        "of the class.\nFixed parameters and grids are those of a candidate found by its name; the class itself has "
        "the defaults that its docstring\nstates. In a tie selection takes the value that comes first.\n\n"
        + "\n".join(sections)
        + "\n"
        + capabilities()
    )


def capabilities() -> str:
    """Return the table of what each estimator can do, from the attributes of its class."""
    head = f"| class | {' | '.join(CAPABILITIES)} |\n|---|{'---|' * len(CAPABILITIES)}"
    rows = [
        f"| `{a.class_name}` | {' | '.join('yes' if can(a, name) else '' for name in CAPABILITIES)} |"
        for a in _first_lines()
    ]
    return (
        "## What each can do\n\n"
        "- sparse: X may be a sparse matrix; missing features, missing degrees: NaN in X or in y is used\n"
        "- chunks: learns from rows that are read in chunks; device: computes on arrays of torch and CuPy\n"
        "- linear scores: predicts the softmax of a linear function\n"
        "- keeps rows: a fitted model, and so its file, holds training rows as numbers\n"
        "- ONNX: `skldl export` writes it; `AARegressor` around a forest of scikit-learn\n\n"
        "`AutoLDL` and `StackingLDL` are exported, and hold rows, as far as their members do.\n"
        "`LDLClassifier` and `ConformalLDL` hand X to the estimator inside and take what it takes.\n\n"
        + head
        + "\n"
        + "\n".join(rows)
        + "\n"
    )


def contracts(text: str) -> str:
    """Return ``pyproject.toml`` with every family in the layer of the families."""
    begin = text.index("layers = [")
    layers = text[begin : text.index("\n]", begin)]
    pattern = rf'^  ".* : testing.*", # families: {HINT}$'
    elsewhere = set(re.findall(r"\w+", re.sub(pattern, "", layers, flags=re.MULTILINE)))
    families = {_family(algorithm).removeprefix("skldl.") for algorithm in ALGORITHMS}
    line = " : ".join(sorted({"testing", *families} - elsewhere))
    return re.sub(pattern, f'  "{line}", # families: {HINT}', text, flags=re.MULTILINE)


def outputs() -> dict[Path, str]:
    """The current text of each file, by its path."""
    files = {ROOT / "src/skldl/__init__.pyi": stub(), ROOT / "docs/algorithms.md": page()}
    for name, render in (("README.md", readme), ("pyproject.toml", contracts)):
        files[ROOT / name] = render((ROOT / name).read_text(encoding="utf-8"))
    return files


def _first_lines() -> list[Algorithm]:
    """The first entry of each class."""
    return list({algorithm.class_name: algorithm for algorithm in reversed(ALGORITHMS)}.values())[::-1]


def _family(algorithm: Algorithm) -> str:
    return ".".join(algorithm.module.split(".")[:2])


def _summary(algorithm: Algorithm) -> str:
    return (getdoc(getattr(skldl, algorithm.class_name)) or "").partition("\n")[0].rstrip(".")


def _settings(params: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}={_value(value)}`" for name, value in params.items())


def _grid(grid: Mapping[str, tuple[Any, ...]]) -> str:
    return "; ".join(f"`{name}`: {', '.join(_value(value) for value in values)}" for name, values in grid.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        name = value["estimator"].rpartition(":")[2]
        return f"{name}({', '.join(f'{key}={item!r}' for key, item in value.items() if key != 'estimator')})"
    return repr(value)


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
