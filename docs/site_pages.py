"""Pages of the site that are made from files outside ``docs/``, and the files that its pages load.

`CHANGELOG.md`, `CONTRIBUTING.md` and their like stay in the root of the repository, where people look for them. The
site gets copies whose links fit, in ``docs/project/``, which is not in the repository.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MATHJAX = "mathjax/tex-svg-full.js"
PROJECT_FILES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "SUPPORT.md", "GOVERNANCE.md", "CODE_OF_CONDUCT.md")
ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PROJECT_INDEX = """# Project

```{toctree}
:maxdepth: 1
changelog
support
contributing
governance
code_of_conduct
optional: security
../versioning
citing
../architecture
```
"""
OPTIONAL = re.compile(r"^optional: (\S+)\n", flags=re.MULTILINE)
LINK = re.compile(r"((?<!!)\[[^\[\]]*\]\()(?!https?:|#|mailto:)([^)\s#]+)")


def write_pages(docs: Path) -> None:
    """Write ``docs/project/`` from the files in the root of the repository."""
    folder = docs / "project"
    folder.mkdir(exist_ok=True)
    texts = {path.stem.lower(): path.read_text(encoding="utf-8") for path in _project_files()}
    texts = {name: LINK.sub(_from_the_root, text) for name, text in texts.items()}
    texts["index"] = PROJECT_INDEX
    texts["citing"] = _citing((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    for path in folder.glob("*.md"):
        if path.stem not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def write_command_line(docs: Path) -> None:
    """Write ``docs/api/command-line.rst`` from what ``skldl COMMAND --help`` prints."""
    from skldl.cli._app import COMMANDS

    parts = ["Command line\n============\n\n``skldl COMMAND --help`` prints these texts.\n"]
    for words in ([], *([name] for name in COMMANDS)):
        title = " ".join(["skldl", *words])
        text = "\n".join(f"   {line}".rstrip() for line in _help_of(words).splitlines())
        parts.append(f"{title}\n{'-' * len(title)}\n\n.. code-block:: text\n\n{text}\n")
    path = docs / "api" / "command-line.rst"
    path.write_text("\n".join(parts), encoding="utf-8")


def _help_of(words: list[str]) -> str:
    environment = os.environ | {"COLUMNS": "92", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "skldl", *words, "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def _project_files() -> list[Path]:
    return [ROOT / name for name in PROJECT_FILES if (ROOT / name).exists()]


def _from_the_root(match: re.Match[str]) -> str:
    """Turn a link from the root of the repository into one from ``docs/project/``."""
    target = match[2]
    if target in PROJECT_FILES:
        return match[1] + target.lower()
    return match[1] + ("../" + target.removeprefix("docs/") if target.startswith("docs/") else "../../" + target)


def _citing(cff: str) -> str:
    field = dict(re.findall(r"^ *(?:- )?([\w-]+): (.+)$", cff, flags=re.MULTILINE))
    return f"""# Citing

If scikit-ldl helps your research, please cite the paper whose algorithms it began with, and the software.

> X. Geng, "Label Distribution Learning", *{field["journal"]}*, vol. {field["volume"]}, no. {field["issue"]},
> pp. {field["start"]}–{field["end"]}, {field["year"]}. doi:[{field["doi"]}](https://doi.org/{field["doi"]})

```bibtex
@article{{geng2016label,
  author  = {{Geng, Xin}},
  title   = {{Label Distribution Learning}},
  journal = {{{field["journal"]}}},
  volume  = {{{field["volume"]}}},
  number  = {{{field["issue"]}}},
  pages   = {{{field["start"]}--{field["end"]}}},
  year    = {{{field["year"]}}},
  doi     = {{{field["doi"]}}}
}}

@software{{scikit-ldl,
  author  = {{{{The scikit-ldl developers}}}},
  title   = {{scikit-ldl}},
  version = {{{field["version"]}}},
  license = {{{field["license"]}}}
}}
```

The [citation file](../../CITATION.cff) holds the same in a form that programs read. Each algorithm names the paper
that it comes from in its page of the [API reference](../api/index.rst): please cite that one, too.
"""


def examples_that_run() -> str:
    """A pattern of the examples whose packages are installed; of the others the gallery shows only the program."""
    names = [path.stem for path in EXAMPLES.glob("*.py") if not missing_packages(path)]
    return rf"(?:{'|'.join(sorted(names))})\.py$"


def missing_packages(example: Path) -> list[str]:
    """Name the packages that an example imports and that are not installed."""
    imported = re.findall(r"^(?:import|from) (\w+)", example.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return sorted({name for name in imported if find_spec(name) is None})


class GalleryOrder:
    """The order of the gallery: first kinds of data, then evaluation, then the use of a model."""

    NAMES = (
        *("votes", "star_ratings", "emotions_in_text", "age_from_faces", "head_pose", "survey_shares"),
        *("answers_in_class", "species_abundances", "election_shares", "careless_raters", "votes_needed"),
        *("rankings", "multilabel", "missing_degrees", "compare_with_scikit_learn", "choose_honestly"),
        *("ordered_labels", "how_sure", "calibration", "explain_columns", "embeddings_head"),
    )

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> int:
        name = filename.removesuffix(".py")
        if name not in self.NAMES:
            raise ValueError(f"Give the example {filename} its place in GalleryOrder of docs/site_pages.py.")
        return self.NAMES.index(name)


def adapt_page(app: Any, docname: str, source: list[str]) -> None:
    """Adapt Markdown that is written for the repository: see the two functions below."""
    folder = (Path(app.srcdir) / docname).parent
    if (Path(app.srcdir) / f"{docname}.md").exists():
        source[0] = LINK.sub(lambda match: match[1] + _target_on_the_site(match[2], folder), source[0])
        source[0] = OPTIONAL.sub(lambda match: _page_if_there(match, folder), source[0])


def _target_on_the_site(link: str, folder: Path) -> str:
    """The target of a link on the site: an example in the gallery, the page of a file outside ``docs/``, or a copy."""
    target = (folder / link).resolve()
    if target.is_relative_to(ROOT / "docs") or not target.exists():
        return link
    if target.is_relative_to(EXAMPLES):
        page = ROOT / "docs" / "gallery" / ("index.rst" if target == EXAMPLES else f"{target.stem}.rst")
    elif target.parent == ROOT and target.name in PROJECT_FILES:
        page = ROOT / "docs" / "project" / target.name.lower()
    else:
        return f"path:{link}"
    return Path(os.path.relpath(page, folder)).as_posix()


def _page_if_there(match: re.Match[str], folder: Path) -> str:
    """Keep a line ``optional: NAME`` of a list of pages only where there is such a page."""
    return f"{match[1]}\n" if (folder / f"{match[1]}.md").exists() else ""


def finish_files(app: Any, exception: Exception | None) -> None:
    """Copy MathJax from its package: one file, which draws formulae as SVG and loads nothing else.

    A template of the theme that is no page is removed.
    """
    package = find_spec("sphinx-mathjax-offline")
    if package is None:
        raise ModuleNotFoundError("sphinx-mathjax-offline is not installed: pip install '.[docs]'")
    if exception is None:
        (Path(app.outdir) / "_static" / "webpack-macros.html").unlink(missing_ok=True)
        target = Path(app.outdir) / "_static" / MATHJAX
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(package.submodule_search_locations[0]) / "static" / MATHJAX, target)
