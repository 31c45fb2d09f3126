"""Small files with known content, and an environment without the paper's data, cache and mirror."""

from pathlib import Path

import numpy as np
import pooch
import pytest


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Hide the machine's own data; return the empty folder that takes the place of the cache."""
    cache = tmp_path / "cache"
    monkeypatch.delenv("SKLDL_DATA", raising=False)
    monkeypatch.delenv("SKLDL_MIRROR", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: cache)
    return cache


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 4)), rng.dirichlet(np.ones(3), size=7)
