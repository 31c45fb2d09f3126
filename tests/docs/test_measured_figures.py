"""Figures in the sentences of README.md and docs/scale.md are those of the result files.

The tables of these pages are written by scripts (`test_generated_pages.py`). Sentences are
written by hand; here they are built again from the files, so that a new measurement cannot leave an old figure behind.
"""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
if not RESULTS.exists():
    pytest.skip("the results are in the repository, not in the package", allow_module_level=True)


def words_of(page):
    """The page with one space between words, so that line breaks do not matter."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def scale():
    """From source and number of rows to the measurement."""
    rows = json.loads((RESULTS / "scale.json").read_text(encoding="utf-8"))["rows"]
    return {(row["kind"], row["rows"]): row for row in rows}


@pytest.fixture(scope="module")
def gpu(load_script):
    """Find the record of a section whose description begins with some words."""
    results = json.loads((RESULTS / "gpu.json").read_text(encoding="utf-8"))
    assert "H200" in results["machine"]["device"]
    find = load_script("docs/make_scale.py").find
    return lambda section, beginning: find(results["records"], section, beginning)


def size_in(record):
    """What the parentheses of a description hold, without the precision."""
    return re.search(r"\((?:float\d+, )?([\d, ×and]+?)(?: rows)?(?:, .*)?\)", record["what"])[1]


def test_readme_on_rows_in_files(scale):
    row = scale["parquet", 10**7]
    assert (
        f"10⁷ rows of 20 numbers and 5 degrees from Parquet: {row['CPU s']:.0f} CPU seconds and {row['peak MiB']:.0f} "
        "MiB for `SABFGS`"
    ) in words_of("README.md")


def test_readme_on_the_gpu(gpu):
    read, tables = gpu("fit", "read X and D"), gpu("measures", "read both tables (float32")
    penalties, one = gpu("kernel_all", "fit, 23 penalties"), gpu("kernel_one", "fit, one penalty, auto")
    measures = gpu("measures", "evaluate, six measures (float32)")
    n_rows = size_in(gpu("kernel_all", "torch.linalg.eigh"))
    assert (
        f"On one H200: `SABFGS` on {size_in(read).replace('and', '→')} labels in "
        f"{gpu('fit', 'SABFGS({}).fit')['least_s']:.2f} s, `KernelRidgeLDL` with all penalties on {n_rows} rows in "
        f"{penalties['least_s']:.1f} s, with one penalty on {size_in(one)} rows in {one['least_s']:.1f} s, the six "
        f"measures on {size_in(tables)} float32 in {1000 * measures['least_s']:.1f} ms"
    ) in words_of("README.md")


def test_scale_page_on_rows_in_files(scale):
    memory, parquet, dask = (scale[kind, 10**7] for kind in ("memory", "parquet", "dask"))
    text = words_of("docs/scale.md")
    for sentence in (
        f"`SABFGS` took {memory['passes']} passes on the rows below",
        f"Of the {parquet['peak MiB']:.0f} MiB, ",
        f"From Parquet a row costs {parquet['CPU s'] / memory['CPU s']:.1f} times the CPU time of one in memory",
        f"{dask['passes'] - 1} passes over 10⁶ rows took",
        f"(the fit of 10⁷ rows took {dask['wall s']:.0f} s on the busy machine)",
        f"takes 2 s for each of {parquet['passes'] - 1} evaluations",
        f"From Parquet files on one core it would take {round(100 * parquet['CPU s'], -1):.0f} s, "
        f"{100 * parquet['CPU s'] / 60:.0f} minutes, in {parquet['peak MiB']:.0f} MiB.",
    ):
        assert sentence in text
    assert "The memory of a fit from Parquet does not grow with the rows." in text
    assert parquet["peak MiB"] == pytest.approx(scale["parquet", 10**6]["peak MiB"], rel=0.02)


def test_scale_page_on_copies_of_rows(scale):
    ours, copies = scale["memory", 10**6], scale["copies", 10**6]
    assert "Copies reach the same divergence at ten times the time and three times the memory with 10⁶ rows." in (
        words_of("docs/scale.md")
    )
    assert round(copies["CPU s"] / ours["CPU s"]) == 10
    assert round(copies["peak MiB"] / ours["peak MiB"]) == 3
    assert f"{copies['held-out KL']:.4f}" == f"{ours['held-out KL']:.4f}"


def test_scale_page_on_hashed_text(scale):
    few, many = 20_000, 100_000
    text = words_of("docs/scale.md")
    assert "Hashed text: five times the rows take the same 7 s, " in text
    seconds = [scale[kind, n_rows]["CPU s"] for kind in ("text chunks", "text memory") for n_rows in (few, many)]
    assert round(sum(seconds) / 4) == 7
    assert max(seconds) < 1.15 * min(seconds)
    assert (
        "With 20,000 rows `SGDClassifier` is quicker, and its divergence is higher; with 100,000 rows it takes longer, "
        "and so does `saga`."
    ) in text
    for ours in ("text chunks", "text memory"):
        assert scale["text copies SGD", few]["CPU s"] < scale[ours, few]["CPU s"]
        assert scale["text copies SGD", few]["held-out KL"] > scale[ours, few]["held-out KL"]
        for n_rows in (few, many):
            assert all(
                scale[other, many]["CPU s"] > scale[ours, many]["CPU s"]
                and scale[other, n_rows]["peak MiB"] < scale[ours, n_rows]["peak MiB"]
                for other in ("text copies SGD", "text copies saga")
            )


def test_algorithms_after_2016_lose_to_nobody():
    """With default settings, on the three datasets: in divergence to the mean distribution, in both to python-ldl."""
    rows = json.loads((RESULTS / "after2016.json").read_text(encoding="utf-8"))["rows"]
    assert {row["case"].split(", ")[1] for row in rows} == {"Yeast_alpha", "SBU_3DFE", "Movie"}
    assert [row["case"] for row in rows if row["ours KL"] >= row["mean KL"]] == []
    measured = [row for row in rows if row["python-ldl KL"] is not None]
    assert [row["case"] for row in measured if row["ours KL"] >= row["python-ldl KL"]] == []
    timed = [row for row in rows if row["python-ldl / ours"] is not None]
    assert len(timed) >= 45
    assert [row["case"] for row in timed if row["python-ldl / ours"] < 1] == []
