"""Predictions and other numbers are those of version 0.2.0, but for those that a later change has renewed."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


def _load(name):
    """Import a script of this folder under the name by which the other one imports it."""
    specification = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


cases, _, way, freeze = (_load(name) for name in ("cases", "functions", "way", "freeze"))
CASES = {case.name: case for case in freeze.all_cases() if not case.slow}
WAY = {case.name for case in way.way_cases()}
NUMBERS = json.loads((HERE / "numbers.json").read_text())


@pytest.mark.parametrize("name", [name for name in CASES if name not in WAY])
def test_numbers_are_the_frozen_ones(name):
    case = CASES[name]
    folder = os.environ.get("SKLDL_DATA")
    if case.data and not (folder and (Path(folder) / f"{case.data}.mat").exists()):
        pytest.skip(f"SKLDL_DATA names no folder with {case.data}.mat (the data carry no open licence)")
    assert _what_differs(case) == ""


def test_numbers_of_the_way_from_votes_to_a_report_are_the_frozen_ones():
    differing = {name: _what_differs(CASES[name]) for name in CASES if name in WAY}
    assert {name: what for name, what in differing.items() if what} == {}


def _what_differs(case):
    """What differs from the frozen numbers; empty if nothing does."""
    expected, result = NUMBERS[case.name], freeze.summary(case.compute())
    if isinstance(expected, str) or isinstance(result, str):
        return "" if result == expected else f"{result} in place of {expected}"
    if result["shape"] != expected["shape"]:
        return f"shape {result['shape']} in place of {expected['shape']}"
    scale = max(1.0, np.abs(expected["begin"]).max(initial=0))
    gap = max(np.abs(np.subtract(result[part], expected[part])).max(initial=0) / scale for part in ("begin", "sums"))
    return "" if gap <= case.tolerance else f"numbers differ by {gap:.1e}"


def test_every_estimator_and_every_number_has_a_case():
    import skldl

    assert set(cases.SETTINGS) == set(skldl.ESTIMATORS)
    assert set(NUMBERS) == set(CASES)
