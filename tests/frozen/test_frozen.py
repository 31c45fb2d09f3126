"""Predictions and other numbers are those of version 0.2.0, but for those that a later change has renewed."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
TOLERANCE = 1e-8
"""For another processor or another version of NumPy or SciPy; compare.py compares on one machine, to 1e-12."""


def _load(name):
    """Import a script of this folder under the name by which the other one imports it."""
    specification = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


cases, freeze = _load("cases"), _load("freeze")
CASES = {case.name: case for case in cases.all_cases() if not case.slow}
NUMBERS = json.loads((HERE / "numbers.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_the_frozen_ones(name):
    case = CASES[name]
    folder = os.environ.get("SKLDL_DATA")
    if case.data and not (folder and (Path(folder) / f"{case.data}.mat").exists()):
        pytest.skip(f"SKLDL_DATA names no folder with {case.data}.mat (the data carry no open licence)")
    expected = NUMBERS[name]
    result = freeze.summary(case.compute())
    if isinstance(expected, str) or isinstance(result, str):
        assert result == expected
        return
    assert result["shape"] == expected["shape"]
    scale = max(1.0, np.abs(expected["begin"]).max(initial=0))
    np.testing.assert_allclose(result["begin"], expected["begin"], rtol=0, atol=TOLERANCE * scale)
    np.testing.assert_allclose(result["sums"], expected["sums"], rtol=0, atol=TOLERANCE * scale)


def test_every_estimator_and_every_number_has_a_case():
    import skldl

    assert set(cases.SETTINGS) == set(skldl.ESTIMATORS)
    assert set(NUMBERS) == set(CASES)
