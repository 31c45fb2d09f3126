"""The package as a whole: what importing it pulls in, and that its names lead somewhere."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy import io

import skldl
from skldl.utils.dependencies import PACKAGES, import_with_extra

ROOT = Path(__file__).parents[1]
EXTRAS = [name.replace("-", "_") for name in (*PACKAGES["extras"], "polars", "torch")]  # the last two in no extra
WITHOUT_EXTRAS = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import skldl
"""


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_pulls_in_no_extra_and_no_more_than_scikit_learn_does():
    loaded = run_python("import sys, skldl; print(*sys.modules)").split()
    assert not {name.partition(".")[0] for name in loaded} & {*EXTRAS, "sklearn", "scipy"}


def test_every_public_name_works_without_any_extra():
    run_python(
        WITHOUT_EXTRAS + "for name in skldl.__all__: getattr(skldl, name)\n"
        "X, D = skldl.testing.make_distributions(); skldl.MeanDistribution().fit(X, D).predict(X)"
    )


def test_arrays_and_bundled_data_need_no_pandas(tmp_path):
    X, D = np.random.default_rng(0).random((6, 3)), np.full((6, 2), 0.5)
    np.savez(tmp_path / "small.npz", features=X, labels=D)
    io.savemat(tmp_path / "small.mat", {"features": X, "labels": D})
    run_python(
        WITHOUT_EXTRAS + "from skldl.data import load_dataset, load_lexicon\n"
        "assert load_lexicon().D.shape[1] == 9\n"
        f"for ending in ('npz', 'mat'): assert load_dataset({str(tmp_path / 'small.')!r} + ending).X.shape == (6, 3)\n"
        "assert 'pandas' not in sys.modules"
    )


@pytest.mark.parametrize(
    ("name", "extra"), [("plots", "plot"), ("tabular.TableEncoder", "cli"), ("data.from_table", "cli")]
)
def test_what_needs_an_extra_names_it(name, extra):
    message = run_python(WITHOUT_EXTRAS + f"try: skldl.{name}\nexcept ModuleNotFoundError as error: print(error)")
    assert re.fullmatch(
        rf"skldl\.[\w.]+ needs [\w.]+, which comes with the extra '{extra}': pip install 'scikit-ldl\[{extra}\]'",
        message,
    )
    assert skldl.plots is importlib.import_module("skldl.plots")
    assert "plots" in dir(skldl)


def test_figures_need_matplotlib_alone():
    without = WITHOUT_EXTRAS.replace("'matplotlib', ", "")
    assert without != WITHOUT_EXTRAS
    run_python(without + "from skldl.plots import *")


def test_a_fault_inside_a_module_is_not_blamed_on_an_extra():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'skldl\.lost'$"):
        import_with_extra("skldl.lost", "cli")


def test_show_versions_prints_what_is_installed(capsys, monkeypatch):
    skldl.show_versions()
    text = capsys.readouterr().out
    assert f"scikit-ldl {skldl.__version__}" in text
    assert re.search(rf"  numpy {re.escape(np.__version__)}\n", text)
    monkeypatch.setitem(sys.modules["skldl.utils.dependencies"].PACKAGES, "core", ("no-such-package",))
    skldl.show_versions()
    assert "no-such-package is not installed" in capsys.readouterr().out


def test_show_versions_prints_the_threads_though_nothing_was_imported_before(capsys, monkeypatch):
    command = [sys.executable, "-c", "import skldl; skldl.show_versions()"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines.index("threads:") < len(lines) - 1
    monkeypatch.setattr("threadpoolctl.threadpool_info", list)
    skldl.show_versions()
    assert capsys.readouterr().out.splitlines()[-1] == "threads: none found"


def test_show_versions_names_every_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = {
        "core": set(project["dependencies"]),
        "extras": {line for name, lines in extras.items() if name not in ("dev", "docs") for line in lines},
    }
    for group, lines in named.items():
        wanted = {re.split(r"[^\w.-]", line)[0] for line in lines} - {"scikit-ldl"}
        assert wanted <= set(PACKAGES[group]), group


def test_the_command_names_the_extra_it_needs():
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.modules['cyclopts'] = None; from skldl.cli import main; sys.exit(main())",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr == "skldl: the command line needs the extra 'cli': pip install 'scikit-ldl[cli]'\n"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        skldl.Nothing  # noqa: B018 - the access itself is the test
    assert set(skldl.__all__) < set(dir(skldl))
