"""The folder that is named for a study comes before the one that the environment names."""

import os

import numpy as np
from scipy import io

from skldl.experiments.loading import load_datasets
from skldl.experiments.study import DatasetSpec


def write(folder, degree):
    folder.mkdir()
    D = np.full((2000, 9), (1 - degree) / 8)
    D[:, 0] = degree
    X = np.random.default_rng(0).uniform(size=(2000, 294))
    io.savemat(folder / "Natural_Scene.mat", {"features": X, "labels": D})
    return folder


def test_the_named_folder_wins_and_the_environment_stays(tmp_path, monkeypatch):
    usual, named = write(tmp_path / "usual", 0.25), write(tmp_path / "named", 0.75)
    monkeypatch.setenv("SKLDL_DATA", str(usual))
    specs = [DatasetSpec("Natural_Scene")]
    assert load_datasets(specs)[0][0].data.D[0, 0] == 0.25
    assert load_datasets(specs, data_home=named)[0][0].data.D[0, 0] == 0.75
    assert os.environ["SKLDL_DATA"] == str(usual)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert load_datasets([DatasetSpec("SJAFFE")], data_home=tmp_path / "empty") == ([], ["SJAFFE"])
    monkeypatch.delenv("SKLDL_DATA")
    load_datasets(specs, data_home=named)
    assert "SKLDL_DATA" not in os.environ
