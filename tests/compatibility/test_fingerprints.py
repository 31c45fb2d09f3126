"""Datasets have the fingerprints that version 0.1 wrote into its records, so that studies of 0.1 can be continued."""

import json
from pathlib import Path

import numpy as np
import pytest

from skldl.data import load_dataset
from skldl.exceptions import DatasetNotFoundError

HERE = Path(__file__).parent / "files_0_1"
STUDY_OF_THE_PAPER = Path(__file__).parents[2] / "studies" / "tkde2016" / "records.jsonl"


def recorded(path):
    """The lines on datasets at the beginning of a file of records."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8") as stream:
        entries = (json.loads(line) for line in stream)
        return {entry["name"]: entry for entry in entries if entry["kind"] == "dataset"}


def skip_artificial_with_old_numpy(entry):
    """numpy before 2.0 computes another last digit of powers, from which the artificial set is made."""
    if entry["name"] == "Artificial" and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("the last digits of the artificial set are those of numpy 2")


def assert_same(dataset, entry):
    for name in ("fingerprint", "family", "n_samples", "n_test", "n_features", "n_labels", "label_names"):
        assert dataset.describe()[name] == entry[name], name


def test_files_of_one_s_own_and_artificial_data():
    entries = recorded(HERE / "study" / "records.jsonl")
    assert set(entries) == {"Artificial", "small"}
    assert_same(load_dataset(HERE / "small.csv"), entries["small"])
    assert_same(load_dataset(HERE / "small.csv", labels="label_*"), entries["small"])
    skip_artificial_with_old_numpy(entries["Artificial"])
    assert_same(load_dataset("artificial"), entries["Artificial"])


@pytest.mark.parametrize("name", sorted(recorded(STUDY_OF_THE_PAPER)))
def test_datasets_of_the_paper(name):
    try:
        dataset = load_dataset(name)
    except DatasetNotFoundError:
        pytest.skip("the data of the paper are not on this machine")
    skip_artificial_with_old_numpy(recorded(STUDY_OF_THE_PAPER)[name])
    assert_same(dataset, recorded(STUDY_OF_THE_PAPER)[name])
