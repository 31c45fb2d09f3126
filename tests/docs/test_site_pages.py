"""Pages of the site: their programs run and print what they say, examples have places, links fit the site."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
if not DOCS.exists():
    pytest.skip("the pages are in the repository, not in the package", allow_module_level=True)
QUICK = ("coming-from-matlab", "coming-from-scikit-learn", "uncertainty", "user-guide/selection")
SLOW = ("start", "user-guide/data", "user-guide/learning", "user-guide/studies")
PROMISE = re.compile(r"print\((.*)\)  # (.*)")


@pytest.mark.parametrize("page", [*QUICK, *(pytest.param(page, marks=pytest.mark.slow) for page in SLOW)])
def test_the_programs_of_a_page_run(page, tmp_path, monkeypatch):
    for package in ("pandas", "pyarrow", "skops", "scikit_posthocs", "baycomp"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names = {}
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), names)
        assert "nan" not in printed.getvalue()


@pytest.mark.slow
def test_the_first_page_prints_what_it_says(capsys):
    text = (DOCS / "start.md").read_text(encoding="utf-8")
    exec("\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)), {})
    said = [comment for _, comment in PROMISE.findall(text) if re.search(r"\d", comment)]
    numbers = [float(number) for comment in said for number in re.findall(r"\d+\.\d*", comment)]
    printed = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("{")]
    found = [float(number) for line in printed for number in re.findall(r"\d+\.\d*", line)]
    assert len(numbers) >= 10
    np.testing.assert_allclose(found, numbers, atol=2e-3)


def test_the_leaderboard_is_in_order_and_its_best_is_bold(load_script):
    script = load_script("docs/make_leaderboard.py")
    cells = {"low": {"A": 0.1, "Artificial": 0.9}, "high": {"A": 0.3, "B": -0.0001, "Artificial": 0.2}}
    assert script.table(cells).splitlines()[2:] == [
        "| high | 0.300 | **0.300** | 0.200 | **0.000** |",
        "| low | 0.100 | 0.100 | **0.900** |  |",
    ]
    assert script.table({"one": {"A": 0.25}}).splitlines() == ["| | A |", "|---|---:|", "| one | **0.250** |"]


def test_columns_that_are_left_out_do_not_count_in_the_average(load_script):
    table = load_script("docs/make_leaderboard.py").table
    cells = {"one": {"A": 0.1, "faces": 0.9}, "other": {"A": 0.2, "faces": 0.1}}
    assert [line.split(" | ")[1] for line in table(cells, ("faces",)).splitlines()[2:]] == ["0.200", "0.100"]
    assert [line.split(" | ")[1] for line in table(cells).splitlines()[2:]] == ["0.500", "0.150"]


def test_skills_of_the_leaderboard_are_those_of_the_records(load_script):
    script = load_script("docs/make_leaderboard.py")
    reproduction = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    table = reproduction.split("#### Skill against Mean, by Kullback-Leibler")[1].split("####")[0]
    shares = {row.split(" | ")[0].strip("| "): row for row in table.splitlines() if row.startswith("| ")}
    for dataset in ("SJAFFE", "Movie", "Yeast_heat"):
        best = max(row[dataset] for row in script.paper_cells().values())
        assert f"{best:.1%}" in shares[dataset]


def test_every_example_has_a_place_in_the_gallery(load_script, tmp_path):
    pages = load_script("docs/site_pages.py")
    examples = list((ROOT / "examples").glob("*.py"))
    assert {path.stem for path in examples} <= set(pages.GalleryOrder.NAMES)
    assert len(set(pages.GalleryOrder.NAMES)) == len(pages.GalleryOrder.NAMES)
    runs = [path for path in examples if re.search(pages.examples_that_run(), str(path))]
    assert runs == [path for path in examples if not pages.missing_packages(path)]
    (tmp_path / "new.py").write_text("import numpy\nfrom no_such_package import name\n")
    assert pages.missing_packages(tmp_path / "new.py") == ["no_such_package"]
    with pytest.raises(ValueError, match=r"Give the example new\.py its place"):
        pages.GalleryOrder("")("new.py")


def test_links_of_pages_in_the_root_fit_the_site(load_script, tmp_path):
    pages = load_script("docs/site_pages.py")
    pages.write_pages(tmp_path)
    text = (tmp_path / "project" / "contributing.md").read_text(encoding="utf-8")
    assert text.startswith("# Contributing")
    citing = (tmp_path / "project" / "citing.md").read_text(encoding="utf-8")
    assert "10.1109/TKDE.2016.2545658" in citing
    assert "pp. 1734–1748, 2016" in citing
    link = pages.LINK.sub(pages._from_the_root, "[a](docs/guide.md#x) [b](CHANGELOG.md) [c](LICENSE) ![d](docs/e.png)")
    assert link == "[a](../guide.md#x) [b](changelog.md) [c](../../LICENSE) ![d](docs/e.png)"


def test_links_to_files_outside_are_downloads_and_missing_pages_are_left_out(load_script):
    pages = load_script("docs/site_pages.py")

    class App:
        srcdir = str(DOCS)

    source = ["[a](../studies/README.md) [b](guide.md)\n\noptional: accuracy\noptional: no-such-page\n"]
    pages.adapt_page(App, "results", source)
    assert source == ["[a](path:../studies/README.md) [b](guide.md)\n\naccuracy\n"]
    source = ["[c](../../examples/votes.py) [d](../../examples) [e](../../CONTRIBUTING.md)"]
    pages.adapt_page(App, "user-guide/learning", source)
    assert source == ["[c](../gallery/votes.rst) [d](../gallery/index.rst) [e](../project/contributing.md)"]


def test_names_in_pages_become_links_only_where_they_are_meant(load_script, monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS)
    links = load_script("docs/links_to_reference.py")
    names = links.names_of_the_reference()
    assert names["SABFGS"] == "skldl.SABFGS"
    assert names["metrics.clark"] == names["clark"] == "skldl.metrics.clark"
    assert names["enhancement.GLLE"] == "skldl.enhancement.GLLE"
    assert links._is_meant("from_votes", "from_votes")
    assert links._is_meant("search(...)", "search")
    assert not links._is_meant("search", "search")
