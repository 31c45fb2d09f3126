"""The checks of a release find what they are there to find."""

import io
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checks(load_script):
    return load_script("tools/check_release.py")


def test_every_extra_has_a_smoke_test(checks, load_script):
    extras = set(checks.extras(checks.load_pyproject()))
    assert {"cli", "serve", "all"} <= extras
    assert extras <= set(load_script("tools/smoke_test.py").CHECKS), "write a check in tools/smoke_test.py"


def test_what_is_declared(checks):
    pyproject = tomllib.loads(
        """
        [project]
        name = "scikit-ldl"
        dependencies = ["numpy>=1.26"]
        [project.optional-dependencies]
        serve = ["scikit-ldl[cli]", "uvloop>=0.19; sys_platform != 'win32'"]
        dev = ["pytest>=8", "ruff==0.1.0"]
        docs = ["sphinx>=8"]
        """
    )
    assert [one.name for one in checks.declared(pyproject)] == ["numpy", "uvloop", "pytest"]
    assert checks.extras(pyproject) == ["serve"]


def test_floors_that_are_not_reached(checks):
    resolved = "# by uv\nnumpy==1.26.0\nrich==13.6.0\n    # via cyclopts\nscikit-learn==1.7.0\nuvloop==0.19.0 ; x\n"
    good = ["numpy>=1.26", "Scikit_Learn>=1.7", "uvloop>=0.19; sys_platform != 'win32'"]
    assert checks.floor_faults(map(Requirement, good), resolved) == []
    faults = checks.floor_faults(map(Requirement, ["rich>=13", "rich>=13", "scipy>=1", "numpy"]), resolved)
    assert [fault.split(":")[0] for fault in faults] == [
        "rich>=13 cannot be reached",
        "scipy>=1 is not among the resolved versions.",
        "numpy declares no lowest version.",
    ]


def test_contents(checks):
    names = ["skldl/a.py", "skldl/data/bundled/words.npz", "studies/one/tables/clark.csv"]
    assert checks.content_faults(names, ["skldl/*.py"]) == []
    assert checks.content_faults([*names, "src/skldl/data/bundled/b.npz"], []) == []
    assert checks.content_faults(names, ["skldl/page.html"]) == ["skldl/page.html is missing."]
    for intruder in ("skldl/__pycache__/a.pyc", "src/Movie.mat", "results/x.json", ".venv/a.py", "tests/model.pkl"):
        assert checks.content_faults([intruder], []) == [f"{intruder} does not belong into a release."]
    for intruder in ("skldl/data/faces.npz", "docs/ratings.csv", "tests/a.parquet", "examples/m.skldl"):
        assert checks.content_faults([intruder], []) == [f"{intruder} is a file of data outside of the known places."]


def test_a_wheel_holds_the_package_and_nothing_else(checks, tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "IN_WHEEL", ("skldl/page.html",))
    source = tmp_path / "src" / "skldl"
    (source / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "page.html", "__pycache__/a.pyc"):
        (source / name).write_text("x")
    path = tmp_path / "scikit_ldl-1-py3-none-any.whl"

    def faults(*names):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "x")
        return checks.wheel_faults(path, tmp_path / "src")

    assert faults("skldl/__init__.py", "skldl/page.html", "scikit_ldl-1.dist-info/METADATA") == []
    assert faults("skldl/__init__.py") == [
        "skldl/page.html is missing.",
        "skldl/page.html of the source is not in the wheel.",
    ]
    assert faults("skldl/__init__.py", "skldl/page.html", "tests/a.py") == [
        "tests/a.py is in the wheel, but not in the source."
    ]
    monkeypatch.setitem(checks.MAX_SIZES, "wheel", 10)
    assert "bytes, more than 10" in faults("skldl/__init__.py", "skldl/page.html")[0]


def test_a_source_distribution(checks, tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "IN_SDIST", ("Makefile", "examples/*.py"))
    path = tmp_path / "scikit_ldl-1.tar.gz"

    def faults(*names, link=False):
        with tarfile.open(path, "w:gz") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(name), io.BytesIO())
            if link:
                member = tarfile.TarInfo("scikit_ldl-1/link")
                member.type = tarfile.SYMTYPE
                archive.addfile(member)
        return checks.sdist_faults(path)

    good = ["scikit_ldl-1/Makefile", "scikit_ldl-1/examples/votes.py", "scikit_ldl-1/PKG-INFO"]
    assert faults(*good) == []
    assert faults(good[0]) == ["examples/*.py is missing."]
    assert faults(*good, "elsewhere/a.py")[0] == "elsewhere/a.py is not under scikit_ldl-1/"
    assert faults(*good, link=True) == ["scikit_ldl-1/link is neither a file nor a folder."]


def test_what_the_repository_holds_is_what_must_be_shipped(checks):
    """The patterns of the source distribution match files of the repository; otherwise a release could not pass."""
    missing = [pattern for pattern in checks.IN_SDIST if not any(ROOT.glob(pattern))]
    assert missing == []


def test_versions_must_agree(checks, tmp_path, capsys):
    (tmp_path / "src/skldl").mkdir(parents=True)
    (tmp_path / "tests/compatibility/files_1_2").mkdir(parents=True)
    (tmp_path / "benchmarks/history").mkdir(parents=True)
    (tmp_path / "benchmarks/history/1.2.0.json").write_text("{}")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "src/skldl/__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.0\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2027-01-31)\n")
    assert checks.version_faults("v1.2.0", tmp_path) == []
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.0 (unreleased)\n")
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.1.0\n")
    (tmp_path / "src/skldl/__init__.py").write_text('__version__ = "1.1.0"\n')
    (tmp_path / "tests/compatibility/files_1_2").rmdir()
    (tmp_path / "benchmarks/history/1.2.0.json").unlink()
    faults = checks.version_faults("v1.2", tmp_path)
    starts = ["The tag is v1.2", "src/skldl", "CITATION", "CHANGELOG", "tests/compatibility/files_1_2", "benchmarks"]
    assert [fault.startswith(start) for fault, start in zip(faults, starts, strict=True)] == [True] * 6
    assert checks.main("nothing") == 1
    assert "There is no check 'nothing'" in capsys.readouterr().out
    assert checks.main("requirements") == 0
    assert "numpy>=" in capsys.readouterr().out


def test_the_description_of_the_package_has_no_relative_link(checks, load_script):
    adapted = load_script("tools/package_description.py").package_description
    text = "![A b](docs/a.png)\n\nSee [the guide](docs/guide.md), [there](https://example.org/x) and [below](#below).\n"
    assert adapted(text) == "See the guide, [there](https://example.org/x) and [below](#below).\n"
    assert adapted(text, "https://example.org/") == (
        "![A b](https://example.org/docs/a.png)\n\n"
        "See [the guide](https://example.org/docs/guide.md), [there](https://example.org/x) and [below](#below).\n"
    )
    there = "https://github.com/lab/scikit-ldl/blob/main/"
    assert "![A b](https://github.com/lab/scikit-ldl/raw/main/docs/a.png)" in adapted(text, there)
    assert "[the guide](https://github.com/lab/scikit-ldl/blob/main/docs/guide.md)" in adapted(text, there)
    assert adapted(text, there.replace("lab", "OWNER")) == adapted(text)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert checks.description_faults(readme)
    assert checks.description_faults(adapted(readme)) == []
    assert len(adapted(readme)) > 0.8 * len(readme)
    hook = checks.load_pyproject()["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    assert (ROOT / hook["path"]).exists()
    assert hook["path"] in (ROOT / "Dockerfile").read_text(encoding="utf-8")
