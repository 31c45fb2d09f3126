"""Datasets have the fingerprints that stand in the records of the studies, so that studies can be continued."""

import json
from pathlib import Path

import numpy as np
import pytest

from skldl.data import load_dataset
from skldl.exceptions import DatasetNotFoundError

RECORDS = Path(__file__).parents[2] / "studies" / "tkde2016" / "records.jsonl"
FACTS = ("fingerprint", "family", "n_samples", "n_test", "n_features", "n_labels", "label_names")


def recorded():
    """The lines on datasets at the beginning of the records; none where the repository has no studies."""
    if not RECORDS.exists():
        return {}
    with RECORDS.open(encoding="utf-8") as stream:
        entries = (json.loads(line) for line in stream)
        return {entry["name"]: entry for entry in entries if entry["kind"] == "dataset"}


@pytest.mark.parametrize("name", sorted(recorded()))
def test_datasets_of_the_paper(name):
    try:
        dataset = load_dataset(name)
    except DatasetNotFoundError:
        pytest.skip("the data of the paper are not on this machine")
    if name == "Artificial" and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("the last digits of the artificial set, which is made of powers, are those of numpy 2")
    assert {fact: dataset.describe()[fact] for fact in FACTS} == {fact: recorded()[name][fact] for fact in FACTS}


def test_a_file_of_one_s_own(tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "small.csv").write_text("a,b,label_joy,label_fear\n0.5,5,0.25,0.75\n-1.25,3,0.5,0.5\n0,1,1,0\n")
    dataset = load_dataset(tmp_path / "small.csv")
    assert (dataset.describe()["fingerprint"], dataset.describe()["family"]) == ("ae772f9550d88ba0", "870dcb7737b80793")
    assert load_dataset(tmp_path / "small.csv", labels="label_*").fingerprint == dataset.fingerprint
