"""The checks before a release. All of them: ``make release-check``; one part: ``make release-check SESSION=lowest``.

tests-3.11 to tests-3.14   the tests on each Python; one that is not installed is skipped with a note (and fails in CI)
lowest                     the tests with the lowest version that pyproject.toml declares for each dependency
wheel                      wheel and source distribution: built, checked by twine, contents compared with a list
smoke(extra='...')         the wheel in an empty environment, without extras and with each extra of pyproject.toml

Arguments after ``--`` replace the arguments of pytest: ``nox -s lowest -- tests/metrics``. nox was chosen over tox
because two sessions need more than a list of commands: the extras are read from pyproject.toml, and the lowest versions
are resolved first and compared with what is declared.
"""

import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent / "tools"))
from check_release import extras, load_pyproject

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
DISTRIBUTIONS = Path("dist")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"
nox.options.envdir = ".cache/nox"  # ignored by git, removed by make clean
nox.options.sessions = ["tests", "lowest", "wheel", "smoke"]


def run_tests(session: nox.Session, *options: str) -> None:
    """Run pytest, with one BLAS thread, as ``make test`` does."""
    arguments = session.posargs or ["-n", "2"]
    session.run("python", "-m", "pytest", "-m", "not slow", "-q", *options, *arguments, env=ONE_THREAD)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The tests with the newest versions of all dependencies."""
    session.install("-e", ".[all,dev]")
    run_tests(session)


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """The tests with the lowest versions that are declared.

    Deprecations are no errors here: old packages use what the newest releases of their own dependencies deprecate.
    """
    folder = Path(session.create_tmp())
    declared, resolved = folder / "declared.in", folder / "lowest.txt"
    check = (sys.executable, "tools/check_release.py")
    declared.write_text(session.run(*check, "requirements", silent=True, external=True), encoding="utf-8")
    session.run(
        *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--upgrade", "--resolution", "lowest-direct"),
        *("--python-version", PYTHONS[0], str(declared), "--output-file", str(resolved)),
        external=True,
    )
    session.run(*check, "floors", str(resolved), external=True)
    session.install("-r", str(resolved))
    session.install("--no-deps", "-e", ".")
    run_tests(session, "-W", "default::DeprecationWarning", "-W", "default::FutureWarning")


@nox.session(python=False)
def wheel(session: nox.Session) -> None:
    """Build both distributions and check what they declare and hold."""
    for old in DISTRIBUTIONS.glob("scikit_ldl-*"):
        old.unlink()
    session.run(sys.executable, "-m", "build", "--installer", "uv", "--outdir", str(DISTRIBUTIONS), external=True)
    built = sorted(str(path) for path in DISTRIBUTIONS.glob("scikit_ldl-*"))
    session.run(sys.executable, "-m", "twine", "check", "--strict", *built, external=True)
    session.run(sys.executable, "tools/check_release.py", "contents", *built, external=True)


@nox.session(python=PYTHONS[0], requires=["wheel"])
@nox.parametrize("extra", ["none", *extras(load_pyproject())])
def smoke(session: nox.Session, extra: str) -> None:
    """Install the wheel with one extra into an empty environment and use the features of the extra."""
    (built,) = DISTRIBUTIONS.glob("scikit_ldl-*.whl")
    name = "" if extra == "none" else f"[{extra}]"
    session.install(f"scikit-ldl{name} @ {built.resolve().as_uri()}")
    session.run("python", "-I", str(Path("tools/smoke_test.py").resolve()), extra, env=ONE_THREAD)
