"""Fixtures: a small pool of `AutoLDL`, since `fit_table` has no parameter for its members."""

import pytest

from skldl.ensemble import _auto
from skldl.ensemble._members import Member  # what a recipe of a pool, which the fixture replaces, returns


@pytest.fixture
def pool_of(monkeypatch):
    """Let the pool consist of some members only, or of one member that a function makes from the rows.

    The function returns a fitted model, its held-out divergence, and its held-out predictions.
    """

    def members(*names, made=None):
        recipes = {name: _auto.RECIPES[name] for name in names}
        if made is not None:

            def recipe(rows, seed):
                model, divergence, held_out = made(rows)
                return [Member("linear", model, divergence, held_out, divergence, 0.0)]

            recipes = {"linear": _auto.Recipe(recipe, lambda rows: "", 1.0)}
        monkeypatch.setattr(_auto, "RECIPES", recipes)

    return members
