"""Every command reads and writes every file format of the one table of formats."""

import re

import numpy as np
import pandas as pd
import pytest

from skldl.data import TableFile, TableWriter, load_dataset
from skldl.data._formats import FORMATS, suffixes_with  # the one table of formats is what is tested


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("suffix", suffixes_with("writer"))
def test_commands_agree_on_tables(here, cli, suffix):
    x = np.arange(30)
    table = pd.DataFrame({"x": x, "label_no": 1 - x / 40, "label_yes": x / 40})
    with TableWriter(f"d{suffix}") as writer:
        writer.write(table)
    pd.testing.assert_frame_equal(TableFile(f"d{suffix}").read(), table)
    assert load_dataset(f"d{suffix}").label_names == ("no", "yes")
    cli(f"fit d{suffix} --labels 'label_*' --model mean --out m.skldl")
    cli(f"predict m.skldl d{suffix} --out p{suffix}")
    assert list(TableFile(f"p{suffix}").read())[:2] == ["label_no", "label_yes"]
    cli(f"convert d{suffix} --from scores --labels 'label_*' --out c{suffix}")
    assert len(TableFile(f"c{suffix}").read()) == 30
    cli(f"explain m.skldl d{suffix} --repeats 1 --out e{suffix}")
    cli(f"datasets describe d{suffix}")
    cli(f"bench --datasets d{suffix} --candidates mean --dry-run")
    printed = cli(f"evaluate d{suffix} --labels 'label_*' --splits nowhere{suffix}", status=2)
    assert "there is no file of splits" in printed.err


def test_a_folder_is_read_whatever_the_formats_of_its_files(here, cli):
    (here / "d").mkdir()
    for suffix in suffixes_with("writer"):
        with TableWriter(f"d/part{suffix}") as writer:
            writer.write(pd.DataFrame({"x": [1.0, 2.0], "a": [0.5, 0.25], "b": [0.5, 0.75]}))
    cli("fit d --labels a,b --model mean --out m.skldl")


def test_help_lists_the_formats_of_the_table(cli):
    shown = " ".join(cli("predict --help").out.replace("│", " ").split())
    assert "A table (CSV, TSV or Parquet) with the columns" in shown
    assert "a file, CSV (.csv, .txt), TSV (.tsv) or Parquet (.parquet, .pq), or -" in shown
    for command in ("fit", "convert", "evaluate", "explain", "inspect", "datasets describe", "measures select"):
        assert not re.search(r"\{\w+\}", cli(f"{command} --help").out)


def test_each_suffix_belongs_to_one_format():
    suffixes = [suffix for format_ in FORMATS for suffix in format_.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert suffixes == [suffix.lower() for suffix in suffixes]
