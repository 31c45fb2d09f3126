"""Fixtures of the tests of measures."""

import numpy as np
import pytest


@pytest.fixture
def pair():
    generator = np.random.default_rng(3)
    return generator.dirichlet(np.ones(5), 40), generator.dirichlet(np.ones(5), 40)
