"""Fixtures: the paper's data, if the folder named by SKLDL_DATA holds them; scripts outside of the package."""

import importlib.util
import os
import shlex
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import io, sparse

from skldl.cli import main


@pytest.fixture(scope="session")
def paper_data() -> Callable[[str], tuple[np.ndarray, np.ndarray]]:
    """Load X and D of a dataset of the paper by file name, or skip the test where the file is not there."""

    def load(name: str) -> tuple[np.ndarray, np.ndarray]:
        folder = os.environ.get("SKLDL_DATA")
        if not folder or not (Path(folder) / f"{name}.mat").exists():
            pytest.skip(f"SKLDL_DATA names no folder with {name}.mat (the data carry no open licence)")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # SciPy 1.18 announces sparse arrays for matrices
            content = io.loadmat(Path(folder) / f"{name}.mat")
        features = content["features"]
        X = sparse.csr_matrix(features, dtype=np.float64) if name == "Movie" else features.astype(np.float64)
        return X, np.asarray(content["labels"], dtype=np.float64)

    return load


@pytest.fixture(scope="module")
def load_script():
    """Import a file of docs, tools or benchmarks by its path in the repository; the import path stays as it was."""
    root, before = Path(__file__).parents[1], list(sys.path)

    def load(path: str) -> ModuleType:
        specification = importlib.util.spec_from_file_location(Path(path).stem, root / path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module

    yield load
    sys.path[:] = before


@pytest.fixture
def cli(capsys):
    """Run the words after ``skldl`` in this process, check the exit status, return standard output and error."""

    def run(words, status=0):
        capsys.readouterr()  # what was printed before
        found = main(shlex.split(words) if isinstance(words, str) else words)
        printed = capsys.readouterr()
        assert found == status, printed.err
        return printed

    return run


@pytest.fixture(scope="session")
def faces():
    """A table as people have it: missing numbers, categories, yes and no, a name of the person, three labels."""
    generator = np.random.default_rng(0)
    n_rows = 120
    age = generator.normal(40, 12, n_rows).round(1)
    town = generator.choice(["Ulm", "Bonn", "Kiel"], n_rows)
    smoker = generator.random(n_rows) < 0.3
    scores = np.c_[0.05 * (age - 40), 1.0 * (town == "Ulm"), 1.5 * smoker - 0.2]
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    D = np.array([generator.dirichlet(20 * share) for share in shares])
    table = pd.DataFrame({"person": [f"p{row // 3}" for row in range(n_rows)], "age": age, "town": town})
    table["smoker"] = np.where(smoker, "yes", "no")
    table.loc[::17, "age"] = np.nan
    return table.assign(emo_joy=D[:, 0], emo_anger=D[:, 1], emo_fear=1 - D[:, 0] - D[:, 1])


@pytest.fixture(scope="session")
def faces_model(faces, tmp_path_factory):
    """A model file that ``skldl fit`` could have written for the faces, quickly."""
    import skldl
    from skldl.data import Columns, from_table
    from skldl.tabular import fit_table

    table = from_table(faces, Columns("emo_*", groups="person"), source="faces.csv")
    fitted = fit_table(table, model="sa-bfgs")
    return skldl.save(fitted.model, tmp_path_factory.mktemp("faces") / "faces.skldl", description=fitted.description)
