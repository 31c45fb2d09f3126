"""Bad features, distributions, weights and hyper-parameters for every registered algorithm and every measure.

Each case must end in an error that is a ValueError or TypeError with a message of this package's kind, or in a result
that is right. Counted are: tried, clear (such an error), unclear (any other error), silent (a result where none can be
right). ``make test-slow`` runs all algorithms; a run of ``make test`` two of them.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from skldl.metrics import MEASURES
from skldl.names import algorithm_titles, find_candidate
from skldl.testing import make_distributions

X, D = make_distributions(24, n_labels=3)
SECONDS = 20
QUICK = ("SA-BFGS", "AA-kNN")


def algorithms():
    return algorithm_titles()


def changed(table, row, column, value):
    table = table.astype(object) if isinstance(value, str | None) else table.astype(np.result_type(table, value))
    table[row, column] = value
    return table


def masked(table):
    return np.ma.masked_array(table, mask=np.arange(table.size).reshape(table.shape) == 4)


BAD_FEATURES = {
    "nan": changed(X, 3, 1, np.nan),
    "infinity": changed(X, 3, 1, np.inf),
    "text": changed(X, 3, 1, "a"),
    "none": changed(X, 3, 1, None),
    "complex": X + 1j,
    "one dimension": X[:, 0],
    "three dimensions": X[None],
    "no rows": X[:0],
    "no columns": X[:, :0],
    "fewer rows": X[:-1],
    "masked": masked(X),
    "dates": X.astype("datetime64[s]"),
    "spans of time": X.astype("timedelta64[s]"),
    "number": 3.0,
    "word": "table",
    "nothing": None,
    "ragged": [[1.0, 2.0], [1.0]],
    "sparse nan": sparse.csr_matrix(changed(X, 3, 1, np.nan)),
    "bytes": np.array([[b"a", b"b"]] * len(X)),
}
BAD_DISTRIBUTIONS = {
    "negative": changed(D, 2, 0, -0.1),
    "sums to two": 2 * D,
    "nan": changed(D, 2, 0, np.nan),
    "infinity": changed(D, 2, 0, np.inf),
    "row of zeros": np.where(np.arange(len(D))[:, None] == 4, 0, D),
    "one label": np.ones((len(D), 1)),
    "labels": np.arange(len(D)) % 3,
    "text": changed(D, 2, 0, "a"),
    "none in a cell": changed(D, 2, 0, None),
    "complex": D + 0j + 1j,
    "masked": masked(D),
    "sparse": sparse.csr_matrix(D),
    "fewer rows": D[:-1],
    "no rows": D[:0],
    "nothing": None,
    "word": "labels",
    "two names alike": pd.DataFrame(D, columns=["a", "a", "b"]),
    "dates": D.astype("datetime64[s]"),
}
BAD_WEIGHTS = {
    "negative": np.where(np.arange(len(D)) == 1, -1, 1),
    "nan": np.where(np.arange(len(D)) == 1, np.nan, 1),
    "infinity": np.where(np.arange(len(D)) == 1, np.inf, 1),
    "all zero": np.zeros(len(D)),
    "too few": np.ones(len(D) - 1),
    "a table": np.ones((len(D), 2)),
    "text": ["a"] * len(D),
    "complex": np.ones(len(D)) + 1j,
    "masked": np.ma.masked_array(np.ones(len(D)), mask=np.arange(len(D)) == 1),
    "dates": np.ones(len(D)).astype("datetime64[s]"),
}
BAD_VALUES = (object(), "no such word", float("nan"), -3, [], {"a": 1})


def is_clear(error):
    """A user's mistake is reported by one of these, in words that say more than the name of an attribute."""
    text = str(error)
    raw = ("object has no attribute", "not supported between", "unsupported operand", "takes no arguments")
    return isinstance(error, ValueError | TypeError) and len(text) > 15 and not any(word in text for word in raw)


def attack(campaign, what, call, *, may_succeed=False):
    try:
        with campaign.limited(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning is a fair answer to nonsense
            result = call()
    except TimeoutError:
        campaign.judge("hang", what)
    except Exception as error:
        campaign.judge("clear" if is_clear(error) else "unclear", f"{what}: {type(error).__name__}: {error}"[:200])
    else:
        right = may_succeed and (result is None or np.isfinite(np.asarray(result, dtype=float)).all())
        campaign.judge("right" if right else "silent", what)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in algorithms()]
)
def test_bad_data(name, campaign):
    model = find_candidate(name).make()
    features = {what: bad for what, bad in BAD_FEATURES.items() if not (model._allow_nan and what in ("nan", "none"))}
    for what, bad in features.items():
        attack(campaign, f"fit, X {what}", lambda bad=bad: clone(model).fit(bad, D))
    for what, bad in BAD_DISTRIBUTIONS.items():
        if not (model._allow_missing_degrees and what in ("nan", "none in a cell")):  # a degree that was not observed
            attack(campaign, f"fit, D {what}", lambda bad=bad: clone(model).fit(X, bad))
    for what, bad in BAD_WEIGHTS.items():
        attack(campaign, f"fit, weights {what}", lambda bad=bad: clone(model).fit(X, D, sample_weight=bad))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it warns is not the question here
        fitted = clone(model).fit(pd.DataFrame(X, columns=list("abcd")[: X.shape[1]]), D)
        for what, bad in features.items():
            if what != "fewer rows":
                attack(campaign, f"predict, X {what}", lambda bad=bad: fitted.predict(bad))
        turned = pd.DataFrame(X, columns=list("abcd")[: X.shape[1]]).iloc[:, ::-1]
        attack(campaign, "predict, columns in another order", lambda: fitted.predict(turned))
        attack(campaign, "predict, a column too few", lambda: fitted.predict(X[:, 1:]))
    attack(campaign, "predict before fit", lambda: clone(model).predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("name", algorithms())
def test_bad_hyper_parameters(name, campaign):
    """A value that the declaration does not accept is rejected; one that it does gives finite results or an error."""
    model = find_candidate(name).make()
    for parameter in model.get_params(deep=False):
        constraint = model._constraints.get(parameter)
        for value in BAD_VALUES:
            wrong = clone(model).set_params(**{parameter: value})
            attack(
                campaign,
                f"{parameter}={value!r}",
                lambda wrong=wrong: wrong.fit(X, D).predict(X),
                may_succeed=constraint is not None and constraint.accepts(value),
            )


def test_bad_data_for_measures(campaign):
    for name, measure in MEASURES.items():
        for what, bad in BAD_DISTRIBUTIONS.items():
            attack(campaign, f"{name}, truth {what}", lambda bad=bad, measure=measure: measure(bad, D))
            attack(campaign, f"{name}, prediction {what}", lambda bad=bad, measure=measure: measure(D, bad))
        for what, bad in BAD_WEIGHTS.items():
            attack(campaign, f"{name}, weights {what}", lambda bad=bad, measure=measure: measure(D, D, bad))
    assert campaign.counts["tried"] > 2000
