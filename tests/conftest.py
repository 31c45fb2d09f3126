"""Fixtures: the paper's data, if the folder named by SKLDL_DATA holds them."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import io, sparse


@pytest.fixture(scope="session")
def paper_data() -> Callable[[str], tuple[np.ndarray, np.ndarray]]:
    """Load X and D of a dataset of the paper by file name, or skip the test where the file is not there."""

    def load(name: str) -> tuple[np.ndarray, np.ndarray]:
        folder = os.environ.get("SKLDL_DATA")
        if not folder or not (Path(folder) / f"{name}.mat").exists():
            pytest.skip(f"SKLDL_DATA names no folder with {name}.mat (the data carry no open licence)")
        content = io.loadmat(Path(folder) / f"{name}.mat")
        features = content["features"]
        X = sparse.csr_matrix(features, dtype=np.float64) if name == "Movie" else features.astype(np.float64)
        return X, np.asarray(content["labels"], dtype=np.float64)

    return load
