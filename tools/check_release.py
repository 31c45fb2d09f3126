"""Checks of the metadata and the files of a release; ``noxfile.py`` calls them, and ``tests/release`` tests them.

    python tools/check_release.py requirements               # print the lowest declared versions
    python tools/check_release.py floors RESOLVED            # does a resolved list hold exactly these?
    python tools/check_release.py contents WHEEL SDIST       # does each hold what it must, and nothing else?
    python tools/check_release.py version TAG                # do tag, package, citation, changelog and files agree?

Every fault is printed; the exit status is 1 if there is one.
"""

import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
TOOLS_OF_THE_SITE = "docs"
"""The extra whose packages only build the documentation; no test needs them."""

IN_WHEEL = (
    "skldl/py.typed",
    "skldl/__init__.pyi",
    "skldl/serve/page.html",
    "skldl/report/templates/report.html",
    "skldl/report/templates/report.css",
    "skldl/report/templates/report.js",
    "skldl/data/bundled/vader_lexicon.npz",
    "skldl/data/bundled/vader_tweets.npz",
    "skldl/data/bundled/LICENSE-vader.txt",
    "skldl/data/bundled/PROVENANCE.md",
    "skldl/experiments/studies/demo.toml",
    "*.dist-info/licenses/LICENSE",
    "*.dist-info/licenses/src/skldl/data/bundled/LICENSE-vader.txt",
)
"""Patterns that a name in the wheel must match."""

IN_SDIST = (
    *("src/" + name for name in IN_WHEEL if name.startswith("skldl/")),
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "GOVERNANCE.md",
    "SUPPORT.md",
    "codemeta.json",
    "recipe/recipe.yaml",
    "paper/paper.md",
    "paper/paper.bib",
    "SECURITY.md",
    "Makefile",
    "noxfile.py",
    "conftest.py",
    "tools/setup",
    "tools/check_release.py",
    "tools/package_description.py",
    "tools/smoke_test.py",
    "docs/versioning.md",
    "docs/pictures/*.png",
    "examples/*.py",
    "tests/conftest.py",
    *(["tests/compatibility/files_*/*.skldl"] if any(ROOT.glob("tests/compatibility/files_*")) else []),
    "benchmarks/run.py",
    "benchmarks/results/*.json",
    "benchmarks/history/*.json",
    "studies/*/records.jsonl",
    "studies/compare.py",
    "studies/comparison/published.csv",
)
"""Patterns that a name in the source distribution must match."""

DATA_ENDINGS = (".csv", ".mat", ".npy", ".npz", ".parquet", ".arff", ".tsv", ".xlsx", ".gz", ".zip", ".skldl")
DATA_PLACES = (
    "skldl/data/bundled/*.npz",
    "studies/*.csv",
    "tests/compatibility/*.csv",
    "tests/compatibility/*.skldl",
)
"""Where a file of data may lie. Data of other people have no licence to be passed on, so each place is named."""

NEVER = (
    "*.pyc",
    "*.pkl",
    "*.pickle",
    "*.joblib",
    "*.mat",
    "*/__pycache__/*",
    "*/.*",
    ".*",
    "results/*",
    "site/*",
    "shared/*",
)
"""Patterns that no name may match, in neither archive."""

MAX_SIZES = {"wheel": 4 * 2**20, "sdist": 8 * 2**20}
"""Maximum size of an archive in bytes; a larger one contains files that do not belong there."""


def load_pyproject(path: Path = ROOT / "pyproject.toml") -> dict[str, Any]:
    """The content of pyproject.toml."""
    with path.open("rb") as stream:
        return tomllib.load(stream)


def extras(pyproject: dict[str, Any]) -> list[str]:
    """The extras for users: all but those for development and for the site."""
    return [name for name in pyproject["project"]["optional-dependencies"] if name not in ("dev", TOOLS_OF_THE_SITE)]


def declared(pyproject: dict[str, Any]) -> list[Requirement]:
    """Every dependency with a lowest version, of the core and of all extras.

    Left out are the extras that name this package, the tools of the site, and what is pinned exactly (the linters,
    which the tests do not import).

    Parameters
    ----------
    pyproject : dict
        The content of pyproject.toml.

    Returns
    -------
    list of Requirement
        In the order of the file; a package that several extras name comes several times.
    """
    project = pyproject["project"]
    groups = [project["dependencies"]]
    groups += [group for name, group in project["optional-dependencies"].items() if name != TOOLS_OF_THE_SITE]
    found = [Requirement(text) for group in groups for text in group]
    return [one for one in found if one.name != project["name"] and not _pinned(one)]


def _pinned(requirement: Requirement) -> bool:
    return any(part.operator == "==" for part in requirement.specifier)


def floor_faults(requirements: Iterable[Requirement], resolved: str) -> list[str]:
    """Differences between the lowest declared versions and a list that was resolved to the lowest versions.

    A lowest version that no resolution reaches was never tested.

    Parameters
    ----------
    requirements : iterable of Requirement
        What is declared.
    resolved : str
        Lines ``name==version``; comments are skipped.

    Returns
    -------
    list of str
        One sentence for each fault.
    """
    versions = {
        canonicalize_name(name): version
        for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", resolved, flags=re.MULTILINE)
    }
    faults = []
    for requirement in requirements:
        floors = [part.version for part in requirement.specifier if part.operator == ">="]
        found = versions.get(canonicalize_name(requirement.name))
        if not floors:
            faults.append(f"{requirement} declares no lowest version.")
        elif found is None:
            faults.append(f"{requirement} is not among the resolved versions.")
        elif Version(found) != Version(floors[0]):
            faults.append(
                f"{requirement} cannot be reached: the lowest version that resolves is {found}; declare that."
            )
    return list(dict.fromkeys(faults))


