"""Warnings point at the line of the caller, however deep inside the package they arise."""

import functools
import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import skldl
from skldl import AABP, CPNN, LDLLC, PTSVM, SABFGS, SABFGSCV, SAIIS, DirichletLDL
from skldl.testing import make_distributions
from skldl.transformation import _ptsvm
from skldl.utils.warn import warn

X, D = make_distributions(40)


def origin(call):
    """File and line of the first warning of a call, and its text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught[0].filename, caught[0].lineno, str(caught[0].message)


SHORT = [
    SABFGS(max_iter=1),
    SABFGS(max_iter=1, whiten=False),
    SABFGSCV(max_iter=1),
    SAIIS(max_iter=1),
    LDLLC(max_iter=1),
    DirichletLDL(max_iter=1),
    AABP(max_iter=1, random_state=0),
    CPNN(max_iter=1, alpha=1.0, random_state=0),
]
GAPS = np.where(np.arange(D.size).reshape(D.shape) == 0, np.nan, D)
CASES = [
    *((model, D, "max_iter=1") for model in SHORT),
    (SABFGS(0.1), GAPS, "missing="),
    (PTSVM(C=1e-3), D, "PTSVM fits"),
]


@pytest.mark.parametrize(("model", "D", "words"), CASES, ids=lambda value: type(value).__name__)
def test_fits(model, D, words, monkeypatch):
    monkeypatch.setattr(_ptsvm, "LONG_FIT", 0)  # private: else the fit would have to take minutes

    def call():
        model.fit(X, D)

    file, line, message = origin(call)
    assert words in message
    assert (file, line) == (__file__, inspect.getsourcelines(call)[1] + 1)


def test_frames_of_the_standard_library_in_between_are_passed_over():
    """``functools`` stands between the caller of a cached property and the package, and between its own functions."""
    inside = compile("def call(work):\n    return work()", f"{skldl.__path__[0]}/_module.py", "exec")
    names = {}
    exec(inside, names)

    def call():
        names["call"](functools.partial(functools.reduce, lambda a, b: names["call"](lambda: warn("deep")), [1, 2]))

    file, line, message = origin(call)
    assert (file, message) == (__file__, "deep")
    assert line == inspect.getsourcelines(call)[1] + 1


def test_a_warning_without_any_caller_in_the_package():
    file, _, _ = origin(lambda: warn("here", RuntimeWarning))
    assert file == __file__


ELSEWHERE = {
    "utils/warn.py": "it is the function itself",
    "cli/predict.py": "repeats what another process has warned of; its caller is the command line",
}
"""Files that call `warnings.warn`, and why they may."""


def test_no_other_file_counts_the_frames_itself():
    package = Path(skldl.__file__).parent
    call = re.compile(r"\bwarnings\.warn\(|from warnings import")
    files = {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    assert {name for name, text in files.items() if call.search(text)} <= set(ELSEWHERE)