def content_faults(names: Iterable[str], required: Iterable[str]) -> list[str]:
    """Files that are missing from an archive, and files that must not be in it.

    Parameters
    ----------
    names : iterable of str
        Names in the archive, as paths in the repository; for a wheel without ``src/``.
    required : iterable of str
        Patterns, each of which some name must match.

    Returns
    -------
    list of str
        One sentence for each fault.
    """
    names = list(names)
    faults = [f"{pattern} is missing." for pattern in required if not any(fnmatch(name, pattern) for name in names)]
    for name in names:
        if any(fnmatch(name, pattern) for pattern in NEVER):
            faults.append(f"{name} does not belong into a release.")
        elif name.endswith(DATA_ENDINGS) and not any(
            fnmatch(name.removeprefix("src/"), place) for place in DATA_PLACES
        ):
            faults.append(f"{name} is a file of data outside of the known places.")
    return faults


def wheel_faults(path: Path, source: Path = ROOT / "src") -> list[str]:
    """Faults of a wheel: beside the patterns, it must hold every file of the package and nothing else."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        about = [archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")]
    package = {
        file.relative_to(source).as_posix()
        for file in source.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    inside = {name for name in names if ".dist-info/" not in name}
    faults = [f"{name} of the source is not in the wheel." for name in sorted(package - inside)]
    faults += [f"{name} is in the wheel, but not in the source." for name in sorted(inside - package)]
    faults += [fault for text in about for fault in description_faults(text)]
    return content_faults(names, IN_WHEEL) + faults + _size_faults(path, "wheel")


def description_faults(text: str) -> list[str]:
    """Links and pictures of a description that a package index cannot show, because they are relative."""
    found = re.findall(r"\]\((?!https?:|mailto:|#)([^)\s]+)\)", text)
    return [f"The description has the relative link {link}, which leads nowhere on a package index." for link in found]


def sdist_faults(path: Path) -> list[str]:
    """Faults of a source distribution; all its names must be under one folder."""
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    faults = [f"{one.name} is neither a file nor a folder." for one in members if not (one.isfile() or one.isdir())]
    top, names = path.name.removesuffix(".tar.gz") + "/", [one.name for one in members if one.isfile()]
    faults += [f"{name} is not under {top}" for name in names if not name.startswith(top)]
    inside = [name.removeprefix(top) for name in names if name not in (top + "PKG-INFO", top + ".gitignore")]
    return faults + content_faults(inside, IN_SDIST) + _size_faults(path, "sdist")


def _size_faults(path: Path, kind: str) -> list[str]:
    size = path.stat().st_size
    return [f"{path.name} has {size:,} bytes, more than {MAX_SIZES[kind]:,}."] if size > MAX_SIZES[kind] else []


def version_faults(tag: str, root: Path = ROOT) -> list[str]:
    """Differences between the versions of tag, package, citation and changelog; missing files; placeholders."""
    project = load_pyproject(root / "pyproject.toml")["project"]
    version = project["version"]
    package = (root / "src/skldl/__init__.py").read_text(encoding="utf-8")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    faults = [] if tag == f"v{version}" else [f"The tag is {tag}, but pyproject.toml says {version}: tag v{version}."]
    if f'__version__ = "{version}"' not in package:
        faults.append(f"src/skldl/__init__.py does not say {version}.")
    if not re.search(rf"^version: [\"']?{re.escape(version)}[\"']?$", citation, flags=re.MULTILINE):
        faults.append(f"CITATION.cff does not say {version}.")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, flags=re.MULTILINE):
        faults.append(f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'.")
    written = "tests/compatibility/files_{}_{}".format(*version.split(".")[:2])
    if not (root / written).is_dir():
        faults.append(f"{written} is missing: run tools/write_compatibility_files.py.")
    measured = f"benchmarks/history/{version}.json"
    if version.endswith(".0") and not (root / measured).exists():
        faults.append(f"{measured} is missing: run make bench.")
    for name, pattern in (
        ("codemeta.json", r'"version": "([^"]+)"'),
        ("recipe/recipe.yaml", r'\n  version: "([^"]+)"'),
    ):
        found = re.search(pattern, (root / name).read_text(encoding="utf-8")) if (root / name).exists() else None
        if found and found[1] != version:
            faults.append(f"{name} does not say {version}.")
    return faults + placeholder_faults(project)


def placeholder_faults(project: dict[str, Any]) -> list[str]:
    """A fault if the addresses of the project have no owner yet."""
    left = [address for address in project.get("urls", {}).values() if re.search(r"\bOWNER\b", address)]
    return [f"pyproject.toml has the placeholder address {left[0]}: run tools/set_owner.py."] if left else []


def main(command: str, *arguments: str) -> int:
    """Run one check; see the top of this file."""
    if command == "requirements":
        print("\n".join(dict.fromkeys(str(one) for one in declared(load_pyproject()))))
        return 0
    if command == "floors":
        faults = floor_faults(declared(load_pyproject()), Path(arguments[0]).read_text(encoding="utf-8"))
    elif command == "contents":
        faults = [
            f"{path}: {fault}"
            for path in map(Path, arguments)
            for fault in (wheel_faults(path) if path.suffix == ".whl" else sdist_faults(path))
        ]
    elif command == "version":
        faults = version_faults(arguments[0])
    else:
        faults = [f"There is no check {command!r}. Known: requirements, floors, contents, version."]
    print("\n".join(faults) or f"{command}: no fault")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
